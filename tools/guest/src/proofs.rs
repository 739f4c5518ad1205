//! Runs fastproc's proofs in a guest as on any other machine; the driver outside judges the output.

use std::io;

use crate::{enter::Place, reporter::Reporter, testbed::TESTBED};

pub const FASTPROC: &str = "/fastproc";
/// Readers without root.
const OTHERS: [Place; 2] = [Place::Nobody, Place::Reader];
/// Readers in their own namespaces.
const NAMESPACES: [Place; 2] = [Place::PidNamespace, Place::UserNamespace];
/// Comparisons of every process; values that change in one are stable in another.
const ROUNDS: &str = "3";
/// Enough to last while other things happen.
const MANY_ROUNDS: &str = "25";
/// Test processes for a pid namespace.
const COMPANY: &str = "idle,zombie,threads-8,name-spaces,signals-pending";
/// The age that interrupt counts may have: longer than an emulated machine takes for two texts.
const LATENCY_MS: &str = "1000";
/// `bench scan` of idle processes: so many that others hardly matter.
const SCAN: [&str; 9] = [
    "/fastproc-bench",
    "scan",
    "--json",
    "--processes",
    "200",
    "--rounds",
    "3",
    "--cpu",
    "0",
];
/// The cases of it whose costs are expected.
const COST: &str = "bpf-full,bpf-full-all-ran,bpf-lean,bpf-iter-full,procfs";

/// `doctor`, and `verify` of each source.
pub fn every_source(reporter: &mut Reporter) -> io::Result<()> {
    doctor(reporter)?;
    verify_every_source(reporter)
}

/// `verify` of each source.
pub fn verify_every_source(reporter: &mut Reporter) -> io::Result<()> {
    every_source_for(reporter, ROUNDS)
}

/// `verify` of each source for much longer.
pub fn every_source_at_length(reporter: &mut Reporter) -> io::Result<()> {
    every_source_for(reporter, MANY_ROUNDS)
}

fn every_source_for(reporter: &mut Reporter, rounds: &str) -> io::Result<()> {
    for source in ["bpf", "bpf-iter", "procfs"] {
        let argv = [
            FASTPROC, "verify", "--json", "--rounds", rounds, "--source", source,
        ];
        reporter.run(&format!("verify {source}"), &argv)?;
    }
    Ok(())
}

/// `doctor`.
pub fn doctor(reporter: &mut Reporter) -> io::Result<()> {
    doctor_in(reporter, "doctor", None)
}

/// `verify` of the default source, which may differ for processes and for counters.
pub fn chosen_source(reporter: &mut Reporter) -> io::Result<()> {
    verify(reporter, "verify", None)
}

/// The same with a single comparison.
pub fn chosen_source_once(reporter: &mut Reporter) -> io::Result<()> {
    let argv = [FASTPROC, "verify", "--json", "--rounds", "1"];
    reporter.run("verify", &argv)
}

/// `doctor`, and `verify` of the default source, also with interrupt counts that may be a little old.
pub fn first_source(reporter: &mut Reporter) -> io::Result<()> {
    doctor(reporter)?;
    let argv = [
        FASTPROC,
        "verify",
        "--json",
        "--rounds",
        ROUNDS,
        "--stat-irqs-latency-ms",
        LATENCY_MS,
    ];
    reporter.run("verify", &argv)
}

/// `doctor` by readers without root, from whom the kernel hides data of others.
pub fn doctor_as_others(reporter: &mut Reporter) -> io::Result<()> {
    for place in OTHERS {
        doctor_in(reporter, &format!("doctor as {place}"), Some(place))?;
    }
    Ok(())
}

/// `verify` by these readers, of their default source.
pub fn verify_as_others(reporter: &mut Reporter) -> io::Result<()> {
    for place in OTHERS {
        verify(reporter, &format!("verify as {place}"), Some(place))?;
    }
    Ok(())
}

/// `doctor` by root in its own pid namespace.
pub fn doctor_in_pid_namespace(reporter: &mut Reporter) -> io::Result<()> {
    let place = Place::PidNamespace;
    doctor_in(reporter, &format!("doctor in {place}"), Some(place))
}

/// Both by root in its own namespaces.
pub fn in_namespaces(reporter: &mut Reporter) -> io::Result<()> {
    for place in NAMESPACES {
        doctor_in(reporter, &format!("doctor in {place}"), Some(place))?;
        verify(reporter, &format!("verify in {place}"), Some(place))?;
    }
    Ok(())
}

/// With a service: `doctor` by all readers, and `verify` by those that it serves.
pub fn with_a_service(reporter: &mut Reporter) -> io::Result<()> {
    doctor(reporter)?;
    doctor_as_others(reporter)?;
    for place in NAMESPACES {
        doctor_in(reporter, &format!("doctor in {place}"), Some(place))?;
    }
    // A reader that the service refuses uses another source.
    chosen_source(reporter)?;
    verify_as_others(reporter)
}

/// `bench scan`.
pub fn cost(reporter: &mut Reporter) -> io::Result<()> {
    let argv = [&SCAN[..], &["--cases", COST]].concat();
    reporter.run("bench scan", &argv)
}

/// `bench counters`.
pub fn interrupts_cost(reporter: &mut Reporter) -> io::Result<()> {
    let argv = [
        "/fastproc-bench",
        "counters",
        "--json",
        "--rounds",
        "3",
        "--cpu",
        "0",
    ];
    reporter.run("bench counters", &argv)
}

/// The cost of the task iterator outside and inside of a pid namespace. The figures are in docs/kubernetes.md.
pub fn namespace_cost(reporter: &mut Reporter) -> io::Result<()> {
    for place in [None, Some(Place::PidNamespace)] {
        let enter = place.map(Place::enter);
        let mut argv = enter.as_ref().map_or(&[][..], |words| words).to_vec();
        argv.extend(SCAN);
        argv.extend(["--cases", "bpf-iter-full,procfs"]);
        let name = place.map_or("cost".to_owned(), |place| format!("cost in {place}"));
        reporter.run(&name, &argv)?;
    }
    Ok(())
}

fn doctor_in(reporter: &mut Reporter, name: &str, place: Option<Place>) -> io::Result<()> {
    let enter = place.map(Place::enter);
    let argv = [
        enter.as_ref().map_or(&[][..], |words| words),
        &[FASTPROC, "doctor", "--json"],
    ]
    .concat();
    reporter.run(name, &argv)
}

/// Runs `verify` of the default source.
fn verify(reporter: &mut Reporter, name: &str, place: Option<Place>) -> io::Result<()> {
    let enter = place.map(Place::enter);
    let mut argv = enter.as_ref().map_or(&[][..], |words| words).to_vec();
    if place == Some(Place::PidNamespace) {
        // Otherwise the reader would be alone there.
        argv.extend([TESTBED, "--only", COMPANY, "--"]);
    }
    argv.extend([FASTPROC, "verify", "--json", "--rounds", ROUNDS]);
    reporter.run(name, &argv)
}
