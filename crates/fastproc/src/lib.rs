//! Reads processes, exits and counters of a Linux machine by BPF, without parsing text.
//!
//! `/proc` is text: the kernel looks up a path, gathers numbers and prints them, and the reader parses them back.
//! This library loads a BPF program that writes a plain record of every process into memory that the kernel
//! shares with it, and returns borrowed views of these records. If BPF cannot be used, it reads `/proc` into the
//! same records.
//!
//! ```no_run
//! use fastproc::{Collector, Fields};
//!
//! # fn main() -> Result<(), fastproc::Error> {
//! let mut collector = Collector::builder().fields(Fields::TOP).open()?;
//! for process in collector.snapshot()?.iter() {
//!     let rss = process.memory().map_or(0, |memory| memory.rss());
//!     println!("{:>8} {:>12} {}", process.pid(), rss, process.name().escape_ascii());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # A tour
//!
//! 1. Open a [`Collector`] for the groups of [`Fields`] that the program needs. Other groups cost nothing. It
//!    uses the best [source](SourceKind) that works, and says why it refused the others.
//! 2. A [`Snapshot`] has every process at about one time, borrowed where the kernel wrote it: nothing is copied
//!    or allocated for a process. Each [`Process`] is a view with one accessor for each group, which returns `None`
//!    if the group was not requested or is hidden. [`record`] documents the groups, with units and the kernel's
//!    names.
//! 3. A [`Baseline`] keeps what it needs of a snapshot, and compares the next one with it: shares of CPU time,
//!    faults and I/O per second, started and exited processes. [`difference`] has the rules, and the parts of it for
//!    sums by group. With [`Builder::exits`] a snapshot also has every process that ended since the last one, and
//!    [`Baseline::ended`] says what these did in between, however short they lived. [`exits`] reports each exit as
//!    it happens.
//! 4. [`Details`] reads what no record holds from `/proc` on demand: the command line, the program, the path of
//!    the cgroup.
//!    [`container`] says which container and pod that path is of.
//! 5. [`counters`] reads those of the machine: `/proc/stat`, `/proc/vmstat`, interrupts.
//! 6. [`cgroups`] reads the cgroups of version 2: CPU time, memory, I/O and pressure of each.
//! 7. [`files`] reads the open files and sockets of every process.
//! 8. [`text`] renders the kernel's own files from records, byte for byte, and parses them.
//! 9. BPF programs read without access checks. If you show records to other users, ask [`access`] what those may
//!    see.
//!
//! Times are in nanoseconds, sizes in bytes. A value that is not known is `None`, never zero. An error says what
//! was tried, why it failed, and what to do.
//!
//! The folder `examples/` has a short program for each: `process_table`, `watch_cpu`, `counters`, `texts`,
//! `groups` (differences by user), `threads` (with details) and `open_files`.
//!
//! # Privileges
//!
//! BPF needs `CAP_BPF` and `CAP_PERFMON` while a collector is opened and while it is used. Without them, and in a
//! user namespace other than the initial one, the collector reads `/proc`, which shows what the kernel lets this
//! process see. In a pid namespace of its own, [`SourceKind::BpfIter`] reads the processes of that namespace, with
//! the ids that they have there.

// scripts/lint-rooms says in which order data passes through these, and that none imports from a later one.
mod base;
pub mod cgroups;
mod collect;
pub mod container;
pub mod counters;
mod details;
pub mod difference;
pub mod exits;
pub mod files;
mod kernel;
mod records;
mod rules;
mod snapshot;
pub mod source;
pub mod text;

pub use base::slice::give_way;
pub use base::{
    cgroup_root,
    error::Error,
    host::Host,
    proc_root,
    source_kind::{SourceKind, UnknownSource},
    terminals::Terminals,
    timing::Part,
};
pub use collect::{Builder, Collector, Refusal};
pub use details::{DetailError, Details};
pub use difference::Baseline;
pub use records::{fields::Fields, name::Name, record};
pub use rules::access;
pub use snapshot::{
    Snapshot, SnapshotStats,
    calibration::Calibration,
    cmdline::Cmdline,
    process::{NestedIds, Process},
    texts::Texts,
};
// What is hidden, here and elsewhere, is for the other crates of this project. It may change in any version.
#[doc(hidden)]
pub use {
    base::{
        error::{error_chain, log_line},
        frozen, host, kept, mapping, message, mounts,
        plain::{Plain, words, words_mut},
        regular_file,
        whole_file::read_whole,
    },
    collect::{Arrays, Keeping, one_shot::OneShot},
    container::runtime_roots::set_roots,
    details::{Directories, Directory, cgroup_path_in, held_up, owner},
    records::{layout, schema},
    rules::{access::mask::Mask, cputime, rights::Rights},
    snapshot::{
        Pools,
        table::Table,
        texts::{TextEntry, TextPlace},
    },
    text::status::parse_rights,
};

/// What the two READMEs show is compiled, as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
struct Readme;
