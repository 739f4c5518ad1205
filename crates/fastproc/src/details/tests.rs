use std::{
    io::Write,
    process::{Child, Command, Stdio},
};

use fastproc_testbed::wait_until;

use super::{
    directory::{LONGEST, start_ticks},
    *,
};
use crate::records::record::{Identity, Record};

/// A shell that waits for its standard input to end, or for a line to execute.
fn shell() -> Child {
    Command::new("sh")
        .args(["-c", "read line && exec $line", "a name", ""])
        .stdin(Stdio::piped())
        .spawn()
        .expect("there is a shell")
}

fn record(pid: u32) -> Record {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).expect("/proc shows the process");
    let mut record = Record {
        identity: Identity {
            tgid: pid,
            start_ns: start_ticks(&stat).expect("a start time") * 10_000_000,
            ..Identity::default()
        },
        ..Record::default()
    };
    let comm = std::fs::read(format!("/proc/{pid}/comm")).expect("/proc shows the process");
    record.identity.comm[..comm.len() - 1].copy_from_slice(&comm[..comm.len() - 1]);
    record
}

fn details() -> Details {
    let host = Host {
        page_size: 4096,
        ticks_per_second: 100,
        possible_cpus: 1,
        online_cpus: vec![0],
        possible_nodes: 1,
        boot_offset_ns: 0,
    };
    Details::open(&host).expect("/proc is there")
}

/// The shell executes another one: its name and the rest of its record stay the same.
#[test]
fn after_exec_of_a_program_of_the_same_name_both_are_read_again() {
    let mut shell = shell();
    let pid = shell.id();
    let line = || std::fs::read(format!("/proc/{pid}/cmdline")).expect("/proc shows the process");
    wait_until("what the shell does", || line().ends_with(b"a name\0\0"));
    let mut details = details();
    let record = record(pid);
    let process = Process::new(&record, &[]);
    let expected = line();
    assert_eq!(details.cmdline(process).expect("readable").bytes, expected);
    let exe = details.exe(process).expect("readable").to_vec();
    assert!(exe.starts_with(b"/"));

    let mut stdin = shell.stdin.take().expect("a pipe");
    stdin.write_all(b"sh -s other\n").expect("it reads");
    wait_until("what the shell does", || line() == b"sh\0-s\0other\0");
    assert_eq!(
        details.cmdline(process).expect("kept").bytes,
        expected,
        "of one snapshot"
    );
    details.renew();
    let now = details.cmdline(process).expect("read");
    assert_eq!(now.bytes, b"sh\0-s\0other\0");

    stdin.write_all(b"exec sleep 600\n").expect("it reads");
    wait_until("what the shell does", || line() == b"sleep\x00600\0");
    details.renew();
    assert_ne!(details.exe(process).expect("read"), exe);
    shell.kill().expect("the child is killed");
    shell.wait().expect("the child ends");
    details.renew();
    assert!(matches!(
        details.cmdline(process),
        Err(DetailError::Gone { .. })
    ));
}

#[test]
fn an_empty_command_line_is_kept_like_any_other() {
    let mut child = Command::new("true").spawn().expect("it is installed");
    let record = record(child.id());
    let process = Process::new(&record, &[]);
    let mut details = details();
    wait_until("a zombie", || {
        details.renew();
        let line = details.cmdline(process);
        line.expect("nobody has waited for it").bytes.is_empty()
    });
    child.wait().expect("it has ended");
    let kept = details.cmdline(process).expect("of one snapshot");
    assert!(kept.bytes.is_empty());
}

/// For a kernel thread and for an exited process the link is equally missing; only the kernel thread may still be
/// visible.
#[test]
fn the_program_of_a_process_that_has_ended_is_gone() {
    let mut shell = shell();
    let details = details();
    let record = record(shell.id());
    let directory = details.directory(Process::new(&record, &[]));
    let directory = directory.expect("it is our child");
    shell.kill().expect("the child is killed");
    wait_until("what the shell does", || {
        matches!(directory.exe(), Err(DetailError::Absent { .. }))
    });
    shell.wait().expect("the child ends");
    assert!(matches!(directory.exe(), Err(DetailError::Gone { .. })));
}

/// As `process_vm_writev(2)` and `ptrace(2)` do: the process itself is idle all the time.
#[test]
fn a_command_line_that_another_process_writes_is_shown() {
    let mut shell = shell();
    let pid = shell.id();
    let line = || std::fs::read(format!("/proc/{pid}/cmdline")).expect("/proc shows the process");
    wait_until("what the shell does", || line().ends_with(b"a name\0\0"));
    let mut details = details();
    let record = record(pid);
    let process = Process::new(&record, &[]);
    let before = details.cmdline(process).expect("readable").bytes.to_vec();

    let stat =
        std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("/proc shows the process");
    let arg_start = stat.split(' ').nth(47).expect("it has a command line");
    let memory = std::fs::File::options()
        .write(true)
        .open(format!("/proc/{pid}/mem"));
    let memory = memory.expect("it is our child");
    std::os::unix::fs::FileExt::write_all_at(&memory, b"SH", arg_start.parse().expect("a number"))
        .expect("it is our child");
    details.renew();
    let after = details.cmdline(process).expect("readable").bytes;
    assert_eq!(after[..3], *b"SH\0");
    assert_eq!(after[3..], before[3..]);
    drop(shell.stdin.take());
    shell.wait().expect("it ends with its input");
}

/// Between two reads the process may execute another program, and the line would be a mixture.
#[test]
fn a_command_line_is_of_one_read() {
    let reads = || -> u64 {
        let io = std::fs::read_to_string("/proc/thread-self/io").expect("it can be read");
        let count = io.lines().find_map(|line| line.strip_prefix("syscr: "));
        count
            .expect("it has a count of reads")
            .parse()
            .expect("a number")
    };
    let mut shell = Command::new("sh")
        .args(["-c", "read line", &"x".repeat(9000)])
        .stdin(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let record = record(shell.id());
    let process = Process::new(&record, &[]);
    let mut details = details();
    wait_until("what the shell does", || {
        details.renew();
        details.cmdline(process).expect("readable").bytes.len() > 9000
    });
    details.renew();
    let of_this_count = {
        let before = reads();
        reads() - before
    };
    let before = reads();
    details.cmdline(process).expect("readable");
    assert_eq!(
        reads() - before - of_this_count,
        2,
        "one of stat, for the start time, and one of cmdline"
    );
    drop(shell.stdin.take());
    shell.wait().expect("it ends with its input");
}

#[test]
fn another_process_with_the_pid_gives_nothing() {
    let mut other = record(std::process::id());
    other.identity.start_ns -= 10_000_000;
    let process = Process::new(&other, &[]);
    let mut details = details();
    assert!(matches!(
        details.cmdline(process),
        Err(DetailError::Gone { .. })
    ));
    assert!(matches!(
        details.exe(process),
        Err(DetailError::Gone { .. })
    ));
    assert!(matches!(
        details.cgroup(process),
        Err(DetailError::Gone { .. })
    ));
    assert!(!details.may_trace(process));
}

#[test]
fn any_file_can_be_read() {
    let own = record(std::process::id());
    let own = Process::new(&own, &[]);
    let mut details = details();
    let comm = std::fs::read("/proc/self/comm").expect("/proc is mounted");
    assert_eq!(details.file(own, c"comm").expect("readable"), comm);
    let link = details.link(own, c"ns/pid").expect("readable");
    assert!(link.starts_with(b"pid:["));
    assert!(details.file(own, c"no such file").is_err());
    let opened = std::fs::File::open("/proc/self/comm").expect("/proc is mounted");
    let number = std::os::fd::AsRawFd::as_raw_fd(&opened) as u32;
    let files = details.open_files(own, usize::MAX).expect("readable");
    let path = format!("/proc/{}/comm", std::process::id()).into_bytes();
    assert!(files.contains(&(number, path)), "{files:?}");
    assert_eq!(details.open_files(own, 0).expect("readable"), []);
    assert!(details.link(own, c"comm").is_err());
}

#[test]
fn ones_own_process_may_be_traced() {
    let own = record(std::process::id());
    assert!(details().may_trace(Process::new(&own, &[])));
}

#[test]
fn a_long_command_line_is_cut_and_not_kept() {
    // A single argument has 128 KiB at most.
    let argument = "x".repeat(100_000);
    let mut sleeper = Command::new("sh")
        .args(["-c", "read line", &argument, &argument])
        .stdin(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let own = record(sleeper.id());
    let mut details = details();
    // spawn() returns when the old memory is gone, before the new one has its arguments.
    wait_until("what the shell does", || {
        details.renew();
        let line = details.cmdline(Process::new(&own, &[]));
        !line.expect("readable").bytes.is_empty()
    });
    let line = details.cmdline(Process::new(&own, &[])).expect("readable");
    assert!(line.cut);
    assert_eq!(line.bytes.len() as u64, LONGEST);
    assert!(details.entries.is_empty());
    drop(sleeper.stdin.take());
    sleeper.wait().expect("it ends with its input");
}

#[test]
fn the_cgroup_is_the_same_with_and_without_its_id() {
    let mut details = details();
    let mut own = record(std::process::id());
    let path = details.cgroup(Process::new(&own, &[])).map(<[u8]>::to_vec);
    let Ok(path) = path else {
        fastproc_testbed::gate::skipped("there is no default hierarchy here");
        return;
    };
    assert!(path.starts_with(b"/"));
    own.identity.groups = crate::records::fields::Fields::CGROUP.bits();
    // The other id does not exist.
    for id in [details.cgroups.folder_id(&path).unwrap_or(1), u64::MAX] {
        own.cgroup.id = id;
        for _ in 0..2 {
            let again = details.cgroup(Process::new(&own, &[]));
            assert_eq!(again.expect("readable"), path);
        }
    }
}

#[test]
fn one_path_is_read_for_each_cgroup() {
    let Some(cgroup) = fastproc_testbed::Cgroup::new("one/path") else {
        return;
    };
    let start = || {
        let mut child = cgroup.command("read line");
        child.stdin(Stdio::piped()).spawn().expect("sh runs")
    };
    let mut children = [start(), start(), start()];
    let procs = cgroup.folder().join("cgroup.procs");
    wait_until("all are in it", || {
        std::fs::read_to_string(&procs).is_ok_and(|procs| procs.lines().count() == 3)
    });
    // With the privilege the kernel returns the path of any id.
    for opens_ids in [true, false] {
        let mut details = details();
        if !opens_ids {
            details.cgroups.open_no_ids();
        }
        let id = details.cgroups.folder_id(cgroup.path().as_bytes());
        for renewed in [false, true] {
            for (at, child) in children.iter().enumerate() {
                let mut record = record(child.id());
                record.identity.groups = crate::records::fields::Fields::CGROUP.bits();
                record.cgroup.id = id.expect("its folder is there");
                // With another start time the process cannot be read, so its path can only be the one that is kept.
                if at > 0 {
                    record.identity.start_ns += 1_000_000_000;
                }
                let process = Process::new(&record, &[]);
                let path = details.whole_cgroup(process).expect("readable").to_vec();
                assert_eq!(
                    path,
                    cgroup.path().as_bytes(),
                    "{at}, {renewed}, {opens_ids}"
                );
                assert_eq!(details.cgroup(process).expect("readable"), path);
            }
            details.renew();
        }
    }
    for child in &mut children {
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
    }
}

#[test]
fn the_start_time_stands_behind_any_name() {
    let numbers = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
    let stat = format!("7 (a) S 1 (b) R) S {numbers}");
    assert_eq!(start_ticks(stat.as_bytes()), Some(4711));
    assert_eq!(start_ticks(b"7 (a) S 1 2"), None);
    assert_eq!(start_ticks(b"7 (a)"), None);
    assert_eq!(start_ticks(b""), None);
}
