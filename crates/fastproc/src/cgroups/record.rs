//! The record of a cgroup: plain data that the kernel side writes and readers borrow.
//!
//! The build generates the structures from `bpf/cgroup_record.h`. Sizes are in bytes and times in nanoseconds. A limit
//! that is not set is [`UNLIMITED`].

#![allow(
    clippy::unreadable_literal,
    reason = "generated from C, whose numbers have no separators"
)]

include!(concat!(env!("OUT_DIR"), "/cgroup_record.rs"));

/// A limit that is not set: `max` in the kernel's files.
pub const UNLIMITED: u64 = NO_LIMIT;

impl Pressure {
    /// The share of the last 10, 60 and 300 seconds in which some and in which all tasks waited for this resource, in
    /// hundredths of a percent.
    pub fn shares(&self, resource: Resource) -> [[u32; 3]; 2] {
        let at = resource as usize * 6;
        let share = |at: usize| {
            [
                self.averages[at],
                self.averages[at + 1],
                self.averages[at + 2],
            ]
        };
        [share(at), share(at + 3)]
    }
}

/// A resource that tasks wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A CPU.
    Cpu,
    /// Memory.
    Memory,
    /// I/O.
    Io,
}
