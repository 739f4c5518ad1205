//! Messages from readers.

use std::{
    io::IoSliceMut,
    os::fd::{AsRawFd, OwnedFd},
};

use fastproc::source::service::wire::{self, Request};
use nix::{
    errno::Errno,
    sys::socket::{ControlMessageOwned, MsgFlags, UnixCredentials, recvmsg},
};

use crate::peer::Sender;

/// The words of a message, and its sender.
pub(crate) type Message = (Vec<u64>, Option<Sender>);

/// Reads a message. `None`: the reader has closed the connection.
pub(crate) fn read(socket: &OwnedFd) -> Result<Option<Message>, Errno> {
    let mut bytes = [0; Request::WORDS * 8];
    // No room for descriptors: `brings_descriptors` has checked that there are none.
    let mut control = nix::cmsg_space!(UnixCredentials);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let len = message.bytes;
    let mut sender = None;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmCredentials(credentials) = control {
            sender = Some(Sender {
                pid: credentials.pid(),
                uid: credentials.uid(),
                gid: credentials.gid(),
            });
        }
    }
    if len == 0 {
        return Ok(None);
    }
    Ok(Some((wire::from_bytes(&bytes[..len]).collect(), sender)))
}

/// Whether the next message brings descriptors. It is not taken from the socket.
pub(crate) fn brings_descriptors(socket: &OwnedFd) -> bool {
    let mut bytes = [0; 1];
    let mut control = nix::cmsg_space!(UnixCredentials);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags);
    // There is no room for them behind the credentials.
    message.is_ok_and(|message| message.flags.contains(MsgFlags::MSG_CTRUNC))
}

/// Whether the reader has not taken the last answer.
pub(crate) fn unread(socket: &OwnedFd) -> bool {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request writes an int.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    result != 0 || bytes > 0
}
