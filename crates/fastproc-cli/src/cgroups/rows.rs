//! The rows of the table: cgroups with what else is known of them.

use std::{cmp::Ordering, collections::HashMap};

use fastproc::cgroups::{Baseline, Cgroup, Changes, Snapshot, StatLine};
use fastproc_columns::Value;

use super::{columns::Sort, filter::Filter};

/// The lines of memory.stat that columns show.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines {
    pub anon: Option<StatLine>,
    pub file: Option<StatLine>,
    pub kernel: Option<StatLine>,
    inactive_file: Option<StatLine>,
}

impl Lines {
    fn new<'a>(lines: impl Iterator<Item = (StatLine, &'a str)>) -> Self {
        let mut found = Self::default();
        for (line, name) in lines {
            match name {
                "anon" => found.anon = Some(line),
                "file" => found.file = Some(line),
                "kernel" => found.kernel = Some(line),
                "inactive_file" => found.inactive_file = Some(line),
                _ => {}
            }
        }
        found
    }
}

/// One cgroup.
#[derive(Debug)]
pub struct Row<'a> {
    pub cgroup: Cgroup<'a>,
    pub changes: Changes,
    /// Processes, with and without those of its descendants.
    pub processes: Option<u64>,
    pub own_processes: Option<u64>,
    pub lines: Lines,
}

impl Row<'_> {
    pub fn stat(&self, line: Option<StatLine>) -> Option<u64> {
        self.cgroup.memory_stat_value(line?)
    }

    /// The folders of its path: in their order parents come right before their descendants.
    pub fn path_parts(&self) -> impl Iterator<Item = &[u8]> {
        let path = self.cgroup.path();
        path.split(|&byte| byte == b'/')
            .filter(|part| !part.is_empty())
    }

    /// As cAdvisor has it: memory in use without inactive file pages.
    pub fn working_set(&self) -> Option<u64> {
        let current = self.cgroup.memory()?.current()?;
        Some(current.saturating_sub(self.stat(self.lines.inactive_file)?))
    }
}

/// All of them, in order.
#[derive(Debug)]
pub struct Rows<'a>(Vec<Row<'a>>);

impl<'a> Rows<'a> {
    /// `members`: processes by the ids of their cgroups, if they are known.
    pub fn new(
        snapshot: Snapshot<'a>,
        before: Option<&Baseline>,
        members: Option<&HashMap<u64, u64>>,
        lines: impl Iterator<Item = (StatLine, &'a str)>,
    ) -> Self {
        let lines = Lines::new(lines);
        let mut rows: Vec<_> = snapshot
            .iter()
            .map(|cgroup| {
                let own = members.map(|members| members.get(&cgroup.id()).copied().unwrap_or(0));
                Row {
                    cgroup,
                    changes: before
                        .map_or_else(Changes::default, |before| before.changes(snapshot, cgroup)),
                    processes: own,
                    own_processes: own,
                    lines,
                }
            })
            .collect();
        // Parents come before their children, so from the end each child has its sum before its parent takes it.
        let places: HashMap<u64, usize> = rows
            .iter()
            .enumerate()
            .map(|(at, row)| (row.cgroup.id(), at))
            .collect();
        for at in (0..rows.len()).rev() {
            let parent = places
                .get(&rows[at].cgroup.record().identity.parent)
                .filter(|&&parent| parent < at);
            if let (Some(&parent), Some(count)) = (parent, rows[at].processes) {
                rows[parent].processes = rows[parent].processes.map(|sum| sum + count);
            }
        }
        Self(rows)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Row<'a>> {
        self.0.iter()
    }

    pub fn retain(&mut self, filter: &Filter) {
        self.0.retain(|row| filter.admits(row));
    }

    /// Brings them in order: by this column, then by path; in a tree below their parents.
    pub fn arrange(&mut self, sort: Option<&Sort>, tree: bool) {
        let by_path = |one: &Row<'_>, other: &Row<'_>| one.path_parts().cmp(other.path_parts());
        let order = |one: &Row<'_>, other: &Row<'_>| {
            let by_value = sort.map_or(Ordering::Equal, |sort| compare(sort, one, other));
            by_value.then_with(|| by_path(one, other))
        };
        self.0.sort_by(order);
        if !tree {
            return;
        }
        let mut children: HashMap<u64, Vec<usize>> = HashMap::new();
        let ids: HashMap<u64, usize> = self
            .0
            .iter()
            .enumerate()
            .map(|(at, row)| (row.cgroup.id(), at))
            .collect();
        let mut left = Vec::new();
        for (at, row) in self.0.iter().enumerate() {
            let parent = row.cgroup.record().identity.parent;
            if row.cgroup.depth() > 0 && ids.contains_key(&parent) {
                children.entry(parent).or_default().push(at);
            } else {
                left.push(at);
            }
        }
        left.reverse();
        let mut places = vec![0; self.0.len()];
        let mut next = 0;
        while let Some(at) = left.pop() {
            places[at] = next;
            next += 1;
            left.extend(
                children
                    .remove(&self.0[at].cgroup.id())
                    .into_iter()
                    .flatten()
                    .rev(),
            );
        }
        let mut rows: Vec<_> = self.0.drain(..).zip(places).collect();
        rows.sort_by_key(|&(_, place)| place);
        self.0.extend(rows.into_iter().map(|(row, _)| row));
    }
}

/// What is not known comes last.
fn compare(sort: &Sort, one: &Row<'_>, other: &Row<'_>) -> Ordering {
    let (one, other) = (sort.column.value(one), sort.column.value(other));
    let order = match (one, other) {
        (Value::Text(one), Value::Text(other)) => one.cmp(other),
        _ => match (one.rank(), other.rank()) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => return Ordering::Greater,
            (Some(_), None) => return Ordering::Less,
            (Some(one), Some(other)) => one.cmp(&other),
        },
    };
    if sort.largest_first {
        order.reverse()
    } else {
        order
    }
}
