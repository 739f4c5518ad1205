//! Compares the access rule with the kernel's own, for every process. Needs root.

use std::{
    collections::HashMap,
    fs::{self, Permissions},
    io::Read,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
};

use fastproc::{
    Collector, Fields, Snapshot, SourceKind,
    access::{Access, Reader},
    record::Record,
    text::{Text, Units, stat},
};
use fastproc_testbed::{Folder, gate, wait_until};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

const NOBODY: u32 = 65534;
/// `PF_KTHREAD` of the kernel's flags.
const PF_KTHREAD: u32 = 0x0020_0000;
const INITIAL_USER_NS: u32 = 0xefff_fffd;

/// A process of some user, killed with the test.
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

    fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it has exited, and leaves it a zombie.
    fn wait_until_ended(&self) {
        let pid = Pid::from_child(&self.0);
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), options).expect("it is our child");
    }

    /// Waits until it sleeps, and does not change between two readings.
    fn wait_until_asleep(&self) {
        let stat = || {
            fs::read_to_string(format!("/proc/{}/stat", self.pid())).expect("it runs until killed")
        };
        wait_until("a process that sleeps", || {
            let before = stat();
            std::thread::sleep(std::time::Duration::from_millis(1));
            before.contains("(sleep) S ") && stat() == before
        });
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

/// The stat of every process, by pid.
type Shown = HashMap<u32, (Record, Vec<u8>)>;

/// Stat as the kernel shows it to nobody, and the process that read it.
fn shown_to_nobody(units: &Units) -> (u32, Shown) {
    // Each stat is one line. One whose name contains a line feed does not parse, and is left out.
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
fn values_that_the_kernel_hides_are_denied() {
    if !gate::bpf() {
        return;
    }
    let mut collector = Collector::builder()
        .fields(Fields::THREE_FILES)
        .source(Some(SourceKind::Bpf))
        .open()
        .expect("BPF can be used");
    let own = [
        Running::start(NOBODY, NOBODY),
        Running::start(NOBODY, NOBODY),
        // Of nobody's user, but not group; of another user; and root's.
        Running::start(NOBODY, 12345),
        Running::start(12345, NOBODY),
        Running::start(0, 0),
    ];
    // Zombies of nobody: of a program that all may read, and of one that was not dumpable, because it was not readable.
    let folder = Folder::new("access");
    let program = folder.join("false");
    fs::copy("/bin/false", &program).expect("it can be copied");
    fs::set_permissions(&program, Permissions::from_mode(0o111)).expect("its mode is set");
    let zombies = [Path::new("/bin/false"), &program]
        .map(|program| Running::execute(Command::new(program).uid(NOBODY).gid(NOBODY)));
    own.iter().for_each(Running::wait_until_asleep);
    zombies.iter().for_each(Running::wait_until_ended);
    let units = Units::from(collector.host());
    let ours: Vec<&Running> = own.iter().chain(&zombies).collect();
    // The kernel may reclaim a page of a sleeping process.
    wait_until("looks between which none of them moves", || {
        let (_, before) = shown_to_nobody(&units);
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        let (cat, after) = shown_to_nobody(&units);
        let line = |shown: &Shown, pid| shown.get(&pid).map(|(_, line)| line.clone());
        let stood = ours
            .iter()
            .all(|ours| line(&before, ours.pid()) == line(&after, ours.pid()));
        if stood {
            judge(&snapshot, &after, cat, &units, &own, &ours);
        }
        stood
    });
}

/// Compares what our rule hides of each process with what the kernel hid when the process of nobody read its files.
fn judge(
    snapshot: &Snapshot<'_>,
    shown: &Shown,
    cat: u32,
    units: &Units,
    own: &[Running; 5],
    ours: &[&Running],
) {
    let reader = Reader {
        pid: cat,
        fsuid: NOBODY,
        fsgid: NOBODY,
        cap_effective: 0,
        user_ns: INITIAL_USER_NS,
        confined: false,
    };
    let mut text = Text::default();
    let (mut met, mut kernel_threads) = (0, 0);
    for process in snapshot.iter() {
        let is_ours = ours.iter().any(|ours| ours.pid() == process.pid());
        // Others may change their user or exit between the two readings; kernel threads do not.
        let is_kernel_thread = process.identity().flags & PF_KTHREAD != 0;
        if !is_ours && !is_kernel_thread {
            continue;
        }
        let Some((kernel, line)) = shown.get(&process.pid()) else {
            assert!(!is_ours, "the kernel shows it");
            continue;
        };
        if kernel.identity.start_ns / units.tick_ns != process.identity().start_ns / units.tick_ns {
            assert!(!is_ours, "it is one process");
            continue;
        }
        let access = reader.access(process);
        let expected = if kernel.identity.masked == 0 {
            Access::Granted
        } else {
            Access::Denied
        };
        // A running thread shows no value that could be hidden of a process without memory.
        if is_ours || kernel.identity.state_bits != 0 && process.identity().state_bits != 0 {
            let who = (process.name(), process.users(), process.credentials());
            assert_eq!(access, expected, "{who:?}");
            kernel_threads += u32::from(is_kernel_thread);
        }
        if is_ours {
            let rendered = text
                .render(|out| stat::render(process, units, access, out))
                .expect("it renders");
            assert_eq!(
                String::from_utf8_lossy(rendered),
                String::from_utf8_lossy(line)
            );
            met += 1;
        }
    }
    assert_eq!(met, ours.len());
    assert!(kernel_threads > 0);
    // Processes of nobody are granted; those of another group or user are not.
    let access = |ours: &Running| {
        let process = snapshot.get(ours.pid()).expect("it sleeps");
        reader.access(process)
    };
    assert_eq!(
        own.each_ref().map(access),
        [
            Access::Granted,
            Access::Granted,
            Access::Denied,
            Access::Denied,
            Access::Denied
        ]
    );
}
