//! Paths of cgroups, kept by the ids of the cgroups.

use std::{collections::HashMap, os::fd::OwnedFd, path::Path};

use rustix::fs::{AtFlags, Mode, OFlags};

/// What is known of the default (version 2) hierarchy.
#[derive(Debug)]
pub(super) struct Cgroups {
    /// Its root, if it is mounted.
    root: Option<OwnedFd>,
    kept: HashMap<u64, Cgroup>,
}

#[derive(Debug)]
struct Cgroup {
    path: Box<[u8]>,
    /// Asked for since the last [`Cgroups::forget_unused`].
    used: bool,
}

impl Cgroups {
    /// Finds the hierarchy among the mounts of this process.
    pub(super) fn open() -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self {
            root: mount_point(&mounts)
                .and_then(|path| rustix::fs::open(path, flags, Mode::empty()).ok()),
            kept: HashMap::new(),
        }
    }

    /// The path of this cgroup, if it is known.
    pub(super) fn path(&mut self, id: u64) -> Option<&[u8]> {
        let cgroup = self.kept.get_mut(&id)?;
        cgroup.used = true;
        Some(&cgroup.path)
    }

    /// Keeps a path that a process of this cgroup had. The process may have moved since its id was read: only the
    /// folder itself tells whose path it is.
    pub(super) fn keep(&mut self, id: u64, path: &[u8]) {
        if self.folder_id(path) == Some(id) {
            let path = path.into();
            self.kept.insert(id, Cgroup { path, used: true });
        }
    }

    /// Forgets what nobody asked for since the last call.
    pub(super) fn forget_unused(&mut self) {
        self.kept
            .retain(|_, cgroup| std::mem::take(&mut cgroup.used));
    }

    /// Id of the cgroup at this path: the inode number of its folder.
    pub(super) fn folder_id(&self, path: &[u8]) -> Option<u64> {
        let relative = [b".", path].concat();
        let stat = rustix::fs::statat(self.root.as_ref()?, relative.as_slice(), AtFlags::empty());
        Some(stat.ok()?.st_ino)
    }
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
    fn a_path_is_kept_for_its_own_id_only_and_while_it_is_used() {
        let mut cgroups = Cgroups::open();
        let Some(id) = cgroups.folder_id(b"/") else {
            eprintln!("SKIPPED: the default hierarchy is not mounted here");
            return;
        };
        cgroups.keep(id + 1, b"/");
        assert_eq!(cgroups.path(id + 1), None);
        cgroups.keep(id, b"/");
        assert_eq!(cgroups.path(id), Some(b"/".as_slice()));
        cgroups.forget_unused();
        assert_eq!(cgroups.path(id), Some(b"/".as_slice()));
        cgroups.forget_unused();
        cgroups.forget_unused();
        assert_eq!(cgroups.path(id), None);
    }
}
