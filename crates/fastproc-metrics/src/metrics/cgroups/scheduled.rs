//! How long the threads of cgroups ran and waited for a CPU, and how often they got one.
//!
//! The kernel counts that for each thread, not for cgroups. As in cAdvisor, a cgroup has the numbers of its living processes,
//! of those of its descendants, and of those that it had since the exporter was started.

use std::collections::BTreeMap;

use fastproc::{
    Process,
    cgroups::{Ids, Snapshot},
    difference::is_same_start,
    exits::Exit,
};

use super::members::First;

/// An exit is reported at most this long after its process has left the snapshots.
const LATEST_NS: u64 = 120_000_000_000;

/// The most processes whose exits are awaited.
const MOST_LEAVING: usize = 65_536;

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
        let timeslices = cpu.timeslices();
        // What has never got a CPU has not run.
        let none = (timeslices == Some(0)).then_some(0);
        [cpu.sum_exec_ns().or(none), cpu.run_delay_ns(), timeslices]
    })
}

/// What was read, and what is kept of processes that have gone.
#[derive(Debug, Default)]
pub(super) struct Scheduled {
    /// The processes of the last update, in the order of the pids, each with the highest numbers that it had: a record that
    /// was read from `/proc` lacks the threads that have exited, or does not know some numbers.
    before: Vec<Task>,
    /// Those that have left the snapshots, by pid and start, with the time when they did, until their exits arrive.
    leaving: BTreeMap<(u32, u64), (Task, u64)>,
    /// What cgroups have in addition to the numbers of their processes. Sums wrap around: what a process has done before it came
    /// is subtracted.
    pub(super) gone: Ids<[u64; 3]>,
    /// The parents of cgroups.
    parents: Ids<u64>,
    /// An unknown process that was started before has not come since the last update.
    first_ns: Option<u64>,
    sums: Ids<Numbers>,
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
        let cgroups = identities.map(|identity| (identity.id, identity.parent));
        let cgroups: Vec<_> = cgroups.collect();
        let parents = cgroups.iter().copied().collect();
        self.follow(tasks.collect(), exits, parents, boottime_ns);
        self.sum(&cgroups);
    }

    fn follow(&mut self, mut now: Vec<Task>, exits: &[Exit], parents: Ids<u64>, boottime_ns: u64) {
        // What a cgroup had stays with those above it.
        let removed = self.gone.extract_if(|id, _| !parents.contains_key(id));
        for (id, numbers) in removed.collect::<Vec<_>>() {
            self.add(&parents, id, numbers);
        }
        for before in std::mem::take(&mut self.before) {
            if let Some(same) = find_mut(&mut now, before.first) {
                self.go_on(&parents, before, same);
            } else {
                self.add(&parents, before.cgroup, known(before.numbers));
                self.leave(before, boottime_ns);
            }
        }
        // A snapshot may have missed a process that is back now.
        let leaving = self.leaving.values().map(|&(task, _)| task);
        let back = leaving.filter(|task| find_mut(&mut now, task.first).is_some());
        for before in back.collect::<Vec<_>>() {
            self.leaving.remove(&before.first.key());
            if let Some(same) = find_mut(&mut now, before.first) {
                self.add(&parents, before.cgroup, minus(before.numbers));
                self.go_on(&parents, before, same);
            }
        }
        self.before = now;
        for exit in exits {
            self.end(&parents, exit);
        }
        let is_late = |since_ns| boottime_ns.saturating_sub(since_ns) >= LATEST_NS;
        self.leaving.retain(|_, (_, since_ns)| !is_late(*since_ns));
        let mut leaving = std::mem::take(&mut self.leaving);
        for (task, _) in leaving.values_mut() {
            task.cgroup = self.place(&parents, task.cgroup).unwrap_or(task.cgroup);
        }
        self.leaving = leaving;
        self.first_ns.get_or_insert(boottime_ns);
        self.parents = parents;
    }

    /// Compares a process with what it was at the last update. What it did before a move stays where it was.
    fn go_on(&mut self, parents: &Ids<u64>, before: Task, now: &mut Task) {
        now.numbers = std::array::from_fn(|at| now.numbers[at].max(before.numbers[at]));
        if !parents.contains_key(&now.cgroup) {
            // The new cgroup is younger than the snapshot of cgroups, or the old one was removed, as it can be when the process
            // has exited and is not waited for. Until it is known, the process counts where it did.
            now.cgroup = self.place(parents, before.cgroup).unwrap_or(now.cgroup);
        } else if now.cgroup != before.cgroup {
            self.add(parents, before.cgroup, known(before.numbers));
            self.add(parents, now.cgroup, minus(before.numbers));
        }
    }

    /// Waits for the exit of a process that the snapshots do not have any more.
    fn leave(&mut self, task: Task, boottime_ns: u64) {
        if self.leaving.len() < MOST_LEAVING {
            self.leaving.insert(task.first.key(), (task, boottime_ns));
        } else {
            // Its exit must not count all that it did once more.
            self.first_ns = Some(boottime_ns);
        }
    }

    /// Adds what a process did since the last update, or all if it came and went in between.
    fn end(&mut self, parents: &Ids<u64>, exit: &Exit) {
        let first = First {
            start_ns: exit.start_ns,
            pid: exit.pid,
        };
        let all = known([Some(exit.sum_exec_ns), exit.run_delay_ns, exit.timeslices]);
        let mut of_pid = self.leaving.range((exit.pid, 0)..=(exit.pid, u64::MAX));
        if let Some((&key, &(task, _))) = of_pid.find(|(_, (task, _))| task.first.is_same(first)) {
            self.leaving.remove(&key);
            let before = known(task.numbers);
            // What the exit does not know, it does not take back.
            let rest = std::array::from_fn(|at| all[at].saturating_sub(before[at]));
            self.add(parents, task.cgroup, rest);
        } else if find_mut(&mut self.before, first).is_none()
            && self
                .first_ns
                .is_some_and(|first_ns| exit.start_ns > first_ns)
        {
            self.add(parents, exit.cgroup_id, all);
        }
    }

    /// A cgroup, or, if that has gone, the nearest one above it that exists.
    fn place(&self, parents: &Ids<u64>, id: u64) -> Option<u64> {
        let mut place = Some(id);
        while let Some(id) = place.filter(|id| !parents.contains_key(id)) {
            place = self.parents.get(&id).copied();
        }
        place
    }

    /// Adds to the [`place`](Self::place) of a cgroup.
    fn add(&mut self, parents: &Ids<u64>, id: u64, numbers: [u64; 3]) {
        if let Some(id) = self.place(parents, id) {
            let gone = self.gone.entry(id).or_default();
            *gone = std::array::from_fn(|at| gone[at].wrapping_add(numbers[at]));
        }
    }

    /// `cgroups`: their ids, and those of their parents, which come first.
    fn sum(&mut self, cgroups: &[(u64, u64)]) {
        self.sums.clear();
        // A source or a kernel that tells a number of no process does not tell it of a cgroup without processes either.
        let is_told = [0, 1, 2].map(|at| {
            let mut numbers = self.before.iter().filter_map(|task| task.numbers[at]);
            numbers.any(|number| number > 0)
        });
        for &(id, _) in cgroups {
            let gone = self.gone.get(&id).copied().unwrap_or_default();
            let told = std::array::from_fn(|at| is_told[at].then_some(gone[at]));
            self.sums.insert(id, told);
        }
        for task in &self.before {
            if let Some(sum) = self.sums.get_mut(&task.cgroup) {
                *sum = plus(*sum, task.numbers);
            }
        }
        // In reverse order each child's sum is complete before its parent adds it.
        for (id, parent) in cgroups.iter().rev() {
            let numbers = self.sums.get(id).copied();
            let parent = self.sums.get_mut(parent);
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
    fn key(self) -> (u32, u64) {
        (self.pid, self.start_ns)
    }

    fn is_same(self, other: Self) -> bool {
        self.pid == other.pid && is_same_start(self.start_ns, other.start_ns)
    }
}

fn find_mut(tasks: &mut [Task], first: First) -> Option<&mut Task> {
    let at = tasks.binary_search_by_key(&first.pid, |task| task.first.pid);
    let task = tasks.get_mut(at.ok()?)?;
    task.first.is_same(first).then_some(task)
}

fn plus(one: Numbers, other: Numbers) -> Numbers {
    std::array::from_fn(|at| Some(one[at]?.wrapping_add(other[at]?)))
}

/// What is unknown of a process that has gone is not counted any more.
fn known(numbers: Numbers) -> [u64; 3] {
    numbers.map(Option::unwrap_or_default)
}

/// What takes these numbers back.
fn minus(numbers: Numbers) -> [u64; 3] {
    known(numbers).map(u64::wrapping_neg)
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

    fn with(pid: u32, cgroup: u64, numbers: Numbers) -> Task {
        Task {
            numbers,
            ..task(pid, cgroup, 0)
        }
    }

    fn exit(pid: u32, cgroup: u64, run: u64, waits: Option<u64>) -> Exit {
        let mut exit = Exit::default();
        (exit.pid, exit.start_ns) = (pid, task(pid, cgroup, 0).first.start_ns);
        (exit.cgroup_id, exit.sum_exec_ns) = (cgroup, run);
        (exit.run_delay_ns, exit.timeslices) = (waits, waits);
        exit
    }

    impl Scheduled {
        /// The sums of 1, which is the root, and of 2, of an update after which process 9 is in the root and has 1 of each number.
        fn sums(&mut self, cgroups: &[(u64, u64)], tasks: &[Task], exits: &[Exit]) -> [Numbers; 2] {
            let now = [tasks, &[with(9, 1, [Some(1); 3])]].concat();
            let parents = cgroups.iter().copied().collect();
            self.follow(now, exits, parents, 2_000_000_000);
            self.sum(cgroups);
            [self.of(1), self.of(2)]
        }
    }

    const BOTH: [(u64, u64); 2] = [(1, 0), (2, 1)];

    fn of_all(root: u64, two: u64) -> [Numbers; 2] {
        [[Some(root); 3], [Some(two); 3]]
    }

    #[test]
    fn numbers_do_not_fall_when_a_record_lacks_some() {
        let mut scheduled = Scheduled::default();
        for (cgroup, number) in [(2, Some(100)), (1, Some(100)), (1, Some(10)), (1, None)] {
            let sums = scheduled.sums(&BOTH, &[with(3, cgroup, [number; 3])], &[]);
            assert_eq!(sums, of_all(101, 100), "{cgroup} {number:?}");
        }
        assert_eq!(scheduled.sums(&BOTH, &[], &[]), of_all(101, 100));
        let more = [with(4, 2, [Some(0), None, Some(0)])];
        let sums = scheduled.sums(&BOTH, &more, &[]);
        let unknown = |number| [Some(number), None, Some(number)];
        assert_eq!(sums, [unknown(101), unknown(100)]);
    }

    #[test]
    fn an_exit_adds_what_its_process_did_since_the_last_update() {
        let mut scheduled = Scheduled::default();
        let first = [with(3, 2, [Some(50); 3]), with(4, 2, [Some(7); 3])];
        assert_eq!(scheduled.sums(&BOTH, &first, &[]), of_all(58, 57));
        // The exit of one arrives later, and knows no waits.
        let sums = scheduled.sums(&BOTH, &[], &[exit(4, 2, 9, Some(9))]);
        assert_eq!(sums, of_all(60, 59));
        let [root, two] = scheduled.sums(&BOTH, &[], &[exit(3, 2, 60, None)]);
        assert_eq!(root, [Some(70), Some(60), Some(60)]);
        assert_eq!(two, [Some(69), Some(59), Some(59)]);
        // One came and went since the last update, another one had exited before the first.
        let exits = [exit(5, 2, 5, Some(5)), exit(1, 2, 1000, Some(1000))];
        let [root, two] = scheduled.sums(&BOTH, &[], &exits);
        assert_eq!((root[0], two[0]), (Some(75), Some(74)));
        assert!(scheduled.leaving.is_empty());
    }

    #[test]
    fn a_process_in_a_cgroup_that_is_unknown_counts_once() {
        let mut scheduled = Scheduled::default();
        let all = [(1, 0), (2, 1), (8, 1)];
        let in_both = scheduled.sums(&BOTH, &[with(3, 2, [Some(50); 3])], &[]);
        assert_eq!(in_both, of_all(51, 50));
        // Cgroup 8 is made after the snapshot of cgroups.
        let moved = |number| [with(3, 8, [Some(number); 3])];
        assert_eq!(scheduled.sums(&BOTH, &moved(60), &[]), of_all(61, 60));
        assert_eq!(scheduled.sums(&all, &moved(70), &[]), of_all(71, 60));
        assert_eq!(scheduled.of(8), [Some(10); 3]);
        // It has exited in a cgroup that is removed then, and its parent waits for it later.
        for tasks in [&moved(70)[..], &moved(70), &[]] {
            assert_eq!(scheduled.sums(&BOTH, tasks, &[]), of_all(71, 60));
        }
        let sums = scheduled.sums(&BOTH, &[], &[exit(3, 8, 75, Some(75))]);
        assert_eq!(sums, of_all(76, 60));
    }

    #[test]
    fn a_number_of_no_process_is_unknown_of_empty_cgroups() {
        let mut scheduled = Scheduled::default();
        let now = vec![with(3, 1, [None, Some(5), None])];
        scheduled.follow(now, &[], BOTH.into_iter().collect(), 1);
        scheduled.sum(&BOTH);
        assert_eq!(scheduled.of(2), [None, Some(0), None]);
        assert_eq!(scheduled.of(1), [None, Some(5), None]);
    }

    #[test]
    fn awaited_exits_are_bounded_and_count_nothing_twice() {
        let mut scheduled = Scheduled::default();
        let (mut now_ns, pids) = (1, 10..11 + MOST_LEAVING as u32);
        let many: Vec<_> = pids.clone().map(|pid| task(pid, 2, 1)).collect();
        let mut follow = |scheduled: &mut Scheduled, now, exits: &[Exit]| {
            scheduled.follow(now, exits, BOTH.into_iter().collect(), now_ns);
            now_ns = u64::MAX;
        };
        follow(&mut scheduled, many, &[]);
        follow(&mut scheduled, Vec::new(), &[]);
        assert_eq!(scheduled.leaving.len(), MOST_LEAVING);
        let exits: Vec<_> = pids.map(|pid| exit(pid, 2, 1, None)).collect();
        follow(&mut scheduled, Vec::new(), &exits);
        assert_eq!(scheduled.gone[&2][0], exits.len() as u64);
    }
}
