//! Adds threads to the sums of their groups.

use fastproc::{
    difference::{Marks, TaskCounters, is_same_start},
    record::{State, TICK_NS, ThreadRecord},
};

use super::{Moment, SWITCHES, Tracked, Tracker};
use crate::groups::{
    Counts, GroupState, NONE,
    threads::{self, TrackedThread},
};

impl Tracker {
    /// Context switches and states belong to threads; those of a process are the sums. The only thread of a process
    /// need not be listed, since its process has the same values.
    pub(super) fn follow_threads<'a>(
        &mut self,
        moment: Moment,
        threads: impl Iterator<Item = &'a ThreadRecord>,
    ) {
        std::mem::swap(&mut self.threads, &mut self.threads_before);
        self.threads.clear();
        self.folded_threads = 0;
        self.finder.begin();
        let now_ns = moment.boottime_ns;
        for thread in threads {
            let key = threads::key(thread);
            let now = TaskCounters::from_thread(thread);
            let listed = self.finder.find(&self.threads_before, key);
            let mut known = listed.map(|at| self.threads_before[at]).filter(|known| {
                is_same_start(known.start_ns, thread.start_ns)
                    && !known.marks.are_of_another_thread(&now, now_ns)
            });
            let hint = known.map_or(0, |known| known.process);
            let process = find_process(&self.processes, hint, thread.tgid);
            let joined = process.filter(|&at| self.processes[at].joined);
            if joined.is_some() {
                known = None;
            }
            let mut tracked = known.unwrap_or_else(|| {
                // The text gives its start in ticks, rounded down.
                let born_by_ns = thread.start_ns.saturating_add(TICK_NS);
                let since_ns = match joined.map(|at| self.processes[at].born) {
                    None => self.last_ns,
                    Some(true) => 0,
                    Some(false) => u64::MAX,
                };
                let born = self.first_ns.is_some() && born_by_ns > since_ns;
                TrackedThread {
                    key,
                    start_ns: thread.start_ns,
                    marks: if born {
                        Marks::at_start(thread.start_ns)
                    } else {
                        Marks::at(&now, now_ns)
                    },
                    comm: thread.comm,
                    group: NONE,
                    name: NONE,
                    folded: false,
                    process: 0,
                }
            });
            let mut grown = Counts::from(&tracked.marks.advance(&now, now_ns));
            if let Some(process) = process {
                tracked.process = process as u32;
                let process = &mut self.processes[process];
                if thread.tid == thread.tgid {
                    process.leader_seen = true;
                    // It was the only thread and was not listed, so its process shows what it did.
                    if listed.is_none() && !process.had_many_threads {
                        for (count, switched) in SWITCHES.into_iter().zip(process.switches) {
                            grown.set(count, switched);
                        }
                    }
                }
                for (counted, count) in process.switches_counted.iter_mut().zip(SWITCHES) {
                    *counted += grown.get(count);
                }
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
        for process in &mut self.processes {
            if process.leader_seen {
                continue;
            }
            if let Some(group) = self.groups.get_mut(process.group) {
                let counts = process.switches_counted.iter_mut().zip(SWITCHES);
                for ((counted, count), switched) in counts.zip(process.switches) {
                    *counted += switched;
                    group.grown.add_one(count, switched);
                }
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

/// The index of a process, mostly the same as the last time.
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
