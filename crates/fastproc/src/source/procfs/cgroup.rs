//! Ids of cgroups: the inode numbers of their folders in a mount of the whole default hierarchy.

use std::{
    collections::HashMap,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use crate::base::cgroup_root;

/// The mount of the default hierarchy, and the ids that were looked up in this collection.
#[derive(Debug, Default)]
pub(super) struct Cgroups {
    mount: Option<PathBuf>,
    ids: HashMap<Vec<u8>, Option<u64>>,
}

impl Cgroups {
    /// Finds the mount.
    pub(super) fn find() -> Self {
        let mut mounts = cgroup_root::chosen().into_iter();
        let whole = mounts.find(|mount| mount.root == b"/");
        Self {
            mount: whole.map(|mount| mount.point),
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

#[cfg(test)]
mod tests {
    use super::*;

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
