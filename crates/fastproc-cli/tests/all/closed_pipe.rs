//! Every command ends quietly if the reader of its output is gone.

use std::{
    fs,
    process::{Command, Output, Stdio},
};

use crate::common::fastproc;
use fastproc_testbed::Folder;

/// Runs with an unread pipe as standard output, and returns the error, if any.
fn complaint(arguments: &[&str]) -> Option<String> {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = fastproc(arguments)
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .expect("it can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    (!output.status.success() || !errors.is_empty())
        .then(|| format!("{arguments:?}: {}: {errors}", output.status))
}

#[test]
fn every_command_ends_quietly_when_nobody_reads_its_output() {
    let own = std::process::id().to_string();
    let verify = ["verify", "--rounds", "1", "--pids", &own];
    let commands: &[&[&str]] = &[
        &["--help"],
        &["--version"],
        &["help", "ps"],
        &["ps", "--help"],
        &["ps", "-h"],
        &["doctor"],
        &["doctor", "--json"],
        &["cat", "/proc/self/stat", "/proc/stat"],
        &["cat", "--all", "status"],
        &["cat", "--all", "status", "--proc"],
        &[&verify[..], &["--source", "procfs"]].concat(),
        &[&verify[..], &["--source", "procfs", "--json"]].concat(),
    ];
    let complaints: Vec<_> = commands
        .iter()
        .filter_map(|&arguments| complaint(arguments))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// A full disk is reported.
#[test]
fn a_failed_write_is_an_error() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["--version", "--json"],
        &["help", "ps"],
        &["ps", "--help"],
        &["ps"],
        &["cat", "stat"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full");
        let output = fastproc(arguments)
            .stdout(full.expect("every Linux has it"))
            .output()
            .expect("it can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        let says = "fastproc: cannot write to standard output: No space left on device";
        assert!(errors.starts_with(says), "{arguments:?}: {errors}");
    }
}

#[test]
fn every_format_ends_quietly_when_nobody_reads_it() {
    // So many columns that even a few processes need several writes.
    let columns = ["pid,user,lstart,capeff,sigcgt,comm"; 80].join(",");
    for columns in ["pid", &columns] {
        for format in ["table", "json", "ndjson", "csv"] {
            for more in [&[][..], &["--threads"], &["--interval", "0.02"]] {
                let source = ["ps", "--source", "procfs", "--format", format];
                let arguments = [&source, &["--fields", columns][..], more].concat();
                let complaint = complaint(&arguments);
                assert!(complaint.is_none(), "{complaint:?}");
            }
        }
    }
}

/// Runs with a closed standard output.
fn with_closed_output(arguments: &[&str]) -> Output {
    Command::new("sh")
        .args([
            "-c",
            "exec \"$0\" \"$@\" >&-",
            env!("CARGO_BIN_EXE_fastproc"),
        ])
        .args(arguments)
        .env("FASTPROC_SOCKET", "")
        .output()
        .expect("it can be started")
}

#[test]
fn a_closed_output_is_an_error() {
    for arguments in [
        &["ps", "-e"][..],
        &["ps", "--source", "procfs", "--format", "json"],
        &["cat", "stat"],
        &["doctor"],
        &["--help"],
        &["--version", "--json"],
        &["serve", "--once-to-stdout-delay=0", "--source=procfs"],
    ] {
        let output = with_closed_output(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(
            errors.contains("cannot write to standard output: Bad file descriptor"),
            "{arguments:?}: {errors}"
        );
    }
}

/// A folder with a library that no program needs here, and that was built for another that is there.
fn substitute(folder: &Folder, name: &str) -> String {
    let (real, substitute) = (folder.join("real"), folder.join(name));
    let library = "libproc2.so.0";
    for made in [&real, &substitute] {
        fs::create_dir_all(made).expect("the folder is made");
    }
    fs::write(real.join(library), "").expect("the file is written");
    let names = format!("\0{}\0", real.join(library).display());
    fs::write(substitute.join(library), names).expect("the file is written");
    substitute.to_str().expect("UTF-8").to_owned()
}

#[test]
fn a_command_that_is_run_finds_the_output_closed_as_well() {
    let folder = Folder::new("run-closed");
    let substitute = substitute(&folder, "substitute");
    let run = ["run", "--library", &substitute, "--"];
    let output = with_closed_output(&[&run[..], &["sh", "-c", "echo text"]].concat());
    assert!(!output.status.success(), "{output:?}");
}

#[test]
fn a_command_that_cannot_be_run_ends_as_in_a_shell() {
    let folder = Folder::new("run-nothing");
    let substitute = substitute(&folder, "substitute");
    for (command, status) in [("/nowhere/nosuch", 127), ("/etc/passwd", 126)] {
        let output = fastproc(&["run", "--library", &substitute, "--", command])
            .output()
            .expect("it can be started");
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(command), "{errors}");
    }
}

/// The command is what its user asked for, so it is looked for first.
#[test]
fn a_missing_command_is_named_also_if_the_substitute_is_missing() {
    let folder = Folder::new("run-neither");
    let empty = folder.to_str().expect("UTF-8");
    for command in ["/nowhere/nosuch", "fastproc-nosuch"] {
        let output = fastproc(&["run", "--library", empty, "--", command])
            .output()
            .expect("it can be started");
        assert_eq!(output.status.code(), Some(127), "{output:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(command), "{errors}");
    }
    let output = fastproc(&["run", "--library", empty, "--", "true"])
        .output()
        .expect("it can be started");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_folder_that_the_loader_would_take_for_others_is_refused() {
    let folder = Folder::new("run-separators");
    for name in ["a:b", "a;b", "$LIB"] {
        let substitute = substitute(&folder, name);
        let output = fastproc(&["run", "--library", &substitute, "--", "true"])
            .output()
            .expect("it can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {errors}");
        assert!(errors.contains("would not search"), "{name}: {errors}");
    }
}
