//! The last minutes of this machine, in memory.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    rc::Rc,
};

use fastproc::{
    Cmdline, Fields, Mask, container::Origin, difference::is_same_start, exits::Exit,
    record::Record, words,
};
use fastproc_columns::Lookup;
use fastproc_history::read::{Error, Moment, Texts, Walk};

use super::past::{Exits, NOT_RECORDED, Step, Steps};
use crate::{
    machine::{Cpu, Gauge},
    observation::View,
};

/// What it takes at most, in bytes.
const MOST: usize = 32 << 20;
/// What a snapshot takes without processes, exits and CPUs.
const EACH: usize = 1024;

/// A snapshot. A record that stays the same is kept once.
#[derive(Debug)]
struct Look {
    step: Step,
    records: Vec<Rc<Record>>,
    exits: Option<Vec<Exit>>,
}

impl Look {
    /// What it takes besides records.
    fn bytes(&self) -> usize {
        let exits = self.exits.as_ref().map_or(0, Vec::len);
        EACH + self.records.len() * size_of::<Rc<Record>>()
            + exits * size_of::<Exit>()
            + self.step.machine.cpus.len() * size_of::<Cpu>()
    }
}

/// Start and name of a process with its command line, and whether that is cut.
type Line = (u64, [u8; 16], Box<[u8]>, bool);

/// The last snapshots: as many as fit.
#[derive(Debug, Default)]
pub struct Memory {
    looks: VecDeque<Look>,
    bytes: usize,
    /// Whether the collector has made another snapshot since the last one here.
    is_behind: bool,
    texts: Texts,
    /// Command lines by pid.
    lines: HashMap<u32, Line>,
}

impl Memory {
    /// Keeps a snapshot, `interval` microseconds before the next one. `hides`: without what only a tracer may see.
    pub fn push(&mut self, view: &View<'_>, interval: i64, lookup: &Lookup, hides: bool) {
        let Some(calendar_ns) = view.machine.get(Gauge::Calendar) else {
            return;
        };
        let (snapshot, stats) = (view.snapshot, view.snapshot.stats());
        let mut walk = Walk::default();
        walk.time = (calendar_ns / 1000) as i64;
        (walk.began_ns, walk.interval) = (stats.kernel_boottime_ns(), interval);
        walk.boot_time = walk.time - (stats.kernel_end_ns() / 1000) as i64;
        walk.read_for_ns = stats.read_for.as_nanos() as u64;
        walk.lost_exits = snapshot.exits().map(|_| stats.lost_exits);
        walk.cpus = u32::try_from(view.machine.cpus.len())
            .ok()
            .filter(|&cpus| cpus > 0);
        (walk.memory, walk.page) = (Some(lookup.total_memory), Some(lookup.host.page_size));
        // A clock that was set back would bring them out of order.
        let last = self.looks.back().map(|look| look.step.walk.time);
        if last.is_some_and(|last| last >= walk.time) {
            (self.looks, self.bytes) = (VecDeque::new(), 0);
        }
        let before = self.looks.back().map_or(&[][..], |look| &look.records);
        let mut before = before.iter().peekable();
        let mut records = Vec::with_capacity(snapshot.len());
        for (process, has_changed) in snapshot.iter_with_changed() {
            let pid = process.pid();
            while before.next_if(|of| of.identity.tgid < pid).is_some() {}
            let known = before.next_if(|of| of.identity.tgid == pid);
            if let Some(known) = known.filter(|_| !has_changed && !self.is_behind) {
                records.push(Rc::clone(known));
                continue;
            }
            let mut record = *process.record();
            if hides {
                Mask::hide(&mut record);
                record.identity.groups &= !Fields::IO.bits();
            }
            if let Some(known) = known.filter(|known| words(&***known) == words(&record)) {
                records.push(Rc::clone(known));
            } else {
                self.bytes += size_of::<Record>();
                records.push(Rc::new(record));
            }
        }
        self.is_behind = false;
        let mut exits = snapshot.exits().map(<[Exit]>::to_vec);
        for exit in exits.iter_mut().flatten().filter(|_| hides) {
            (exit.io, exit.status) = (None, None);
        }
        let look = Look {
            step: Step {
                walk,
                machine: view.machine.clone(),
            },
            records,
            exits,
        };
        self.bytes += look.bytes();
        self.looks.push_back(look);
        while self.bytes > MOST
            && let Some(oldest) = self.looks.pop_front()
        {
            let freed = oldest
                .records
                .iter()
                .filter(|record| Rc::strong_count(record) == 1);
            self.bytes -= freed.count() * size_of::<Record>() + oldest.bytes();
        }
    }

    /// The collector has made a snapshot that is not kept: what it says has not changed since may have.
    pub const fn skip(&mut self) {
        self.is_behind = true;
    }

    /// Reads what no record says, while this machine can still be asked.
    pub fn look_up(&mut self, view: &View<'_>, lookup: &mut Lookup) {
        self.lines.clear();
        self.texts = Texts::default();
        let mut known = HashSet::new();
        for process in view.snapshot.iter() {
            let identity = process.identity();
            if let Ok(line) = lookup.details.cmdline(process) {
                let kept = (
                    identity.start_ns,
                    identity.comm,
                    line.bytes.into(),
                    line.cut,
                );
                self.lines.insert(identity.tgid, kept);
            }
            if let Some(id) = process.cgroup_id()
                && known.insert(id)
                && let Ok(path) = lookup.details.whole_cgroup(process)
            {
                let origin = Origin::from_cgroup(path);
                let labels = lookup.containers.get(&origin).cloned();
                self.texts.add_cgroup(id, path, labels);
            }
        }
        let mut ids = HashSet::new();
        for look in &self.looks {
            let of_exits = look.exits.iter().flatten();
            ids.extend(of_exits.map(|exit| [exit.uid, exit.euid, exit.gid, exit.egid]));
            let of_records = look.records.iter().map(|record| record.users);
            ids.extend(of_records.map(|users| [users.uid, users.euid, users.gid, users.egid]));
        }
        for [uid, euid, gid, egid] in ids {
            for id in [uid, euid] {
                self.texts.add_user(id, lookup.users.name(id));
            }
            for id in [gid, egid] {
                self.texts.add_group(id, lookup.groups.name(id));
            }
        }
    }

    /// All of it.
    pub fn steps(&self) -> Steps {
        let time = |look: Option<&Look>| look.map_or(0, |look| look.step.walk.time);
        Steps {
            time: (time(self.looks.front()), time(self.looks.back()) + 1),
            all: self.looks.iter().map(|look| look.step.clone()).collect(),
        }
    }

    fn find(&self, walk: &Walk) -> Option<&Look> {
        let at = self
            .looks
            .binary_search_by_key(&walk.time, |look| look.step.walk.time);
        self.looks.get(at.ok()?)
    }

    /// The processes of a walk. The command line is the last one that was read: of a process that had another name it is not
    /// known.
    pub fn moment(&self, walk: &Walk) -> Result<Moment, Error> {
        let look = self.find(walk).ok_or(Error::Incomplete(walk.time))?;
        let mut texts = self.texts.clone();
        for record in &look.records {
            let identity = &record.identity;
            let line = self.lines.get(&identity.tgid);
            if let Some((start_ns, comm, bytes, cut)) = line
                && (*start_ns, *comm) == (identity.start_ns, identity.comm)
            {
                let line = Cmdline { bytes, cut: *cut };
                texts.add_line(identity.tgid, *start_ns, line);
            }
        }
        let records = look.records.iter().map(|record| **record).collect();
        Ok(Moment::new(walk.clone(), records, texts))
    }

    /// The first walk after a time without a process.
    pub fn end_of(&self, pid: u32, start_ns: u64, from: i64) -> Option<i64> {
        let has = |look: &Look| {
            let at = look
                .records
                .binary_search_by_key(&pid, |of| of.identity.tgid);
            at.is_ok_and(|at| is_same_start(look.records[at].identity.start_ns, start_ns))
        };
        let mut later = self.looks.iter().filter(|look| look.step.walk.time > from);
        later
            .find(|look| !has(look))
            .map(|look| look.step.walk.time)
    }

    /// The exits before a walk.
    pub fn exits(&self, walk: &Walk) -> Exits {
        let all = self.find(walk).and_then(|look| look.exits.clone());
        Exits {
            lacking: if all.is_some() { "" } else { NOT_RECORDED },
            all,
            lost: walk.lost_exits.unwrap_or(0),
            texts: Texts::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fastproc::{Host, Snapshot, SnapshotStats, SourceKind, Table};

    use super::*;
    use crate::{exited::Exited, machine::Machine};

    #[test]
    fn the_oldest_snapshots_go_and_a_record_that_stays_is_kept_once() {
        const PROCESSES: u32 = 1000;
        let host = Host::read().expect("there is a /proc");
        let lookup = Lookup::recorded(host, 0);
        let mut memory = Memory::default();
        // Half of them stay the same, and the hundredth ends.
        for look in 1..=120 {
            let records: Vec<_> = (1..=PROCESSES)
                .filter(|pid| look < 110 || *pid != 100)
                .map(|pid| {
                    let mut record = Record::default();
                    record.identity.tgid = pid;
                    record.cpu.utime_ns = if pid % 2 == 0 { 7 } else { look };
                    record
                })
                .collect();
            let table = Table {
                records: &records,
                ..Table::default()
            };
            let stats = SnapshotStats::recorded(SourceKind::Procfs, look, Duration::ZERO);
            let mut machine = Machine::default();
            machine.set(Gauge::Calendar, Some(look * 1_000_000_000));
            let view = View {
                snapshot: Snapshot::recorded(table, stats),
                before: None,
                machine: &machine,
                earlier: None,
                line: None,
                exited: &Exited::default(),
                cgroups: None,
            };
            memory.push(&view, 1_000_000, &lookup, false);
        }
        let kept = memory.looks.len();
        let all: HashSet<_> = memory
            .looks
            .iter()
            .flat_map(|look| &look.records)
            .map(Rc::as_ptr)
            .collect();
        let bytes: usize = memory.looks.iter().map(Look::bytes).sum();
        assert_eq!(memory.bytes, all.len() * size_of::<Record>() + bytes);
        assert!(
            memory.bytes <= MOST && memory.bytes > MOST / 10 * 9,
            "{kept}"
        );
        assert!(
            kept < 120 && all.len() < (kept + 2) * PROCESSES as usize / 2,
            "{kept}"
        );
        for look in 120 - kept as u64 + 1..=120 {
            let mut walk = Walk::default();
            walk.time = look as i64 * 1_000_000;
            let moment = memory.moment(&walk).expect("it is kept");
            let snapshot = moment.snapshot();
            let used = |pid| Some(snapshot.get(pid)?.record().cpu.utime_ns);
            assert_eq!((used(7), used(8)), (Some(look), Some(7)));
            assert_eq!(used(100), (look < 110).then_some(7));
        }
    }
}
