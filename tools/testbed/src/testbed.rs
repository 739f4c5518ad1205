//! The opener's view: the test processes that exist and those that do not.

use std::{
    fmt,
    io::{BufRead, BufReader},
};

use crate::{
    error::{Absent, TestbedError, Why},
    expect::{Expect, Mismatch},
    fixtures,
    role::{Role, Servant, ready},
    wait::GUARD,
};

/// Which test processes to start.
#[derive(Clone, Debug, Default)]
pub struct Options {
    only: Vec<String>,
}

impl Options {
    /// Only these, and those that belong to them: the tracer with the traced, the outer namespaces with the inner.
    pub fn only<L: Into<String>>(labels: impl IntoIterator<Item = L>) -> Self {
        Self {
            only: labels.into_iter().map(Into::into).collect(),
        }
    }
}

/// Every test process of this crate: its label and its promises, in the order in which they are started.
pub fn catalogue() -> impl Iterator<Item = (&'static str, &'static [Expect])> {
    fixtures::processes()
}

/// One odd process, alive (or dead, if that is its property) as long as its testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestProcess {
    /// Its label.
    pub label: &'static str,
    /// Its pid, in the opener's pid namespace.
    pub pid: u32,
    /// Field 22 of its stat: start time after boot, in clock ticks.
    pub starttime: u64,
    /// What `/proc` shows about it.
    pub expect: &'static [Expect],
}

impl TestProcess {
    /// Compares it with what `/proc` shows now.
    pub fn check(&self) -> Result<(), Mismatch> {
        self.expect
            .iter()
            .try_for_each(|expect| expect.check(self.pid))
    }
}

/// Odd processes, kept until this is dropped.
pub struct Testbed {
    processes: Vec<TestProcess>,
    absent: Vec<Absent>,
    supervisor: Servant,
}

impl Testbed {
    /// Starts the test processes and waits until each of them is as promised.
    ///
    /// Processes that this machine cannot provide are in [`Testbed::absent`], with the reason.
    pub fn open(options: &Options) -> Result<Self, TestbedError> {
        if let Some(unknown) = options
            .only
            .iter()
            .find(|wanted| !catalogue().any(|process| process.0 == wanted.as_str()))
        {
            return Err(TestbedError::UnknownLabel(unknown.clone()));
        }
        let supervisor = Servant::call(Role::Supervisor, &options.only.join(","))
            .map_err(TestbedError::Supervisor)?;
        let mut testbed = Self {
            processes: Vec::new(),
            absent: Vec::new(),
            supervisor,
        };
        let report = testbed
            .supervisor
            .report
            .try_clone()
            .map_err(TestbedError::Supervisor)?;
        let mut lines = BufReader::new(report);
        loop {
            let mut line = String::new();
            // Every test process has its own time limit, so this one is for a supervisor that hangs.
            if lines.buffer().is_empty() && !ready(lines.get_ref(), GUARD) {
                return Err(TestbedError::Report("it says nothing".into()));
            }
            let read = lines
                .read_line(&mut line)
                .map_err(|error| TestbedError::Report(error.to_string()))?;
            if read == 0 {
                return Err(TestbedError::Report("it died".into()));
            }
            let line = line.trim_end();
            if line == "." {
                return Ok(testbed);
            }
            testbed
                .note(line)
                .ok_or_else(|| TestbedError::Report(format!("it printed {line:?}")))?;
        }
    }

    fn note(&mut self, line: &str) -> Option<()> {
        let (sign, rest) = line.split_once(' ')?;
        let (index, rest) = rest.split_once(' ')?;
        let (label, expect) = catalogue().nth(index.parse().ok()?)?;
        let (word, rest) = rest.split_once(' ')?;
        match sign {
            "+" => {
                let (pid, starttime) = (word.parse().ok()?, rest.parse().ok()?);
                self.processes.push(TestProcess {
                    label,
                    pid,
                    starttime,
                    expect,
                });
            }
            "-" => {
                let why = Why::from_letter(word.chars().next()?)?;
                self.absent.push(Absent {
                    label,
                    why,
                    reason: rest.to_owned(),
                });
            }
            _ => return None,
        }
        Some(())
    }

    /// The processes.
    pub fn processes(&self) -> &[TestProcess] {
        &self.processes
    }

    /// The processes that cannot be provided here. Report them clearly: a test that passes without them has not tested
    /// them.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// The test process of this label, if it exists.
    pub fn process(&self, label: &str) -> Option<&TestProcess> {
        self.processes.iter().find(|process| process.label == label)
    }

    /// The pid of the process that is the ancestor of all others.
    pub fn supervisor_pid(&self) -> u32 {
        self.supervisor.pid()
    }
}

impl fmt::Debug for Testbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Testbed")
            .field("processes", &self.processes)
            .field("absent", &self.absent)
            .finish_non_exhaustive()
    }
}
