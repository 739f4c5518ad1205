//! Orders processes by a number, without a row for each: most of them have not changed since the last snapshot.

use fastproc::{
    Process,
    difference::{Change, Comparison, PerProcess},
};
use fastproc_columns::{Field, Lookup, Ranked, Row, Sorter};

use super::Brief;
use crate::{observation::View, state::State};

/// What to show: every process, in the order of one number.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'a> {
    comparison: Comparison<'a, 'a>,
    field: &'static Field,
    descending: bool,
}

impl<'a> Plain<'a> {
    /// `None`: it takes a row of each process, or the number may change without the record.
    pub fn new(view: &View<'a>, state: &State) -> Option<Self> {
        let settings = &state.settings;
        let (field, descending) = state.chosen.sort.by_number()?;
        let is_plain = field.follows_record(true)
            && !field.is_guarded()
            && settings.idle
            && !settings.threads
            && !settings.tree
            && settings.group.is_none()
            && state.chosen.filter.is_none()
            && state.marked.is_empty()
            && state.follow.is_none()
            && state.seek.is_none();
        let before = view.before.filter(|_| is_plain)?;
        Some(Self {
            comparison: Comparison::new(before, &view.snapshot),
            field,
            descending,
        })
    }

    fn rank(&self, change: Change<'_>, lookup: &mut Lookup) -> Option<u64> {
        self.field.value(&Row::changed(change), lookup).rank()
    }
}

/// The rank of each process if it does nothing, which follows from its record alone.
#[derive(Debug, Default)]
pub struct Ranks {
    by: Option<&'static Field>,
    at_rest: PerProcess<Option<u64>>,
}

impl Ranks {
    /// Adds the rows that fit to `shown`, after moving the window over all.
    pub fn pick<'a>(
        &mut self,
        plain: &Plain<'a>,
        view: &View<'a>,
        (briefs, sorter): (&[Brief], &mut Sorter),
        (state, lookup): (&mut State, &mut Lookup),
        height: usize,
        shown: &mut Vec<Row<'a>>,
    ) {
        if self.by.map(|by| by.name) != Some(plain.field.name) {
            self.by = Some(plain.field);
            self.at_rest = PerProcess::new();
        }
        let rest = |process: Process<'_>| plain.rank(Comparison::at_rest(process), lookup);
        let at_rest = self.at_rest.update(&view.snapshot, rest);
        let exited = view.exited.iter().filter(|_| state.settings.exited);
        let exited: Vec<_> = exited.map(|process| process.change()).collect();
        // Exited processes are behind the others.
        let change = |at: usize| match at.checked_sub(briefs.len()) {
            Some(behind) => exited[behind],
            None => plain.comparison.change(at),
        };
        let kernel_threads = state.settings.kernel_threads;
        let ranked = (0..briefs.len() + exited.len()).filter_map(|at| {
            let resting = briefs.get(at).and_then(|brief| {
                let process = plain.comparison.resting(at)?;
                Some((brief, process))
            });
            let (pid, rank, brief) = if let Some((brief, process)) = resting {
                (process.pid(), at_rest[at], *brief)
            } else {
                let change = change(at);
                let process = change.process;
                (
                    process.pid(),
                    plain.rank(change, lookup),
                    Brief::of(process),
                )
            };
            let ranked = Ranked {
                rank,
                ids: (pid, pid),
                at: at as u32,
            };
            (kernel_threads || !brief.is_kernel_thread).then_some(ranked)
        });
        let order = sorter.order_ranked(plain.descending, ranked, |rows| {
            state.chosen.window.settle(rows, height);
            state.chosen.window.top + height
        });
        let places = order.iter().skip(state.chosen.window.top);
        shown.extend(places.map(|&at| Row::changed(change(at as usize))));
    }
}

#[cfg(test)]
mod tests;
