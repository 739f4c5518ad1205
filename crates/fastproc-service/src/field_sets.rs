//! Collectors: one for each of a few sets of fields, since the cost of a walk depends on what it collects.

use std::time::{Duration, Instant};

use fastproc::{Collector, Error, Fields, Refusal, Snapshot, SourceKind};

use crate::changes::Changes;

/// What `pgrep` and `top` show by default: also the user of a process, and its priority.
const USERS: Fields = Fields::TOP.union(Fields::USERS).union(Fields::SCHEDULING);

/// What procps's `ps` requests, whatever it shows, if its user sees everything.
const PS: Fields = USERS.union(Fields::SIGNALS);

/// What monitors request, and what decides about visibility; without rarely requested groups: addresses, signals,
/// limits, numbers in nested namespaces.
const MONITOR: Fields = USERS
    .union(Fields::CREDENTIALS)
    .union(Fields::SCHEDULING_DETAILS)
    .union(Fields::MEMORY_DETAILS)
    .union(Fields::IO)
    .union(Fields::CGROUP);

/// The number of sets.
pub(crate) const COUNT: usize = 6;

/// The sets, the cheapest first.
const FIELD_SETS: [Fields; COUNT] = [
    Fields::TOP,
    USERS,
    PS,
    MONITOR,
    Fields::all().difference(Fields::THREADS),
    Fields::all(),
];

/// When the arrays of a collector are released.
#[derive(Clone, Copy, Debug)]
struct Release {
    /// They have room for at least so many processes. With 8192 they take more than ten megabytes.
    processes: u32,
    /// Nobody has used them for so long. Making room again takes some tenths of a second, which are charged to nobody.
    unused: Duration,
    /// If there was no room when a request came, it is sought again after this time.
    retry: Duration,
}

impl Default for Release {
    fn default() -> Self {
        Self {
            processes: 8192,
            unused: Duration::from_secs(600),
            retry: Duration::from_secs(10),
        }
    }
}

/// A collector. If it could not be opened, the next request tries again.
#[derive(Debug)]
pub(crate) struct FieldSet {
    fields: Fields,
    collector: Option<Collector>,
    changes: Changes,
    /// When the last walk began, and its generation.
    walked: Option<(Instant, u64)>,
    /// The number of the last exit before the walk ended.
    exits: u64,
    arrays: Arrays,
}

/// What is known of a collector's arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrays {
    /// They are small, or the source has none.
    Small,
    /// They are released then, if no walk uses them until then.
    Until(Instant),
    Released,
    /// There was no room for them; until then no request tries again.
    Refused(Instant),
}

/// There is no room for the arrays of a set of fields.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoRoom {
    /// It was tried.
    #[error("there is no room for the arrays of a snapshot")]
    Now(#[source] Error),
    /// It was tried a while ago.
    #[error("there was no room for the arrays of a snapshot")]
    Before,
}

/// All collectors.
#[derive(Debug)]
pub(crate) struct FieldSets {
    source: Option<SourceKind>,
    release: Release,
    all: Vec<FieldSet>,
    pub(crate) walks: u64,
    /// Records that all walks kept, and kept ones that were read all the same and differed.
    pub(crate) kept: u64,
    pub(crate) disproven: u64,
    generation: u64,
}

impl FieldSets {
    /// Opens all collectors, so that failures are known at once. If their arrays are large, they are released again, until a
    /// request needs them. Generations begin at `first`.
    pub(crate) fn open(source: Option<SourceKind>, first: u64) -> Result<Self, Error> {
        Self::open_with(source, first, Release::default())
    }

    fn open_with(source: Option<SourceKind>, first: u64, release: Release) -> Result<Self, Error> {
        let sets = FIELD_SETS.map(|fields| FieldSet {
            fields,
            collector: None,
            changes: Changes::default(),
            walked: None,
            exits: 0,
            arrays: Arrays::Small,
        });
        let mut sets = Self {
            source,
            release,
            all: sets.into(),
            walks: 0,
            kept: 0,
            disproven: 0,
            generation: first,
        };
        for at in 0..FIELD_SETS.len() {
            sets.collector(at)?;
            sets.note_use(at);
            sets.release(at);
        }
        Ok(sets)
    }

    /// The source of the first collector.
    pub(crate) fn source(&self) -> SourceKind {
        let first = self.all.first().and_then(|set| set.collector.as_ref());
        first.map_or(SourceKind::Procfs, Collector::source)
    }

    pub(crate) fn refused(&self) -> &[Refusal] {
        let first = self.all.first().and_then(|set| set.collector.as_ref());
        first.map_or(&[], Collector::refused)
    }

    /// The cheapest set that has these fields; while there is no room for its arrays, the next one that has room.
    pub(crate) fn find(&self, fields: Fields) -> Option<usize> {
        let mut all = self.all.iter();
        let cheapest = all.position(|set| set.fields.contains(fields))?;
        let has_room = |set: &FieldSet| matches!(set.arrays, Arrays::Small | Arrays::Until(_));
        let mut next = None;
        if matches!(self.all[cheapest].arrays, Arrays::Refused(until) if Instant::now() < until) {
            next = all.position(|set| set.fields.contains(fields) && has_room(set));
        }
        Some(next.map_or(cheapest, |next| cheapest + 1 + next))
    }

    /// Makes room in the arrays of a set, if they were released. What failed is not tried again for a while.
    pub(crate) fn make_room(&mut self, at: usize) -> Result<(), NoRoom> {
        match self.all[at].arrays {
            Arrays::Small | Arrays::Until(_) => return Ok(()),
            Arrays::Refused(until) if Instant::now() < until => {
                return Err(NoRoom::Before);
            }
            Arrays::Released | Arrays::Refused(_) => (),
        }
        let made = self.collector(at).and_then(Collector::reserve_arrays);
        if let Err(error) = made {
            self.all[at].arrays = Arrays::Refused(Instant::now() + self.release.retry);
            return Err(NoRoom::Now(error));
        }
        self.note_use(at);
        Ok(())
    }

    /// Notes that the arrays of a set of fields are used now.
    fn note_use(&mut self, at: usize) {
        let set = &mut self.all[at];
        let arrays = set.collector.as_ref().and_then(Collector::arrays);
        let is_large = arrays.is_some_and(|arrays| arrays.processes >= self.release.processes);
        set.arrays = if is_large {
            Arrays::Until(Instant::now() + self.release.unused)
        } else {
            Arrays::Small
        };
    }

    /// When the next arrays are to be released.
    pub(crate) fn next_release(&self) -> Option<Instant> {
        let due = self.all.iter().filter_map(|set| match set.arrays {
            Arrays::Until(at) => Some(at),
            _ => None,
        });
        due.min()
    }

    /// Releases the arrays that nobody has used for long.
    pub(crate) fn release_unused(&mut self) {
        let now = Instant::now();
        for at in 0..self.all.len() {
            if matches!(self.all[at].arrays, Arrays::Until(due) if due <= now) {
                self.release(at);
            }
        }
    }

    /// Releases the arrays of a set, if they are large. What fails is tried again later.
    fn release(&mut self, at: usize) {
        let set = &mut self.all[at];
        if let (Arrays::Until(_), Some(collector)) = (set.arrays, &mut set.collector) {
            set.walked = None;
            set.changes = Changes::default();
            set.arrays = match collector.release_arrays() {
                Ok(()) => Arrays::Released,
                Err(_) => Arrays::Until(Instant::now() + self.release.unused),
            };
        }
    }

    /// The collector of a set of fields.
    pub(crate) fn collector(&mut self, at: usize) -> Result<&mut Collector, Error> {
        let set = &mut self.all[at];
        Ok(match &mut set.collector {
            Some(collector) => collector,
            none => {
                let builder = Collector::builder()
                    .fields(set.fields)
                    .source(self.source)
                    .service_socket(None);
                none.insert(builder.open()?)
            }
        })
    }

    /// The generation of the last walk of this set, if it began at `since` or later. With `None` any walk will do.
    pub(crate) fn walked_since(&self, at: usize, since: Option<Instant>) -> Option<u64> {
        let (walked, generation) = self.all[at].walked?;
        since
            .is_none_or(|since| walked >= since)
            .then_some(generation)
    }

    /// Walks. Returns the generation.
    pub(crate) fn walk(&mut self, at: usize) -> Result<u64, Error> {
        self.all[at].walked = None;
        let began = Instant::now();
        let stats = self.collector(at)?.snapshot()?.stats();
        self.walks += 1;
        self.kept += u64::from(stats.kept);
        self.disproven += u64::from(stats.disproven);
        self.generation += 1;
        self.note_use(at);
        let set = &mut self.all[at];
        if let Some(snapshot) = set.collector.as_ref().and_then(Collector::latest) {
            set.changes.update(&snapshot, self.generation);
        }
        set.walked = Some((began, self.generation));
        Ok(self.generation)
    }

    /// The snapshot of the last walk, and which records changed when.
    pub(crate) fn latest(&self, at: usize) -> Option<(Snapshot<'_>, &Changes)> {
        let set = &self.all[at];
        Some((set.collector.as_ref()?.latest()?, &set.changes))
    }

    /// The number of the last exit before the last walk ended; 0 if exits were not recorded.
    pub(crate) fn exits(&self, at: usize) -> u64 {
        self.all[at].exits
    }

    pub(crate) fn set_exits(&mut self, at: usize, last: u64) {
        self.all[at].exits = last;
    }

    /// The fields of each set, how old its last walk is, and the bytes of its arrays.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (Fields, Option<Duration>, u64)> + '_ {
        self.all.iter().filter_map(|set| {
            let arrays = set.collector.as_ref()?.arrays();
            let age = set.walked.map(|(at, _)| at.elapsed());
            Some((set.fields, age, arrays.map_or(0, |arrays| arrays.bytes)))
        })
    }
}

#[cfg(test)]
mod tests {
    use fastproc_testbed::{gate, needs};

    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// Sets of fields whose arrays all count as large. Needs root and BPF.
    fn large(unused: Duration) -> FieldSets {
        let release = Release {
            processes: 1,
            unused,
            retry: LONG,
        };
        FieldSets::open_with(Some(SourceKind::Bpf), 5, release).expect("there is BPF")
    }

    #[test]
    fn large_arrays_are_released_until_they_are_needed_and_when_nobody_uses_them() {
        needs!(gate::bpf());
        let mut sets = large(Duration::ZERO);
        assert_eq!(sets.sizes().count(), COUNT);
        assert_eq!(sets.next_release(), None, "all are released");
        let at = sets.find(Fields::SIGNALS).expect("a set has them");
        let mut last = 5;
        for _ in 0..2 {
            assert!(sets.latest(at).is_none());
            assert_eq!(sets.walked_since(at, None), None);
            sets.make_room(at).expect("there is memory");
            let generation = sets.walk(at).expect("it can be read");
            assert_eq!(sets.walked_since(at, None), Some(generation));
            assert!(generation > last);
            last = generation;
            let (snapshot, _) = sets.latest(at).expect("a snapshot");
            assert_eq!(snapshot.stats().grown, 0, "there is room already");
            let own = snapshot.get(std::process::id()).expect("this process");
            assert!(own.signals().is_some());
            assert!(sets.next_release().is_some());
            sets.release_unused();
            assert_eq!(sets.next_release(), None);
        }
        // A walk makes room by itself.
        sets.walk(at).expect("it can be read");
        assert!(sets.latest(at).is_some());
    }

    #[test]
    fn while_there_is_no_room_for_a_tier_another_one_serves() {
        needs!(gate::bpf());
        let mut sets = large(LONG);
        let refused = sets.find(Fields::SIGNALS).expect("a set has them");
        let later = Instant::now() + LONG;
        sets.all[refused].arrays = Arrays::Refused(later);
        assert_eq!(sets.find(Fields::SIGNALS), Some(refused), "no other has");
        assert!(sets.make_room(refused).is_err(), "it is too early");
        sets.make_room(COUNT - 1).expect("there is memory");
        assert_eq!(sets.find(Fields::SIGNALS), Some(COUNT - 1));
        assert_ne!(sets.find(Fields::TOP), Some(COUNT - 1));
        sets.release_unused();
        assert_eq!(sets.find(Fields::SIGNALS), Some(COUNT - 1), "it is used");
        sets.all[refused].arrays = Arrays::Refused(Instant::now());
        assert_eq!(sets.find(Fields::SIGNALS), Some(refused), "it is time");
        sets.make_room(refused).expect("there is memory");
        sets.walk(refused).expect("it can be read");
    }

    #[test]
    fn small_arrays_stay() {
        needs!(gate::bpf());
        let release = Release {
            processes: u32::MAX,
            unused: Duration::ZERO,
            retry: LONG,
        };
        let mut sets =
            FieldSets::open_with(Some(SourceKind::Bpf), 5, release).expect("there is BPF");
        sets.walk(0).expect("it can be read");
        assert_eq!(sets.next_release(), None);
        sets.release_unused();
        assert!(sets.latest(0).is_some());
    }

    #[test]
    fn a_walk_is_handed_out_until_it_is_as_old_as_its_reader_allows() {
        const AGE: Duration = Duration::from_secs(15);
        let began = Instant::now().checked_sub(AGE);
        let sets = FieldSets {
            source: None,
            all: vec![FieldSet {
                fields: Fields::TOP,
                collector: None,
                changes: Changes::default(),
                walked: began.map(|began| (began, 7)),
                exits: 0,
                arrays: Arrays::Small,
            }],
            release: Release::default(),
            walks: 0,
            kept: 0,
            disproven: 0,
            generation: 7,
        };
        let walked = |most| sets.walked_since(0, Instant::now().checked_sub(most));
        for most in [Duration::ZERO, AGE / 2, AGE * 2 / 3] {
            assert_eq!(walked(most), None, "{most:?}");
        }
        assert_eq!(walked(Duration::from_secs(3600)), Some(7));
    }
}
