//! Groups from one snapshot to the next: exits, exec, pids that are given away, names that change.

use std::collections::HashMap;

use fastproc::{
    Fields, Process,
    record::{Record, ThreadRecord},
};
use fastproc_exporter::{
    groups::{Count, Describe, Description, Group, Limits, Moment, Options, Rank, Tracker},
    naming::{self, Rules, Wants},
};

const SECOND: u64 = 1_000_000_000;
/// When the tracker looks first.
const FIRST: u64 = 1000 * SECOND;

/// A machine whose processes are made up.
#[derive(Default)]
struct Machine {
    records: Vec<Record>,
    threads: Vec<ThreadRecord>,
    cmdlines: HashMap<u32, String>,
    unreadable: Vec<u32>,
    described: usize,
    now: u64,
}

impl Machine {
    fn start(&mut self, pid: u32, ppid: u32, comm: &str, started: u64) -> &mut Record {
        let mut record = Record::default();
        record.identity.tgid = pid;
        record.identity.ppid = ppid;
        record.identity.start_ns = started;
        record.identity.num_threads = 1;
        record.identity.state_bits = 1;
        record.identity.groups = (Fields::TOP | Fields::IO).bits();
        record.memory.rss_anon = 1000;
        self.cmdlines.insert(pid, format!("/bin/{comm}\0"));
        let at = self
            .records
            .partition_point(|known| known.identity.tgid < pid);
        self.records.insert(at, record);
        self.rename(pid, comm);
        self.get(pid)
    }

    fn get(&mut self, pid: u32) -> &mut Record {
        self.records
            .iter_mut()
            .find(|record| record.identity.tgid == pid)
            .expect("it runs")
    }

    fn rename(&mut self, pid: u32, comm: &str) {
        let record = self.get(pid);
        record.identity.comm = [0; 16];
        record.identity.comm[..comm.len()].copy_from_slice(comm.as_bytes());
    }

    fn exit(&mut self, pid: u32) {
        self.records.retain(|record| record.identity.tgid != pid);
        self.threads.retain(|thread| thread.tgid != pid);
    }

    fn thread(&mut self, tgid: u32, tid: u32, comm: &str, nvcsw: u64) {
        let mut thread = ThreadRecord {
            tgid,
            tid,
            nvcsw,
            start_ns: if self.now < FIRST {
                SECOND
            } else {
                self.now + 1
            },
            state_bits: 1,
            ..ThreadRecord::default()
        };
        thread.comm[..comm.len()].copy_from_slice(comm.as_bytes());
        self.threads.push(thread);
    }

    fn update(&mut self, tracker: &mut Tracker) {
        self.now = if self.now == 0 {
            FIRST
        } else {
            self.now + SECOND
        };
        let moment = Moment {
            boottime_ns: self.now,
            btime: 1_700_000_000,
        };
        let records = std::mem::take(&mut self.records);
        let threads = std::mem::take(&mut self.threads);
        let views = records.iter().map(|record| Process::new(record, &[]));
        tracker.update(moment, views, threads.iter(), self);
        self.records = records;
        self.threads = threads;
    }
}

impl Describe for Machine {
    fn describe(&mut self, process: Process<'_>, _: Wants, into: &mut Description) -> bool {
        self.described += 1;
        if self.unreadable.contains(&process.pid()) {
            return false;
        }
        if let Some(line) = self.cmdlines.get(&process.pid()) {
            into.cmdline.extend_from_slice(line.as_bytes());
        }
        true
    }
}

fn tracker(change: impl FnOnce(&mut Options)) -> Tracker {
    let mut options = Options::default();
    change(&mut options);
    Tracker::new(options)
}

fn group<'a>(tracker: &'a Tracker, name: &str) -> Option<&'a Group> {
    tracker.groups().find(|group| &*group.name == name)
}

fn minor(tracker: &Tracker, name: &str) -> u64 {
    group(tracker, name)
        .unwrap_or_else(|| panic!("there is no group {name}"))
        .total
        .get(Count::MinorFaults)
}

fn procs(tracker: &Tracker, name: &str) -> Option<u64> {
    group(tracker, name).map(|group| group.now.procs)
}

#[test]
fn counters_begin_with_the_tracker_and_keep_what_the_dead_did() {
    let (mut machine, mut tracker) = (Machine::default(), tracker(|_| ()));
    machine.start(10, 1, "web", SECOND).cpu.minflt = 500;
    machine.update(&mut tracker);
    assert_eq!(minor(&tracker, "web"), 0, "what was before is not ours");
    machine.get(10).cpu.minflt = 520;
    // Younger than the tracker: all that it did counts.
    machine.start(11, 1, "web", FIRST + 1).cpu.minflt = 7;
    machine.update(&mut tracker);
    assert_eq!(minor(&tracker, "web"), 27);
    assert_eq!(procs(&tracker, "web"), Some(2));
    machine.exit(10);
    machine.update(&mut tracker);
    assert_eq!(minor(&tracker, "web"), 27);
    assert_eq!(procs(&tracker, "web"), Some(1));
    machine.exit(11);
    machine.update(&mut tracker);
    assert_eq!(minor(&tracker, "web"), 27);
    assert_eq!(procs(&tracker, "web"), Some(0));
    let last = group(&tracker, "web").unwrap();
    assert_eq!((last.now.resident, last.now.oldest_start_ns), (0, None));
    machine.start(12, 1, "web", FIRST + 3 * SECOND).cpu.minflt = 3;
    machine.update(&mut tracker);
    assert_eq!(minor(&tracker, "web"), 30);
}

#[test]
fn a_pid_that_is_given_away_is_another_process() {
    let (mut machine, mut tracker) = (Machine::default(), tracker(|_| ()));
    machine.start(10, 1, "web", SECOND).cpu.minflt = 500;
    machine.update(&mut tracker);
    machine.exit(10);
    machine.start(10, 1, "db", FIRST + 1).cpu.minflt = 40;
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "web"), Some(0));
    assert_eq!(procs(&tracker, "db"), Some(1));
    assert_eq!(minor(&tracker, "db"), 40);
    assert_eq!(minor(&tracker, "web"), 0);
}

#[test]
fn start_times_of_another_precision_are_the_same_process() {
    let (mut machine, mut tracker) = (Machine::default(), tracker(|_| ()));
    machine.start(10, 1, "web", SECOND + 9_999_999).cpu.minflt = 5;
    machine.update(&mut tracker);
    machine.get(10).identity.start_ns = SECOND;
    machine.get(10).cpu.minflt = 6;
    machine.update(&mut tracker);
    assert_eq!(minor(&tracker, "web"), 1);
    assert_eq!(machine.described, 1);
}

#[test]
fn a_child_that_executes_leaves_its_parents_name() {
    const FORKED: u32 = 0x40;
    let (mut machine, mut tracker) = (Machine::default(), tracker(|_| ()));
    machine.start(10, 1, "sh", SECOND);
    machine.update(&mut tracker);
    machine.start(11, 10, "sh", FIRST + 1).identity.flags = FORKED;
    machine.get(11).cpu.minflt = 4;
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "sh"), Some(2));
    machine.get(11).identity.flags = 0;
    machine.get(11).cpu.minflt = 10;
    machine.rename(11, "cc");
    machine.cmdlines.insert(11, "cc\0-c\0".into());
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "sh"), Some(1));
    assert_eq!(procs(&tracker, "cc"), Some(1));
    // What it did before belongs where it was.
    assert_eq!(minor(&tracker, "sh"), 4);
    assert_eq!(minor(&tracker, "cc"), 6);
}

/// A look may fall into the middle of exec(2): the program is another one already, and its name is not.
#[test]
fn what_is_seen_in_the_middle_of_exec_is_named_once_more() {
    let (mut machine, mut tracker) = (Machine::default(), tracker(|_| ()));
    machine.start(10, 1, "sh", SECOND);
    machine.update(&mut tracker);
    // Young and with a name that it is about to lose, and without arguments for a while.
    machine.start(11, 10, "sh", FIRST + SECOND - 1000);
    machine.start(12, 10, "cc", FIRST + SECOND - 1000);
    let arguments = machine.cmdlines.remove(&12);
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "sh"), Some(3));
    machine.rename(11, "cc");
    machine
        .cmdlines
        .extend(arguments.map(|arguments| (12, arguments)));
    machine.update(&mut tracker);
    assert_eq!(
        (procs(&tracker, "sh"), procs(&tracker, "cc")),
        (Some(1), Some(2))
    );
    // From then on it is what it is.
    let asked = machine.described;
    machine.rename(11, "ld");
    machine.update(&mut tracker);
    assert_eq!((procs(&tracker, "cc"), machine.described), (Some(2), asked));
}

#[test]
fn a_young_child_stays_with_its_parents_group_when_they_end() {
    let rules = naming::parse("process_names: [{name: shells, comm: [sh]}]").unwrap();
    let (mut machine, mut tracker) = (Machine::default(), tracker(|options| options.rules = rules));
    machine.start(10, 1, "sh", SECOND);
    machine.update(&mut tracker);
    machine.start(11, 10, "leaf", FIRST + SECOND - 1000);
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "shells"), Some(2));
    machine.exit(10);
    machine.get(11).identity.ppid = 1;
    for _ in 0..2 {
        machine.update(&mut tracker);
        assert_eq!(procs(&tracker, "shells"), Some(1));
    }
}

#[test]
fn a_changed_name_counts_only_if_names_are_looked_at_again() {
    for recheck in [false, true] {
        let (mut machine, mut tracker) = (
            Machine::default(),
            tracker(|options| options.recheck = recheck),
        );
        machine.start(10, 1, "old", SECOND);
        machine.update(&mut tracker);
        machine.rename(10, "new");
        machine.get(10).cpu.minflt = 9;
        machine.update(&mut tracker);
        let name = if recheck { "new" } else { "old" };
        assert_eq!(minor(&tracker, name), 9);
        assert_eq!(procs(&tracker, "new"), recheck.then_some(1));
        // Nothing is asked for again without need.
        let asked = machine.described;
        machine.update(&mut tracker);
        assert_eq!(machine.described, asked);
    }
}

#[test]
fn names_are_looked_at_again_only_while_the_process_is_young() {
    let only_web = || naming::parse("process_names: [{name: web, comm: [web]}]").unwrap();
    let mut machine = Machine::default();
    let mut tracker = tracker(|options| {
        options.rules = only_web();
        options.children = false;
        options.recheck = true;
        options.recheck_within = Some(std::time::Duration::from_secs(10));
    });
    machine.start(10, 1, "old", SECOND);
    machine.start(11, 1, "old", FIRST - 5 * SECOND);
    machine.update(&mut tracker);
    machine.rename(10, "web");
    machine.rename(11, "web");
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "web"), Some(1));
}

#[test]
fn children_belong_to_their_parents_group_unless_they_have_one() {
    let rules = || {
        naming::parse("process_names: [{name: shells, comm: [sh]}, {name: db, comm: [db]}]")
            .unwrap()
    };
    for children in [true, false] {
        let mut machine = Machine::default();
        let mut tracker = tracker(|options| {
            options.rules = rules();
            options.children = children;
        });
        machine.start(5, 1, "stranger", SECOND);
        machine.start(10, 5, "sh", SECOND);
        // A grandchild with a lower pid than its parents, whose own parent has no group either.
        machine.start(7, 12, "leaf", SECOND);
        machine.start(12, 10, "middle", SECOND);
        machine.start(13, 10, "db", SECOND);
        machine.update(&mut tracker);
        assert_eq!(
            procs(&tracker, "shells"),
            Some(if children { 3 } else { 1 })
        );
        assert_eq!(procs(&tracker, "db"), Some(1));
        // It stays there when its parents are gone.
        machine.exit(12);
        machine.exit(10);
        machine.update(&mut tracker);
        assert_eq!(procs(&tracker, "shells"), Some(u64::from(children)));
        // A child of one that was left alone is left alone, and so is what has no parent here.
        machine.start(14, 5, "new", FIRST + 1);
        machine.start(15, 999, "new", FIRST + 1);
        machine.update(&mut tracker);
        assert_eq!(procs(&tracker, "shells"), Some(u64::from(children)));
    }
}

#[test]
fn counters_never_run_backwards() {
    let (mut machine, mut tracker) = (Machine::default(), tracker(|_| ()));
    machine.start(10, 1, "web", SECOND).cpu.utime_ns = 100;
    machine.update(&mut tracker);
    let user = |tracker: &Tracker| group(tracker, "web").unwrap().total.get(Count::User);
    for (now, expected) in [(150, 50), (140, 50), (150, 50), (151, 51)] {
        machine.get(10).cpu.utime_ns = now;
        machine.update(&mut tracker);
        assert_eq!(user(&tracker), expected);
    }
}

#[test]
fn hidden_io_is_no_io_and_is_told() {
    let (mut machine, mut tracker) = (Machine::default(), tracker(|_| ()));
    machine.start(10, 1, "web", SECOND).identity.groups = Fields::TOP.bits();
    machine.update(&mut tracker);
    assert_eq!(tracker.errors().partial, 1);
    let read = |tracker: &Tracker| group(tracker, "web").unwrap().total.get(Count::Read);
    // What was hidden until now did not happen now.
    machine.get(10).identity.groups = (Fields::TOP | Fields::IO).bits();
    machine.get(10).io.read_bytes = 5000;
    machine.update(&mut tracker);
    assert_eq!(read(&tracker), 0);
    machine.get(10).io.read_bytes = 5010;
    machine.update(&mut tracker);
    assert_eq!(read(&tracker), 10);
    assert_eq!(tracker.errors().partial, 1);
}

#[test]
fn what_cannot_be_described_is_asked_again() {
    let (mut machine, mut tracker) = (Machine::default(), tracker(|_| ()));
    machine.start(10, 1, "web", SECOND);
    machine.unreadable.push(10);
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "web"), None);
    assert_eq!(tracker.errors().read, 1);
    machine.unreadable.clear();
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "web"), Some(1));
}

#[test]
fn threads_are_summed_up_by_name_and_keep_what_the_dead_did() {
    let (mut machine, mut tracker) = (Machine::default(), tracker(|_| ()));
    machine.start(10, 1, "web", SECOND).identity.num_threads = 3;
    machine.start(20, 1, "single", SECOND).cpu.nvcsw = 100;
    for (tid, comm) in [(10, "web"), (11, "pool"), (12, "pool")] {
        machine.thread(10, tid, comm, 100);
    }
    machine.thread(20, 20, "single", 100);
    machine.update(&mut tracker);
    for thread in &mut machine.threads {
        thread.nvcsw += 5;
    }
    machine.update(&mut tracker);
    let voluntary =
        |tracker: &Tracker, name: &str| group(tracker, name).unwrap().total.get(Count::Voluntary);
    assert_eq!(voluntary(&tracker, "web"), 15);
    assert_eq!(voluntary(&tracker, "single"), 5);
    assert_eq!(
        group(&tracker, "web")
            .unwrap()
            .now
            .states
            .iter()
            .sum::<u64>(),
        3
    );
    let names = |tracker: &Tracker| {
        let mut names: Vec<_> = tracker
            .thread_names()
            .map(|name| {
                (
                    name.labels.to_string(),
                    name.count,
                    name.total.get(Count::Voluntary),
                )
            })
            .collect();
        names.sort();
        names
    };
    let pool = "groupname=\"web\",threadname=\"pool\"";
    let web = "groupname=\"web\",threadname=\"web\"";
    assert_eq!(names(&tracker), [(pool.into(), 2, 10), (web.into(), 1, 5)]);
    // One ends, one is born: neither takes anything away, and the new one's switches are all new.
    machine.threads.retain(|thread| thread.tid != 12);
    machine.thread(10, 13, "pool", 4);
    machine.update(&mut tracker);
    assert_eq!(voluntary(&tracker, "web"), 19);
    assert_eq!(names(&tracker)[0], (pool.into(), 2, 14));
    // A name that no thread has any more is no series any more.
    machine
        .threads
        .retain(|thread| thread.tid == 10 || thread.tgid == 20);
    machine.get(10).identity.num_threads = 1;
    machine.update(&mut tracker);
    assert_eq!(names(&tracker), []);
    assert_eq!(voluntary(&tracker, "web"), 19);
}

#[test]
fn without_threads_the_leaders_switches_count() {
    let (mut machine, mut tracker) = (Machine::default(), tracker(|_| ()));
    machine.start(10, 1, "web", SECOND).cpu.nvcsw = 5;
    machine.update(&mut tracker);
    machine.get(10).cpu.nvcsw = 9;
    machine.update(&mut tracker);
    let web = group(&tracker, "web").unwrap();
    assert_eq!(web.total.get(Count::Voluntary), 4);
    assert_eq!(web.now.states[1], 1);
}

/// The sums over all groups that are shown.
fn sums(tracker: &Tracker) -> (u64, u64, u64) {
    tracker.groups().fold((0, 0, 0), |sum, group| {
        (
            sum.0 + group.now.procs,
            sum.1 + group.now.resident,
            sum.2 + group.grown.get(Count::MinorFaults),
        )
    })
}

#[test]
fn groups_past_the_limit_are_one_and_the_sums_stay_right() {
    let mut machine = Machine::default();
    let mut tracker = tracker(|options| options.limits.groups = 3);
    for pid in 10..20 {
        machine.start(pid, 1, &format!("p{pid}"), SECOND);
    }
    machine.update(&mut tracker);
    for record in &mut machine.records {
        record.cpu.minflt += 7;
    }
    machine.update(&mut tracker);
    assert_eq!(tracker.groups().count(), 4);
    assert_eq!(tracker.folded_groups(), 7);
    assert_eq!(procs(&tracker, "other"), Some(7));
    assert_eq!(minor(&tracker, "other"), 49);
    assert_eq!(minor(&tracker, "p10"), 7);
    assert_eq!(sums(&tracker), (10, 10_000, 70));
    // A group without processes makes room, and what was folded stays where it was counted.
    machine.exit(10);
    for record in &mut machine.records {
        record.cpu.minflt += 1;
    }
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "p10"), None);
    assert_eq!(minor(&tracker, "p13"), 1);
    assert_eq!(minor(&tracker, "other"), 49 + 6);
    assert_eq!(sums(&tracker), (9, 9_000, 9));
}

#[test]
fn the_groups_with_the_most_are_shown() {
    for (rank, expected) in [(Rank::Memory, ["a", "b"]), (Rank::Cpu, ["c", "d"])] {
        let mut machine = Machine::default();
        let mut tracker = tracker(|options| {
            options.limits = Limits {
                groups: 2,
                rank,
                ..Limits::default()
            };
        });
        for (pid, name) in (10..).zip(["a", "b", "c", "d", "e"]) {
            machine.start(pid, 1, name, SECOND).memory.rss_anon = 100 - u64::from(pid);
        }
        machine.update(&mut tracker);
        for (pid, ns) in [(12, 500), (13, 900), (14, 1)] {
            machine.get(pid).cpu.utime_ns += ns;
            machine.get(pid).cpu.minflt += 1;
        }
        machine.update(&mut tracker);
        let mut shown: Vec<_> = tracker.groups().map(|group| &*group.name).collect();
        shown.sort_unstable();
        assert_eq!(shown, [expected[0], expected[1], "other"], "{rank:?}");
        assert_eq!(sums(&tracker).2, 3);
        assert_eq!(procs(&tracker, "other"), Some(3));
        let before: HashMap<String, u64> = tracker
            .groups()
            .map(|group| (group.name.to_string(), group.total.get(Count::MinorFaults)))
            .collect();
        // Others come to the top: no counter that is still shown has gone back.
        for pid in [10, 14] {
            machine.get(pid).cpu.utime_ns += 5000;
            machine.get(pid).memory.rss_anon += 5000;
            machine.get(pid).cpu.minflt += 1;
        }
        machine.update(&mut tracker);
        for group in tracker.groups() {
            let then = before.get(&*group.name).copied().unwrap_or(0);
            assert!(
                group.total.get(Count::MinorFaults) >= then,
                "{}",
                group.name
            );
        }
        assert_eq!(sums(&tracker).2, 2);
    }
}

#[test]
fn a_group_that_is_called_other_is_counted_with_the_others() {
    let mut machine = Machine::default();
    let mut tracker = tracker(|options| options.limits.groups = 1);
    for (pid, name) in (10..).zip(["a", "b", "other"]) {
        machine.start(pid, 1, name, SECOND);
    }
    machine.update(&mut tracker);
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "other"), Some(2));
    assert_eq!(sums(&tracker).0, 3);
    assert_eq!(tracker.groups().count(), 2);
}

#[test]
fn names_of_threads_past_the_limit_are_one() {
    let mut machine = Machine::default();
    let mut tracker = tracker(|options| options.limits.thread_names = 2);
    machine.start(10, 1, "web", SECOND).identity.num_threads = 5;
    for tid in 10..15 {
        machine.thread(10, tid, &format!("t{tid}"), 0);
    }
    machine.update(&mut tracker);
    for thread in &mut machine.threads {
        thread.nvcsw += 2;
    }
    machine.update(&mut tracker);
    assert_eq!(tracker.thread_names().count(), 3);
    let sum: u64 = tracker
        .thread_names()
        .map(|name| name.total.get(Count::Voluntary))
        .sum();
    assert_eq!(sum, 10);
    assert_eq!(tracker.folded_threads(), 3);
}

#[test]
fn empty_groups_are_forgotten_if_asked_for() {
    let (mut machine, mut tracker) = (
        Machine::default(),
        tracker(|options| options.remove_empty = true),
    );
    machine.start(10, 1, "scan-1", SECOND);
    machine.update(&mut tracker);
    machine.exit(10);
    machine.update(&mut tracker);
    assert_eq!(tracker.groups().count(), 0);
}

#[test]
fn names_alone_select() {
    let rules = Rules::of_names(&["web".into()], None).unwrap();
    let (mut machine, mut tracker) = (Machine::default(), tracker(|options| options.rules = rules));
    machine.start(10, 1, "web", SECOND);
    machine.start(11, 1, "db", SECOND);
    machine.update(&mut tracker);
    assert_eq!(tracker.groups().count(), 1);
}
