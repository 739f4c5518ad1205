//! Each example runs: as root, where BPF is used, and as somebody who may do nothing.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use fastproc_testbed::{Folder, gate};

/// Each, its arguments, and what its output must have.
const EXAMPLES: [(&str, &[&str], &str); 6] = [
    ("process_table", &[], " NAME\n"),
    // Milliseconds between two looks.
    ("watch_cpu", &["20"], " ended\n"),
    ("counters", &[], "\ncpu  "),
    ("texts", &[], "\nState:\t"),
    ("groups", &[], "uid "),
    ("threads", &[], "cgroup: "),
];
/// `nobody` of every distribution.
const NOBODY: u32 = 65534;

/// Cargo builds examples with the tests, beside their folder.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a file");
    let folder = test.ancestors().nth(2).expect("it is in deps/");
    let path = folder.join("examples").join(name);
    assert!(
        path.is_file(),
        "{} is not there: build it by `cargo build -p fastproc --examples`",
        path.display()
    );
    path
}

#[track_caller]
fn run(command: &mut Command, expected: &str) {
    let output = command.output().expect("it can be run");
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{command:?}: {text}{errors}");
    assert!(text.contains(expected), "{command:?}: {text}{errors}");
}

#[test]
fn every_example_is_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut files: Vec<String> = fs::read_dir(folder)
        .expect("they are part of the package")
        .map(|file| {
            file.expect("it is listed")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    files.sort_unstable();
    let mut names: Vec<String> = EXAMPLES
        .iter()
        .map(|(name, ..)| format!("{name}.rs"))
        .collect();
    names.sort_unstable();
    assert_eq!(files, names);
}

#[test]
fn examples_run_as_whoever_runs_the_tests() {
    for (name, arguments, expected) in EXAMPLES {
        run(Command::new(example(name)).args(arguments), expected);
    }
    gate::ran();
}

#[test]
fn examples_run_without_privileges() {
    if !gate::root() {
        return;
    }
    let folder = Folder::new("examples");
    for (name, arguments, expected) in EXAMPLES {
        let copy = folder.join(name);
        // By another process: a file that any child of this one has open for writing cannot be executed.
        let installed = Command::new("install")
            .args(["-m", "755"])
            .arg(example(name))
            .arg(&copy)
            .status();
        assert!(installed.expect("install(1) is there").success());
        run(
            Command::new(&copy)
                .args(arguments)
                .uid(NOBODY)
                .gid(NOBODY)
                .current_dir("/"),
            expected,
        );
    }
}
