//! Whether who looks once had better read `/proc`.
//!
//! Programs that walk are loaded in the time in which some hundreds of processes can be read from `/proc`. Who takes many
//! snapshots has that back soon, who takes one only where there are more processes. The rule counts files, for that is what
//! reading `/proc` costs: it holds where the time for a file and the time for loading grow and shrink together, as they do
//! from one machine to another.

use std::path::Path;

use crate::{
    base::host::{running_processes, running_tasks},
    records::fields::Fields,
};

/// What one look would read of `/proc` on this machine now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OneShot {
    /// Files of `/proc` that would be read.
    pub files: u64,
}

impl OneShot {
    /// So many files of `/proc` are read in the CPU time that it takes to load the programs that walk, and to walk: as `fastproc
    /// bench attach` measures it, for the fields of `ps`.
    pub const FILES: u64 = 900;

    /// Counts what there is now.
    pub fn now(fields: Fields, proc_root: &Path) -> Self {
        let processes = running_processes(proc_root).unwrap_or(u32::MAX);
        let tasks = running_tasks(proc_root).unwrap_or(processes);
        Self::of(fields, processes, tasks)
    }

    fn of(fields: Fields, processes: u32, tasks: u32) -> Self {
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

    /// Whether that is less than to load programs.
    pub const fn is_cheaper(self) -> bool {
        self.files < Self::FILES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_those_that_the_fields_are_in() {
        let files = |fields| OneShot::of(fields, 100, 300).files;
        assert_eq!(files(Fields::empty()), 200);
        assert_eq!(files(Fields::THREE_FILES), 200);
        assert_eq!(files(Fields::TOP | Fields::IO | Fields::CGROUP), 400);
        assert_eq!(files(Fields::CPU | Fields::THREADS), 200 + 600);
        assert!(OneShot::of(Fields::TOP, 60, 90).is_cheaper());
        assert!(!OneShot::of(Fields::TOP, 4000, 5000).is_cheaper());
        assert!(!OneShot::of(Fields::TOP, u32::MAX, u32::MAX).is_cheaper());
    }
}
