//! The rows of the table: cgroups with their changes and numbers of processes.

use std::collections::{HashMap, HashSet};

use fastproc::cgroups::{Baseline, Cgroup, Changes, Snapshot, StatLine, record::Memory};

use super::{Cgroups, Filter, Lookup, Sort};
use crate::{
    Forest, Sorter,
    value::{Unit, Value},
    with_ancestors,
};

/// The processes of each cgroup, without its descendants.
#[derive(Clone, Debug)]
pub struct Members {
    of: HashMap<u64, Own>,
    knows_waits: bool,
}

#[derive(Clone, Copy, Debug)]
struct Own {
    processes: u64,
    /// The share of time in which they waited for a CPU, of all their threads. Unknown if it is of one of them.
    wait: Option<f64>,
}

impl Members {
    /// Counts the processes of a snapshot with [`Fields::CGROUP`](fastproc::Fields::CGROUP), except those whose cgroup
    /// is unknown: it was removed, or is out of sight. `None`: no process has a known cgroup. `before`: to also add up what
    /// they have waited for a CPU since then.
    pub fn new(
        processes: &fastproc::Snapshot<'_>,
        before: Option<&fastproc::Baseline>,
    ) -> Option<Self> {
        let Some(before) = before else {
            let ids = processes.iter().map(fastproc::Process::cgroup_id);
            return Self::count(ids.map(|id| (id, None)));
        };
        let changes = before.changes(processes);
        Self::count(changes.map(|change| (change.process.cgroup_id(), change.wait_share)))
    }

    fn count(processes: impl Iterator<Item = (Option<u64>, Option<f64>)>) -> Option<Self> {
        let mut members = Self {
            of: HashMap::new(),
            knows_waits: false,
        };
        for (id, wait) in processes {
            let Some(id) = id else {
                continue;
            };
            let own = members.of.entry(id).or_insert(Own {
                processes: 0,
                wait: Some(0.0),
            });
            own.processes += 1;
            own.wait = own.wait.zip(wait).map(|(sum, of)| sum + of);
            members.knows_waits |= wait.is_some();
        }
        (!members.of.is_empty()).then_some(members)
    }

    fn of(&self, id: u64) -> u64 {
        self.of.get(&id).map_or(0, |own| own.processes)
    }

    fn wait(&self, id: u64) -> Option<f64> {
        let wait = self.of.get(&id).map_or(Some(0.0), |own| own.wait);
        wait.filter(|_| self.knows_waits)
    }
}

/// The lines of memory.stat that columns need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lines {
    pub(super) anon: Option<StatLine>,
    pub(super) file: Option<StatLine>,
    pub(super) kernel: Option<StatLine>,
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
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Row<'a> {
    /// The cgroup.
    pub cgroup: Cgroup<'a>,
    /// The changes since the previous snapshot.
    pub changes: Changes,
    /// Its processes and those of its descendants, if they are known.
    pub processes: Option<u64>,
    /// Its processes without those of its descendants.
    pub own_processes: Option<u64>,
    /// The share of time in which its processes and those of its descendants waited for a CPU, of all their threads: 1.0 is one
    /// thread that always waits. Processes that have exited since do not count.
    pub wait: Option<f64>,
    pub(super) lines: Lines,
    /// Its place among all rows in the order of the paths.
    pub(super) place: u32,
    /// In a tree, the number of its ancestors among the rows.
    pub(super) level: usize,
    /// In a tree, whether its descendants are left out.
    pub(super) is_folded: bool,
    /// Where its path goes on after that of the nearest of them.
    rest: usize,
}

/// The ids of a cgroup of a snapshot and of its descendants.
pub fn with_descendants(snapshot: Snapshot<'_>, id: u64) -> HashSet<u64> {
    let mut within = HashSet::from([id]);
    // Parents come before their children.
    for cgroup in snapshot.iter() {
        if within.contains(&cgroup.record().identity.parent) {
            within.insert(cgroup.id());
        }
    }
    within
}

impl<'a> Row<'a> {
    /// The row of one cgroup, without those of the others; the arguments are those of [`Rows::new`].
    pub fn new(
        id: u64,
        snapshot: Snapshot<'a>,
        before: Option<&Baseline>,
        members: Option<&Members>,
    ) -> Option<Self> {
        let cgroup = snapshot.iter().find(|cgroup| cgroup.id() == id)?;
        let lines = Lines::new(snapshot.memory_stat_lines());
        let mut row = Self::of(cgroup, lines, snapshot, before, members);
        row.processes = members.map(|members| {
            let within = with_descendants(snapshot, id);
            row.wait = within.iter().map(|&id| members.wait(id)).sum();
            within.into_iter().map(|id| members.of(id)).sum()
        });
        Some(row)
    }

    /// The row of this cgroup, with its own processes only.
    fn of(
        cgroup: Cgroup<'a>,
        lines: Lines,
        snapshot: Snapshot<'a>,
        before: Option<&Baseline>,
        members: Option<&Members>,
    ) -> Self {
        let own = members.map(|members| members.of(cgroup.id()));
        let changes = before.map(|before| before.changes(snapshot, cgroup));
        Self {
            cgroup,
            changes: changes.unwrap_or_default(),
            processes: own,
            own_processes: own,
            wait: members.and_then(|members| members.wait(cgroup.id())),
            lines,
            place: 0,
            level: 0,
            is_folded: false,
            rest: 0,
        }
    }
}

impl<'a> Row<'a> {
    pub(super) fn stat(&self, line: Option<StatLine>) -> Option<u64> {
        self.cgroup.memory_stat_value(line?)
    }

    /// The folders of its path. Sorting by them puts parents right before their descendants.
    fn path_parts(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let path = self.cgroup.path();
        path.split(|&byte| byte == b'/')
            .filter(|part| !part.is_empty())
    }

    /// Its path below the nearest ancestor among the rows; the whole path without one.
    pub(super) fn path_below(&self) -> &'a [u8] {
        &self.cgroup.path()[self.rest..]
    }

    /// The working set as in cAdvisor: memory in use without inactive file pages.
    pub fn working_set(&self) -> Option<u64> {
        let current = self.cgroup.memory()?.current()?;
        Some(current.saturating_sub(self.stat(self.lines.inactive_file)?))
    }
}

/// All rows, in order.
#[derive(Debug)]
pub struct Rows<'a> {
    rows: Vec<Row<'a>>,
    /// How many cgroups the snapshot lacks because their paths are too long.
    left_out: usize,
}

impl<'a> Rows<'a> {
    /// All cgroups of a snapshot. `before`: the snapshot to compare with, if there is one. `members`: their numbers of
    /// processes, if known.
    pub fn new(
        snapshot: Snapshot<'a>,
        before: Option<&Baseline>,
        members: Option<&Members>,
    ) -> Self {
        let lines = Lines::new(snapshot.memory_stat_lines());
        let mut rows: Vec<_> = snapshot
            .iter()
            .map(|cgroup| Row::of(cgroup, lines, snapshot, before, members))
            .collect();
        // Parents come before their children, so in reverse order each child's sum is complete before its parent adds
        // it.
        let places: HashMap<u64, usize> = rows
            .iter()
            .enumerate()
            .map(|(at, row)| (row.cgroup.id(), at))
            .collect();
        for at in (0..rows.len()).rev() {
            let parent = places
                .get(&rows[at].cgroup.record().identity.parent)
                .filter(|&&parent| parent < at);
            let Some(&parent) = parent else {
                continue;
            };
            let Row {
                processes, wait, ..
            } = rows[at];
            let sum = &mut rows[parent];
            sum.processes = sum.processes.zip(processes).map(|(sum, of)| sum + of);
            sum.wait = sum.wait.zip(wait).map(|(sum, of)| sum + of);
        }
        let left_out = snapshot.left_out();
        Self { rows, left_out }
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row at this place.
    pub fn get(&self, at: usize) -> Option<&Row<'a>> {
        self.rows.get(at)
    }

    /// All rows, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Row<'a>> {
        self.rows.iter()
    }

    /// Finds the place of each row below its ancestors among the rows. They come before it, in a tree and in a snapshot.
    fn nest(&mut self) {
        let mut above: Vec<&[u8]> = Vec::new();
        for row in &mut self.rows {
            let path = row.cgroup.path();
            let rest = loop {
                let Some(nearest) = above.last() else {
                    break path;
                };
                let inside = path.strip_prefix(nearest.strip_suffix(b"/").unwrap_or(nearest));
                match inside.and_then(|rest| rest.strip_prefix(b"/")) {
                    Some(rest) => break rest,
                    None => above.pop(),
                };
            };
            (row.level, row.rest) = (above.len(), path.len() - rest.len());
            above.push(path);
        }
    }

    /// Puts the rows that the filter admits in an order: by `sort`, then by path; in a tree below their parents, without the
    /// descendants of those whose ids are folded.
    pub fn arrange(
        &mut self,
        sort: Option<&Sort>,
        tree: Option<&HashSet<u64>>,
        filter: Option<&Filter>,
    ) {
        let mut lookup = Lookup::default();
        let by_path = |one: &Row<'_>, other: &Row<'_>| one.path_parts().cmp(other.path_parts());
        self.rows.sort_by(by_path);
        for (row, place) in self.rows.iter_mut().zip(0..) {
            row.place = place;
        }
        let take = |rows: &[Row<'a>], places: &mut dyn Iterator<Item = u32>| -> Vec<Row<'a>> {
            places.map(|place| rows[place as usize]).collect()
        };
        if let Some(sort) = sort {
            let mut sorter = Sorter::default();
            let order = sorter.order(sort, usize::MAX, self.rows.as_slice(), &mut lookup);
            self.rows = take(&self.rows, &mut order.iter().copied());
        }
        if let Some(folded) = tree {
            for row in &mut self.rows {
                row.is_folded = folded.contains(&row.cgroup.id());
            }
            let mut forest = Forest::<Cgroups>::default();
            let order = 0..self.rows.len() as u32;
            let branches = forest.arrange(&self.rows, order, |id| folded.contains(&id));
            self.rows = take(&self.rows, &mut branches.iter().map(|branch| branch.at));
        }
        if let Some(filter) = filter {
            self.rows.retain(|row| filter.admits(row, &mut lookup));
        }
        if tree.is_some() {
            self.nest();
        }
    }

    /// Of a tree, keeps the rows that are the first by `sort`, and their ancestors.
    pub fn keep_first(&mut self, sort: &Sort, top: usize) {
        let mut sorter = Sorter::default();
        let first = sorter.first(sort, top, self.rows.as_slice(), &mut Lookup::default());
        let kept = with_ancestors::<Cgroups>(first.collect(), self.rows.as_slice());
        let kept: HashSet<u64> = kept.iter().map(|row| row.cgroup.id()).collect();
        self.rows.retain(|row| kept.contains(&row.cgroup.id()));
        self.nest();
    }

    /// A line with totals. Of nested cgroups only the outermost counts, but the root only for what it has: it lacks some files.
    pub fn total(&self) -> String {
        let (mut memory, mut cpu, mut processes) = (None, None, None);
        let mut ordered: Vec<_> = self.iter().collect();
        ordered.sort_by(|one, other| one.path_parts().cmp(other.path_parts()));
        let mut outer: &[u8] = b"/";
        for row in ordered {
            let path = row.cgroup.path();
            let is_inside = outer != b"/"
                && path
                    .strip_prefix(outer)
                    .is_some_and(|rest| rest.starts_with(b"/"));
            if path == b"/" || is_inside {
                continue;
            }
            outer = path;
            let current = row.cgroup.memory().and_then(Memory::current);
            memory = current.map_or(memory, |value| Some(memory.unwrap_or(0) + value));
            cpu = row
                .changes
                .cpu
                .map_or(cpu, |value| Some(cpu.unwrap_or(0.0) + value));
            processes = row
                .processes
                .map_or(processes, |value| Some(processes.unwrap_or(0) + value));
        }
        if let Some(root) = self.iter().find(|row| row.cgroup.path() == b"/") {
            memory = root.cgroup.memory().and_then(Memory::current).or(memory);
            cpu = root.changes.cpu.or(cpu);
            processes = root.processes.or(processes);
        }
        let noun = if self.len() == 1 { "cgroup" } else { "cgroups" };
        let mut text = format!("{} {noun}", self.len()).into_bytes();
        if self.left_out > 0 {
            let left_out = format!(", {} left out with those below them", self.left_out);
            text.extend_from_slice(left_out.as_bytes());
        }
        let mut add = |name: &str, value: Value<'_>, unit: Unit| {
            if value.kind().is_some() {
                text.extend_from_slice(format!(", {name} ").as_bytes());
                value.write_for_table(unit, &mut text);
            }
        };
        add("memory", Value::known(memory, Value::Unsigned), Unit::Bytes);
        add(
            "%CPU",
            Value::known(cpu, |cpu: f64| Value::Real(cpu * 100.0)),
            Unit::Percent,
        );
        add(
            "processes",
            Value::known(processes, Value::Unsigned),
            Unit::Number,
        );
        String::from_utf8_lossy(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use fastproc::cgroups::{Cgroups, Fields};

    use super::{
        super::{Lookup, find},
        *,
    };

    /// A new folder with these folders in it.
    fn folder(name: &str, paths: &[&str]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("fastproc-{name}-{}", std::process::id()));
        for path in paths {
            std::fs::create_dir_all(folder.join(path)).expect("the folder is made");
        }
        folder
    }

    /// A row whose parent is not shown is below the nearest ancestor that is, and says which it is of it.
    #[test]
    fn a_filtered_tree_has_whole_paths_below_what_is_shown() {
        let folder = folder("nested", &["a/b/c/d", "a/x", "ab/c"]);
        let mut cgroups = Cgroups::builder()
            .open_recorded(&folder)
            .expect("it is a folder");
        let snapshot = cgroups.snapshot().expect("it is a folder");
        let path = find("path").expect("a column");
        let first = |filter: &str, top| {
            let mut rows = Rows::new(snapshot, None, None);
            let filter = (!filter.is_empty()).then(|| filter.parse().expect("a filter"));
            rows.arrange(None, Some(&HashSet::new()), filter.as_ref());
            rows.keep_first(&"-depth".parse().expect("a field"), top);
            let lines = rows.iter().map(|row| {
                let mut text = Vec::new();
                path.write_for_table(row, &mut Lookup::default(), &mut text);
                String::from_utf8(text).expect("text")
            });
            lines.collect::<Vec<_>>()
        };
        let shown = |filter| first(filter, usize::MAX);
        let all = [
            "/",
            "  a",
            "    b",
            "      c",
            "        d",
            "    x",
            "  ab",
            "    c",
        ];
        assert_eq!(shown(""), all);
        assert_eq!(first("", 1), all[..5]);
        assert_eq!(first("", 0), [""; 0]);
        assert_eq!(shown("name == c"), ["/a/b/c", "/ab/c"]);
        assert_eq!(
            shown("name == a || name == c || name == d"),
            ["/a", "  b/c", "    d", "/ab/c"]
        );
        assert_eq!(shown("depth == 0 || name == c"), ["/", "  a/b/c", "  ab/c"]);
        std::fs::remove_dir_all(&folder).expect("the folder is removed");
    }

    #[test]
    fn the_total_says_how_many_are_left_out() {
        let folder = folder("left-out", &["long"]);
        let bounds = fastproc::cgroups::Bounds {
            path_bytes: "/lon".len(),
            ..fastproc::cgroups::Bounds::default()
        };
        let builder = Cgroups::builder().bounds(bounds);
        let mut cgroups = builder.open_recorded(&folder).expect("it is a folder");
        let snapshot = cgroups.snapshot().expect("it is a folder");
        let total = Rows::new(snapshot, None, None).total();
        assert_eq!(total, "1 cgroup, 1 left out with those below them");
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn a_process_without_a_known_cgroup_leaves_the_others_counted() {
        let count = |all: &[_]| Members::count(all.iter().copied());
        let five = [
            (Some(5), Some(0.5)),
            (None, Some(9.0)),
            (Some(5), Some(0.25)),
            (Some(7), Some(0.25)),
            (Some(7), None),
        ];
        let members = count(&five).expect("one is known");
        assert_eq!((members.of(5), members.of(6), members.of(7)), (2, 0, 2));
        assert_eq!((members.wait(5), members.wait(6)), (Some(0.75), Some(0.0)));
        assert_eq!(members.wait(7), None, "what one of them waited is unknown");
        assert!(count(&[(None, None), (None, Some(1.0))]).is_none());
        let members = count(&[(Some(5), None)]).expect("one is known");
        assert_eq!(members.wait(5), None, "nobody knows what they waited");
    }

    #[test]
    fn a_cgroup_adds_up_what_its_descendants_have() {
        let folder = folder("descendants", &["a/b"]);
        let builder = Cgroups::builder();
        let mut cgroups = builder.open_recorded(&folder).expect("it is a folder");
        let snapshot = cgroups.snapshot().expect("it is a folder");
        let one_in_each = snapshot
            .iter()
            .map(|cgroup| (Some(cgroup.id()), Some(0.25)));
        let members = Members::count(one_in_each);
        let rows = Rows::new(snapshot, None, members.as_ref());
        let sums = rows.iter().map(|row| (row.processes, row.wait));
        assert_eq!(
            sums.collect::<Vec<_>>(),
            [
                (Some(3), Some(0.75)),
                (Some(2), Some(0.5)),
                (Some(1), Some(0.25))
            ]
        );
        let _ = std::fs::remove_dir_all(folder);
    }

    #[test]
    fn the_working_set_is_unknown_without_inactive_file_pages() {
        let folder = folder("working-set", &["a"]);
        let write = |file: &str, text| {
            std::fs::write(folder.join(file), text).expect("the file is written");
        };
        write("cgroup.controllers", "memory\n");
        write("a/memory.current", "5\n");
        let builder = Cgroups::builder().fields(Fields::MEMORY | Fields::MEMORY_STAT);
        let mut cgroups = builder
            .open_recorded(&folder)
            .expect("the folder can be read");
        let snapshot = cgroups.snapshot().expect("the folder can be read");
        let rows = Rows::new(snapshot, None, None);
        let row = rows.get(1).expect("it comes after the root");
        assert_eq!(row.cgroup.memory().and_then(Memory::current), Some(5));
        assert_eq!(row.working_set(), None);
        let _ = std::fs::remove_dir_all(folder);
    }
}
