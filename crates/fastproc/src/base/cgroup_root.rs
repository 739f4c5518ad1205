//! Where the cgroup hierarchy of version 2 is mounted.
//!
//! It is searched for among the mounts of this process, and a mount of the whole hierarchy is preferred to that of a
//! part. [`set`] chooses one of several.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use super::{error::Error, frozen, mounts, proc_root};

/// A mount of the hierarchy, or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The cgroup at its root.
    pub(crate) root: Vec<u8>,
    /// Where it is.
    pub(crate) point: PathBuf,
}

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
    if mounts_at(all(), Some(&root)).is_empty() {
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

/// The mounts of the hierarchy to use.
pub(crate) fn chosen() -> Vec<Mount> {
    mounts_at(all(), root())
}

/// The mount of the hierarchy to use.
pub(crate) fn first() -> Option<Mount> {
    best(chosen())
}

/// A mount of the whole comes before that of a part.
fn best(mounts: Vec<Mount>) -> Option<Mount> {
    mounts.into_iter().min_by_key(|mount| mount.root != b"/")
}

fn root() -> Option<&'static Path> {
    ROOT.get_or_init(|| None).as_deref()
}

/// All mounts of the hierarchy that this process sees.
pub(crate) fn all() -> Vec<Mount> {
    let mut all = of(&fs::read(proc_root::own_path("/proc/self/mountinfo")).unwrap_or_default());
    for mount in &mut all {
        let point = mount.point.to_str().and_then(frozen::path);
        mount.point = point.unwrap_or_else(|| std::mem::take(&mut mount.point));
    }
    all
}

fn of(mountinfo: &[u8]) -> Vec<Mount> {
    let mounts = mounts::of_cgroup2(mountinfo).map(|mount| Mount {
        root: mount.root.into_owned(),
        point: OsString::from_vec(mount.point.into_owned()).into(),
    });
    mounts.collect()
}

/// Those at this folder, if one is named.
fn mounts_at(mut mounts: Vec<Mount>, folder: Option<&Path>) -> Vec<Mount> {
    mounts.retain(|mount| folder.is_none_or(|folder| mount.point == folder));
    mounts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_mount_is_taken_of_several() {
        let mounts = b"25 19 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      26 19 0:23 /part /mnt/my\\040cg rw - cgroup2 none rw\n\
                      27 19 0:24 / /host/sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let at = |folder: Option<&str>| mounts_at(of(mounts), folder.map(Path::new));
        assert_eq!(at(None).len(), 2);
        assert_eq!(at(Some("/host/sys/fs/cgroup"))[0].root, b"/");
        assert_eq!(at(Some("/mnt/my cg"))[0].root, b"/part");
        assert!(at(Some("/sys/fs/cgroup/cpu")).is_empty());
        assert_eq!(best(at(None)), best(at(Some("/host/sys/fs/cgroup"))));
        assert_eq!(best(Vec::new()), None);
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
