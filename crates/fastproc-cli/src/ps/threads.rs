//! What threads did since the last snapshot, as [`fastproc::Baseline`] has it for processes.

use fastproc::{Change, Process, Snapshot, record::ThreadRecord};

/// Longest clock tick that `/proc` rounds start times to.
const TICK_NS: u64 = 10_000_000;

/// The threads of a snapshot.
#[derive(Debug, Default)]
pub struct ThreadBaseline {
    taken_ns: u64,
    /// In the order of the thread ids.
    threads: Vec<ThreadRecord>,
}

impl ThreadBaseline {
    /// Keeps the threads of this snapshot instead of those of the last one.
    pub fn set(&mut self, snapshot: &Snapshot<'_>) {
        self.taken_ns = snapshot.stats().kernel_boottime_ns();
        self.threads.clear();
        self.threads.extend(snapshot.threads().copied());
        self.threads.sort_unstable_by_key(|thread| thread.tid);
    }

    /// What `thread` did since.
    pub fn change<'a>(
        &self,
        process: Process<'a>,
        thread: &ThreadRecord,
        now: &Snapshot<'_>,
    ) -> Change<'a> {
        let found = self
            .threads
            .binary_search_by_key(&thread.tid, |thread| thread.tid);
        let before = found
            .ok()
            .map(|at| &self.threads[at])
            .filter(|before| before.start_ns.abs_diff(thread.start_ns) < TICK_NS);
        let nothing = ThreadRecord::default();
        change(
            process,
            thread,
            before.unwrap_or(&nothing),
            before.is_none(),
            self.taken_ns,
            now.stats().kernel_boottime_ns(),
        )
    }
}

fn change<'a>(
    process: Process<'a>,
    now: &ThreadRecord,
    before: &ThreadRecord,
    born: bool,
    since_ns: u64,
    now_ns: u64,
) -> Change<'a> {
    let from_ns = if born {
        now.start_ns.max(since_ns)
    } else {
        since_ns
    };
    let seconds = now_ns.saturating_sub(from_ns).max(1) as f64 / 1e9;
    let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / seconds;
    // The precise run time where both know it; the text has ticks only.
    let is_precise = now.sum_exec_ns > 0 && (born || before.sum_exec_ns > 0);
    let cpu = if is_precise {
        rate(now.sum_exec_ns, before.sum_exec_ns)
    } else {
        rate(
            now.utime_ns + now.stime_ns,
            before.utime_ns + before.stime_ns,
        )
    };
    // A thread's I/O counters are known where its process's are.
    let io = process.io();
    Change {
        process,
        born,
        cpu_share: Some(cpu / 1e9),
        user_share: Some(rate(now.utime_ns, before.utime_ns) / 1e9),
        system_share: Some(rate(now.stime_ns, before.stime_ns) / 1e9),
        minflt_per_second: Some(rate(now.minflt, before.minflt)),
        majflt_per_second: Some(rate(now.majflt, before.majflt)),
        read_bytes_per_second: io.map(|_| rate(now.io.read_bytes, before.io.read_bytes)),
        write_bytes_per_second: io.map(|_| rate(now.io.write_bytes, before.io.write_bytes)),
    }
}

#[cfg(test)]
mod tests {
    use fastproc::record::Record;

    use super::*;

    fn shares(now: &ThreadRecord, before: &ThreadRecord, born: bool) -> (Option<f64>, Option<f64>) {
        let record = Record::default();
        let change = change(
            Process::new(&record, &[]),
            now,
            before,
            born,
            10_000_000_000,
            12_000_000_000,
        );
        (change.cpu_share, change.minflt_per_second)
    }

    #[test]
    fn shares_are_over_the_interval() {
        let before = ThreadRecord {
            sum_exec_ns: 5_000_000_000,
            minflt: 10,
            ..ThreadRecord::default()
        };
        let now = ThreadRecord {
            sum_exec_ns: 6_000_000_000,
            minflt: 30,
            ..before
        };
        assert_eq!(shares(&now, &before, false), (Some(0.5), Some(10.0)));
        let text = ThreadRecord {
            utime_ns: 3_000_000_000,
            stime_ns: 1_000_000_000,
            ..ThreadRecord::default()
        };
        assert_eq!(
            shares(&text, &ThreadRecord::default(), false),
            (Some(2.0), Some(0.0))
        );
    }

    #[test]
    fn a_new_thread_counts_from_its_start() {
        let now = ThreadRecord {
            start_ns: 11_000_000_000,
            sum_exec_ns: 500_000_000,
            ..ThreadRecord::default()
        };
        assert_eq!(shares(&now, &ThreadRecord::default(), true).0, Some(0.5));
    }
}
