//! Groups of processes, and what is summed up for them.

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

/// In place of the index of a group or a name: there is none.
const NONE: u32 = u32::MAX;

/// What is folded into when there are too many.
pub const OTHER: &str = "other";
