//! Closing connections that descriptors may have been sent through.
//!
//! Who closes the last descriptor of a file waits for what that takes: of a TCP socket with `SO_LINGER` and data that nobody
//! acknowledges, for as long as its user has set. A message with such a descriptor that is received or thrown away in the
//! thread that answers would hold up everybody. So it never receives one: from Linux 6.16 on nobody can send it
//! (`SO_PASSRIGHTS`). Before, and through connections that were made before this service listened, such messages stay in their
//! socket, and a thread that ends closes that: the kernel lets nobody wait for a lingering socket who is ending.

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::mpsc::channel,
    thread,
};

use nix::{
    errno::Errno,
    sys::socket::{MsgFlags, Shutdown, recv, shutdown},
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Of Linux 6.16.
const SO_PASSRIGHTS: libc::c_int = 83;

/// Has nobody send descriptors through a socket, or through the connections that are made to it from now on.
pub(crate) fn refuse_descriptors(socket: BorrowedFd<'_>) {
    let no: libc::c_int = 0;
    // SAFETY: the kernel reads an int. Older kernels do not know the option.
    let _ = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw const no).cast(),
            size_of_val(&no) as libc::socklen_t,
        )
    };
}

/// Whether descriptors may be sent through a connection.
pub(crate) fn may_pass_descriptors(socket: BorrowedFd<'_>) -> bool {
    let mut may: libc::c_int = 1;
    let mut len = size_of_val(&may) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to an int, and the number of them to `len`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PASSRIGHTS,
            (&raw mut may).cast(),
            &raw mut len,
        )
    };
    result != 0 || may != 0
}

/// Closes a connection, and waits for nothing.
pub(crate) fn close(socket: OwnedFd) {
    if !may_pass_descriptors(socket.as_fd()) {
        return;
    }
    // Nothing more can be sent to it then.
    let ended = shutdown(socket.as_raw_fd(), Shutdown::Read);
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    let nothing = matches!(
        recv(socket.as_raw_fd(), &mut [0], flags),
        Ok(0) | Err(Errno::EAGAIN)
    );
    if ended.is_ok() && nothing {
        return;
    }
    let closes = move || {
        let (told, when_copied) = channel::<()>();
        let (end, when_closed) = channel::<()>();
        let last = thread::Builder::new().spawn(move || {
            // SAFETY: from here on this thread uses no descriptor.
            let copied = unsafe { unshare_unsafe(UnshareFlags::FILES) };
            drop(told);
            if copied.is_ok() {
                let _ = when_closed.recv();
            }
        });
        if last.is_ok() {
            // Nothing is sent; it has let go of its end when it has a copy of this socket, and closes that when it ends.
            let _ = when_copied.recv();
        }
        drop(socket);
        drop(end);
    };
    // Where no thread can be started, what it would have closed is closed here.
    let _ = thread::Builder::new().name("closing".into()).spawn(closes);
}
