//! What a Linux machine says about itself, from the kernel's own structures.
//!
//! `/proc` is text: the kernel looks up a path, gathers numbers, prints them, and the reader parses them back. This
//! library has a BPF program write plain records of every process into memory that it shares with the kernel, and
//! hands out borrowed views of them. Where BPF cannot be used it reads `/proc`, into the same records.
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
//! 1. A [`Collector`] is opened once, for the groups of [`Fields`] that a program needs: it pays for those, and no others.
//!    It takes the best [source](SourceKind) that works, and says why it refused the others.
//! 2. A [`Snapshot`] is every process at about one time, borrowed where the kernel wrote it: nothing is copied or allocated
//!    for a process. Each [`Process`] is a view with one accessor a group, `None` where that was not asked for or is
//!    hidden; what the groups hold is documented in [`record`], with units and the kernel's names. [`schema`] has the same
//!    as data.
//! 3. A [`Baseline`] keeps what it takes of one snapshot to tell what every process or thread did until the next: shares of
//!    CPU time, faults and I/O a second, who was born and who is gone. The rules are in [`difference`], and the parts of it
//!    for who sums up by group.
//!    With [`Builder::exits`] a snapshot also has every process that ended since the last one, and [`Baseline::ended`] what it
//!    did in between, however short it lived. [`exits`] hands over each as it happens.
//! 4. What no record holds is read from `/proc` on demand, by [`Details`]: the command line, the program, the cgroup's path.
//! 5. [`counters`] are those of the machine: `/proc/stat`, `/proc/vmstat`, interrupts.
//! 6. [`text`] renders the kernel's own files from records, byte for byte, and parses them.
//! 7. BPF asks nobody for permission. Who shows records to others asks [`access`] what those may see.
//!
//! Times are in nanoseconds, sizes in bytes. A value that is not known is `None`, never zero. Errors say what was tried, why
//! it failed, and what to do.
//!
//! The folder `examples/` has a short program for each: `process_table`, `watch_cpu`, `counters`, `texts`, `groups` (differences
//! summed up by user) and `threads` (with details).
//!
//! # Privileges
//!
//! BPF takes `CAP_BPF` and `CAP_PERFMON` while a collector is opened and while it is used. Without, and in a pid or user
//! namespace of its own, `/proc` is read, which shows what the kernel lets this process see.

pub mod access;
mod assemble;
mod bpf;
mod calibrate;
mod collector;
pub mod counters;
pub mod cputime;
mod details;
pub mod difference;
mod error;
pub mod exits;
pub mod fields;
pub mod host;
mod name;
mod one_shot;
mod order;
mod process;
pub mod record;
pub mod schema;
mod snapshot;
pub mod source;
pub mod text;
mod texts;
mod time_namespace;
mod timing;

pub use calibrate::Calibration;
pub use collector::{Arrays, Builder, Collector, Refusal};
#[doc(hidden)] // For the service of this workspace.
pub use details::parse_rights;
pub use details::{Cmdline, DetailError, Details, Directories, Directory, Rights};
pub use difference::{Baseline, Change, Gone};
pub use error::Error;
pub use fields::Fields;
pub use host::Host;
pub use name::Name;
pub use one_shot::OneShot;
pub use process::{NestedIds, Process};
pub use snapshot::{Pools, Snapshot, SnapshotStats};
pub use source::{SourceKind, Table};
pub use texts::{TextEntry, TextPlace, Texts};
pub use timing::Part;

/// What the two READMEs show is compiled, as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
struct Readme;
