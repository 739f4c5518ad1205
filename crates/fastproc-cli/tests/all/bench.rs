//! `fastproc bench`: runs `fastproc-bench`, wherever it is installed.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use crate::common::install;
use fastproc_testbed::Folder;

const FASTPROC: &str = env!("CARGO_BIN_EXE_fastproc");

/// A program in place of `fastproc-bench`: prints its name, then each argument on a line, and exits with 3.
fn put_bench(folder: &Path, name: &str) {
    let script = folder.join("script");
    fs::write(
        &script,
        format!("#!/bin/sh\nprintf '%s\\n' {name} \"$@\"\nexit 3\n"),
    )
    .expect("it is a folder of ours");
    install(&script, &folder.join("fastproc-bench"));
}

#[test]
fn the_program_beside_is_run_then_that_in_path_then_it_says_how_to_get_it() {
    let folder = Folder::new("bench");
    let (beside, path) = (folder.join("beside"), folder.join("path"));
    for folder in [&beside, &path] {
        fs::create_dir_all(folder).expect("a folder for the programs");
    }
    let fastproc = beside.join("fastproc");
    install(FASTPROC, &fastproc);
    let bench = |arguments: &[&str]| -> Output {
        Command::new(&fastproc)
            .arg("bench")
            .args(arguments)
            .env("PATH", &path)
            .output()
            .expect("it can be started")
    };

    let absent = bench(&["scan"]);
    assert_eq!(absent.status.code(), Some(2));
    let message = String::from_utf8_lossy(&absent.stderr).into_owned();
    assert!(
        message.contains("cargo build --release -p fastproc-bench"),
        "{message}"
    );

    let arguments = ["scan", "--json", "--help", "a b", "-x"];
    for (place, name) in [(&path, "in-path"), (&beside, "beside")] {
        put_bench(place, name);
        let output = bench(&arguments);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let lines = String::from_utf8(output.stdout).expect("it prints text");
        assert_eq!(lines, format!("{name}\n{}\n", arguments.join("\n")));
    }
}
