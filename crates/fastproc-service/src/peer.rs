//! Identifies the process that has connected, and decides whether the kernel would show it the same `/proc` as this
//! one.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::fs::MetadataExt,
    },
};

use fastproc::{
    access::Reader,
    parse_rights,
    source::service::wire::{Op, Status},
};
use nix::{
    errno::Errno,
    sys::socket::{
        MsgFlags, UnixCredentials, getsockopt, recv,
        sockopt::{PeerCredentials, PeerPidfd},
    },
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{AtFlags, CWD, StatxFlags, makedev, statx},
    process::{Pid, PidfdFlags, pidfd_open},
};

use crate::view::View;

const CAP_DAC_OVERRIDE: u64 = 1 << 1;
const CAP_DAC_READ_SEARCH: u64 = 1 << 2;
const CAP_SYS_PTRACE: u64 = 1 << 19;

/// A namespace that decides what `/proc` shows: its name in `/proc/PID/ns`, and the number of the ioctl(2) by which a pidfd
/// gives it (`PIDFD_GET_*_NAMESPACE`, Linux 6.11).
const NAMESPACES: [(&str, libc::Ioctl); 4] = [
    ("mnt", 0xff03),
    ("pid", 0xff05),
    ("time", 0xff07),
    ("user", 0xff09),
];

/// The namespace that decides which paths cgroups have.
const CGROUP_NAMESPACE: (&str, libc::Ioctl) = ("cgroup", 0xff01);

/// A place in a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    device: u64,
    inode: u64,
}

impl Place {
    fn from_metadata(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Where a path leads. The file system is not asked, since one in user space might never answer.
    fn at(path: &str) -> io::Result<Self> {
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let status = statx(CWD, path, flags, StatxFlags::INO)?;
        Ok(Self {
            device: makedev(status.stx_dev_major, status.stx_dev_minor),
            inode: status.stx_ino,
        })
    }
}

/// The namespaces and root directory of this process.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    /// As in [`NAMESPACES`]; `None` for those that this kernel lacks.
    namespaces: [Option<Place>; 4],
    cgroup_ns: Option<Place>,
    root: Place,
}

impl Home {
    pub(crate) fn read() -> io::Result<Self> {
        let namespace = |(name, _)| Place::at(&format!("/proc/self/ns/{name}")).ok();
        Ok(Self {
            namespaces: NAMESPACES.map(namespace),
            cgroup_ns: namespace(CGROUP_NAMESPACE),
            root: Place::at("/")?,
        })
    }

    /// Inode number of the user namespace; 0 on a kernel without.
    pub(crate) fn user_ns(&self) -> u32 {
        self.namespaces[3].map_or(0, |place| place.inode as u32)
    }
}

/// The sender of a message, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    pub(crate) pid: i32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// A process that has connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) sender: Sender,
    pub(crate) view: View,
    /// Whether cgroups have the same paths for it.
    pub(crate) shares_cgroup_ns: bool,
}

/// What is needed to identify the process that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerQuery<'a> {
    pub(crate) socket: &'a OwnedFd,
    pub(crate) sender: Option<Sender>,
    pub(crate) op: Op,
    pub(crate) home: &'a Home,
    /// Whether `/proc` hides processes.
    pub(crate) hides: bool,
    /// Whether to ask the kernel for the process that has connected.
    pub(crate) peer_pidfd: bool,
}

/// What is known of the process that has connected.
///
/// From Linux 6.5 on the kernel names the process (`SO_PEERPIDFD`). Older kernels only give its pid at connect(2)
/// (`SO_PEERCRED`), which may be another process's by now: the process that connected can pass the socket on, exit, and
/// have processes started until the pid is used again. So there the process that *asks* is identified:
///
/// 1. When the first request arrives, the service takes a pidfd of the process that has the pid now, and then checks
///    that no other request waits. Later requests were sent later: the kernel takes the sender's pid from a task that
///    stays in sendmsg(2) until the message is in the queue.
/// 2. If the kernel says (`SCM_CREDENTIALS`) that a process of this pid sent a later request, then the process of the
///    pidfd sent it, provided that this has not exited when the request is here: until then no other process can have
///    its pid.
/// 3. Then the service reads the process's ids, namespaces, root directory and confinement, and after that checks that
///    it has not exited. All ids must be those at connect(2).
///
/// So whichever process connected, the one whose rights count has itself requested what it receives. It can pass that
/// on, as with any connection. Naming another process as the sender requires `CAP_SYS_ADMIN` over the pid namespace; a
/// process that has it in a namespace of its own can name only processes of that namespace, which are not served. The
/// first request proves nothing. A *hello* is answered nevertheless, since that reveals nothing about processes; any
/// other request must be sent again. Root is not served: it has other ways, and nothing here should depend on
/// capabilities.
#[derive(Debug, Default)]
pub(crate) enum Known {
    /// No request has arrived yet.
    #[default]
    Nothing,
    /// The process that had the pid when the first request was here, and must send the next.
    Pinned(OwnedFd),
    Decided(Result<Peer, Status>),
}

impl Known {
    pub(crate) fn is_decided(&self) -> bool {
        matches!(self, Self::Decided(_))
    }

    /// Identifies the process that asks, if it is certain what the kernel would show it.
    pub(crate) fn identify(&mut self, asked: PeerQuery<'_>) -> Result<Peer, Status> {
        if let Self::Decided(known) = self {
            return *known;
        }
        let credentials = getsockopt(asked.socket, PeerCredentials).map_err(|_| Status::NoPeer)?;
        if credentials.pid() <= 0 {
            *self = Self::Decided(Err(Status::Namespace));
            return Err(Status::Namespace);
        }
        let named = Some(asked.socket).filter(|_| asked.peer_pidfd);
        if let Some(Ok(pidfd)) = named.map(|socket| getsockopt(socket, PeerPidfd)) {
            let peer = identify(&pidfd, credentials, asked);
            *self = Self::Decided(peer);
            return peer;
        }
        let Self::Pinned(pidfd) = self else {
            return self.pin(credentials, asked);
        };
        if asked.sender.is_none_or(|of| of.pid != credentials.pid()) {
            // This decides nothing: the process of this pid has not asked.
            return Err(Status::NotYours);
        }
        let peer = identify(pidfd, credentials, asked);
        *self = Self::Decided(peer);
        peer
    }

    /// Pins the process that has the pid of the one that connected.
    fn pin(&mut self, credentials: UnixCredentials, asked: PeerQuery<'_>) -> Result<Peer, Status> {
        let pinned = if credentials.uid() == 0 {
            Err(Status::NoPeer)
        } else {
            pin(credentials.pid(), asked.socket)
        };
        let identified = pinned.and_then(|pidfd| {
            let peer = identify(&pidfd, credentials, asked)?;
            Ok((pidfd, peer))
        });
        match identified {
            Ok((pidfd, peer)) => {
                *self = Self::Pinned(pidfd);
                match asked.op {
                    Op::Hello => Ok(peer),
                    _ => Err(Status::NoPeer),
                }
            }
            Err(status) => {
                *self = Self::Decided(Err(status));
                Err(status)
            }
        }
    }
}

/// Opens the process of this pid. Fails if another request waits already.
fn pin(pid: i32, socket: &OwnedFd) -> Result<OwnedFd, Status> {
    let pid = Pid::from_raw(pid).ok_or(Status::NoPeer)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|_| Status::NoPeer)?;
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    match recv(socket.as_raw_fd(), &mut [0], flags) {
        Err(Errno::EAGAIN) => Ok(pidfd),
        _ => Err(Status::NoPeer),
    }
}

/// Finds out what the connected process is. Fails if it is not certain what the kernel would show it.
fn identify(
    pidfd: &OwnedFd,
    credentials: UnixCredentials,
    asked: PeerQuery<'_>,
) -> Result<Peer, Status> {
    let PeerQuery {
        socket,
        home,
        hides,
        ..
    } = asked;
    let pid = credentials.pid();
    lives_here(pidfd, pid, home)?;
    let shares_cgroup_ns = home
        .cgroup_ns
        .is_some_and(|own| namespace_of(pidfd, pid, CGROUP_NAMESPACE).is_ok_and(|of| of == own));
    let status = fs::read(format!("/proc/{pid}/status")).map_err(|_| Status::Credentials)?;
    let (users, rights) = parse_rights(&status).ok_or(Status::Credentials)?;
    let label = match security_label(socket) {
        Label::Free => process_label(pid),
        Label::Confined => Label::Confined,
    };
    // What was read by pid belongs to this process only if it has not exited.
    if has_ended(pidfd) {
        return Err(Status::NoPeer);
    }
    let (uid, gid) = (credentials.uid(), credentials.gid());
    // Its present credentials grant nothing, for it may have executed a program with more rights since. They must be
    // the plain ones of that user.
    let uids = [users.uid, users.euid, users.suid, users.fsuid];
    let gids = [users.gid, users.egid, users.sgid, users.fsgid];
    if uids != [uid; 4] || gids != [gid; 4] {
        return Err(Status::Credentials);
    }
    let view = if uid == 0 {
        // To trace every process, and to read files of other users, such as the counters of I/O.
        let traces = rights.cap_effective & CAP_SYS_PTRACE != 0;
        let reads = rights.cap_effective & (CAP_DAC_OVERRIDE | CAP_DAC_READ_SEARCH) != 0;
        if !traces || !reads || label == Label::Confined {
            return Err(Status::Credentials);
        }
        View::All
    } else {
        if rights.cap_effective != 0 {
            return Err(Status::Credentials);
        }
        if hides {
            return Err(Status::HidePid);
        }
        View::Of(Reader {
            pid: 0,
            fsuid: uid,
            fsgid: gid,
            cap_effective: 0,
            user_ns: home.user_ns(),
            // Landlock requires no_new_privs of unprivileged users, and is visible nowhere else.
            confined: label == Label::Confined || rights.no_new_privs(),
        })
    };
    Ok(Peer {
        sender: Sender { pid, uid, gid },
        view,
        shares_cgroup_ns,
    })
}

/// Whether the process is in the namespaces and the root directory of this one.
fn lives_here(pidfd: &OwnedFd, pid: i32, home: &Home) -> Result<(), Status> {
    for (which, own) in NAMESPACES.into_iter().zip(home.namespaces) {
        let Some(own) = own else { continue };
        let theirs = namespace_of(pidfd, pid, which).map_err(|_| Status::Namespace)?;
        if theirs != own {
            return Err(Status::Namespace);
        }
    }
    // Without a trailing slash, the directory itself is not visited.
    match Place::at(&format!("/proc/{pid}/root")) {
        Ok(root) if root == home.root => Ok(()),
        _ => Err(Status::Namespace),
    }
}

/// A namespace of a process. The caller checks afterwards that the process has not exited.
fn namespace_of(
    pidfd: &OwnedFd,
    pid: i32,
    (name, ioctl): (&str, libc::Ioctl),
) -> io::Result<Place> {
    match namespace(pidfd, ioctl) {
        // Before Linux 6.11.
        Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => {
            Place::at(&format!("/proc/{pid}/ns/{name}"))
        }
        found => found,
    }
}

fn namespace(pidfd: &OwnedFd, ioctl: libc::Ioctl) -> io::Result<Place> {
    // SAFETY: the request takes no argument, and returns a new descriptor or an error.
    let fd = unsafe { libc::ioctl(pidfd.as_raw_fd(), ioctl, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for this process, and nothing else knows it.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(Place::from_metadata(&file.metadata()?))
}

fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(pidfd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // An error counts as exited.
    poll(&mut polled, Some(&now)) != Ok(0)
}

/// The label that a security module with rules of its own reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Free,
    Confined,
}

fn security_label(socket: &OwnedFd) -> Label {
    let mut label = [0_u8; 256];
    let mut len = label.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `label`, and the number of them to `len`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERSEC,
            label.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        // No security module labels sockets.
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOPROTOOPT) => Label::Free,
            _ => Label::Confined,
        };
    }
    parse_label(label.get(..len as usize).unwrap_or_default())
}

/// The label of a process. `AppArmor` labels no sockets before Linux 6.17, but confines processes.
fn process_label(pid: i32) -> Label {
    let confines = |file: &str| match fs::read(format!("/proc/{pid}/attr/{file}")) {
        Ok(label) => parse_label(&label) == Label::Confined,
        // There is no such module, or none that has labels.
        Err(error) => !matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)),
    };
    if ["current", "apparmor/current"].into_iter().any(confines) {
        Label::Confined
    } else {
        Label::Free
    }
}

/// `AppArmor` says `unconfined`, `SELinux` a user, a role, a type and a level.
fn parse_label(label: &[u8]) -> Label {
    let end = label.iter().position(|&byte| byte == 0);
    let label = label[..end.unwrap_or(label.len())].trim_ascii();
    let free = label.is_empty()
        || label == b"unconfined"
        || label.split(|&byte| byte == b':').nth(2) == Some(b"unconfined_t");
    if free { Label::Free } else { Label::Confined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_confine_nothing_are_known() {
        for free in [
            &b"unconfined"[..],
            b"unconfined\0",
            b"",
            b"unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\0",
        ] {
            assert_eq!(parse_label(free), Label::Free, "{}", free.escape_ascii());
        }
        for confined in [
            &b"docker-default (enforce)"[..],
            b"system_u:system_r:httpd_t:s0",
            b"_",
        ] {
            assert_eq!(parse_label(confined), Label::Confined);
        }
    }

    #[test]
    fn this_process_is_labelled_as_its_file_says() {
        let pid = std::process::id() as i32;
        let label = fs::read("/proc/self/attr/current").unwrap_or_default();
        assert_eq!(process_label(pid), parse_label(&label));
        // An exited process: the caller checks its pidfd after this.
        assert_eq!(process_label(i32::MAX), Label::Free);
    }
}
