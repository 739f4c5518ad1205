//! The odd processes that everything is proven on.

use std::{
    io::{self, BufRead as _, BufReader, Read as _},
    process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio},
    time::Instant,
};

use crate::reporter::Reporter;

/// Its keeper.
pub const ZOO: &str = "/fastproc-zoo";

/// A zoo that is open.
pub struct Zoo {
    started: Instant,
    keeper: Child,
    animals: BufReader<ChildStdout>,
    first: String,
    absent: ChildStderr,
}

impl Zoo {
    /// Opens it, and waits until every animal is in its place.
    pub fn open() -> io::Result<Self> {
        let mut keeper = Command::new(ZOO)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let started = Instant::now();
        let missing = || io::Error::other("a pipe to the zoo is missing");
        let mut animals = BufReader::new(keeper.stdout.take().ok_or_else(missing)?);
        let absent = keeper.stderr.take().ok_or_else(missing)?;
        // It lists its animals once all of them are there.
        let mut first = String::new();
        animals.read_line(&mut first)?;
        Ok(Self {
            started,
            keeper,
            animals,
            first,
            absent,
        })
    }

    /// Closes it, and reports who was there.
    pub fn close(mut self, reporter: &mut Reporter) -> io::Result<()> {
        drop(self.keeper.stdin.take());
        let mut stdout = self.first.into_bytes();
        self.animals.read_to_end(&mut stdout)?;
        let mut stderr = Vec::new();
        self.absent.read_to_end(&mut stderr)?;
        let status = self.keeper.wait()?;
        reporter.command(
            "zoo",
            &[ZOO],
            self.started,
            Ok(Output {
                status,
                stdout,
                stderr,
            }),
        )
    }
}
