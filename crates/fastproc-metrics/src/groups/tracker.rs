//! Which process belongs to which group, and what it has done since the last look.

mod ended;
mod membership;
mod stay;
mod thread_sums;

use std::{sync::Arc, time::Duration};

use fastproc::{
    Process,
    difference::{Marks, TaskCounters, is_same_start},
    exits::Exit,
    record::{TICK_NS, ThreadRecord},
};

use self::{
    ended::find_missing,
    membership::{first_marks, first_switches},
    stay::{Part, is_still},
};
use super::{
    Count, Counts, Gauges, Group, GroupState, Limits, NONE, ThreadName,
    group::Groups,
    limits::Chooser,
    threads::{Finder, ThreadNames, TrackedThread},
};
use crate::naming::{Container, NameError, Rules, Wants};

/// In the order of [`Exit::nvcsw`] and [`Exit::nivcsw`].
const SWITCHES: [Count; 2] = [Count::Voluntary, Count::Nonvoluntary];

/// A process that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Gone<'a> {
    /// Its final values.
    pub exit: &'a Exit,
    /// Its arguments, as `/proc/PID/cmdline` had them. `None`: they are not known.
    pub cmdline: Option<&'a [u8]>,
}

/// How processes are grouped.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which process belongs to which group.
    pub rules: Rules,
    /// A process that no rule matches belongs to the group of its parent.
    pub children: bool,
    /// Processes that are in no group are looked at again each time. One that is in a group stays there, whatever name it
    /// takes and whatever it executes.
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
    /// The container.
    pub container: Arc<Container>,
}

/// Reads what no record holds.
pub trait Describe {
    /// The command lines of these processes will be wanted next, in this order.
    fn prepare(&mut self, _: Vec<Process<'_>>) {}

    /// What is wanted of this process. `false`: it is no more, or could not be read, and another look may tell.
    fn describe(&mut self, process: Process<'_>, wants: Wants, into: &mut Description) -> bool;

    /// The name of a user, or the number if it has none.
    fn username(&mut self, uid: u32) -> String;

    /// The paths of the cgroups of a process; none if it is no more.
    fn cgroups(&mut self, pid: u32) -> Vec<String>;

    /// The container of a process that has exited.
    fn container_of_exited(&mut self, exit: &Exit, wants: Wants) -> Arc<Container>;
}

/// When a snapshot was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds after boot, on the clock that start times are counted on.
    pub boottime_ns: u64,
    /// When the machine was booted, in seconds since 1970.
    pub btime: u64,
}

impl Moment {
    /// When something started, in nanoseconds since 1970, as `/proc` tells it: to a tick.
    fn start_unix_ns(self, start_ns: u64) -> u64 {
        self.btime * 1_000_000_000 + start_ns / TICK_NS * TICK_NS
    }
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
    /// It began after the first update.
    born: bool,
    /// Context switches that were counted by thread.
    switches_counted: [u64; 2],
    /// Those of the leading thread when it was seen last, its name, and whether it had others beside it.
    leader_switches: [u64; 2],
    leader_comm: [u8; 16],
    had_many_threads: bool,
    /// When a snapshot had it last.
    seen_ns: u64,
    /// See [`Member::run_ns`].
    run_ns: Option<u64>,
    marks: Marks,
    group: u32,
    /// No rule matched at this update, and the parents decide.
    orphan: bool,
    /// Could not be described.
    unknown: bool,
    /// It is in a group since this update.
    joined: bool,
    /// Other rules than before name it at this update, and it was in a group: what it did until now is counted there.
    moved: bool,
    many_threads: bool,
    /// The leading thread is among the threads of this snapshot.
    leader_seen: bool,
    /// How often the leading thread switched since the last one, and its state: these count where it is not.
    switches: [u64; 2],
    state: GroupState,
    part: Part,
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
    /// Whether it has no other thread than its first.
    pub one_thread: bool,
    /// Time that it has run, all threads together, in nanoseconds: while that is the same it has not run. `None`: it runs,
    /// or that is not known.
    pub run_ns: Option<u64>,
}

/// Follows processes from one snapshot to the next. Allocates only for processes that it has not seen before.
#[derive(Debug)]
pub struct Tracker {
    options: Options,
    /// The rules are new: the next update names every process again.
    regrouping: bool,
    groups: Groups,
    names: ThreadNames,
    chooser: Chooser,
    processes: Vec<Tracked>,
    processes_before: Vec<Tracked>,
    /// Those that the last update did not meet, in the order of their pids. A source may miss one that is there.
    missing: Vec<Tracked>,
    threads: Vec<TrackedThread>,
    threads_before: Vec<TrackedThread>,
    finder: Finder,
    description: Description,
    first_ns: Option<u64>,
    last_ns: u64,
    errors: Errors,
    name_error: Option<NameError>,
    folded_groups: u64,
    folded_threads: u64,
}

impl Tracker {
    /// Nothing is known yet. What processes did before the first update is not counted.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            regrouping: false,
            groups: Groups::default(),
            names: ThreadNames::default(),
            chooser: Chooser::default(),
            processes: Vec::new(),
            processes_before: Vec::new(),
            missing: Vec::new(),
            threads: Vec::new(),
            threads_before: Vec::new(),
            finder: Finder::default(),
            description: Description::default(),
            first_ns: None,
            last_ns: 0,
            errors: Errors::default(),
            name_error: None,
            folded_groups: 0,
            folded_threads: 0,
        }
    }

    /// Groups processes by other rules from the next update on. What a group has counted stays; what its processes do from
    /// then on belongs to the groups that they are in then. Groups that no process is in then are forgotten.
    pub fn regroup(&mut self, rules: Rules) {
        if rules != self.options.rules {
            self.options.rules = rules;
            self.regrouping = true;
        }
    }

    /// Why a process that was seen since the last call has no name although a rule matched it.
    pub fn take_name_error(&mut self) -> Option<NameError> {
        self.name_error.take()
    }

    /// What has to be known of a process before it can be named.
    pub fn wants(&self) -> Wants {
        self.options.rules.wants()
    }

    /// Whether any process may be in a group.
    pub fn has_rules(&self) -> bool {
        !self.options.rules.is_empty()
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
                one_thread: !process.many_threads,
                run_ns: process.run_ns,
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

    /// Takes a snapshot in: its processes in the order of their pids, each with whether its record may differ from that of
    /// the last update, its threads in any order, and what has ended since the last one, if that is recorded.
    pub fn update<'a>(
        &mut self,
        moment: Moment,
        processes: impl Iterator<Item = (Process<'a>, bool)> + Clone,
        threads: impl Iterator<Item = &'a ThreadRecord>,
        ended: Option<&mut [Gone<'_>]>,
        describe: &mut impl Describe,
    ) {
        if self.wants().cmdline {
            describe.prepare(self.unnamed(moment, processes.clone()));
        }
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
        let regrouping = self.regrouping;
        let was_missing = std::mem::take(&mut self.missing);
        let mut before = 0;
        // Those whose group is not settled yet. The others are summed up at once, while what is known of them is at hand.
        let mut unsettled = Vec::new();
        for (process, changed) in processes {
            let mut known = None;
            while let Some(&entry) = self
                .processes_before
                .get(before)
                .filter(|entry| known.is_none() && entry.pid <= process.pid())
            {
                before += 1;
                if is_still(&entry, process, changed) {
                    known = Some(entry);
                } else {
                    self.missing.push(entry);
                }
            }
            if let Some(entry) = known.filter(|entry| !changed && self.may_stay(moment, entry)) {
                let tracked = self.stay(moment, entry);
                self.processes.push(tracked);
                continue;
            }
            let known = known.or_else(|| {
                let start_ns = process.identity().start_ns;
                let at = find_missing(&was_missing, process.pid(), start_ns)?;
                Some(was_missing[at])
            });
            let mut tracked = self.track(moment, process, known, describe);
            if tracked.joined || tracked.orphan {
                unsettled.push((self.processes.len(), process));
            } else {
                self.sum_up(moment, &mut tracked, process);
            }
            self.processes.push(tracked);
        }
        self.missing
            .extend_from_slice(&self.processes_before[before..]);
        self.regrouping = false;
        if self.options.children {
            self.adopt();
        }
        if let Some(ended) = ended {
            self.keep_missing(moment, &was_missing);
            self.count_ended(moment, ended, describe);
        }
        for (at, process) in unsettled {
            let mut tracked = self.processes[at];
            self.sum_up(moment, &mut tracked, process);
            self.processes[at] = tracked;
        }
        self.follow_threads(moment, threads);
        self.names.forget_unused();
        self.folded_groups = self.chooser.settle(
            &mut self.groups,
            &mut self.names,
            self.options.limits,
            self.options.remove_empty || regrouping,
        );
        self.first_ns.get_or_insert(moment.boottime_ns);
        self.last_ns = moment.boottime_ns;
    }

    /// Adds what a process did to its group, and what it has.
    fn sum_up(&mut self, moment: Moment, tracked: &mut Tracked, process: Process<'_>) {
        let counters = TaskCounters::from_process(process);
        if tracked.joined {
            // It counts as if it had not been seen before.
            tracked.marks = first_marks(tracked.born, process, moment);
            tracked.switches_counted = [0; 2];
            tracked.leader_switches = first_switches(tracked.born, process);
        }
        tracked.switches = switched(tracked, process);
        tracked.part = Part::of(process);
        let growth = tracked.marks.advance(&counters, moment.boottime_ns);
        let mut grown = Counts::from(&growth);
        let Some(group) = self.groups.get_mut(tracked.group) else {
            return;
        };
        // They are counted by thread.
        grown.set(Count::Voluntary, 0);
        grown.set(Count::Nonvoluntary, 0);
        group.grown.add(&grown);
        self.add_part(tracked);
    }
}

fn is_same(entry: &Tracked, process: Process<'_>) -> bool {
    entry.pid == process.pid() && is_same_start(entry.start_ns, process.identity().start_ns)
}

/// How often the leading thread has switched since the last look. Its counters go on unless another thread took its place,
/// which executed a program: then they may be less, and the process has one thread and likely another name.
fn switched(tracked: &mut Tracked, process: Process<'_>) -> [u64; 2] {
    let now = leader_switches(process);
    let before = std::mem::replace(&mut tracked.leader_switches, now);
    let comm = process.identity().comm;
    let renamed = std::mem::replace(&mut tracked.leader_comm, comm) != comm;
    if renamed && tracked.had_many_threads && !tracked.many_threads {
        return [0; 2];
    }
    std::array::from_fn(|at| now[at].saturating_sub(before[at]))
}

/// In the order of [`SWITCHES`].
fn leader_switches(process: Process<'_>) -> [u64; 2] {
    process.cpu().map_or([0; 2], |cpu| [cpu.nvcsw, cpu.nivcsw])
}
