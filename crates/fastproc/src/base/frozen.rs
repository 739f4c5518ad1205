//! A frozen machine for tests: a folder with `proc`, `sys` and `etc`, which stands for the running machine at the moment that
//! its `proc/uptime` names.
//!
//! The environment variable `FASTPROC_FROZEN` names the folder, and only builds with debug assertions read it. Every other
//! build, and so each release, has neither the name nor the code: there [`folder`] is a constant `None`
//! (`tools/dist` looks for the name in what it builds).

#[cfg(debug_assertions)]
use std::sync::LazyLock;
use std::{
    borrow::Cow,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    fs::makedev,
    time::{ClockId, Timespec, clock_gettime},
};

/// The folder, if the machine is frozen.
#[cfg(debug_assertions)]
#[must_use]
pub fn folder() -> Option<&'static Path> {
    static FOLDER: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let folder = std::env::var_os("FASTPROC_FROZEN")?;
        (!super::proc_root::has_more_privileges_than_its_user()).then(|| folder.into())
    });
    FOLDER.as_deref()
}

/// The folder, if the machine is frozen: never in this build.
#[cfg(not(debug_assertions))]
#[must_use]
pub const fn folder() -> Option<&'static Path> {
    None
}

/// The file of the frozen machine that stands for the one at this path.
#[must_use]
pub fn path(usual: &str) -> Option<PathBuf> {
    Some(folder()?.join(usual.trim_start_matches('/')))
}

/// The path of a file about this process or its kernel, in `/proc` or `/sys`: that itself, whichever folder
/// [`proc_root::set`](super::proc_root::set) names.
#[must_use]
pub fn own_path(usual: &str) -> Cow<'_, Path> {
    path(usual).map_or_else(|| Path::new(usual).into(), Cow::from)
}

/// The text of a file of the frozen machine; empty if there is none.
fn text(usual: &str) -> Option<String> {
    let text = fs::read(path(usual)?).unwrap_or_default();
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// What a clock says: `clock_gettime(2)`. A frozen machine has its uptime in place of the monotonic clocks; clocks of CPU time run.
#[must_use]
pub fn clock(id: ClockId) -> Timespec {
    let runs = matches!(id, ClockId::ThreadCPUTime | ClockId::ProcessCPUTime);
    let Some(uptime) = text("/proc/uptime").filter(|_| !runs) else {
        return clock_gettime(id);
    };
    let (seconds, hundredths) = uptime.split_once('.').unwrap_or_default();
    let mut time = Timespec {
        tv_sec: seconds.parse().unwrap_or_default(),
        tv_nsec: hundredths
            .get(..2)
            .and_then(|digits| digits.parse::<i64>().ok())
            .unwrap_or_default()
            * 10_000_000,
    };
    if id == ClockId::Realtime {
        let stat = text("/proc/stat").unwrap_or_default();
        let btime = stat.lines().find_map(|line| line.strip_prefix("btime "));
        time.tv_sec += btime.and_then(|btime| btime.parse().ok()).unwrap_or(0);
    }
    time
}

/// What the calendar clock says.
#[must_use]
pub fn system_time() -> std::time::SystemTime {
    let now = clock(ClockId::Realtime);
    std::time::UNIX_EPOCH + Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// The number of a device, and of the file system that has its file.
#[must_use]
pub fn device(usual: &str) -> Option<(u64, u64)> {
    if let Some(text) = text(usual) {
        // A device cannot be made without privileges, so the file has its numbers as text.
        let (major, minor) = text.trim_end().split_once(':')?;
        return Some((makedev(major.parse().ok()?, minor.parse().ok()?), 0));
    }
    let file = fs::metadata(usual).ok()?;
    Some((file.rdev(), file.dev()))
}

/// Sorts what was listed in a folder of a frozen machine, whose file system has another order than the kernel's.
pub fn sort<T: Ord>(entries: &mut [T]) {
    if folder().is_some() {
        entries.sort_unstable();
    }
}

/// Waits. A frozen machine goes on to its next moment instead: the files below `next` replace those of the same names, and the
/// processes in `next/gone` exit.
pub fn sleep(time: Duration) {
    let Some(folder) = folder() else {
        return thread::sleep(time);
    };
    let gone = fs::read_to_string(folder.join("next/gone")).unwrap_or_default();
    for pid in gone.lines() {
        // A test sees whether it exited.
        let _ = fs::remove_dir_all(folder.join("proc").join(pid));
    }
    replace(&folder.join("next"), folder);
}

/// Replaces files, through which others may have them open.
fn replace(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            // As above, and the folder mostly exists.
            let _ = fs::create_dir(&to);
            replace(&from, &to);
        } else if let Ok(text) = fs::read(from) {
            let _ = fs::write(to, text);
        }
    }
}

/// The name and number on the line of this file (`/etc/passwd` or `/etc/group`) with this name or number.
/// `None`: the machine is not frozen, so ask its name services.
#[must_use]
pub fn account(file: &str, wanted: &str) -> Option<Option<(String, u32)>> {
    let text = text(file)?;
    let found = text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        let number_is_known = number.parse().ok()?;
        (name == wanted || number == wanted).then(|| (name.to_owned(), number_is_known))
    });
    Some(found)
}
