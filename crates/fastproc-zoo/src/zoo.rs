//! What the opener sees: the animals that are there and those that are not.

use std::{
    fmt,
    io::{self, BufRead, BufReader},
    time::Duration,
};

use crate::{
    expect::{Expect, Mismatch},
    role::{Role, Servant, ready},
    species,
};

/// Which animals to have.
#[derive(Clone, Debug, Default)]
pub struct Options {
    only: Vec<String>,
}

impl Options {
    /// These alone, and the ones that come with them: the tracer with the traced, the outer namespaces with the inner.
    pub fn only<L: Into<String>>(labels: impl IntoIterator<Item = L>) -> Self {
        Self {
            only: labels.into_iter().map(Into::into).collect(),
        }
    }
}

/// Every animal that this crate knows, its label and what `/proc` says of it, in the order in which they are started.
pub fn catalogue() -> impl Iterator<Item = (&'static str, &'static [Expect])> {
    species::animals()
}

/// One odd process, alive (or dead, where that is what is odd) as long as its zoo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Animal {
    /// What it is.
    pub label: &'static str,
    /// Its pid, in the opener's pid namespace.
    pub pid: u32,
    /// Field 22 of its stat: start time after boot, in clock ticks.
    pub starttime: u64,
    /// What `/proc` says of it.
    pub expect: &'static [Expect],
}

impl Animal {
    /// Compares it with what `/proc` says now.
    pub fn check(&self) -> Result<(), Mismatch> {
        self.expect
            .iter()
            .try_for_each(|expect| expect.check(self.pid))
    }
}

/// Why an animal is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It needs root, or the machine forbids it even so.
    Privilege,
    /// The kernel or the hardware does not have it.
    Unsupported,
    /// The zoo failed: a defect here.
    Broken,
}

const LETTERS: [(Why, char); 3] = [
    (Why::Privilege, 'p'),
    (Why::Unsupported, 'u'),
    (Why::Broken, 'b'),
];

impl Why {
    pub(crate) fn letter(self) -> char {
        LETTERS
            .iter()
            .find(|entry| entry.0 == self)
            .map_or('b', |entry| entry.1)
    }

    pub(crate) fn from_letter(letter: char) -> Option<Self> {
        LETTERS
            .iter()
            .find(|entry| entry.1 == letter)
            .map(|entry| entry.0)
    }
}

/// An animal that cannot be had here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// What it would have been.
    pub label: &'static str,
    /// The kind of reason.
    pub why: Why,
    /// The reason.
    pub reason: String,
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.why {
            Why::Privilege => "not permitted",
            Why::Unsupported => "not supported",
            Why::Broken => "a defect of the zoo",
        };
        write!(f, "{}: {why}: {}", self.label, self.reason)
    }
}

/// Why there is no zoo, or no storm.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZooError {
    /// A label that is not in the [`catalogue`].
    #[error("there is no animal \"{0}\": ask `fastproc-zoo --list`")]
    UnknownLabel(String),
    /// This program could not be executed again.
    #[error(
        "cannot start the keeper, which is /proc/self/exe executed again; is /proc mounted? {0}"
    )]
    Keeper(#[source] io::Error),
    /// The keeper said something else than it should, or died.
    #[error("the keeper failed: {0}. Its own words are on standard error")]
    Report(String),
}

/// Odd processes, kept until this is dropped.
pub struct Zoo {
    animals: Vec<Animal>,
    absent: Vec<Absent>,
    keeper: Servant,
}

impl Zoo {
    /// Starts the animals and waits until each of them is what it should be.
    ///
    /// What cannot be had on this machine is in [`Zoo::absent`], with the reason.
    pub fn open(options: &Options) -> Result<Self, ZooError> {
        if let Some(unknown) = options
            .only
            .iter()
            .find(|wanted| !catalogue().any(|animal| animal.0 == wanted.as_str()))
        {
            return Err(ZooError::UnknownLabel(unknown.clone()));
        }
        let keeper =
            Servant::call(Role::Keeper, &options.only.join(",")).map_err(ZooError::Keeper)?;
        let mut zoo = Self {
            animals: Vec::new(),
            absent: Vec::new(),
            keeper,
        };
        let report = zoo.keeper.report.try_clone().map_err(ZooError::Keeper)?;
        let mut lines = BufReader::new(report);
        loop {
            let mut line = String::new();
            // Every animal has its own time limit, so this one is for a keeper that is stuck.
            if lines.buffer().is_empty() && !ready(lines.get_ref(), Duration::from_secs(60)) {
                return Err(ZooError::Report("it says nothing".into()));
            }
            let read = lines
                .read_line(&mut line)
                .map_err(|error| ZooError::Report(error.to_string()))?;
            if read == 0 {
                return Err(ZooError::Report("it died".into()));
            }
            let line = line.trim_end();
            if line == "." {
                return Ok(zoo);
            }
            zoo.note(line)
                .ok_or_else(|| ZooError::Report(format!("it said {line:?}")))?;
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
                self.animals.push(Animal {
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
    pub fn animals(&self) -> &[Animal] {
        &self.animals
    }

    /// What cannot be had here. Say it loudly: a test that passes without them has not tested them.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// The animal of this label, if it is there.
    pub fn animal(&self, label: &str) -> Option<&Animal> {
        self.animals.iter().find(|animal| animal.label == label)
    }

    /// The process that is the parent of all.
    pub fn keeper_pid(&self) -> u32 {
        self.keeper.pid()
    }
}

impl fmt::Debug for Zoo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zoo")
            .field("animals", &self.animals)
            .field("absent", &self.absent)
            .finish_non_exhaustive()
    }
}
