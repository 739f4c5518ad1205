//! Every command ends quietly if the reader of its output is gone.

mod common;

use std::process::Stdio;

use common::fastproc;

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
fn every_command_ends_quietly() {
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
fn what_cannot_be_written_is_an_error() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["--version", "--json"],
        &["help", "ps"],
        &["ps", "--help"],
        &["cat", "stat"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let output = fastproc(arguments)
            .stdout(full.expect("every Linux has it"))
            .output()
            .expect("it can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains("No space left"), "{arguments:?}: {errors}");
    }
}

#[test]
fn so_does_every_format() {
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
