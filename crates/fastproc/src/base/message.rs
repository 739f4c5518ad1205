//! Messages between processes of this machine: a socket keeps their boundaries, and each may bring one descriptor.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    cmsg_space,
    io::{Errno, retry_on_intr},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};

/// Sends a message without waiting. If there is no room for it, because the other end does not read, the error is
/// `WouldBlock`.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptor = descriptor.as_slice();
    if !descriptor.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptor));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut control, flags))?;
    Ok(())
}

/// Waits for the next message, as far as there is room in `bytes`. Returns its length, which is 0 if the other end is gone,
/// and the descriptor that came with it.
pub fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut parts = [IoSliceMut::new(bytes)];
        match recvmsg(&socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            received => break received?,
        }
    };
    // A descriptor was lost: there was no room for it in the message, or the limit is reached.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let mut descriptors = descriptors.flatten();
    let descriptor = descriptors.next();
    // There may be room for more than one, but only one is ever sent.
    if descriptors.next().is_some() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((received.bytes, descriptor))
}
