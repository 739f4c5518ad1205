//! A process that executes a test's commands.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::serve::folder::Folder;

const SHELL: &str = "/bin/sh";
/// Runs each line that it reads, and prints `done` after it.
const OBEY: &str = "while read -r line; do eval \"$line\"; echo done; done";

/// A shell under its own name. It ends with the test, together with its children.
pub struct Actor {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Actor {
    /// Starts it. The name has at most 15 bytes.
    #[track_caller]
    pub fn start(folder: &Folder, name: &str) -> Self {
        assert!(name.len() < 16, "the kernel cuts {name}");
        let mut child = Command::new(folder.alias(SHELL, name))
            .args(["-c", OBEY])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell can be started");
        let orders = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut actor = Self {
            child,
            orders,
            answers,
        };
        actor.tell(":");
        actor
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Runs a line of shell in it, and returns the output.
    #[track_caller]
    pub fn tell(&mut self, line: &str) -> String {
        writeln!(self.orders, "{line}").expect("the shell listens");
        let mut answer = String::new();
        loop {
            let before = answer.len();
            let read = self.answers.read_line(&mut answer).expect("it answers");
            assert!(read > 0, "it has ended at {line:?}");
            if &answer[before..] == "done\n" {
                answer.truncate(before);
                return answer;
            }
        }
    }

    /// Makes it spend CPU time, at least this many clock ticks.
    #[track_caller]
    pub fn spend(&mut self, ticks: u64) {
        let until = self.ticks() + ticks;
        while self.ticks() < until {
            self.tell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
        }
    }

    /// CPU time so far, in clock ticks.
    #[track_caller]
    pub fn ticks(&self) -> u64 {
        self.stat(14) + self.stat(15)
    }

    /// A field of `/proc/PID/stat`, numbered as proc(5) does.
    #[track_caller]
    pub fn stat(&self, field: usize) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.pid()))
            .expect("the process has a stat");
        let (_, rest) = text.rsplit_once(") ").expect("a name");
        let word = rest.split_whitespace().nth(field - 3).expect("a field");
        word.parse().expect("a number")
    }

    /// Ends it, and waits until it is gone.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
