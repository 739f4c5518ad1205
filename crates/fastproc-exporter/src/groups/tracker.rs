//! Which process belongs to which group, and what it has done since the last look.

use std::time::Duration;

use fastproc::{
    Process,
    record::{State, ThreadRecord},
};

use super::{
    Count, Counts, Gauges, Group, GroupState, Limits, NONE, ThreadName,
    group::Groups,
    limits::Chooser,
    threads::{self, Finder, ThreadNames, TrackedThread},
};
use crate::naming::{Rules, Subject, Wants};

/// Longest clock tick that `/proc` rounds start times to (`USER_HZ` is 100).
const TICK_NS: u64 = 10_000_000;
/// `PF_FORKNOEXEC`: forked and not yet executed anything.
const FORKED: u32 = 0x40;
/// A process that is younger may be seen in the middle of exec(2), which swaps memory, name and arguments one by one.
const YOUNG_NS: u64 = 1_000_000_000;

/// How processes are grouped.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which process belongs to which group.
    pub rules: Rules,
    /// A process that no rule matches belongs to the group of its parent.
    pub children: bool,
    /// Names are looked at again each time.
    pub recheck: bool,
    /// Only of processes that are younger than this.
    pub recheck_within: Option<Duration>,
    /// Threads are summed up by name.
    pub threads: bool,
    /// Groups without processes are forgotten.
    pub remove_empty: bool,
    /// How many there may be.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            children: true,
            recheck: false,
            recheck_within: None,
            threads: true,
            remove_empty: false,
            limits: Limits::default(),
        }
    }
}

/// What is read of a process to name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// `/proc/PID/cmdline`.
    pub cmdline: Vec<u8>,
    /// Name of the effective user.
    pub username: String,
    /// Paths of the cgroups.
    pub cgroups: Vec<String>,
}

/// Reads what no record holds.
pub trait Describe {
    /// What is wanted of this process. `false`: it is no more, or could not be read, and another look may tell.
    fn describe(&mut self, process: Process<'_>, wants: Wants, into: &mut Description) -> bool;
}

/// When a snapshot was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds after boot.
    pub boottime_ns: u64,
    /// When the machine was booted, in seconds since 1970.
    pub btime: u64,
}

/// What could not be had, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Errors {
    /// Processes that could not be described.
    pub read: u64,
    /// Processes whose I/O counters were hidden, each time.
    pub partial: u64,
}

/// A process at the last update.
#[derive(Clone, Copy, Debug)]
struct Tracked {
    pid: u32,
    ppid: u32,
    start_ns: u64,
    seen: Counts,
    comm: [u8; 16],
    group: u32,
    /// Has not executed anything since it was forked.
    forked: bool,
    io_known: bool,
    /// Was named while it was young or executing, and is named once more.
    provisional: bool,
    /// No rule matched at this update, and the parents decide.
    orphan: bool,
    /// The parents have decided.
    adopted: bool,
    /// Could not be described.
    unknown: bool,
    many_threads: bool,
    /// Threads of it in this snapshot.
    threads_seen: u32,
    /// What the leading thread did since, and its state: these count where no thread is known.
    switches: Counts,
    state: GroupState,
}

/// A process that belongs to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Process id.
    pub pid: u32,
    /// Start, in nanoseconds after boot.
    pub start_ns: u64,
    /// Its group: an index for [`Tracker::shown_group`].
    pub group: u32,
}

/// Follows processes from one snapshot to the next. Allocates only for processes that it has not seen before.
#[derive(Debug)]
pub struct Tracker {
    options: Options,
    groups: Groups,
    names: ThreadNames,
    chooser: Chooser,
    processes: Vec<Tracked>,
    processes_before: Vec<Tracked>,
    threads: Vec<TrackedThread>,
    threads_before: Vec<TrackedThread>,
    finder: Finder,
    description: Description,
    first_ns: Option<u64>,
    last_ns: u64,
    errors: Errors,
    folded_groups: u64,
    folded_threads: u64,
}

impl Tracker {
    /// Nothing is known yet. What processes did before the first update is not counted.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            groups: Groups::default(),
            names: ThreadNames::default(),
            chooser: Chooser::default(),
            processes: Vec::new(),
            processes_before: Vec::new(),
            threads: Vec::new(),
            threads_before: Vec::new(),
            finder: Finder::default(),
            description: Description::default(),
            first_ns: None,
            last_ns: 0,
            errors: Errors::default(),
            folded_groups: 0,
            folded_threads: 0,
        }
    }

    /// What has to be known of a process before it can be named.
    pub fn wants(&self) -> Wants {
        self.options.rules.wants()
    }

    /// The groups that have series of their own.
    pub fn groups(&self) -> impl Iterator<Item = &Group> + Clone {
        self.groups
            .iter()
            .map(|(_, group)| group)
            .filter(|group| group.shown)
    }

    /// The names of threads in those groups.
    pub fn thread_names(&self) -> impl Iterator<Item = &ThreadName> + Clone {
        self.names
            .iter()
            .filter(|name| self.groups.get(name.group).is_some_and(|group| group.shown))
    }

    /// The processes that belong to a group, in the order of their pids.
    pub fn members(&self) -> impl Iterator<Item = Member> + Clone {
        self.processes
            .iter()
            .filter(|process| process.group != NONE)
            .map(|process| Member {
                pid: process.pid,
                start_ns: process.start_ns,
                group: process.group,
            })
    }

    /// The group that shows a member's values: its own, or the one of all others.
    pub fn shown_group(&self, group: u32) -> Option<u32> {
        if self.groups.get(group)?.shown {
            return Some(group);
        }
        self.groups.find(super::OTHER)
    }

    /// A group by its index, with the index.
    pub fn indexed_groups(&self) -> impl Iterator<Item = (u32, &Group)> + Clone {
        self.groups.iter().filter(|(_, group)| group.shown)
    }

    /// Groups that were folded into one at the last update.
    pub fn folded_groups(&self) -> u64 {
        self.folded_groups
    }

    /// Threads whose names were folded into one at the last update.
    pub fn folded_threads(&self) -> u64 {
        self.folded_threads
    }

    /// What could not be had, since the start.
    pub fn errors(&self) -> Errors {
        self.errors
    }

    /// Takes a snapshot in: its processes in the order of their pids, and its threads in any.
    pub fn update<'a>(
        &mut self,
        moment: Moment,
        processes: impl Iterator<Item = Process<'a>> + Clone,
        threads: impl Iterator<Item = &'a ThreadRecord> + Clone,
        describe: &mut impl Describe,
    ) {
        for (_, group) in self.groups.iter_mut() {
            group.grown = Counts::default();
            group.now = Gauges::default();
        }
        for name in self.names.iter_mut() {
            name.grown = Counts::default();
            name.count = 0;
        }
        std::mem::swap(&mut self.processes, &mut self.processes_before);
        self.processes.clear();
        let mut before = 0;
        for process in processes.clone() {
            while self
                .processes_before
                .get(before)
                .is_some_and(|entry| entry.pid < process.pid())
            {
                before += 1;
            }
            let known = self
                .processes_before
                .get(before)
                .copied()
                .filter(|entry| is_same(entry, process));
            let tracked = self.track(moment, process, known, describe);
            self.processes.push(tracked);
        }
        if self.options.children {
            self.adopt();
        }
        self.sum_up(processes);
        self.follow_threads(threads);
        self.names.forget_unused();
        self.folded_groups = self.chooser.settle(
            &mut self.groups,
            &mut self.names,
            self.options.limits,
            self.options.remove_empty,
        );
        self.first_ns.get_or_insert(moment.boottime_ns);
        self.last_ns = moment.boottime_ns;
    }

    fn track(
        &mut self,
        moment: Moment,
        process: Process<'_>,
        known: Option<Tracked>,
        describe: &mut impl Describe,
    ) -> Tracked {
        let identity = process.identity();
        let forked = identity.flags & FORKED != 0;
        let fresh = known.is_none();
        let mut tracked = known.unwrap_or_else(|| {
            let born = self
                .first_ns
                .is_some_and(|first_ns| identity.start_ns > first_ns);
            Tracked {
                pid: process.pid(),
                ppid: 0,
                start_ns: identity.start_ns,
                // All that it ever did is new only if it began after we did.
                seen: if born {
                    Counts::default()
                } else {
                    counts(process)
                },
                comm: identity.comm,
                group: NONE,
                forked,
                io_known: born || process.io().is_some(),
                provisional: false,
                orphan: false,
                adopted: false,
                unknown: false,
                many_threads: false,
                threads_seen: 0,
                switches: Counts::default(),
                state: GroupState::Other,
            }
        });
        let executed = tracked.forked && !forked;
        let renamed = tracked.comm != identity.comm;
        let recheck = self.options.recheck
            && self.options.recheck_within.is_none_or(|limit| {
                let age_ns = moment.boottime_ns.saturating_sub(identity.start_ns);
                u128::from(age_ns) < limit.as_nanos()
            });
        tracked.ppid = identity.ppid;
        tracked.comm = identity.comm;
        tracked.forked = forked;
        tracked.orphan = false;
        tracked.threads_seen = 0;
        tracked.state = GroupState::of(process.state());
        tracked.many_threads = identity.num_threads > 1;
        let ask_again = tracked.unknown
            || executed
            || tracked.provisional
            || recheck && (renamed || tracked.group == NONE);
        if fresh || ask_again {
            let kept =
                (tracked.provisional && !executed && tracked.adopted).then_some(tracked.group);
            self.name(moment, process, &mut tracked, describe);
            // Parents that have decided once may be gone.
            if let Some(group) = kept.filter(|_| tracked.orphan) {
                tracked.group = group;
                tracked.adopted = true;
                tracked.orphan = false;
            }
            let age_ns = moment.boottime_ns.saturating_sub(identity.start_ns);
            tracked.provisional = executed || fresh && age_ns < YOUNG_NS;
        }
        tracked
    }

    /// Asks the rules for the group of this process.
    fn name(
        &mut self,
        moment: Moment,
        process: Process<'_>,
        tracked: &mut Tracked,
        describe: &mut impl Describe,
    ) {
        let wants = self.options.rules.wants();
        let description = &mut self.description;
        description.cmdline.clear();
        description.username.clear();
        description.cgroups.clear();
        tracked.unknown = !describe.describe(process, wants, description);
        if tracked.unknown {
            self.errors.read += 1;
            return;
        }
        let comm = process.name();
        let start_ns = process.identity().start_ns;
        let name = self.options.rules.name_of(&Subject {
            pid: process.pid(),
            comm: &comm,
            cmdline: &description.cmdline,
            username: &description.username,
            cgroups: &description.cgroups,
            start_unix_ns: moment.btime * 1_000_000_000 + start_ns / TICK_NS * TICK_NS,
        });
        tracked.adopted = false;
        if let Some(name) = name {
            tracked.group = self.groups.intern(&name);
        } else {
            tracked.group = NONE;
            tracked.orphan = true;
        }
    }

    /// Gives processes that no rule matched to the group of the nearest parent that has one. The search ends at a
    /// parent that was left alone before.
    fn adopt(&mut self) {
        for at in 0..self.processes.len() {
            if !self.processes[at].orphan {
                continue;
            }
            let mut ppid = self.processes[at].ppid;
            // A chain of parents has no loop, but was not read at one moment.
            for _ in 0..self.processes.len() {
                let parent = self
                    .processes
                    .binary_search_by_key(&ppid, |entry| entry.pid);
                let Ok(parent) = parent.map(|parent| &self.processes[parent]) else {
                    break;
                };
                if parent.group != NONE {
                    self.processes[at].group = parent.group;
                    self.processes[at].adopted = true;
                    break;
                }
                if !parent.orphan {
                    break;
                }
                ppid = parent.ppid;
            }
        }
    }

    fn sum_up<'a>(&mut self, processes: impl Iterator<Item = Process<'a>>) {
        for (tracked, process) in self.processes.iter_mut().zip(processes) {
            let mut now = counts(process);
            if process.io().is_none() {
                now.set(Count::Read, tracked.seen.get(Count::Read));
                now.set(Count::Write, tracked.seen.get(Count::Write));
            } else if !tracked.io_known {
                tracked.seen.set(Count::Read, now.get(Count::Read));
                tracked.seen.set(Count::Write, now.get(Count::Write));
                tracked.io_known = true;
            }
            let mut grown = tracked.seen.grow_to(&now);
            let Some(group) = self.groups.get_mut(tracked.group) else {
                continue;
            };
            self.errors.partial += u64::from(process.io().is_none());
            // Those of the leading thread: they count if its threads are not known one by one.
            tracked.switches = grown;
            grown.set(Count::Voluntary, 0);
            grown.set(Count::Nonvoluntary, 0);
            group.grown.add(&grown);
            let gauges = &mut group.now;
            gauges.procs += 1;
            gauges.threads += u64::from(process.identity().num_threads);
            if let Some(memory) = process.memory() {
                gauges.resident += memory.rss();
                gauges.virt += memory.vsize;
                gauges.swapped += memory.swap;
            }
            gauges.started(Some(tracked.start_ns));
        }
    }

    /// Context switches and states are of threads, and those of a process are the sums over them.
    fn follow_threads<'a>(&mut self, threads: impl Iterator<Item = &'a ThreadRecord>) {
        std::mem::swap(&mut self.threads, &mut self.threads_before);
        self.threads.clear();
        self.folded_threads = 0;
        self.finder.begin();
        for thread in threads {
            let key = threads::key(thread);
            let known = self
                .finder
                .find(&self.threads_before, key)
                .map(|at| self.threads_before[at])
                .filter(|known| known.start_ns.abs_diff(thread.start_ns) < TICK_NS);
            let now = threads::counts(thread);
            let mut tracked = known.unwrap_or_else(|| {
                let born = self.first_ns.is_some() && thread.start_ns > self.last_ns;
                TrackedThread {
                    key,
                    start_ns: thread.start_ns,
                    seen: if born { Counts::default() } else { now },
                    comm: thread.comm,
                    group: NONE,
                    name: NONE,
                    folded: false,
                    process: 0,
                }
            });
            let grown = tracked.seen.grow_to(&now);
            if let Some(process) = find_process(&self.processes, tracked.process, thread.tgid) {
                tracked.process = process as u32;
                let process = &mut self.processes[process];
                process.threads_seen += 1;
                if let Some(group) = self.groups.get_mut(process.group) {
                    group.grown.add_switches(&grown);
                    let state = GroupState::of(State::from_bits(thread.state_bits));
                    group.now.states[state as usize] += 1;
                    let group = process.group;
                    if self.options.threads && process.many_threads {
                        self.name_thread(thread, group, &mut tracked, &grown);
                    } else {
                        tracked.name = NONE;
                    }
                }
            }
            self.threads.push(tracked);
        }
        for process in self
            .processes
            .iter()
            .filter(|process| process.threads_seen == 0)
        {
            if let Some(group) = self.groups.get_mut(process.group) {
                group.grown.add_switches(&process.switches);
                group.now.states[process.state as usize] += 1;
            }
        }
    }

    fn name_thread(
        &mut self,
        thread: &ThreadRecord,
        group: u32,
        tracked: &mut TrackedThread,
        grown: &Counts,
    ) {
        if tracked.name == NONE || tracked.comm != thread.comm || tracked.group != group {
            let labels = self.groups.get(group).map_or("", |group| &group.labels);
            let most = self.options.limits.thread_names;
            (tracked.name, tracked.folded) = self.names.intern(group, labels, thread.comm, most);
            tracked.comm = thread.comm;
            tracked.group = group;
        }
        self.folded_threads += u64::from(tracked.folded);
        if let Some(name) = self.names.get_mut(tracked.name) {
            name.grown.add(grown);
            name.count += 1;
        }
    }
}

/// The place of a process, which is mostly where it was the last time.
fn find_process(processes: &[Tracked], hint: u32, pid: u32) -> Option<usize> {
    let hint = hint as usize;
    if processes
        .get(hint)
        .is_some_and(|process| process.pid == pid)
    {
        return Some(hint);
    }
    processes
        .binary_search_by_key(&pid, |process| process.pid)
        .ok()
}

fn is_same(entry: &Tracked, process: Process<'_>) -> bool {
    entry.pid == process.pid() && entry.start_ns.abs_diff(process.identity().start_ns) < TICK_NS
}

fn counts(process: Process<'_>) -> Counts {
    let (cpu, io) = (process.cpu(), process.io());
    Counts([
        cpu.map_or(0, |cpu| cpu.utime_ns),
        cpu.map_or(0, |cpu| cpu.stime_ns),
        io.map_or(0, |io| io.read_bytes),
        io.map_or(0, |io| io.write_bytes),
        cpu.map_or(0, |cpu| cpu.majflt),
        cpu.map_or(0, |cpu| cpu.minflt),
        cpu.map_or(0, |cpu| cpu.nvcsw),
        cpu.map_or(0, |cpu| cpu.nivcsw),
    ])
}
