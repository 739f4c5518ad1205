//! Cgroups of this machine, by both sources. The guests of `tools/kernels` test what needs controllers on version 2.

use std::{
    collections::HashSet,
    fs,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use fastproc::cgroups::{Baseline, Cgroups, Fields, Source, TextFile, record::Pressure};
use fastproc_testbed::{Cgroup, Running, gate, needs, wait_for, wait_until, wait_until_asleep};
use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

/// A process in a cgroup that has used a CPU, mostly in kernel mode, and sleeps until it receives a line.
fn member(folder: &Path) -> Running {
    let script = "echo $$ > $0/cgroup.procs; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; \
                  head -c 500M /dev/zero > /dev/null; echo; read x && while :; do :; done";
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(folder);
    let mut member = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let out = member.stdout.as_mut().expect("a pipe");
    std::io::Read::read_exact(out, &mut [0]).expect("it says when it is done");
    wait_until_asleep(member.id(), "sh");
    member
}

fn open(source: Source, fields: Fields) -> Cgroups {
    Cgroups::builder()
        .fields(fields)
        .source(Some(source))
        .open()
        .unwrap_or_else(|error| panic!("{source}: {error}"))
}

#[test]
fn both_sources_say_what_the_kernels_files_say() {
    needs!(gate::bpf());
    let Some(tree) = Cgroup::new("both") else {
        return;
    };
    let (used, inner) = (tree.make("used"), tree.make("outer/inner"));
    let _member = member(&used);
    fs::write(inner.join("cgroup.freeze"), "1").expect("the file is written");
    // The kernel reports a frozen cgroup a moment later.
    let events = inner.join("cgroup.events");
    wait_until("a frozen cgroup", || {
        let events = fs::read_to_string(&events).expect("the file is read");
        events.contains("frozen 1")
    });
    for source in [Source::Bpf, Source::Files] {
        let mut cgroups = open(source, Fields::all());
        assert_eq!(cgroups.source(), source);
        let mut look = || {
            let snapshot = cgroups.snapshot().expect("a snapshot");
            let found = snapshot
                .find(&tree.path_of("/used"))
                .expect("the cgroup is shown");
            let mut text = Vec::new();
            assert!(snapshot.render(found, TextFile::CpuStat, &mut text));
            (text, found.cpu().map(|cpu| cpu.usage_ns))
        };
        // A process may report that it sleeps before it has left its CPU. The kernel remembers the times that it has shown,
        // so only what is read before them shows how it makes them of the samples.
        let (text, kernel) = wait_for("a cgroup that stands still", || {
            let (text, usage) = look();
            let kernel = fs::read_to_string(used.join("cpu.stat")).expect("the file is read");
            (look().1 == usage).then_some((text, kernel))
        });
        assert_eq!(String::from_utf8_lossy(&text), kernel, "{source}");
        assert!(!kernel.starts_with("usage_usec 0\n"), "it has used a CPU");
        let snapshot = cgroups.snapshot().expect("a snapshot");
        let find = |below: &str| {
            let path = tree.path_of(below);
            let found = snapshot.find(&path);
            found.unwrap_or_else(|| panic!("{source}: {} is missing", path.escape_ascii()))
        };
        let identity = |below: &str| {
            let identity = find(below).record().identity;
            (
                identity.populated,
                identity.frozen,
                identity.descendants,
                identity.threaded,
            )
        };
        assert_eq!(identity(""), (1, 0, 3, 0), "{source}");
        assert_eq!(identity("/used"), (1, 0, 0, 0), "{source}");
        assert_eq!(identity("/outer"), (0, 0, 1, 0), "{source}");
        assert_eq!(identity("/outer/inner"), (0, 1, 0, 0), "{source}");
        let outer = find("/outer");
        assert_eq!(find("/outer/inner").record().identity.parent, outer.id());
        assert_eq!((outer.name(), outer.depth()), (&b"outer"[..], 3));
        assert_eq!(
            outer.id(),
            rustix::fs::stat(tree.folder().join("outer"))
                .expect("the folder exists")
                .st_ino
        );
        // A kernel may lack pressure, or not count it.
        let has_pressure = fs::read(used.join("cpu.pressure")).is_ok();
        let pressure = find("/used").pressure();
        assert_eq!(pressure.is_some(), has_pressure, "{source}");
        let root = snapshot.iter().next().expect("a root");
        assert_eq!(
            (root.path(), root.depth(), root.name()),
            (&b"/"[..], 0, &b"/"[..])
        );
        assert!(root.cpu().is_some_and(|cpu| cpu.usage_ns > 0), "{source}");
    }
}

#[test]
fn cgroups_come_and_go_with_their_directories() {
    needs!(gate::bpf());
    let Some(tree) = Cgroup::new("go") else {
        return;
    };
    let gone = tree.make("gone");
    for source in [Source::Bpf, Source::Files] {
        let mut cgroups = open(source, Fields::CPU);
        let mut before = Baseline::default();
        let path = tree.path_of("/gone");
        let snapshot = cgroups.snapshot().expect("a snapshot");
        let found = snapshot.find(&path).expect("the cgroup is shown");
        assert_eq!(before.changes(snapshot, found).cpu, None);
        let first = found.id();
        before.set(snapshot);
        thread::sleep(Duration::from_millis(5));
        let snapshot = cgroups.snapshot().expect("a snapshot");
        let found = snapshot.find(&path).expect("the cgroup is shown");
        assert_eq!(before.changes(snapshot, found).cpu, Some(0.0));
        fs::remove_dir(&gone).expect("it is empty");
        let snapshot = cgroups.snapshot().expect("a snapshot");
        assert!(snapshot.find(&path).is_none(), "{source}");
        fs::create_dir(&gone).expect("root may make a cgroup");
        let snapshot = cgroups.snapshot().expect("a snapshot");
        let found = snapshot.find(&path).expect("it is there again");
        assert_ne!(found.id(), first, "{source}");
        assert_eq!(before.changes(snapshot, found).cpu, None, "{source}");
    }
}

/// Ends the storms, however the test ends.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The walk pauses after every few cgroups, while others are created and removed.
#[test]
fn a_walk_in_many_runs_meets_what_stays() {
    needs!(gate::bpf());
    let Some(tree) = Cgroup::new("storm") else {
        return;
    };
    let mut stay = Vec::new();
    for at in 0..40 {
        tree.make(&format!("s{at}/deep/deeper"));
        for below in [
            format!("/s{at}"),
            format!("/s{at}/deep"),
            format!("/s{at}/deep/deeper"),
        ] {
            stay.push(tree.path_of(&below));
        }
    }
    let stop = AtomicBool::new(false);
    let rounds = [const { AtomicU32::new(0) }; 2];
    thread::scope(|scope| {
        let _stop = Stop(&stop);
        for (storm, rounds) in rounds.iter().enumerate() {
            let (tree, stop) = (&tree, &stop);
            scope.spawn(move || {
                for round in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let own = format!("s{}/deep/x{storm}", (round * 7) % 40);
                    tree.make(&format!("{own}/y/z"));
                    tree.remove(&own);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        wait_until("both storms", || {
            let mut rounds = rounds.iter();
            rounds.all(|rounds| rounds.load(Ordering::Relaxed) > 0)
        });
        let mut cgroups = Cgroups::builder()
            .fields(Fields::all())
            .source(Some(Source::Bpf))
            .section(Duration::ZERO)
            .open()
            .expect("the BPF source opens");
        for _ in 0..20 {
            let snapshot = cgroups.snapshot().expect("a snapshot");
            let mut met = HashSet::new();
            let mut paths = HashSet::new();
            for cgroup in snapshot.iter() {
                let identity = &cgroup.record().identity;
                assert!(
                    identity.parent == 0 || met.contains(&identity.parent),
                    "parents come first"
                );
                assert!(
                    met.insert(identity.id),
                    "{} is met twice",
                    cgroup.path().escape_ascii()
                );
                paths.insert(cgroup.path());
            }
            for path in &stay {
                assert!(
                    paths.contains(&path[..]),
                    "{} is missing",
                    path.escape_ascii()
                );
            }
        }
    });
}

/// Two processes of a cgroup that compete for a CPU, until these values are dropped.
fn rivals(folder: &Path) -> [Running; 2] {
    let cpus = sched_getaffinity(None).expect("of this thread");
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| cpus.is_set(cpu));
    let mut one = CpuSet::new();
    one.set(first.expect("this thread runs somewhere"));
    [(); 2].map(|()| {
        let mut member = member(folder);
        sched_setaffinity(Pid::from_raw(member.id() as i32), &one).expect("its CPUs can be set");
        let to = member.stdin.as_mut().expect("a pipe");
        std::io::Write::write_all(to, b"\n").expect("it reads");
        member
    })
}

/// Snapshot, text, snapshot: each total of the text is between those of the snapshots. The averages of a snapshot are the
/// kernel's own, so each equals one of two texts around it.
#[test]
fn pressure_is_what_the_kernel_would_calculate_now() {
    needs!(gate::bpf());
    let Some(tree) = Cgroup::new("pressure") else {
        return;
    };
    let folder = tree.make("contended");
    if fs::read(folder.join("cpu.pressure")).is_err() {
        gate::skipped("this kernel has no pressure of cgroups");
        return;
    }
    let path = tree.path_of("/contended");
    let mut by_bpf = open(Source::Bpf, Fields::PRESSURE);
    let both = Fields::PRESSURE | Fields::PRESSURE_AVERAGES;
    let mut by_files = open(Source::Files, both);
    let mut with_averages = open(Source::Bpf, both);
    let read = |cgroups: &mut Cgroups| {
        let snapshot = cgroups.snapshot().expect("a snapshot");
        let found = snapshot.find(&path).expect("the cgroup is shown");
        let averages = found.pressure_averages().map(|of| of.averages);
        (*found.pressure().expect("the kernel has it"), averages)
    };
    let totals = |pressure: &Pressure| {
        [
            pressure.cpu_some_ns,
            pressure.cpu_full_ns,
            pressure.memory_some_ns,
            pressure.memory_full_ns,
            pressure.io_some_ns,
            pressure.io_full_ns,
        ]
        .map(|ns| ns / 1000)
    };
    let mut look = || {
        let [(before, none), (text, _), (after, _)] =
            [read(&mut by_bpf), read(&mut by_files), read(&mut by_bpf)];
        // A reader that does not ask for the averages does not pay for them.
        assert_eq!(none, None);
        let [old, shown, new] = [&before, &text, &after].map(totals);
        for (at, shown) in shown.into_iter().enumerate() {
            assert!(
                (old[at]..=new[at]).contains(&shown),
                "total {at}: {old:?} {shown} {new:?}"
            );
        }
        let began = Instant::now();
        let [was, is, will] = [
            read(&mut by_files).1,
            read(&mut with_averages).1,
            read(&mut by_files).1,
        ]
        .map(|averages| averages.expect("asked for"));
        // The kernel calculates them every two seconds, so perhaps twice during a long reading.
        let is_long = began.elapsed() > Duration::from_secs(1);
        assert!(
            is_long || [was, will].contains(&is),
            "averages: {was:?} {is:?} {will:?}"
        );
        (before, text, is[0])
    };
    let rivals = rivals(&folder);
    // Times counted on other CPUs weigh less later, so a total may decrease. From here on one CPU counts.
    read(&mut open(Source::Files, Fields::PRESSURE));
    let (_, mut last, mut highest) = look();
    let (mut fresh, mut stale) = (0, 0);
    wait_until("the kernel to show a share", || {
        thread::sleep(Duration::from_millis(250));
        let (before, text, share) = look();
        // One of the rivals waits all the time, and the kernel itself adds that up every two seconds.
        let is_fresh = before.cpu_some_ns > last.cpu_some_ns + 100_000_000;
        fresh += u32::from(is_fresh);
        stale += u32::from(!is_fresh);
        last = text;
        highest = share;
        share > 100 && fresh >= 10
    });
    assert!(fresh > stale, "{stale} of {fresh} snapshots were stale");
    drop(rivals);
    // The share decreases, and the kernel calculates that for each reader.
    wait_until("the share to wear off", || {
        thread::sleep(Duration::from_millis(250));
        look().2 < highest / 2
    });
}
