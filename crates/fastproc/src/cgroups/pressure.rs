//! Totals of pressure that never decrease.
//!
//! The kernel adds to its totals when they are read. The totals of a snapshot are what it would add at that time, but
//! the kernel does not store them. A CPU that becomes busy afterwards gives less weight to the waiting time of another
//! one, so the kernel's next totals may be less than the snapshot's.

use super::{ids::Ids, record::Record};

/// The last totals of each cgroup that were shown.
#[derive(Debug, Default)]
pub(super) struct Totals(Ids<[u64; 6]>);

impl Totals {
    /// Raises the totals of a cgroup to those that were shown before.
    pub(super) fn raise(&mut self, record: &mut Record) {
        let totals = record.pressure.totals_mut();
        if totals.iter().all(|total| **total == 0) {
            return;
        }
        let shown = self.0.entry(record.identity.id).or_default();
        for (total, shown) in totals.into_iter().zip(shown) {
            *total = (*total).max(*shown);
            *shown = *total;
        }
    }

    /// Drops cgroups that are gone, if there are many. `is_here`: whether a cgroup still exists.
    pub(super) fn forget(&mut self, count: usize, is_here: impl Fn(u64) -> bool) {
        if self.0.len() > count.saturating_mul(2) {
            self.0.retain(|&id, _| is_here(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_stays_at_what_was_shown() {
        let mut all = Totals::default();
        let mut show = |id, cpu_some_ns, io_full_ns| {
            let mut record = Record::default();
            record.identity.id = id;
            (record.pressure.cpu_some_ns, record.pressure.io_full_ns) = (cpu_some_ns, io_full_ns);
            all.raise(&mut record);
            (record.pressure.cpu_some_ns, record.pressure.io_full_ns)
        };
        assert_eq!(show(1, 5, 7), (5, 7));
        assert_eq!(show(1, 4, 8), (5, 8));
        assert_eq!(show(2, 4, 0), (4, 0));
        all.forget(1, |id| id == 1);
        assert_eq!(all.0.len(), 2);
        all.forget(0, |id| id == 1);
        assert_eq!(all.0.into_keys().collect::<Vec<_>>(), [1]);
    }
}
