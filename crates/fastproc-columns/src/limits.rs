//! The limits that apply to processes through their cgroups, and how far they are used.

use std::{collections::HashMap, time::Duration};

use fastproc::cgroups::{
    Cgroup, Cgroups, Fields, Snapshot,
    record::{Memory, UNLIMITED},
};

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
    fn new(cgroup: Cgroup<'_>) -> Self {
        let memory = cgroup.memory().and_then(|memory| finite(memory.max()));
        let in_use = cgroup.memory().and_then(Memory::current);
        let tasks = cgroup.pids().and_then(|pids| finite(Some(pids.max)));
        let cpu = cgroup.cpu().and_then(|cpu| {
            let period = cpu.period_ns().filter(|&period| period > 0)?;
            Some(finite(cpu.quota_ns())? as f64 / period as f64)
        });
        Self {
            memory,
            memory_used: share(in_use, memory),
            cpu,
            tasks,
            tasks_used: share(cgroup.pids().map(|pids| pids.current), tasks),
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

/// The limits of all cgroups. They are read at the first request for a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// `None` if they cannot be read.
    reader: Option<Cgroups>,
    is_open: bool,
    is_new: bool,
    of: HashMap<u64, Limit>,
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
        self.is_new = false;
    }

    /// The limits of the processes of a cgroup, by its id.
    pub(crate) fn get(&mut self, id: u64) -> Option<Limit> {
        if !std::mem::replace(&mut self.is_new, true) {
            self.read();
        }
        self.of.get(&id).copied()
    }

    fn read(&mut self) {
        if !std::mem::replace(&mut self.is_open, true) {
            let fields = Fields::CPU | Fields::MEMORY | Fields::PIDS;
            // The kernel keeps no limits per CPU, so older values of those are acceptable.
            let builder = Cgroups::builder().fields(fields).max_age(Duration::MAX);
            self.reader = builder.open().ok();
        }
        self.of.clear();
        if let Some(snapshot) = self.reader.as_mut().map(Cgroups::snapshot)
            && let Ok(snapshot) = snapshot
        {
            combine(snapshot, &mut self.of);
        }
    }
}

fn combine(snapshot: Snapshot<'_>, of: &mut HashMap<u64, Limit>) {
    // Parents come before their children.
    for cgroup in snapshot.iter() {
        let parent = of.get(&cgroup.record().identity.parent).copied();
        let limit = Limit::new(cgroup).below(parent.unwrap_or_default());
        of.insert(cgroup.id(), limit);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn the_closest_limit_of_all_above_holds() {
        let folder = format!("fastproc-limits-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        // A killed run may have left one of this name.
        let _ = fs::remove_dir_all(&folder);
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("our own");
            fs::write(path, text).expect("our own");
        };
        write("cgroup.controllers", "cpu memory pids\n");
        for (cgroup, memory, current, cpu, tasks) in [
            ("a", "1000\n", "900\n", "max 100000\n", "max\n"),
            ("a/b", "500\n", "100\n", "50000 100000\n", "4\n"),
            ("a/b/c", "max\n", "100\n", "200000 100000\n", "0\n"),
            ("d", "max\n", "100\n", "max 100000\n", "max\n"),
        ] {
            write(&format!("{cgroup}/memory.max"), memory);
            write(&format!("{cgroup}/memory.current"), current);
            write(
                &format!("{cgroup}/cpu.stat"),
                "usage_usec 1\nuser_usec 1\nsystem_usec 0\n",
            );
            write(&format!("{cgroup}/cpu.max"), cpu);
            write(&format!("{cgroup}/pids.current"), "3\n");
            write(&format!("{cgroup}/pids.max"), tasks);
        }
        let mut reader = Cgroups::builder()
            .fields(Fields::all())
            .open_recorded(Path::new(&folder))
            .expect("it is a folder");
        let snapshot = reader.snapshot().expect("it is a folder");
        let mut of = HashMap::new();
        combine(snapshot, &mut of);
        let limit = |path: &str| {
            let cgroup = snapshot.find(path.as_bytes()).expect("it was made");
            of[&cgroup.id()]
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
        assert_eq!(Limits::recorded().get(1), None);
        assert_eq!((share(None, Some(10)), share(Some(1), None)), (None, None));
        fs::remove_dir_all(&folder).expect("our own");
    }

    #[test]
    fn an_exited_process_has_no_limits() {
        let host = fastproc::Host::read().expect("/proc is there");
        let mut lookup = crate::Lookup::recorded(host, 1 << 30);
        let limit = Limit {
            memory: Some(500),
            ..Limit::default()
        };
        lookup.limits.of.insert(5, limit);
        lookup.limits.is_new = true;
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
