//! The record of a cgroup: plain data that the kernel side writes and readers borrow.
//!
//! The build generates the structures from `bpf/cgroup_record.h`. Sizes are in bytes and times in nanoseconds. A limit
//! that is not set is [`UNLIMITED`].

#![allow(
    clippy::unreadable_literal,
    reason = "generated from C, whose numbers have no separators"
)]

use super::Fields;

include!(concat!(env!("OUT_DIR"), "/cgroup_record.rs"));

/// The description of a [`Record`]. A member's group has the name that its path begins with.
#[doc(hidden)]
pub static SCHEMA: &crate::records::schema::Structure = &RECORD_SCHEMA;

/// A limit that is not set: `max` in the kernel's files.
pub const UNLIMITED: u64 = NO_LIMIT;

#[doc(hidden)]
impl Record {
    /// The id of this layout: the hash of the header.
    pub const LAYOUT: u64 = LAYOUT;

    /// A copy with only these groups, as the service shares it: with what the files show, so times are whole
    /// microseconds. It has no [averages of pressure](Fields::PRESSURE_AVERAGES).
    #[must_use]
    pub fn shared(&self, groups: Fields) -> Self {
        let had = Fields::from_bits_retain(self.identity.groups);
        let groups = (groups & had) - Fields::PRESSURE_AVERAGES;
        let mut shared = Self {
            identity: self.identity,
            ..Self::default()
        };
        shared.identity.groups = groups.bits();
        if groups.contains(Fields::CPU) {
            let from = &self.cpu;
            shared.cpu = Cpu {
                usage_ns: in_microseconds(from.usage_ns),
                user_ns: in_microseconds(from.user_ns),
                system_ns: in_microseconds(from.system_ns),
                nice_ns: in_microseconds(from.nice_ns),
                forced_idle_ns: in_microseconds(from.forced_idle_ns),
                throttled_ns: in_microseconds(from.throttled_ns),
                burst_ns: in_microseconds(from.burst_ns),
                sampled_utime_ns: 0,
                sampled_stime_ns: 0,
                prev_utime_ns: 0,
                prev_stime_ns: 0,
                ..*from
            };
        }
        if groups.contains(Fields::MEMORY) {
            shared.memory = self.memory;
        }
        if groups.contains(Fields::MEMORY_STAT) {
            shared.memory_stat = self.memory_stat;
        }
        if groups.contains(Fields::PIDS) {
            shared.pids = self.pids;
        }
        if groups.contains(Fields::IO) {
            shared.io = self.io;
        }
        if groups.contains(Fields::PRESSURE) {
            shared.pressure = self.pressure;
            shared.pressure.torn = 0;
            for total in shared.pressure.totals_mut() {
                *total = in_microseconds(*total);
            }
        }
        shared
    }
}

/// A time as the kernel's files show it. An unknown one stays.
fn in_microseconds(ns: u64) -> u64 {
    if ns == u64::MAX { ns } else { ns - ns % 1000 }
}

impl Pressure {
    /// The total times, in the order of the members.
    pub(super) fn totals_mut(&mut self) -> [&mut u64; 6] {
        [
            &mut self.cpu_some_ns,
            &mut self.cpu_full_ns,
            &mut self.memory_some_ns,
            &mut self.memory_full_ns,
            &mut self.io_some_ns,
            &mut self.io_full_ns,
        ]
    }
}

impl PressureAverages {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_records_have_only_their_groups_and_the_values_of_files() {
        let mut record = Record::default();
        record.identity.groups = (Fields::CPU | Fields::MEMORY | Fields::PRESSURE).bits();
        record.cpu.usage_ns = 123_456;
        record.cpu.sampled_utime_ns = 7;
        record.cpu.throttled_ns = 7_001;
        record.memory.set_current(Some(4096));
        record.pressure.io_full_ns = 5_999;
        record.pressure.torn = 1;
        let shared = record.shared(Fields::CPU | Fields::PRESSURE | Fields::PIDS);
        let groups = Fields::CPU | Fields::PRESSURE;
        assert_eq!(shared.identity.groups, groups.bits());
        assert_eq!(
            (shared.cpu.usage_ns, shared.cpu.sampled_utime_ns),
            (123_000, 0)
        );
        assert_eq!(
            (shared.cpu.nice_ns(), shared.memory.current()),
            (None, None)
        );
        assert_eq!(shared.cpu.throttled_ns(), Some(7_000));
        assert_eq!(
            (shared.pressure.io_full_ns, shared.pressure.torn),
            (5_000, 0)
        );
        assert_eq!(record.shared(Fields::MEMORY).memory, record.memory);
    }
}
