//! How long the threads of cgroups ran and waited for a CPU, and how often they got one.
//!
//! The kernel counts that for each thread, not for cgroups. As in cAdvisor, a cgroup has the numbers of its living processes,
//! of those of its descendants, and of those that it had since the exporter was started.

use std::collections::HashMap;

use fastproc::{Process, cgroups::Snapshot, difference::is_same_start, exits::Exit};

use super::members::First;

/// An exit is reported at most this long after its process has left the snapshots.
const LATEST_NS: u64 = 120_000_000_000;

/// Nanoseconds on a CPU, nanoseconds of waiting for one, and how often a thread got one. `None`: unknown.
pub(super) type Numbers = [Option<u64>; 3];

/// A process in a cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub first: First,
    /// The id of the cgroup.
    pub cgroup: u64,
    pub numbers: Numbers,
}

/// The numbers of a process, of all its threads.
pub(super) fn numbers(process: Process<'_>) -> Numbers {
    process.cpu().map_or([None; 3], |cpu| {
        [cpu.sum_exec_ns(), cpu.run_delay_ns(), cpu.timeslices()]
    })
}

/// What was read, and what is kept of processes that have gone.
#[derive(Debug, Default)]
pub(super) struct Scheduled {
    /// The processes of the last update, in the order of the pids.
    before: Vec<Task>,
    /// Those that have left the snapshots, with the time when they did, until their exits arrive.
    leaving: Vec<(Task, u64)>,
    /// What cgroups have in addition to the numbers of their processes. Sums wrap around: what a process has done before it came
    /// is subtracted.
    gone: HashMap<u64, [u64; 3]>,
    /// The parents of cgroups.
    parents: HashMap<u64, u64>,
    /// When the first snapshot was taken.
    first_ns: Option<u64>,
    sums: HashMap<u64, Numbers>,
}

impl Scheduled {
    /// Follows all processes in the order of the pids, and exits since the last update. `boottime_ns`: the time of the snapshot.
    pub(super) fn update(
        &mut self,
        tasks: impl Iterator<Item = Task>,
        exits: &[Exit],
        cgroups: Snapshot<'_>,
        boottime_ns: u64,
    ) {
        let identities = cgroups.iter().map(|cgroup| &cgroup.record().identity);
        let parents = identities.map(|identity| (identity.id, identity.parent));
        self.follow(tasks.collect(), exits, parents.collect(), boottime_ns);
        self.sum(cgroups);
    }

    fn follow(
        &mut self,
        now: Vec<Task>,
        exits: &[Exit],
        parents: HashMap<u64, u64>,
        boottime_ns: u64,
    ) {
        // What a cgroup had stays with those above it.
        let removed = self.gone.extract_if(|id, _| !parents.contains_key(id));
        for (id, numbers) in removed.collect::<Vec<_>>() {
            self.add(&parents, id, numbers);
        }
        for task in std::mem::replace(&mut self.before, now) {
            match find(&self.before, task.first) {
                Some(same) if same.cgroup == task.cgroup => {}
                Some(moved) => self.move_to(&parents, task, moved.cgroup),
                None => {
                    self.add(&parents, task.cgroup, known(task.numbers));
                    self.leaving.push((task, boottime_ns));
                }
            }
        }
        // A snapshot may have missed a process that is back now.
        let before = &self.before;
        let back = |(task, _): &mut (Task, u64)| find(before, task.first).is_some();
        for (task, _) in self.leaving.extract_if(.., back).collect::<Vec<_>>() {
            if let Some(same) = find(&self.before, task.first) {
                let cgroup = same.cgroup;
                self.add(&parents, cgroup, known(task.numbers).map(u64::wrapping_neg));
            }
        }
        for exit in exits {
            self.end(&parents, exit);
        }
        let is_late = |since_ns| boottime_ns.saturating_sub(since_ns) >= LATEST_NS;
        self.leaving.retain(|&(_, since_ns)| !is_late(since_ns));
        self.first_ns.get_or_insert(boottime_ns);
        self.parents = parents;
    }

    /// What it did before stays where it was.
    fn move_to(&mut self, parents: &HashMap<u64, u64>, task: Task, cgroup: u64) {
        let numbers = known(task.numbers);
        self.add(parents, task.cgroup, numbers);
        self.add(parents, cgroup, numbers.map(u64::wrapping_neg));
    }

    /// Adds what a process did since the last update, or all if it came and went in between.
    fn end(&mut self, parents: &HashMap<u64, u64>, exit: &Exit) {
        let first = First {
            start_ns: exit.start_ns,
            pid: exit.pid,
        };
        let is_same = |task: &Task| task.first.is_same(first);
        let all = known([Some(exit.sum_exec_ns), exit.run_delay_ns, exit.timeslices]);
        if let Some(at) = self.leaving.iter().position(|(task, _)| is_same(task)) {
            let (task, _) = self.leaving.swap_remove(at);
            let before = known(task.numbers);
            // What the exit does not know, it does not take back.
            let rest = std::array::from_fn(|at| all[at].saturating_sub(before[at]));
            self.add(parents, task.cgroup, rest);
        } else if find(&self.before, first).is_none()
            && self
                .first_ns
                .is_some_and(|first_ns| exit.start_ns > first_ns)
        {
            self.add(parents, exit.cgroup_id, all);
        }
    }

    /// Adds to a cgroup, or, if that has gone, to the nearest one above it that exists.
    fn add(&mut self, parents: &HashMap<u64, u64>, id: u64, numbers: [u64; 3]) {
        let mut place = Some(id);
        while let Some(id) = place.filter(|id| !parents.contains_key(id)) {
            place = self.parents.get(&id).copied();
        }
        if let Some(id) = place {
            let gone = self.gone.entry(id).or_default();
            *gone = std::array::from_fn(|at| gone[at].wrapping_add(numbers[at]));
        }
    }

    fn sum(&mut self, cgroups: Snapshot<'_>) {
        self.sums.clear();
        for cgroup in cgroups.iter() {
            let gone = self.gone.get(&cgroup.id()).copied().unwrap_or_default();
            self.sums.insert(cgroup.id(), gone.map(Some));
        }
        for task in &self.before {
            if let Some(sum) = self.sums.get_mut(&task.cgroup) {
                *sum = plus(*sum, task.numbers);
            }
        }
        // Parents come before their children, so in reverse order each child's sum is complete before its parent adds it.
        for place in (0..cgroups.len()).rev() {
            let Some(cgroup) = cgroups.at(place) else {
                continue;
            };
            let numbers = self.sums.get(&cgroup.id()).copied();
            let parent = self.sums.get_mut(&cgroup.record().identity.parent);
            if let (Some(numbers), Some(parent)) = (numbers, parent) {
                *parent = plus(*parent, numbers);
            }
        }
    }

    /// Forgets the sums of the last update.
    pub(super) fn clear(&mut self) {
        self.sums.clear();
    }

    /// The numbers of a cgroup and its descendants.
    pub(super) fn of(&self, id: u64) -> Numbers {
        self.sums.get(&id).copied().unwrap_or_default()
    }
}

impl First {
    fn is_same(self, other: Self) -> bool {
        self.pid == other.pid && is_same_start(self.start_ns, other.start_ns)
    }
}

fn find(tasks: &[Task], first: First) -> Option<&Task> {
    let at = tasks.binary_search_by_key(&first.pid, |task| task.first.pid);
    let task = tasks.get(at.ok()?)?;
    task.first.is_same(first).then_some(task)
}

fn plus(one: Numbers, other: Numbers) -> Numbers {
    std::array::from_fn(|at| Some(one[at]?.wrapping_add(other[at]?)))
}

/// What is unknown of a process that has gone is not counted any more.
fn known(numbers: Numbers) -> [u64; 3] {
    numbers.map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(pid: u32, cgroup: u64, run: u64) -> Task {
        Task {
            first: First {
                start_ns: u64::from(pid) * 1_000_000_000,
                pid,
            },
            cgroup,
            numbers: [Some(run), Some(2 * run), None],
        }
    }

    /// Cgroup 2 is in 1. Each step has its cgroups, its processes, and the time on a CPU that the cgroups then have in addition.
    #[test]
    fn numbers_of_a_process_stay_with_the_cgroup_in_which_it_ran() {
        let both = [(1, 0), (2, 1)];
        let mut scheduled = Scheduled::default();
        let mut step = |cgroups: &[(u64, u64)], tasks: &[Task], gone: [u64; 2]| {
            let cgroups = cgroups.iter().copied().collect();
            scheduled.follow(tasks.to_vec(), &[], cgroups, 1);
            let run = |id| scheduled.gone.get(&id).map_or(0, |gone| gone[0]);
            assert_eq!([run(1), run(2)], gone);
        };
        step(&both, &[task(3, 2, 50), task(4, 1, 7)], [0, 0]);
        // It moves, and later ends.
        step(
            &both,
            &[task(3, 1, 60), task(4, 1, 7)],
            [50_u64.wrapping_neg(), 50],
        );
        step(&both, &[task(4, 1, 7)], [10, 50]);
        // A snapshot that misses a process counts nothing twice.
        step(&both, &[], [17, 50]);
        step(&both, &[task(4, 1, 9)], [10, 50]);
        // Another process has the pid.
        let mut other = task(4, 1, 1);
        other.first.start_ns += 50_000_000_000;
        step(&both, &[other], [19, 50]);
        // A cgroup is removed, and the one above it keeps what it had.
        step(&both[..1], &[other], [69, 0]);
    }
}
