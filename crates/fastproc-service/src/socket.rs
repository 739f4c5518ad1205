//! The socket that readers connect to.

mod place;

use std::{
    env, fs, io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::fs::FileTypeExt,
    },
    path::{Path, PathBuf},
};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind as bind_to, connect, getsockopt,
    listen, setsockopt, socket,
    sockopt::{AcceptConn, PassCred, SockType as SocketType},
};
use rustix::{
    fs::Mode,
    io::{FdFlags, fcntl_setfd},
};

use crate::closing;

/// The socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another service listens there.
    #[error("another service listens at {}", .0.display())]
    InUse(PathBuf),
    /// The path is not a socket.
    #[error("cannot listen at {}: something that is not a socket is there; move it, or name another path", .0.display())]
    NotASocket(PathBuf),
    /// Its folder does not exist.
    #[error("there is no folder {} for the socket; create it, or name another path", .0.display())]
    NoFolder(PathBuf),
    /// Another user could replace what root makes there.
    #[error(
        "cannot listen in {}: {why} and could replace the socket; use a folder that only root can change, such as one in /run",
        folder.display()
    )]
    NotRoots {
        /// The folder of the socket, or one above it.
        folder: PathBuf,
        /// The reason.
        why: String,
    },
    /// It cannot be created.
    #[error("cannot listen at {}", path.display())]
    Bind {
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// There is no such group.
    #[error("there is no group {0:?}; name an existing group")]
    NoGroup(String),
    /// The passed descriptor is not a listening socket of this type.
    #[error("the socket that systemd passed is not a listening socket of type SOCK_SEQPACKET")]
    Passed,
}

/// Listens at `path`, for every user: what a reader sees is decided when it connects. Replaces a socket that is left
/// over from a service that has exited. Creates the folder of the socket only if it is directly in `/run`. As root,
/// refuses a folder in which another user could replace the socket.
pub fn bind(path: &Path) -> Result<OwnedFd, SocketError> {
    bind_for(path, None)
}

/// Listens for root and the members of a group, given by name or number.
pub fn bind_for(path: &Path, group: Option<&str>) -> Result<OwnedFd, SocketError> {
    let group = group.map(group_id).transpose()?;
    let failed = |source: io::Error| SocketError::Bind {
        path: path.to_owned(),
        source,
    };
    let new = || {
        socket(
            AddressFamily::Unix,
            SockType::SeqPacket,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            None,
        )
        .map_err(|error| failed(error.into()))
    };
    let name = path
        .file_name()
        .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    let path = &place::of_root(&place::folder(path)?)?.join(name);
    let address = UnixAddr::new(path).map_err(|error| failed(error.into()))?;
    if let Ok(found) = fs::symlink_metadata(path) {
        if !found.file_type().is_socket() {
            return Err(SocketError::NotASocket(path.to_owned()));
        }
        match connect(new()?.as_raw_fd(), &address) {
            Ok(()) | Err(nix::errno::Errno::EAGAIN) => {
                return Err(SocketError::InUse(path.to_owned()));
            }
            Err(nix::errno::Errno::ECONNREFUSED) => fs::remove_file(path).map_err(failed)?,
            Err(error) => return Err(failed(error.into())),
        }
    }
    let listener = new()?;
    let others = group.map_or(Mode::empty(), |_| Mode::RWXO);
    let bound = place::with_umask(Mode::XUSR | Mode::XGRP | Mode::XOTH | others, || {
        Ok(bind_to(listener.as_raw_fd(), &address)?)
    });
    bound.map_err(failed)?;
    // A client cannot connect before the socket listens.
    if let Some(group) = group {
        place::give_to(path, group).map_err(failed)?;
    }
    prepare(&listener).map_err(failed)?;
    listen(&listener, Backlog::MAXCONN).map_err(|error| failed(error.into()))?;
    Ok(listener)
}

fn group_id(group: &str) -> Result<u32, SocketError> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let found = nix::unistd::Group::from_name(group).ok().flatten();
    let found = found.map(|found| found.gid.as_raw());
    found.ok_or_else(|| SocketError::NoGroup(group.to_owned()))
}

/// Makes messages carry their senders from the first one on, and refuses descriptors. Connections inherit this from the
/// listening socket.
fn prepare(listener: &OwnedFd) -> io::Result<()> {
    setsockopt(listener, PassCred, &true)?;
    closing::refuse_descriptors(listener.as_fd());
    Ok(())
}

/// The socket that systemd listens at for this process (`sd_listen_fds(3)`). `None`: systemd passed none.
pub fn passed_by_systemd() -> Result<Option<OwnedFd>, SocketError> {
    const FIRST: RawFd = 3;
    let number = |name: &str| env::var(name).ok()?.parse::<u32>().ok();
    if number("LISTEN_PID") != Some(std::process::id()) || number("LISTEN_FDS").unwrap_or(0) == 0 {
        return Ok(None);
    }
    // SAFETY: systemd has opened it for this process and says so; it is only inspected.
    let passed = unsafe { BorrowedFd::borrow_raw(FIRST) };
    let listens = getsockopt(&passed, AcceptConn).unwrap_or(false)
        && getsockopt(&passed, SocketType) == Ok(SockType::SeqPacket);
    if !listens {
        return Err(SocketError::Passed);
    }
    // SAFETY: it exists, as the calls above have shown, and nothing else in this process knows it.
    let listener = unsafe { OwnedFd::from_raw_fd(FIRST) };
    let ready = fcntl_setfd(&listener, FdFlags::CLOEXEC)
        .map_err(io::Error::from)
        .and_then(|()| Ok(rustix::io::ioctl_fionbio(&listener, true)?))
        .and_then(|()| prepare(&listener));
    ready.map_err(|_| SocketError::Passed)?;
    Ok(Some(listener))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_left_over_socket_is_replaced_and_nothing_else() {
        let folder = fastproc_testbed::Folder::new("bind");
        let path = folder.join("socket");
        fs::write(&path, "precious").expect("it can be written");
        assert!(matches!(bind(&path), Err(SocketError::NotASocket(_))));
        assert_eq!(fs::read(&path).expect("the file is read"), b"precious");
        fs::remove_file(&path).expect("the file is removed");
        drop(bind(&path).expect("there is nothing"));
        let _listener = bind(&path).expect("nobody listens any more");
        assert!(matches!(bind(&path), Err(SocketError::InUse(_))));
        fs::remove_file(&path).expect("the file is removed");
    }

    #[test]
    fn no_folder_is_created_outside_run() {
        let folder = fastproc_testbed::Folder::new("no-folder");
        let missing = folder.join("missing");
        let refused = bind(&missing.join("socket"));
        assert!(matches!(refused, Err(SocketError::NoFolder(named)) if named == missing));
        assert!(!missing.exists(), "it was created");
    }

    #[test]
    fn a_group_alone_may_connect() {
        use std::os::unix::fs::MetadataExt;
        let own = rustix::process::getegid().as_raw().to_string();
        let path = env::temp_dir().join(format!("fastproc-test-group-{}", std::process::id()));
        for (group, mode) in [(None, 0o666), (Some(own.as_str()), 0o660)] {
            let _listener = bind_for(&path, group).expect("nobody listens there");
            let made = fs::metadata(&path).expect("the path exists");
            assert_eq!(made.mode() & 0o777, mode);
            fs::remove_file(&path).expect("the file is removed");
        }
        let none = bind_for(&path, Some("no such group"));
        assert!(matches!(none, Err(SocketError::NoGroup(_))));
        assert!(!path.exists(), "nothing was made");
    }
}
