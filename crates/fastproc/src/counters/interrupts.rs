//! `/proc/interrupts`: words kept from the text, counts from the descriptors.

use std::time::Duration;

use super::{
    Error,
    arch::ArchRow,
    gather::arch_count,
    kept_file::KeptFile,
    layout::{IRQ_ROWS, IrqWords},
    shared::{Plan, SlotState},
};
use crate::text::interrupts::{Interrupts, Renderer};

/// The source of a row's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// A descriptor, by its place in the list.
    Descriptor(usize),
    Arch(ArchRow),
    /// The text: error counts, which have one column.
    Text,
}

/// The rows, and their inputs.
#[derive(Debug, Default)]
pub(super) struct InterruptRows {
    rows: Interrupts,
    sources: Vec<Source>,
    /// By index in the list of descriptors: what decides the words of its row, and whether it has one.
    words: Vec<(IrqWords, bool)>,
    irqs: Vec<u32>,
    read: Duration,
    renderer: Renderer,
    failures: u32,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    words: Vec<IrqWords>,
    /// Row by row, for each possible CPU.
    counts: Vec<u32>,
}

/// After this many failures the rows are not tried again.
const FAILURES: u32 = 3;

impl InterruptRows {
    pub(super) fn given_up(&self) -> bool {
        self.failures >= FAILURES
    }

    pub(super) fn text(&self) -> &[u8] {
        self.renderer.text()
    }

    /// Updates the rows. `false`: read the file instead this time.
    pub(super) fn update(
        &mut self,
        state: &mut SlotState,
        plan: &Plan,
        now: Duration,
        oldest: Duration,
        file: &mut KeptFile,
    ) -> Result<bool, Error> {
        let mut counts = std::mem::take(&mut self.counts);
        let mut result = counts.read(state);
        if result.is_ok() && (self.is_stale(&counts, state, plan) || self.read < oldest) {
            result = self.learn(&mut counts, state, plan, now, file);
        }
        let current = result.is_ok() && !self.is_stale(&counts, state, plan);
        if current {
            self.fill(&counts, state, plan);
            self.renderer.rerender(&self.rows);
        }
        self.counts = counts;
        result.map(|()| current)
    }

    /// Whether the words may have changed.
    fn is_stale(&self, counts: &Counts, state: &SlotState, plan: &Plan) -> bool {
        let cpus = state.slot.object().shape.cpus as usize;
        let Some(irqs) = state
            .descriptors
            .is_listed()
            .then(|| state.descriptors.irqs())
        else {
            return true;
        };
        self.rows.cpus != plan.routes.online
            || self.irqs != irqs
            || counts.words.len() != self.words.len()
            || self.words.iter().zip(&counts.words).enumerate().any(
                |(at, ((known, shown), words))| {
                    // a descriptor without a handler has a row once it has counted
                    known != words
                        || !shown
                            && counts.counts[at * cpus..(at + 1) * cpus]
                                .iter()
                                .any(|&count| count != 0)
                },
            )
    }

    /// Reads the text between two readings of the descriptors that must agree, and compares.
    fn learn(
        &mut self,
        counts: &mut Counts,
        state: &mut SlotState,
        plan: &Plan,
        now: Duration,
        file: &mut KeptFile,
    ) -> Result<(), Error> {
        let before = std::mem::take(counts);
        let text = file.read()?;
        let rows = Interrupts::parse(text)?;
        counts.read(state)?;
        self.failures += 1;
        let cpus = state.slot.object().shape.cpus as usize;
        let irqs = state.descriptors.irqs();
        if before.words != counts.words
            || rows.cpus != plan.routes.online
            || self.renderer.render(&rows) != text
        {
            return Ok(());
        }
        let mut sources = Vec::with_capacity(rows.rows.len());
        let mut shown = vec![false; irqs.len()];
        for row in &rows.rows {
            let label = std::str::from_utf8(row.label.trim_ascii()).unwrap_or_default();
            let arch = plan
                .routes
                .arch_rows
                .iter()
                .find(|(name, _)| *name == label)
                .map(|(_, row)| *row);
            sources.push(match (row.irq(), arch) {
                (Some(irq), _) => {
                    let Ok(at) = irqs.binary_search(&irq) else {
                        return Ok(());
                    };
                    shown[at] = true;
                    let ours = |counts: &Counts, cpu: u32| counts.counts[at * cpus + cpu as usize];
                    let inside = row.counts.len() == rows.cpus.len()
                        && row.counts.iter().zip(&rows.cpus).all(|(&count, &cpu)| {
                            ours(&before, cpu) <= count && count <= ours(counts, cpu)
                        });
                    if !inside {
                        return Ok(());
                    }
                    Source::Descriptor(at)
                }
                (None, Some(arch)) => Source::Arch(arch),
                (None, None) if matches!(label, "ERR" | "MIS") => Source::Text,
                (None, None) => return Ok(()),
            });
        }
        self.failures = 0;
        self.rows = rows;
        self.sources = sources;
        self.words = counts.words.iter().copied().zip(shown).collect();
        self.irqs.clear();
        self.irqs.extend_from_slice(irqs);
        self.read = now;
        Ok(())
    }

    fn fill(&mut self, counts: &Counts, state: &SlotState, plan: &Plan) {
        let cpus = state.slot.object().shape.cpus as usize;
        let records = state.slot.cpus();
        for (row, source) in self.rows.rows.iter_mut().zip(&self.sources) {
            for (count, &cpu) in row.counts.iter_mut().zip(&plan.routes.online) {
                match *source {
                    Source::Descriptor(at) => *count = counts.counts[at * cpus + cpu as usize],
                    Source::Arch(arch) => *count = arch_count(&records[cpu as usize], arch),
                    Source::Text => {}
                }
            }
        }
    }
}

impl Counts {
    fn read(&mut self, state: &mut SlotState) -> Result<(), Error> {
        self.words.clear();
        self.counts.clear();
        let total = state.descriptors.irqs().len() as u32;
        for first in (0..total).step_by(IRQ_ROWS as usize) {
            let count = (total - first).min(IRQ_ROWS);
            state.slot.read_irq_rows(first, count)?;
            for row in 0..count {
                let (words, counts) = state.slot.irq_row(row);
                self.words.push(*words);
                self.counts.extend_from_slice(counts);
            }
        }
        Ok(())
    }
}
