//! Every way in which the counters can come from somewhere else, forced. Those with BPF need root, and say so.

use std::{thread, time::Duration};

use fastproc_testbed::gate;

use super::{Counters, Error, Evidence, MachineFile, Options, Route, Want, WhyText};

#[track_caller]
fn open(options: Options) -> Option<Counters> {
    if !gate::bpf() {
        return None;
    }
    let counters = options
        .text_latency(Duration::ZERO)
        .open()
        .expect("it opens");
    let refused = counters.unavailable().map(ToString::to_string);
    assert_eq!(refused, None, "the programs are refused");
    Some(counters)
}

fn route(counters: &Counters, name: &str) -> Route {
    let report = counters.report();
    let line = report.lines.iter().find(|line| line.name == name);
    line.unwrap_or_else(|| panic!("{name} has no report")).route
}

/// Ours and the kernel's are one text, at some moment within a few tries.
fn agrees(counters: &Counters, file: MachineFile) {
    let mut reader = counters.reader();
    let same = (0..500).any(|_| {
        let ours = reader.text(file).expect("it reads").to_vec();
        std::fs::read(file.path()).expect("it reads") == ours
    });
    assert!(same, "{} was never the kernel's", file.path());
}

#[test]
fn without_bpf_the_files_serve() {
    let counters = Options::new().bpf(false).open().expect("it opens");
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
        agrees(&counters, file);
    }
    let mut reader = counters.reader();
    let sample = reader
        .collect(Want::STAT | Want::VMSTAT)
        .expect("it collects");
    assert!(!sample.stat.cpus.is_empty() && sample.vm("pgfault").is_some());
}

#[test]
fn without_privileges_the_files_serve_and_the_reason_is_kept() {
    // Capabilities are a thread's own.
    let done = thread::spawn(|| {
        use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
        let none = CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, none).expect("capabilities can always be given up");
        let counters = Options::new().open().expect("it opens");
        let reason = counters
            .unavailable()
            .expect("nobody may load programs without capabilities");
        assert!(
            matches!(
                reason,
                Error::Bpf(fastproc::Error::MissingCapability { .. })
            ),
            "{reason:?}"
        );
        assert!(
            counters
                .report()
                .unavailable
                .is_some_and(|reason| reason.contains("cap_bpf"))
        );
        agrees(&counters, MachineFile::Stat);
        agrees(&counters, MachineFile::Vmstat);
    });
    done.join().expect("the thread ends well");
}

#[test]
fn without_symbols_structures_lead_everywhere() {
    let Some(counters) = open(Options::new().symbols(false)) else {
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
    agrees(&counters, MachineFile::Stat);
    agrees(&counters, MachineFile::Vmstat);
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
        let Some(counters) = open(Options {
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
        let given_up = report
            .lines
            .iter()
            .filter(|line| line.route == Route::Text(WhyText::Disagreed));
        assert_eq!(given_up.count(), 1, "only {name} is given up");
        agrees(&counters, file);
    }
}

#[test]
fn checks_go_on() {
    let Some(counters) = open(Options::new().check_interval(Duration::from_millis(1))) else {
        return;
    };
    let before = counters.report().checks;
    let mut reader = counters.reader();
    for _ in 0..200 {
        reader.collect(Want::STAT).expect("it collects");
        thread::sleep(Duration::from_micros(100));
    }
    let by_itself = counters.report().checks;
    assert!(by_itself > before, "no check was made in 200 collections");
    reader.check().expect("it checks");
    assert_eq!(counters.report().checks, by_itself + 1);
}
