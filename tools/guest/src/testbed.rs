//! The odd processes with which everything is tested.

use std::{
    io::{self, BufRead as _, BufReader, Read as _},
    process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio},
    time::Instant,
};

use crate::reporter::Reporter;

/// Its supervisor.
pub const TESTBED: &str = "/fastproc-testbed";

/// An open testbed.
pub struct Testbed {
    started: Instant,
    supervisor: Child,
    processes: BufReader<ChildStdout>,
    first: String,
    absent: ChildStderr,
}

impl Testbed {
    /// Opens it, and waits until every test process is in its place.
    pub fn open() -> io::Result<Self> {
        let mut supervisor = Command::new(TESTBED)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let started = Instant::now();
        let missing = || io::Error::other("a pipe to the testbed is missing");
        let mut processes = BufReader::new(supervisor.stdout.take().ok_or_else(missing)?);
        let absent = supervisor.stderr.take().ok_or_else(missing)?;
        // It lists its test processes once all of them exist.
        let mut first = String::new();
        processes.read_line(&mut first)?;
        Ok(Self {
            started,
            supervisor,
            processes,
            first,
            absent,
        })
    }

    /// Closes it, and reports its processes.
    pub fn close(mut self, reporter: &mut Reporter) -> io::Result<()> {
        drop(self.supervisor.stdin.take());
        let mut stdout = self.first.into_bytes();
        self.processes.read_to_end(&mut stdout)?;
        let mut stderr = Vec::new();
        self.absent.read_to_end(&mut stderr)?;
        let status = self.supervisor.wait()?;
        reporter.command(
            "testbed",
            &[TESTBED],
            self.started,
            Ok(Output {
                status,
                stdout,
                stderr,
            }),
        )
    }
}
