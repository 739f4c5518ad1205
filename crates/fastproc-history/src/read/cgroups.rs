//! The cgroups of a machine at a time, and what they did between two times.

use std::{borrow::Cow, collections::HashMap};

use fastproc::{
    cgroups::{Baseline, Fields, Recorded, Snapshot, record::Record},
    words, words_mut,
};

use super::{
    Error,
    history::History,
    latest::{Key, Latest},
    record::{Members, subtract_from},
    walk::Walk,
    window::Ends,
};
use crate::{
    escape::unescaped,
    table::{CGROUPS, Column},
};

/// The cgroups at a time, or what they did until then.
#[derive(Debug)]
pub struct Cgroups {
    /// The walk that a window begins with.
    pub first: Option<Walk>,
    /// The walk that saw them.
    pub walk: Walk,
    /// Between which walks of the window nothing was recorded, in microseconds since 1970.
    pub gaps: Vec<(i64, i64)>,
    recorded: Recorded,
    before: Option<Baseline>,
}

/// Those that grow for as long as a cgroup exists.
fn is_sum(column: &Column) -> bool {
    let gauges = ["quota_ns", "period_ns", "weight"];
    let sums = (Fields::CPU | Fields::IO | Fields::PRESSURE).bits();
    column.group & sums != 0 && !gauges.contains(&column.name) || column.name == "oom_kills"
}

impl Cgroups {
    /// As a collector returned them then. In a window sums are those of the window, also of cgroups that were removed in it,
    /// which use no memory and have no processes.
    pub fn snapshot(&self) -> Snapshot<'_> {
        self.recorded.snapshot()
    }

    /// What to compare a window with for its shares and rates.
    pub const fn before(&self) -> Option<&Baseline> {
        self.before.as_ref()
    }
}

/// A cgroup, with its path.
#[derive(Clone, Debug)]
struct Known {
    path: Box<[u8]>,
    record: Record,
}

type All = HashMap<Key, Latest<Option<Known>>>;

impl History {
    /// The cgroups at a time in microseconds since 1970: as the last walk saw them that was not later.
    pub fn cgroups_at(&mut self, time: i64) -> Result<Cgroups, Error> {
        let (walk, whole) = self.walk_at(time)?;
        let found = self.cgroups_seen_by(&walk, whole.time)?;
        Ok(Cgroups {
            first: None,
            recorded: recorded(found.into_values(), walk.began_ns),
            walk,
            gaps: Vec::new(),
            before: None,
        })
    }

    /// What cgroups did between two times, as [`between`](Self::between) does for processes.
    pub fn cgroups_between(&mut self, from: i64, to: i64) -> Result<Cgroups, Error> {
        let Ends {
            first: (first, first_whole),
            last: (walk, last_whole),
            gaps,
            ..
        } = self.ends(from, to)?;
        let before = self.cgroups_seen_by(&first, first_whole)?;
        let mut after = self.cgroups_seen_by(&walk, last_whole)?;
        for (key, latest) in self.cgroups_of((first.time, walk.time))? {
            // It has had a row since, or was there before.
            let was_there = latest.time > first.time || before.contains_key(&key);
            if let (Some(known), true, false) =
                (latest.value.flatten(), was_there, after.contains_key(&key))
            {
                after.insert(key, removed(known));
            }
        }
        for (key, known) in &before {
            after.entry(*key).or_insert_with(|| removed(known.clone()));
        }
        let mut empty = Recorded::new(first.began_ns);
        for (key, known) in &mut after {
            let now = &mut known.record;
            if let Some(before) = before.get(key) {
                subtract_from(&CGROUPS, is_sum, words_mut(now), words(&before.record));
            }
            let mut zero = *now;
            subtract_from(&CGROUPS, is_sum, words_mut(&mut zero), words(now));
            empty.add(zero, &known.path);
        }
        let mut baseline = Baseline::default();
        baseline.set(empty.snapshot());
        Ok(Cgroups {
            first: Some(first),
            recorded: recorded(after.into_values(), walk.began_ns),
            walk,
            gaps,
            before: Some(baseline),
        })
    }

    fn cgroups_seen_by(&mut self, walk: &Walk, whole: i64) -> Result<HashMap<Key, Known>, Error> {
        let damaged = self.damaged().len();
        let found = self.cgroups_of((whole, walk.time))?;
        if self.damaged().len() > damaged {
            return Err(self.broken_by(damaged));
        }
        let there = found.into_iter().filter(|(_, of)| of.is_there(whole));
        let known = there.map(|(key, of)| {
            let known = of.value.flatten().ok_or(Error::Incomplete(walk.time))?;
            Ok((key, known))
        });
        known.collect()
    }

    fn cgroups_of(&mut self, time: (i64, i64)) -> Result<All, Error> {
        let columns = CGROUPS.columns.iter().map(|column| column.name);
        self.latest(&CGROUPS, time, columns, |_, members, rows, row| {
            let path = rows.texts("path").get(row)?.as_deref();
            let path = path.and_then(unescaped).map(Cow::into_owned)?;
            let record = record(members, row);
            let path = path.into();
            Some(Known { path, record })
        })
    }
}

fn record(members: &Members<'_>, row: usize) -> Record {
    let mut record = Record::default();
    record.identity.groups = members.fill(row, words_mut(&mut record));
    record
}

/// What was removed has nothing any more, but has done what it did.
fn removed(mut known: Known) -> Known {
    let record = &mut known.record;
    record.identity.groups &= !Fields::PIDS.bits();
    (record.identity.populated, record.identity.frozen) = (0, 0);
    (
        record.identity.descendants,
        record.identity.dying_descendants,
    ) = (0, 0);
    record.memory.set_current(None);
    record.memory.set_swap_current(None);
    known
}

/// Parents before their children, which have no other link than their path.
fn recorded(all: impl Iterator<Item = Known>, began_ns: u64) -> Recorded {
    let depth = |path: &[u8]| match path.len() {
        0 | 1 => 0,
        _ => path.split(|&byte| byte == b'/').count() - 1,
    };
    let mut all: Vec<_> = all.collect();
    // Of two with one path the later one is the parent: ids grow.
    all.sort_unstable_by(|one, other| {
        let key = |of: &Known| (depth(&of.path), of.record.identity.id);
        key(one).cmp(&key(other))
    });
    let mut recorded = Recorded::new(began_ns);
    let mut ids = HashMap::new();
    for Known { path, mut record } in all {
        let parent = path.iter().rposition(|&byte| byte == b'/');
        let parent = &path[..parent.unwrap_or(0).max(1).min(path.len())];
        let identity = &mut record.identity;
        identity.level = depth(&path) as u32;
        identity.parent = match identity.level {
            0 => 0,
            _ => ids.get(parent).copied().unwrap_or(0),
        };
        recorded.add(record, &path);
        ids.insert(path, record.identity.id);
    }
    recorded
}
