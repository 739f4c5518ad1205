//! The columns of tables of processes, cgroups and open files: fields by name, their values, filters and order.
//!
//! All programs that show processes (`fastproc ps`, a screen, another language) use the same names:
//! - [`FIELDS`] has every [`Field`]: its name and aliases as in proc(5) and ps(1), the groups of
//!   [`Fields`](fastproc::Fields) that it needs, its [`Unit`], and its [`Value`] for a [`Row`].
//! - A [`Row`] is a process or a thread of a snapshot, with its changes since the previous one. [`Lookup`] has values
//!   that are not in the record: names of users, command lines, the clock.
//! - A [`Filter`] says which rows to show, a [`Sort`] in which order.
//!
//! ```no_run
//! use fastproc::Collector;
//! use fastproc_columns::{Filter, Lookup, Row, field};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let filter: Filter = "rss > 100M && user != root".parse()?;
//! let rss = field::find("rss")?;
//! let mut collector = Collector::builder().fields(rss.needs | filter.needs()).open()?;
//! let mut lookup = Lookup::new(collector.host(), true)?;
//! let snapshot = collector.snapshot()?;
//! lookup.set_clock(&snapshot);
//! for row in snapshot.iter().map(Row::new) {
//!     if filter.admits(&row, &mut lookup) {
//!         println!("{} {:?}", row.process.pid(), rss.value(&row, &mut lookup));
//!     }
//! }
//! # Ok(())
//! # }
//! ```

pub mod by_name;
mod cells;
pub mod cgroups;
mod duration;
pub mod escape;
pub mod field;
pub mod files;
mod filter;
mod instant;
mod limits;
mod names;
pub mod number;
mod open_files;
mod row;
mod search;
mod sort;
mod tree;
mod value;

pub use cells::Cells;
pub use duration::{DurationError, is_interval, parse_duration, parse_interval};
pub use field::{FIELDS, Field, Processes, Subject, UnknownField, short_container_id};
pub use filter::{Filter, FilterError, equal_to, parse_date};
pub use instant::{InstantError, parse_instant};
pub use names::Names;
pub use open_files::OpenFiles;
pub use row::{Event, Lookup, Row};
pub use sort::{RowList, Sort, Sorter};
pub use tree::{Branch, Forest, forest, with_ancestors};
pub use value::{Kind, Unit, Value, arguments};
#[doc(hidden)]
pub use {
    search::{Needle, NeedleError},
    sort::Ranked,
};
