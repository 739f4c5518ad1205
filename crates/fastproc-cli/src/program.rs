//! Programs that are installed with this one.

use std::{env, ffi::OsStr, process::Command};

/// A command that runs the program of this name: the one beside this program, or else in a folder of PATH.
pub fn command(name: &str) -> Command {
    let beside = env::current_exe()
        .ok()
        .map(|path| path.with_file_name(name));
    let beside = beside.filter(|path| path.is_file());
    Command::new(beside.as_deref().map_or(OsStr::new(name), AsRef::as_ref))
}
