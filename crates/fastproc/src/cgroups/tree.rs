//! The directories of the hierarchy: names of cgroups by their ids, and files that stay open.
//!
//! A cgroup is known here only if its directory is below the mount of the hierarchy. So a reader in a cgroup namespace,
//! or without the hierarchy, sees no others.

use std::{
    collections::HashMap,
    ffi::OsStr,
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, RawDir},
    io::Errno,
    process::{Resource, getrlimit},
};

use super::{bounds::Bounds, error::Error};
use crate::base::{cgroup_root, error, mounts};

/// Kept files have descriptors below the limit divided by this.
const SPARED: u64 = 4;

/// The whole tree below a mount.
#[derive(Debug)]
pub(super) struct Tree {
    mount: PathBuf,
    root: OwnedFd,
    root_id: u64,
    directories: HashMap<u64, Directory>,
    /// Bytes of their paths.
    bytes: usize,
    generation: u32,
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
        let mounts = cgroup_root::mountinfo();
        let (_, point) = mount(&mounts).ok_or(Error::NotMounted)?;
        Self::at(Path::new(point))
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
            directories: HashMap::new(),
            bytes: 0,
            generation: 0,
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
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        self.keeps_below = i32::try_from(limit / SPARED).unwrap_or(i32::MAX);
    }

    /// Whether this cgroup is reachable as a child of `parent`. Parents are met before their children.
    pub(super) fn meet(&mut self, id: u64, parent: u64) -> bool {
        let generation = self.generation;
        if !self.directories.contains_key(&id) {
            match self.directories.get(&parent) {
                Some(parent) if parent.met == generation && parent.listed != generation => {}
                _ => return false,
            }
            self.children(parent);
        }
        match self.directories.get_mut(&id) {
            Some(directory) => {
                directory.met = generation;
                true
            }
            None => false,
        }
    }

    /// Meets a cgroup whose path is known from elsewhere.
    pub(super) fn learn(&mut self, id: u64, path: &[u8]) {
        self.insert(id, path);
        if let Some(directory) = self.directories.get_mut(&id) {
            directory.met = self.generation;
        }
    }

    /// Ends the pass: cgroups that were not met are gone.
    pub(super) fn end(&mut self) {
        let Self {
            generation,
            directories,
            bytes,
            root_id,
            kept,
            bounds,
            is_over,
            is_late,
            ..
        } = self;
        // After a pass that was broken off, the next one goes on from what is known.
        if !*is_late {
            directories.retain(|id, directory| directory.met == *generation || id == root_id);
        }
        *bytes = directories.values().map(|of| of.path.len()).sum();
        *is_over |= directories.len() > bounds.cgroups || *bytes > bounds.bytes_of_all;
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
                found.push((entry.ino(), [start, b"/", name].concat()));
            }
        }
        let ids = found.iter().map(|&(id, _)| id).collect();
        for (id, path) in found {
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

    /// Reads a file of a cgroup into `memory`. `None`: it does not exist, or may not be read.
    pub(super) fn read<'m>(
        &mut self,
        id: u64,
        name: &'static str,
        memory: &'m mut Vec<u8>,
    ) -> Option<&'m str> {
        let directory = self.directories.get_mut(&id)?;
        let place = directory.files.iter().position(|(known, _)| *known == name);
        let len = if let Some(place) = place {
            let result = pread_all(&directory.files[place].1, memory);
            if result.is_err() {
                // Its controller was disabled.
                directory.files.swap_remove(place);
                self.kept = self.kept.saturating_sub(1);
            }
            result.ok()?
        } else {
            let path = relative(&directory.path, name);
            let file = self.open_at(&path, OFlags::empty())?;
            let len = pread_all(&file, memory).ok()?;
            if file.as_raw_fd() < self.keeps_below && self.kept < self.bounds.descriptors {
                self.kept += 1;
                self.directories.get_mut(&id)?.files.push((name, file));
            }
            len
        };
        std::str::from_utf8(&memory[..len]).ok()
    }
}

/// A path relative to the root's descriptor.
fn relative(path: &[u8], name: &str) -> PathBuf {
    let path = OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path));
    Path::new(".").join(path).join(name)
}

fn pread_all(file: impl AsFd, memory: &mut Vec<u8>) -> rustix::io::Result<usize> {
    if memory.is_empty() {
        memory.resize(8 << 10, 0);
    }
    let mut len = 0;
    loop {
        if len == memory.len() {
            memory.resize(len * 2, 0);
        }
        match rustix::io::pread(&file, &mut memory[len..], len as u64) {
            Ok(0) => return Ok(len),
            Ok(count) => len += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The mount of the version 2 hierarchy: its root, and its mount point. A mount of the whole hierarchy comes first.
pub(super) fn mount(mounts: &str) -> Option<(&str, &str)> {
    mounts::of_cgroup2(mounts).min_by_key(|&(root, _)| root != "/")
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;

    #[test]
    fn a_mount_of_the_root_is_preferred() {
        let mounts = "25 19 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      26 19 0:23 /part /mnt rw - cgroup2 none rw\n\
                      27 19 0:24 / /sys/fs/cgroup/unified rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(mount(mounts), Some(("/", "/sys/fs/cgroup/unified")));
        let (part, _) = mounts.split_at(mounts.rfind("27").expect("it is there"));
        assert_eq!(mount(part), Some(("/part", "/mnt")));
        assert_eq!(mount(""), None);
    }

    #[test]
    fn directories_are_found_from_their_parents_and_forgotten_when_they_are_gone() {
        let folder = std::env::temp_dir().join(format!("fastproc-tree-{}", std::process::id()));
        fs::create_dir_all(folder.join("a/b")).expect("a folder");
        fs::write(folder.join("a/b/cpu.stat"), "usage_usec 7\n").expect("a file");
        fs::write(folder.join("a/own"), "1\n").expect("a file");
        let mut tree = Tree::at(&folder).expect("a folder");
        tree.begin();
        let root = tree.root_id();
        assert!(tree.meet(root, 0));
        let [a] = tree.children(root)[..] else {
            panic!("one child")
        };
        assert!(tree.meet(a, root));
        let b = rustix::fs::stat(folder.join("a/b"))
            .expect("it is there")
            .st_ino;
        assert!(!tree.meet(b, b + 1) && tree.meet(b, a));
        assert_eq!(tree.path(b), Some(&b"/a/b"[..]));
        let mut memory = Vec::new();
        for _ in 0..2 {
            assert_eq!(
                tree.read(b, "cpu.stat", &mut memory),
                Some("usage_usec 7\n")
            );
            assert_eq!(tree.read(b, "memory.stat", &mut memory), None);
            assert_eq!(tree.directories[&b].files.len(), 1);
        }
        // No descriptor is low enough, or there are enough.
        assert_eq!(tree.kept, 1);
        tree.bounds.descriptors = 1;
        assert!(tree.read(a, "own", &mut memory).is_some());
        assert!(tree.directories[&a].files.is_empty());
        tree.bounds.descriptors = 2;
        tree.keeps_below = 0;
        assert!(tree.read(a, "own", &mut memory).is_some());
        assert!(tree.directories[&a].files.is_empty());
        tree.end();
        fs::remove_dir_all(folder.join("a")).expect("it is ours");
        tree.begin();
        assert!(tree.meet(root, 0) && tree.children(root).is_empty());
        tree.end();
        assert_eq!((tree.path(a), tree.path(b)), (None, None));
        assert_eq!(tree.kept, 0);
        assert!(tree.check().is_ok());
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    /// Meets all directories. Returns how many are known then, how many have too long paths, and whether there are not
    /// too many.
    fn pass(tree: &mut Tree) -> (usize, usize, bool) {
        tree.begin();
        let mut left = vec![(tree.root_id(), 0)];
        while let Some((id, parent)) = left.pop() {
            if tree.meet(id, parent) {
                left.extend(tree.children(id).into_iter().map(|child| (child, id)));
            }
        }
        tree.end();
        (tree.directories.len(), tree.left_out, tree.check().is_ok())
    }

    /// However many directories there are and however long their paths, no more is kept or looked up.
    #[test]
    fn what_is_beyond_the_bounds_takes_nothing() {
        let folder = std::env::temp_dir().join(format!("fastproc-bounds-{}", std::process::id()));
        for at in 0..9 {
            fs::create_dir_all(folder.join(format!("{at}/deep/er"))).expect("a folder");
        }
        let pass = |bounds| {
            let mut tree = Tree::at(&folder).expect("a folder");
            tree.bounds = bounds;
            pass(&mut tree)
        };
        let all = 1 + 9 * 3;
        assert_eq!(pass(Bounds::default()), (all, 0, true));
        let exactly = Bounds {
            cgroups: all,
            path_bytes: "/0/deep/er".len(),
            parts: 3,
            bytes_of_all: "/".len() + 9 * "/0/0/deep/0/deep/er".len(),
            descriptors: 0,
            until: Duration::MAX,
        };
        assert_eq!(pass(exactly), (all, 0, true));
        let fewer = |cgroups| pass(Bounds { cgroups, ..exactly });
        assert!(!fewer(all - 1).2);
        let (count, _, fits) = fewer(5);
        assert!(count <= 2 * 5 && !fits);
        let less = Bounds {
            bytes_of_all: exactly.bytes_of_all - 1,
            ..exactly
        };
        assert_eq!(pass(less), (all, 0, false));
        let (count, _, fits) = pass(Bounds {
            bytes_of_all: 9,
            ..exactly
        });
        assert!(count <= 9 && !fits);
        // Only the long paths are left out, and counted once, without what is below them.
        let shorter = |path: &str| {
            pass(Bounds {
                path_bytes: path.len(),
                ..exactly
            })
        };
        assert_eq!(shorter("/0/deep/e"), (1 + 9 * 2, 9, true));
        assert_eq!(shorter("/0"), (1 + 9, 9, true));
        let flatter = |parts| pass(Bounds { parts, ..exactly });
        assert_eq!(flatter(2), (1 + 9 * 2, 9, true));
        assert_eq!(flatter(1), (1 + 9, 9, true));
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    /// A pass that takes too long is broken off, and what is known by then is not forgotten.
    #[test]
    fn a_pass_goes_on_where_an_earlier_one_was_broken_off() {
        let folder = std::env::temp_dir().join(format!("fastproc-late-{}", std::process::id()));
        fs::create_dir_all(folder.join("a/b")).expect("a folder");
        let mut tree = Tree::at(&folder).expect("a folder");
        tree.bounds.until = Duration::ZERO;
        assert_eq!(pass(&mut tree), (1, 0, false));
        tree.bounds.until = Duration::MAX;
        assert_eq!(pass(&mut tree), (3, 0, true));
        tree.bounds.until = Duration::ZERO;
        assert_eq!(pass(&mut tree), (3, 0, false));
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    /// They are moved away, not removed: a new directory might have the number of a removed one.
    #[test]
    fn directories_that_are_gone_do_not_count() {
        let folder = std::env::temp_dir().join(format!("fastproc-gone-{}", std::process::id()));
        let [inside, away] = ["inside", "away"].map(|name| folder.join(name));
        for folder in [&inside, &away] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let mut tree = Tree::at(&inside).expect("a folder");
        tree.bounds.cgroups = 1 + 9;
        for round in 0..3 {
            let names: Vec<_> = (0..9).map(|at| format!("{round}-{at}")).collect();
            for name in &names {
                fs::create_dir(inside.join(name)).expect("a folder");
            }
            assert_eq!(pass(&mut tree), (1 + 9, 0, true));
            for name in &names {
                fs::rename(inside.join(name), away.join(name)).expect("they are ours");
            }
        }
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
