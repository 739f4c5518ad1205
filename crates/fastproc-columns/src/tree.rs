//! Rows below their parents.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    field::{Processes, Subject},
    row::Row,
    sort::RowList,
};

/// Levels that are drawn. Deeper branches do not move further to the right, so a long chain of processes does not make
/// long lines.
const DEEPEST: u32 = 60;

/// No row.
const NONE: u32 = u32::MAX;

/// The place of a row in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The index of the row.
    pub at: u32,
    /// The number of ancestors, limited to what is drawn.
    pub depth: u32,
    /// Whether it has children.
    pub is_parent: bool,
    /// The levels at which a sibling follows further down, up to its own, as bits.
    open: u64,
}

impl Branch {
    /// Appends the branches before a name as ps(1) writes them: ` \\_ `.
    pub fn write(&self, to: &mut Vec<u8>) {
        self.write_as([" |  ", "    ", " \\_ ", " \\_ "], to);
    }

    /// Appends them as lines: `├─ `.
    pub fn write_lines(&self, to: &mut Vec<u8>) {
        self.write_as(["│  ", "   ", "├─ ", "└─ "], to);
    }

    fn write_as(&self, [open, closed, fork, last]: [&str; 4], to: &mut Vec<u8>) {
        for level in 1..=self.depth {
            let form = match (self.open & 1 << level != 0, level == self.depth) {
                (true, false) => open,
                (false, false) => closed,
                (true, true) => fork,
                (false, true) => last,
            };
            to.extend_from_slice(form.as_bytes());
        }
    }
}

/// Puts rows below their parents. Its memory is used again for the next snapshot.
#[derive(Debug, Default)]
pub struct Forest<S: Subject = Processes> {
    by_id: Vec<(S::Id, u32)>,
    first_child: Vec<u32>,
    next_sibling: Vec<u32>,
    roots: Vec<u32>,
    seen: Vec<bool>,
    open: Vec<Branch>,
    branches: Vec<Branch>,
}

impl<S: Subject> Forest<S> {
    /// Places every row below that of its parent. Rows without a parent among the rows are the roots; children keep the
    /// given order. Descendants of a `folded` row are left out.
    pub fn arrange(
        &mut self,
        rows: &[S::Row<'_>],
        order: impl DoubleEndedIterator<Item = u32> + Clone,
        folded: impl Fn(S::Id) -> bool,
    ) -> &[Branch] {
        self.link(rows, order.clone());
        self.seen.clear();
        self.seen.resize(rows.len(), false);
        self.branches.clear();
        let roots = std::mem::take(&mut self.roots);
        for &root in roots.iter().rev() {
            self.descend(root, rows, &folded);
        }
        self.roots = roots;
        // A process that got another parent while the table was read could be its own ancestor. Each row is drawn
        // exactly once.
        if self.seen.contains(&false) {
            for at in order {
                self.descend(at, rows, &folded);
            }
        }
        &self.branches
    }

    /// Makes lists of children, each in the order of the rows. The roots are in reverse order.
    fn link(&mut self, rows: &[S::Row<'_>], order: impl DoubleEndedIterator<Item = u32>) {
        self.by_id.clear();
        let ids = rows.iter().zip(0..);
        self.by_id.extend(ids.map(|(row, at)| (S::id(row), at)));
        self.by_id.sort_unstable();
        for list in [&mut self.first_child, &mut self.next_sibling] {
            list.clear();
            list.resize(rows.len(), NONE);
        }
        self.roots.clear();
        for at in order.rev() {
            let above = S::parent(&rows[at as usize]);
            let parent = self.by_id.binary_search_by_key(&above, |&(id, _)| id);
            match parent.map(|parent| self.by_id[parent].1) {
                Ok(parent) if parent != at => {
                    let first = &mut self.first_child[parent as usize];
                    self.next_sibling[at as usize] = std::mem::replace(first, at);
                }
                _ => self.roots.push(at),
            }
        }
    }

    /// Appends the tree below a root. Folded rows are marked as seen, but not drawn.
    fn descend(&mut self, root: u32, rows: &[S::Row<'_>], folded: impl Fn(S::Id) -> bool) {
        let branch = |at, depth, open| Branch {
            at,
            depth,
            is_parent: false,
            open,
        };
        let mut hidden_below = None;
        self.open.push(branch(root, 0, 0));
        while let Some(mut next) = self.open.pop() {
            let at = next.at as usize;
            let sibling = self.next_sibling[at];
            if next.depth > 0 && sibling != NONE {
                self.open.push(branch(sibling, next.depth, next.open));
            }
            if std::mem::replace(&mut self.seen[at], true) {
                continue;
            }
            let child = self.first_child[at];
            next.is_parent = child != NONE;
            if next.depth > 0 && sibling != NONE {
                next.open |= 1 << next.depth;
            }
            if hidden_below.is_some_and(|depth| next.depth <= depth) {
                hidden_below = None;
            }
            if hidden_below.is_none() {
                self.branches.push(next);
                if next.is_parent && next.depth < DEEPEST && folded(S::id(&rows[at])) {
                    hidden_below = Some(next.depth);
                }
            }
            if child != NONE {
                // The deepest level has no room for more.
                let depth = next.depth + u32::from(next.depth <= DEEPEST);
                self.open.push(branch(child, depth, next.open));
            }
        }
    }
}

/// Places every row below that of its parent, with all its descendants, as [`Forest`] does.
///
/// Returns for each row its index in `rows`, and the branches before its name: ` \\_ `.
pub fn forest(rows: &[Row<'_>]) -> Vec<(usize, Vec<u8>)> {
    let mut forest = Forest::<Processes>::default();
    let branches = forest.arrange(rows, 0..rows.len() as u32, |_| false);
    let drawn = branches.iter().map(|branch| {
        let mut drawn = Vec::new();
        branch.write(&mut drawn);
        (branch.at as usize, drawn)
    });
    drawn.collect()
}

/// Rows, and their ancestors among all rows.
pub fn with_ancestors<'a, S: Subject>(
    mut rows: Vec<S::Row<'a>>,
    all: &(impl RowList<'a, S> + ?Sized),
) -> Vec<S::Row<'a>> {
    let all = (0..all.len()).map(|at| all.row(at));
    let all: BTreeMap<S::Id, S::Row<'_>> = all.map(|row| (S::id(&row), row)).collect();
    let mut known: BTreeSet<S::Id> = rows.iter().map(S::id).collect();
    for at in 0.. {
        let Some(row) = rows.get(at) else { break };
        let parent = all.get(&S::parent(row));
        rows.extend(parent.filter(|parent| known.insert(S::id(parent))));
    }
    rows
}

#[cfg(test)]
mod tests {
    use fastproc::{Process, record::Record};

    use super::*;

    fn drawn(processes: &[(u32, u32)]) -> Vec<String> {
        let record = |&(tgid, ppid): &(u32, u32)| {
            let mut record = Record::default();
            record.identity.tgid = tgid;
            record.identity.ppid = ppid;
            record
        };
        let records: Vec<_> = processes.iter().map(record).collect();
        let rows: Vec<_> = records
            .iter()
            .map(|record| Row::new(Process::new(record, &[])))
            .collect();
        forest(&rows)
            .into_iter()
            .map(|(i, branch)| {
                let branch = String::from_utf8(branch).expect("text");
                format!("{branch}{}", rows[i].process.pid())
            })
            .collect()
    }

    #[test]
    fn children_stand_below_their_parents() {
        assert_eq!(
            drawn(&[(1, 0), (2, 0), (3, 1), (4, 3), (5, 1), (6, 5), (9, 7)]),
            [
                "1",
                r" \_ 3",
                r" |   \_ 4",
                r" \_ 5",
                r"     \_ 6",
                "2",
                "9"
            ]
        );
    }

    #[test]
    fn a_circle_is_drawn_once() {
        assert_eq!(drawn(&[(1, 2), (2, 1), (3, 3)]), ["3", "1", r" \_ 2"]);
    }

    #[test]
    fn a_long_chain_stays_narrow() {
        let chain: Vec<_> = (1..2000).map(|pid| (pid, pid - 1)).collect();
        let lines = drawn(&chain);
        assert_eq!(lines.len(), chain.len());
        assert!(
            lines
                .iter()
                .all(|line| line.len() <= 4 * DEEPEST as usize + 8)
        );
    }

    #[test]
    fn children_of_a_folded_row_are_left_out() {
        let processes = [(1, 0), (2, 1), (3, 2), (4, 1), (5, 0), (6, 5)];
        let record = |&(tgid, ppid): &(u32, u32)| {
            let mut record = Record::default();
            record.identity.tgid = tgid;
            record.identity.ppid = ppid;
            record
        };
        let records: Vec<_> = processes.iter().map(record).collect();
        let row = |record| Row::new(Process::new(record, &[]));
        let rows: Vec<_> = records.iter().map(row).collect();
        let mut forest = Forest::<Processes>::default();
        let shown = |forest: &mut Forest, folded: &[u32]| -> Vec<u32> {
            let branches = forest.arrange(&rows, 0..6, |pid| folded.contains(&pid));
            branches
                .iter()
                .map(|branch| rows[branch.at as usize].process.pid())
                .collect()
        };
        assert_eq!(shown(&mut forest, &[]), [1, 2, 3, 4, 5, 6]);
        assert_eq!(shown(&mut forest, &[2, 5]), [1, 2, 4, 5]);
        assert_eq!(shown(&mut forest, &[1]), [1, 5, 6]);
        assert_eq!(shown(&mut forest, &[3, 4]), [1, 2, 3, 4, 5, 6]);
    }
}
