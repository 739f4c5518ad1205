//! The kernel functions in which threads of groups wait.

use std::collections::{BTreeMap, HashMap};

use super::files::{Missing, ProcessFiles};
use crate::{exposition::escape, names};

/// The waiting threads of one process by function.
pub(super) type Waiting = Box<[(Symbol, u32)]>;

/// A function of the kernel, by its index among [`Wchans`].
pub(super) type Symbol = u32;

/// The waiting threads of groups by function.
#[derive(Debug, Default)]
pub struct Wchans {
    /// `wchan="…"`, to be appended to the labels of a group.
    labels: Vec<Box<str>>,
    by_name: HashMap<Box<[u8]>, Symbol>,
    sums: BTreeMap<(u32, Symbol), u64>,
}

impl Wchans {
    /// The label and the number of threads for each function of a group.
    pub fn of(&self, group: u32) -> impl Iterator<Item = (&str, u64)> {
        let places = self.sums.range((group, 0)..=(group, Symbol::MAX));
        places.map(|(&(_, symbol), &count)| (&*self.labels[symbol as usize], count))
    }

    pub(super) fn clear(&mut self) {
        self.sums.clear();
    }

    pub(super) fn add(&mut self, group: u32, waiting: &Waiting) {
        for &(symbol, count) in waiting {
            *self.sums.entry((group, symbol)).or_default() += u64::from(count);
        }
    }

    /// Reads the function of every thread of a process.
    pub(super) fn read(
        &mut self,
        files: &ProcessFiles,
        pid: u32,
        one_thread: bool,
    ) -> Result<Waiting, Missing> {
        let mut counts = BTreeMap::<Symbol, u32>::new();
        files.wchans(pid, one_thread, |name| {
            *counts.entry(self.symbol(name)).or_default() += 1;
        })?;
        Ok(counts.into_iter().collect())
    }

    fn symbol(&mut self, name: &[u8]) -> Symbol {
        if let Some(&symbol) = self.by_name.get(name) {
            return symbol;
        }
        let symbol = self.labels.len() as Symbol;
        let label = format!(",wchan=\"{}\"", escape(&names::text(name)));
        self.labels.push(label.into());
        self.by_name.insert(name.into(), symbol);
        symbol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_summed_up_by_group() {
        let mut wchans = Wchans::default();
        let (poll, futex) = (wchans.symbol(b"do_poll"), wchans.symbol(b"fu\"tex"));
        assert_eq!(wchans.symbol(b"do_poll"), poll);
        let waiting: Waiting = [(poll, 1), (futex, 2)].into();
        for group in [7, 7, 8] {
            wchans.add(group, &waiting);
        }
        let of: Vec<_> = wchans.of(7).collect();
        assert_eq!(of, [(",wchan=\"do_poll\"", 2), (",wchan=\"fu\\\"tex\"", 4)]);
        assert_eq!(wchans.of(8).count(), 2);
        assert_eq!(wchans.of(9).count(), 0);
        wchans.clear();
        assert_eq!(wchans.of(7).count(), 0);
    }
}
