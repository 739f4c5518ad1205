//! Reads the open files of every process: descriptors, sockets with their addresses, and what holds them.
//!
//! `/proc/PID/fd` costs a system call for each descriptor, and three if flags and position are wanted. A [`Files`] walks all
//! tables by BPF, and returns borrowed views of records; if BPF cannot be used, it reads `/proc` into the same records.
//!
//! ```no_run
//! use fastproc::files::{Fields, Files};
//!
//! # fn main() -> Result<(), fastproc::files::Error> {
//! let mut files = Files::builder().fields(Fields::FILES | Fields::PATHS).open()?;
//! for (holder, file) in files.snapshot()?.files() {
//!     let mut name = Vec::new();
//!     if file.is_deleted() == Some(true) && file.write_name(&mut name) {
//!         println!("{:>8} {:>12?} {}", holder.pid(), file.size(), name.escape_ascii());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is in a snapshot
//!
//! The descriptors of a process are those of its leader's table, as in `/proc/PID/fd`; if the leader has ended, those of another
//! thread, which `/proc/PID/fd` does not show ([`Holder::is_of_thread`]). Each record is from one moment, but not all
//! records from the same one. Position, size, and the state and queues of a socket are those of their own moment. With
//! [`Fields::FILES`] the current directory, the root directory and the program of a process are files, too. Files that are only mapped into
//! memory are missing.
//!
//! # Visibility
//!
//! The source `bpf` is used only by who may trace every process and read its files, so that it shows nobody more than `/proc` does.
//! Others may ask a service, which shows each user what the kernel would.
//! The source `procfs` shows what the kernel lets this process see, and the number of descriptors of other users' processes from
//! Linux 6.2 on.

mod builder;
mod complete;
mod descriptor;
mod error;
mod gpu;
mod groups;
mod name;
mod net;
mod object;
mod procfs;
mod served;
mod shared;
mod snapshot;
mod socket;
mod tables;
mod trusted;

use std::{collections::HashSet, time::Duration};

use gpu::Clients;
use net::Net;
use object::Bpf;
use procfs::{Procfs, own_network_namespace};
use served::Served;
use tables::{Names, Owned, Tables};

pub use self::{
    builder::{Builder, Source},
    error::Error,
    gpu::{GpuClient, GpuEngine, GpuRegion, has_gpu},
    groups::{Fields, Kind},
    snapshot::{Device, File, Holder, Mode, Slot, Snapshot},
    socket::{Address, Socket},
};
#[cfg(test)]
pub(crate) use object::OBJECT;
pub(crate) use object::layout;
#[doc(hidden)]
pub use shared::{Bounds, Shared};

/// A collector of open files.
#[derive(Debug)]
pub struct Files {
    fields: Fields,
    pids: Option<Vec<u32>>,
    has_orphans: bool,
    has_hidden_sockets: bool,
    refusal: Option<Error>,
    reader: Reader,
    orphans: Owned,
    names: Names,
    gpus: Clients,
}

#[derive(Debug)]
enum Reader {
    Bpf(Box<Bpf>),
    Service(Box<Served>),
    Procfs(Box<Procfs>),
}

impl Reader {
    fn tables(&self) -> Tables<'_> {
        match self {
            Self::Bpf(bpf) => bpf.tables(),
            Self::Service(served) => served.tables(),
            Self::Procfs(procfs) => procfs.tables(),
        }
    }
}

impl Files {
    /// Returns a builder, which sets what to read.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The source in use: while a service does not answer, this is `procfs`.
    pub fn source(&self) -> Source {
        match &self.reader {
            Reader::Bpf(_) => Source::Bpf,
            Reader::Service(served) if served.is_used() => Source::Service,
            Reader::Service(_) | Reader::Procfs(_) => Source::Procfs,
        }
    }

    /// Why the source `bpf` is not used, if it was tried.
    pub fn refusal(&self) -> Option<&Error> {
        self.refusal.as_ref()
    }

    /// The longest run of the program during the last snapshot; zero with another source than `bpf`.
    pub fn longest_section(&self) -> Duration {
        match &self.reader {
            Reader::Bpf(bpf) => bpf.met().longest_section,
            Reader::Service(_) | Reader::Procfs(_) => Duration::ZERO,
        }
    }

    /// How many records of the last snapshot were read again, because the descriptor changed meanwhile. For tests.
    #[doc(hidden)]
    pub fn retried(&self) -> u32 {
        match &self.reader {
            Reader::Bpf(bpf) => bpf.met().retried,
            Reader::Service(_) | Reader::Procfs(_) => 0,
        }
    }

    /// Whether sockets without a descriptor come from programs, and not from the text. For tests.
    #[doc(hidden)]
    pub fn lists_by_bpf(&self) -> bool {
        matches!(&self.reader, Reader::Bpf(bpf) if bpf.listed().is_some())
    }

    /// Reads the open files of all processes, or of those that were asked for.
    ///
    /// # Errors
    /// The program could not be run, or the files did not fit into memory.
    pub fn snapshot(&mut self) -> Result<Snapshot<'_>, Error> {
        self.names.clear();
        self.orphans.clear();
        self.gpus.clear();
        match &mut self.reader {
            Reader::Bpf(bpf) => {
                bpf.walk(None, Bounds::default())?;
                let found = complete::complete(bpf.tables(), self.fields, &mut self.names);
                for (at, record) in found {
                    bpf.records_mut()[at] = record;
                }
            }
            Reader::Service(served) => {
                served.read(self.fields, self.pids.as_deref(), &mut self.names)?;
            }
            Reader::Procfs(procfs) => procfs.read(self.pids.as_deref())?,
        }
        if self.fields.contains(Fields::GPUS) && has_gpu() {
            self.gpus.read(self.reader.tables());
        }
        if self.has_orphans || self.has_hidden_sockets && self.last().has_hidden() {
            self.find_orphans();
        }
        Ok(self.last())
    }

    /// Returns the last snapshot again. It is empty if there was none.
    pub fn last(&self) -> Snapshot<'_> {
        let began_ns = match &self.reader {
            Reader::Bpf(bpf) => bpf.met().began_ns,
            Reader::Service(served) => served.began_ns(),
            Reader::Procfs(procfs) => procfs.began_ns(),
        };
        Snapshot {
            tables: self.reader.tables(),
            names: &self.names,
            gpus: &self.gpus,
            orphans: self.orphans.tables(),
            pids: self.pids.as_deref(),
            source: self.source(),
            began_ns,
        }
    }

    /// Lists what the tables of this network namespace have, and no descriptor leads to.
    fn find_orphans(&mut self) {
        let tables = self.reader.tables();
        let listed = match &self.reader {
            Reader::Bpf(bpf) => bpf.listed(),
            _ => None,
        };
        let mut net = Net::default();
        let known: &[&str] = if listed.is_some() { &net::LISTED } else { &[] };
        net.read("/proc/net", own_network_namespace(), known);
        let held = tables.records.iter().filter(|record| record.socket != 0);
        let held: HashSet<u64> = held.map(|record| record.ino).collect();
        let listed = listed.unwrap_or_default().iter().filter_map(|record| {
            let socket = tables.sockets.get(record.socket.checked_sub(1)? as usize)?;
            let start = socket.text as usize;
            let name = tables.texts.get(start..start + socket.text_len as usize);
            Some((record.ino, *socket, name.unwrap_or_default()))
        });
        for (inode, mut socket, name) in net.sockets().chain(listed) {
            if inode == 0 && self.has_orphans || inode != 0 && !held.contains(&inode) {
                (socket.text, socket.text_len) = self.orphans.add_text(name);
                self.orphans.sockets.push(socket);
                self.orphans.records.push(layout::Record {
                    ino: inode,
                    ..Default::default()
                });
            }
        }
    }
}
