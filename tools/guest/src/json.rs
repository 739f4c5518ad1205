//! What a command prints as JSON.

use std::{
    io,
    process::{Command, Stdio},
};

use serde_json::Value;

/// Runs a command, whatever its exit status is, and parses its output. An error has what it wrote to standard error.
pub fn of(argv: &[&str]) -> io::Result<Value> {
    let output = Command::new(argv[0])
        .args(&argv[1..])
        .stdin(Stdio::null())
        .output()?;
    serde_json::from_slice(&output.stdout).map_err(|error| {
        let text = String::from_utf8_lossy(&output.stderr);
        io::Error::other(format!("{}: {error}: {text}", argv.join(" ")))
    })
}
