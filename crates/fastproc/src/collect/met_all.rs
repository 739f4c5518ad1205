//! Whether a walk has met every process, by the kernel's count of tasks.

use crate::records::record::Record;

/// Whether a walk has met every process, because the threads of those that it has met are all that the kernel counts.
/// Listing `/proc` instead would take longer than the walk. `before` and `after`: the kernel's count before and after it.
pub(super) fn has_met_all(
    records: &[Record],
    before: Option<u32>,
    after: impl FnOnce() -> Option<u32>,
) -> bool {
    let threads = records.iter().map(|record| record.identity.num_threads);
    let met = || threads.map(u64::from).sum::<u64>();
    before.is_some_and(|tasks| u64::from(tasks) == met()) && after() == before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_has_met_all_if_the_kernel_counts_no_other_thread() {
        let records = [1, 3].map(|threads| {
            let mut record = Record::default();
            record.identity.num_threads = threads;
            record
        });
        let met_all = |before, after| has_met_all(&records, before, || after);
        assert!(met_all(Some(4), Some(4)));
        for (before, after) in [
            (Some(5), Some(5)),
            (Some(4), Some(5)),
            (Some(5), Some(4)),
            (Some(3), Some(3)),
            (None, None),
            (Some(4), None),
        ] {
            assert!(!met_all(before, after), "{before:?} {after:?}");
        }
    }
}
