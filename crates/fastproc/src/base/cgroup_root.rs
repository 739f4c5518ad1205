//! Where the cgroup hierarchy of version 2 is mounted.
//!
//! It is searched for among the mounts of this process, and a mount of the whole hierarchy is preferred to that of a
//! part. [`set`] chooses one of several.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use super::{error::Error, mounts};

/// `None`: any.
static ROOT: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Makes this whole program use the cgroup hierarchy that is mounted at this folder. Call it before anything else of
/// this library.
///
/// # Errors
/// No hierarchy of version 2 is mounted there, or another one is in use already.
pub fn set(folder: &Path) -> Result<(), Error> {
    let failed = |source| Error::unreadable(folder.display().to_string(), source);
    let root = fs::canonicalize(folder).map_err(failed)?;
    if mounts_at(&all(), Some(&root)).is_empty() {
        return Err(failed(io::Error::other(
            "no cgroup hierarchy of version 2 is mounted there; /proc/self/mountinfo says where one is",
        )));
    }
    let root = Some(root);
    if *ROOT.get_or_init(|| root.clone()) == root {
        return Ok(());
    }
    Err(failed(io::Error::other(
        "the program has begun to read another cgroup hierarchy",
    )))
}

/// Whether [`set`] has chosen one.
pub(crate) fn is_set() -> bool {
    root().is_some()
}

/// The lines of `/proc/self/mountinfo` that have the mounts of the hierarchy.
pub(crate) fn mountinfo() -> String {
    chosen(&all())
}

/// Those lines of this `mountinfo`.
pub(crate) fn chosen(mountinfo: &str) -> String {
    mounts_at(mountinfo, root())
}

fn root() -> Option<&'static Path> {
    ROOT.get_or_init(|| None).as_deref()
}

fn all() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

/// The lines of mounts of the hierarchy, at this folder if one is named.
fn mounts_at(mountinfo: &str, folder: Option<&Path>) -> String {
    let lines = mountinfo.split_inclusive('\n').filter(|line| {
        let mut mounts = mounts::of_cgroup2(line);
        mounts.any(|(_, point)| folder.is_none_or(|folder| Path::new(point) == folder))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mount_is_taken_of_several() {
        let mounts = "25 19 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      26 19 0:23 /part /mnt rw - cgroup2 none rw\n\
                      27 19 0:24 / /host/sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let at = |folder: Option<&str>| mounts_at(mounts, folder.map(Path::new));
        assert_eq!(at(None).lines().count(), 2);
        assert!(at(Some("/host/sys/fs/cgroup")).starts_with("27 "));
        assert_eq!(at(Some("/sys/fs/cgroup/cpu")), "");
    }

    #[test]
    fn a_folder_without_a_hierarchy_is_refused() {
        for folder in ["/proc", "/no/such/folder"] {
            let error = set(Path::new(folder)).expect_err("it has none");
            assert!(error.to_string().contains(folder), "{error}");
        }
        assert!(!is_set());
    }
}
