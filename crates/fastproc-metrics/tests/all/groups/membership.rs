//! The group of each process.

use fastproc_metrics::{groups::Count, naming::Rules};

use crate::groups::machine::{FIRST, SECOND, group, machine, minor, named, procs};

/// As in process-exporter, a process is named once and keeps its group, unless the rules are to be applied again.
#[test]
fn a_process_goes_with_its_name_only_if_it_is_checked_again() {
    for recheck in [false, true] {
        let (mut machine, mut tracker) = machine(|options| options.recheck = recheck);
        machine.start(10, 1, "old", SECOND);
        machine.start(11, 1, "other", SECOND);
        machine.get(10).cpu.minflt = 5;
        machine.update(&mut tracker);
        machine.get(10).cpu.minflt = 12;
        machine.update(&mut tracker);
        let described = machine.described;
        machine.rename(10, "new");
        machine.cmdlines.insert(10, "/bin/new\0".into());
        machine.get(10).cpu.minflt = 21;
        machine.update(&mut tracker);
        // What it did under its old name stays there, whatever follows.
        let (old, new) = if recheck { (7, Some(9)) } else { (16, None) };
        assert_eq!(minor(&tracker, "old"), old);
        assert_eq!(procs(&tracker, "old"), Some(u64::from(!recheck)));
        assert_eq!(procs(&tracker, "new"), recheck.then_some(1));
        let told = group(&tracker, "new").map(|group| group.total.get(Count::MinorFaults));
        assert_eq!(told, new);
        // The other process has not run, so it is not read again.
        assert_eq!(machine.described - described, usize::from(recheck));
    }
}

/// A shell that executes a program takes neither its children nor what it did with it.
#[test]
fn a_child_stays_with_the_group_that_its_parent_has_left() {
    let rules = named(&[("shells", "sh"), ("web", "web")]);
    let (mut machine, mut tracker) = machine(|options| {
        options.rules = rules;
        options.recheck = true;
    });
    machine.start(10, 1, "sh", SECOND);
    machine.start(11, 10, "leaf", SECOND);
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "shells"), Some(2));
    machine.rename(10, "web");
    machine.get(11).cpu.minflt = 3;
    machine.update(&mut tracker);
    assert_eq!(procs(&tracker, "shells"), Some(1));
    assert_eq!(procs(&tracker, "web"), Some(1));
    assert_eq!(minor(&tracker, "shells"), 3);
}

#[test]
fn work_in_a_group_that_a_process_left_is_counted_once() {
    let rules = named(&[("a", "a"), ("b", "b")]);
    let (mut machine, mut tracker) = machine(|options| {
        options.rules = rules;
        options.recheck = true;
    });
    machine.start(9, 1, "a", SECOND);
    machine.update(&mut tracker);
    machine.start(10, 1, "a", FIRST + 1);
    for (name, faults) in [("a", 20), ("none", 30), ("b", 40), ("b", 41)] {
        machine.rename(10, name);
        machine.get(10).cpu.minflt = faults;
        machine.update(&mut tracker);
        assert_eq!(minor(&tracker, "a"), 20);
    }
    assert_eq!(minor(&tracker, "b"), 1);
}

/// With `recheck`, processes without a group are checked again until they are in one.
#[test]
fn a_process_without_a_group_may_join_one() {
    for recheck in [false, true] {
        let rules = named(&[("web", "web")]);
        let (mut machine, mut tracker) = machine(|options| {
            options.rules = rules;
            options.recheck = recheck;
        });
        machine.start(10, 1, "sh", SECOND);
        machine.start(11, 10, "leaf", SECOND);
        machine.update(&mut tracker);
        assert_eq!(procs(&tracker, "web"), None);
        machine.rename(10, "web");
        machine.update(&mut tracker);
        // Its child follows it.
        assert_eq!(procs(&tracker, "web"), recheck.then_some(2));
    }
}

/// As in process-exporter, what a process did before belongs to its group only if it started after the first update.
#[test]
fn a_process_that_joins_a_group_brings_its_counts_since_the_first_snapshot() {
    let only_web = || named(&[("web", "web")]);
    for (started, brings) in [(SECOND, 0), (FIRST + 1, 50)] {
        let (mut machine, mut tracker) = machine(|options| {
            options.rules = only_web();
            options.recheck = true;
        });
        machine.start(9, 1, "web", SECOND);
        machine.update(&mut tracker);
        machine.start(10, 1, "sh", started).cpu.minflt = 20;
        for (tid, nvcsw) in [(10, 3), (11, 4)] {
            machine.thread(10, tid, "sh", nvcsw);
        }
        machine.get(10).identity.num_threads = 2;
        machine.update(&mut tracker);
        machine.rename(10, "web");
        machine.get(10).cpu.minflt = 50;
        machine.update(&mut tracker);
        assert_eq!(minor(&tracker, "web"), brings);
        let switches = group(&tracker, "web").unwrap().total.get(Count::Voluntary);
        assert_eq!(switches, if brings > 0 { 7 } else { 0 });
        machine.get(10).cpu.minflt = 55;
        machine.update(&mut tracker);
        assert_eq!(minor(&tracker, "web"), brings + 5);
    }
}

#[test]
fn a_young_child_stays_with_its_parents_group_when_they_end() {
    let rules = named(&[("shells", "sh")]);
    let (mut machine, mut tracker) = machine(|options| options.rules = rules);
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
fn names_are_looked_at_again_only_while_the_process_is_young() {
    let only_web = || named(&[("web", "web")]);
    let (mut machine, mut tracker) = machine(|options| {
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
    let rules = || named(&[("shells", "sh"), ("db", "db")]);
    for children in [true, false] {
        let (mut machine, mut tracker) = machine(|options| {
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
        // A child of a process without a group has none, and neither has a process without a parent here.
        machine.start(14, 5, "new", FIRST + 1);
        machine.start(15, 999, "new", FIRST + 1);
        machine.update(&mut tracker);
        assert_eq!(procs(&tracker, "shells"), Some(u64::from(children)));
    }
}

#[test]
fn an_unreadable_process_is_described_at_the_next_update() {
    let (mut machine, mut tracker) = machine(|_| ());
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
fn the_name_of_a_group_is_escaped_in_its_label() {
    let (mut machine, mut tracker) = machine(|_| ());
    machine.start(10, 1, r#"a"b\c"#, SECOND);
    machine.update(&mut tracker);
    let group = group(&tracker, r#"a"b\c"#).expect("the group exists");
    assert_eq!(&*group.labels, r#"groupname="a\"b\\c""#);
}

#[test]
fn names_alone_select() {
    let rules = Rules::of_names(&["web".into()], None).unwrap();
    let (mut machine, mut tracker) = machine(|options| options.rules = rules);
    machine.start(10, 1, "web", SECOND);
    machine.start(11, 1, "db", SECOND);
    machine.update(&mut tracker);
    assert_eq!(tracker.groups().count(), 1);
}

#[test]
fn a_child_that_no_rule_names_is_of_its_parent_in_the_end_too() {
    let rules = named(&[("all", "parent")]);
    let (mut machine, mut tracker) = machine(|options| options.rules = rules);
    machine.start(1, 0, "init", SECOND);
    machine.ended = Some(Vec::new());
    machine.update(&mut tracker);
    // Its parent has exited as well, and is reported later.
    machine.ended(31, 30, "child", FIRST + 2, SECOND);
    machine.ended(30, 1, "parent", FIRST + 1, SECOND);
    for (_, line) in machine.ended.iter_mut().flatten() {
        *line = Some("/bin/some\0".into());
    }
    machine.update(&mut tracker);
    let user: Vec<_> = tracker
        .groups()
        .map(|group| group.total.get(Count::User))
        .collect();
    assert_eq!(user, [2 * SECOND]);
}
