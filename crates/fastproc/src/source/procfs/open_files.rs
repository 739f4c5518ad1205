//! Files that stay open between collections: opening and closing them is half of the cost of reading.
//!
//! Each open file holds a page of kernel memory, and a descriptor that the program may need. So both are limited. For
//! processes beyond the limit the files are opened each time.

use rustix::{
    fd::{AsRawFd, OwnedFd},
    process::Resource,
};

/// The most processes whose files stay open. They take 9 MiB of kernel memory.
const MOST: usize = 1024;
/// Kept files have descriptors below the limit divided by this.
const SPARED: u64 = 2;

/// Files of one process. Once the process has exited, reading them fails, even if another process has its id.
#[derive(Debug)]
pub(super) struct ProcessFiles {
    pub(super) pid: u32,
    pub(super) stat: OwnedFd,
    pub(super) status: OwnedFd,
}

/// The files of the last collection. Those of processes that are still listed are kept for the next one.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    /// In the order of pids, like the listing. The next one to be used is last.
    last: Vec<ProcessFiles>,
    now: Vec<ProcessFiles>,
    /// Number of collections begun. A program that collects once keeps no files.
    begun: u32,
    /// Only files whose descriptors are below this number are kept. The kernel gives the lowest free number, so the
    /// higher ones stay free for the rest of the program.
    below: i32,
}

impl OpenFiles {
    /// Call this before reading all processes.
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

    /// Whether the files of one more process may be kept. Those of the last collection come first.
    pub(super) fn has_room(&self) -> bool {
        self.below > 0 && self.now.len() + self.last.len() < MOST
    }

    /// Keeps files for the next collection, if their descriptors are low enough.
    pub(super) fn keep(&mut self, files: ProcessFiles) {
        let highest = files.stat.as_raw_fd().max(files.status.as_raw_fd());
        if highest < self.below {
            self.now.push(files);
        } else {
            // The next ones would have higher numbers.
            self.below = 0;
        }
    }

    /// Closes all files and keeps none until the next collection, because the program has no descriptors left. Returns
    /// whether that freed any.
    pub(super) fn give_up(&mut self) -> bool {
        let any = !(self.last.is_empty() && self.now.is_empty());
        self.last.clear();
        self.now.clear();
        self.below = 0;
        any
    }
}
