//! `fastproc run`: runs programs with the substitute for procps's library.

mod system;

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    os::unix::{ffi::OsStrExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::ValueEnum;

use crate::{failure::Failure, output::ReportFormat, standard};

/// Run the ps, top, pgrep or w of procps, with faster reading.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = AFTER_HELP)]
#[command(
    override_usage = "fastproc run -- COMMAND [ARGUMENT]...\n       fastproc run --system on|off|status|check"
)]
pub struct Args {
    /// Turn the substitute library on or off for every program of this machine, or report its state.
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "command")]
    system: Option<Switch>,
    /// Write the result of --system in this format; the default is text.
    #[arg(long, value_enum, requires = "system")]
    format: Option<ReportFormat>,
    /// Write JSON; the same as --format json.
    #[arg(long, requires = "system", conflicts_with = "format")]
    json: bool,
    /// Use the substitute library in this folder, not the one beside this program or in /usr/lib/fastproc/procps.
    #[arg(long, value_name = "FOLDER")]
    library: Option<PathBuf>,
    /// Run this command with its arguments.
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present = "system"
    )]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
The tools of procps read processes through its library, libproc2. fastproc run substitutes a library
that asks the service for records (as root: fastproc serve --no-metrics --socket), or loads BPF
programs if there are very many processes. If neither is possible, the tools use their own library.
Their output is the same in all cases.

Examples:
  fastproc run -- top
      Run top of procps with the substitute library
  fastproc run -- watch ps aux
      The same for every program that watch starts
  sudo fastproc run --system on
      Use the substitute library in every program of this machine

Environment:
  LIBPROC2_FASTPROC  if it is off, programs use the library of procps

Exit status:
  That of the command; 127 if there is no such command, 126 if it cannot be executed, 2 if the
  substitute cannot be used. With --system: 0, or 1 if status finds that it is off, or 2 if it could
  not run.";

/// The action for the whole machine.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Switch {
    /// Every program of the machine uses the substitute library
    On,
    /// No program uses it
    Off,
    /// Report whether it is on
    Status,
    /// Turn it off if ps does not work with it, for example after an upgrade of procps
    Check,
}

#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(
        "the substitute for procps's library is not installed, neither beside this program nor in {INSTALLED}. \
         In fastproc's sources, make procps builds it; --library names its folder"
    )]
    NotInstalled,
    #[error(
        "there is no libproc2.so.0 or libproc2.so.1 in {}, which --library names; in fastproc's sources, \
         make procps builds them", .0.display()
    )]
    NotIn(PathBuf),
    #[error("--json or --format needs --system status")]
    OnlyOfStatus,
    #[error(
        "the loader would not search {} but other folders, because of a :, ; or $ in its path; move fastproc, or name \
         another folder with --library", .0.display()
    )]
    NotSearchable(PathBuf),
    #[error("cannot run {}", .0.display())]
    Exec(OsString, #[source] io::Error),
    #[error("there is no procps library that the substitute in {} was built for: {missing}", folder.display())]
    NoReal { folder: PathBuf, missing: String },
    #[error("cannot read or write {}", .0.display())]
    File(PathBuf, #[source] io::Error),
    #[error("{0}; nothing was changed")]
    Refused(String),
}

const INSTALLED: &str = "/usr/lib/fastproc/procps";

/// procps's library, under all its names so far.
const NAMES: [&str; 2] = ["libproc2.so.0", "libproc2.so.1"];

pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let folder = folder(args.library.as_deref());
    if let Some(switch) = args.system {
        return Ok(system::run(
            switch,
            folder,
            args.json || args.format == Some(ReportFormat::Json),
        )?);
    }
    if args.json || args.format.is_some() {
        return Err(RunError::OnlyOfStatus.into());
    }
    let Some((program, arguments)) = args.command.split_first() else {
        return Err(RunError::NotInstalled.into());
    };
    if !is_there(program) {
        crate::failed(&RunError::Exec(
            program.clone(),
            rustix::io::Errno::NOENT.into(),
        ));
        return Ok(ExitCode::from(127));
    }
    let folder = folder?;
    if folder
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|byte| b":;$".contains(byte))
    {
        return Err(RunError::NotSearchable(folder).into());
    }
    real(&folder)?;
    standard::close_for_programs()?;
    let error = Command::new(program)
        .args(arguments)
        .env(
            "LD_LIBRARY_PATH",
            search_path(&folder, env::var_os("LD_LIBRARY_PATH")),
        )
        .exec();
    // As of a shell.
    let status = match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    };
    crate::failed(&RunError::Exec(program.clone(), error));
    Ok(ExitCode::from(status))
}

/// Whether a file has this path, or this name in a folder of PATH.
fn is_there(program: &OsStr) -> bool {
    if program.as_bytes().contains(&b'/') {
        return Path::new(program).exists();
    }
    // Without PATH, as the C library.
    let path = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    env::split_paths(&path).any(|folder| folder.join(program).exists())
}

/// The previous search path, with the folder before it.
fn search_path(folder: &Path, before: Option<OsString>) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(before) = before.filter(|before| !before.is_empty()) {
        path.push(":");
        path.push(before);
    }
    path
}

/// The folder of the substitute.
fn folder(named: Option<&Path>) -> Result<PathBuf, RunError> {
    let mut folders = if let Some(named) = named {
        vec![named.to_owned()]
    } else {
        // Beside the program (`make procps`), in a prefix (an unpacked archive), or in a package.
        let program = env::current_exe().ok();
        let beside = ["procps", "../lib/fastproc/procps"]
            .map(|name| Some(program.as_ref()?.with_file_name(name)));
        let installed = Some(PathBuf::from(INSTALLED));
        beside.into_iter().chain([installed]).flatten().collect()
    };
    folders.retain(|folder| NAMES.iter().any(|name| folder.join(name).is_file()));
    let missing = || {
        named.map_or(RunError::NotInstalled, |named| {
            RunError::NotIn(named.into())
        })
    };
    let folder = folders.into_iter().next().ok_or_else(missing)?;
    folder
        .canonicalize()
        .map_err(|error| RunError::File(folder, error))
}

/// procps's own libraries for which the substitutes in this folder were built, if they exist.
fn real(folder: &Path) -> Result<Vec<PathBuf>, RunError> {
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for name in NAMES {
        let substitute = folder.join(name);
        if !substitute.is_file() {
            continue;
        }
        let bytes =
            std::fs::read(&substitute).map_err(|error| RunError::File(substitute, error))?;
        match needed(&bytes, name) {
            Some(real) if real.is_file() && !real.starts_with(folder) => found.push(real),
            Some(real) => missing.push(format!("{} is not there", real.display())),
            None => missing.push(format!("{name} names none")),
        }
    }
    if found.is_empty() {
        let missing = missing.join(", ");
        return Err(RunError::NoReal {
            folder: folder.to_owned(),
            missing,
        });
    }
    Ok(found)
}

/// The library with this name that a substitute needs: its only string that is a path with this end.
fn needed(library: &[u8], name: &str) -> Option<PathBuf> {
    let end = format!("/{name}");
    let strings = library.split(|&byte| byte == 0);
    let path = strings
        .into_iter()
        .find(|string| string.starts_with(b"/") && string.ends_with(end.as_bytes()))?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_is_needed_is_found_by_its_path() {
        let bytes = b"\x7fELF\0libproc2.so.0\0/lib/x/libproc2.so.0\0libc.so.6\0";
        assert_eq!(
            needed(bytes, "libproc2.so.0"),
            Some("/lib/x/libproc2.so.0".into())
        );
        assert_eq!(needed(bytes, "libproc2.so.1"), None);
    }

    #[test]
    fn the_search_path_keeps_its_earlier_folders() {
        let folder = Path::new("/a");
        assert_eq!(search_path(folder, None), "/a");
        assert_eq!(search_path(folder, Some("".into())), "/a");
        assert_eq!(search_path(folder, Some("/b:/c".into())), "/a:/b:/c");
    }
}
