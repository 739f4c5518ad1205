//! Totals of pressure that never decrease.
//!
//! The kernel adds to its totals when somebody reads them. Ours are what it would add at the time of a snapshot, and nobody
//! remembers them in the kernel. A CPU that becomes busy afterwards makes the time that another one has waited weigh less, so
//! what the kernel adds later may be less than what was shown.

use std::collections::HashMap;

use super::record::{Pressure, Record};

/// The totals that were last shown of each cgroup.
#[derive(Debug, Default)]
pub(super) struct Totals(HashMap<u64, [u64; 6]>);

impl Totals {
    /// Raises the totals of a cgroup to what was shown before.
    pub(super) fn raise(&mut self, record: &mut Record) {
        let totals = totals(&mut record.pressure);
        if totals.iter().all(|total| **total == 0) {
            return;
        }
        let shown = self.0.entry(record.identity.id).or_default();
        for (total, shown) in totals.into_iter().zip(shown) {
            *total = (*total).max(*shown);
            *shown = *total;
        }
    }

    /// Forgets cgroups that are gone, if those are many. `is_here`: whether a cgroup still exists.
    pub(super) fn forget(&mut self, count: usize, is_here: impl Fn(u64) -> bool) {
        if self.0.len() > count.saturating_mul(2) {
            self.0.retain(|&id, _| is_here(id));
        }
    }
}

fn totals(pressure: &mut Pressure) -> [&mut u64; 6] {
    [
        &mut pressure.cpu_some_ns,
        &mut pressure.cpu_full_ns,
        &mut pressure.memory_some_ns,
        &mut pressure.memory_full_ns,
        &mut pressure.io_some_ns,
        &mut pressure.io_full_ns,
    ]
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
