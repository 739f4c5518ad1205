//! What a test needs from the machine: it runs, or is visibly skipped.
//!
//! Each test leaves a line in the file `tmp/live-tests` of the target folder, which `make test` sums up.

use std::{env, fs::OpenOptions, io::Write, panic::Location, path::Path};

use rustix::thread::{CapabilitySet, capabilities};

/// Whether this process runs as root. If not, the test is skipped.
#[track_caller]
pub fn root() -> bool {
    let missing = (!rustix::process::geteuid().is_root()).then_some("root");
    decide(missing)
}

/// Whether BPF must work here: this process is root and has the capabilities, and the kernel has type information. Then
/// a refusal fails the test. If BPF need not work, the test is skipped.
#[track_caller]
pub fn bpf() -> bool {
    let may_load = capabilities(None).is_ok_and(|sets| {
        sets.effective
            .contains(CapabilitySet::BPF | CapabilitySet::PERFMON)
    });
    let missing = if !rustix::process::geteuid().is_root() {
        Some("root")
    } else if !may_load {
        Some("CAP_BPF and CAP_PERFMON")
    } else if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        Some("the kernel's type information")
    } else {
        None
    };
    decide(missing)
}

/// Whether the programs that the test runs are installed. If not, the test is skipped.
#[track_caller]
pub fn programs(programs: &[&str]) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    let installed =
        |program: &str| env::split_paths(&folders).any(|folder| folder.join(program).is_file());
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| !installed(program))
        .collect();
    let missing = missing.join(", ");
    decide((!missing.is_empty()).then_some(&missing))
}

/// Notes that the test ran; it has no requirements.
#[track_caller]
pub fn ran() {
    note("ran");
}

/// Notes that the test, or the rest of it, is skipped for this reason.
#[track_caller]
pub fn skipped(reason: &str) {
    // The harness captures prints; this shows the line in any case.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {}: {reason}", test());
    note(&format!("skipped {reason}:"));
}

/// A difference showed, and did not show again on a second try. `make test` prints the sum of these at its end and
/// fails if it is above a limit. `what` names the difference.
#[track_caller]
pub fn repeated(what: &str) {
    let _ = writeln!(std::io::stderr(), "REPEATED: {}: {what}", test());
    // One line for each, whatever it contains.
    note(&format!("repeated {}:", what.replace('\n', " | ")));
}

/// Notes how many values were compared with the kernel's, and how many changed meanwhile and were not judged.
#[track_caller]
pub fn compared(judged: u64, moved: u64) {
    note(&format!("compared {judged} {moved}:"));
}

#[track_caller]
fn decide(missing: Option<&str>) -> bool {
    match missing {
        None => ran(),
        Some(missing) => skipped(&format!("it needs {missing}")),
    }
    missing.is_none()
}

/// The name of the test's thread, or the location of the call if all tests run in one thread.
#[track_caller]
fn test() -> String {
    let thread = std::thread::current();
    match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => Location::caller().to_string(),
    }
}

#[track_caller]
fn note(what: &str) {
    let program = env::current_exe().unwrap_or_default();
    let target = program
        .ancestors()
        .find(|folder| folder.join(".rustc_info.json").exists());
    let Some(target) = target else {
        return;
    };
    let log = target.join("tmp/live-tests");
    let file = OpenOptions::new().create(true).append(true).open(log);
    // Set by cargo: the programs of all crates have one name.
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    let line = format!("{what} {package} {}\n", test());
    // One short write to a file in append mode is not interleaved with others.
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("cannot note what ran: {error}: {line}");
    }
}
