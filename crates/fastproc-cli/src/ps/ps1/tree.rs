//! Children below their parents, in the form of ps(1).

use std::collections::HashSet;

use fastproc_columns::{Row, forest};

/// How a tree is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// With lines; children of the first process are drawn beside it.
    Lines,
    /// With spaces.
    Spaces,
}

/// Moves rows without a parent among them to the front, the last one first. `rows` are in the order of their parents,
/// then of another key.
pub fn in_order(rows: Vec<Row<'_>>) -> Vec<Row<'_>> {
    let shown: HashSet<u32> = rows.iter().map(|row| row.process.pid()).collect();
    let is_root = |row: &Row<'_>| {
        let ppid = row.process.identity().ppid;
        !shown.contains(&ppid) || ppid == row.process.pid()
    };
    let (mut roots, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_root);
    roots.reverse();
    roots.extend(others);
    roots
}

impl Tree {
    /// The order of the rows, and the branches before each name.
    pub fn forest(self, rows: &[Row<'_>]) -> Vec<(usize, Vec<u8>)> {
        let mut tree = forest(rows);
        let mut root = 0;
        for (at, branch) in &mut tree {
            if branch.is_empty() {
                root = rows[*at].process.pid();
            } else if self == Self::Lines && root == 1 {
                branch.drain(..LEVEL);
            }
            if self == Self::Spaces {
                *branch = vec![b' '; branch.len() / 2];
            }
        }
        tree
    }
}

/// Columns for each level.
const LEVEL: usize = 4;

#[cfg(test)]
mod tests {
    use fastproc::{Process, record::Record};

    use super::*;

    #[test]
    fn the_last_tree_comes_first_and_what_was_adopted_stands_beside_the_first_process() {
        let record = |(tgid, ppid)| {
            let mut record = Record::default();
            record.identity.tgid = tgid;
            record.identity.ppid = ppid;
            record
        };
        // In the order of parent and start.
        let records = [(1, 0), (2, 0), (7, 1), (8, 1), (3, 2), (9, 7), (6, 5)].map(record);
        let rows = || {
            let rows = records
                .iter()
                .map(|record| Row::new(Process::new(record, &[])));
            in_order(rows.collect())
        };
        let drawn = |tree: Tree| {
            let rows = rows();
            let lines = tree.forest(&rows).into_iter();
            lines
                .map(|(at, branch)| {
                    let branch = String::from_utf8(branch).expect("text");
                    format!("{branch}{}", rows[at].process.pid())
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(
            drawn(Tree::Lines),
            ["6", "2", r" \_ 3", "1", "7", r" \_ 9", "8"]
        );
        assert_eq!(
            drawn(Tree::Spaces),
            ["6", "2", "  3", "1", "  7", "    9", "  8"]
        );
    }
}
