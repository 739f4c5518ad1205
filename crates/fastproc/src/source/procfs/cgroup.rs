//! Ids of cgroups: the inode numbers of their folders in a mount of the whole default hierarchy.

use std::{
    collections::HashMap,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use crate::base::{cgroup_root, mounts};

/// The mount of the default hierarchy, and the ids that were looked up in this collection.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    mount: Option<PathBuf>,
    ids: HashMap<Vec<u8>, Option<u64>>,
}

impl Cgroups {
    /// Finds the mount.
    pub(super) fn find() -> Self {
        let mounts = cgroup_root::mountinfo();
        Self {
            mount: mount_of(&mounts),
            ids: HashMap::new(),
        }
    }

    pub(super) const fn are_known(&self) -> bool {
        self.mount.is_some()
    }

    pub(super) fn forget(&mut self) {
        self.ids.clear();
    }

    /// The id of the cgroup in this text of `/proc/PID/cgroup`; `None` if it is not below the mount.
    pub(super) fn id(&mut self, text: &[u8]) -> Option<u64> {
        let mount = self.mount.as_deref()?;
        let path = path_of(text)?;
        if let Some(&id) = self.ids.get(path) {
            return id;
        }
        let id = inode(mount, path);
        self.ids.insert(path.into(), id);
        id
    }
}

/// The path in the default hierarchy: `0::/path`, unless the cgroup is gone or outside the reader's namespace.
fn path_of(text: &[u8]) -> Option<&[u8]> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let path = lines.find_map(|line| line.strip_prefix(b"0::/"))?;
    (!path.ends_with(b" (deleted)") && !path.starts_with(b"..")).then_some(path)
}

fn inode(mount: &Path, path: &[u8]) -> Option<u64> {
    let path = mount.join(std::ffi::OsStr::from_bytes(path));
    fs::metadata(path).ok().map(|folder| folder.ino())
}

/// The mount point of the whole default hierarchy, from `mountinfo`.
fn mount_of(mounts: &str) -> Option<PathBuf> {
    // Blanks in a path are escaped. Below a mount point with blanks, ids are unknown.
    let mut whole =
        mounts::of_cgroup2(mounts).filter(|(root, point)| *root == "/" && !point.contains('\\'));
    whole.next().map(|(_, point)| point.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_hierarchy_is_found() {
        let mounts = "\
            25 1 0:22 / /sys rw,nosuid - sysfs sysfs rw\n\
            30 25 0:26 /user /other rw - cgroup2 cgroup2 rw\n\
            31 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(mount_of(mounts), Some(PathBuf::from("/sys/fs/cgroup")));
        assert_eq!(mount_of("25 1 0:22 / /sys rw - sysfs sysfs rw\n"), None);
        assert_eq!(mount_of("nonsense"), None);
    }

    #[test]
    fn paths() {
        assert_eq!(path_of(b"9:name=systemd:/x\n0::/\n"), Some(&b""[..]));
        assert_eq!(
            path_of(b"0::/user.slice/a b\n"),
            Some(&b"user.slice/a b"[..])
        );
        assert_eq!(path_of(b"0::/gone (deleted)\n"), None);
        assert_eq!(path_of(b"0::/../outside\n"), None);
        assert_eq!(path_of(b"1:cpu:/\n"), None);
    }
}
