//! Counters of the last fetch, for the items that are differences.

/// The counters from which differences are calculated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) ticks: u64,
    pub(crate) majflt: u64,
    pub(crate) minflt: u64,
}

/// The last two fetches, by either library.
#[derive(Debug, Default)]
pub(crate) struct History {
    last: Vec<(u32, Sums)>,
    now: Vec<(u32, Sums)>,
    /// The index in `last` of the process found last: the next one is mostly behind it.
    at: usize,
}

impl History {
    /// Begins a fetch.
    pub(crate) fn turn(&mut self) {
        std::mem::swap(&mut self.last, &mut self.now);
        if !self.last.is_sorted_by_key(|&(pid, _)| pid) {
            self.last.sort_by_key(|&(pid, _)| pid);
        }
        self.now.clear();
        self.at = 0;
    }

    /// What a process has done since the last fetch. For a process that was not in it, all ticks and no faults, as in
    /// procps.
    pub(crate) fn since(&mut self, pid: u32, sums: Sums) -> Sums {
        self.now.push((pid, sums));
        let found = match self.last.get(self.at) {
            Some(&(other, before)) if other == pid => Some((self.at, before)),
            _ => {
                let at = self.last.binary_search_by_key(&pid, |&(pid, _)| pid);
                at.ok().map(|at| (at, self.last[at].1))
            }
        };
        let Some((at, before)) = found else {
            return Sums {
                ticks: sums.ticks,
                ..Sums::default()
            };
        };
        self.at = at + 1;
        Sums {
            ticks: sums.ticks.wrapping_sub(before.ticks),
            majflt: sums.majflt.wrapping_sub(before.majflt),
            minflt: sums.minflt.wrapping_sub(before.minflt),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_to_the_last_fetch_and_new_processes_have_all_their_ticks() {
        let mut history = History::default();
        let sums = |ticks, majflt| Sums {
            ticks,
            majflt,
            minflt: 10 * majflt,
        };
        history.turn();
        // In an order of the caller's.
        assert_eq!(
            history.since(7, sums(100, 5)),
            Sums {
                ticks: 100,
                ..Sums::default()
            }
        );
        history.since(3, sums(50, 1));
        history.turn();
        assert_eq!(history.since(3, sums(51, 1)), sums(1, 0));
        assert_eq!(
            history.since(5, sums(4, 4)),
            Sums {
                ticks: 4,
                ..Sums::default()
            }
        );
        assert_eq!(history.since(7, sums(100, 7)), sums(0, 2));
        history.turn();
        history.turn();
        assert_eq!(
            history.since(7, sums(101, 7)).ticks,
            101,
            "it was not in the last fetch"
        );
    }
}
