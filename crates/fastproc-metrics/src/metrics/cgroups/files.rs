//! Open files of the processes of each cgroup, without its descendants.

use fastproc::{
    cgroups::{self, Ids},
    files::{Files, Holder, Kind, Source},
};

use super::members::Members;

/// Open descriptors, and those of them that are sockets. `None`: of a process they are not known.
pub(super) type Counts = [Option<u64>; 2];

/// Counts them.
#[derive(Debug)]
pub(super) struct OpenFiles {
    /// `None`: they are not counted.
    files: Option<Files>,
    /// By the ids of cgroups. `None`: they could not be read.
    sums: Option<Ids<Counts>>,
}

impl OpenFiles {
    /// Opens the source, that of the kernel's files if cgroups are read from files.
    pub(super) fn new(counts: bool, cgroups: Option<cgroups::Source>) -> Self {
        let by_files = cgroups == Some(cgroups::Source::Files);
        let source = by_files.then_some(Source::Procfs);
        // A service may be part of the same process.
        let opened = counts.then(|| {
            let builder = Files::builder().source(source);
            builder.asks_no_file_system().open_at(None)
        });
        Self {
            files: opened.and_then(Result::ok),
            sums: None,
        }
    }

    /// Forgets what was counted last.
    pub(super) fn clear(&mut self) {
        self.sums = None;
    }

    /// Counts the open files of all processes. Those that are younger than the snapshot of these members may be missing.
    pub(super) fn update(&mut self, members: &Members) {
        let Some(Ok(snapshot)) = self.files.as_mut().map(Files::snapshot) else {
            return;
        };
        let mut sums = Ids::default();
        for holder in snapshot.processes() {
            let listed = || members.cgroup_of(holder.pid(), holder.start_ns());
            if let Some(cgroup) = holder.cgroup_id().or_else(listed) {
                add(sums.entry(cgroup).or_insert(NONE), counts(holder));
            }
        }
        self.sums = Some(sums);
    }

    /// What the processes of a cgroup have open.
    pub(super) fn of(&self, id: u64) -> Counts {
        let sums = self.sums.as_ref();
        sums.map_or([None; 2], |sums| sums.get(&id).copied().unwrap_or(NONE))
    }
}

const NONE: Counts = [Some(0); 2];

fn counts(holder: Holder<'_>) -> Counts {
    let counts = [holder.open(), holder.count(Kind::Socket)];
    counts.map(|count| count.filter(|_| !holder.is_incomplete()).map(u64::from))
}

fn add(sum: &mut Counts, counts: Counts) {
    *sum = std::array::from_fn(|at| Some(sum[at]? + counts[at]?));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_lacks_a_process_is_unknown() {
        let mut sum = NONE;
        add(&mut sum, [Some(5), Some(1)]);
        // Of another user the kernel shows how many there are, and not which.
        add(&mut sum, [Some(7), None]);
        add(&mut sum, [Some(1), Some(1)]);
        assert_eq!(sum, [Some(13), None]);
    }
}
