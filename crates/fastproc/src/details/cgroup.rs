//! Paths of cgroups, kept by the ids of the cgroups.

use std::{collections::HashMap, os::fd::OwnedFd, path::Path, sync::OnceLock};

use rustix::fs::{AtFlags, Mode, OFlags};

/// What is known of the default (version 2) hierarchy.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    /// Its root, if it is mounted; looked for when it is needed, since most readers ask for no cgroup.
    root: OnceLock<Option<OwnedFd>>,
    kept: HashMap<u64, Box<[u8]>>,
}

impl Cgroups {
    /// Of a machine that is not there.
    pub(super) fn none() -> Self {
        Self {
            root: None.into(),
            ..Self::default()
        }
    }

    /// Takes a path that was recorded.
    pub(super) fn take(&mut self, id: u64, path: &[u8]) {
        self.kept.insert(id, path.into());
    }

    /// The path of this cgroup, if it is known.
    pub(super) fn path(&self, id: u64) -> Option<&[u8]> {
        self.kept.get(&id).map(AsRef::as_ref)
    }

    /// Keeps a path that a process of this cgroup had. The process may have moved since its id was read: only the
    /// folder itself tells whose path it is.
    pub(super) fn keep(&mut self, id: u64, path: &[u8]) {
        if self.folder_id(path) == Some(id) {
            self.kept.insert(id, path.into());
        }
    }

    /// Forgets all paths: a cgroup that is removed has another one.
    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }

    /// Id of the cgroup at this path: the inode number of its folder.
    pub(super) fn folder_id(&self, path: &[u8]) -> Option<u64> {
        let relative = [b".", path].concat();
        let root = self.root.get_or_init(find_root).as_ref()?;
        let stat = rustix::fs::statat(root, relative.as_slice(), AtFlags::empty());
        Some(stat.ok()?.st_ino)
    }
}

/// The root of the default hierarchy, found among the mounts of this process.
fn find_root() -> Option<OwnedFd> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(mount_point(&mounts)?, flags, Mode::empty()).ok()
}

/// The path in the text of `/proc/PID/cgroup`: the default hierarchy has number 0 and no controllers to name.
pub(super) fn path_in(cgroup: &[u8]) -> Option<&[u8]> {
    cgroup
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"))
}

/// Where the root of the default hierarchy is mounted. In `/proc/PID/mountinfo` the root and the mount point are the
/// fourth and fifth of the fields before ` - `, and the type is the first behind it.
fn mount_point(mounts: &str) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        (kind.starts_with("cgroup2 ") && root == "/" && Path::new(point).is_absolute())
            .then_some(point)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_hierarchy_is_found_among_the_mounts() {
        let mounts = "25 19 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      26 19 0:23 /part /mnt rw - cgroup2 none rw\n\
                      27 19 0:24 / /sys/fs/cgroup/unified rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_point(mounts), Some("/sys/fs/cgroup/unified"));
        assert_eq!(mount_point(""), None);
    }

    #[test]
    fn the_path_in_the_default_hierarchy_is_found() {
        assert_eq!(path_in(b"4:cpu:/a\n0::/b:c\n"), Some(b"/b:c".as_slice()));
        assert_eq!(path_in(b"4:cpu:/a\n"), None);
    }

    #[test]
    fn a_path_is_kept_for_its_own_id_only() {
        let mut cgroups = Cgroups::default();
        let Some(id) = cgroups.folder_id(b"/") else {
            fastproc_testbed::gate::skipped("the default hierarchy is not mounted here");
            return;
        };
        cgroups.keep(id + 1, b"/");
        assert_eq!(cgroups.path(id + 1), None);
        cgroups.keep(id, b"/");
        assert_eq!(cgroups.path(id), Some(b"/".as_slice()));
        cgroups.clear();
        assert_eq!(cgroups.path(id), None);
    }
}
