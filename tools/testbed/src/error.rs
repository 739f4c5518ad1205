//! What a testbed cannot provide, and why.

use std::{fmt, io};

/// Why a test process is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It needs root, or the machine refuses it even to root.
    Privilege,
    /// The kernel or the hardware does not support it.
    Unsupported,
    /// The testbed has a defect.
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

/// A test process that cannot be provided here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    /// The label that it would have had.
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
            Why::Broken => "a defect of the testbed",
        };
        write!(f, "{}: {why}: {}", self.label, self.reason)
    }
}

/// Why there is no testbed, or no storm.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestbedError {
    /// A label that is not in the [`catalogue`](crate::catalogue).
    #[error("there is no process \"{0}\": ask `fastproc-testbed --list`")]
    UnknownLabel(String),
    /// This program could not be executed again.
    #[error(
        "cannot start the supervisor, which is /proc/self/exe executed again; is /proc mounted? {0}"
    )]
    Supervisor(#[source] io::Error),
    /// The supervisor sent an unexpected report, or died.
    #[error("the supervisor failed: {0}. Its own words are on standard error")]
    Report(String),
}
