//! The options of a collector of open files.

use std::{fmt, str::FromStr, time::Duration};

use super::{
    Files, Reader,
    error::Error,
    groups::Fields,
    object::Bpf,
    procfs::Procfs,
    tables::{Names, Owned},
};
use crate::source::bpf::SECTION;

/// A source of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The kernel's structures, by a BPF program (Linux 6.7).
    Bpf,
    /// The files of `/proc`.
    Procfs,
}

impl Source {
    /// Its name, as in `bpf`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::Procfs => "procfs",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut known = [Self::Bpf, Self::Procfs].into_iter();
        known
            .find(|source| source.name() == name)
            .ok_or_else(|| format!("there is no source {name:?}; there are bpf and procfs"))
    }
}

/// The options of a collector of open files.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    fields: Fields,
    source: Option<Source>,
    pids: Option<Vec<u32>>,
    orphans: bool,
    section: Duration,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            fields: Fields::empty(),
            source: None,
            pids: None,
            orphans: false,
            section: SECTION,
        }
    }

    /// The groups of fields to read. Default: only the numbers of descriptors.
    pub fn fields(mut self, fields: Fields) -> Self {
        self.fields = fields;
        if fields.contains(Fields::STAT) {
            // The name shows whether it is still the same file when stat(2) is asked.
            self.fields |= Fields::FILES | Fields::PATHS;
        }
        self
    }

    /// The only source to use. Default: `bpf` if it can be used, else `procfs`.
    pub fn source(mut self, source: Option<Source>) -> Self {
        self.source = source;
        self
    }

    /// The only processes to read, from `/proc` by default.
    pub fn pids(mut self, pids: Option<Vec<u32>>) -> Self {
        self.pids = pids;
        self
    }

    /// Whether to list sockets without a descriptor, too.
    pub fn orphans(mut self, orphans: bool) -> Self {
        self.orphans = orphans;
        self
    }

    /// Opens the source.
    ///
    /// # Errors
    /// The requested source cannot be used.
    pub fn open(self) -> Result<Files, Error> {
        let mut refusal = None;
        let by_bpf = || Bpf::open(self.fields, self.section).map(|bpf| Reader::Bpf(Box::new(bpf)));
        let procfs = || Procfs::open(self.fields).map(|procfs| Reader::Procfs(Box::new(procfs)));
        let reader = match self.source {
            Some(Source::Bpf) => by_bpf()?,
            Some(Source::Procfs) => procfs()?,
            None if self.pids.is_some() => procfs()?,
            None => match by_bpf() {
                Ok(reader) => reader,
                Err(error) => {
                    refusal = Some(error);
                    procfs()?
                }
            },
        };
        Ok(Files {
            fields: self.fields,
            pids: self.pids,
            has_orphans: self.orphans,
            refusal,
            reader,
            orphans: Owned::default(),
            names: Names::default(),
        })
    }
}

#[doc(hidden)]
impl Builder {
    /// How long one run of the program may take; with zero, it pauses after every descriptor. For tests.
    pub fn section(mut self, section: Duration) -> Self {
        self.section = section;
        self
    }
}
