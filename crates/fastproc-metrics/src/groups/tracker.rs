//! Assigns processes to groups, and adds up what they have done since the last update.

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

/// An exited process.
#[derive(Clone, Copy, Debug)]
pub struct Gone<'a> {
    /// Its final values.
    pub exit: &'a Exit,
    /// Its arguments as in `/proc/PID/cmdline`; `None` if unknown.
    pub cmdline: Option<&'a [u8]>,
}

/// How processes are grouped.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which process belongs to which group.
    pub rules: Rules,
    /// Whether a process that no rule matches belongs to the group of its parent.
    pub children: bool,
    /// Whether the rules are applied again at each update: to processes without a group, and to those that have run since
    /// the last update, and may have executed another program or changed their names. Otherwise a process stays in its
    /// group.
    pub recheck: bool,
    /// Apply them again only to processes that are younger than this.
    pub recheck_within: Option<Duration>,
    /// Whether threads are summed up by name.
    pub threads: bool,
    /// Whether groups without processes are forgotten.
    pub remove_empty: bool,
    /// Limits on their number.
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

/// What is read of a process in order to name it.
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

/// Reads what records do not have.
pub trait Describe {
    /// Announces the processes whose command lines will be needed next, in this order.
    fn prepare(&mut self, _: Vec<Process<'_>>) {}

    /// Reads what is needed of this process. `false`: it has exited, or could not be read, and a later attempt may
    /// succeed.
    fn describe(&mut self, process: Process<'_>, wants: Wants, into: &mut Description) -> bool;

    /// The name of a user, or the number if it has none.
    fn username(&mut self, uid: u32) -> String;

    /// The paths of the cgroups of a process; empty if it has exited.
    fn cgroups(&mut self, pid: u32) -> Vec<String>;

    /// The container of a process that has exited.
    fn container_of_exited(&mut self, exit: &Exit, wants: Wants) -> Arc<Container>;
}

/// The time of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds after boot, on the clock that start times are counted on.
    pub boottime_ns: u64,
    /// When the machine was booted, in seconds since 1970.
    pub btime: u64,
}

impl Moment {
    /// The start time in nanoseconds since 1970, rounded down to a tick as in `/proc`.
    fn start_unix_ns(self, start_ns: u64) -> u64 {
        self.btime * 1_000_000_000 + start_ns / TICK_NS * TICK_NS
    }
}

/// Failures since the start.
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
    /// It started after the first update, and nothing that it did is counted in a group that it has left for none.
    born: bool,
    /// Context switches that were already counted by thread.
    switches_counted: [u64; 2],
    /// The context switches of the leading thread at the last update, its name, and whether there were other threads.
    leader_switches: [u64; 2],
    leader_comm: [u8; 16],
    had_many_threads: bool,
    /// The time of the last snapshot with it.
    seen_ns: u64,
    /// See [`Member::run_ns`].
    run_ns: Option<u64>,
    marks: Marks,
    group: u32,
    /// It is in the group of a parent, since no rule matched.
    adopted: bool,
    /// No rule matched at this update; its parents decide.
    orphan: bool,
    /// It could not be described.
    unknown: bool,
    /// It joined its group at this update.
    joined: bool,
    /// The rules are applied again at this update, and it was in a group: what it did until now is counted there.
    moved: bool,
    many_threads: bool,
    /// The leading thread is among the threads of this snapshot.
    leader_seen: bool,
    /// Context switches of the leading thread since the last update, and its state; they count if the thread is not
    /// listed.
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
    /// Whether it has only one thread.
    pub one_thread: bool,
    /// CPU time of all its threads, in nanoseconds. If it is unchanged, the process has not run. `None`: it is running,
    /// or the time is unknown.
    pub run_ns: Option<u64>,
}

/// Updates groups from one snapshot to the next. Allocates only for new processes.
#[derive(Debug)]
pub struct Tracker {
    options: Options,
    /// The rules are new, so the next update names every process again.
    regrouping: bool,
    groups: Groups,
    names: ThreadNames,
    chooser: Chooser,
    processes: Vec<Tracked>,
    processes_before: Vec<Tracked>,
    /// Those that the last update lacked, in the order of their pids. A source may miss a process that exists.
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
    /// No process is known yet. What processes did before the first update is not counted.
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

    /// Groups processes by other rules from the next update on. What a group has counted stays; what its processes do
    /// later belongs to their new groups. Groups without processes are then forgotten.
    pub fn regroup(&mut self, rules: Rules) {
        if rules != self.options.rules {
            self.options.rules = rules;
            self.regrouping = true;
        }
    }

    /// Why a process has no name although a rule matched it, if that happened since the last call.
    pub fn take_name_error(&mut self) -> Option<NameError> {
        self.name_error.take()
    }

    /// What must be read of a process before it can be named.
    pub fn wants(&self) -> Wants {
        self.options.rules.wants()
    }

    /// Whether any process may be in a group.
    pub fn has_rules(&self) -> bool {
        !self.options.rules.is_empty()
    }

    /// The groups with their own series.
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

    /// The group in whose series a member's values are: its own, or the one for all others.
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

    /// Failures since the start.
    pub fn errors(&self) -> Errors {
        self.errors
    }

    /// Processes a snapshot: its processes in the order of their pids, each with whether its record may differ from
    /// that of the last update; its threads in any order; and the exits since the last one, if they are recorded.
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
        let processes_before = std::mem::take(&mut self.processes_before);
        let mut before = 0;
        // Those whose group is not decided yet. The others are summed up at once, while their data are in the cache.
        let mut unsettled = Vec::new();
        for (process, changed) in processes {
            let mut known = None;
            while let Some(entry) = processes_before
                .get(before)
                .filter(|entry| known.is_none() && entry.pid <= process.pid())
            {
                before += 1;
                if is_still(entry, process, changed) {
                    known = Some(entry);
                } else {
                    self.missing.push(*entry);
                }
            }
            if let Some(entry) = known.filter(|entry| !changed && self.may_stay(moment, entry)) {
                let tracked = self.stay(moment, *entry);
                self.processes.push(tracked);
                continue;
            }
            let known = known.or_else(|| {
                let start_ns = process.identity().start_ns;
                let at = find_missing(&was_missing, process.pid(), start_ns)?;
                Some(&was_missing[at])
            });
            let mut tracked = self.track(moment, process, known, describe);
            if tracked.joined || tracked.orphan {
                unsettled.push((self.processes.len(), process));
            } else {
                self.sum_up(moment, &mut tracked, process);
            }
            self.processes.push(tracked);
        }
        self.missing.extend_from_slice(&processes_before[before..]);
        self.processes_before = processes_before;
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

    /// Adds what a process did, and its current values, to its group.
    fn sum_up(&mut self, moment: Moment, tracked: &mut Tracked, process: Process<'_>) {
        let counters = TaskCounters::from_process(process);
        if tracked.joined {
            // It counts as if it were new.
            tracked.marks = first_marks(tracked.born, process, moment);
            tracked.switches_counted = [0; 2];
            tracked.leader_switches = first_switches(tracked.born, process);
        }
        if tracked.moved && tracked.group == NONE {
            // If it joins a group again, what it did until now is not counted a second time.
            tracked.born = false;
        }
        tracked.switches = switched(tracked, process);
        tracked.part = Part::of(process);
        let growth = tracked.marks.advance(&counters, moment.boottime_ns);
        let mut grown = Counts::from(&growth);
        let Some(group) = self.groups.get_mut(tracked.group) else {
            return;
        };
        // Context switches are counted by thread.
        grown.set(Count::Voluntary, 0);
        grown.set(Count::Nonvoluntary, 0);
        group.grown.add(&grown);
        self.add_part(tracked);
    }
}

fn is_same(entry: &Tracked, process: Process<'_>) -> bool {
    entry.pid == process.pid() && is_same_start(entry.start_ns, process.identity().start_ns)
}

/// Context switches of the leading thread since the last update. Its counters continue unless another thread executed a
/// program and took its place. Then they may be lower, and the process has one thread and likely another name.
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
