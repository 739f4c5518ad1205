//! Counters of a group across exits, exec, reused pids and changed names.

use std::fs;

use fastproc_testbed::{Brackets, Reborn, alone, gate, wait_for, wait_until};

use crate::serve::{actor::Actor, exposition::Metrics, folder::Folder, server::Server};

const COUNTERS: [&str; 6] = [
    "cpu_seconds_total",
    "read_bytes_total",
    "write_bytes_total",
    "major_page_faults_total",
    "minor_page_faults_total",
    "context_switches_total",
];

/// A name that no other process has.
fn unique(tag: &str) -> String {
    format!("fp{tag}{}", std::process::id())
}

/// Whether a group has one of this test's names.
fn is_own(group: &str) -> bool {
    group.starts_with("fp") && group.ends_with(&std::process::id().to_string())
}

fn procs(metrics: &Metrics, group: &str) -> Option<f64> {
    metrics.get("namedprocess_namegroup_num_procs", &[("groupname", group)])
}

fn faults(metrics: &Metrics, group: &str) -> f64 {
    let name = "namedprocess_namegroup_minor_page_faults_total";
    metrics
        .get(name, &[("groupname", group)])
        .expect("the group is known")
}

fn cpu_seconds(metrics: &Metrics, group: &str) -> f64 {
    let name = "namedprocess_namegroup_cpu_seconds_total";
    metrics.all(name, &[("groupname", group)]).sum()
}

/// No counter of this test's groups has decreased or disappeared.
#[track_caller]
fn assert_forward(before: &Metrics, after: &Metrics) {
    for (name, labels, value) in before.series() {
        let counter = name.strip_prefix("namedprocess_namegroup_");
        let is_counter = counter.is_some_and(|counter| COUNTERS.contains(&counter));
        if !is_counter || !is_own(&labels["groupname"]) {
            continue;
        }
        let labels: Vec<(&str, &str)> = labels
            .iter()
            .map(|(key, value)| (&**key, &**value))
            .collect();
        let now = after.get(name, &labels);
        let now = now.unwrap_or_else(|| panic!("{name} {labels:?} is gone"));
        assert!(now >= value, "{name} {labels:?} went from {value} to {now}");
    }
}

#[test]
fn a_group_keeps_the_counts_of_exited_processes() {
    let (folder, name) = (Folder::new(), unique("dead"));
    let server = Server::start(&[]);
    let empty = server.scrape();
    assert_eq!(procs(&empty, &name), None);
    let mut first = Actor::start(&folder, &name);
    let second = Actor::start(&folder, &name);
    first.spend(20);
    let both = server.scrape();
    assert_eq!(procs(&both, &name), Some(2.0));
    assert!(cpu_seconds(&both, &name) >= 0.2);
    // It started after the server, so everything it did was counted.
    assert!(faults(&both, &name) >= (first.stat(10) / 2) as f64);
    assert_forward(&empty, &both);

    first.end();
    let one = server.scrape();
    assert_eq!(procs(&one, &name), Some(1.0));
    assert_forward(&both, &one);
    second.end();
    let none = server.scrape();
    assert_eq!(procs(&none, &name), Some(0.0));
    assert!(cpu_seconds(&none, &name) >= 0.2);
    assert_forward(&one, &none);
    let resident = [("groupname", &*name), ("memtype", "resident")];
    assert_eq!(
        none.get("namedprocess_namegroup_memory_bytes", &resident),
        Some(0.0)
    );

    let mut third = Actor::start(&folder, &name);
    third.spend(20);
    let again = server.scrape();
    assert_eq!(procs(&again, &name), Some(1.0));
    assert!(cpu_seconds(&again, &name) >= cpu_seconds(&none, &name) + 0.2);
    assert_forward(&none, &again);
}

/// A process that no scrape has counts completely if the kernel adds it up for its parent.
#[test]
fn a_process_between_two_scrapes_is_counted() {
    if !gate::bpf() {
        return;
    }
    // Too many exits of other tests would fill the buffer, and some of ours could be lost.
    let _alone = alone();
    let (folder, name) = (Folder::new(), unique("brief"));
    let server = Server::start(&[]);
    let mut parent = Actor::start(&folder, &unique("par"));
    let before = server.scrape();
    assert_eq!(procs(&before, &name), None);
    let program = folder.alias("/bin/sh", &name);
    let work = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done";
    parent.tell(&format!(
        "n=0; while [ $n -lt 30 ]; do n=$((n+1)); {} -c '{work}'; done",
        program.display()
    ));
    let spent = (parent.stat(16) + parent.stat(17)) as f64 / 100.0;
    let faulted = parent.stat(11) as f64;
    assert!(spent > 0.1, "{spent} s");
    // The kernel has not yet reaped the last ones.
    let after = wait_for("what the children did is counted", || {
        let after = server.scrape();
        let is_told = procs(&after, &name).is_some()
            && cpu_seconds(&after, &name) >= 0.97 * spent - 0.03
            && faults(&after, &name) >= 0.9 * faulted
            && after
                .get("fastproc_exits_total", &[])
                .is_some_and(|exits| exits >= 30.0);
        is_told.then_some(after)
    });
    assert_eq!(procs(&after, &name), Some(0.0));
    let counted = cpu_seconds(&after, &name);
    assert!(counted <= 1.03 * spent + 0.03, "{counted} of {spent} s");
    let minor = faults(&after, &name);
    assert!(minor <= faulted, "{minor} of {faulted}");
}

#[test]
fn work_before_the_first_snapshot_is_not_counted() {
    let (folder, name) = (Folder::new(), unique("old"));
    let mut actor = Actor::start(&folder, &name);
    actor.spend(100);
    let server = Server::start(&[]);
    assert!(cpu_seconds(&server.scrape(), &name) < 1.0);
    let before = actor.ticks();
    actor.spend(30);
    let spent = (actor.ticks() - before) as f64 / 100.0;
    let counted = cpu_seconds(&server.scrape(), &name);
    assert!(counted >= spent - 0.03, "{counted} of {spent}");
}

/// Only if it is checked again does a process go with its names. What it did before stays where it was.
#[test]
fn a_process_goes_with_its_program_and_its_name_if_it_is_checked_again() {
    let (folder, old, new) = (Folder::new(), unique("was"), unique("is"));
    let renamed = unique("renamed");
    let servers = [&["--recheck=false"][..], &["--recheck"]].map(Server::start);
    let mut actor = Actor::start(&folder, &old);
    actor.spend(20);
    let before = servers.each_ref().map(Server::scrape);
    actor.execute(&folder, &new);
    actor.spend(20);
    let executed = servers.each_ref().map(Server::scrape);
    actor.rename(&renamed);
    let after = servers.each_ref().map(Server::scrape);
    let names = [&old, &new, &renamed];
    let groups = |metrics| names.map(|name| procs(metrics, name));
    for metrics in [&before[0], &executed[0], &after[0]] {
        assert_eq!(groups(metrics), [Some(1.0), None, None]);
    }
    assert_eq!(groups(&before[1]), [Some(1.0), None, None]);
    assert_eq!(groups(&executed[1]), [Some(0.0), Some(1.0), None]);
    assert_eq!(groups(&after[1]), [Some(0.0), Some(0.0), Some(1.0)]);
    assert!(cpu_seconds(&before[0], &old) >= 0.2);
    assert!(cpu_seconds(&executed[0], &old) >= 0.4);
    // It counts ticks to know what it has spent, so up to two of them may be those of its old name.
    assert!(cpu_seconds(&executed[1], &new) > 0.17);
    for at in 0..servers.len() {
        assert_forward(&before[at], &executed[at]);
        assert_forward(&executed[at], &after[at]);
    }
}

/// With the option, a process without a group may join one later.
#[test]
fn recheck_matches_processes_without_a_group_again() {
    let (folder, old, new) = (Folder::new(), unique("none"), unique("some"));
    let starting = |more: &[&str]| {
        let fixed = ["--procnames", &new, "--children=false"];
        Server::start(&[&fixed[..], more].concat())
    };
    let never = starting(&[]);
    let always = starting(&["--recheck"]);
    let young = starting(&["--recheck-with-time-limit", "1ms"]);
    let mut actor = Actor::start(&folder, &old);
    for server in [&never, &always, &young] {
        assert_eq!(procs(&server.scrape(), &new), None);
    }
    actor.rename(&new);
    for (server, expected) in [(&never, None), (&always, Some(1.0)), (&young, None)] {
        assert_eq!(procs(&server.scrape(), &new), expected);
    }
}

/// A child belongs to its parent's group unless the configuration names it.
#[test]
fn children_belong_to_their_parents_unless_they_must_not() {
    let (folder, parent) = (Folder::new(), unique("par"));
    let child = unique("chi");
    folder.alias("/bin/sh", &child);
    let of_parents = Server::start(&["--procnames", &parent]);
    let alone = Server::start(&["--procnames", &parent, "--children=false"]);
    let mut actor = Actor::start(&folder, &parent);
    let program = folder.path().join(&child);
    let forked = actor.tell(&format!(
        "{} -c 'sleep 1000; :' & echo $!",
        program.display()
    ));
    let pid: u32 = forked.trim().parse().expect("a pid");
    // It is another program once the shell's child has executed it.
    wait_until("the child executes", || {
        let comm =
            fs::read_to_string(format!("/proc/{pid}/comm")).expect("/proc shows the process");
        comm.trim() == child
    });
    let (with, without) = (of_parents.scrape(), alone.scrape());
    assert!(
        procs(&with, &parent) >= Some(2.0),
        "{:?}",
        procs(&with, &parent)
    );
    assert_eq!(procs(&without, &parent), Some(1.0));
    assert_eq!(procs(&with, &child), None);
}

#[test]
fn a_pid_that_is_given_away_is_another_process() {
    if !gate::root() {
        return;
    }
    let (folder, first, second) = (Folder::new(), unique("one"), unique("two"));
    let server = Server::start(&[]);
    let mut actor = Actor::start(&folder, &first);
    actor.spend(20);
    let pid = actor.pid();
    let before = server.scrape();
    actor.end();
    let program = folder.alias("/bin/sleep", &second);
    let heir = wait_for("the pid is nobody's", || {
        Reborn::start(pid, &program, &["1000"]).expect("root may choose a pid")
    });
    // Its parent continues before it has its program's name; a scrape at that time would put it in another group.
    wait_until("the heir executes", || {
        let comm =
            fs::read_to_string(format!("/proc/{pid}/comm")).expect("/proc shows the process");
        comm.trim() == second
    });
    let after = wait_for("the heir is known", || {
        let metrics = server.scrape();
        (procs(&metrics, &second) == Some(1.0)).then_some(metrics)
    });
    drop(heir);
    assert_eq!(procs(&after, &first), Some(0.0));
    // The new process has nothing of the exited one.
    assert!(cpu_seconds(&after, &first) >= 0.2);
    assert!(cpu_seconds(&after, &second) < 0.2);
    assert_forward(&before, &after);
}

/// The sums over all groups are the same, however many are shown.
#[test]
fn groups_above_the_limit_are_summed_as_other() {
    let folder = Folder::new();
    let names: Vec<String> = ["la", "lb", "lc", "ld"].map(unique).into();
    let config = folder.write(
        "groups.yml",
        &format!(
            "process_names: [{{comm: [{}], name: '{{{{.Comm}}}}'}}]",
            names.join(", ")
        ),
    );
    let arguments = ["--config", &config, "--children=false", "--threads=false"];
    let whole = Server::start(&arguments);
    let limited = Server::start(&[&arguments[..], &["--max-groups", "2"]].concat());
    let mut actors: Vec<Actor> = names
        .iter()
        .map(|name| Actor::start(&folder, name))
        .collect();
    actors[3].spend(20);
    let (all, some) = (whole.scrape(), limited.scrape());
    assert_eq!(all.all("namedprocess_namegroup_num_procs", &[]).count(), 4);
    assert_eq!(some.all("namedprocess_namegroup_num_procs", &[]).count(), 3);
    assert_eq!(procs(&some, "other"), Some(2.0));
    assert_eq!(some.get("fastproc_groups_folded", &[]), Some(2.0));
    // The number of series of waiting places varies.
    let per_group = all.series().filter(|(name, labels, _)| {
        *name != "namedprocess_namegroup_threads_wchan"
            && labels.get("groupname") == Some(&names[0])
    });
    let dropped = 2 * per_group.count();
    assert_eq!(
        some.get("fastproc_series_dropped", &[]),
        Some(dropped as f64)
    );
    let resident = [("memtype", "resident")];
    let mut brackets = Brackets::new();
    for (name, labels) in [
        ("namedprocess_namegroup_num_procs", &[][..]),
        ("namedprocess_namegroup_num_threads", &[]),
        ("namedprocess_namegroup_states", &[]),
        ("namedprocess_namegroup_memory_bytes", &resident),
    ] {
        // The kernel may take a page away between the two.
        let sum = |server: &Server| server.scrape().all(name, labels).sum::<f64>();
        let (all, some) = wait_for(name, || brackets.read(|| sum(&whole), || sum(&limited)));
        assert!((all - some).abs() < 0.5, "{name}: {some} of {all}");
    }
    brackets.finish(10);
    assert!(cpu_seconds(&some, "other") + cpu_seconds(&some, &names[3]) >= 0.2);

    // Ranked by CPU time, the busy group is shown, and no counter that was shown before has decreased.
    let ranked = Server::start(&[&arguments[..], &["--max-groups", "1", "--rank", "cpu"]].concat());
    let before = ranked.scrape();
    actors[3].spend(20);
    let busy = ranked.scrape();
    assert_eq!(procs(&busy, &names[3]), Some(1.0));
    assert_eq!(procs(&busy, "other"), Some(3.0));
    actors[0].spend(20);
    let other = ranked.scrape();
    assert_eq!(procs(&other, &names[0]), Some(1.0));
    assert_eq!(procs(&other, &names[3]), None);
    for (before, after) in [(&before, &busy), (&busy, &other)] {
        let others = |metrics: &Metrics| cpu_seconds(metrics, "other");
        assert!(others(after) >= others(before));
    }
}
