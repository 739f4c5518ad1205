//! The group of each process.

use std::{sync::Arc, time::Duration};

use fastproc::{
    Process,
    difference::{Marks, TaskCounters},
    record::{Cpu, State},
};

use super::{
    Describe, Moment, Tracked, Tracker,
    ended::find_missing,
    leader_switches,
    stay::{Part, is_still},
};
use crate::{
    groups::{GroupState, NONE},
    naming::Subject,
};

impl Tracker {
    /// The processes to be named by the rules, in the order of their pids.
    pub(super) fn unnamed<'a>(
        &self,
        moment: Moment,
        processes: impl Iterator<Item = (Process<'a>, bool)>,
    ) -> Vec<Process<'a>> {
        let mut known = self.processes.iter().peekable();
        let unnamed = processes.filter(|&(process, changed)| {
            while known.next_if(|known| known.pid < process.pid()).is_some() {}
            let known = known.peek().copied();
            if let Some(known) = known.filter(|known| is_still(known, process, changed)) {
                return self.is_to_be_named(moment, known.start_ns, Some(known), changed);
            }
            let start_ns = process.identity().start_ns;
            let missing = find_missing(&self.missing, process.pid(), start_ns);
            let known = missing.map(|at| &self.missing[at]);
            self.is_to_be_named(moment, start_ns, known, true)
        });
        unnamed.map(|(process, _)| process).collect()
    }

    /// Whether the rules must determine the group of a process, whose record may have `changed`.
    pub(super) fn is_to_be_named(
        &self,
        moment: Moment,
        start_ns: u64,
        known: Option<&Tracked>,
        changed: bool,
    ) -> bool {
        let Some(known) = known else { return true };
        let age_ns = moment.boottime_ns.saturating_sub(start_ns);
        let is_young = |limit: Duration| u128::from(age_ns) < limit.as_nanos();
        let rechecks = || self.options.recheck && self.options.recheck_within.is_none_or(is_young);
        self.regrouping || known.unknown || (changed || known.group == NONE) && rechecks()
    }

    pub(super) fn track(
        &mut self,
        moment: Moment,
        process: Process<'_>,
        known: Option<&Tracked>,
        describe: &mut impl Describe,
    ) -> Tracked {
        let identity = process.identity();
        // Only a process that may stay has an unchanged record.
        let is_named = self.is_to_be_named(moment, identity.start_ns, known, true);
        let mut tracked = known.copied().unwrap_or_else(|| {
            let born = self
                .first_ns
                .is_some_and(|first_ns| identity.start_ns > first_ns);
            Tracked {
                pid: process.pid(),
                ppid: 0,
                start_ns: identity.start_ns,
                // Everything it did counts only if it started after the first update.
                born,
                switches_counted: [0; 2],
                leader_switches: first_switches(born, process),
                leader_comm: identity.comm,
                had_many_threads: false,
                seen_ns: moment.boottime_ns,
                run_ns: None,
                marks: first_marks(born, process, moment),
                group: NONE,
                adopted: false,
                orphan: false,
                unknown: false,
                joined: false,
                moved: false,
                many_threads: false,
                leader_seen: false,
                switches: [0; 2],
                state: GroupState::Other,
                part: Part::default(),
            }
        });
        tracked.begin(moment);
        let run_ns = process.cpu().and_then(Cpu::sum_exec_ns);
        tracked.run_ns = run_ns.filter(|_| process.state() != State::Running);
        tracked.ppid = identity.ppid;
        tracked.state = GroupState::of(process.state());
        tracked.had_many_threads = tracked.many_threads;
        tracked.many_threads = identity.num_threads > 1;
        tracked.moved = is_named && tracked.group != NONE;
        if is_named {
            self.name(moment, process, &mut tracked, describe);
            tracked.joined = tracked.group != NONE && !tracked.moved;
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
        description.container = Arc::default();
        if !describe.describe(process, wants, description) {
            self.errors.read += 1;
            // A process in a group stays there.
            tracked.unknown = tracked.group == NONE;
            return;
        }
        tracked.unknown = false;
        let comm = process.name();
        let start_ns = process.identity().start_ns;
        let name = self.options.rules.name_of(&Subject {
            pid: process.pid(),
            comm: &comm,
            cmdline: &description.cmdline,
            username: &description.username,
            cgroups: &description.cgroups,
            container: Some(&description.container),
            start_unix_ns: moment.start_unix_ns(start_ns),
        });
        let name = name.unwrap_or_else(|error| {
            self.name_error = Some(error);
            None
        });
        if let Some(name) = name {
            tracked.group = self.groups.intern(&name);
            tracked.adopted = false;
        } else if self.regrouping || !tracked.adopted {
            tracked.group = NONE;
            tracked.orphan = true;
        }
    }

    /// Gives processes that no rule matched to the group of the nearest parent that has one. The search ends at a
    /// parent that had no group before.
    pub(super) fn adopt(&mut self) {
        for at in 0..self.processes.len() {
            if !self.processes[at].orphan {
                continue;
            }
            let mut ppid = self.processes[at].ppid;
            // Chains of parents have no loops, but they were not read at one moment.
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
                    self.processes[at].joined = !self.processes[at].moved;
                    break;
                }
                if !parent.orphan {
                    break;
                }
                ppid = parent.ppid;
            }
        }
    }
}

/// Where counting begins: with the process if it started after the first update, otherwise now.
pub(super) fn first_marks(born: bool, process: Process<'_>, moment: Moment) -> Marks {
    if born {
        Marks::at_start(process.identity().start_ns)
    } else {
        Marks::at(&TaskCounters::from_process(process), moment.boottime_ns)
    }
}

/// The same for context switches of the leading thread.
pub(super) fn first_switches(born: bool, process: Process<'_>) -> [u64; 2] {
    if born {
        [0; 2]
    } else {
        leader_switches(process)
    }
}
