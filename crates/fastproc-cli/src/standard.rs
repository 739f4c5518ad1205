//! Standard descriptors that were closed when this program started. Rust opens `/dev/null` in their place before `main`, so
//! that later nothing tells that output is lost.

use std::{
    io::{self, stderr, stdin, stdout},
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use rustix::io::{Errno, FdFlags, fcntl_getfd, fcntl_setfd};

use crate::output::OutputError;

static WERE_CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

extern "C" fn look() {
    for (number, was_closed) in (0..).zip(&WERE_CLOSED) {
        // SAFETY: the descriptor is only asked whether it is open, and this process has opened no other yet.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        was_closed.store(fcntl_getfd(descriptor) == Err(Errno::BADF), Relaxed);
    }
}

// SAFETY: functions in this section are called without arguments before `main`, and this one needs nothing of the runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Fails if nobody can see what is written to standard output.
pub fn output() -> Result<(), OutputError> {
    if WERE_CLOSED[1].load(Relaxed) {
        return Err(io::Error::from(Errno::BADF).into());
    }
    Ok(())
}

/// Makes a program that this one executes find closed what this one found closed.
pub fn close_for_programs() -> io::Result<()> {
    let standard = [&stdin() as &dyn AsFd, &stdout(), &stderr()];
    for (descriptor, was_closed) in standard.into_iter().zip(&WERE_CLOSED) {
        if was_closed.load(Relaxed) {
            fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
        }
    }
    Ok(())
}
