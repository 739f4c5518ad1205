//! Every other source of the counters, forced. Tests with BPF need root, and say so.

use std::{collections::HashMap, thread, time::Duration};

use fastproc_testbed::{alone, gate, needs, wait_until};

use super::{Counters, Error, Evidence, MachineFile, Options, Route, Want, WhyText};

#[track_caller]
fn open(options: Options) -> Option<Counters> {
    if !gate::bpf() {
        return None;
    }
    let counters = options
        .line_by_line(true)
        .text_latency(Duration::ZERO)
        .open()
        .expect("it opens");
    let refused = counters.unavailable().map(ToString::to_string);
    assert_eq!(refused, None, "the programs are refused");
    Some(counters)
}

fn without_symbols() -> Options {
    Options {
        symbols: false,
        ..Options::new()
    }
}

fn route(counters: &Counters, name: &str) -> Route {
    let report = counters.report();
    let line = report.lines.iter().find(|line| line.name == name);
    line.unwrap_or_else(|| panic!("{name} has no report")).route
}

/// Lines with numbers that rise and fall: between two readings they may have had any value.
fn is_gauge(line: &str) -> bool {
    // Idle times of CPUs may decrease as well.
    ["nr_", "numa_", "workingset", "cpu"]
        .iter()
        .any(|gauge| line.starts_with(gauge))
}

/// Checks that every line of ours is between the kernel's before and after it.
fn agrees(counters: &mut Counters, file: MachineFile) {
    const ROUNDS: usize = 20;
    let _alone = alone();
    let kernel = || std::fs::read_to_string(file.path()).expect("it reads");
    let mut outside: HashMap<String, usize> = HashMap::new();
    for _ in 0..ROUNDS {
        let before = kernel();
        let ours = counters.text(file).expect("it reads");
        let ours = String::from_utf8(ours.to_vec()).expect("it is text");
        let after = kernel();
        let [before, ours, after] =
            [&before, &ours, &after].map(|text| text.lines().collect::<Vec<_>>());
        assert_eq!([before.len(), after.len()], [ours.len(); 2]);
        for ((before, ours), after) in before.into_iter().zip(ours).zip(after) {
            let moved = is_gauge(ours) && before != after;
            if !moved && !is_between(before, ours, after) && !is_late(before, ours) {
                let name = ours.split_whitespace().next().unwrap_or_default();
                *outside.entry(name.to_owned()).or_default() += 1;
            }
        }
    }
    // Momentary numbers.
    outside.retain(|name, _| !matches!(name.as_str(), "procs_running" | "procs_blocked"));
    // A gauge may rise and fall between two readings, but not each time.
    for (name, times) in outside {
        assert!(times * 4 <= ROUNDS, "{}: {name}: {times}", file.path());
    }
}

/// The kernel counts a fork before the tracepoint, which is counted here. On a busy machine some are in between.
fn is_late(before: &str, ours: &str) -> bool {
    const ON_THEIR_WAY: u64 = 64;
    let count = |line: &str| line.strip_prefix("processes ")?.parse::<u64>().ok();
    let (Some(before), Some(ours)) = (count(before), count(ours)) else {
        return false;
    };
    ours < before && before - ours <= ON_THEIR_WAY
}

/// Whether a line has the same words, and numbers between those of the other two.
fn is_between(before: &str, ours: &str, after: &str) -> bool {
    let words = [before, ours, after].map(|line| line.split_whitespace().collect::<Vec<_>>());
    let [before, ours, after] = &words;
    [before.len(), after.len()] == [ours.len(); 2]
        && (0..ours.len()).all(|at| {
            let words = [before[at], ours[at], after[at]];
            match words.map(str::parse::<u64>) {
                [Ok(before), Ok(ours), Ok(after)] => {
                    (before.min(after)..=before.max(after)).contains(&ours)
                }
                _ => words == [ours[at]; 3],
            }
        })
}

#[test]
fn without_bpf_the_files_serve() {
    let mut counters = Options::new().bpf(false).open().expect("it opens");
    assert!(matches!(counters.unavailable(), Some(Error::NotAsked)));
    let report = counters.report();
    assert!(!report.latency_knob && report.lines.len() > 100);
    assert!(
        report.lines.iter().all(
            |line| line.route == Route::Text(WhyText::NoBpf) && line.evidence == Evidence::None
        )
    );
    for file in [
        MachineFile::Stat,
        MachineFile::Vmstat,
        MachineFile::Softirqs,
    ] {
        agrees(&mut counters, file);
    }
    let sample = counters
        .collect(Want::STAT | Want::VMSTAT)
        .expect("it collects");
    assert!(!sample.stat.cpus.is_empty() && sample.vm("pgfault").is_some());
}

#[test]
fn without_privileges_the_files_serve_and_the_reason_is_kept() {
    // Capabilities belong to threads.
    let done = thread::spawn(|| {
        use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, none).expect("capabilities can always be given up");
        let mut counters = Options::new().open().expect("it opens");
        let reason = counters
            .unavailable()
            .expect("nobody may load programs without capabilities");
        assert!(
            matches!(
                reason,
                Error::Bpf(crate::base::error::Error::MissingCapability { .. })
            ),
            "{reason:?}"
        );
        assert!(
            counters
                .report()
                .unavailable
                .is_some_and(|reason| reason.contains("cap_bpf"))
        );
        agrees(&mut counters, MachineFile::Stat);
        agrees(&mut counters, MachineFile::Vmstat);
    });
    done.join().expect("the thread ends well");
}

#[test]
fn without_symbols_structures_lead_everywhere() {
    let Some(mut counters) = open(without_symbols()) else {
        return;
    };
    assert!(!counters.report().symbols);
    assert_eq!(route(&counters, "cpu"), Route::Structure);
    assert_eq!(route(&counters, "processes"), Route::Tracepoint);
    assert_eq!(route(&counters, "pgfault"), Route::Structure);
    assert_eq!(
        route(&counters, "nr_dirty_threshold"),
        Route::Text(WhyText::Computed)
    );
    agrees(&mut counters, MachineFile::Stat);
    agrees(&mut counters, MachineFile::Vmstat);
}

#[test]
fn a_line_that_disagrees_comes_from_the_text_from_then_on() {
    for (name, file) in [
        ("ctxt", MachineFile::Stat),
        ("cpu", MachineFile::Stat),
        ("intr", MachineFile::Stat),
        ("processes", MachineFile::Stat),
        ("softirq", MachineFile::Stat),
        ("pgfault", MachineFile::Vmstat),
        ("nr_free_pages", MachineFile::Vmstat),
        ("numa_hit", MachineFile::Vmstat),
    ] {
        let Some(mut counters) = open(Options {
            disagree: Some(name),
            ..Options::new()
        }) else {
            return;
        };
        let report = counters.report();
        let Some(line) = report.lines.iter().find(|line| line.name == name) else {
            continue;
        };
        assert_eq!(line.route, Route::Text(WhyText::Disagreed), "{name}");
        assert!(line.outside > 0, "{name}");
        // Gauges that change all the time may be given up as well.
        let others = report.lines.iter().filter(|line| {
            let is_gauge = is_gauge(&line.name) || line.name.starts_with("procs_");
            line.route == Route::Text(WhyText::Disagreed) && line.name != name && !is_gauge
        });
        assert_eq!(others.count(), 0, "only {name} is given up");
        agrees(&mut counters, file);
    }
}

#[test]
fn one_line_from_the_text_brings_all_others_so_that_nothing_is_paid_twice() {
    needs!(gate::bpf());
    let options = Options {
        disagree: Some("ctxt"),
        ..Options::new()
    };
    let mut counters = options.open().expect("it opens");
    assert!(!counters.report().latency_knob, "it has nothing to save");
    let before = counters.shortcuts();
    let sample = counters.collect(Want::STAT).expect("it collects").clone();
    assert!(sample.stat.ctxt > 0 && sample.stat.processes > 0);
    counters.stat().expect("it reads");
    assert_eq!(counters.shortcuts(), before, "BPF has counted interrupts");
    agrees(&mut counters, MachineFile::Stat);
}

#[test]
fn forks_are_certain_beside_a_process_that_forks_all_the_time() {
    needs!(gate::bpf());
    // The shell forks for each subshell.
    let mut forking = std::process::Command::new("sh")
        .args(["-c", "while :; do (:); done"])
        .spawn()
        .expect("there is a shell");
    let mut counters = without_symbols().open().expect("it opens");
    let number = || {
        let text = std::fs::read("/proc/stat").expect("it reads");
        let parsed = crate::text::machine_stat::MachineStat::parse(&text);
        parsed.expect("it is valid").processes
    };
    let (mut by_bpf, mut outside) = (0, Vec::new());
    for _ in 0..200 {
        let earlier = counters.shortcuts();
        let before = number();
        let sample = counters.collect(Want::STAT).expect("it collects");
        let ours = sample.stat.processes;
        let after = number();
        by_bpf += u32::from(counters.shortcuts() != earlier);
        // Some may be on their way, or preempted there.
        if ours + 64 < before || ours > after {
            outside.push([before, ours, after]);
        }
    }
    forking.kill().expect("the child is killed");
    forking.wait().expect("it ends");
    assert_eq!(outside, [[0; 3]; 0]);
    assert!(by_bpf > 0, "all came from the text");
}

#[test]
fn checks_go_on() {
    let Some(mut counters) = open(Options {
        check_interval: Duration::from_millis(1),
        ..Options::new()
    }) else {
        return;
    };
    let before = counters.report().checks;
    wait_until("a check by itself", || {
        counters.collect(Want::STAT).expect("it collects");
        counters.report().checks > before
    });
}
