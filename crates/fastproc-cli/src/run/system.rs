//! The substitute for every program of the machine: one file that sets the loader's first search folder.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use super::{RunError, Switch, real};
use crate::NO;

/// The loader searches the folders in the order of these files' names.
const FILE: &str = "/etc/ld.so.conf.d/00-fastproc-procps.conf";

pub(super) fn run(
    switch: Switch,
    folder: Result<PathBuf, RunError>,
    json: bool,
) -> Result<ExitCode, RunError> {
    if json && !matches!(switch, Switch::Status) {
        return Err(RunError::OnlyOfStatus);
    }
    match switch {
        Switch::On => on(&folder?),
        Switch::Off => off(),
        Switch::Status => status(folder.ok().as_deref(), json),
        Switch::Check => check(),
    }
}

fn say(text: &str) {
    // Nothing can be reported if standard output is closed.
    let _ = writeln!(io::stdout(), "{text}");
}

fn on(folder: &Path) -> Result<ExitCode, RunError> {
    roots_alone(folder).map_err(RunError::Refused)?;
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
        // Otherwise the next run of ldconfig would read the file.
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

/// Checks that only root can change what every program of the machine would load: root owns the folder, its contents
/// and all folders above it, and no other user may write to them.
fn roots_alone(folder: &Path) -> Result<(), String> {
    let cannot = |path: &Path, error: &io::Error| format!("{}: {error}", path.display());
    for path in folder.ancestors() {
        is_roots(
            path,
            &fs::metadata(path).map_err(|error| cannot(path, &error))?,
        )?;
    }
    let entries = fs::read_dir(folder).map_err(|error| cannot(folder, &error))?;
    for entry in entries {
        let path = entry.map_err(|error| cannot(folder, &error))?.path();
        let metadata = fs::symlink_metadata(&path).map_err(|error| cannot(&path, &error))?;
        if metadata.is_symlink() {
            return Err(format!(
                "{} is a symbolic link; every program would load what it leads to",
                path.display()
            ));
        }
        is_roots(&path, &metadata)?;
    }
    Ok(())
}

fn is_roots(path: &Path, metadata: &fs::Metadata) -> Result<(), String> {
    let others_may_write = metadata.mode() & 0o022 != 0;
    if metadata.uid() == 0 && !others_may_write {
        return Ok(());
    }
    let why = if metadata.uid() == 0 {
        "others may write".to_owned()
    } else {
        format!("user {} owns", metadata.uid())
    };
    Err(format!(
        "every program would load what {why} in {}; install the package, or copy the folder to one that is root's alone",
        path.display()
    ))
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

/// The package runs this after procps's library was upgraded.
fn check() -> Result<ExitCode, RunError> {
    if !Path::new(FILE).exists() {
        say("off: there is nothing to check");
    } else if works(None) {
        say("on: ps says the same with the substitute as without");
    } else {
        say("ps does not say the same with the substitute as without");
        return off();
    }
    Ok(ExitCode::SUCCESS)
}

fn status(folder: Option<&Path>, json: bool) -> Result<ExitCode, RunError> {
    let is_on = Path::new(FILE).exists();
    let code = if is_on {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NO)
    };
    let used = used();
    if json {
        let built_for = folder.map(real).transpose()?;
        say(&serde_json::json!({
            "on": is_on,
            "used": used,
            "substitute": folder,
            "built_for": built_for,
        })
        .to_string());
        return Ok(code);
    }
    let used = used.map_or_else(|| "nothing that is known".into(), |used| shown(&used));
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
                    shown(&real)
                ));
            }
        }
    }
    Ok(code)
}

/// The library that the loader gives to ps.
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

/// One name for a file: where /lib is a link, its folder has two.
fn shown(file: &Path) -> String {
    let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
    let named = folder.zip(file.file_name());
    let file = named.map_or_else(|| file.into(), |(folder, name)| folder.join(name));
    file.display().to_string()
}

fn used_from(folder: &Path) -> Option<PathBuf> {
    used().filter(|used| {
        used.canonicalize()
            .is_ok_and(|used| used.starts_with(folder))
    })
}

/// Whether ps prints the same about this process with the substitute as without.
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use fastproc_testbed::{Folder, gate, needs};

    use super::*;

    #[test]
    fn only_a_folder_that_is_roots_alone_is_named_to_the_loader() {
        needs!(gate::root());
        // All users may write to a folder for temporary files, so this one is in the root directory.
        let base = RootFolder::new();
        let folder = base.0.join("a/procps");
        fs::create_dir_all(&folder).expect("the folder is made");
        let library = folder.join("libproc2.so.0");
        fs::write(&library, "").expect("the file is written");
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode is set");
        };
        for path in [&base.0, &base.0.join("a"), &folder] {
            mode(path, 0o755);
        }
        mode(&library, 0o644);
        assert_eq!(roots_alone(&folder), Ok(()));
        for path in [&library, &folder, &base.0.join("a"), &base.0] {
            chown(path, Some(1000), None).expect("root sets the owner");
            assert!(
                roots_alone(&folder).is_err(),
                "{} is another's",
                path.display()
            );
            chown(path, Some(0), None).expect("root sets the owner");
            let before = path
                .metadata()
                .expect("the path exists")
                .permissions()
                .mode();
            for writable in [0o020, 0o002] {
                mode(path, before | writable);
                assert!(
                    roots_alone(&folder).is_err(),
                    "others may write {}",
                    path.display()
                );
            }
            mode(path, before);
            assert_eq!(roots_alone(&folder), Ok(()));
        }
        let elsewhere = Folder::new("elsewhere");
        symlink(&*elsewhere, folder.join("libproc2.so.1")).expect("the link is made");
        assert!(roots_alone(&folder).is_err(), "a link leads elsewhere");
    }

    /// A folder in the root directory, removed when this is dropped.
    struct RootFolder(PathBuf);

    impl RootFolder {
        fn new() -> Self {
            let path = PathBuf::from(format!("/fastproc-test-{}", std::process::id()));
            fs::create_dir(&path).expect("the folder is made");
            Self(path)
        }
    }

    impl Drop for RootFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
