//! Writes the report to the second serial port.

use std::{
    fmt::Display,
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::process::ExitStatusExt as _,
    process::{Command, Output},
    time::Instant,
};

use fastproc_guest::{
    report::{Ended, Line},
    scenario::Scenario,
};
use rustix::termios::{self, OptionalActions};

/// On arm64 the console is a port of another kind, so this one is the first.
const PORT: &str = if cfg!(target_arch = "aarch64") {
    "/dev/ttyS0"
} else {
    "/dev/ttyS1"
};

/// The report, and the number of its checks so far.
pub struct Reporter {
    port: File,
    checks: usize,
    failed: usize,
}

impl Reporter {
    /// Opens the port and writes the first line.
    pub fn begin(scenario: Scenario) -> io::Result<Self> {
        let port = OpenOptions::new().read(true).write(true).open(PORT)?;
        // Raw: the terminal's line discipline would put a carriage return before every line's end.
        let mut mode = termios::tcgetattr(&port)?;
        mode.make_raw();
        termios::tcsetattr(&port, OptionalActions::Now, &mode)?;
        let mut reporter = Self {
            port,
            checks: 0,
            failed: 0,
        };
        let release = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        reporter.write(&Line::Begin {
            scenario: scenario.name().into(),
            release,
        })?;
        Ok(reporter)
    }

    /// Reports a fact without judging it.
    pub fn fact(&mut self, name: &str, value: impl Display) -> io::Result<()> {
        self.write(&Line::Fact {
            name: name.into(),
            value: value.to_string(),
        })
    }

    /// Runs a program to its end, and reports it.
    pub fn run(&mut self, name: &str, argv: &[&str]) -> io::Result<()> {
        let started = Instant::now();
        let output = Command::new(argv[0]).args(&argv[1..]).output();
        self.command(name, argv, started, output)
    }

    /// Reports a program that was run.
    pub fn command(
        &mut self,
        name: &str,
        argv: &[&str],
        started: Instant,
        output: io::Result<Output>,
    ) -> io::Result<()> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (ended, stdout, stderr) = match output {
            Ok(output) => {
                let signal = output.status.signal().unwrap_or_default();
                let ended = output
                    .status
                    .code()
                    .map_or(Ended::Signal(signal), Ended::Status);
                (ended, text(&output.stdout), text(&output.stderr))
            }
            Err(error) => (Ended::NotStarted, String::new(), error.to_string()),
        };
        self.write(&Line::Command {
            name: name.into(),
            argv: argv.iter().map(|&word| word.into()).collect(),
            ended,
            milliseconds: started.elapsed().as_millis() as u64,
            stdout,
            stderr,
        })
    }

    /// Reports a check.
    pub fn check(&mut self, name: &str, passed: bool, detail: impl Into<String>) -> io::Result<()> {
        self.checks += 1;
        self.failed += usize::from(!passed);
        self.write(&Line::Check {
            name: name.into(),
            passed,
            detail: detail.into(),
        })
    }

    /// Writes the closing line, and waits until it has left the port. Returns whether every check passed.
    pub fn end(mut self) -> io::Result<bool> {
        self.write(&Line::End {
            checks: self.checks,
            failed: self.failed,
        })?;
        termios::tcdrain(&self.port)?;
        Ok(self.failed == 0)
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.port.write_all(&text)
    }
}
