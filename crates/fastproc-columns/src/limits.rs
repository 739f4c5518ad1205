//! The limits that apply to processes through their cgroups, and how far they are used.

use std::collections::HashMap;

use fastproc::cgroups::{self, LimitReader, record::UNLIMITED};

/// A limit, if it is set.
pub(crate) fn finite(limit: Option<u64>) -> Option<u64> {
    limit.filter(|&limit| limit != UNLIMITED)
}

/// The share of a limit that is in use. A limit of zero counts as fully used.
pub(crate) fn share(used: Option<u64>, limit: Option<u64>) -> Option<f64> {
    match limit? {
        0 => Some(1.0),
        limit => Some(used? as f64 / limit as f64),
    }
}

/// The limits of the processes of a cgroup: its own and those of the cgroups above it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Limit {
    /// The smallest limit of memory, in bytes.
    pub(crate) memory: Option<u64>,
    /// The largest share of a memory limit that is in use.
    pub(crate) memory_used: Option<f64>,
    /// The smallest limit of CPU time, in CPUs.
    pub(crate) cpu: Option<f64>,
    /// The smallest limit of processes and threads.
    pub(crate) tasks: Option<u64>,
    /// The largest share of a limit of processes and threads that is in use.
    pub(crate) tasks_used: Option<f64>,
}

impl Limit {
    /// The limits of one cgroup alone.
    fn new(of: cgroups::Limits) -> Self {
        let (memory, tasks) = (finite(of.memory_max), finite(of.tasks_max));
        let period = of.cpu_period_ns.filter(|&period| period > 0);
        let cpu = finite(of.cpu_quota_ns).zip(period);
        Self {
            memory,
            memory_used: share(of.memory_current, memory),
            cpu: cpu.map(|(quota, period)| quota as f64 / period as f64),
            tasks,
            tasks_used: share(of.tasks_current, tasks),
        }
    }

    /// Combines them with those of the cgroups above.
    fn below(self, above: Self) -> Self {
        let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
        let pick = |pick: fn(f64, f64) -> f64, one: Option<f64>, other: Option<f64>| {
            one.into_iter().chain(other).reduce(pick)
        };
        Self {
            memory: least(self.memory, above.memory),
            memory_used: pick(f64::max, self.memory_used, above.memory_used),
            cpu: pick(f64::min, self.cpu, above.cpu),
            tasks: least(self.tasks, above.tasks),
            tasks_used: pick(f64::max, self.tasks_used, above.tasks_used),
        }
    }
}

/// The limits of cgroups. They are read from the files of a cgroup and of those above it, at the first request for a
/// snapshot.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// `None` if they cannot be read.
    reader: Option<LimitReader>,
    is_open: bool,
    is_old: bool,
    /// By the path of the cgroup, with its id if it could be read.
    of: HashMap<Vec<u8>, (Option<u64>, Limit)>,
}

impl Limits {
    /// The limits of a recording, which has none.
    pub(crate) fn recorded() -> Self {
        Self {
            is_open: true,
            ..Self::default()
        }
    }

    /// Makes the next request read them again.
    pub(crate) fn renew(&mut self) {
        self.is_old = true;
    }

    /// The limits of the processes of the cgroup with this id and path.
    pub(crate) fn get(&mut self, id: u64, path: &[u8]) -> Option<Limit> {
        if std::mem::take(&mut self.is_old) {
            self.of.clear();
        }
        if !self.of.contains_key(path) {
            self.read(path)?;
        }
        // Another cgroup may have this path by now.
        let &(found, limit) = self.of.get(path)?;
        (found == Some(id)).then_some(limit)
    }

    /// Reads the cgroups from the root to this one, but for those that are known.
    fn read(&mut self, path: &[u8]) -> Option<()> {
        if !std::mem::replace(&mut self.is_open, true) {
            self.reader = LimitReader::open().ok();
        }
        let reader = self.reader.as_mut()?;
        let slashes = (1..path.len()).filter(|&at| path[at] == b'/');
        let whole = (path.len() > 1).then_some(path.len());
        let mut above = Limit::default();
        for end in [1].into_iter().chain(slashes).chain(whole) {
            let part = path.get(..end)?;
            above = if let Some((_, known)) = self.of.get(part) {
                *known
            } else {
                // What cannot be read is above what is mounted here, or its limits are hidden.
                let read = reader.read(part);
                let limit = read.map_or(above, |(_, own)| Limit::new(own).below(above));
                self.of.insert(part.into(), (read.map(|(id, _)| id), limit));
                limit
            };
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt, path::Path};

    use super::*;

    #[test]
    fn the_closest_limit_of_all_above_holds() {
        let folder = format!("fastproc-limits-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        // A killed run may have left one of this name.
        let _ = fs::remove_dir_all(&folder);
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
            fs::write(path, text).expect("the file is written");
        };
        for (cgroup, memory, current, cpu, tasks) in [
            ("a", "1000\n", "900\n", "max 100000\n", "max\n"),
            ("a/b", "500\n", "100\n", "50000 100000\n", "4\n"),
            ("a/b/c", "max\n", "100\n", "200000 100000\n", "0\n"),
            ("d", "max\n", "100\n", "max 100000\n", "max\n"),
        ] {
            write(&format!("{cgroup}/memory.max"), memory);
            write(&format!("{cgroup}/memory.current"), current);
            write(&format!("{cgroup}/cpu.max"), cpu);
            write(&format!("{cgroup}/pids.current"), "3\n");
            write(&format!("{cgroup}/pids.max"), tasks);
        }
        let reader = LimitReader::open_recorded(Path::new(&folder)).expect("it is a folder");
        let mut limits = Limits {
            reader: Some(reader),
            ..Limits::recorded()
        };
        let mut limit = |path: &str| {
            let id = fs::metadata(folder.join(path.trim_start_matches('/'))).expect("it was made");
            assert_eq!(limits.get(u64::MAX, path.as_bytes()), None);
            limits
                .get(id.ino(), path.as_bytes())
                .expect("the cgroup has limits")
        };
        let inner = Limit {
            memory: Some(500),
            memory_used: Some(0.9),
            cpu: Some(0.5),
            tasks: Some(4),
            tasks_used: Some(0.75),
        };
        assert_eq!(limit("/a/b"), inner);
        let innermost = Limit {
            tasks: Some(0),
            tasks_used: Some(1.0),
            ..inner
        };
        assert_eq!(limit("/a/b/c"), innermost);
        assert_eq!(limit("/d"), Limit::default());
        // A limit of the root of a container holds for all.
        write("memory.max", "700\n");
        limits.renew();
        let id = fs::metadata(folder.join("d")).expect("it was made").ino();
        let memory = |limits: &mut Limits| limits.get(id, b"/d").and_then(|limit| limit.memory);
        assert_eq!(memory(&mut limits), Some(700));
        write("memory.max", "600\n");
        assert_eq!(memory(&mut limits), Some(700));
        limits.renew();
        assert_eq!(memory(&mut limits), Some(600));
        for path in ["/none", "/../d", ""] {
            assert_eq!(limits.get(id, path.as_bytes()), None, "{path}");
        }
        assert_eq!(Limits::recorded().get(1, b"/"), None);
        assert_eq!((share(None, Some(10)), share(Some(1), None)), (None, None));
        fs::remove_dir_all(&folder).expect("the folder is removed");
    }

    #[test]
    fn an_exited_process_has_no_limits() {
        let host = fastproc::Host::read().expect("/proc is there");
        let mut lookup = crate::Lookup::recorded(host, 1 << 30);
        let limit = Limit {
            memory: Some(500),
            ..Limit::default()
        };
        lookup.details.keep_cgroup(5, b"/x");
        lookup.limits.of.insert(b"/x".into(), (Some(5), limit));
        let mut exit = fastproc::exits::Exit::default();
        exit.cgroup_id = 5;
        let record = exit.to_record();
        let mut row = crate::Row::new(fastproc::Process::new(&record, &[]));
        let field = crate::field::find("cgroup_memory_max").expect("a field");
        let mut value = |row: &_| format!("{:?}", field.value(row, &mut lookup));
        assert_eq!(value(&row), "Unsigned(500)");
        row.event = Some(crate::Event::Exit(&exit, None));
        assert_eq!(value(&row), "Unknown");
    }
}
