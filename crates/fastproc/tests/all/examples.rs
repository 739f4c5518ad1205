//! Runs each example as root, with BPF, and as an unprivileged user.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use fastproc_testbed::{Folder, gate, needs};

/// Each example, its arguments, and a part of its output.
const EXAMPLES: [(&str, &[&str], &str); 7] = [
    ("process_table", &[], " NAME\n"),
    // Milliseconds between two snapshots.
    ("watch_cpu", &["20"], " ended\n"),
    ("counters", &[], "\ncpu  "),
    ("texts", &[], "\nState:\t"),
    ("groups", &[], "uid "),
    ("threads", &[], "cgroup: "),
    ("open_files", &[], " descriptors "),
];
/// `nobody` of every distribution.
const NOBODY: u32 = 65534;

/// The folder of the current examples: cargo builds them with all tests, but not with a test that is named.
fn examples() -> &'static Path {
    static EXAMPLES: OnceLock<PathBuf> = OnceLock::new();
    EXAMPLES.get_or_init(|| {
        let test = std::env::current_exe().expect("a test has a file");
        let built = test.ancestors().nth(2).expect("it is in deps/");
        let target = built.parent().expect("it is in the target folder");
        let is_release = built.file_name().is_some_and(|name| name == "release");
        let status = Command::new(env!("CARGO"))
            // The whole workspace, like make test: with other features the library would be compiled again.
            .args(["build", "--workspace", "--examples", "--locked", "--quiet"])
            .args(["--profile", if is_release { "release" } else { "dev" }])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("CARGO_TARGET_DIR", target)
            // scripts/time-tests sets it for the tests. Build scripts that see it would run again, and crates that
            // depend on them would be compiled again.
            .env_remove("RUSTC_BOOTSTRAP")
            .status();
        assert!(status.expect("cargo can be started").success());
        built.join("examples")
    })
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
        run(
            Command::new(examples().join(name)).args(arguments),
            expected,
        );
    }
    gate::ran();
}

#[test]
fn examples_run_without_privileges() {
    needs!(gate::root());
    let folder = Folder::new("examples");
    for (name, arguments, expected) in EXAMPLES {
        let copy = folder.join(name);
        // By another process: a file that a child of this one has open for writing cannot be executed.
        let installed = Command::new("install")
            .args(["-m", "755"])
            .arg(examples().join(name))
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
