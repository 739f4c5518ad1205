//! Tests that need root or a program that may be missing: run, or skipped so that nobody overlooks it.

use std::{fs::OpenOptions, io::Write, path::Path};

/// Says whether this process may load BPF programs. If not, says loudly that `test` is skipped.
///
/// Either way a line is added to the file `log`, from which `make test` sums up what ran: `env!("CARGO_TARGET_TMPDIR")`
/// of the caller, so that all tests of a build share it.
pub fn root(test: &str, tmpdir: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED, IT NEEDS ROOT: {test}");
    }
    note(if root { "ran" } else { "skipped" }, test, tmpdir);
    root
}

/// Says whether these programs are installed, which the test runs. If not, says loudly that `test` is skipped; a line is
/// added to the same file.
pub fn programs(test: &str, tmpdir: &str, programs: &[&str]) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let installed = |program: &&&str| {
        std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
    };
    let missing: Vec<&&str> = programs
        .iter()
        .filter(|program| !installed(program))
        .collect();
    if missing.is_empty() {
        note("ran", test, tmpdir);
        return true;
    }
    eprintln!("SKIPPED, IT NEEDS {missing:?}, WHICH ARE NOT INSTALLED: {test}");
    note(
        "skipped",
        &format!("{test}: not installed: {missing:?}"),
        tmpdir,
    );
    false
}

/// Notes that a test ran that needs no root.
pub fn ran(test: &str, tmpdir: &str) {
    note("ran", test, tmpdir);
}

fn note(what: &str, test: &str, tmpdir: &str) {
    let log = Path::new(tmpdir).join("live-tests");
    let file = OpenOptions::new().create(true).append(true).open(log);
    // One short write to a file in append mode is not torn apart by another's.
    let written = file.and_then(|mut file| file.write_all(format!("{what} {test}\n").as_bytes()));
    if let Err(error) = written {
        eprintln!("cannot note that {test} {what}: {error}");
    }
}
