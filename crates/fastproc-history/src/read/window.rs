//! What processes did between two times.

use std::{collections::HashMap, ops::ControlFlow};

use fastproc::{
    Baseline, Fields, Host, Process, Snapshot, difference::is_same_start, exits::Exit,
    record::Record,
};
use fastproc_columns::{Lookup, Row};

use super::{
    Error,
    history::History,
    latest::Key,
    moment::{self, Moment},
    record::{Members, exit, record, subtract, unknown, wanted},
    texts::{Line, Texts},
    walk::Walk,
};
use crate::table::{EXITS, PROCESSES};

/// What processes did between two walks, the ended ones too.
#[derive(Debug)]
pub struct Window {
    /// Where it begins.
    pub first: Walk,
    /// Where it ends.
    pub last: Walk,
    /// Between which walks nothing was recorded, in microseconds since 1970.
    pub gaps: Vec<(i64, i64)>,
    /// Exits that were lost; `None` if exits were not recorded all the time.
    pub lost_exits: Option<u64>,
    before: Baseline,
    /// As they were at the end, and what they did; both by pid.
    records: Vec<Record>,
    did: Vec<Record>,
    /// By pid and start.
    ended: Vec<Ended>,
    exits: Vec<Exit>,
    texts: Texts,
}

/// What is missing of the exits of a time.
#[derive(Debug)]
#[non_exhaustive]
pub struct Lacks {
    /// The walk with which it begins, in microseconds since 1970.
    pub first: i64,
    /// See [`Window::gaps`].
    pub gaps: Vec<(i64, i64)>,
    /// See [`Window::lost_exits`].
    pub lost_exits: Option<u64>,
}

/// The walks at both ends of a window, each with the time of the last one that saw all.
pub(super) struct Ends {
    pub(super) first: (Walk, i64),
    pub(super) last: (Walk, i64),
    pub(super) gaps: Vec<(i64, i64)>,
    lost_exits: Option<u64>,
}

/// A process that ended.
#[derive(Debug)]
struct Ended {
    exit: Exit,
    line: Option<Line>,
    did: Record,
}

impl Window {
    /// The processes at its end, as they were then.
    pub fn snapshot(&self) -> Snapshot<'_> {
        moment::snapshot(&self.last, &self.records)
    }

    /// A row for each process: its sums over the window, all else as it was at the end of it.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let lost = self.lost_exits.unwrap_or(0);
        let snapshot = self.snapshot().with_exits(&self.exits, lost);
        let living = self.before.changes(&snapshot).zip(&self.did);
        let living = living.map(|(change, did)| Row {
            process: Process::new(did, &[]),
            ..Row::changed(change)
        });
        let ended = self.before.ended(&snapshot).filter_map(|ended| {
            let key = |of: &Exit| (of.pid, of.start_ns);
            let at = self
                .ended
                .binary_search_by_key(&key(ended.exit), |ended| key(&ended.exit));
            let Ended { did, line, .. } = &self.ended[at.ok()?];
            Some(Row::ended(ended.change(did), line.as_ref().map(Line::get)))
        });
        living.chain(ended).collect()
    }

    /// A lookup of the values at its end. `host` is this machine.
    pub fn lookup(&self, host: Host) -> Lookup {
        moment::lookup(&self.last, &self.texts, host)
    }
}

/// An exit as `exits` has it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exited {
    /// When it happened, in microseconds since 1970; if that is not known, the second of the walk that missed the process.
    pub time: i64,
    /// The exit.
    pub exit: Exit,
    /// Its command line, if it was kept: each argument with a NUL.
    pub line: Option<Line>,
    /// Names the boot.
    pub boot_id: Option<Box<str>>,
    /// When the machine was booted, in microseconds since 1970.
    pub boot_time: Option<i64>,
    /// Its names.
    pub texts: Texts,
}

const SECOND: i64 = 1_000_000;
/// A recorder may know of an exit so much later, in microseconds.
const LATE: i64 = 150 * SECOND;

impl Exited {
    /// The time that it counts for, in microseconds since 1970: when it ended or, if its parent waited for it much later, when
    /// the recorder knew of it.
    pub fn counts_at(&self) -> i64 {
        let ended = self.exit.end_ns.zip(self.boot_time);
        let ended = ended.map(|(end_ns, boot)| boot.saturating_add((end_ns / 1000) as i64));
        let ended = ended.filter(|ended| self.time.saturating_sub(*ended) <= LATE);
        ended.unwrap_or(self.time)
    }
}

impl History {
    /// What processes did between two times in microseconds since 1970. It begins at the first walk that was not before
    /// `from`, if nothing was recorded then, and ends at the last one before `to`.
    pub fn between(&mut self, from: i64, to: i64, fields: Fields) -> Result<Window, Error> {
        // Shares are always known.
        let fields = fields | Fields::CPU;
        let Ends {
            first: (first, first_whole),
            last: (last, last_whole),
            gaps,
            lost_exits,
        } = self.ends(from, to)?;
        let before = self.seen_by(first, first_whole, fields)?;
        let after = self.seen_by(last, last_whole, fields)?;
        let damaged = self.damaged().len();
        let mut texts = after.texts.clone();
        let mut ended = self.ended(&before, &after, &mut texts)?;
        let knows_all = gaps.is_empty() && lost_exits == Some(0) && self.damaged().len() == damaged;
        let time = (first_whole, after.walk.time);
        self.add_vanished(
            &before,
            &after,
            &mut ended,
            (!knows_all).then_some((time, fields)),
            &mut texts,
        )?;
        ended.sort_unstable_by_key(|ended| (ended.exit.pid, ended.exit.start_ns));
        ended.dedup_by_key(|ended| (ended.exit.pid, ended.exit.start_ns));
        Ok(Window::new(before, after, ended, texts, gaps, lost_exits))
    }

    /// The walks at both ends of a window, and what lies in between.
    pub(super) fn ends(&mut self, from: i64, to: i64) -> Result<Ends, Error> {
        let (first, first_whole) = self.first_of(from, to)?;
        let end = self.last_before(first.time, to)?;
        let (last, last_whole) = self.walk_at(end.map_or(first.time, |walk| walk.time))?;
        if last.time <= first.time {
            return Err(Error::OneWalk(first.time));
        }
        let walks = self.walks(first.time, last.time)?;
        if let Some((one, next)) = pairs(&walks).find(|(one, next)| one.boot_id != next.boot_id) {
            return Err(Error::Booted(one.time, next.time));
        }
        let (gaps, lost_exits) = lacks(&walks);
        Ok(Ends {
            first: (first, first_whole.time),
            last: (last, last_whole.time),
            gaps,
            lost_exits,
        })
    }

    /// The walk at the beginning of a window, and the one before it in which all processes had a row.
    fn first_of(&mut self, from: i64, to: i64) -> Result<(Walk, Walk), Error> {
        if to <= from {
            return Err(Error::Backwards);
        }
        match self.walk_at(from) {
            Err(gap @ Error::Gap { .. }) => {
                let walk = self.first_after(from, to)?.ok_or(gap)?;
                Ok((walk.clone(), walk))
            }
            found => found,
        }
    }

    /// What is missing of the exits between two times in microseconds since 1970, over boots too. It is an error if nothing
    /// was recorded then.
    pub fn lacks_of_exits(&mut self, from: i64, to: i64) -> Result<Lacks, Error> {
        let first = self.first_of(from, to)?.0.time;
        let (gaps, lost_exits) = lacks(&self.walks(first, to)?);
        Ok(Lacks {
            first,
            gaps,
            lost_exits,
        })
    }

    /// The exits between the two walks: of what the first saw, or what began later, and the second did not see.
    fn ended(
        &mut self,
        before: &Moment,
        after: &Moment,
        texts: &mut Texts,
    ) -> Result<Vec<Ended>, Error> {
        let mut ended = Vec::new();
        self.intact_exits_between(&before.walk, &after.walk, |exited| {
            let Exited { exit, line, .. } = exited;
            if find(&after.records, exit.pid, exit.start_ns).is_none() {
                texts.extend(exited.texts);
                ended.push(Ended::new(&exit, line, before));
            }
        })?;
        Ok(ended)
    }

    /// Reads the exits between two walks of one boot. It is an error if some may be damaged.
    pub fn exits_between(
        &mut self,
        first: &Walk,
        last: &Walk,
        each: impl FnMut(Exited),
    ) -> Result<(), Error> {
        let damaged = self.damaged().len();
        self.intact_exits_between(first, last, each)?;
        if self.damaged().len() > damaged {
            return Err(self.broken_by(damaged));
        }
        Ok(())
    }

    fn intact_exits_between(
        &mut self,
        first: &Walk,
        last: &Walk,
        mut each: impl FnMut(Exited),
    ) -> Result<(), Error> {
        let time = (first.time - 2 * SECOND, last.time + LATE);
        let read_ns = last.began_ns.saturating_add(last.read_for_ns);
        self.exits(time, |exited| {
            let is_within = match exited.exit.end_ns {
                Some(end_ns) => end_ns > first.began_ns && end_ns <= read_ns,
                None => exited.time > first.time && exited.time <= last.time,
            };
            let boot_id = exited.boot_id.as_ref();
            if is_within && boot_id.is_none_or(|id| *id == last.boot_id) {
                each(exited);
            }
        })
    }

    /// Reads the exits that count for a time in microseconds since 1970, both inclusive, in about their order.
    pub fn exits_of(
        &mut self,
        (from, to): (i64, i64),
        mut each: impl FnMut(Exited),
    ) -> Result<(), Error> {
        self.exits((from, to.saturating_add(LATE)), |exited| {
            if (from..=to).contains(&exited.counts_at()) {
                each(exited);
            }
        })
    }

    /// Reads the exits that the recorder knew of in a time in microseconds since 1970, both inclusive, in about their order.
    pub fn exits(&mut self, time: (i64, i64), mut each: impl FnMut(Exited)) -> Result<(), Error> {
        let all: Vec<_> = EXITS.columns.iter().map(|column| column.name).collect();
        self.groups(&EXITS, time, &all, |_, rows| {
            let members = Members::new(rows);
            let number = |name: &str, row: usize| rows.numbers(name).get(row).copied().flatten();
            for row in 0..rows.count {
                let Some(at) = number("time", row).filter(|at| (time.0..=time.1).contains(at))
                else {
                    continue;
                };
                let mut texts = Texts::default();
                each(Exited {
                    time: at,
                    exit: exit(&members, row),
                    line: texts.add(rows, row),
                    boot_id: rows.texts("boot_id").get(row).cloned().flatten(),
                    boot_time: number("boot_time", row),
                    texts,
                });
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(())
    }

    /// Adds the processes that are gone and have no exit: with their last values, which are not final. Without `search` every
    /// process that ran in between has an exit, and one without it has ended before.
    fn add_vanished(
        &mut self,
        before: &Moment,
        after: &Moment,
        ended: &mut Vec<Ended>,
        search: Option<((i64, i64), Fields)>,
        texts: &mut Texts,
    ) -> Result<(), Error> {
        let mut known: HashMap<Key, Record> = HashMap::new();
        let key = |record: &Record| {
            let identity = &record.identity;
            (i64::from(identity.tgid), identity.start_ns as i64)
        };
        known.extend(before.records.iter().map(|record| (key(record), *record)));
        let mut lines = HashMap::new();
        if let Some((time, fields)) = search {
            let identities = self.identities(time, fields, texts)?;
            let found = self.latest(
                &PROCESSES,
                (before.walk.time, time.1),
                wanted(&PROCESSES, fields).chain(["name"]),
                |key, members, rows, row| {
                    let identity = identities.get(&key).map_or_else(unknown, |of| *of.record);
                    record(&identity, members, rows, row)
                },
            )?;
            known.extend(
                found
                    .into_iter()
                    .filter_map(|(key, of)| Some((key, of.value?))),
            );
            lines.extend(identities.into_iter().map(|(key, of)| (key, of.line)));
        }
        let ended_pids: HashMap<u32, Vec<u64>> =
            ended.iter().fold(HashMap::new(), |mut pids, ended| {
                pids.entry(ended.exit.pid)
                    .or_insert_with(Vec::new)
                    .push(ended.exit.start_ns);
                pids
            });
        for (key, record) in known {
            let (pid, start_ns) = (record.identity.tgid, record.identity.start_ns);
            let has_exit = ended_pids
                .get(&pid)
                .is_some_and(|starts| starts.iter().any(|start| is_same_start(*start, start_ns)));
            if !has_exit && find(&after.records, pid, start_ns).is_none() {
                let line = lines.remove(&key).flatten();
                ended.push(Ended::new(&last_seen(&record), line, before));
            }
        }
        Ok(())
    }
}

impl Ended {
    fn new(exit: &Exit, line: Option<Line>, before: &Moment) -> Self {
        let mut did = exit.to_record();
        if let Some(before) = find(&before.records, exit.pid, exit.start_ns) {
            subtract(&mut did, before);
        }
        Self {
            exit: *exit,
            line,
            did,
        }
    }
}

impl Window {
    fn new(
        before: Moment,
        after: Moment,
        ended: Vec<Ended>,
        texts: Texts,
        gaps: Vec<(i64, i64)>,
        lost_exits: Option<u64>,
    ) -> Self {
        let mut baseline = Baseline::default();
        baseline.set(&before.snapshot());
        baseline.set_cpus(after.walk.cpus.unwrap_or(u32::MAX));
        let did = after.records.iter().map(|record| {
            let identity = &record.identity;
            let mut did = *record;
            if let Some(before) = find(&before.records, identity.tgid, identity.start_ns) {
                subtract(&mut did, before);
            }
            did
        });
        Self {
            did: did.collect(),
            exits: ended.iter().map(|ended| ended.exit).collect(),
            first: before.walk,
            last: after.walk,
            before: baseline,
            records: after.records,
            gaps,
            lost_exits,
            ended,
            texts,
        }
    }
}

fn pairs(walks: &[Walk]) -> impl Iterator<Item = (&Walk, &Walk)> {
    walks.iter().zip(walks.iter().skip(1))
}

/// Between which walks nothing was recorded, and how many exits were lost.
fn lacks(walks: &[Walk]) -> (Vec<(i64, i64)>, Option<u64>) {
    let gaps = pairs(walks).filter(|(one, next)| !one.lasts_until(next.time));
    let gaps = gaps.map(|(one, next)| (one.time, next.time)).collect();
    (gaps, pairs(walks).map(|(_, next)| next.lost_exits).sum())
}

/// The record of this process in a list by pid.
fn find(records: &[Record], pid: u32, start_ns: u64) -> Option<&Record> {
    let at = records.binary_search_by_key(&pid, |record| record.identity.tgid);
    let record = &records[at.ok()?];
    is_same_start(record.identity.start_ns, start_ns).then_some(record)
}

/// An exit of which only the last row is known.
fn last_seen(record: &Record) -> Exit {
    let Record {
        identity,
        cpu,
        users,
        cgroup,
        ..
    } = record;
    let mut exit = Exit::default();
    (exit.pid, exit.tid, exit.start_ns) = (identity.tgid, identity.tgid, identity.start_ns);
    (exit.flags, exit.comm) = (identity.flags, identity.comm);
    (exit.uid, exit.euid) = (users.uid, users.euid);
    (exit.gid, exit.egid) = (users.gid, users.egid);
    (exit.utime_ns, exit.stime_ns) = (cpu.utime_ns, cpu.stime_ns);
    exit.sum_exec_ns = cpu.sum_exec_ns().unwrap_or(0);
    (exit.run_delay_ns, exit.timeslices) = (cpu.run_delay_ns(), cpu.timeslices());
    (exit.minflt, exit.majflt) = (cpu.minflt, cpu.majflt);
    (exit.cutime_ns, exit.cstime_ns) = (cpu.cutime_ns, cpu.cstime_ns);
    exit.cgroup_id = cgroup.id().unwrap_or(0);
    exit.io = (identity.groups & Fields::IO.bits() != 0).then_some(record.io);
    exit
}
