//! A process goes through all kinds of changes in any order, and several users read it. The service must show each user
//! what `/proc` shows it at that moment.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::PathBuf,
    process::Command,
};

use crate::{
    common::{Child, Served, as_user, become_user, in_child, turns},
    files,
};
use fastproc::{Details, Texts};
use fastproc_testbed::{Folder, gate, needs, wait_until};
use nix::{libc, sys::ptrace};
use proptest::{prelude::*, test_runner::TestRunner};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

const A: u32 = 54_630;
const B: u32 = 54_631;
/// The users whose views are compared.
const READERS: [u32; 3] = [0, A, B];

/// What the process becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
enum Step {
    BecomeA = 1,
    BecomeB,
    /// Only the real user, as after executing a set-user-ID program of B.
    RealUserA,
    Dumpable,
    NotDumpable,
    Traced,
    /// A set-user-ID program of B.
    ExecuteAsB,
    /// A program that may be executed but not read.
    ExecuteUnreadable,
    Exit,
}

use Step::{
    BecomeA, BecomeB, Dumpable, ExecuteAsB, ExecuteUnreadable, Exit, NotDumpable, RealUserA, Traced,
};

/// A first state, some changes, and a last one that nothing can follow.
fn lives() -> impl Strategy<Value = Vec<Step>> {
    let first = prop_oneof![
        4 => Just(BecomeA),
        1 => Just(BecomeB),
        2 => Just(RealUserA),
        1 => Just(Dumpable),
    ];
    let next = prop_oneof![Just(Dumpable), Just(NotDumpable), Just(Traced)];
    let last = prop_oneof![Just(ExecuteAsB), Just(ExecuteUnreadable), Just(Exit)];
    let middle = prop::collection::vec(next, 0..3);
    (first, middle, last).prop_map(|(first, middle, last)| {
        let mut life = vec![first];
        life.extend(middle);
        life.push(last);
        life
    })
}

/// Programs that the process may execute.
struct Programs {
    as_b: PathBuf,
    unreadable: PathBuf,
}

impl Programs {
    fn copy(folder: &Folder) -> Self {
        let copy = |name: &str, owner: u32, mode: u32| {
            let program = folder.join(name);
            fs::copy("/bin/sleep", &program).expect("sleep is there");
            std::os::unix::fs::chown(&program, Some(owner), Some(owner))
                .expect("root sets the owner");
            fs::set_permissions(&program, fs::Permissions::from_mode(mode))
                .expect("its mode is set");
            program
        };
        Self {
            as_b: copy("as-b", B, 0o4755),
            unreadable: copy("unreadable", 0, 0o111),
        }
    }
}

fn act(step: Step, programs: &Programs) {
    use rustix::{process::Uid, thread};
    let execute = |program| {
        let error = Command::new(program).arg0("sleep").arg("1000").exec();
        panic!("{error}");
    };
    let dumpable = |behavior| set_dumpable_behavior(behavior).expect("the flag is set");
    match step {
        BecomeA => become_user(A),
        BecomeB => become_user(B),
        RealUserA => {
            let [a, b] = [A, B].map(Uid::from_raw);
            thread::set_thread_res_uid(a, b, b).expect("root may change its user");
        }
        Dumpable => dumpable(DumpableBehavior::Dumpable),
        NotDumpable => dumpable(DumpableBehavior::NotDumpable),
        // The test does this.
        Traced => {}
        ExecuteAsB => execute(&programs.as_b),
        ExecuteUnreadable => execute(&programs.unreadable),
        // SAFETY: ends this process without running what the test's would.
        Exit => unsafe { libc::_exit(0) },
    }
}

/// What a reader sees.
#[derive(Debug, PartialEq)]
struct Shown {
    program: Option<Vec<u8>>,
    line: Option<Vec<u8>>,
    has_io: bool,
    start_stack: u64,
    ids: Vec<u32>,
    /// The number of descriptors, and what each is.
    open: u64,
    files: Option<BTreeMap<u32, Vec<u8>>>,
}

/// As the kernel shows it to the calling process.
fn by_proc(pid: u32) -> Shown {
    let file = |name: &str| fs::read(format!("/proc/{pid}/{name}"));
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    let stat = file("stat").expect("it has not been waited for");
    let stat = String::from_utf8_lossy(&stat);
    let (_, numbers) = stat.rsplit_once(')').expect("a name");
    let start_stack = numbers.split_ascii_whitespace().nth(25).expect("field 28");
    let status = String::from_utf8(file("status").expect("it is public")).expect("UTF-8");
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let ids = ids.expect("a line").split_ascii_whitespace();
    Shown {
        program: program
            .ok()
            .map(|path| path.into_os_string().into_encoded_bytes()),
        line: file("cmdline").ok(),
        has_io: file("io").is_ok(),
        start_stack: start_stack.parse().expect("a number"),
        ids: ids.map(|id| id.parse().expect("a number")).collect(),
        open: fs::metadata(format!("/proc/{pid}/fd"))
            .expect("everybody may look at it")
            .len(),
        files: files_by_proc(pid),
    }
}

/// What each descriptor is. `None`: the kernel does not show it.
fn files_by_proc(pid: u32) -> Option<BTreeMap<u32, Vec<u8>>> {
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let number = entry.file_name().to_str()?.parse().ok()?;
        let name = fs::read_link(entry.path()).ok()?;
        Some((number, name.into_os_string().into_encoded_bytes()))
    };
    let folder = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    folder.map(file).collect()
}

fn files_by_service(served: &Served, pid: u32) -> (u64, Option<BTreeMap<u32, Vec<u8>>>) {
    use fastproc::files::Fields;
    let mut files = files::open(served, Fields::FILES | Fields::PATHS);
    let snapshot = files.snapshot().expect("the service answers");
    let mut processes = snapshot.processes();
    let holder = processes.find(|holder| holder.pid() == pid);
    let holder = holder.expect("it has not been waited for");
    let all = holder.files().filter_map(|file| {
        let mut name = Vec::new();
        assert!(file.write_name(&mut name));
        Some((file.descriptor()?, name))
    });
    let open = holder.open().expect("everybody may see that");
    (open.into(), (!holder.is_hidden()).then(|| all.collect()))
}

/// As the service shows it to the calling process.
fn by_service(served: &Served, pid: u32) -> Shown {
    let mut collector = served
        .builder()
        .fields(fastproc::Fields::all())
        .texts(Texts::all())
        .open()
        .expect("the service answers");
    let mut details = Details::open(collector.host()).expect("/proc is there");
    let snapshot = collector.snapshot().expect("the service answers");
    let process = snapshot.get(pid).expect("it has not been waited for");
    let users = process.users().expect("they were asked for");
    let (open, files) = files_by_service(served, pid);
    Shown {
        program: details.exe(process).ok().map(<[u8]>::to_vec),
        line: details
            .cmdline(process)
            .ok()
            .map(|line| line.bytes.to_vec()),
        has_io: process.io().is_some(),
        start_stack: process.layout().map_or(0, |layout| layout.start_stack),
        ids: vec![users.uid, users.euid, users.suid, users.fsuid],
        open,
        files,
    }
}

fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("/proc shows the process");
    let (_, rest) = stat.rsplit_once(") ").expect("a name");
    rest.chars().next()
}

/// Goes through all steps. After each one, every reader reads the process.
fn live(served: &Served, life: &[Step], programs: &Programs) {
    let (mut own, mut its) = turns();
    let child: Child = in_child(|| {
        for &step in life {
            its.wait();
            act(step, programs);
            its.give();
        }
    });
    let pid = child.0.as_raw() as u32;
    for &step in life {
        own.give();
        match step {
            Exit => wait_until("its end", || state(pid) == Some('Z')),
            ExecuteAsB | ExecuteUnreadable => wait_until("the program", || {
                let line = fs::read(format!("/proc/{pid}/cmdline"));
                // It opens files before it sleeps.
                let call = fs::read_to_string(format!("/proc/{pid}/syscall"));
                let sleeps = format!("{} ", libc::SYS_clock_nanosleep);
                line.is_ok_and(|line| line.ends_with(b"\x001000\0"))
                    && call.is_ok_and(|call| call.starts_with(&sleeps))
            }),
            _ => own.wait(),
        }
        if step == Traced {
            // The service shows what a user is allowed to trace. Whether the process is traced makes no difference.
            let _ = ptrace::seize(child.0, ptrace::Options::empty());
        }
        for reader in READERS {
            as_user(reader, || {
                let before = by_proc(pid);
                let shown = by_service(served, pid);
                assert_eq!(by_proc(pid), before, "it does nothing meanwhile");
                assert_eq!(shown, before, "{reader} after {step:?} of {life:?}");
            });
        }
    }
}

#[test]
fn whatever_becomes_of_a_process_each_user_is_shown_what_proc_shows_it() {
    needs!(gate::bpf());
    let folder = Folder::new("oracle-programs");
    let mounted = rustix::fs::statvfs(&*folder)
        .expect("the folder is mounted")
        .f_flag;
    if mounted.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
        gate::skipped("no program can be executed where temporary files are");
        return;
    }
    let served = Served::start("oracle", None);
    let programs = Programs::copy(&folder);
    // Each last step at least once, and random sequences.
    for last in [ExecuteAsB, ExecuteUnreadable, Exit] {
        live(&served, &[BecomeA, last], &programs);
    }
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 0,
        ..ProptestConfig::with_cases(6)
    };
    let ran = TestRunner::new(config).run(&lives(), |life| {
        live(&served, &life, &programs);
        Ok(())
    });
    ran.expect("each is shown what it may see");
}
