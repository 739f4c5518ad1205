//! Shows a snapshot: selects, sorts and writes its rows.

use fastproc::{Baseline, Snapshot, exits::Exit, record::Record};
use fastproc_columns::{
    Filter, Lookup, Processes, Row, RowList, Sort, Sorter, forest, with_ancestors,
};

use super::{ps1, selection::Selection, summary::Summary};
use crate::{
    failure::Failure,
    format::{RowWriter, Rows},
    output::{Output, OutputError},
    redraw::Redraw,
    terminal,
};

/// The state for showing snapshots.
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Screen {
    /// Looks up values that are not in a record.
    pub lookup: Lookup,
    /// Writes the rows.
    pub writer: Box<dyn RowWriter>,
    /// The order of the rows.
    pub sort: Sort,
    /// Which rows a tree shows, with their ancestors, if not all.
    pub pick: Option<Sort>,
    /// The largest number of rows.
    pub top: usize,
    /// Whether the height of the terminal limits it.
    pub is_cut: bool,
    /// The processes that lists select.
    pub selection: Selection,
    /// The filter, applied after the selection.
    pub filter: Option<Filter>,
    /// Whether each row is a thread.
    pub threads: bool,
    /// Whether children appear below their parents.
    pub tree: bool,
    /// How ps(1) draws the tree; `None`: like fastproc.
    pub tree_of_ps: Option<ps1::Tree>,
    /// Whether to include processes that exited since the last snapshot.
    pub exited: bool,
    /// Of when the processes are, if they are those of a history: the time of the window's begin and of its end.
    pub past: Option<(Option<i64>, i64)>,
    /// Whether there are several snapshots.
    pub repeated: bool,
    /// The values of a column or in the filter that only root, and for some fields a process's owner, may see.
    pub guarded: Option<String>,
    /// Whether to print no summary.
    pub quiet: bool,
    /// Whether to print it nevertheless if exits were lost, processes are left out, or no row matched what is not known.
    pub warns: bool,
    /// Draws tables over one another, if they are.
    pub redraw: Option<Redraw>,
    /// Sorts rows.
    pub sorter: Sorter,
    /// Standard output.
    pub output: Output,
}

impl Screen {
    /// Shows these rows, which are of a snapshot. Returns whether there are any.
    pub fn show_rows(
        &mut self,
        snapshot: &Snapshot<'_>,
        rows: Vec<Row<'_>>,
    ) -> Result<bool, Failure> {
        let rows = rows.into_iter().filter(|row| self.admits(row)).collect();
        self.write(snapshot, Selected::These(rows), None, None)
    }

    /// Shows a snapshot. Returns whether it had a row.
    pub fn show(
        &mut self,
        snapshot: &Snapshot<'_>,
        before: Option<&Baseline>,
        fallback: Option<&str>,
    ) -> Result<bool, Failure> {
        self.lookup.set_clock(snapshot);
        self.lookup.sees_all =
            snapshot.stats().source.is_guarded() || crate::privileges::may_trace_all();
        let exits = snapshot.exits().filter(|_| self.exited);
        let records: Vec<_> = exits
            .iter()
            .copied()
            .flatten()
            .map(Exit::to_record)
            .collect();
        let rows = self.select(snapshot, before, &records);
        self.write(snapshot, rows, exits.map(<[Exit]>::len), fallback)
    }

    fn write(
        &mut self,
        snapshot: &Snapshot<'_>,
        mut rows: Selected<'_, '_>,
        ended: Option<usize>,
        fallback: Option<&str>,
    ) -> Result<bool, Failure> {
        let room = self.redraw.as_ref().map_or(usize::MAX, Redraw::rows);
        let mut top = self.top.min(room);
        if let Some(pick) = &self.pick {
            let first = self.sorter.first(pick, self.top, &rows, &mut self.lookup);
            rows = Selected::These(with_ancestors::<Processes>(first.collect(), &rows));
            top = room;
        }
        // In a tree or a list any row may come first.
        let order = self.selection.order();
        let is_ordered = self.tree || order.is_some();
        let sorted = if is_ordered { usize::MAX } else { top };
        let sorted = self
            .sorter
            .first(&self.sort, sorted, &rows, &mut self.lookup);
        let (in_order, tree): (Vec<Row<'_>>, _);
        let sorted: Box<dyn ExactSizeIterator<Item = Row<'_>>> = if self.tree {
            if let Some(drawn) = self.tree_of_ps {
                in_order = ps1::in_order(sorted.collect());
                tree = drawn.forest(&in_order);
            } else {
                in_order = sorted.collect();
                tree = forest(&in_order);
            }
            Box::new(tree.iter().take(top).map(|(at, branch)| Row {
                branch,
                ..in_order[*at]
            }))
        } else if let Some(order) = order {
            let mut rows: Vec<Row<'_>> = sorted.collect();
            rows.sort_by_key(|row| order.iter().position(|&pid| pid == row.process.pid()));
            Box::new(rows.into_iter().take(top))
        } else {
            Box::new(sorted)
        };
        let shown = sorted.len();
        let stats = snapshot.stats();
        let summary = Summary {
            snapshot: *snapshot,
            ended,
            past: self.past,
            shown,
            threads: self.threads,
            fallback,
            is_cut: self.is_cut,
            hidden: self
                .guarded
                .as_deref()
                .filter(|_| !crate::privileges::may_trace_all()),
        };
        let rows = Rows {
            document: summary.document(),
            boottime_ns: self.repeated.then_some(stats.boottime_ns),
            shown: Box::new(sorted),
        };
        let is_wrong = stats.left_out > 0
            || self.exited && stats.lost_exits > 0
            || shown == 0 && summary.hidden.is_some();
        let mut summary = Some(summary).filter(|_| !self.quiet || (is_wrong && self.warns));
        if let Some(redraw) = &mut self.redraw {
            let mut table = Vec::new();
            self.writer
                .write(rows, &mut self.lookup, &mut table)
                .map_err(OutputError::from)?;
            let line = summary
                .take_if(|_| terminal::shows_errors())
                .map(|summary| summary.line());
            redraw
                .draw(&table, line.as_deref(), &mut self.output)
                .map_err(OutputError::from)?;
        } else {
            self.writer
                .write(rows, &mut self.lookup, &mut self.output)
                .map_err(OutputError::from)?;
        }
        self.output.finish()?;
        if let Some(summary) = summary {
            summary.write();
        }
        Ok(shown > 0)
    }

    fn admits(&mut self, row: &Row<'_>) -> bool {
        let filter = self.filter.as_ref();
        self.selection.admits(row)
            && filter.is_none_or(|filter| filter.admits(row, &mut self.lookup))
    }

    /// The processes or threads that the filter admits.
    fn select<'s, 'a>(
        &mut self,
        snapshot: &'s Snapshot<'a>,
        before: Option<&Baseline>,
        records: &'a [Record],
    ) -> Selected<'s, 'a> {
        let admits_all = self.filter.is_none() && self.selection.admits_all();
        if admits_all && before.is_none() && !self.threads {
            return Selected::All(snapshot);
        }
        let (threads, exited) = (self.threads, self.exited);
        let mut rows = Vec::with_capacity(if admits_all { snapshot.len() } else { 0 });
        let mut take = |row: Row<'a>| {
            if self.admits(&row) {
                rows.push(row);
            }
        };
        Row::all(snapshot, before, threads).for_each(&mut take);
        if let Some(before) = before.filter(|_| exited) {
            Row::all_ended(*snapshot, before, records).for_each(take);
        }
        Selected::These(rows)
    }
}

/// The rows to show.
enum Selected<'s, 'a> {
    /// All processes of a snapshot, which is not compared with another.
    All(&'s Snapshot<'a>),
    These(Vec<Row<'a>>),
}

impl<'a> RowList<'a> for Selected<'_, 'a> {
    fn len(&self) -> usize {
        match self {
            Self::All(snapshot) => snapshot.len(),
            Self::These(rows) => rows.len(),
        }
    }

    fn row(&self, place: usize) -> Row<'a> {
        match self {
            Self::All(snapshot) => snapshot.row(place),
            Self::These(rows) => rows[place],
        }
    }
}
