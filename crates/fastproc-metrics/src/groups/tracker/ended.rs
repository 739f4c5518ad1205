//! Adds processes that exited between two updates to the sums of their groups.

use std::collections::HashMap;

use fastproc::difference::{Marks, TaskCounters, is_same_start};

use super::{Describe, Gone, Moment, SWITCHES, Tracked, Tracker};
use crate::{
    groups::{Counts, NONE},
    naming::Subject,
};

/// An exit is reported at most this long after its process has left the snapshots.
const LATEST_NS: u64 = 120_000_000_000;

impl Tracker {
    /// Keeps entries of missing processes until their exits are reported.
    pub(super) fn keep_missing(&mut self, moment: Moment, was_missing: &[Tracked]) {
        let processes = &self.processes;
        let stays = |entry: &&Tracked| {
            let at = processes.binary_search_by_key(&entry.pid, |process| process.pid);
            let is_back = at.is_ok_and(|at| is_same_start(processes[at].start_ns, entry.start_ns));
            !is_back && moment.boottime_ns.saturating_sub(entry.seen_ns) < LATEST_NS
        };
        self.missing.extend(was_missing.iter().filter(stays));
        self.missing.sort_unstable_by_key(|entry| entry.pid);
    }

    /// Adds exited processes to their groups: the rest of known ones, and everything of those that came and went since
    /// the last update.
    pub(super) fn count_ended(
        &mut self,
        moment: Moment,
        ended: &mut [Gone<'_>],
        describe: &mut impl Describe,
    ) {
        // Parents before their children, which may be in the group of their parent.
        ended.sort_unstable_by_key(|gone| gone.exit.start_ns);
        let mut groups = HashMap::new();
        for gone in ended.iter() {
            let exit = gone.exit;
            let born = self
                .first_ns
                .is_some_and(|first_ns| exit.start_ns > first_ns);
            let known = find_missing(&self.missing, exit.pid, exit.start_ns);
            let known = known.map(|at| self.missing.remove(at));
            // A process that could not be named has not been counted either.
            let known = known.filter(|known| !(known.unknown && born));
            let (group, marks, counted) = match known {
                Some(known) => (
                    known.group,
                    known.marks,
                    known.born.then_some(known.switches_counted),
                ),
                None if born => {
                    let group = self.name_ended(moment, gone, &groups, describe);
                    (group, Marks::at_start(exit.start_ns), Some([0; 2]))
                }
                None => continue,
            };
            groups.insert(exit.pid, group);
            let Some(group) = self.groups.get_mut(group) else {
                continue;
            };
            let growth = marks.growth(&TaskCounters::from_exit(exit), moment.boottime_ns);
            let mut grown = Counts::from(&growth);
            // Those of all its threads, less what was counted by thread.
            let switches = [exit.nvcsw, exit.nivcsw]
                .into_iter()
                .zip(counted.into_iter().flatten());
            for (count, (all, counted)) in SWITCHES.into_iter().zip(switches) {
                grown.set(count, all.saturating_sub(counted));
            }
            group.grown.add(&grown);
        }
    }

    /// The group of an exited process that no snapshot had. `groups` has those of other exited processes.
    fn name_ended(
        &mut self,
        moment: Moment,
        gone: &Gone<'_>,
        groups: &HashMap<u32, u32>,
        describe: &mut impl Describe,
    ) -> u32 {
        let exit = gone.exit;
        let of_parent = exit.ppid.and_then(|ppid| {
            let at = self
                .processes
                .binary_search_by_key(&ppid, |process| process.pid);
            let group = at.ok().map(|at| self.processes[at].group);
            let group = group.or_else(|| groups.get(&ppid).copied());
            group.filter(|&group| group != NONE)
        });
        if let (None, Some(true), Some(group)) =
            (gone.cmdline, exit.has_program_of_parent, of_parent)
        {
            return group;
        }
        let wants = self.options.rules.wants();
        let cgroups = if wants.cgroups {
            exit.ppid.map(|ppid| describe.cgroups(ppid))
        } else {
            None
        };
        let username = if wants.username {
            describe.username(exit.euid)
        } else {
            String::new()
        };
        let container = wants
            .container
            .then(|| describe.container_of_exited(exit, wants));
        let name = self.options.rules.name_of(&Subject {
            pid: exit.pid,
            comm: exit.comm(),
            cmdline: gone.cmdline.unwrap_or_default(),
            username: &username,
            cgroups: &cgroups.unwrap_or_default(),
            container: container.as_deref(),
            start_unix_ns: moment.start_unix_ns(exit.start_ns),
        });
        let name = name.unwrap_or_else(|error| {
            self.name_error = Some(error);
            None
        });
        match name {
            Some(name) => self.groups.intern(&name),
            None if self.options.children => of_parent.unwrap_or(NONE),
            None => NONE,
        }
    }
}

/// Searches entries in the order of their pids; several may have the same pid.
pub(super) fn find_missing(missing: &[Tracked], pid: u32, start_ns: u64) -> Option<usize> {
    let first = missing.partition_point(|entry| entry.pid < pid);
    let mut of_pid = missing[first..].iter().take_while(|entry| entry.pid == pid);
    let at = of_pid.position(|entry| is_same_start(entry.start_ns, start_ns))?;
    Some(first + at)
}
