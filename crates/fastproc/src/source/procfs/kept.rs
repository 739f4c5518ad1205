//! Descriptors kept open from one collection to the next: opening and closing files is half of the cost of reading them.
//!
//! Each open file of these keeps a page of the kernel's memory, and each takes one of the descriptors that the program
//! may need for itself. So there is a limit to both; processes past it are read by opening their files.

use rustix::{fd::OwnedFd, process::Resource};

/// No more processes than this, whose files take 9 MiB of the kernel's memory.
const MOST: usize = 1024;
/// Of the descriptors that this program may have, the part that is not taken from it.
const SPARED: u64 = 2;

/// Files of one process, bound to it: once it is gone, reading them fails, whoever has its id by then.
#[derive(Debug)]
pub(super) struct KeptFiles {
    pub(super) pid: u32,
    pub(super) stat: OwnedFd,
    pub(super) status: OwnedFd,
}

impl KeptFiles {
    const COUNT: u64 = 2;
}

/// The files of the last collection, of which those of processes still listed are handed to the next.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// In the order of pids, as the listing; the next to be asked for is last.
    last: Vec<KeptFiles>,
    now: Vec<KeptFiles>,
    /// Collections begun: a program that collects once need not keep anything.
    begun: u32,
    limit: usize,
}

impl Kept {
    /// To be called before every process is read.
    pub(super) fn begin(&mut self) {
        self.last.clear();
        self.last.append(&mut self.now);
        self.last.reverse();
        if self.begun == 1 {
            let may_open = rustix::process::getrlimit(Resource::Nofile)
                .current
                .unwrap_or(u64::MAX);
            self.limit = usize::try_from(may_open / SPARED / KeptFiles::COUNT)
                .unwrap_or(MOST)
                .min(MOST);
        }
        self.begun = self.begun.saturating_add(1);
    }

    /// The files of `pid`, if they were kept. The pids must come in ascending order.
    pub(super) fn take(&mut self, pid: u32) -> Option<KeptFiles> {
        while let Some(files) = self.last.pop_if(|files| files.pid <= pid) {
            if files.pid == pid {
                return Some(files);
            }
        }
        None
    }

    /// Whether there is room for one process more. Those kept of the last collection come first.
    pub(super) fn has_room(&self) -> bool {
        self.now.len() + self.last.len() < self.limit
    }

    /// Keeps files for the next collection.
    pub(super) fn keep(&mut self, files: KeptFiles) {
        self.now.push(files);
    }

    /// Keeps no more than now: the program has run out of descriptors.
    pub(super) fn stop(&mut self) {
        self.limit = self.now.len();
    }
}
