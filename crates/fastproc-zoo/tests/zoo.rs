//! The zoo keeps its promises: each animal is what `/proc` shows it to be, and none outlives it.

mod gone;

use fastproc_zoo::{Expect, Options, Why, Zoo, ZooError, catalogue};
use gone::{is_gone, kill, stat, status, threads};

fn open(labels: &[&str]) -> Zoo {
    Zoo::open(&Options::only(labels.iter().copied())).unwrap()
}

#[test]
fn every_animal_is_there_or_absent_with_a_reason() {
    let zoo = Zoo::open(&Options::default()).unwrap();
    for absent in zoo.absent() {
        gone::say!("ABSENT {absent}");
    }
    assert_eq!(
        zoo.animals().len() + zoo.absent().len(),
        catalogue().count()
    );
    let broken: Vec<_> = zoo
        .absent()
        .iter()
        .filter(|absent| absent.why == Why::Broken)
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
    assert!(zoo.absent().iter().all(|absent| !absent.reason.is_empty()));
    // What no kernel since 5.10 refuses to anyone.
    for label in [
        "zombie",
        "dead-leader",
        "traced",
        "stopped",
        "vfork-parent",
        "name-newline",
        "threads-100",
        "signals-pending",
    ] {
        assert!(zoo.animal(label).is_some(), "{label} is absent");
    }
    for animal in zoo.animals() {
        animal
            .check()
            .unwrap_or_else(|mismatch| panic!("{}: expected {mismatch}", animal.label));
    }
    let mut pids: Vec<_> = zoo.animals().iter().map(|animal| animal.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), zoo.animals().len(), "two animals share a pid");
}

// The promises are checked by the zoo's own reader; these are checked by another one.

#[test]
fn a_dead_leader_has_threads_that_live() {
    let zoo = open(&["dead-leader"]);
    let pid = zoo.animal("dead-leader").unwrap().pid;
    // Threads have begun when the zoo opens; on a busy machine they may not have come to rest.
    gone::wait_until(|| {
        let states: Vec<char> = threads(pid)
            .map(|tid| stat(&format!("{pid}/task/{tid}")).unwrap().0)
            .collect();
        if states == ['Z', 'S', 'S', 'S'] {
            Ok(())
        } else {
            Err(format!("threads in the states {states:?}"))
        }
    });
}

#[test]
fn traced_names_its_tracer() {
    let zoo = open(&["traced", "traced-child"]);
    for (tracer, traced) in [("tracer", "traced"), ("tracing-parent", "traced-child")] {
        let [tracer, traced] = [tracer, traced].map(|label| zoo.animal(label).unwrap().pid);
        assert_eq!(status(traced, "TracerPid"), tracer.to_string());
        assert_eq!(stat(&traced.to_string()).unwrap().0, 't');
    }
}

#[test]
fn an_orphan_belongs_to_the_keeper() {
    let zoo = open(&["orphan"]);
    assert_eq!(
        status(zoo.animal("orphan").unwrap().pid, "PPid"),
        zoo.keeper_pid().to_string()
    );
}

#[test]
fn nested_namespaces_number_from_one() {
    let zoo = open(&["pidns-3"]);
    if zoo.animals().is_empty() {
        gone::say!("SKIPPED: {:?}", zoo.absent());
        return;
    }
    let numbers = |label: &str| {
        let text = status(zoo.animal(label).unwrap().pid, "NSpid");
        text.split_whitespace()
            .skip(1)
            .map(|word| word.parse().unwrap())
            .collect::<Vec<u32>>()
    };
    assert_eq!(numbers("pidns-1"), [1]);
    assert_eq!(numbers("pidns-2"), [2, 1]);
    assert_eq!(numbers("pidns-3"), [3, 2, 1]);
    assert_eq!(numbers("pidns-3-second"), [4, 3, 2]);
}

#[test]
fn groups_are_counted() {
    let zoo = open(&["groups-300"]);
    let Some(animal) = zoo.animal("groups-300") else {
        gone::say!("SKIPPED, needs root: {:?}", zoo.absent());
        return;
    };
    let groups = status(animal.pid, "Groups");
    assert_eq!(groups.split_whitespace().count(), 300);
    assert!(groups.starts_with("5000 5003 "), "{groups}");
}

#[test]
fn relatives_are_related() {
    let zoo = open(&[
        "vfork-child",
        "clone-vm",
        "clone-sighand",
        "terminal-leader",
    ]);
    for (parent, child) in [
        ("vfork-parent", "vfork-child"),
        ("clone-vm", "clone-vm-child"),
        ("clone-sighand", "clone-sighand-child"),
        ("terminal-leader", "terminal-background"),
    ] {
        let (Some(parent), Some(child)) = (zoo.animal(parent), zoo.animal(child)) else {
            gone::say!("SKIPPED {parent}: {:?}", zoo.absent());
            continue;
        };
        assert_eq!(status(child.pid, "PPid"), parent.pid.to_string());
        assert_eq!(status(child.pid, "Tgid"), child.pid.to_string());
    }
}

#[test]
fn a_label_that_does_not_exist_is_refused() {
    let result = Zoo::open(&Options::only(["zombie", "unicorn"]));
    assert!(matches!(result, Err(ZooError::UnknownLabel(label)) if label == "unicorn"));
}

#[test]
fn only_what_was_asked_for_is_started() {
    let zoo = open(&["stopped"]);
    let labels: Vec<_> = zoo.animals().iter().map(|animal| animal.label).collect();
    assert_eq!(labels, ["stopped"]);
    assert_eq!(zoo.animals()[0].expect, [Expect::State('T')]);
}

#[test]
fn nothing_remains_after_drop() {
    let zoo = Zoo::open(&Options::default()).unwrap();
    let mut all = gone::descendants(zoo.keeper_pid());
    assert!(
        all.len() > zoo.animals().len(),
        "the tracer's and the namespaces' helpers are descendants, too"
    );
    all.extend(
        zoo.animals()
            .iter()
            .map(|animal| (animal.pid, animal.starttime)),
    );
    all.push((
        zoo.keeper_pid(),
        stat(&zoo.keeper_pid().to_string()).unwrap().1,
    ));
    assert!(all.iter().all(|&process| !is_gone(process)));
    drop(zoo);
    // Drop waits, so there is nothing to wait for here.
    let left: Vec<_> = all
        .into_iter()
        .filter(|&process| !is_gone(process))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn nothing_remains_after_the_keeper_is_killed() {
    let zoo = Zoo::open(&Options::default()).unwrap();
    let mut all = gone::descendants(zoo.keeper_pid());
    all.extend(
        zoo.animals()
            .iter()
            .map(|animal| (animal.pid, animal.starttime)),
    );
    kill(zoo.keeper_pid());
    gone::wait_until_gone(&all);
}

#[test]
fn a_zoo_outlives_the_thread_that_opened_it() {
    let zoo = std::thread::spawn(|| open(&["idle", "zombie"]))
        .join()
        .unwrap();
    for animal in zoo.animals() {
        animal.check().unwrap();
        assert!(!is_gone((animal.pid, animal.starttime)));
    }
    assert_eq!(zoo.animals().len(), 2);
}
