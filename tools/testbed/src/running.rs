//! A child that ends with the test.

use std::{
    fs,
    ops::{Deref, DerefMut},
    process::{Child, Command, Stdio},
};

use crate::{wait_for, wait_until};

/// A child, killed and waited for when this is dropped, also if the test fails.
#[derive(Debug)]
pub struct Running(pub Child);

impl Running {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// If the program cannot be run.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let child = command.spawn();
        Self(child.unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// Starts sleep(1) for this many seconds, and waits until it sleeps.
    ///
    /// # Panics
    ///
    /// If it cannot be run.
    #[track_caller]
    pub fn sleep(seconds: &str) -> Self {
        let mut command = Command::new("sleep");
        let command = command.arg(seconds).stdin(Stdio::null());
        let running = Self::start(command.stdout(Stdio::null()));
        wait_until_asleep(running.id(), "sleep");
        running
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The file `stat` of a process.
fn stat(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default()
}

/// Waits until a process has this name and sleeps, and does not change between two readings.
///
/// # Panics
///
/// If it does not come to that.
#[track_caller]
pub fn wait_until_asleep(pid: u32, name: &str) {
    let sign = format!("({name}) S ");
    wait_until(&format!("{name} to sleep"), || {
        let before = stat(pid);
        std::thread::sleep(std::time::Duration::from_millis(1));
        before.contains(&sign) && stat(pid) == before
    });
}

/// Waits until the state of a process has this letter.
///
/// # Panics
///
/// If it never has.
#[track_caller]
pub fn wait_for_state(pid: u32, letter: char) {
    wait_for(&format!("state {letter} of {pid}"), || {
        let stat = stat(pid);
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.starts_with(letter).then_some(())
    });
}
