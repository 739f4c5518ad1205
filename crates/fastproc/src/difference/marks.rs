//! Marks: the highest value seen of each counter, and how much the counter has grown since.

use super::counters::{COUNT, Counter, Set, TaskCounters};
use crate::records::record::TICK_NS;

/// The counters of one process or thread as they were last seen.
///
/// A counter can seem to run backwards: another source read it, which knows ticks instead of nanoseconds, or a thread
/// exited while the sum was taken. Then it counts as not grown, and its mark keeps value and time until the counter
/// exceeds it. So nothing is counted twice, and the next rate is over the whole time since the mark. A counter that is
/// unknown for a while is treated in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    values: [u64; COUNT],
    taken_ns: u64,
    /// Counters that were below their marks when they were last read.
    behind: Set,
    /// When each counter in `behind` was last at its mark. For other counters that is `taken_ns`.
    behind_since_ns: [u64; COUNT],
    /// Counters that were unknown when counting began. They count from the first time that they are known.
    unset: Set,
}

impl Marks {
    /// Marks of a process or thread at its start, when all counters were zero.
    pub fn at_start(start_ns: u64) -> Self {
        Self {
            values: [0; COUNT],
            taken_ns: start_ns,
            behind: Set::default(),
            behind_since_ns: [start_ns; COUNT],
            unset: Set::default(),
        }
    }

    /// Marks of counters at this time. Earlier growth does not count. An unknown counter counts from the first time
    /// that it is known.
    pub fn at(now: &TaskCounters, taken_ns: u64) -> Self {
        let mut marks = Self::at_start(taken_ns);
        marks.values = now.values;
        for counter in Counter::ALL {
            marks.unset.put(counter, !now.known.contains(counter));
        }
        marks
    }

    /// How much the counters have grown until `now`, which was read at `now_ns`.
    pub fn growth(&self, now: &TaskCounters, now_ns: u64) -> Growth {
        let mut growth = Growth {
            grown: [0; COUNT],
            known: now.known.without(self.unset),
            slow: self.behind,
            since_ns: self.taken_ns,
            slow_since_ns: self.behind_since_ns,
            now_ns,
        };
        for ((grown, now), mark) in growth.grown.iter_mut().zip(now.values).zip(self.values) {
            *grown = now.saturating_sub(mark);
        }
        growth
    }

    /// The same; then sets the marks to `now`.
    pub fn advance(&mut self, now: &TaskCounters, now_ns: u64) -> Growth {
        let growth = self.growth(now, now_ns);
        let past = Set::new(std::array::from_fn(|at| now.values[at] >= self.values[at]));
        // An unknown counter is zero here, which is below every mark.
        for (mark, value) in self.values.iter_mut().zip(now.values) {
            *mark = value.max(*mark);
        }
        let behind = Set::all_but(past.and(now.known));
        let fallen = behind.without(self.behind);
        if !fallen.is_empty() {
            for counter in Counter::ALL.into_iter().filter(|&c| fallen.contains(c)) {
                self.behind_since_ns[counter as usize] = self.taken_ns;
            }
        }
        self.behind = behind;
        self.unset = self.unset.without(now.known);
        self.taken_ns = now_ns;
        growth
    }

    /// Has the effect of [`advance`](Self::advance) with unchanged counters.
    pub fn stay(&mut self, now_ns: u64) {
        self.taken_ns = now_ns;
    }

    /// Whether these counters, under the id and start time of this thread, are those of another thread.
    ///
    /// A thread that executes a program takes the id and the start time of the leading thread, but keeps its own
    /// counters: some may be lower, or the run time may have grown by more than the elapsed time. This test is for
    /// threads only: the sums of a process may seem to run backwards, but of a thread only CPU times in ticks may.
    pub fn are_of_another_thread(&self, now: &TaskCounters, now_ns: u64) -> bool {
        const EXACT: [Counter; 4] = [
            Counter::MinorFaults,
            Counter::MajorFaults,
            Counter::VoluntarySwitches,
            Counter::InvoluntarySwitches,
        ];
        let growth = self.growth(now, now_ns);
        // The time when a record was read is an estimate.
        let elapsed_ns = growth.elapsed_ns(Counter::Run);
        let most_ns = elapsed_ns.saturating_mul(2).saturating_add(2 * TICK_NS);
        growth.get(Counter::Run).is_some_and(|run| run > most_ns)
            || EXACT
                .iter()
                .any(|&counter| self.values[counter as usize] > now.values[counter as usize])
    }
}

/// How much counters have grown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    grown: [u64; COUNT],
    known: Set,
    /// The counters that grew over a longer time.
    slow: Set,
    since_ns: u64,
    /// Since when, for the counters in `slow`.
    slow_since_ns: [u64; COUNT],
    now_ns: u64,
}

impl Growth {
    /// How much a counter has grown. `None` if it is unknown now.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        self.known
            .contains(counter)
            .then(|| self.grown[counter as usize])
    }

    /// The time over which it grew.
    pub fn elapsed_ns(&self, counter: Counter) -> u64 {
        self.now_ns.saturating_sub(if self.slow.contains(counter) {
            self.slow_since_ns[counter as usize]
        } else {
            self.since_ns
        })
    }

    /// The growth per second, over at least `shortest_ns`.
    pub fn per_second(&self, counter: Counter, shortest_ns: u64) -> Option<f64> {
        // One nanosecond at least, so that the division is defined.
        let elapsed_ns = self.elapsed_ns(counter).max(shortest_ns).max(1);
        self.get(counter).map(|grown| match grown {
            // Most processes are idle, and a division is slow.
            0 => 0.0,
            grown => grown as f64 * 1e9 / elapsed_ns as f64,
        })
    }
}
