//! What happened between two snapshots.

use crate::{Process, Snapshot, record::Io};

/// What has to be kept of a snapshot to compare a later one with it.
///
/// ```no_run
/// # fn main() -> Result<(), fastproc::Error> {
/// let mut collector = fastproc::Collector::builder().fields(fastproc::Fields::TOP).open()?;
/// let mut before = fastproc::Baseline::default();
/// before.set(&collector.snapshot()?);
/// std::thread::sleep(std::time::Duration::from_secs(1));
/// let now = collector.snapshot()?;
/// for change in before.changes(&now) {
///     println!("{} used {:?} CPUs", change.process.pid(), change.cpu_share);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    taken_ns: u64,
    /// In the order of the pids.
    entries: Vec<Entry>,
}

/// A process as it was in the earlier snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    pid: u32,
    start_ns: u64,
    cpu: Option<Cpu>,
    io: Option<Io>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cpu {
    utime_ns: u64,
    stime_ns: u64,
    sum_exec_ns: u64,
    minflt: u64,
    majflt: u64,
}

impl Entry {
    fn of(process: Process<'_>) -> Self {
        Self {
            pid: process.pid(),
            start_ns: process.identity().start_ns,
            cpu: process.cpu().map(|cpu| Cpu {
                utime_ns: cpu.utime_ns,
                stime_ns: cpu.stime_ns,
                sum_exec_ns: cpu.sum_exec_ns,
                minflt: cpu.minflt,
                majflt: cpu.majflt,
            }),
            io: process.io().copied(),
        }
    }

    /// `/proc` tells start times to a tick, so a process read from there and from the kernel differs by less.
    fn is_same(&self, process: Process<'_>) -> bool {
        self.pid == process.pid() && self.start_ns.abs_diff(process.identity().start_ns) < TICK_NS
    }
}

/// Longest clock tick that `/proc` rounds to (`USER_HZ` is 100).
const TICK_NS: u64 = 10_000_000;

/// One process of the later snapshot, and what it did since the earlier one.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The process as it is now.
    pub process: Process<'a>,
    /// Whether the earlier snapshot did not have it. Its shares and rates are then counted from its start.
    pub born: bool,
    /// CPU time used per time passed: 1.0 is one whole CPU. `None` without [`Fields::CPU`](crate::Fields::CPU).
    pub cpu_share: Option<f64>,
    /// The part of it in user mode.
    pub user_share: Option<f64>,
    /// The part of it in kernel mode.
    pub system_share: Option<f64>,
    /// Page faults without I/O, per second.
    pub minflt_per_second: Option<f64>,
    /// Page faults with I/O, per second.
    pub majflt_per_second: Option<f64>,
    /// Bytes fetched from storage, per second. `None` without [`Fields::IO`](crate::Fields::IO), or if hidden.
    pub read_bytes_per_second: Option<f64>,
    /// Bytes sent to storage, per second.
    pub write_bytes_per_second: Option<f64>,
}

/// A process of the earlier snapshot that is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Process id that it had.
    pub pid: u32,
    /// When it had started, in nanoseconds after boot.
    pub start_ns: u64,
}

impl Baseline {
    /// Keeps this snapshot instead of the last one. Allocates only if there are more processes than ever before.
    pub fn set(&mut self, snapshot: &Snapshot<'_>) {
        self.taken_ns = snapshot.stats().kernel_boottime_ns();
        self.entries.clear();
        self.entries.extend(snapshot.iter().map(Entry::of));
    }

    /// What every process of `now` did since, in the order of the pids.
    pub fn changes<'a>(
        &self,
        now: &Snapshot<'a>,
    ) -> impl Iterator<Item = Change<'a>> + use<'a, '_> {
        let (since_ns, now_ns) = (self.taken_ns, now.stats().kernel_boottime_ns());
        let mut rest = self.entries.as_slice();
        now.iter().map(move |process| {
            // Nearly always the very next one.
            let skipped = rest
                .iter()
                .take_while(|entry| entry.pid < process.pid())
                .count();
            rest = &rest[skipped..];
            let before = rest.first().filter(|entry| entry.is_same(process));
            change(process, before, since_ns, now_ns)
        })
    }

    /// The processes that were there and are not in `now`, in the order of the pids.
    pub fn gone(&self, now: &Snapshot<'_>) -> impl Iterator<Item = Gone> {
        self.entries
            .iter()
            .filter(|entry| {
                !now.get(entry.pid)
                    .is_some_and(|process| entry.is_same(process))
            })
            .map(|entry| Gone {
                pid: entry.pid,
                start_ns: entry.start_ns,
            })
    }
}

fn change<'a>(
    process: Process<'a>,
    before: Option<&Entry>,
    since_ns: u64,
    now_ns: u64,
) -> Change<'a> {
    let from_ns = if before.is_some() {
        since_ns
    } else {
        process.identity().start_ns.max(since_ns)
    };
    // A clock that has not moved gives no rate; a nanosecond keeps the division defined.
    let seconds = now_ns.saturating_sub(from_ns).max(1) as f64 / 1e9;
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    let now = Entry::of(process);
    let cpu = now.cpu.map(|cpu| {
        (
            cpu,
            before.and_then(|before| before.cpu).unwrap_or_default(),
        )
    });
    let io = now
        .io
        .map(|io| (io, before.and_then(|before| before.io).unwrap_or_default()));
    Change {
        process,
        born: before.is_none(),
        cpu_share: cpu.map(|(now, before)| {
            // The precise run time where both snapshots know it; the text has ticks only.
            let precise = now.sum_exec_ns > 0
                && (before.sum_exec_ns > 0 || before.utime_ns + before.stime_ns == 0);
            let share = if precise {
                rate(now.sum_exec_ns, before.sum_exec_ns)
            } else {
                rate(
                    now.utime_ns + now.stime_ns,
                    before.utime_ns + before.stime_ns,
                )
            };
            share / 1e9
        }),
        user_share: cpu.map(|(now, before)| rate(now.utime_ns, before.utime_ns) / 1e9),
        system_share: cpu.map(|(now, before)| rate(now.stime_ns, before.stime_ns) / 1e9),
        minflt_per_second: cpu.map(|(now, before)| rate(now.minflt, before.minflt)),
        majflt_per_second: cpu.map(|(now, before)| rate(now.majflt, before.majflt)),
        read_bytes_per_second: io.map(|(now, before)| rate(now.read_bytes, before.read_bytes)),
        write_bytes_per_second: io.map(|(now, before)| rate(now.write_bytes, before.write_bytes)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{Fields, SnapshotStats, SourceKind, record::Record, snapshot::Slot, source::Table};

    const SECOND: u64 = 1_000_000_000;

    /// A time namespace shifts the reader's clock; the processes' start times stand as they are.
    #[test]
    fn a_time_namespace_changes_no_share() {
        for offset_seconds in [0, 86_400, -90] {
            let boot_offset_ns = offset_seconds * SECOND as i64;
            let stats = |kernel_ns: u64| SnapshotStats {
                source: SourceKind::Bpf,
                boottime_ns: kernel_ns.saturating_add_signed(boot_offset_ns),
                boot_offset_ns,
                took: Duration::ZERO,
                torn: 0,
                missed: 0,
                grown: 0,
                reused_actions: 0,
            };
            let mut record = Record::default();
            record.identity.tgid = 7;
            record.identity.groups = Fields::CPU.bits();
            record.identity.start_ns = 101 * SECOND;
            record.cpu.sum_exec_ns = SECOND / 2;
            record.cpu.utime_ns = SECOND / 2;
            let before = Baseline {
                taken_ns: stats(100 * SECOND).kernel_boottime_ns(),
                entries: Vec::new(),
            };
            let now = Snapshot {
                walked: Table {
                    records: &[record],
                    ..Table::default()
                },
                patched: Table::default(),
                order: &[Slot::walked(7, 0)],
                stats: stats(102 * SECOND),
            };
            let shares: Vec<_> = before
                .changes(&now)
                .map(|change| (change.born, change.cpu_share))
                .collect();
            assert_eq!(shares, [(true, Some(0.5))], "{offset_seconds} s");
        }
    }
}
