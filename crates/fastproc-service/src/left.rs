//! Who is left to the readers, because reading memory of its processes has taken too long.

use std::{
    collections::HashMap,
    fs::File,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
    time::{Duration, Instant},
};

use fastproc::{Directories, Process};

use crate::reading::{Item, Reading};

/// For so long after the kernel has answered at last.
const LEFT_FOR: Duration = Duration::from_secs(60);
/// Readings that still wait. With more, what is not root's is not read.
const MOST_STUCK: usize = 32;
/// User namespaces are nested no deeper.
const DEEPEST: usize = 33;

const NS_GET_PARENT: libc::Ioctl = 0xb702;
const NS_GET_OWNER_UID: libc::Ioctl = 0xb704;

/// A user, whatever ids its processes take in user namespaces of its own; or a process of root, or one that is not known well
/// enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Who {
    User(u32),
    Process(u32),
}

/// All who are.
#[derive(Debug)]
pub(crate) struct Left {
    /// Inode number of this process's user namespace.
    home: u64,
    until: HashMap<Who, Instant>,
    stuck: Vec<(Reading, Who)>,
}

impl Left {
    pub(crate) fn new() -> Self {
        let home = std::fs::metadata("/proc/self/ns/user");
        Self {
            home: home.map_or(0, |file| file.ino()),
            until: HashMap::new(),
            stuck: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.until.len()
    }

    /// Forgets those whose time is over. Who still holds up a reading stays.
    pub(crate) fn settle(&mut self, now: Instant) {
        self.stuck.retain(|(reading, who)| {
            self.until.insert(*who, now + LEFT_FOR);
            !reading.is_over()
        });
        self.until.retain(|_, until| *until > now);
    }

    /// This reading stands at this process. Returns the user that it belongs to, if that is not root.
    pub(crate) fn add(
        &mut self,
        item: &Item,
        reading: Reading,
        directories: &Directories,
    ) -> Option<u32> {
        let who = self.who(item.pid, item.start_ns, directories, None);
        self.until.insert(who, Instant::now() + LEFT_FOR);
        if !reading.is_over() {
            self.stuck.push((reading, who));
        }
        match who {
            Who::User(uid) => Some(uid),
            Who::Process(_) => None,
        }
    }

    /// Whether this process's texts are left to the readers.
    pub(crate) fn has(&self, process: Process<'_>, directories: &Directories) -> bool {
        if self.until.is_empty() {
            return false;
        }
        let uid = process.users().map(|of| of.uid);
        let too_many = self.stuck.len() >= MOST_STUCK;
        let namespace = process.credentials().map(|of| u64::from(of.user_ns));
        let who = match (uid, namespace) {
            (Some(uid), Some(namespace)) if namespace == self.home => of_user(process.pid(), uid),
            _ => {
                let start_ns = process.identity().start_ns;
                self.who(process.pid(), start_ns, directories, uid)
            }
        };
        self.until.contains_key(&who) || (too_many && matches!(who, Who::User(_)))
    }

    /// `uid`: its real user, if its record tells.
    fn who(&self, pid: u32, start_ns: u64, directories: &Directories, uid: Option<u32>) -> Who {
        let Ok(directory) = directories.get(pid, start_ns) else {
            return Who::Process(pid);
        };
        let namespace = directory.user_namespace();
        let owner = namespace.ok().and_then(|file| owner(file, self.home));
        let uid = match owner {
            Some(Owner::Home) => uid.or_else(|| directory.rights().ok().map(|of| of.real_user())),
            Some(Owner::User(uid)) => Some(uid),
            None => None,
        };
        uid.map_or(Who::Process(pid), |uid| of_user(pid, uid))
    }
}

fn of_user(pid: u32, uid: u32) -> Who {
    match uid {
        0 => Who::Process(pid),
        uid => Who::User(uid),
    }
}

/// Whose a user namespace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// It is this process's.
    Home,
    /// Of who made the outermost one around it, below this process's.
    User(u32),
}

fn owner(mut namespace: File, home: u64) -> Option<Owner> {
    if namespace.metadata().ok()?.ino() == home {
        return Some(Owner::Home);
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
            return (told == 0).then_some(Owner::User(uid));
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
        assert_eq!(owner(own, home), Some(Owner::Home));
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
        assert_eq!(owner(namespace, home), Some(Owner::User(4321)));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
}
