//! Whether `/proc` is the cheaper source for a single snapshot.
//!
//! Loading the programs takes as long as reading some hundreds of processes from `/proc`. Many snapshots amortise that
//! cost; a single one does so only on a machine with more processes. The rule counts files, because they dominate the
//! cost of reading `/proc`. It holds on all machines on which the times per file and for loading are proportional.

use crate::{
    base::host::{running_processes, running_tasks},
    records::fields::Fields,
};

/// The cost of a single snapshot from `/proc` on this machine now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OneShot {
    /// The number of files of `/proc` to read.
    pub files: u64,
}

impl OneShot {
    /// The number of files of `/proc` that can be read in the CPU time that it takes to load the programs and
    /// to walk once. `fastproc bench attach` measures it for the fields of `ps`.
    pub const FILES: u64 = 900;

    /// Counts the processes and threads that exist now.
    pub fn now(fields: Fields) -> Self {
        let processes = running_processes().unwrap_or(u32::MAX);
        let tasks = running_tasks().unwrap_or(processes);
        Self::from_counts(fields, processes, tasks)
    }

    fn from_counts(fields: Fields, processes: u32, tasks: u32) -> Self {
        let of_io = u64::from(fields.contains(Fields::IO));
        // stat and status; see the source `procfs`.
        let of_process = 2 + of_io + u64::from(fields.contains(Fields::CGROUP));
        let of_task = if fields.contains(Fields::THREADS) {
            2 + of_io
        } else {
            0
        };
        Self {
            files: u64::from(processes) * of_process + u64::from(tasks) * of_task,
        }
    }

    /// Whether reading them is cheaper than loading the programs.
    pub const fn is_cheaper(self) -> bool {
        self.files < Self::FILES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_those_that_the_fields_are_in() {
        let files = |fields| OneShot::from_counts(fields, 100, 300).files;
        assert_eq!(files(Fields::empty()), 200);
        assert_eq!(files(Fields::THREE_FILES), 200);
        assert_eq!(files(Fields::TOP | Fields::IO | Fields::CGROUP), 400);
        assert_eq!(files(Fields::CPU | Fields::THREADS), 200 + 600);
        assert!(OneShot::from_counts(Fields::TOP, 60, 90).is_cheaper());
        assert!(!OneShot::from_counts(Fields::TOP, 4000, 5000).is_cheaper());
        assert!(!OneShot::from_counts(Fields::TOP, u32::MAX, u32::MAX).is_cheaper());
    }
}
