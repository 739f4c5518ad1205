//! Who answers for a process: the user to blame if reading its memory does not end.

use std::{
    fs::File,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
};

use fastproc::Directory;

/// User namespaces are nested no deeper.
const DEEPEST: usize = 33;

const NS_GET_PARENT: libc::Ioctl = 0xb702;
const NS_GET_OWNER_UID: libc::Ioctl = 0xb704;

/// Who answers for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A user, whatever ids its processes take in user namespaces of its own.
    User(u32),
    /// Root, of this process alone.
    Root { pid: u32 },
    /// Nobody that is known, of this process alone.
    Unknown { pid: u32 },
}

impl Owner {
    /// The owner of a process in this process's user namespace, by its real user.
    pub(crate) fn from_real_user(pid: u32, uid: u32) -> Self {
        match uid {
            0 => Self::Root { pid },
            uid => Self::User(uid),
        }
    }

    pub(crate) fn uid(self) -> Option<u32> {
        match self {
            Self::User(uid) => Some(uid),
            Self::Root { .. } => Some(0),
            Self::Unknown { .. } => None,
        }
    }
}

/// The user namespace of this process, by which it finds the owners of others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserNamespace {
    inode: u64,
}

impl UserNamespace {
    pub(crate) fn own() -> Self {
        let namespace = std::fs::metadata("/proc/self/ns/user");
        Self {
            inode: namespace.map_or(0, |file| file.ino()),
        }
    }

    pub(crate) fn has_inode(self, user_ns: u32) -> bool {
        u64::from(user_ns) == self.inode
    }

    /// Finds the owner of a process. `uid`: its real user, if its record tells.
    pub(crate) fn owner(self, directory: &Directory, pid: u32, uid: Option<u32>) -> Owner {
        let namespace = directory.user_namespace().ok();
        let uid = match namespace.and_then(|file| maker(file, self.inode)) {
            Some(Maker::Own) => uid.or_else(|| directory.rights().ok().map(|of| of.real_user())),
            Some(Maker::User(uid)) => Some(uid),
            None => None,
        };
        uid.map_or(Owner::Unknown { pid }, |uid| {
            Owner::from_real_user(pid, uid)
        })
    }
}

/// Who made a user namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    /// It is this process's.
    Own,
    /// Who made the outermost one around it, below this process's.
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
        let own = File::open("/proc/self/ns/user").expect("it is there");
        let home = own.metadata().expect("a file").ino();
        assert_eq!(maker(own, home), Some(Maker::Own));
        if !fastproc_testbed::gate::root() {
            return;
        }
        // Twice, one within the other, by a user that is not root.
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
        let namespace = File::open(path).expect("it lives");
        assert_eq!(maker(namespace, home), Some(Maker::User(4321)));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
}
