//! Records what runs, second by second.
//!
//! What a reader may rely on:
//! - Walks begin at multiples of the interval in UTC, and `time` is that multiple; that of the last one of a run is
//!   its second. `machine` has a row for each walk: a
//!   time without one was not recorded, and `events` says why.
//! - A row group covers at most a quarter of an hour and ends at :00, :15, :30 or :45, or earlier: when the recorder
//!   ends, when a clock is set, or when it takes too much memory. Its first walk (`whole` in `machine`) has a row for every
//!   process in `processes` and `identities`. So one row group of each table tells what was there at any of its times.
//! - If the part that begins the present row group has to make room, its other parts go too, except for events, and the next
//!   walk begins another row group.
//! - A process has a row in `processes` at each walk that finds another value in one of its columns than the walk before.
//!   At the first walk without it, its row has `gone` = 1 and only `pid` and `start_ns`. A process that is gone before the
//!   first walk of a row group has no such row in it.
//! - `cgroups` is as `processes`, by `id`.
//! - `waits` has a row at each walk, also of what waits as before.
//! - `start_ns` of a process stays that of its first row. `exits` has the exact one: `is_same_start` compares the two.
//! - An exit is in the row group of the time of its end. If it is known only later, `time` is the beginning of the part
//!   that has it, and `end_ns` is exact. `number` counts the exits of one run of the recorder.
//! - Row groups of one machine do not overlap, also if its clock is set back: what would be recorded a second time is not.
//! - A row of `events` has as `time` the walk that recorded it; `since` and `until` say to which times it applies.
//! - Each file in `open/` covers whole seconds, and what is in it has times within these.

mod cells;
mod clock;
mod group;
mod hierarchy;
mod kept;
mod machine;
mod session;
mod shares;
mod store;
mod taken;
mod texts;
mod thin;
mod waits;
mod walk;
mod writing;

pub use self::{
    cells::{Cell, EVERYWHERE, Row, row_of},
    clock::{Happened, Moment},
    group::Group,
    hierarchy::{Hierarchy, rows as rows_of_cgroups},
    kept::{Bounds, Error, Kept},
    machine::Machine,
    session::{Look, Session, boot_id},
    store::{Boot, Key, Store},
    taken::Taken,
    texts::{Lines, Live, Names, OF_CGROUP, Texts},
    waits::Waits,
    writing::{Event, Job, Place},
};

#[cfg(test)]
mod kept_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod writing_tests;
