//! A script that answers, and sleeps between.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use fastproc_testbed::wait_until;

/// A script that runs until its input is closed, when this is dropped.
pub struct Script {
    child: Child,
    /// `None` once it is closed.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Script {
    pub fn python(text: &str) -> Self {
        Self::start("/usr/bin/python3", text)
    }

    pub fn shell(text: &str) -> Self {
        Self::start("sh", text)
    }

    fn start(program: &str, text: &str) -> Self {
        let mut child = Command::new(program)
            .args(["-c", text])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Self {
            child,
            input,
            output,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a line.
    pub fn tell(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is told no more at its end");
        writeln!(input, "{line}").expect("it reads");
    }

    /// The next line that it prints.
    pub fn answer(&mut self) -> String {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        assert!(read.expect("it prints text") > 0, "the script has ended");
        line.trim_end().to_owned()
    }

    /// Its threads.
    pub fn threads(&self) -> Vec<u32> {
        let folder = format!("/proc/{}/task", self.pid());
        fs::read_dir(folder)
            .expect("/proc shows the process")
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect()
    }

    /// The text of a thread. Reading that of the process would make the kernel remember the times that it shows.
    pub fn stat(&self, thread: u32) -> String {
        let path = format!("/proc/{}/task/{thread}/stat", self.pid());
        fs::read_to_string(path).expect("no thread ends")
    }

    /// Waits until all of its threads sleep.
    pub fn wait_until_asleep(&self) {
        wait_until("all threads of a script to sleep", || {
            let mut threads = self.threads().into_iter();
            threads.all(|thread| self.stat(thread).contains(") S "))
        });
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
