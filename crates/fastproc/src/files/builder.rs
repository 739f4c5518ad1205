//! The options of a collector of open files.

use std::{collections::HashSet, path::Path, time::Duration};

use super::{
    Bounds, Files, Reader,
    error::Error,
    gpu::Clients,
    groups::Fields,
    object::{Bpf, Options, allocated_files, in_tables},
    procfs::Procfs,
    served::Served,
    tables::{Names, Owned},
};
use crate::{
    base::{frozen, host::running_processes, source_kind::by_name},
    source::{
        bpf::SECTION,
        service::{socket_path, timeout},
    },
};

/// A source of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// The kernel's structures, by a BPF program (Linux 6.7).
    Bpf,
    /// A service ([`SourceKind::Service`](crate::SourceKind::Service)), which shows a user what it may see.
    Service,
    /// The files of `/proc`.
    Procfs,
}

impl Source {
    /// Its name, as in `bpf`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::Service => "service",
            Self::Procfs => "procfs",
        }
    }
}

by_name!(Source: Bpf, Service, Procfs; "bpf, service and procfs");

/// The options of a collector of open files.
#[derive(Clone, Debug)]
#[must_use]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Builder {
    fields: Fields,
    source: Option<Source>,
    pids: Option<Vec<u32>>,
    orphans: bool,
    hidden_sockets: bool,
    follows: bool,
    once: bool,
    section: Duration,
    room: Option<u32>,
    timeout: Option<Duration>,
    bounds: Bounds,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            fields: Fields::empty(),
            source: None,
            pids: None,
            orphans: false,
            hidden_sockets: false,
            follows: true,
            once: false,
            section: SECTION,
            room: None,
            timeout: timeout(),
            bounds: Bounds::default(),
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

    /// The only source to use. Default: `bpf` if it can be used, else a service if there is one, else `procfs`.
    pub fn source(mut self, source: Option<Source>) -> Self {
        self.source = source;
        self
    }

    /// The only processes to read, each once, from `/proc` by default.
    pub fn pids(mut self, pids: Option<Vec<u32>>) -> Self {
        self.pids = pids;
        if let Some(pids) = &mut self.pids {
            let mut known = HashSet::new();
            pids.retain(|&pid| known.insert(pid));
        }
        self
    }

    /// Whether to list sockets without a descriptor, too.
    pub fn orphans(mut self, orphans: bool) -> Self {
        self.orphans = orphans;
        self
    }

    /// Whether to list sockets of this network namespace whose processes are hidden, too: everybody may see those. They have no
    /// process in the snapshot.
    pub fn hidden_sockets(mut self, hidden: bool) -> Self {
        self.hidden_sockets = hidden;
        self
    }

    /// Whether there is only one snapshot. Then a service is asked first by default, and else `/proc` is read if that costs less than
    /// loading the program: where few files are open.
    pub fn once(mut self, once: bool) -> Self {
        self.once = once;
        self
    }

    /// Opens the source.
    ///
    /// # Errors
    /// The requested source cannot be used.
    pub fn open(self) -> Result<Files, Error> {
        self.open_at(socket_path().as_deref())
    }

    /// Opens the source, with a service at this socket, or without one.
    ///
    /// # Errors
    /// The requested source cannot be used.
    #[doc(hidden)]
    pub fn open_at(self, socket: Option<&Path>) -> Result<Files, Error> {
        let mut refusal = None;
        let by_bpf = || {
            let bpf = Bpf::open(Options {
                fields: self.fields,
                lists: self.orphans,
                section: self.section,
                room: self.room,
                bounds: self.bounds,
            })?;
            Ok(Reader::Bpf(Box::new(bpf)))
        };
        let served = |only| {
            Served::open(self.fields, socket.map(Path::to_owned), only, self.timeout)
                .map(|served| Reader::Service(Box::new(served)))
        };
        let procfs = || {
            let procfs = Procfs::open(self.fields)?;
            let procfs = if self.follows {
                procfs
            } else {
                procfs.follows_no_links()
            };
            Ok::<_, Error>(Reader::Procfs(Box::new(procfs)))
        };
        let reader = match self.source {
            Some(Source::Bpf) => by_bpf()?,
            Some(Source::Service) => served(true)?,
            Some(Source::Procfs) => procfs()?,
            None if self.pids.is_some() || frozen::folder().is_some() => procfs()?,
            None => {
                let first = self.once.then(|| served(false).ok()).flatten();
                match first {
                    Some(served) => served,
                    None if self.once && is_procfs_cheaper(self.fields) => procfs()?,
                    None => match by_bpf() {
                        Ok(reader) => reader,
                        Err(error) => {
                            refusal = Some(error);
                            served(false).or_else(|_| procfs())?
                        }
                    },
                }
            }
        };
        Ok(Files {
            fields: self.fields,
            has_orphans: self.orphans,
            has_hidden_sockets: self.hidden_sockets && self.pids.is_none(),
            pids: self.pids,
            refusal,
            reader,
            orphans: Owned::default(),
            names: Names::default(),
            gpus: Clients::default(),
        })
    }
}

/// Descriptors whose links and fdinfo `/proc` shows in the CPU time that it takes to load the program and to walk once.
const CHEAPER: u32 = 1_800;
/// Descriptors that can be counted in that time.
const CHEAPER_COUNTS: u32 = 2_800;
/// Descriptors, where the tables of sockets are read too.
const CHEAPER_SOCKETS: u32 = 1_000;
/// The same time as for a descriptor is needed for as many parts of a process.
const OF_PROCESS: u32 = 4;

/// Whether reading these fields of all files from `/proc` costs less than loading the program.
fn is_procfs_cheaper(fields: Fields) -> bool {
    let (most, listed) = if fields.contains(Fields::SOCKETS) {
        (CHEAPER_SOCKETS, in_tables())
    } else if fields.is_empty() {
        (CHEAPER_COUNTS, 0)
    } else {
        (CHEAPER, 0)
    };
    let processes = running_processes().unwrap_or(most);
    let files = allocated_files().unwrap_or(most);
    processes
        .saturating_mul(OF_PROCESS)
        .saturating_add(files)
        .saturating_add(listed)
        .lt(&most)
}

#[doc(hidden)]
impl Builder {
    /// Counts without asking any file system, which may hang: of `procfs`, what has a path counts as [`Kind::Other`](super::Kind).
    pub fn asks_no_file_system(mut self) -> Self {
        self.follows = false;
        self
    }

    /// How long one run of the program may take; with zero, it pauses after every descriptor. For tests.
    pub fn section(mut self, section: Duration) -> Self {
        self.section = section;
        self
    }

    /// For how many records there is room before each process only has its part of it. For tests.
    pub fn room(mut self, records: u32) -> Self {
        self.room = Some(records);
        self
    }

    /// How long to wait for an answer of a service. For tests.
    pub fn service_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets for how many files there is room at first.
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_named_twice_is_read_once() {
        let builder = Builder::new().pids(Some(vec![7, 3, 7, 7]));
        assert_eq!(builder.pids, Some(vec![7, 3]));
    }
}
