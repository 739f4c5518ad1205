//! A program that another user runs.

use std::{ffi::OsStr, process::Command};

/// The capabilities that a reader by BPF needs.
pub const READS_BY_BPF: &str = "+bpf,+perfmon";

/// The command that runs a program from `/` as this user and group, with these capabilities and no others; for root, with
/// all. `setpriv` describes the list: [`READS_BY_BPF`], or `-all`.
pub fn as_user_with(uid: u32, capabilities: &str, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args([format!("--reuid={uid}"), format!("--regid={uid}")])
        .arg("--clear-groups")
        .arg(format!("--inh-caps={capabilities}"))
        .arg(format!("--ambient-caps={capabilities}"))
        .arg(program)
        .current_dir("/");
    command
}
