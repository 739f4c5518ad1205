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
use fastproc_testbed::{gate, wait_until};

use super::{AMPLE, watch};

/// Processes that execute nothing, with the exit code by which the test finds each of them; a subreaper is process S.
const FORKED: &str = r#"
import ctypes, os
def child(code, ends, lives=()):
    if os.fork() == 0:
        [os.close(fd) for fd in lives]
        os.read(ends, 1)
        os._exit(code)
# 101: its parent executes another program before it ends. The pipe closes during the exec.
r, w = os.pipe()
if os.fork() == 0:
    child(101, r, [w])
    os.execl("/bin/sh", "sh", "-c", "read x; exit 0; : later")
os.close(w), os.wait()
# 102: its parent does not.
if os.fork() == 0:
    os.execl("/usr/bin/python3", "python3", "-c", "import os\nif os.fork() == 0: os._exit(102)\nos.wait()")
os.wait()
# 103: an orphan of a process that has executed another program, as its subreaper has then.
r, w = os.pipe()
if os.fork() == 0:
    os.set_inheritable(r, True), os.set_inheritable(w, True)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    middle = f"import os\nif os.fork() == 0: os.close({w}); os.read({r}, 1); os._exit(103)"
    if os.fork() == 0:
        os.execl("/usr/bin/python3", "python3", "-c", middle)
    os.wait()
    os.set_inheritable(w, False)
    os.execl("/usr/bin/python3", "python3", "-c", "import os\nos.wait() # subreaper")
os.close(w), os.wait()
# 104: its sibling forked it, which has executed another program.
if os.fork() == 0:
    clone = "import ctypes, os, platform\nnumber = 220 if platform.machine() == 'aarch64' else 56\n" \
        "if ctypes.CDLL(None).syscall(number, 0x8011, 0, 0, 0, 0) == 0: os._exit(104)"
    parent = "import os, subprocess, sys\nsubprocess.run(['/usr/bin/python3', '-c', sys.argv[1]]); os.wait() # sibling"
    os.execl("/usr/bin/python3", "python3", "-c", parent, clone)
os.wait()
"#;

/// A process that executed its program before recording began; its parent executes another one after that.
const BEFORE: &str = r#"
import os, sys
r, w = os.pipe()
executed, executing = os.pipe()
if os.fork() == 0:
    os.dup2(r, 0)
    os.execl("/bin/sh", "sh", "-c", "read x; exit 105")
os.close(executing), os.read(executed, 1)
print(flush=True)
sys.stdin.read()
os.execl("/bin/sh", "sh", "-c", "sleep 0; exit 0; : later")
"#;

#[test]
fn a_process_has_its_own_command_line_or_none() {
    if !gate::bpf() {
        return;
    }
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
    let mut forked = python(FORKED).spawn().expect("python3 runs");
    let (mut programs, mut lines) = (Programs::default(), BTreeMap::new());
    wait_until("five exits", || {
        let read = exits.read(|event| match event {
            Event::Exec(exec) => programs.begins(&exec),
            Event::Exit(exit) if exit.uid == user && exit.code() > Some(100) => {
                let line = programs.line(&exit);
                let line = line
                    .as_ref()
                    .and_then(|line| line.shown_to(&Viewer::All, &exit));
                let line = line.map(|line| String::from_utf8_lossy(line.bytes).into_owned());
                lines.insert(exit.code(), line);
            }
            _ => {}
        });
        read.expect("the ring can be read");
        lines.len() == 5
    });
    forked.wait().expect("it ends");
    let of_parent = lines.remove(&Some(102)).flatten();
    let is_of_parent = |line: &String| line.contains("os._exit(102)");
    assert!(
        of_parent.as_ref().is_some_and(is_of_parent),
        "{of_parent:?}"
    );
    assert!(lines.values().all(Option::is_none), "{lines:?}");
}

/// Longer than what small events have room for, and than what is kept.
#[test]
fn a_command_line_of_4_kib_is_kept_and_a_longer_one_is_cut() {
    if !gate::bpf() {
        return;
    }
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
