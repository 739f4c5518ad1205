//! Counters of a group across exits, exec, pids that are given away and names that change.

use std::{
    fs,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
};

use fastproc_zoo::gate;

use crate::{TMP, actor::Actor, exposition::Metrics, folder::Folder, server::Server};

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

/// No counter of any group has gone back or away.
#[track_caller]
fn assert_forward(before: &Metrics, after: &Metrics) {
    for (name, labels, value) in before.series() {
        let counter = name.strip_prefix("namedprocess_namegroup_");
        if !counter.is_some_and(|counter| COUNTERS.contains(&counter)) {
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
fn what_the_dead_did_stays() {
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
    // It lived under our eyes alone, so all that it ever did has been counted.
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

#[test]
fn what_was_done_before_the_first_look_is_not_counted() {
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

#[test]
fn another_program_is_another_group_if_names_are_looked_at_again() {
    let (folder, old, new) = (Folder::new(), unique("was"), unique("is"));
    let kept = Server::start(&["--recheck=false"]);
    let renamed = Server::start(&["--recheck"]);
    let mut actor = Actor::start(&folder, &old);
    actor.spend(20);
    kept.scrape();
    let before = [kept.scrape(), renamed.scrape()];
    for metrics in &before {
        assert_eq!(procs(metrics, &old), Some(1.0));
        assert!(cpu_seconds(metrics, &old) >= 0.2);
    }
    actor.execute(&folder, &new);
    actor.spend(20);
    let after = [kept.scrape(), renamed.scrape()];
    assert_eq!(procs(&after[0], &old), Some(1.0));
    assert_eq!(procs(&after[0], &new), None);
    assert!(cpu_seconds(&after[0], &old) >= 0.4);
    assert_eq!(procs(&after[1], &old), Some(0.0));
    assert_eq!(procs(&after[1], &new), Some(1.0));
    // What it did as the old program stays there (its ticks are rounded down), and is not counted once more.
    assert!(cpu_seconds(&after[1], &new) >= 0.17);
    assert!(
        cpu_seconds(&after[1], &old) + cpu_seconds(&after[1], &new)
            <= actor.ticks() as f64 / 100.0 + 0.03
    );
    for (before, after) in before.iter().zip(&after) {
        assert_forward(before, after);
    }
}

#[test]
fn a_name_that_changes_counts_only_if_names_are_looked_at_again() {
    let (folder, old, new) = (Folder::new(), unique("old"), unique("new"));
    let kept = Server::start(&[]);
    let renamed = Server::start(&["--recheck"]);
    let mut actor = Actor::start(&folder, &old);
    // A young process is named twice, as the first look may fall into its exec.
    kept.scrape();
    let before = [kept.scrape(), renamed.scrape()];
    actor.rename(&new);
    let after = [kept.scrape(), renamed.scrape()];
    assert_eq!(
        (procs(&after[0], &old), procs(&after[0], &new)),
        (Some(1.0), None)
    );
    assert_eq!(
        (procs(&after[1], &old), procs(&after[1], &new)),
        (Some(0.0), Some(1.0))
    );
    for (before, after) in before.iter().zip(&after) {
        assert_forward(before, after);
    }
}

#[test]
fn names_are_looked_at_again_for_as_long_as_is_said() {
    let (folder, old, new) = (Folder::new(), unique("aged"), unique("late"));
    let server = Server::start(&["--recheck-with-time-limit", "1ms"]);
    let mut actor = Actor::start(&folder, &old);
    server.scrape();
    server.scrape();
    actor.rename(&new);
    let after = server.scrape();
    assert_eq!(
        (procs(&after, &old), procs(&after, &new)),
        (Some(1.0), None)
    );
}

/// A child belongs to its parent's group while it has no name in the configuration.
#[test]
fn children_belong_to_their_parents_unless_they_must_not() {
    let (folder, parent) = (Folder::new(), unique("par"));
    let child = unique("chi");
    folder.alias("/bin/sh", &child);
    let of_parents = Server::start(&["--procnames", &parent]);
    let alone = Server::start(&["--procnames", &parent, "--children=false"]);
    let mut actor = Actor::start(&folder, &parent);
    let program = folder.path().join(&child);
    actor.tell(&format!("{} -c 'read x' <&2 &", program.display()));
    let forked = actor.tell(&format!(
        "{} -c 'sleep 1000; :' & echo $!",
        program.display()
    ));
    let pid: u32 = forked.trim().parse().expect("a pid");
    // It is another program from the moment that the shell's child has executed it.
    crate::wait::until("the child executes", || {
        let comm = fs::read_to_string(format!("/proc/{pid}/comm")).expect("it runs");
        (comm.trim() == child).then_some(())
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
    const TEST: &str = "a_pid_that_is_given_away_is_another_process";
    if !gate::root(TEST, TMP) {
        return;
    }
    let (folder, first, second) = (Folder::new(), unique("one"), unique("two"));
    let server = Server::start(&[]);
    let mut actor = Actor::start(&folder, &first);
    actor.spend(20);
    let pid = actor.pid();
    let before = server.scrape();
    actor.end();
    let program = folder.alias("/bin/sh", &second);
    let heir = crate::wait::until("the pid comes again", || take_pid(pid, &program));
    // It has a name of its own soon after it executes the program.
    let after = crate::wait::until("the heir is known", || {
        let metrics = server.scrape();
        (procs(&metrics, &second) == Some(1.0)).then_some(metrics)
    });
    drop(heir);
    assert_eq!(procs(&after, &first), Some(0.0));
    // Nothing of the dead one's is the heir's.
    assert!(cpu_seconds(&after, &first) >= 0.2);
    assert!(cpu_seconds(&after, &second) < 0.2);
    assert_forward(&before, &after);
}

/// Ended with the test.
struct Heir(Child);

impl Drop for Heir {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program with this pid, if nobody else is faster.
fn take_pid(pid: u32, program: &std::path::Path) -> Option<Heir> {
    let mut command = Command::new(program);
    command
        .args(["-c", "read x"])
        .process_group(0)
        .stdin(Stdio::piped());
    fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).expect("root may");
    let heir = Heir(command.spawn().expect("a shell can be started"));
    (heir.0.id() == pid).then_some(heir)
}

/// The sums over all groups are the same however many are shown.
#[test]
fn what_is_not_shown_is_in_the_sum_of_the_others() {
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
    let per_group = all.series().filter(|(name, labels, _)| {
        name.starts_with("namedprocess_namegroup_") && labels["groupname"] == names[0]
    });
    let dropped = 2 * per_group.count();
    assert_eq!(
        some.get("fastproc_series_dropped", &[]),
        Some(dropped as f64)
    );
    let resident = [("memtype", "resident")];
    for (name, labels) in [
        ("namedprocess_namegroup_num_procs", &[][..]),
        ("namedprocess_namegroup_num_threads", &[]),
        ("namedprocess_namegroup_states", &[]),
        ("namedprocess_namegroup_memory_bytes", &resident),
    ] {
        let sum = |metrics: &Metrics| metrics.all(name, labels).sum::<f64>();
        assert!(
            (sum(&all) - sum(&some)).abs() < 0.5,
            "{name}: {} and {}",
            sum(&all),
            sum(&some)
        );
    }
    assert!(cpu_seconds(&some, "other") + cpu_seconds(&some, &names[3]) >= 0.2);

    // By CPU time, the one that works is shown, and nothing that was shown before has gone back.
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
