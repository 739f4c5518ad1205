//! The processes of each cgroup: how many there are, what their tasks do, and which one started first.

use fastproc::{
    Process, Snapshot,
    cgroups::Ids,
    difference::{PerProcess, is_same_start},
    record::State,
};

use super::scheduled::{self, Numbers, Task};

/// The processes of cgroups without those of their descendants, by the ids of the cgroups.
#[derive(Debug, Default)]
pub(super) struct Members {
    each: PerProcess<Member>,
    /// `None`: of some process the source does not know the cgroup.
    sums: Option<Ids<Own>>,
}

/// What a cgroup has itself, without its descendants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// Processes.
    pub processes: u64,
    /// Tasks, which are threads, by state: those of [`STATES`].
    pub tasks: [u64; STATES.len()],
    /// The process that started first.
    pub first: Option<First>,
}

/// The states that have series.
pub(super) const STATES: [State; 4] = [
    State::Sleeping,
    State::Running,
    State::Stopped,
    State::DiskSleep,
];

/// A process by when it started, which with the pid identifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct First {
    /// Nanoseconds after boot.
    pub start_ns: u64,
    pub pid: u32,
}

impl First {
    pub(super) fn of(process: Process<'_>) -> Self {
        Self {
            start_ns: process.identity().start_ns,
            pid: process.pid(),
        }
    }
}

/// What a process adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    place: Place,
    cgroup: Option<u64>,
    numbers: Numbers,
    first: First,
    /// Its state, if it has one thread.
    state: Option<State>,
}

/// Where a process counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere: it has exited.
    Exited,
    /// In the cgroup of this id.
    Of(u64),
    /// The source does not tell.
    Unknown,
}

impl Member {
    /// As in cgroup.procs, what has exited is not counted, unless it has other threads.
    fn new(process: Process<'_>) -> Self {
        let identity = process.identity();
        let is_alone = identity.num_threads <= 1;
        let has_exited = matches!(process.state(), State::Zombie | State::Dead);
        let cgroup = process.cgroup_id();
        let of = || cgroup.map_or(Place::Unknown, Place::Of);
        Self {
            place: if has_exited && is_alone {
                Place::Exited
            } else {
                of()
            },
            cgroup,
            numbers: scheduled::numbers(process),
            first: First::of(process),
            state: is_alone.then(|| process.state()),
        }
    }
}

impl Own {
    fn add_task(&mut self, state: State) {
        if let Some(at) = STATES.iter().position(|&other| other == state) {
            self.tasks[at] += 1;
        }
    }
}

impl Members {
    /// Forgets the last snapshot.
    pub(super) fn clear(&mut self) {
        self.sums = None;
    }

    /// Counts the processes of a snapshot and their threads.
    pub(super) fn update(&mut self, snapshot: &Snapshot<'_>) {
        self.sums = None;
        let mut sums = Ids::<Own>::default();
        for member in self.each.update(snapshot, Member::new) {
            let own = match member.place {
                Place::Exited => continue,
                Place::Of(id) => sums.entry(id).or_default(),
                Place::Unknown => return,
            };
            own.processes += 1;
            own.first = Some(
                own.first
                    .map_or(member.first, |first| first.min(member.first)),
            );
            if let Some(state) = member.state {
                own.add_task(state);
            }
        }
        for (process, thread) in snapshot.threads_with_processes() {
            // The only thread of a process may be listed or not.
            if process.identity().num_threads > 1
                && let Some(own) = process.cgroup_id().and_then(|id| sums.get_mut(&id))
            {
                own.add_task(State::from_bits(thread.state_bits));
            }
        }
        self.sums = Some(sums);
    }

    /// The processes of the last snapshot in the order of the pids, also those that have exited and are not waited for.
    pub(super) fn tasks(&self) -> impl Iterator<Item = Task> {
        self.each.values().iter().filter_map(|member| {
            Some(Task {
                first: member.first,
                cgroup: member.cgroup?,
                numbers: member.numbers,
            })
        })
    }

    /// The cgroup of a process of the last snapshot.
    pub(super) fn cgroup_of(&self, pid: u32, start_ns: u64) -> Option<u64> {
        let all = self.each.values();
        let at = all.binary_search_by_key(&pid, |member| member.first.pid);
        let member = all[at.ok()?];
        let is_it = is_same_start(member.first.start_ns, start_ns);
        member.cgroup.filter(|_| is_it)
    }

    /// What a cgroup has; `None` if that is unknown.
    pub(super) fn of(&self, id: u64) -> Option<Own> {
        let sums = self.sums.as_ref()?;
        Some(sums.get(&id).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use fastproc::record::Record;

    use super::*;

    #[test]
    fn counts_no_zombie_unless_it_has_another_thread() {
        let mut record = Record::default();
        record.identity.state_bits = State::Zombie.bits();
        for (threads, place) in [(1, Place::Exited), (2, Place::Unknown)] {
            record.identity.num_threads = threads;
            assert_eq!(Member::new(Process::new(&record, &[])).place, place);
        }
    }
}
