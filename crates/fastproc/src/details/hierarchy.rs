//! The default (version 2) hierarchy of cgroups: its mount, and the paths of cgroups by id.

use std::{
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use nix::libc;
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::base::{cgroup_root, frozen, namespaces, proc_root};

/// The hierarchy from the view of this process.
#[derive(Debug)]
pub(super) struct Hierarchy {
    /// The root of the whole hierarchy, otherwise of the cgroup namespace of this process.
    root: OwnedFd,
    is_whole: bool,
    /// The kernel's path of this root.
    mount_point: Vec<u8>,
    /// The path of the root of the cgroup namespace: empty in the initial one, `None` if unknown.
    namespace: Option<Vec<u8>>,
    /// Whether the kernel opens a cgroup by its id, which requires `CAP_DAC_READ_SEARCH`.
    opens_ids: AtomicBool,
}

/// The id of the root of the whole hierarchy.
const ROOT: u64 = 1;
/// `CGROUP2_SUPER_MAGIC` of include/uapi/linux/magic.h.
const CGROUP2: u64 = 0x6367_7270;
/// `FILEID_KERNFS` of include/linux/exportfs.h: the handle of a cgroup is its id.
const FILEID_KERNFS: i32 = 0xfe;

/// The most cgroups to search for that of this process.
const MOST_SEARCHED: usize = 10_000;

/// `struct file_handle` with room for an id.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    id: [u8; 8],
}

impl Hierarchy {
    /// Finds it among the mounts of this process, otherwise those of process 1: a container mostly has only its own
    /// part.
    pub(super) fn find() -> Option<Self> {
        let own = cgroup_root::chosen();
        let of_first = ["cgroup", "cgroup/unified"]
            .map(|folder| proc_root::path("/proc/1/root/sys/fs").join(folder));
        // The kernel writes the path of an unreachable mount without its first slash.
        let own = own.iter().filter(|mount| mount.point.is_absolute());
        let candidates = own.map(|mount| &*mount.point);
        let of_first = of_first.iter().filter(|_| !cgroup_root::is_set());
        let candidates = candidates.chain(of_first.map(PathBuf::as_path));
        let whole = candidates.filter_map(open_root).find(|&(_, id)| id == ROOT);
        let is_initial = namespaces::in_initial_cgroup_ns();
        let of_namespace = || {
            let all = cgroup_root::all();
            let mut of_namespace = all.iter().filter(|mount| mount.root == b"/");
            of_namespace.find_map(|mount| open_root(&mount.point))
        };
        let (root, id) = whole.or_else(of_namespace)?;
        let mut hierarchy = Self {
            mount_point: path_of(&root)?,
            root,
            is_whole: id == ROOT,
            namespace: is_initial.then(Vec::new),
            opens_ids: AtomicBool::new(true),
        };
        if !is_initial && hierarchy.is_whole {
            // The whole hierarchy may be mounted over that root.
            let root = of_namespace().filter(|&(_, id)| id != ROOT);
            let by_id = root.and_then(|(_, id)| hierarchy.path(id));
            hierarchy.namespace = by_id.or_else(|| namespace_by_own_cgroup(&hierarchy.root));
        }
        Some(hierarchy)
    }

    /// The path of this cgroup in the whole hierarchy. `None`: it was removed, or this process may not open it.
    pub(super) fn path(&self, id: u64) -> Option<Vec<u8>> {
        if !self.is_whole || !self.opens_ids.load(Ordering::Relaxed) {
            return None;
        }
        let folder = match self.open(id) {
            Ok(folder) => folder,
            Err(error) => {
                if error.raw_os_error() == Some(libc::EPERM) {
                    self.opens_ids.store(false, Ordering::Relaxed);
                }
                return None;
            }
        };
        let path = path_of(&folder)?;
        let path = path.strip_prefix(self.mount_point.as_slice())?;
        Some(if path.is_empty() { b"/" } else { path }.to_vec())
    }

    #[cfg(test)]
    pub(super) fn open_no_ids(&self) {
        self.opens_ids.store(false, Ordering::Relaxed);
    }

    fn open(&self, id: u64) -> std::io::Result<OwnedFd> {
        let mut handle = Handle {
            bytes: 8,
            kind: FILEID_KERNFS,
            id: id.to_ne_bytes(),
        };
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the handle has as many bytes as it says, and outlives the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                self.root.as_raw_fd(),
                &raw mut handle,
                flags,
            )
        };
        if result < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the call returned a new descriptor, which nothing else uses.
        Ok(unsafe { OwnedFd::from_raw_fd(result as i32) })
    }

    /// The path in the whole hierarchy for the path `shown` of this process's namespace, if known.
    pub(super) fn whole_path(&self, shown: &[u8]) -> Option<Vec<u8>> {
        join(self.namespace.as_deref()?, shown)
    }

    /// Whether the namespace of this process shows the paths of the whole hierarchy.
    pub(super) fn shows_whole_paths(&self) -> bool {
        self.namespace.as_ref().is_some_and(Vec::is_empty)
    }

    /// The id of the cgroup at the path `shown` of this process's namespace: the inode number of its folder.
    pub(super) fn id(&self, shown: &[u8]) -> Option<u64> {
        let path = if self.is_whole {
            self.whole_path(shown)?
        } else if shown.starts_with(b"/..") {
            return None;
        } else {
            shown.to_vec()
        };
        let relative = [b".", path.as_slice()].concat();
        let stat = rustix::fs::statat(&self.root, relative.as_slice(), AtFlags::empty());
        Some(stat.ok()?.st_ino)
    }
}

/// The path in the text of `/proc/PID/cgroup`, on the line with number 0 and without controllers.
pub fn path_in(cgroup: &[u8]) -> Option<&[u8]> {
    cgroup
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"0::"))
}

/// The path of the root of this process's cgroup namespace: the path of its own cgroup in the whole hierarchy, without
/// the part that the namespace shows. `None` if it moved meanwhile.
fn namespace_by_own_cgroup(whole: &OwnedFd) -> Option<Vec<u8>> {
    let shown = || std::fs::read(proc_root::own_path("/proc/self/cgroup")).ok();
    let before = shown()?;
    let path = cgroup_with(whole, std::process::id())?;
    if shown()? != before {
        return None;
    }
    let own = path_in(&before)?;
    let root = path.strip_suffix(own.strip_suffix(b"/").unwrap_or(own));
    Some(root?.to_vec())
}

/// The path of the cgroup that contains the first thread of a process. Cgroups nearer to the root are searched first.
fn cgroup_with(whole: &OwnedFd, pid: u32) -> Option<Vec<u8>> {
    let root = PathBuf::from(format!("/proc/self/fd/{}", whole.as_raw_fd()));
    let thread = pid.to_string();
    let mut found = vec![PathBuf::new()];
    for next in 0..MOST_SEARCHED {
        let path = found.get(next)?.clone();
        let folder = root.join(&path);
        // The processes of a threaded cgroup are listed in another one.
        let threads = std::fs::read_to_string(folder.join("cgroup.threads")).unwrap_or_default();
        if threads.lines().any(|listed| listed == thread) {
            let path = path.into_os_string().into_encoded_bytes();
            let slash = if path.is_empty() { "" } else { "/" };
            return Some([slash.as_bytes(), &path].concat());
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let room = MOST_SEARCHED - found.len();
        found.extend(folders.map(|entry| path.join(entry.file_name())).take(room));
    }
    None
}

/// The root of a mount of the hierarchy, and its id.
fn open_root(path: &Path) -> Option<(OwnedFd, u64)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    if frozen::folder().is_some() {
        return Some((root, ROOT));
    }
    let is_cgroup2 = rustix::fs::fstatfs(&root).ok()?.f_type as u64 == CGROUP2;
    let id = rustix::fs::fstat(&root).ok()?.st_ino;
    is_cgroup2.then_some((root, id))
}

/// The path of an open folder.
fn path_of(folder: &OwnedFd) -> Option<Vec<u8>> {
    let link = format!("/proc/thread-self/fd/{}", folder.as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new()).ok()?;
    Some(path.into_bytes())
}

/// Converts a path of a namespace to one of the whole hierarchy. The kernel writes `/..` for each folder above the
/// namespace's root.
fn join(namespace: &[u8], shown: &[u8]) -> Option<Vec<u8>> {
    let mut path = namespace.to_vec();
    for folder in shown
        .split(|&byte| byte == b'/')
        .filter(|folder| !folder.is_empty())
    {
        if folder == b".." {
            let parent = path.iter().rposition(|&byte| byte == b'/')?;
            path.truncate(parent);
        } else {
            path.push(b'/');
            path.extend_from_slice(folder);
        }
    }
    if path.is_empty() {
        path.push(b'/');
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use fastproc_testbed::{Cgroup, gate, wait_for};

    use super::*;

    #[test]
    fn the_path_in_the_default_hierarchy_is_found() {
        assert_eq!(path_in(b"4:cpu:/a\n0::/b:c\n"), Some(b"/b:c".as_slice()));
        assert_eq!(path_in(b"4:cpu:/a\n"), None);
    }

    /// Starts a process in a new cgroup, which may be threaded, and finds it.
    fn is_found(threaded: bool) {
        let mounts = cgroup_root::all();
        let mut roots = mounts.iter().filter_map(|mount| open_root(&mount.point));
        let root = roots.find(|&(_, id)| id == ROOT);
        let (Some((root, _)), Some(cgroup)) = (root, Cgroup::new("outer/inner")) else {
            gate::skipped("the default hierarchy is not mounted here");
            return;
        };
        let inner = cgroup.folder();
        let mut command = cgroup.command("exec sleep 600");
        if threaded {
            std::fs::write(inner.join("cgroup.type"), "threaded").expect("it is empty");
            // A process enters the domain, and its thread the threaded cgroup.
            let script = r#"echo $$ > "$0/../cgroup.procs" && echo $$ > "$0/cgroup.threads" && exec sleep 600"#;
            command = std::process::Command::new("sh");
            command.args(["-c", script]).arg(&inner);
        }
        let mut sleeper = command.spawn().expect("there is a shell");
        let pid = sleeper.id();
        let enters = || {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .ok()
                .filter(|name| name == "sleep\n")
        };
        wait_for("it executes sleep", enters);
        let path = cgroup_with(&root, pid);
        sleeper.kill().expect("it sleeps");
        sleeper.wait().expect("it was killed");
        let path = String::from_utf8(path.expect("it is found")).expect("it is ASCII");
        let found = format!("/proc/self/fd/{}{path}", root.as_raw_fd());
        let inode = |path: &Path| std::fs::metadata(path).expect("the path exists").ino();
        assert_eq!(inode(Path::new(&found)), inode(&inner), "{path}");
    }

    #[test]
    fn the_cgroup_of_a_process_is_found() {
        is_found(false);
    }

    #[test]
    fn a_threaded_cgroup_is_found() {
        is_found(true);
    }

    #[test]
    fn paths_of_a_namespace_are_joined() {
        let pod = b"/kubepods/pod1/a".as_slice();
        for (namespace, shown, whole) in [
            (b"".as_slice(), b"/".as_slice(), Some(b"/".as_slice())),
            (b"", b"/a/b", Some(b"/a/b")),
            (b"", b"/../a", None),
            (pod, b"/", Some(pod)),
            (pod, b"/x", Some(b"/kubepods/pod1/a/x")),
            (pod, b"/../b", Some(b"/kubepods/pod1/b")),
            (pod, b"/../../pod2/c", Some(b"/kubepods/pod2/c")),
            (pod, b"/../../..", Some(b"/")),
            (pod, b"/../../../..", None),
        ] {
            assert_eq!(join(namespace, shown).as_deref(), whole, "{shown:?}");
        }
    }
}
