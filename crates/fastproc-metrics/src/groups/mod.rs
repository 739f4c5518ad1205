//! Groups of processes, and their sums.

mod counts;
mod group;
mod limits;
mod threads;
mod tracker;

pub use self::{
    counts::{Count, Counts},
    group::{Gauges, Group, GroupState},
    limits::{Limits, Rank},
    threads::ThreadName,
    tracker::{Describe, Description, Errors, Gone, Member, Moment, Options, Tracker},
};

/// In place of the index of a group or a name: none.
const NONE: u32 = u32::MAX;

/// The name into which excess groups are folded.
pub const OTHER: &str = "other";
