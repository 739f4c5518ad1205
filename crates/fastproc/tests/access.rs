//! The access rule against the kernel's own: what it shows and hides of every process when nobody asks. Needs root.

use std::{
    collections::HashMap,
    fs::{self, Permissions},
    io::Read,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use fastproc::{
    Collector, Fields, SourceKind,
    access::{Access, Reader},
    record::Record,
    text::{Text, Units, stat},
};

const NOBODY: u32 = 65534;
const INITIAL_USER_NS: u32 = 0xefff_fffd;

/// A process of some user, ended with the test.
struct Running(Child);

impl Running {
    fn start(uid: u32, gid: u32) -> Self {
        Self::execute(Command::new("sleep").arg("1000").uid(uid).gid(gid))
    }

    fn execute(command: &mut Command) -> Self {
        let silent = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(silent.spawn().expect("it can be started"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0
            .kill()
            .and_then(|()| self.0.wait())
            .expect("it can be ended");
    }
}

/// The stat of every process, as the kernel shows it to nobody.
fn shown_to_nobody(units: &Units) -> (u32, HashMap<u32, (Record, Vec<u8>)>) {
    // Each stat is one line; one whose name has the end of a line in it does not parse, and is left out.
    let mut cat = Command::new("sh")
        .args(["-c", "exec cat /proc/[0-9]*/stat 2>/dev/null"])
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh can be started");
    let mut text = Vec::new();
    cat.stdout
        .take()
        .expect("it is piped")
        .read_to_end(&mut text)
        .expect("it can be read");
    cat.wait().expect("it ends");
    let lines = text
        .split_inclusive(|&byte| byte == b'\n')
        .filter_map(|line| {
            let mut record = Record::default();
            stat::parse(line, units, &mut record).ok()?;
            Some((record.identity.tgid, (record, line.to_vec())))
        });
    (cat.id(), lines.collect())
}

#[test]
fn nobody_is_shown_what_the_kernel_would_show() {
    let mut collector = match Collector::builder()
        .fields(Fields::THREE_FILES)
        .source(Some(SourceKind::Bpf))
        .open()
    {
        Ok(collector) => collector,
        Err(error) => {
            println!("skipped, for it needs root and BPF: {error}");
            return;
        }
    };
    let own = [
        Running::start(NOBODY, NOBODY),
        Running::start(NOBODY, NOBODY),
        // Of nobody's user, but not group; and of another user.
        Running::start(NOBODY, 12345),
        Running::start(12345, NOBODY),
    ];
    // Zombies of nobody: of a program that anybody may read, and of one that could not be dumped, for it could not be read.
    let program = std::env::temp_dir().join(format!("fastproc-test-access-{}", std::process::id()));
    fs::copy("/bin/false", &program).expect("it can be copied");
    fs::set_permissions(&program, Permissions::from_mode(0o111)).expect("it is ours");
    let zombies = [Path::new("/bin/false"), &program]
        .map(|program| Running::execute(Command::new(program).uid(NOBODY).gid(NOBODY)));
    std::thread::sleep(Duration::from_millis(200));
    fs::remove_file(&program).expect("it is ours");
    let units = Units::from(collector.host());
    let (cat, shown) = shown_to_nobody(&units);
    let reader = Reader {
        pid: cat,
        fsuid: NOBODY,
        fsgid: NOBODY,
        cap_effective: 0,
        user_ns: INITIAL_USER_NS,
        confined: false,
    };
    let snapshot = collector.snapshot().expect("a snapshot can be made");
    let (mut granted, mut denied, mut same) = (0, 0, 0);
    let mut dead = 0;
    let mut text = Text::default();
    for process in snapshot.iter() {
        let Some((kernel, line)) = shown.get(&process.pid()) else {
            continue;
        };
        if kernel.identity.start_ns / units.tick_ns != process.identity().start_ns / units.tick_ns
            || kernel.identity.state_bits != process.identity().state_bits
        {
            continue;
        }
        let access = reader.access(process);
        let expected = if kernel.identity.masked == 0 {
            Access::Granted
        } else {
            Access::Denied
        };
        // A lone running thread without memory shows nothing that could be hidden.
        if process.identity().has_mm != 0
            || process.identity().num_threads < 2 && kernel.identity.state_bits != 0
        {
            assert_eq!(
                access,
                expected,
                "{:?} {:?}",
                process.name(),
                (process.users(), process.credentials())
            );
        }
        dead += usize::from(zombies.iter().any(|zombie| zombie.0.id() == process.pid()));
        match access {
            Access::Granted => granted += 1,
            Access::Denied => denied += 1,
        }
        let rendered = text
            .render(|out| stat::render(process, &units, access, out))
            .expect("it renders");
        same += usize::from(rendered == line);
    }
    // The two of nobody's own were granted, the two others and all of root's were not.
    assert!(
        granted >= 2 && denied >= 4,
        "{granted} granted, {denied} denied"
    );
    assert!(
        same >= granted + denied / 2,
        "only {same} of {} texts were the kernel's",
        granted + denied
    );
    assert_eq!(dead, zombies.len());
    drop((own, zombies));
}
