//! Descriptors kept open from one collection to the next: opening and closing files is half of the cost of reading them.
//!
//! Each open file of these keeps a page of the kernel's memory, and each takes one of the descriptors that the program
//! may need for itself. So there is a limit to both; processes past it are read by opening their files.

use rustix::{
    fd::{AsRawFd, OwnedFd},
    process::Resource,
};

/// No more processes than this, whose files take 9 MiB of the kernel's memory.
const MOST: usize = 1024;
/// Of the descriptors that this program may have, the part that is not taken from it.
const SPARED: u64 = 2;

/// Files of one process, bound to it: once it is gone, reading them fails, whoever has its id by then.
#[derive(Debug)]
pub(super) struct ProcessFiles {
    pub(super) pid: u32,
    pub(super) stat: OwnedFd,
    pub(super) status: OwnedFd,
}

/// The files of the last collection, of which those of processes still listed are handed to the next.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    /// In the order of pids, as the listing; the next to be asked for is last.
    last: Vec<ProcessFiles>,
    now: Vec<ProcessFiles>,
    /// Collections begun: a program that collects once need not keep anything.
    begun: u32,
    /// No descriptor is kept whose number is not below this one. The kernel gives the lowest that is free, so those from
    /// here on are left to the rest of the program, however many it has of the others.
    below: i32,
}

impl OpenFiles {
    /// To be called before every process is read.
    pub(super) fn begin(&mut self) {
        self.last.clear();
        self.last.append(&mut self.now);
        self.last.reverse();
        if self.begun > 0 {
            let may_open = rustix::process::getrlimit(Resource::Nofile)
                .current
                .unwrap_or(u64::MAX);
            self.below = i32::try_from(may_open / SPARED).unwrap_or(i32::MAX);
        }
        self.begun = self.begun.saturating_add(1);
    }

    /// The files of `pid`, if they were kept. The pids must come in ascending order.
    pub(super) fn take(&mut self, pid: u32) -> Option<ProcessFiles> {
        while let Some(files) = self.last.pop_if(|files| files.pid <= pid) {
            if files.pid == pid {
                return Some(files);
            }
        }
        None
    }

    /// Whether one process more may be kept. Those kept of the last collection come first.
    pub(super) fn has_room(&self) -> bool {
        self.below > 0 && self.now.len() + self.last.len() < MOST
    }

    /// Keeps files for the next collection, as far as their descriptors are not among those that are spared.
    pub(super) fn keep(&mut self, files: ProcessFiles) {
        let highest = files.stat.as_raw_fd().max(files.status.as_raw_fd());
        if highest < self.below {
            self.now.push(files);
        } else {
            // The next ones would be given numbers as high.
            self.below = 0;
        }
    }

    /// Closes all of them, and keeps none until the next collection: the program has run out of descriptors. Returns
    /// whether that made any free.
    pub(super) fn give_up(&mut self) -> bool {
        let any = !(self.last.is_empty() && self.now.is_empty());
        self.last.clear();
        self.now.clear();
        self.below = 0;
        any
    }
}
