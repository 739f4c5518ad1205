//! A simulated machine.

use std::{collections::HashMap, sync::Arc};

use fastproc::{
    Fields, Process,
    exits::Exit,
    record::{Record, ThreadRecord},
};
use fastproc_metrics::{
    groups::{Count, Describe, Description, Gone, Group, Moment, Options, Tracker},
    naming::{Container, Item, Rules, Wants},
};

pub const SECOND: u64 = 1_000_000_000;
/// The time of the first update.
pub const FIRST: u64 = 1000 * SECOND;

/// Its processes and their properties.
#[derive(Default)]
pub struct Machine {
    pub records: Vec<Record>,
    /// The records of the last update.
    before: Vec<Record>,
    pub threads: Vec<ThreadRecord>,
    pub cmdlines: HashMap<u32, String>,
    pub unreadable: Vec<u32>,
    /// Containers, by the ids of cgroups.
    pub containers: HashMap<u64, Arc<Container>>,
    pub described: usize,
    /// Exits since the last update with command lines, if recorded.
    pub ended: Option<Vec<(Exit, Option<String>)>>,
    pub now: u64,
}

impl Machine {
    pub fn start(&mut self, pid: u32, ppid: u32, comm: &str, started: u64) -> &mut Record {
        let mut record = Record::default();
        record.identity.tgid = pid;
        record.identity.ppid = ppid;
        record.identity.start_ns = started;
        record.identity.num_threads = 1;
        record.identity.state_bits = 1;
        record.identity.groups = (Fields::TOP | Fields::IO).bits();
        record.memory.rss_anon = 1000;
        self.cmdlines.insert(pid, format!("/bin/{comm}\0"));
        let at = self
            .records
            .partition_point(|known| known.identity.tgid < pid);
        self.records.insert(at, record);
        self.rename(pid, comm);
        self.get(pid)
    }

    pub fn get(&mut self, pid: u32) -> &mut Record {
        self.records
            .iter_mut()
            .find(|record| record.identity.tgid == pid)
            .expect("the process was added")
    }

    pub fn rename(&mut self, pid: u32, comm: &str) {
        let record = self.get(pid);
        record.identity.comm = [0; 16];
        record.identity.comm[..comm.len()].copy_from_slice(comm.as_bytes());
    }

    pub fn exit(&mut self, pid: u32) {
        self.records.retain(|record| record.identity.tgid != pid);
        self.threads.retain(|thread| thread.tgid != pid);
    }

    /// Adds an exit with this total CPU time.
    pub fn ended(
        &mut self,
        pid: u32,
        ppid: u32,
        comm: &str,
        started: u64,
        utime_ns: u64,
    ) -> &mut Exit {
        let mut exit = Exit::default();
        (exit.pid, exit.ppid) = (pid, Some(ppid));
        (exit.start_ns, exit.utime_ns) = (started, utime_ns);
        exit.comm[..comm.len()].copy_from_slice(comm.as_bytes());
        let ended = self.ended.get_or_insert_default();
        ended.push((exit, None));
        &mut ended.last_mut().expect("one was pushed").0
    }

    pub fn thread(&mut self, tgid: u32, tid: u32, comm: &str, nvcsw: u64) {
        let mut thread = ThreadRecord::default();
        (thread.tgid, thread.tid, thread.nvcsw) = (tgid, tid, nvcsw);
        thread.start_ns = if self.now < FIRST {
            SECOND
        } else {
            self.now + 1
        };
        thread.state_bits = 1;
        thread.comm[..comm.len()].copy_from_slice(comm.as_bytes());
        self.threads.push(thread);
    }

    pub fn update(&mut self, tracker: &mut Tracker) {
        self.now = if self.now == 0 {
            FIRST
        } else {
            self.now + SECOND
        };
        let moment = Moment {
            boottime_ns: self.now,
            btime: 1_700_000_000,
        };
        let records = std::mem::take(&mut self.records);
        let threads = std::mem::take(&mut self.threads);
        let views = records
            .iter()
            .map(|record| (Process::new(record, &[]), !self.before.contains(record)));
        let views: Vec<_> = views.collect();
        let ended = self.ended.take();
        let mut gone: Option<Vec<_>> = ended.as_ref().map(|ended| {
            let gone = ended.iter().map(|(exit, line)| Gone {
                exit,
                cmdline: line.as_deref().map(str::as_bytes),
            });
            gone.collect()
        });
        tracker.update(
            moment,
            views.into_iter(),
            threads.iter(),
            gone.as_deref_mut(),
            self,
        );
        self.before.clone_from(&records);
        self.records = records;
        self.threads = threads;
    }
}

impl Describe for Machine {
    fn describe(&mut self, process: Process<'_>, _: Wants, into: &mut Description) -> bool {
        self.described += 1;
        if self.unreadable.contains(&process.pid()) {
            return false;
        }
        if let Some(line) = self.cmdlines.get(&process.pid()) {
            into.cmdline.extend_from_slice(line.as_bytes());
        }
        if let Some(container) = process.cgroup_id().and_then(|id| self.containers.get(&id)) {
            into.container = container.clone();
        }
        true
    }

    fn username(&mut self, uid: u32) -> String {
        uid.to_string()
    }

    fn cgroups(&mut self, _: u32) -> Vec<String> {
        Vec::new()
    }

    fn container_of_exited(&mut self, exit: &Exit, _: Wants) -> Arc<Container> {
        self.containers
            .get(&exit.cgroup_id)
            .cloned()
            .unwrap_or_default()
    }
}

/// An empty machine, and a tracker with these options.
pub fn machine(change: impl FnOnce(&mut Options)) -> (Machine, Tracker) {
    let mut options = Options::default();
    change(&mut options);
    (Machine::default(), Tracker::new(options))
}

pub fn group<'a>(tracker: &'a Tracker, name: &str) -> Option<&'a Group> {
    tracker.groups().find(|group| &*group.name == name)
}

pub fn minor(tracker: &Tracker, name: &str) -> u64 {
    group(tracker, name)
        .unwrap_or_else(|| panic!("there is no group {name}"))
        .total
        .get(Count::MinorFaults)
}

pub fn procs(tracker: &Tracker, name: &str) -> Option<u64> {
    group(tracker, name).map(|group| group.now.procs)
}

/// Rules with a name for each group and the processes in it.
pub fn named(groups: &[(&str, &str)]) -> Rules {
    let items: Vec<Item> = groups
        .iter()
        .map(|&(name, comm)| Item {
            name: name.into(),
            comms: Some(vec![comm.into()]),
            ..Item::default()
        })
        .collect();
    Rules::of_items(&items).expect("no expression is in them")
}
