//! What is counted, and when counting begins and ends.

use fastproc::{Fields, exits::Exit};
use fastproc_metrics::{
    groups::{Count, Tracker},
    naming::{Container, Item, Rules},
};

use crate::groups::machine::{FIRST, Machine, SECOND, group, machine, minor, procs};

#[test]
fn a_counter_that_falls_is_not_counted_twice() {
    let (mut machine, mut tracker) = machine(|_| ());
    machine.start(10, 1, "web", SECOND).cpu.minflt = 500;
    machine.update(&mut tracker);
    for (minflt, counted) in [(530, 30), (510, 30), (540, 40)] {
        machine.get(10).cpu.minflt = minflt;
        machine.update(&mut tracker);
        assert_eq!(minor(&tracker, "web"), counted);
    }
}

/// A process whose record comes from `/proc` has no waits for a while.
#[test]
fn a_group_keeps_its_waits_while_they_are_unknown() {
    let (mut machine, mut tracker) = machine(|_| ());
    machine.start(10, 1, "web", SECOND);
    machine.update(&mut tracker);
    let waited = |tracker: &Tracker| {
        let web = group(tracker, "web").expect("the group exists");
        web.total.wait_ns()
    };
    assert_eq!(waited(&tracker), None);
    // It counts from the first time that it is known.
    let waits = [
        (Some(500), None),
        (Some(530), Some(30)),
        (None, Some(30)),
        (Some(540), Some(40)),
    ];
    for (run_delay_ns, counted) in waits {
        machine.get(10).cpu.set_run_delay_ns(run_delay_ns);
        machine.update(&mut tracker);
        assert_eq!(waited(&tracker), counted);
    }
}

#[test]
fn a_process_that_one_snapshot_missed_is_not_counted_twice() {
    let (mut machine, mut tracker) = machine(|_| ());
    machine.update(&mut tracker);
    for pid in [10, 20, 30] {
        machine.start(pid, 1, "web", FIRST + 1).cpu.minflt = 100;
    }
    machine.update(&mut tracker);
    assert_eq!(minor(&tracker, "web"), 300);
    let missed = *machine.get(20);
    machine.exit(20);
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "web"), Some(2));
    machine.start(20, 1, "web", FIRST + 1).cpu.minflt = missed.cpu.minflt + 7;
    machine.update(&mut tracker);
    assert_eq!(minor(&tracker, "web"), 307);
    assert_eq!(procs(&tracker, "web"), Some(3));
}

/// exec(2) in a thread other than the leader: then it has the leader's id and start time, but its own counters.
#[test]
fn a_thread_that_takes_the_place_of_another_is_not_counted_twice() {
    let (mut machine, mut tracker) = machine(|_| ());
    machine.start(10, 1, "web", SECOND);
    machine.thread(10, 10, "web", 900);
    machine.thread(10, 11, "web", 100);
    machine.update(&mut tracker);
    machine.threads.retain(|thread| thread.tid == 10);
    machine.threads[0].nvcsw = 105;
    machine.threads[0].set_sum_exec_ns(Some(50 * SECOND));
    machine.update(&mut tracker);
    machine.threads[0].nvcsw = 110;
    machine.update(&mut tracker);
    let web = group(&tracker, "web").expect("the group exists");
    assert_eq!(web.total.get(Count::Voluntary), 5);
}

#[test]
fn counters_begin_with_the_tracker_and_keep_what_the_dead_did() {
    let (mut machine, mut tracker) = machine(|_| ());
    machine.start(10, 1, "web", SECOND).cpu.minflt = 500;
    machine.update(&mut tracker);
    assert_eq!(minor(&tracker, "web"), 0, "what was before is not ours");
    machine.get(10).cpu.minflt = 520;
    // It started after the tracker, so everything that it did counts.
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
    let (mut machine, mut tracker) = machine(|_| ());
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
fn a_pid_that_is_given_away_within_a_tick_is_another_process() {
    let (mut machine, mut tracker) = machine(|_| ());
    machine.start(10, 1, "web", FIRST + 1).cpu.minflt = 500;
    machine.update(&mut tracker);
    machine.exit(10);
    machine.start(10, 1, "db", FIRST + 2).cpu.minflt = 40;
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "web"), Some(0));
    assert_eq!(procs(&tracker, "db"), Some(1));
}

#[test]
fn start_times_of_another_precision_are_the_same_process() {
    let (mut machine, mut tracker) = machine(|_| ());
    machine.start(10, 1, "web", SECOND + 9_999_999).cpu.minflt = 5;
    machine.update(&mut tracker);
    machine.get(10).identity.start_ns = SECOND;
    machine.get(10).cpu.minflt = 6;
    machine.update(&mut tracker);
    assert_eq!(minor(&tracker, "web"), 1);
    assert_eq!(machine.described, 1);
}

#[test]
fn hidden_io_is_no_io_and_is_told() {
    let (mut machine, mut tracker) = machine(|_| ());
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
fn threads_are_summed_up_by_name_and_keep_what_the_dead_did() {
    let (mut machine, mut tracker) = machine(|_| ());
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
    // One thread ends and another begins: the first loses nothing, and all switches of the second are new.
    machine.threads.retain(|thread| thread.tid != 12);
    machine.thread(10, 13, "pool", 4);
    machine.update(&mut tracker);
    assert_eq!(voluntary(&tracker, "web"), 19);
    assert_eq!(names(&tracker)[0], (pool.into(), 2, 14));
    // A name without threads has no series.
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
    let (mut machine, mut tracker) = machine(|_| ());
    machine.start(10, 1, "web", SECOND).cpu.nvcsw = 5;
    machine.update(&mut tracker);
    machine.get(10).cpu.nvcsw = 9;
    machine.update(&mut tracker);
    let web = group(&tracker, "web").unwrap();
    assert_eq!(web.total.get(Count::Voluntary), 4);
    assert_eq!(web.now.states[1], 1);
}

/// A thread is listed only while its process has others.
#[test]
fn switches_count_once_whether_a_thread_is_listed_or_not() {
    let (mut machine, mut tracker) = machine(|_| ());
    machine.start(1, 0, "init", SECOND);
    machine.ended = Some(Vec::new());
    machine.update(&mut tracker);
    let mut look = |machine: &mut Machine, leader: u64, others: &[(u32, u64)]| {
        machine.ended.get_or_insert_default();
        if machine.records.len() > 1 {
            let record = machine.get(10);
            record.cpu.nvcsw = leader;
            record.identity.num_threads = 1 + others.len() as u32;
        }
        machine.threads.clear();
        if !others.is_empty() {
            machine.thread(10, 10, "web", leader);
            machine.threads[0].start_ns = FIRST + 1;
        }
        for &(second, switches) in others {
            machine.thread(10, 100 + second, "worker", switches);
            let began = FIRST + u64::from(second) * SECOND + 1;
            machine
                .threads
                .last_mut()
                .expect("a thread was added")
                .start_ns = began;
        }
        machine.update(&mut tracker);
        let web = group(&tracker, "web").expect("it was there");
        (web.total.get(Count::Voluntary), web.now.states[1])
    };
    machine.start(10, 1, "web", FIRST + 1);
    assert_eq!(look(&mut machine, 5, &[]), (5, 1));
    assert_eq!(look(&mut machine, 8, &[]), (8, 1));
    // A second thread begins, both run, and it ends.
    assert_eq!(look(&mut machine, 9, &[(2, 20)]), (29, 2));
    assert_eq!(look(&mut machine, 10, &[(2, 21)]), (31, 2));
    assert_eq!(look(&mut machine, 12, &[]), (33, 1));
    assert_eq!(look(&mut machine, 13, &[]), (34, 1));
    // One of two executes a program, and leads from then on.
    assert_eq!(look(&mut machine, 13, &[(6, 40)]), (74, 2));
    machine.rename(10, "other");
    assert_eq!(look(&mut machine, 41, &[]), (74, 1));
    assert_eq!(look(&mut machine, 43, &[]), (76, 1));
    // In total it switched 80 times.
    machine.exit(10);
    machine.ended(10, 1, "other", FIRST + 1, 0).nvcsw = 80;
    assert_eq!(look(&mut machine, 0, &[]), (80, 0));
}

/// The exit of the first process comes after that of the process that has reused its pid.
#[test]
fn an_exit_counts_for_the_process_that_had_the_pid_then() {
    let (mut machine, mut tracker) = machine(|_| ());
    machine.start(1, 0, "init", SECOND);
    machine.start(10, 1, "web", SECOND);
    machine.ended = Some(Vec::new());
    machine.update(&mut tracker);
    machine.exit(10);
    machine.ended(10, 1, "db", FIRST + 1, 3 * SECOND);
    machine.ended.as_mut().expect("exits")[0].1 = Some("/bin/db\0".into());
    machine.update(&mut tracker);
    let user = |tracker: &Tracker, name: &str| {
        group(tracker, name).map(|group| group.total.get(Count::User))
    };
    assert_eq!(user(&tracker, "web"), Some(0));
    assert_eq!(user(&tracker, "db"), Some(3 * SECOND));
    machine.ended(10, 1, "web", SECOND, 7 * SECOND);
    machine.update(&mut tracker);
    assert_eq!(user(&tracker, "web"), Some(7 * SECOND));
    assert_eq!(user(&tracker, "db"), Some(3 * SECOND));
}

#[test]
fn an_exited_process_is_counted_to_its_end_and_once() {
    let rules = Rules::of_items(&[Item {
        cmdlines: Some(vec![".+".into()]),
        ..Item::default()
    }]);
    let rules = rules.expect("rules");
    let (mut machine, mut tracker) = machine(|options| options.rules = rules);
    machine.start(1, 0, "init", SECOND);
    machine.start(10, 1, "make", SECOND).cpu.utime_ns = 5 * SECOND;
    machine.ended = Some(Vec::new());
    machine.update(&mut tracker);
    let user = |tracker: &Tracker, name: &str| {
        group(tracker, name).map(|group| group.total.get(Count::User))
    };
    assert_eq!(user(&tracker, "make"), Some(0));

    // Two compilers come and go: one executed a known program, the other was only forked by make.
    machine.get(10).cpu.utime_ns = 6 * SECOND;
    machine.ended(20, 10, "cc", FIRST + 1, SECOND).nvcsw = 3;
    machine.ended.as_mut().expect("exits")[0].1 = Some("/usr/bin/gcc\0-c\0".into());
    let forked = machine.ended(21, 10, "make", FIRST + 2, 2 * SECOND);
    (forked.nvcsw, forked.has_program_of_parent) = (4, Some(true));
    // A process that came and went before the first update.
    machine.ended(9, 1, "old", FIRST - 9, SECOND);
    machine.update(&mut tracker);
    assert_eq!(user(&tracker, "gcc"), Some(SECOND));
    assert_eq!(user(&tracker, "make"), Some(3 * SECOND));
    assert_eq!(user(&tracker, "old"), None);
    let gcc = group(&tracker, "gcc").expect("it was there");
    assert_eq!(gcc.total.get(Count::Voluntary), 3);
    assert_eq!(gcc.now.procs, 0);

    // make is gone, and its exit is reported two updates later.
    machine.exit(10);
    machine.ended = Some(Vec::new());
    machine.update(&mut tracker);
    machine.ended = Some(Vec::new());
    machine.update(&mut tracker);
    assert_eq!(user(&tracker, "make"), Some(3 * SECOND));
    machine.ended(10, 1, "make", SECOND, 7 * SECOND);
    machine.update(&mut tracker);
    assert_eq!(user(&tracker, "make"), Some(4 * SECOND));
    machine.ended = Some(Vec::new());
    machine.update(&mut tracker);
    assert_eq!(user(&tracker, "make"), Some(4 * SECOND));
    assert_eq!(user(&tracker, "gcc"), Some(SECOND));
}

#[test]
fn an_exit_without_a_command_line_is_in_the_group_of_its_parent_only_if_both_ran_one_program() {
    let rules = Rules::of_items(&[Item {
        name: "{{.Comm}}".into(),
        comms: Some(vec!["make".into(), "cc".into()]),
        ..Item::default()
    }]);
    let (mut machine, mut tracker) = machine(|options| options.rules = rules.expect("rules"));
    machine.start(10, 1, "make", SECOND);
    machine.ended = Some(Vec::new());
    machine.update(&mut tracker);
    let same = machine.ended(21, 10, "cc", FIRST + 1, SECOND);
    same.has_program_of_parent = Some(true);
    machine.ended(22, 10, "cc", FIRST + 2, 2 * SECOND);
    machine.update(&mut tracker);
    let user = |name: &str| group(&tracker, name).map(|group| group.total.get(Count::User));
    assert_eq!((user("make"), user("cc")), (Some(SECOND), Some(2 * SECOND)));
}

#[test]
fn a_process_is_in_the_group_of_its_pod_and_so_is_an_exited_one() {
    let rules = Rules::of_items(&[Item {
        name: "{{.PodName}}".into(),
        cmdlines: Some(vec![".+".into()]),
        ..Item::default()
    }]);
    let (mut machine, mut tracker) = machine(|options| options.rules = rules.expect("rules"));
    let container = Container {
        pod: "web-0".into(),
        ..Container::default()
    };
    machine.containers.insert(7, container.into());
    machine.cmdlines.insert(10, "/bin/web\0".into());
    let web = machine.start(10, 1, "web", SECOND);
    web.identity.groups |= Fields::CGROUP.bits();
    let mut exit = Exit::default();
    exit.cgroup_id = 7;
    web.cgroup = exit.to_record().cgroup;
    machine.ended = Some(Vec::new());
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "web-0"), Some(1));
    machine.ended(11, 1, "sh", FIRST + 1, 3 * SECOND).cgroup_id = 7;
    machine.ended.as_mut().expect("exits")[0].1 = Some("/bin/sh\0".into());
    machine.update(&mut tracker);
    let group = group(&tracker, "web-0").expect("the group exists");
    assert_eq!(group.total.get(Count::User), 3 * SECOND);
}
