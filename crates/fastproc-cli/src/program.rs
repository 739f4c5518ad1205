//! Programs that come with this one: as git and cargo have theirs.

use std::{env, ffi::OsStr, process::Command};

/// Runs the one of this name that is installed beside this program, or where the shell looks for programs.
pub fn command(name: &str) -> Command {
    let beside = env::current_exe()
        .ok()
        .map(|path| path.with_file_name(name));
    let beside = beside.filter(|path| path.is_file());
    Command::new(beside.as_deref().map_or(OsStr::new(name), AsRef::as_ref))
}
