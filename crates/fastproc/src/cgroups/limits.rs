//! The limits of single cgroups, read without all others.

use std::path::Path;

use super::{error::Error, files::Files, tree::Tree};
use crate::base::cgroup_root;

/// The limits of one cgroup, and what is in use of them. A limit that is not set is
/// [`UNLIMITED`](super::record::UNLIMITED). `None`: the cgroup lacks the file, or this process may not read it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// memory.max, in bytes.
    pub memory_max: Option<u64>,
    /// memory.current, in bytes.
    pub memory_current: Option<u64>,
    /// CPU time allowed in a period, in nanoseconds: cpu.max.
    pub cpu_quota_ns: Option<u64>,
    /// The period, in nanoseconds: cpu.max.
    pub cpu_period_ns: Option<u64>,
    /// pids.max.
    pub tasks_max: Option<u64>,
    /// pids.current.
    pub tasks_current: Option<u64>,
}

/// A reader of limits.
#[derive(Debug)]
pub struct LimitReader {
    tree: Tree,
    /// The cgroup at the root of the mount.
    root: Vec<u8>,
    files: Files,
}

impl LimitReader {
    /// Finds the mount of the hierarchy.
    ///
    /// # Errors
    /// The hierarchy is not mounted here.
    pub fn open() -> Result<Self, Error> {
        let mount = cgroup_root::first().ok_or(Error::NotMounted)?;
        let root = mount.root.strip_suffix(b"/").unwrap_or(&mount.root);
        Ok(Self::new(Tree::at(&mount.point)?, root))
    }

    /// Reads a folder with copies of the files of cgroups.
    ///
    /// # Errors
    /// The folder cannot be opened.
    pub fn open_recorded(folder: &Path) -> Result<Self, Error> {
        Ok(Self::new(Tree::at(folder)?, b""))
    }

    fn new(tree: Tree, root: &[u8]) -> Self {
        Self {
            tree,
            root: root.into(),
            files: Files::default(),
        }
    }

    /// Reads the limits of the cgroup with this path, as in `/proc/PID/cgroup`, and returns them with its id. `None`: there
    /// is no such cgroup below the mount.
    pub fn read(&mut self, path: &[u8]) -> Option<(u64, Limits)> {
        let Self { tree, root, files } = self;
        let below = path.strip_prefix(root.as_slice())?;
        let id = match below {
            b"" => tree.root_id(),
            [b'/', ..] => tree.find(below)?,
            _ => return None,
        };
        let mut number = |name| files.number(tree, id, name);
        let mut limits = Limits {
            memory_max: number("memory.max"),
            memory_current: number("memory.current"),
            tasks_max: number("pids.max"),
            tasks_current: number("pids.current"),
            ..Limits::default()
        };
        if let Some(cpu_max) = files.cpu_max(tree, id) {
            [limits.cpu_quota_ns, limits.cpu_period_ns] = cpu_max;
        }
        tree.forget(id);
        Some((id, limits))
    }
}
