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

mod assemble;
mod calibrate;
mod collector;
pub mod counters;
pub mod cputime;
mod details;
mod difference;
mod error;
pub mod fields;
pub mod host;
mod name;
mod order;
mod process;
pub mod record;
mod snapshot;
pub mod source;
pub mod text;
mod time_namespace;

pub use calibrate::Calibration;
pub use collector::{Builder, Collector};
pub use details::{Cmdline, DetailError, Details};
pub use difference::{Baseline, Change, Gone};
pub use error::Error;
pub use fields::Fields;
pub use host::Host;
pub use name::Name;
pub use process::{NestedIds, Process};
pub use snapshot::{Snapshot, SnapshotStats};
pub use source::{SourceKind, Table};
