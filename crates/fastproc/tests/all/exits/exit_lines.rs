//! The command lines of exited processes.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use fastproc::{
    access::Viewer,
    exits::{Event, Exits, Programs},
};
use fastproc_testbed::{gate, needs, wait_until};

use super::{AMPLE, watch};

/// Processes that execute nothing, with the exit code by which the test finds each of them. The first script is a
/// subreaper (prctl 36). Every script that one of them runs begins with a name.
const FORKED: &str = r##"# first
import ctypes, os
def executes(script, *kept):
    [os.set_inheritable(fd, True) for fd in kept]
    os.execl("/usr/bin/python3", "python3", "-c", script)
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
# 101: its parent, which executed nothing either, executes another program before it ends. The pipe closes then.
r, w = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.close(w), os.read(r, 1)
        os._exit(101)
    os.execl("/bin/sh", "sh", "-c", "read x; exit 0; : later")
os.close(w), os.wait()
# 102 and 103: a child, and the child's child.
if os.fork() == 0:
    executes("# second\nimport os\nif os.fork() == 0:\n  if os.fork() == 0: os._exit(103)\n  os.wait(), os._exit(102)\nos.wait()")
os.wait()
# 104: an orphan of a process that has executed another program, as its subreaper has then.
r, w = os.pipe()
if os.fork() == 0:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    if os.fork() == 0:
        executes(f"# third\nimport os\nif os.fork() == 0: os.close({w}); os.read({r}, 1); os._exit(104)", r, w)
    os.wait()
    executes("# subreaper\nimport os\nos.wait()")
os.close(w), os.wait()
# 105: its sibling forked it, which has executed another program.
if os.fork() == 0:
    clone = "# fourth\nimport ctypes, os, platform\nnumber = 220 if platform.machine() == 'aarch64' else 56\n" \
        "if ctypes.CDLL(None).syscall(number, 0x8011, 0, 0, 0, 0) == 0: os._exit(105)"
    parent = "# sibling\nimport os, subprocess, sys\nsubprocess.run(['/usr/bin/python3', '-c', sys.argv[1]]); os.wait()"
    os.execl("/usr/bin/python3", "python3", "-c", parent, clone)
os.wait()
# 106: an orphan whose subreaper executed a program before the orphan's parent did, and is none any more when it ends.
r, w = os.pipe()
may_execute, executed = os.pipe()
if os.fork() == 0:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    if os.fork() == 0:
        os.close(executed), os.read(may_execute, 1)
        executes(f"# fifth\nimport os\nif os.fork() == 0: os.close({w}); os.read({r}, 1); os._exit(106)", r, w)
    executes(f"# adopts\nimport ctypes, os\nos.close({executed}), os.wait()\n"
        f"ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)\nos.close({w}), os.wait()", executed, w)
os.close(executed), os.close(w)
try:
    while True: os.wait()
except ChildProcessError: pass
"##;

/// The name of the script that each of them runs.
const RUNS: [(i32, &str); 6] = [
    (101, "# first"),
    (102, "# second"),
    (103, "# second"),
    (104, "# third"),
    (105, "# fourth"),
    (106, "# fifth"),
];

/// Two processes that were forked before recording began; their parent executes another program after that. The first
/// has executed its own program by then.
const BEFORE: &str = r#"
import os, sys
r, w = os.pipe()
executed, executing = os.pipe()
if os.fork() == 0:
    os.dup2(r, 0)
    os.execl("/bin/sh", "sh", "-c", "read x; exit 107")
if os.fork() == 0:
    os.close(w), os.close(executing), os.read(r, 1)
    os._exit(108)
os.close(executing), os.read(executed, 1)
print(flush=True)
sys.stdin.read()
os.execl("/bin/sh", "sh", "-c", "sleep 0; exit 0; : later")
"#;

#[test]
fn a_process_has_the_command_line_that_began_its_program_or_none() {
    needs!(gate::bpf());
    // By a user of its own, since the same test may run elsewhere on this machine.
    let user = 1_000_000 + std::process::id();
    let python = |script: &str| {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", script]).current_dir("/");
        command.uid(user).gid(user);
        command
    };
    let mut before = python(BEFORE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut said = BufReader::new(before.stdout.take().expect("a pipe"));
    said.read_line(&mut String::new()).expect("it has executed");
    let builder = Exits::builder().ring_bytes(AMPLE).at_once(true);
    let mut exits = builder.execs(true).open().expect("exits open");
    drop(before.stdin.take());
    before.wait().expect("it ends");
    let mut forked = python(FORKED);
    let mut forked = forked.stdin(Stdio::null()).spawn().expect("python3 runs");
    let (mut programs, mut lines) = (Programs::default(), BTreeMap::new());
    let mut expected: BTreeMap<_, _> = RUNS.map(|(code, name)| (code, name.to_owned())).into();
    expected.extend([107, 108].map(|code| (code, String::new())));
    wait_until("all exits", || {
        let read = exits.read(|event| match event {
            Event::Exec(exec) => programs.begins(&exec),
            Event::Exit(exit) if exit.uid == user && exit.code() > Some(100) => {
                let line = programs.line(&exit);
                let line = line
                    .as_ref()
                    .and_then(|line| line.shown_to(&Viewer::All, &exit));
                let line = line.map_or(String::new(), |line| {
                    String::from_utf8_lossy(line.bytes).into_owned()
                });
                let script = line.split('\0').nth(2).unwrap_or_default();
                let name = script.lines().next().unwrap_or_default();
                lines.insert(exit.code().unwrap_or_default(), name.to_owned());
            }
            _ => {}
        });
        read.expect("the ring can be read");
        lines.len() == expected.len()
    });
    forked.wait().expect("it ends");
    assert_eq!(lines, expected);
}

/// Longer than what small events have room for, and than what is kept.
#[test]
fn a_command_line_of_4_kib_is_kept_and_a_longer_one_is_cut() {
    needs!(gate::bpf());
    let builder = Exits::builder().ring_bytes(AMPLE).at_once(true);
    let mut exits = builder.execs(true).open().expect("exits open");
    for len in [
        6, 100, 128, 129, 256, 257, 512, 513, 1536, 1537, 4096, 4097, 100_000,
    ] {
        // With "true", and a NUL after each.
        let argument = "x".repeat(len - 6);
        let all = format!("true\0{argument}\0").into_bytes();
        let mut child = Command::new("true")
            .arg(&argument)
            .spawn()
            .expect("true runs");
        let (pid, mut told) = (child.id(), None);
        watch(&mut exits, pid, |event| {
            if let Event::Exec(exec) = event
                && exec.pid == pid
            {
                told = exec.cmdline.map(|line| (line.bytes.to_vec(), line.cut));
            }
        });
        let _ = child.try_wait();
        let (line, cut) = told.expect("it was executed");
        assert_eq!((line.len(), cut), (all.len().min(4096), all.len() > 4096));
        assert!(all.starts_with(&line));
    }
}
