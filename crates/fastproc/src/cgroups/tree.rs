//! The directories of the hierarchy: names of cgroups by their ids, and files that stay open.
//!
//! A cgroup is known here only if its directory is below the mount of the hierarchy. So a reader in a cgroup namespace,
//! or without the hierarchy, sees no others.

use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Access, AtFlags, FileType, Mode, OFlags, RawDir, accessat},
    io::Errno,
    process::{Resource, getrlimit},
};

use super::{bounds::Bounds, error::Error, ids::Ids};
use crate::base::{cgroup_root, error, frozen, whole_file::read_whole};

/// Kept files have descriptors below the limit divided by this.
const SPARED: u64 = 4;

/// The whole tree below a mount.
#[derive(Debug)]
pub(super) struct Tree {
    mount: PathBuf,
    root: OwnedFd,
    root_id: u64,
    directories: Ids<Directory>,
    /// Bytes of their paths.
    bytes: usize,
    generation: u32,
    /// The number of directories that were met in this pass.
    met: usize,
    /// Only files whose descriptors are below this number stay open. The kernel gives the lowest free number, so the
    /// higher ones stay free for the rest of the program, however many trees it has.
    keeps_below: i32,
    pub(super) bounds: Bounds,
    /// The number of files that are open.
    kept: usize,
    /// The number of directories that were left out in this pass because their paths are too long.
    pub(super) left_out: usize,
    /// Whether there are more directories than the bounds allow.
    is_over: bool,
    /// Whether reading has taken longer than the bounds allow.
    is_late: bool,
    /// Why something could not be opened that may well exist.
    want: Option<Errno>,
}

#[derive(Debug)]
struct Directory {
    /// As in `/proc/PID/cgroup`: `/` is the root.
    path: Box<[u8]>,
    /// The passes in which it was last met, and in which its children were last listed.
    met: u32,
    listed: u32,
    files: Vec<(&'static str, OwnedFd)>,
}

impl Tree {
    pub(super) fn open() -> Result<Self, Error> {
        Self::at(&cgroup_root::first().ok_or(Error::NotMounted)?.point)
    }

    pub(super) fn at(mount: &Path) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::Read {
            path: mount.into(),
            source: errno.into(),
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(mount, flags, Mode::empty()).map_err(failed)?;
        let root_id = rustix::fs::fstat(&root).map_err(failed)?.st_ino;
        let mut tree = Self {
            mount: mount.into(),
            root,
            root_id,
            directories: Ids::default(),
            bytes: 0,
            generation: 0,
            met: 0,
            keeps_below: 0,
            bounds: Bounds::default(),
            kept: 0,
            left_out: 0,
            is_over: false,
            is_late: false,
            want: None,
        };
        tree.insert(root_id, b"/");
        Ok(tree)
    }

    pub(super) fn mount(&self) -> &Path {
        &self.mount
    }

    pub(super) fn root_id(&self) -> u64 {
        self.root_id
    }

    fn insert(&mut self, id: u64, path: &[u8]) {
        if self.directories.contains_key(&id) {
            return;
        }
        if self.bounds.leave_out(path) {
            self.left_out += 1;
            return;
        }
        // As many may be gone, which is known at the end of the pass.
        let bytes = self.bytes + path.len();
        if self.directories.len() >= self.bounds.cgroups.saturating_mul(2)
            || bytes > self.bounds.bytes_of_all.saturating_mul(2)
        {
            self.is_over = true;
            return;
        }
        let directory = Directory {
            path: path.into(),
            met: 0,
            listed: 0,
            files: Vec::new(),
        };
        self.directories.insert(id, directory);
        self.bytes = bytes;
    }

    /// Whether what is known of the tree is within these bounds.
    pub(super) fn fits(&self, bounds: Bounds) -> bool {
        self.directories.len() <= bounds.cgroups && self.bytes <= bounds.bytes_of_all
    }

    /// Looks a cgroup up by its path, and returns its id.
    pub(super) fn find(&mut self, path: &[u8]) -> Option<u64> {
        // The kernel shows a cgroup above the root of the namespace like this.
        if path.starts_with(b"/..") {
            return None;
        }
        let folder = relative(path, "");
        let id = rustix::fs::statat(&self.root, &folder, AtFlags::empty()).ok()?;
        self.insert(id.st_ino, path);
        Some(id.st_ino)
    }

    /// Forgets a cgroup that was looked up.
    pub(super) fn forget(&mut self, id: u64) {
        if id != self.root_id
            && let Some(directory) = self.directories.remove(&id)
        {
            self.bytes -= directory.path.len();
        }
    }

    /// The path of a cgroup.
    pub(super) fn path(&self, id: u64) -> Option<&[u8]> {
        Some(&self.directories.get(&id)?.path)
    }

    /// Begins a pass over all cgroups.
    pub(super) fn begin(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.left_out = 0;
        self.met = 0;
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        self.keeps_below = i32::try_from(limit / SPARED).unwrap_or(i32::MAX);
    }

    /// Whether this cgroup is reachable as a child of `parent`. Parents are met before their children.
    pub(super) fn meet(&mut self, id: u64, parent: u64) -> bool {
        if self.mark(id) {
            return true;
        }
        let generation = self.generation;
        match self.directories.get(&parent) {
            Some(parent) if parent.met == generation && parent.listed != generation => {}
            _ => return false,
        }
        self.children(parent);
        self.mark(id)
    }

    /// Marks a directory as met. False: it is unknown.
    fn mark(&mut self, id: u64) -> bool {
        let Some(directory) = self.directories.get_mut(&id) else {
            return false;
        };
        self.met += usize::from(directory.met != self.generation);
        directory.met = self.generation;
        true
    }

    /// Meets a cgroup whose path is known from elsewhere.
    pub(super) fn learn(&mut self, id: u64, path: &[u8]) {
        self.insert(id, path);
        self.mark(id);
    }

    /// Ends the pass: cgroups that were not met are gone.
    pub(super) fn end(&mut self) {
        // Usually none is gone. After a pass that was broken off, the next one goes on from what is known.
        if self.met < self.directories.len() && !self.is_late {
            self.drop_gone();
        }
        self.is_over |=
            self.directories.len() > self.bounds.cgroups || self.bytes > self.bounds.bytes_of_all;
    }

    fn drop_gone(&mut self) {
        let Self {
            generation,
            directories,
            bytes,
            root_id,
            kept,
            ..
        } = self;
        directories.retain(|id, directory| directory.met == *generation || id == root_id);
        *bytes = directories.values().map(|of| of.path.len()).sum();
        *kept = directories.values().map(|of| of.files.len()).sum();
    }

    /// Whether everything was read since the last call that could be, and was not left out for want of descriptors or
    /// memory, or because of the bounds.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        let want = self.want.take();
        let is_late = std::mem::take(&mut self.is_late);
        if std::mem::take(&mut self.is_over) || is_late {
            return Err(Error::TooMany);
        }
        let Some(errno) = want else {
            return Ok(());
        };
        let source = io::Error::from(errno);
        Err(match error::Error::descriptor_limit(&source) {
            Some(error) => error.into(),
            None => Error::Read {
                path: self.mount.clone(),
                source,
            },
        })
    }

    /// Lists the ids of a cgroup's children; none if it cannot be read.
    pub(super) fn children(&mut self, id: u64) -> Vec<u64> {
        let generation = self.generation;
        let Some(directory) = self.directories.get_mut(&id) else {
            return Vec::new();
        };
        directory.listed = generation;
        if self.is_over {
            return Vec::new();
        }
        let path = directory.path.clone();
        let Some(opened) = self.open_at(&relative(&path, ""), OFlags::DIRECTORY) else {
            return Vec::new();
        };
        let mut memory = Vec::with_capacity(8 << 10);
        let mut entries = RawDir::new(opened, memory.spare_capacity_mut());
        let mut found = Vec::new();
        while let Some(Ok(entry)) = entries.next() {
            let name = entry.file_name().to_bytes();
            if entry.file_type() == FileType::Directory && name != b"." && name != b".." {
                let start = if path.len() == 1 { &b""[..] } else { &path };
                found.push(([start, b"/", name].concat(), entry.ino()));
            }
        }
        frozen::sort(&mut found);
        let ids = found.iter().map(|&(_, id)| id).collect();
        for (path, id) in found {
            self.insert(id, &path);
        }
        ids
    }

    fn open_at(&mut self, path: &Path, flags: OFlags) -> Option<OwnedFd> {
        self.is_late |= self.bounds.are_over();
        if self.is_late {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | flags;
        let opened = rustix::fs::openat(&self.root, path, flags, Mode::empty());
        if let Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) = opened {
            self.want = Some(errno);
        }
        opened.ok()
    }

    /// Whether a file could not be read because this user may not, or because the cgroup is gone; otherwise there is none.
    pub(super) fn is_hidden(&self, id: u64, name: &str) -> bool {
        let Some(directory) = self.directories.get(&id) else {
            return true;
        };
        let access = |name| {
            let path = relative(&directory.path, name);
            accessat(&self.root, path, Access::READ_OK, AtFlags::EACCESS)
        };
        match access(name) {
            Err(Errno::NOENT) => access("") == Err(Errno::NOENT),
            result => result == Err(Errno::ACCESS),
        }
    }

    /// Reads a file of a cgroup into `memory`. `None`: it does not exist, or may not be read.
    pub(super) fn read<'m>(
        &mut self,
        id: u64,
        name: &'static str,
        memory: &'m mut Vec<u8>,
    ) -> Option<&'m str> {
        let directory = self.directories.get_mut(&id)?;
        let place = directory.files.iter().position(|(known, _)| *known == name);
        if let Some(place) = place {
            let result = read_whole(&directory.files[place].1, memory);
            if result.is_err() {
                // Its controller was disabled.
                directory.files.swap_remove(place);
                self.kept = self.kept.saturating_sub(1);
            }
            result.ok()?;
        } else {
            let path = relative(&directory.path, name);
            let file = self.open_at(&path, OFlags::empty())?;
            read_whole(&file, memory).ok()?;
            if file.as_raw_fd() < self.keeps_below && self.kept < self.bounds.descriptors {
                self.kept += 1;
                self.directories.get_mut(&id)?.files.push((name, file));
            }
        }
        std::str::from_utf8(memory).ok()
    }
}

/// A path relative to the root's descriptor.
fn relative(path: &[u8], name: &str) -> PathBuf {
    let path = OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path));
    Path::new(".").join(path).join(name)
}

#[cfg(test)]
mod tests;
