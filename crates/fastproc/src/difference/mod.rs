//! Changes between two snapshots.
//!
//! All comparisons of snapshots are here: shares and rates ([`Baseline`]), and sums over time ([`Marks`], for callers
//! that keep the marks of each process themselves).
//!
//! # The time that a rate is over
//! A snapshot is not taken at one instant. Its records are read one after the other, from
//! [`SnapshotStats::boottime_ns`](crate::SnapshotStats::boottime_ns) on and for
//! [`SnapshotStats::read_for`](crate::SnapshotStats::read_for). From the place of a record follows when it was read.
//! The growth of a counter is divided by
//! - the time between the two readings of its record, if both snapshots have it;
//! - the time between the two snapshots, if only one of them has it, because it started or ended in between. So the
//!   shares of all processes, including exited ones, add up to the CPU time of the machine;
//! - its age when it was read, if there is no earlier snapshot: then everything was zero at its start;
//! - but no less than [`SHORTEST_NS`], or the time between the two snapshots if that is less: a rate over the first
//!   microseconds of a process means little.
//!
//! # Bounds
//! The share of a process is at most the number of CPUs of the machine, and that of a thread at most 1. Shares
//! are never negative or NaN. The number of threads at the two snapshots does not limit the share, because more may
//! have existed in between. [`Marks`] says how counters that seem to run backwards are treated.

mod comparison;
mod counters;
mod ended;
mod marks;
mod per_process;

#[doc(hidden)]
pub use self::{comparison::Comparison, per_process::PerProcess};
use self::{counters::Set, ended::AwaitingExit};
pub use self::{
    counters::{Counter, TaskCounters},
    ended::{Cost, Ended},
    marks::{Growth, Marks},
};
pub use crate::records::record::is_same_start;
use crate::{
    base::host,
    records::record::{TICK_NS, ThreadRecord},
    snapshot::{Snapshot, exit::Exit, kept::Number, process::Process},
};

/// No rate is over less time than this, unless the interval between the snapshots is shorter.
pub const SHORTEST_NS: u64 = TICK_NS;

/// Data of a snapshot, to compare a later one with it.
///
/// ```no_run
/// # fn main() -> Result<(), fastproc::Error> {
/// let mut collector = fastproc::Collector::builder().fields(fastproc::Fields::TOP).open()?;
/// let mut before = fastproc::Baseline::default();
/// before.set(&collector.snapshot()?);
/// std::thread::sleep(std::time::Duration::from_secs(1));
/// let now = collector.snapshot()?;
/// for change in before.changes(&now) {
///     println!("{} used {:?} CPUs", change.process.pid(), change.cpu_share);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Baseline {
    /// The snapshot. The next one may keep records of it, which have not changed.
    number: Number,
    /// When reading the snapshot began.
    began_ns: u64,
    /// In the order of the pids.
    processes: Vec<Entry>,
    /// In the order of the thread ids.
    threads: Vec<Entry>,
    /// Processes that later snapshots lack, until their exits arrive.
    leaving: AwaitingExit,
    /// When reading began of the first snapshot, or of the last one for which exits were not recorded.
    first_ns: Option<u64>,
    /// Memory to reuse.
    spare: Option<Box<Self>>,
    /// CPUs of the machine, if the snapshots are of another machine.
    cpus: Option<u32>,
}

/// The interval between two snapshots.
#[derive(Clone, Copy, Debug)]
struct Interval {
    /// The least time that a rate is over.
    shortest_ns: u64,
    /// The least time that a rate of a process is over which started in between.
    of_born_ns: u64,
    /// CPUs of the machine.
    cpus: u32,
}

/// A process or thread as it was in the earlier snapshot.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u32,
    start_ns: u64,
    marks: Marks,
    /// The counters that are known.
    known: Set,
}

impl Entry {
    /// The entry of a process whose record is the same as before.
    fn stay(mut self, read_ns: u64) -> Self {
        self.marks.stay(read_ns);
        self
    }
}

/// A process or thread in the snapshot that is compared.
#[derive(Clone, Copy, Debug)]
struct Subject<'a> {
    process: Process<'a>,
    thread: Option<&'a ThreadRecord>,
    counters: TaskCounters,
    read_ns: u64,
}

impl<'a> Subject<'a> {
    fn process(process: Process<'a>, read_ns: u64) -> Self {
        Self {
            process,
            thread: None,
            counters: TaskCounters::from_process(process),
            read_ns,
        }
    }

    fn thread(process: Process<'a>, thread: &'a ThreadRecord, read_ns: u64) -> Self {
        Self {
            process,
            thread: Some(thread),
            counters: match process.io() {
                Some(_) => TaskCounters::from_thread(thread),
                None => TaskCounters::from_thread(thread).without_io(),
            },
            read_ns,
        }
    }

    fn id(&self) -> u32 {
        self.thread.map_or(self.process.pid(), |thread| thread.tid)
    }

    fn start_ns(&self) -> u64 {
        self.thread
            .map_or(self.process.identity().start_ns, |thread| thread.start_ns)
    }

    /// Whether `entry` is of this process or thread.
    fn is_of(&self, entry: &Entry) -> bool {
        entry.id == self.id()
            && is_same_start(entry.start_ns, self.start_ns())
            && !(self.thread.is_some()
                && entry
                    .marks
                    .are_of_another_thread(&self.counters, self.read_ns))
    }

    /// The entry to keep, given the one of the earlier snapshot.
    fn entry(&self, before: Option<&Entry>) -> Entry {
        let start_ns = self.start_ns();
        let mut marks = before.map_or_else(|| Marks::at_start(start_ns), |before| before.marks);
        marks.advance(&self.counters, self.read_ns);
        Entry {
            id: self.id(),
            start_ns,
            marks,
            known: self.counters.known,
        }
    }

    fn change(&self, before: Option<&Entry>, interval: Interval) -> Change<'a> {
        let start = Marks::at_start(self.start_ns());
        let marks = before.map_or(&start, |before| &before.marks);
        let growth = marks.growth(&self.counters, self.read_ns);
        let most = match self.thread {
            Some(_) => 1.0,
            None => f64::from(interval.cpus),
        };
        // A process that started in between did nothing before.
        let shortest_ns = match before {
            Some(_) => interval.shortest_ns,
            None => interval.of_born_ns,
        };
        let rate = |counter| growth.per_second(counter, shortest_ns);
        let share = |counter| rate(counter).map(|ns: f64| (ns / 1e9).min(most));
        let (user, system) = (share(Counter::User), share(Counter::System));
        // Both are parts of one share.
        let sum = user.unwrap_or(0.0) + system.unwrap_or(0.0);
        let part = |share: Option<f64>| share.map(|share| share * (most / sum.max(most)));
        Change {
            process: self.process,
            thread: self.thread,
            exit: None,
            born: before.is_none(),
            cpu_ns: growth.get(Counter::Run),
            cpu_share: share(Counter::Run),
            // Threads may wait at the same time. A wait counts when it ends, however long ago it began.
            wait_share: match self.thread {
                Some(_) => share(Counter::RunDelay),
                None => rate(Counter::RunDelay).map(|ns| ns / 1e9),
            },
            user_share: part(user),
            system_share: part(system),
            minflt_per_second: rate(Counter::MinorFaults),
            majflt_per_second: rate(Counter::MajorFaults),
            read_bytes_per_second: rate(Counter::ReadBytes),
            write_bytes_per_second: rate(Counter::WriteBytes),
        }
    }
}

/// A process or thread of the later snapshot, and what it did since the earlier one.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Change<'a> {
    /// The process as it is now.
    pub process: Process<'a>,
    /// The thread, if this is the change of a thread.
    pub thread: Option<&'a ThreadRecord>,
    /// The exit, if this is the change of an exited process: see [`Ended::change`].
    pub exit: Option<&'a Exit>,
    /// Whether the earlier snapshot did not have it: everything that it did was since then.
    pub born: bool,
    /// CPU time used since the earlier snapshot, or since its start, in nanoseconds. `None` without
    /// [`Fields::CPU`](crate::Fields::CPU).
    pub cpu_ns: Option<u64>,
    /// CPU time used per elapsed time: 1.0 is one whole CPU. `None` without
    /// [`Fields::CPU`](crate::Fields::CPU).
    pub cpu_share: Option<f64>,
    /// Time of waiting for a CPU per elapsed time, of all threads: 1.0 is one thread that always waits. The kernel counts a wait
    /// when it ends. `None` without [`Fields::CPU`](crate::Fields::CPU), or if the kernel does not count.
    pub wait_share: Option<f64>,
    /// CPU time in user mode per elapsed time, as the kernel shows it in `stat`. The kernel splits the
    /// measured time by samples, and corrects the split later. So over a short time this and the next value
    /// may add up to more or less than `cpu_share`, but not to more than its bound.
    pub user_share: Option<f64>,
    /// CPU time in kernel mode per elapsed time.
    pub system_share: Option<f64>,
    /// Page faults without I/O, per second.
    pub minflt_per_second: Option<f64>,
    /// Page faults with I/O, per second.
    pub majflt_per_second: Option<f64>,
    /// Bytes read from storage, per second. `None` without [`Fields::IO`](crate::Fields::IO), or if the
    /// kernel hides them.
    pub read_bytes_per_second: Option<f64>,
    /// Bytes written to storage, per second.
    pub write_bytes_per_second: Option<f64>,
}

impl<'a> Change<'a> {
    /// That of a process whose record is the same, and has these counters.
    fn none(process: Process<'a>, known: Set) -> Self {
        let zero = |counter| known.contains(counter).then_some(0.0);
        Self {
            process,
            thread: None,
            exit: None,
            born: false,
            cpu_ns: known.contains(Counter::Run).then_some(0),
            cpu_share: zero(Counter::Run),
            wait_share: zero(Counter::RunDelay),
            user_share: zero(Counter::User),
            system_share: zero(Counter::System),
            minflt_per_second: zero(Counter::MinorFaults),
            majflt_per_second: zero(Counter::MajorFaults),
            read_bytes_per_second: zero(Counter::ReadBytes),
            write_bytes_per_second: zero(Counter::WriteBytes),
        }
    }
}

/// A process of the earlier snapshot that the later one does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gone {
    /// Process id that it had.
    pub pid: u32,
    /// When it had started, in nanoseconds after boot.
    pub start_ns: u64,
}

impl Baseline {
    /// Keeps this snapshot instead of the last one. Allocates only if there are more processes than ever
    /// before.
    pub fn set(&mut self, snapshot: &Snapshot<'_>) {
        let mut next = self.spare.take().unwrap_or_default();
        next.follow(self, snapshot);
        std::mem::swap(self, &mut next);
        self.spare = Some(next);
    }

    /// Keeps this snapshot, which came after that of `before`. For callers that still compare with `before`. Call it
    /// right after the snapshot: later its records are no longer in the CPU's caches.
    pub fn follow(&mut self, before: &Self, snapshot: &Snapshot<'_>) {
        self.number = snapshot.number;
        self.began_ns = snapshot.stats().kernel_boottime_ns();
        self.cpus = before.cpus;
        let mut known = Ascending(&before.processes);
        let read_at = snapshot.read_times();
        self.processes.clear();
        self.processes.extend((0..snapshot.len()).map(|place| {
            let read_ns = read_at.of(place);
            if let Some(process) = snapshot.kept_since(before.number, place)
                && let Some(entry) = known.get(process.pid())
            {
                return entry.stay(read_ns);
            }
            let process = snapshot.process_at(place);
            let subject = Subject::process(process, read_ns);
            subject.entry(known.find(&subject))
        }));
        // Processes that ended before the first snapshot, or while exits were not recorded, are unknown.
        self.first_ns = before
            .first_ns
            .filter(|_| snapshot.exits().is_some())
            .or(Some(self.began_ns));
        self.leaving.follow(
            &before.leaving,
            &before.processes,
            &self.processes,
            snapshot,
        );
        self.threads.clear();
        self.threads.extend(
            thread_subjects(snapshot).map(|subject| subject.entry(find(&before.threads, &subject))),
        );
        self.threads.sort_unstable_by_key(|entry| entry.id);
    }

    /// Sets the number of CPUs, for snapshots of another machine.
    pub fn set_cpus(&mut self, cpus: u32) {
        self.cpus = Some(cpus.max(1));
    }

    /// The CPUs of the machine now. If the kernel does not report them, only the bound of threads applies.
    fn cpus(&self) -> u32 {
        self.cpus.unwrap_or_else(|| {
            host::online_cpus().map_or(u32::MAX, |cpus| cpus.len().max(1) as u32)
        })
    }

    /// The changes of all processes of `now`, in the order of the pids.
    pub fn changes<'a>(
        &self,
        now: &Snapshot<'a>,
    ) -> impl Iterator<Item = Change<'a>> + use<'a, '_> {
        let interval = self.interval(now);
        let mut before = Ascending(&self.processes);
        let (now, number, read_at) = (*now, self.number, now.read_times());
        (0..now.len()).map(move |place| {
            if let Some(process) = now.kept_since(number, place)
                && let Some(entry) = before.get(process.pid())
            {
                return Change::none(process, entry.known);
            }
            let subject = Subject::process(now.process_at(place), read_at.of(place));
            subject.change(before.find(&subject), interval)
        })
    }

    /// The changes of all threads of `now`, in the order of [`Snapshot::threads`].
    pub fn thread_changes<'a>(
        &self,
        now: &Snapshot<'a>,
    ) -> impl Iterator<Item = Change<'a>> + use<'a, '_> {
        let interval = self.interval(now);
        thread_subjects(now)
            .map(move |subject| subject.change(find(&self.threads, &subject), interval))
    }

    /// The processes that the earlier snapshot had and `now` lacks, in the order of the pids.
    pub fn gone(&self, now: &Snapshot<'_>) -> impl Iterator<Item = Gone> {
        self.processes
            .iter()
            .filter(|entry| {
                !now.get(entry.id).is_some_and(|process| {
                    is_same_start(entry.start_ns, process.identity().start_ns)
                })
            })
            .map(|entry| Gone {
                pid: entry.id,
                start_ns: entry.start_ns,
            })
    }

    /// The processes that ended since and that the kernel has released by now, with what they did: those of the earlier
    /// snapshot, and those that started in between. Empty if exits are not recorded.
    pub fn ended<'a>(&self, now: &Snapshot<'a>) -> impl Iterator<Item = Ended<'a>> + use<'a, '_> {
        let now_ns = now.stats().kernel_boottime_ns();
        let exits = now.exits().unwrap_or_default();
        exits.iter().filter_map(move |exit| {
            let known = self.known(exit).map(|entry| &entry.marks);
            let was_before = self
                .first_ns
                .is_none_or(|first_ns| exit.start_ns < first_ns);
            // It started before; how much it had done by then is unknown.
            if known.is_none() && was_before {
                return None;
            }
            let elapsed_ns = now_ns.saturating_sub(self.began_ns);
            Some(Ended::new(exit, known, elapsed_ns))
        })
    }

    fn known(&self, exit: &Exit) -> Option<&Entry> {
        let at = self
            .processes
            .binary_search_by_key(&exit.pid, |entry| entry.id);
        let in_last = at.ok().map(|at| &self.processes[at]);
        in_last
            .filter(|entry| is_same_start(entry.start_ns, exit.start_ns))
            .or_else(|| self.leaving.find(exit))
    }

    fn interval(&self, now: &Snapshot<'_>) -> Interval {
        let now_ns = now.stats().kernel_boottime_ns();
        let apart_ns = now_ns.saturating_sub(self.began_ns);
        let shortest_ns = apart_ns.min(SHORTEST_NS);
        Interval {
            shortest_ns,
            of_born_ns: if self.began_ns == 0 {
                shortest_ns
            } else {
                apart_ns
            },
            cpus: self.cpus(),
        }
    }
}

/// Entries, looked up by increasing ids: the next one nearly always fits.
struct Ascending<'a>(&'a [Entry]);

impl<'a> Ascending<'a> {
    fn get(&mut self, id: u32) -> Option<&'a Entry> {
        let skipped = self.0.iter().take_while(|entry| entry.id < id).count();
        self.0 = &self.0[skipped..];
        self.0.first().filter(|entry| entry.id == id)
    }

    fn find(&mut self, subject: &Subject<'_>) -> Option<&'a Entry> {
        self.get(subject.id()).filter(|entry| subject.is_of(entry))
    }
}

fn find<'a>(entries: &'a [Entry], subject: &Subject<'_>) -> Option<&'a Entry> {
    let at = entries.binary_search_by_key(&subject.id(), |entry| entry.id);
    let entry = &entries[at.ok()?];
    subject.is_of(entry).then_some(entry)
}

fn thread_subjects<'a>(snapshot: &Snapshot<'a>) -> impl Iterator<Item = Subject<'a>> + use<'a> {
    let (threads, read_at) = (snapshot.threads_with_places(), snapshot.read_times());
    threads.map(move |(place, process, thread)| Subject::thread(process, thread, read_at.of(place)))
}

#[cfg(test)]
mod tests;
