//! The processes of a machine at a time.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use fastproc::{Fields, Host, Snapshot, SnapshotStats, SourceKind, Table, record::Record};
use fastproc_columns::Lookup;

use super::{
    Error,
    history::History,
    latest::Key,
    record::{record, unknown, wanted},
    texts::{Line, OF_IDENTITY, Texts},
    walk::Walk,
};
use crate::table::{IDENTITIES, PROCESSES};

/// The processes at a time.
#[derive(Debug)]
pub struct Moment {
    /// The walk that saw them.
    pub walk: Walk,
    /// By pid.
    pub(super) records: Vec<Record>,
    /// Names, command lines and so on.
    pub texts: Texts,
}

impl Moment {
    /// From the records of its processes, in the order of their pids.
    pub const fn new(walk: Walk, records: Vec<Record>, texts: Texts) -> Self {
        Self {
            walk,
            records,
            texts,
        }
    }

    /// As a collector returned it then.
    pub fn snapshot(&self) -> Snapshot<'_> {
        snapshot(&self.walk, &self.records)
    }

    /// A lookup of the values of that time. `host` is this machine.
    pub fn lookup(&self, host: Host) -> Lookup {
        lookup(&self.walk, &self.texts, host)
    }
}

/// The snapshot of a walk.
pub(super) fn snapshot<'a>(walk: &Walk, records: &'a [Record]) -> Snapshot<'a> {
    let table = Table {
        records,
        ..Table::default()
    };
    let read_for = Duration::from_nanos(walk.read_for_ns);
    // The recorder has left out what it may not see.
    let stats = SnapshotStats::recorded(SourceKind::Procfs, walk.began_ns, read_for);
    Snapshot::recorded(table, stats)
}

pub(super) fn lookup(walk: &Walk, texts: &Texts, mut host: Host) -> Lookup {
    host.boot_offset_ns = 0;
    host.page_size = walk.page.unwrap_or(host.page_size);
    host.possible_cpus = walk.cpus.unwrap_or(host.possible_cpus);
    let mut lookup = Lookup::recorded(host, walk.memory.unwrap_or(0));
    lookup.set_boot_time(walk.boot_time);
    lookup.now_ns = walk.began_ns.saturating_add(walk.read_for_ns);
    texts.keep(&mut lookup);
    lookup
}

impl History {
    /// The processes at a time in microseconds since 1970: as the last walk saw them that was not later. Only these groups
    /// of fields are read.
    pub fn at(&mut self, time: i64, fields: Fields) -> Result<Moment, Error> {
        let (walk, whole) = self.walk_at(time)?;
        self.seen_by(walk, whole.time, fields)
    }

    /// The processes that a walk saw, the last one with all of them being of the time `whole`.
    pub(super) fn seen_by(
        &mut self,
        walk: Walk,
        whole: i64,
        fields: Fields,
    ) -> Result<Moment, Error> {
        let time = (whole, walk.time);
        let damaged = self.damaged().len();
        let mut texts = Texts::default();
        let identities = self.identities(time, fields, &mut texts)?;
        let processes = self.latest(
            &PROCESSES,
            time,
            wanted(&PROCESSES, fields).chain(["name"]),
            |key, members, rows, row| {
                let known = identities.get(&key);
                Some(Box::new(record(&known?.record, members, rows, row)))
            },
        )?;
        // Without a row group of this time values would be older than they seem.
        if self.damaged().len() > damaged {
            return Err(self.broken_by(damaged));
        }
        let mut found = Vec::with_capacity(processes.len());
        for (key, latest) in processes {
            if latest.is_there(whole) {
                let record = latest.value.flatten();
                found.push((key, record.ok_or(Error::Incomplete(walk.time))?));
            }
        }
        // Of two with one pid the older one is gone.
        found.sort_unstable_by_key(|((pid, start), _)| (*pid, Reverse(*start)));
        found.dedup_by_key(|((pid, _), _)| *pid);
        for (key, record) in &found {
            if let Some(line) = identities.get(key).and_then(|known| known.line.as_ref()) {
                texts.add_line(record.identity.tgid, record.identity.start_ns, line.get());
            }
        }
        Ok(Moment {
            walk,
            records: found.into_iter().map(|(_, record)| *record).collect(),
            texts,
        })
    }

    /// The identities of the processes of a time.
    pub(super) fn identities(
        &mut self,
        time: (i64, i64),
        fields: Fields,
        texts: &mut Texts,
    ) -> Result<HashMap<Key, Identity>, Error> {
        let columns = wanted(&IDENTITIES, fields).chain(OF_IDENTITY.iter().copied());
        let found = self.latest(&IDENTITIES, time, columns, |_, members, rows, row| {
            Identity {
                record: Box::new(record(&unknown(), members, rows, row)),
                line: texts.add(rows, row),
            }
        })?;
        let found = found.into_iter();
        Ok(found
            .filter_map(|(key, latest)| Some((key, latest.value?)))
            .collect())
    }
}

/// Who a process is.
#[derive(Debug)]
pub(super) struct Identity {
    /// Apart, because tables grow.
    pub(super) record: Box<Record>,
    pub(super) line: Option<Line>,
}
