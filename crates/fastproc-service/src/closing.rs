//! Closing connections that descriptors may have been sent through.
//!
//! Closing the last descriptor of a file can block: for a TCP socket with `SO_LINGER` and unacknowledged data, for as
//! long as its user has set. If the thread that answers received or discarded a message with this descriptor, all
//! readers would wait. So it never receives one. From Linux 6.16 on nobody can send one (`SO_PASSRIGHTS`). Before that,
//! and through connections that were made before this service listened, a message with a descriptor stays in its socket, and an
//! exiting thread closes the socket: the kernel does not let an exiting thread wait for a lingering socket.

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

/// Since Linux 6.16.
const SO_PASSRIGHTS: libc::c_int = 83;

/// Forbids to send descriptors through a socket, and through connections that are made to it from now on.
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

/// Closes a connection without waiting.
pub(crate) fn close(socket: OwnedFd) {
    if !may_pass_descriptors(socket.as_fd()) {
        return;
    }
    // Nothing more can be sent to it after this.
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
            // Nothing is sent. The channel closes when the thread has copied the descriptors; the thread closes its
            // copy when it exits.
            let _ = when_copied.recv();
        }
        drop(socket);
        drop(end);
    };
    // If no thread can be started, dropping the closure closes the socket here.
    let _ = thread::Builder::new().name("closing".into()).spawn(closes);
}
