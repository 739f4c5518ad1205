//! The substitute for every program of the machine: one file that tells the loader where to look first.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use super::{RunError, Switch, real};
use crate::NO;

/// The loader searches the folders in the order of these files' names.
const FILE: &str = "/etc/ld.so.conf.d/00-fastproc-procps.conf";

pub(super) fn run(switch: Switch, folder: Result<PathBuf, RunError>) -> Result<ExitCode, RunError> {
    match switch {
        Switch::On => on(&folder?),
        Switch::Off => off(),
        Switch::Status => status(folder.ok().as_deref()),
    }
}

fn say(text: &str) {
    // Where standard output is closed there is nobody to tell.
    let _ = writeln!(io::stdout(), "{text}");
}

fn on(folder: &Path) -> Result<ExitCode, RunError> {
    let libraries = real(folder)?;
    let Some(used) = used() else {
        return Err(RunError::Refused(
            "ps does not say which library it uses".into(),
        ));
    };
    let is_built_for = |real: &PathBuf| real.canonicalize().ok() == used.canonicalize().ok();
    if !used.starts_with(folder) && !libraries.iter().any(is_built_for) {
        return Err(RunError::Refused(format!(
            "ps uses {}, and the substitute was built for {}",
            used.display(),
            libraries[0].display()
        )));
    }
    if !works(Some(folder)) {
        return Err(RunError::Refused(
            "ps does not say the same of itself with the substitute".into(),
        ));
    }
    let text = format!(
        "# By fastproc run --system on; --system off removes it.\n{}\n",
        folder.display()
    );
    fs::write(FILE, text).map_err(|error| RunError::File(FILE.into(), error))?;
    if let Err(error) = ldconfig() {
        // What ldconfig has not read, its next run would.
        fs::remove_file(FILE).map_err(|error| RunError::File(FILE.into(), error))?;
        return Err(error);
    }
    if !works(None) || used_from(folder).is_none() {
        off()?;
        return Err(RunError::Refused(
            "the loader did not take the substitute".into(),
        ));
    }
    say(&format!(
        "on: wrote {FILE}, which names {}, and ran ldconfig",
        folder.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn off() -> Result<ExitCode, RunError> {
    match fs::remove_file(FILE) {
        Ok(()) => {
            ldconfig()?;
            say(&format!("off: removed {FILE}, and ran ldconfig"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => say("off: it was not on"),
        Err(error) => return Err(RunError::File(FILE.into(), error)),
    }
    Ok(ExitCode::SUCCESS)
}

fn status(folder: Option<&Path>) -> Result<ExitCode, RunError> {
    let is_on = Path::new(FILE).exists();
    let used = used().map_or_else(
        || "nothing that is known".into(),
        |used| used.display().to_string(),
    );
    say(&format!(
        "{}: ps uses {used}",
        if is_on { "on" } else { "off" }
    ));
    match folder {
        None => say("the substitute is not installed"),
        Some(folder) => {
            for real in real(folder)? {
                say(&format!(
                    "the substitute in {} was built for {}",
                    folder.display(),
                    real.display()
                ));
            }
        }
    }
    Ok(if is_on {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NO)
    })
}

/// procps's library that the loader gives to ps.
fn used() -> Option<PathBuf> {
    let traced = Command::new("ps")
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&traced.stdout).into_owned();
    let line = text
        .lines()
        .find(|line| line.trim().starts_with("libproc2.so."))?;
    let path = line.split(" => ").nth(1)?.split(" (").next()?;
    Some(PathBuf::from(path))
}

fn used_from(folder: &Path) -> Option<PathBuf> {
    used().filter(|used| {
        used.canonicalize()
            .is_ok_and(|used| used.starts_with(folder))
    })
}

/// Whether ps says the same of this process with the substitute as without.
fn works(folder: Option<&Path>) -> bool {
    let ask = |substitute: bool| {
        let mut ps = Command::new("ps");
        ps.args([
            "-o",
            "pid,ppid,user,comm,lstart,args",
            "-p",
            &std::process::id().to_string(),
        ]);
        if !substitute {
            ps.env("LIBPROC2_FASTPROC", "off");
        } else if let Some(folder) = folder {
            ps.env("LD_LIBRARY_PATH", folder);
        }
        ps.output()
            .ok()
            .filter(|output| output.status.success())
            .map(|output| output.stdout)
    };
    let without = ask(false);
    without.is_some() && ask(true) == without
}

fn ldconfig() -> Result<(), RunError> {
    let program = Path::new("/sbin/ldconfig");
    match Command::new(program).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(RunError::File(
            program.into(),
            io::Error::other(format!("ldconfig: {status}")),
        )),
        Err(error) => Err(RunError::Exec(program.into(), error)),
    }
}
