//! The sizes of the maps: when they grow, by how much, and when they shrink.

use super::run::{POOL_SLACK, Place, Position, Proof, Run};
use crate::{
    kernel::walk::Walk,
    records::record::{Record, ThreadRecord},
};

/// `PID_MAX_LIMIT`: no machine has more tasks.
const MOST_TASKS: u32 = 1 << 22;

/// Bytes of an entry of the index.
const INDEX_BYTES: u64 = 8;

/// The data that a walk keeps for each record, besides its place and its entry of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Beside {
    pub(super) proofs: bool,
    pub(super) order: bool,
}

impl Beside {
    /// The data of this walk, depending on whether it `keeps` records.
    pub(super) fn of(walk: Walk, keeps: bool) -> Self {
        Self {
            proofs: keeps,
            order: walk == Walk::Iterator,
        }
    }

    /// Bytes for each record.
    fn bytes(self) -> u64 {
        let proof = u64::from(self.proofs) * size_of::<Proof>() as u64;
        let position = u64::from(self.order) * size_of::<Position>() as u64;
        size_of::<Place>() as u64 + proof + position
    }
}

/// The numbers of entries that the maps have, or need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) records: u32,
    pub(crate) threads: u32,
    /// Number of words.
    pub(crate) pool: u32,
}

impl Capacity {
    /// The need of a table of this size, if nothing else is known about it. A process has about one word in the pool.
    pub(super) fn needed_by(processes: u32, threads: u32) -> Self {
        Self {
            records: processes,
            threads,
            pool: processes,
        }
    }

    /// The need of a walk, including the entries that did not fit.
    fn needed_by_walk(run: &Run) -> Self {
        Self {
            records: run.records.saturating_add(run.lost_records),
            threads: run.threads.saturating_add(run.lost_threads),
            pool: run.pool.saturating_add(run.lost_pool),
        }
    }

    /// Adds room for processes that start until the next walk.
    pub(super) fn with_room(self) -> Self {
        Self {
            records: with_room(self.records),
            threads: with_room(self.threads),
            // Each record that is read again takes new words, until the pool is full. Then all records are read again.
            pool: with_more(self.pool, self.pool / 2).saturating_add(2 * POOL_SLACK),
        }
    }

    /// Adds room for processes that start until a walk that begins at once.
    pub(super) fn with_little_room(self) -> Self {
        let with_room = |count: u32| with_more(count, count / 64);
        Self {
            records: with_room(self.records),
            threads: with_room(self.threads),
            pool: with_room(self.pool).saturating_add(2 * POOL_SLACK),
        }
    }

    /// Whether there is room for this need.
    pub(super) fn holds(self, needed: Self) -> bool {
        self.max(needed) == self
    }

    /// The sizes to try after `times` walks in a row that lacked room. `now` is the need of the processes and threads
    /// that are listed now: a walk may stop at the first process that does not fit, without counting the others.
    pub(super) fn grown(self, run: &Run, now: Self, times: u32) -> Self {
        let walked = Self::needed_by_walk(run);
        let needed = if run.lost_records > 0 {
            walked.max(now)
        } else {
            walked
        };
        let factor = 1_u32.checked_shl(times.saturating_sub(1));
        let rising = |size: u32, lost: u32| match lost {
            0 => size,
            _ => size.saturating_mul(factor.unwrap_or(u32::MAX)),
        };
        let rising = Self {
            records: rising(self.records, run.lost_records).min(MOST_TASKS),
            threads: rising(self.threads, run.lost_threads).min(MOST_TASKS),
            pool: self.pool,
        };
        self.max(needed.with_room()).max(rising)
    }

    /// Words of the pool that records may point to before it is written again.
    pub(super) fn words(self) -> u32 {
        self.pool.saturating_sub(2 * POOL_SLACK)
    }

    /// More room in the pool, if a walk that has just written all of it has left too little: records that point into it are kept only
    /// while it takes what is read again.
    pub(super) fn with_pool(self, run: &Run, words: u32) -> Option<Self> {
        let needed = run.pool.saturating_add(run.pool / 2);
        (run.keeps != 0 && self.words() < needed).then(|| Self {
            pool: words.saturating_add(2 * POOL_SLACK),
            ..self
        })
    }

    /// Bytes of the maps.
    pub(crate) fn bytes(self, beside: Beside) -> u64 {
        u64::from(self.records) * (size_of::<Record>() as u64 + INDEX_BYTES + beside.bytes())
            + u64::from(self.threads) * size_of::<ThreadRecord>() as u64
            + u64::from(self.pool) * 8
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self {
            records: self.records.max(other.records),
            threads: self.threads.max(other.threads),
            pool: self.pool.max(other.pool),
        }
    }

    /// The sizes to shrink to. It applies to maps of which less than a quarter is used and at least half can be freed.
    fn fit(self, most: Self) -> Option<Self> {
        let room = most.with_room();
        let too_large = |size: u32, most: u32, room: u32| most < size / 4 && room <= size / 2;
        let any = too_large(self.records, most.records, room.records)
            || too_large(self.threads, most.threads, room.threads)
            || too_large(self.pool, most.pool, room.pool);
        any.then(|| Self {
            records: self.records.min(room.records),
            threads: self.threads.min(room.threads),
            pool: self.pool.min(room.pool),
        })
    }
}

/// The most entries, besides a sixteenth, that are added for processes that start in a burst. An entry takes more than
/// a kilobyte.
const BURST: u32 = 4096;

/// Half as many again, or fewer if that would be many.
fn with_room(count: u32) -> u32 {
    with_more(count, (count / 2).min(BURST + count / 16))
}

/// So many more, and a few besides, because a small table may grow by more than its part.
fn with_more(count: u32, more: u32) -> u32 {
    count.saturating_add(more).saturating_add(256)
}

/// Watches whether maps that have grown are still needed.
#[derive(Debug, Default)]
pub(super) struct Shrink {
    walks: u32,
    began_ns: u64,
    /// The largest need of a walk since then.
    most: Capacity,
}

impl Shrink {
    /// Number of walks, and their duration, that must need far less before the maps shrink: loading takes milliseconds,
    /// and another burst may come.
    const WALKS: u32 = 60;
    const NS: u64 = 10_000_000_000;

    /// Records the need of the walk that began at `now_ns`. Returns the sizes to shrink to, when it is time.
    pub(super) fn after(&mut self, run: &Run, capacity: Capacity, now_ns: u64) -> Option<Capacity> {
        if self.walks == 0 {
            self.began_ns = now_ns;
        }
        self.walks = self.walks.saturating_add(1);
        self.most = self.most.max(Capacity::needed_by_walk(run));
        let fit = capacity.fit(self.most);
        let is_time = self.walks >= Self::WALKS && now_ns.saturating_sub(self.began_ns) >= Self::NS;
        if fit.is_none() || is_time {
            *self = Self::default();
        }
        fit.filter(|_| is_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn used(records: u32, threads: u32, pool: u32) -> Run {
        Run {
            records,
            threads,
            pool,
            ..Run::default()
        }
    }

    fn opened(processes: u32, threads: u32) -> Capacity {
        Capacity::needed_by(processes, threads).with_room()
    }

    /// Simulates walks that stop at the first record without room, until all fit. Returns how often the maps grew.
    fn growths(processes: u32, listed: Option<u32>) -> u32 {
        let mut capacity = opened(100, 0);
        let mut times = 0;
        while capacity.records < processes {
            times += 1;
            let run = Run {
                lost_records: 1,
                ..used(capacity.records, 0, capacity.records)
            };
            let now = listed.map_or(Capacity::default(), |listed| {
                Capacity::needed_by(listed, listed)
            });
            let grown = capacity.grown(&run, now, times);
            assert!(grown.records > capacity.records && grown.pool >= capacity.pool);
            capacity = grown;
        }
        times
    }

    #[test]
    fn a_jump_takes_few_growths() {
        for jump in [500, 10_000, 24_000, 1_000_000] {
            assert_eq!(growths(jump, Some(jump)), 1, "{jump}");
        }
        // More processes have started since the listing; or there is no listing.
        assert_eq!(growths(24_000, Some(12_000)), 2);
        assert_eq!(growths(500, None), 1);
        assert_eq!(growths(10_000, None), 4);
        assert_eq!(growths(24_000, None), 4);
        assert!(growths(MOST_TASKS, None) <= super::super::room::MAX_GROWTHS);
    }

    #[test]
    fn for_one_walk_little_is_left_unused() {
        let needed = Capacity::needed_by(100_000, 0);
        let once = needed.with_little_room();
        assert!((101_000..102_000).contains(&once.records), "{once:?}");
        let beside = Beside::of(Walk::OpenCoded, false);
        assert!(once.bytes(beside) < needed.with_room().bytes(beside) * 19 / 20);
        assert!(once.bytes(beside) < 105_000_000, "{once:?}");
        let few = Capacity::needed_by(10, 10).with_little_room();
        assert!(few.records > 200 && few.threads > 200, "{few:?}");
    }

    #[test]
    fn a_full_count_decides_the_new_size() {
        let capacity = opened(100, 100);
        let run = Run {
            lost_threads: 5000,
            ..used(100, capacity.threads, 1)
        };
        let grown = capacity.grown(&run, Capacity::needed_by(90_000, 90_000), 1);
        assert_eq!(grown.records, capacity.records);
        assert_eq!(grown.threads, with_room(capacity.threads + 5000));
        let run = Run {
            lost_pool: 70_000,
            ..used(100, 100, capacity.pool - 1)
        };
        let grown = capacity.grown(&run, Capacity::default(), 1);
        assert!(grown.pool >= capacity.pool + 70_000 + POOL_SLACK);
        assert_eq!(grown.records, capacity.records);
    }

    #[test]
    fn no_size_overflows() {
        let all = Run {
            lost_records: u32::MAX,
            lost_threads: u32::MAX,
            lost_pool: u32::MAX,
            ..used(u32::MAX, u32::MAX, u32::MAX)
        };
        let most = Capacity::needed_by(u32::MAX, u32::MAX);
        assert_eq!(opened(1, 1).grown(&all, most, 40).records, u32::MAX);
        assert!(most.bytes(Beside::of(Walk::Iterator, true)) > u64::from(u32::MAX));
    }

    #[test]
    fn memory_for_kept_records_is_counted_only_if_they_are_kept() {
        let one = Capacity {
            records: 1,
            ..Capacity::default()
        };
        let bytes = |walk, keeps| one.bytes(Beside::of(walk, keeps));
        for walk in [Walk::OpenCoded, Walk::Iterator] {
            let keeping = bytes(walk, true) - bytes(walk, false);
            assert!(keeping > 0 && keeping <= 400, "{keeping}");
        }
        let order = bytes(Walk::Iterator, false) - bytes(Walk::OpenCoded, false);
        assert!(order <= 16, "{order}");
    }

    #[test]
    fn arrays_go_back_once_far_less_is_used_for_long() {
        let capacity = opened(24_000, 0);
        let mut shrink = Shrink::default();
        let mut after = |records, at| shrink.after(&used(records, 0, records), capacity, at);
        for at in 0..200 {
            assert_eq!(after(24_000, at * SECOND), None, "they are used");
        }
        for walk in 0..59 {
            assert_eq!(after(100, (200 + walk) * SECOND), None, "walk {walk}");
        }
        // The largest need counts.
        let fit = after(150, 259 * SECOND).expect("it is time");
        assert_eq!(fit, opened(150, 0));
        let beside = Beside::of(Walk::OpenCoded, false);
        assert!(fit.bytes(beside) < capacity.bytes(beside) / 8);
    }

    #[test]
    fn many_walks_in_a_short_time_are_not_enough() {
        let capacity = opened(24_000, 0);
        let mut shrink = Shrink::default();
        let mut fits = Vec::new();
        for walk in 0..2000 {
            let at = walk * SECOND / 100;
            fits.extend(shrink.after(&used(100, 0, 100), capacity, at).map(|_| at));
        }
        assert_eq!(
            fits,
            [10 * SECOND],
            "a second window begins after the first"
        );
    }

    #[test]
    fn a_burst_begins_the_time_anew() {
        let capacity = opened(24_000, 0);
        let mut shrink = Shrink::default();
        for walk in 0..600 {
            let records = if walk % 50 == 0 { 20_000 } else { 100 };
            let run = used(records, 0, records);
            assert_eq!(shrink.after(&run, capacity, walk * SECOND), None);
        }
    }

    #[test]
    fn many_processes_get_less_room_in_proportion() {
        assert_eq!(with_room(100), 100 + 50 + 256);
        assert_eq!(with_room(8_000), 8_000 + 4_000 + 256);
        assert_eq!(with_room(100_000), 100_000 + 4_096 + 6_250 + 256);
        let sizes: Vec<u32> = (0..200_000).step_by(100).map(with_room).collect();
        assert!(sizes.is_sorted());
        assert_eq!(with_room(u32::MAX), u32::MAX);
    }

    #[test]
    fn arrays_do_not_shrink_below_their_first_size() {
        for (processes, threads) in [(1, 0), (100, 0), (100, 3000), (24_000, 24_000)] {
            let capacity = opened(processes, threads);
            let mut shrink = Shrink::default();
            for walk in 0..200 {
                let run = used(processes, threads, processes);
                assert_eq!(shrink.after(&run, capacity, walk * SECOND), None);
            }
        }
    }

    #[test]
    fn each_array_goes_back_by_itself() {
        let capacity = Capacity {
            threads: 90_000,
            ..opened(1000, 0)
        };
        let fit = capacity.fit(Capacity::needed_by(900, 2000));
        let fit = fit.expect("threads have far too much room");
        assert_eq!(fit.threads, with_room(2000));
        assert_eq!(fit.records, with_room(900));
    }
}
