//! The owner of a process: the user to blame if reading its memory blocks.

use std::{
    collections::HashMap,
    fs::File,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    path::Path,
};

use super::{Directories, Directory};
use crate::{base::proc_root, records::record::Credentials, snapshot::process::Process};

/// The kernel does not nest user namespaces deeper.
const DEEPEST: usize = 33;

const NS_GET_PARENT: libc::Ioctl = 0xb702;
const NS_GET_OWNER_UID: libc::Ioctl = 0xb704;

/// The owner of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A user, whatever ids its processes take in user namespaces of its own.
    User(u32),
    /// Root, only for this process: if it blocks, that does not affect root's other processes.
    Root {
        /// The process.
        pid: u32,
    },
    /// Root in another pid namespace, as in a container; for all processes in it, since it can start more of them.
    RootOf {
        /// Inode of the namespace.
        pid_ns: u64,
    },
    /// An unknown owner, for all processes in this user namespace; 0 if that is unknown, too.
    Unknown {
        /// Inode of the namespace.
        user_ns: u64,
    },
}

impl Owner {
    /// The user, if it is known.
    #[must_use]
    pub fn uid(self) -> Option<u32> {
        match self {
            Self::User(uid) => Some(uid),
            Self::Root { .. } | Self::RootOf { .. } => Some(0),
            Self::Unknown { .. } => None,
        }
    }
}

/// Namespaces of this process, by which it finds the owners of other processes.
#[derive(Clone, Copy, Debug)]
pub struct Namespaces {
    user: u64,
    pid: u64,
}

fn inode(path: impl AsRef<Path>) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.ino())
}

impl Namespaces {
    /// The namespaces of this process.
    #[must_use]
    pub fn own() -> Self {
        Self {
            user: inode("/proc/self/ns/user"),
            pid: inode("/proc/self/ns/pid"),
        }
    }

    /// The owner of a process with this real user in the user namespace of this process.
    pub fn owner_by_user(self, pid: u32, uid: u32) -> Owner {
        if uid != 0 {
            return Owner::User(uid);
        }
        match inode(proc_root::path(&format!("/proc/{pid}/ns/pid"))) {
            pid_ns if pid_ns == self.pid => Owner::Root { pid },
            pid_ns => Owner::RootOf { pid_ns },
        }
    }

    /// Finds the owner of a process. `uid`: its real user, if its record has it.
    pub fn owner(
        self,
        directory: &Directory,
        pid: u32,
        uid: Option<u32>,
        makers: &mut Makers,
    ) -> Owner {
        let namespace = directory.user_namespace().ok();
        let found = namespace.and_then(|file| makers.find(file, self.user));
        let Some((user_ns, maker)) = found else {
            return Owner::Unknown { user_ns: 0 };
        };
        let uid = match maker {
            Some(Maker::Own) => uid.or_else(|| directory.rights().ok().map(|of| of.real_user())),
            Some(Maker::User(uid)) => Some(uid),
            None => None,
        };
        uid.map_or(Owner::Unknown { user_ns }, |uid| {
            self.owner_by_user(pid, uid)
        })
    }

    /// Finds the owner by a record, and reads the process only if that does not have it. `makers` belongs to one
    /// snapshot.
    pub fn owner_by_record(
        self,
        process: Process<'_>,
        directories: &Directories,
        makers: &mut Makers,
    ) -> Owner {
        let pid = process.pid();
        let uid = process.users().map(|of| of.uid);
        let namespace = process.credentials().and_then(Credentials::user_ns);
        let is_home = namespace.is_some_and(|inode| u64::from(inode) == self.user);
        let known = namespace.and_then(|inode| self.known_owner(inode, pid, makers));
        match (known, uid) {
            (Some(owner), _) => owner,
            (None, Some(uid)) if is_home => self.owner_by_user(pid, uid),
            (None, _) => match directories.get(pid, process.identity().start_ns) {
                Ok(directory) => self.owner(&directory, pid, uid, makers),
                Err(_) => Owner::Unknown { user_ns: 0 },
            },
        }
    }

    /// Finds the owner without reading the process, if its user namespace differs from this process's and its creator
    /// is known.
    fn known_owner(self, user_ns: u32, pid: u32, makers: &Makers) -> Option<Owner> {
        let user_ns = user_ns.into();
        match makers.0.get(&user_ns)? {
            Some(Maker::Own) => None,
            Some(Maker::User(uid)) => Some(self.owner_by_user(pid, *uid)),
            None => Some(Owner::Unknown { user_ns }),
        }
    }
}

/// The creators of user namespaces, by inode. Keep this only for a short time, because inodes are reused.
#[derive(Debug, Default)]
pub struct Makers(HashMap<u64, Option<Maker>>);

impl Makers {
    /// The inode of a user namespace, and its creator.
    fn find(&mut self, namespace: File, home: u64) -> Option<(u64, Option<Maker>)> {
        let inode = namespace.metadata().ok()?.ino();
        let known = self.0.entry(inode);
        Some((inode, *known.or_insert_with(|| maker(namespace, home))))
    }
}

/// The creator of a user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    /// The namespace is this process's.
    Own,
    /// The creator of the outermost namespace around it below this process's.
    User(u32),
}

fn maker(mut namespace: File, home: u64) -> Option<Maker> {
    if namespace.metadata().ok()?.ino() == home {
        return Some(Maker::Own);
    }
    for _ in 0..DEEPEST {
        // SAFETY: the request takes no argument, and returns a new descriptor or an error.
        let parent = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_PARENT, 0) };
        if parent < 0 {
            return None;
        }
        // SAFETY: the kernel has just made it for this process, and nothing else knows it.
        let parent = File::from(unsafe { OwnedFd::from_raw_fd(parent) });
        if parent.metadata().ok()?.ino() == home {
            let mut uid: libc::uid_t = 0;
            // SAFETY: the request writes a user id.
            let told =
                unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_OWNER_UID, &raw mut uid) };
            return (told == 0).then_some(Maker::User(uid));
        }
        namespace = parent;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_namespace_is_who_made_the_outermost_one() {
        let own = File::open("/proc/self/ns/user").expect("/proc is mounted");
        let home = own.metadata().expect("a file").ino();
        assert_eq!(maker(own, home), Some(Maker::Own));
        fastproc_testbed::needs!(fastproc_testbed::gate::root());
        // Two nested namespaces, by a user other than root.
        let mut child = std::process::Command::new("setpriv")
            .args(["--reuid=4321", "--regid=4321", "--clear-groups"])
            .args(["unshare", "--user", "--map-root-user"])
            .args([
                "unshare",
                "--user",
                "--map-root-user",
                "sh",
                "-c",
                "echo .; read x",
            ])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("it can be started");
        let mut byte = [0];
        let told = child.stdout.as_mut().expect("a pipe");
        std::io::Read::read_exact(told, &mut byte).expect("it is within");
        let path = format!("/proc/{}/ns/user", child.id());
        let namespace = File::open(path).expect("/proc shows the process");
        let again = namespace.try_clone().expect("a descriptor");
        assert_eq!(maker(namespace, home), Some(Maker::User(4321)));
        let mut makers = Makers::default();
        let (inode, _) = makers.find(again, home).expect("the namespace has a maker");
        child.kill().expect("the child is killed");
        child.wait().expect("the child ends");
        let known = Namespaces::own().known_owner(inode as u32, child.id(), &makers);
        assert_eq!(known, Some(Owner::User(4321)), "it is not read again");
    }

    #[test]
    fn root_in_another_pid_namespace_is_one_owner_however_many_processes_it_starts() {
        let home = Namespaces::own();
        let own = std::process::id();
        assert_eq!(home.owner_by_user(own, 0), Owner::Root { pid: own });
        fastproc_testbed::needs!(fastproc_testbed::gate::root());
        let mut unshare = std::process::Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child", "sh", "-c"])
            .arg("sleep infinity & echo .; read x")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("it can be started");
        let told = unshare.stdout.as_mut().expect("a pipe");
        std::io::Read::read_exact(told, &mut [0]).expect("it is within");
        let child_of = |pid: u32| -> u32 {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
            let children = children.expect("/proc shows the process");
            children.trim().parse().expect("it has one child")
        };
        let shell = child_of(unshare.id());
        let owners = [shell, child_of(shell)].map(|pid| home.owner_by_user(pid, 0));
        unshare.kill().expect("the child is killed");
        unshare.wait().expect("the child ends");
        assert!(
            matches!(owners[0], Owner::RootOf { pid_ns: 1.. }),
            "{owners:?}"
        );
        assert_eq!(owners[0], owners[1]);
        assert_ne!(owners[0], Owner::RootOf { pid_ns: home.pid });
    }
}
