//! Whether a walk has met every process, by the kernel's count of tasks.

use crate::{
    base::{error::Error, host::TaskCount},
    records::record::Record,
    source::{bpf::IndexEntry, procfs::Procfs},
};

/// The threads that the kernel counts, and that no process has that a walk has met. If there are none, the walk has met
/// all; listing `/proc` instead would take longer than the walk. `None`: threads may have started or ended meanwhile.
///
/// `before` and `after`: the kernel's count before and after the walk.
pub(super) fn missing_threads(
    records: &[Record],
    before: Option<TaskCount>,
    after: impl FnOnce() -> Option<TaskCount>,
) -> Option<u64> {
    let threads = records.iter().map(|record| record.identity.num_threads);
    let met: u64 = threads.map(u64::from).sum();
    let missing = u64::from(before?.tasks).checked_sub(met)?;
    (after() == before).then_some(missing)
}

/// The process that the kernel's iterator may hide: the first one of a sandbox.
const FIRST: u32 = 1;

/// Lists the processes that a walk may have missed: only the first one, if it has as many threads as are missing;
/// otherwise all. Those that are younger than the walk are dropped later.
pub(super) fn list_those_missed(
    procfs: &mut Procfs,
    index: &[u64],
    missing: Option<u64>,
    listed: &mut Vec<u32>,
) -> Result<(), Error> {
    let is_first = |entry: &u64| IndexEntry(*entry).pid() == FIRST;
    if missing.is_some() && !index.iter().any(is_first) {
        let mut first = Record::default();
        procfs.read_one(FIRST, &mut first, &mut Vec::new(), &mut vec![0])?;
        if missing == Some(first.identity.num_threads.into()) {
            listed.clear();
            listed.push(FIRST);
            return Ok(());
        }
    }
    Ok(procfs.pids(listed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_counts_the_threads_that_no_process_has() {
        let records = [1, 3].map(|threads| {
            let mut record = Record::default();
            record.identity.num_threads = threads;
            record
        });
        let count = |tasks, last_pid| Some(TaskCount { tasks, last_pid });
        let missing = |before, after| missing_threads(&records, before, || after);
        assert_eq!(missing(count(4, 9), count(4, 9)), Some(0));
        assert_eq!(missing(count(6, 9), count(6, 9)), Some(2));
        for (before, after) in [
            (count(4, 9), count(5, 10)),
            (count(5, 9), count(4, 9)),
            // One has started, and one has ended.
            (count(4, 9), count(4, 10)),
            (count(3, 9), count(3, 9)),
            (None, None),
            (count(4, 9), None),
        ] {
            assert_eq!(missing(before, after), None, "{before:?} {after:?}");
        }
    }
}
