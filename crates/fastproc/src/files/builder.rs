//! The options of a collector of open files.

use std::{fmt, str::FromStr, time::Duration};

use super::{
    Files, Reader,
    error::Error,
    groups::Fields,
    object::{Bpf, allocated_files},
    procfs::Procfs,
    tables::{Names, Owned},
};
use crate::{
    base::{frozen, host::running_processes},
    source::bpf::SECTION,
};

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
    once: bool,
    section: Duration,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            fields: Fields::empty(),
            source: None,
            pids: None,
            orphans: false,
            once: false,
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

    /// Whether there is only one snapshot. Then `/proc` is read by default if that costs less than loading the program: where few
    /// files are open.
    pub fn once(mut self, once: bool) -> Self {
        self.once = once;
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
            None if self.pids.is_some() || frozen::folder().is_some() => procfs()?,
            None if self.once && is_procfs_cheaper() => procfs()?,
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

/// Descriptors that can be read from `/proc` in the CPU time that it takes to load the program and to walk once.
const CHEAPER: u32 = 800;
/// The same time as for a descriptor is needed for as many parts of a process.
const OF_PROCESS: u32 = 4;

/// Whether reading all files from `/proc` costs less than loading the program.
fn is_procfs_cheaper() -> bool {
    let processes = running_processes().unwrap_or(CHEAPER);
    let files = allocated_files().unwrap_or(CHEAPER);
    processes
        .saturating_mul(OF_PROCESS)
        .saturating_add(files)
        .lt(&CHEAPER)
}

#[doc(hidden)]
impl Builder {
    /// How long one run of the program may take; with zero, it pauses after every descriptor. For tests.
    pub fn section(mut self, section: Duration) -> Self {
        self.section = section;
        self
    }
}
