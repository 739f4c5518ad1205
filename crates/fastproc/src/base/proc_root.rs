//! The folder of the proc file system with the processes to read.
//!
//! It is `/proc`, unless the environment variable `HOST_PROC` or [`set`] names another folder, as in a container that
//! has the host's `/proc` at `/host/proc`. Nothing is mounted, and no privilege is needed. The processes are those of
//! that folder, with the ids that they have there. Facts about only this process, such as its descriptors, mounts and
//! namespaces, still come from its own `/proc`.

use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use nix::libc;

pub(crate) use super::frozen::own_path;
use super::{error::Error, frozen};

const PROC: &str = "/proc";
/// `PROC_SUPER_MAGIC` of include/uapi/linux/magic.h.
const PROC_SUPER_MAGIC: u64 = 0x9fa0;
/// `PROC_ROOT_INO` of fs/proc/internal.h.
const ROOT_INODE: u64 = 1;

/// `None`: `/proc`.
static ROOT: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Makes this whole program read the proc file system that is mounted at this folder. Call it before anything else of
/// this library.
///
/// # Errors
/// No proc file system is mounted there, another folder is in use already, or this program runs with privileges that its user
/// does not have (set-user-ID, or capabilities of its file): then the folder is not the user's choice.
pub fn set(folder: &Path) -> Result<(), Error> {
    let failed = |source| Error::unreadable(folder.display().to_string(), source);
    if has_more_privileges_than_its_user() {
        return Err(failed(io::Error::other(
            "a program with more privileges than its user reads /proc only; run it as root",
        )));
    }
    check(folder).map_err(failed)?;
    let root = absolute(folder).map_err(failed)?;
    if *ROOT.get_or_init(|| root.clone()) == root {
        return Ok(());
    }
    Err(failed(io::Error::other(
        "the program has begun to read another /proc",
    )))
}

/// Whether another folder than `/proc` is read.
#[must_use]
pub fn is_elsewhere() -> bool {
    root().is_some()
}

/// The actual path of a file whose usual path begins with `/proc`. Other paths are unchanged.
#[must_use]
pub fn path(usual: &str) -> Cow<'_, Path> {
    if let Some(path) = frozen::path(usual) {
        return path.into();
    }
    match (root(), usual.strip_prefix(PROC)) {
        (Some(root), Some("")) => root.into(),
        (Some(root), Some(rest)) if rest.starts_with('/') => root.join(&rest[1..]).into(),
        _ => Path::new(usual).into(),
    }
}

/// The same, to follow the link there. `None` on a frozen machine, whose links lead to files of the running one.
pub(crate) fn link(usual: &str) -> Option<PathBuf> {
    frozen::folder().is_none().then(|| path(usual).into_owned())
}

/// The usual path of a file of the proc file system: [`path`] reversed.
#[must_use]
pub fn usual(path: &Path) -> Cow<'_, Path> {
    match root().and_then(|root| path.strip_prefix(root).ok()) {
        Some(rest) => Path::new(PROC).join(rest).into(),
        None => path.into(),
    }
}

/// This process's pid in the procfs at that folder, which may differ from the one in its own pid namespace. `None` if
/// it has none there.
#[must_use]
pub fn own_pid() -> Option<u32> {
    let link = std::fs::read_link(path("/proc/self")).ok()?;
    link.to_str()?.parse().ok()
}

/// Fails unless a proc file system is mounted there.
pub(crate) fn check(folder: &Path) -> io::Result<()> {
    if frozen::path(PROC).is_some_and(|frozen| frozen == folder) {
        return Ok(());
    }
    let is_proc = rustix::fs::statfs(folder)?.f_type as u64 == PROC_SUPER_MAGIC;
    // In a folder of a process there are no processes.
    if is_proc && rustix::fs::stat(folder)?.st_ino == ROOT_INODE {
        return Ok(());
    }
    Err(io::Error::other("no proc file system is mounted there"))
}

fn root() -> Option<&'static Path> {
    let root = ROOT.get_or_init(|| {
        let folder = std::env::var_os("HOST_PROC").filter(|folder| !folder.is_empty())?;
        if has_more_privileges_than_its_user() {
            return None;
        }
        absolute(Path::new(&folder)).unwrap_or_else(|_| Some(folder.into()))
    });
    root.as_deref()
}

/// The folder as an absolute path; `None` for `/proc`.
fn absolute(folder: &Path) -> io::Result<Option<PathBuf>> {
    let folder: PathBuf = std::path::absolute(folder)?.components().collect();
    Ok((folder != Path::new(PROC)).then_some(folder))
}

/// Whether the program has more privileges than its user, and so must ignore the user's choices (`secure_getenv(3)`).
pub(crate) fn has_more_privileges_than_its_user() -> bool {
    // SAFETY: it reads a number that the kernel gave to this process.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_paths_stay() {
        assert_eq!(path("/proc/stat"), Path::new("/proc/stat"));
        assert_eq!(path("/etc/mtab"), Path::new("/etc/mtab"));
        assert_eq!(usual(Path::new("/proc/1/stat")), Path::new("/proc/1/stat"));
        assert_eq!(own_pid(), Some(std::process::id()));
        assert!(!is_elsewhere());
    }

    #[test]
    fn only_a_proc_file_system_can_be_read() {
        for folder in ["/sys", "/no/such/folder", "/proc/1", "/proc/sys"] {
            let error = set(Path::new(folder)).expect_err("it is not one");
            assert!(error.to_string().contains(folder), "{error}");
        }
    }

    #[test]
    fn folders_are_absolute() {
        let of = |folder| absolute(Path::new(folder)).expect("there is a working directory");
        assert_eq!(of("/proc"), None);
        assert_eq!(of("/proc/"), None);
        assert_eq!(of("/host/proc/"), Some("/host/proc".into()));
        assert!(of("proc").is_some_and(|folder| folder.is_absolute()));
    }
}
