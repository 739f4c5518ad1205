//! Children that do nothing.

use std::{
    collections::HashSet,
    process::{Child, Command, Stdio},
};

use crate::wait_until_asleep;

/// Processes that are killed when this is dropped; idle ones if it starts them.
#[derive(Debug)]
pub struct Sleepers(pub Vec<Child>);

impl Sleepers {
    /// Starts so many.
    ///
    /// # Panics
    /// If sleep(1) cannot be run.
    pub fn start(count: usize) -> Self {
        let sleep = || {
            let mut command = Command::new("sleep");
            command.arg("600").stdin(Stdio::null()).spawn()
        };
        let children = (0..count).map(|_| sleep().expect("sleep(1) can be run"));
        Self(children.collect())
    }

    /// Its children, which are no longer killed when this is dropped.
    pub fn into_children(mut self) -> Vec<Child> {
        std::mem::take(&mut self.0)
    }

    /// Their pids.
    pub fn pids(&self) -> HashSet<u32> {
        self.0.iter().map(Child::id).collect()
    }

    /// Waits until each of them sleeps, and does not change between two readings.
    ///
    /// # Panics
    /// If one has ended.
    pub fn wait_until_asleep(&self) {
        for pid in self.pids() {
            wait_until_asleep(pid, "sleep");
        }
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}
