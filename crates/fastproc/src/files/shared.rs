//! What a service shares of a walk: with a user, what the kernel would show it.

use std::time::Duration;

use super::{
    Files, Reader,
    error::Error,
    object::layout::{self, HIDDEN, KINDS, Process, UNSURE},
    tables::{Owned, Tables},
};
use crate::{
    base::{
        host::Host,
        plain::{Plain, bytes_of},
        timing,
    },
    records::record::Users,
    rules::{
        access::{self, Viewer},
        rights::Rights,
    },
    snapshot::exit::Owner,
    source::service::wire::{Part, part},
};

/// How much a snapshot takes at most. Default: without bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Descriptors.
    pub files: u32,
    /// Bytes of their names.
    pub text_bytes: u32,
    /// The CPU time of the reading thread from which on nothing more is read. The snapshot fails then.
    pub until: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            files: u32::MAX,
            text_bytes: u32::MAX,
            until: Duration::MAX,
        }
    }
}

impl Bounds {
    /// Whether reading has taken as long as it may.
    pub(super) fn are_over(self) -> bool {
        self.until != Duration::MAX && timing::cpu() >= self.until
    }
}

/// A snapshot as the service sends it.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The bytes of all parts.
    pub words: Vec<u64>,
    /// Where each part is.
    pub parts: [Part; part::COUNT],
    /// When the walk began, in nanoseconds since boot.
    pub began_ns: u64,
}

impl Files {
    /// The id of the layout of records: the hash of the header.
    pub const LAYOUT: u64 = layout::LAYOUT;

    /// Walks for a viewer, and returns what it may see. A user is shown how many descriptors each process has, and the files of
    /// its own processes that the kernel would show it. What this process does not know of these is marked, and the user asks the
    /// kernel: also for names that the program could not read.
    ///
    /// # Errors
    /// There is more than the bounds allow, or the source is not `bpf`.
    pub fn share(&mut self, viewer: &Viewer, bounds: Bounds) -> Result<Shared, Error> {
        let Reader::Bpf(bpf) = &mut self.reader else {
            return Err(Error::NotPermitted);
        };
        let user = match viewer {
            Viewer::All => None,
            Viewer::Of(reader) => Some(reader.fsuid),
        };
        bpf.walk(user, bounds)?;
        let tables = bpf.tables();
        let mut shown = Owned::default();
        let host = Host::read()?;
        for (process, rights) in tables.processes.iter().zip(bpf.rights()) {
            let process = match viewer {
                Viewer::All => *process,
                Viewer::Of(reader) => as_shown(*process, &rights_of(rights), reader, &host),
            };
            shown.add(&process, tables);
        }
        let (words, parts) = lay_out(shown.tables());
        Ok(Shared {
            words,
            parts,
            began_ns: bpf.met().began_ns,
        })
    }
}

/// What a user may see of a process.
fn as_shown(process: Process, rights: &Rights, reader: &access::Reader, host: &Host) -> Process {
    // A time in /proc is in whole ticks, of the clock that readers see.
    let tick_ns = 1_000_000_000 / host.ticks_per_second.max(1);
    let start = process.start_ns.saturating_add_signed(host.boot_offset_ns);
    let mut shown = Process {
        start_ns: process.start_ns.saturating_sub(start % tick_ns),
        ..process
    };
    if process.state & HIDDEN != 0 || !rights.show_files_to(reader) {
        shown.state |= HIDDEN;
        if !reader.is_surely_denied(&rights.owner.users, rights.owner.user_ns) {
            shown.state |= UNSURE;
        }
        shown.records = 0;
        shown.kinds = [0; KINDS];
        shown.cgroup = 0;
    }
    shown
}

fn rights_of(of: &layout::Rights) -> Rights {
    Rights {
        owner: Owner {
            users: Users {
                uid: of.uid,
                euid: of.euid,
                suid: of.suid,
                gid: of.gid,
                egid: of.egid,
                sgid: of.sgid,
                ..Users::default()
            },
            user_ns: of.user_ns,
            cap_permitted: of.cap_permitted,
        },
        is_dumpable: of.dumpable == 1,
    }
}

fn lay_out(tables: Tables<'_>) -> (Vec<u64>, [Part; part::COUNT]) {
    let (mut words, mut parts) = (Vec::new(), [Part::default(); part::COUNT]);
    parts[part::PROCESSES] = add(&mut words, tables.processes);
    parts[part::FILES] = add(&mut words, tables.records);
    parts[part::SOCKETS] = add(&mut words, tables.sockets);
    parts[part::NAMES] = Part {
        offset: words.len() as u64 * 8,
        count: tables.texts.len() as u64,
        stride: 1,
    };
    words.extend(in_words(tables.texts));
    (words, parts)
}

fn add<T: Plain>(words: &mut Vec<u64>, elements: &[T]) -> Part {
    const { assert!(size_of::<T>().is_multiple_of(8)) };
    let offset = words.len() as u64 * 8;
    words.extend(
        elements
            .iter()
            .flat_map(|element| in_words(bytes_of(element))),
    );
    Part {
        offset,
        count: elements.len() as u64,
        stride: size_of::<T>() as u64,
    }
}

/// Bytes as words, with zeros at the end.
fn in_words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    })
}
