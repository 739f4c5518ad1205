//! One lock for the whole machine, so that tests do not disturb each other.

use std::{
    cell::Cell,
    env,
    fs::{File, OpenOptions, Permissions},
    marker::PhantomData,
    os::unix::fs::PermissionsExt,
};

use rustix::fs::{FlockOperation, flock};

/// The file that is locked, in the folder for temporary files. Scripts lock it with flock(1).
pub const LOCK_FILE: &str = "fastproc-tests.lock";

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static HELD: Cell<Option<File>> = const { Cell::new(None) };
}

/// Proof that this thread holds the lock of the machine, until it is dropped.
#[must_use = "the lock is released when this is dropped"]
#[derive(Debug)]
pub struct Alone {
    // The lock belongs to the thread that took it.
    _not_send: PhantomData<*const ()>,
}

/// Waits until no other test holds the lock, and holds it.
///
/// Take it before you start more than 200 processes, load all CPUs, use a real-time policy, fill memory, or measure.
/// Also take it in a test that such neighbours would disturb. A thread may take it more than once. Start clocks after
/// this call: the wait may be long.
///
/// # Panics
///
/// If the lock file cannot be opened.
pub fn alone() -> Alone {
    if DEPTH.get() == 0 {
        let file = open();
        // A signal may interrupt the wait.
        while let Err(error) = flock(&file, FlockOperation::LockExclusive) {
            assert!(error == rustix::io::Errno::INTR, "{LOCK_FILE}: {error}");
        }
        HELD.set(Some(file));
    }
    DEPTH.set(DEPTH.get() + 1);
    Alone {
        _not_send: PhantomData,
    }
}

/// Closes the copy of the lock in a forked child, so that the lock ends with the process that took it, however that
/// ends.
pub fn leave_lock_to_parent() {
    drop(HELD.take());
}

/// Opens the file for reading, so that every user can lock it.
fn open() -> File {
    let path = env::temp_dir().join(LOCK_FILE);
    File::open(&path)
        .or_else(|_| {
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            file.set_permissions(Permissions::from_mode(0o644))?;
            File::open(&path)
        })
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Drop for Alone {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if DEPTH.get() == 0 {
            // A child that was forked meanwhile has the descriptor too, so closing it would not be enough.
            if let Some(file) = HELD.take() {
                let _ = flock(&file, FlockOperation::Unlock);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::alone;
    use std::{sync::mpsc, thread};

    #[test]
    fn a_thread_may_take_it_twice_and_another_thread_waits() {
        let outer = alone();
        let inner = alone();
        let (tell, told) = mpsc::channel();
        let other = thread::spawn(move || {
            let _alone = alone();
            tell.send(()).expect("the test waits");
        });
        drop(inner);
        assert!(told.try_recv().is_err(), "the lock was released too early");
        drop(outer);
        told.recv().expect("the other thread gets the lock");
        other.join().expect("the thread does not panic");
    }
}
