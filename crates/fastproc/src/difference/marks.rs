//! The highest that each counter was seen at, and what it has grown since.

use super::counters::{COUNT, Counter, Counters, Set};
use crate::records::record::TICK_NS;

/// The counters of one process or thread as they were last seen.
///
/// A counter can seem to have gone back: another source has read it, which knows ticks where the other knows
/// nanoseconds, or a thread ended while the sum was taken. It has not grown then, and its mark stays where it was, in
/// value and in time, until the counter is past it: so nothing is counted twice, and what it grew by meanwhile is a
/// rate over the time that it took. One that is not known for a while is treated alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    values: [u64; COUNT],
    taken_ns: u64,
    /// Counters that the last look did not find at their mark or past it.
    behind: Set,
    /// When these were last at their marks.
    behind_since_ns: u64,
    /// Counters that were not known yet when counting began: they count from when they are.
    unset: Set,
}

impl Marks {
    /// All counters were zero when the process or thread started. What is seen next has grown since then.
    pub fn at_start(start_ns: u64) -> Self {
        Self {
            values: [0; COUNT],
            taken_ns: start_ns,
            behind: Set::default(),
            behind_since_ns: start_ns,
            unset: Set::default(),
        }
    }

    /// The counters were these at that time, and what went before does not count. One that is not known counts from
    /// when it is first known.
    pub fn at(now: &Counters, taken_ns: u64) -> Self {
        let mut marks = Self::at_start(taken_ns);
        marks.values = now.values;
        for counter in Counter::ALL {
            marks.unset.put(counter, !now.known.contains(counter));
        }
        marks
    }

    /// How much the counters have grown to `now`, seen at `now_ns`.
    pub fn growth(&self, now: &Counters, now_ns: u64) -> Growth {
        let mut growth = Growth {
            grown: [0; COUNT],
            known: now.known.without(self.unset),
            slow: self.behind,
            elapsed_ns: now_ns.saturating_sub(self.taken_ns),
            slow_elapsed_ns: now_ns.saturating_sub(self.behind_since_ns),
        };
        for ((grown, now), mark) in growth.grown.iter_mut().zip(now.values).zip(self.values) {
            *grown = now.saturating_sub(mark);
        }
        growth
    }

    /// The same, and these are the marks from now on.
    pub fn advance(&mut self, now: &Counters, now_ns: u64) -> Growth {
        let growth = self.growth(now, now_ns);
        let was_behind = self.behind;
        let past = Set::of(std::array::from_fn(|at| now.values[at] >= self.values[at]));
        // The value of one that is not known is zero here, and no mark is less.
        for (mark, value) in self.values.iter_mut().zip(now.values) {
            *mark = value.max(*mark);
        }
        self.behind = Set::all_but(past.and(now.known));
        self.unset = self.unset.without(now.known);
        if was_behind.is_empty() {
            self.behind_since_ns = self.taken_ns;
        }
        self.taken_ns = now_ns;
        growth
    }

    /// Whether counters with the id and start time of this thread are not its own.
    ///
    /// A thread that executes a program takes the id and the start time of the leading one, but not its counters: some
    /// of them may be less, or its run time by far more than there was time for. Of a process, counters may seem to run
    /// backwards; of a thread only CPU times may, where they are told to a tick.
    pub fn are_of_another_thread(&self, now: &Counters, now_ns: u64) -> bool {
        const EXACT: [Counter; 4] = [
            Counter::MinorFaults,
            Counter::MajorFaults,
            Counter::VoluntarySwitches,
            Counter::InvoluntarySwitches,
        ];
        let growth = self.growth(now, now_ns);
        // When a record was read is known about.
        let elapsed_ns = growth.elapsed_ns(Counter::Run);
        let most_ns = elapsed_ns.saturating_mul(2).saturating_add(2 * TICK_NS);
        growth.get(Counter::Run).is_some_and(|run| run > most_ns)
            || EXACT
                .iter()
                .any(|&counter| self.values[counter as usize] > now.values[counter as usize])
    }
}

/// What counters have grown by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    grown: [u64; COUNT],
    known: Set,
    /// Those that grew over a longer time.
    slow: Set,
    elapsed_ns: u64,
    slow_elapsed_ns: u64,
}

impl Growth {
    /// How much a counter has grown. `None` if it is not known now.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        self.known
            .contains(counter)
            .then(|| self.grown[counter as usize])
    }

    /// The time that it took.
    pub fn elapsed_ns(&self, counter: Counter) -> u64 {
        if self.slow.contains(counter) {
            self.slow_elapsed_ns
        } else {
            self.elapsed_ns
        }
    }

    /// How much it has grown in a second, by a time of no less than `shortest_ns`.
    pub fn per_second(&self, counter: Counter, shortest_ns: u64) -> Option<f64> {
        // A nanosecond keeps the division defined.
        let elapsed_ns = self.elapsed_ns(counter).max(shortest_ns).max(1);
        self.get(counter).map(|grown| match grown {
            // Most processes rest, and a division takes long.
            0 => 0.0,
            grown => grown as f64 * 1e9 / elapsed_ns as f64,
        })
    }
}
