//! Collects, compares with the text when that is due, and renders.

mod check;
mod overlay;
mod texts;

use std::time::Duration;

use super::{
    Error, MachineFile, Options, Want,
    clock::{self, BootTime},
    descriptors::Outcome,
    gather,
    kept_file::KeptFile,
    kinds::Scalar,
    layout::{Run, WANT_STAT, WANT_VM},
    plan::Kernel,
    report::WhyText,
    sample::Sample,
    trust::StatLine,
};
use crate::text::{
    machine_stat::{self, MachineStat},
    vmstat::{self, VmStat},
};

/// A check costs a few reads of the text. It is due after this many collections at the earliest…
const COLLECTIONS_A_CHECK: u32 = 16;
/// …or after this many check intervals.
const INTERVALS_A_CHECK: u32 = 12;
/// After this many failures the interrupts are no longer listed.
const LIST_FAILURES: u32 = 4;

/// How the counts by interrupt are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Irqs {
    /// Not at all: the last ones are recent enough.
    Keep,
    /// Only those that have changed.
    Exact,
    /// All of them.
    Each,
}

/// The result of reading the kernel's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gathered {
    Done,
    /// CPUs came online or went offline.
    Hotplug,
    /// The interrupts cannot be listed, or no longer fit into the row.
    NoIrqs,
    /// The number of forks is not certain; all other values are.
    Forks,
}

/// All but the programs.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) options: Options,
    /// Comparisons with the text so far.
    pub(super) checks: u64,
    pub(super) sample: Sample,
    boot: BootTime,
    /// The descriptors' generation that `sample.stat.irqs` holds: 0 if it does not come from them.
    irqs_generation: u64,
    /// When those were read, by the caller's clock.
    irqs_read_ns: u64,
    /// The generation that the rendered text holds.
    rendered_generation: u64,
    hot: Vec<u32>,
    list_failures: u32,
    text_stat: MachineStat,
    /// The text of `/proc/vmstat` that was read last, if `text_vmstat_parsed`.
    text_vmstat: VmStat,
    text_vmstat_parsed: bool,
    /// When it was read; 0 if never.
    text_vmstat_ns: u64,
    scratch: [Sample; 3],
    stat_text: machine_stat::Renderer,
    vmstat_text: vmstat::Renderer,
    files: Vec<(MachineFile, KeptFile)>,
    since_check: u32,
    checked_ns: u64,
    recheck: bool,
}

impl Gathered {
    /// Whether the values belong together.
    fn is_usable(self) -> bool {
        matches!(self, Self::Done | Self::Forks)
    }
}

impl Reader {
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            checks: 0,
            sample: Sample::default(),
            boot: BootTime::default(),
            irqs_generation: 0,
            irqs_read_ns: 0,
            rendered_generation: 0,
            hot: Vec::new(),
            list_failures: 0,
            text_stat: MachineStat::default(),
            text_vmstat: VmStat::default(),
            text_vmstat_parsed: false,
            text_vmstat_ns: 0,
            scratch: Default::default(),
            stat_text: machine_stat::Renderer::default(),
            vmstat_text: vmstat::Renderer::default(),
            files: Vec::new(),
            since_check: 0,
            checked_ns: 0,
            recheck: false,
        }
    }

    pub(super) fn collect(
        &mut self,
        kernel: Option<&mut Kernel>,
        want: Want,
    ) -> Result<&Sample, Error> {
        let mut sample = std::mem::take(&mut self.sample);
        let result = match kernel {
            Some(kernel) => self.collect_into(kernel, want, &mut sample),
            None => self.read_texts(None, want, &mut sample),
        };
        self.sample = sample;
        result.map(|()| &self.sample)
    }

    fn collect_into(
        &mut self,
        kernel: &mut Kernel,
        want: Want,
        sample: &mut Sample,
    ) -> Result<(), Error> {
        let from_text = self.needs_text(kernel, want);
        self.read_texts(Some(kernel), from_text, sample)?;
        let want = want - from_text;
        if want.is_empty() {
            return Ok(());
        }

        let latency = self.options.stat_irqs_latency.as_nanos() as u64;
        let young = latency > 0
            && self.irqs_generation != 0
            && clock::monotonic_ns().saturating_sub(self.irqs_read_ns) < latency;
        let irqs = if young || !want.contains(Want::STAT) {
            Irqs::Keep
        } else {
            Irqs::Exact
        };
        let gathered = self.gather(kernel, want, irqs, sample)?;
        match gathered {
            Gathered::Forks if !self.options.line_by_line => {
                return self.read_texts(Some(kernel), want, sample);
            }
            Gathered::Done | Gathered::Forks => self.list_failures = 0,
            Gathered::Hotplug => {
                self.after_hotplug(kernel)?;
                return self.read_texts(Some(kernel), want, sample);
            }
            Gathered::NoIrqs => {
                self.read_texts(Some(kernel), want, sample)?;
                self.list_failures += 1;
                let plan = &mut kernel.plan;
                plan.irq_columns = sample.stat.irqs.len();
                if self.list_failures >= LIST_FAILURES {
                    let line = plan.stat_line(StatLine::Intr);
                    plan.stat[line].give_up(WhyText::NoRoute);
                }
                plan.settle();
                return Ok(());
            }
        }
        if want.contains(Want::STAT) {
            let (btime, stepped) = self.boot.read();
            sample.stat.btime = btime;
            self.recheck |= stepped;
        }
        let forks_known = gathered == Gathered::Done;
        self.overlay(kernel, want, forks_known, sample)?;

        self.since_check = self.since_check.saturating_add(1);
        let taken = sample.taken.as_nanos() as u64;
        let interval = self.options.check_interval.as_nanos() as u64;
        let elapsed = taken.saturating_sub(self.checked_ns);
        if self.recheck
            || elapsed >= interval
                && (self.since_check >= COLLECTIONS_A_CHECK
                    || elapsed >= interval.saturating_mul(u64::from(INTERVALS_A_CHECK)))
        {
            self.check_lines(kernel, false)?;
            // Values that were collected before a line was found to differ cannot be trusted.
            let from_text = self.needs_text(kernel, want);
            self.read_texts(Some(kernel), from_text, sample)?;
            self.overlay(kernel, want - from_text, forks_known, sample)?;
        }
        Ok(())
    }

    /// Reads files of the kernel.
    fn read_texts(
        &mut self,
        kernel: Option<&mut Kernel>,
        want: Want,
        sample: &mut Sample,
    ) -> Result<(), Error> {
        if want.is_empty() {
            return Ok(());
        }
        sample.taken = Duration::from_nanos(clock::monotonic_ns());
        if want.contains(Want::STAT) {
            self.irqs_generation = 0;
            sample.irqs_taken = sample.taken;
            sample.stat.parse_into(self.stat_file(kernel)?)?;
        }
        if want.contains(Want::VMSTAT) {
            sample.vmstat.parse_into(self.vmstat_file()?)?;
        }
        Ok(())
    }

    /// Reads the kernel's memory, and nothing else, into `to`.
    fn gather(
        &mut self,
        kernel: &mut Kernel,
        want: Want,
        irqs: Irqs,
        to: &mut Sample,
    ) -> Result<Gathered, Error> {
        let Kernel {
            object,
            descriptors,
            plan,
            ..
        } = kernel;
        let intr_from_text = plan.stat[plan.stat_line(StatLine::Intr)].is_from_text();
        let wants_stat = want.contains(Want::STAT);
        let wants_irqs = wants_stat && irqs != Irqs::Keep && !intr_from_text;
        let mut forks_known = true;
        let mut read_ns = 0;
        let mut attempts = 0;
        let run = loop {
            attempts += 1;
            let mut run = Run::default();
            if wants_stat {
                run.want |= WANT_STAT;
                run.scalars_wanted |= plan.routes.scalars & Scalar::STAT;
            }
            if want.contains(Want::VMSTAT) {
                run.want |= WANT_VM;
                run.scalars_wanted |= plan.routes.scalars & Scalar::VM;
            }
            if wants_irqs {
                if !descriptors.is_listed() && !descriptors.list(object)? {
                    return Ok(Gathered::NoIrqs);
                }
                descriptors.prepare(&mut run, irqs == Irqs::Each);
                if irqs == Irqs::Exact && !self.options.stat_irqs_latency.is_zero() {
                    read_ns = clock::monotonic_ns();
                }
            }
            let run = object.collect(run)?;
            let stale = wants_irqs && descriptors.take(object, &run) == Outcome::Stale;
            let torn = wants_stat && object.cpus().iter().any(|cpu| cpu.torn != 0);
            if attempts >= 8 && stale {
                return Ok(Gathered::NoIrqs);
            }
            if attempts >= 8 || !stale && !torn {
                break run;
            }
        };
        to.taken = Duration::from_nanos(run.taken_ns);
        if wants_stat {
            let states = object.cpus().iter().map(|cpu| cpu.hotplug_state);
            if plan.routes.has_hotplug && !states.eq(plan.routes.hotplug.iter().copied()) {
                return Ok(Gathered::Hotplug);
            }
            forks_known = gather::stat(&mut to.stat, object, &run, &plan.routes, &plan.known);
        }
        if wants_irqs {
            if descriptors
                .irqs()
                .last()
                .is_some_and(|&last| last as usize >= plan.irq_columns)
            {
                return Ok(Gathered::NoIrqs);
            }
            let tracked = irqs == Irqs::Exact;
            let generation = descriptors.generation();
            let row = &mut to.stat.irqs;
            if !tracked || self.irqs_generation != generation || row.len() != plan.irq_columns {
                row.clear();
                row.resize(plan.irq_columns, 0);
                for (irq, count) in descriptors.all() {
                    row[irq as usize] = count;
                }
                if tracked {
                    self.hot.clear();
                    self.hot.extend(descriptors.hot_irqs().map(|(irq, _)| irq));
                }
            } else {
                for (irq, count) in descriptors.hot_irqs() {
                    row[irq as usize] = count;
                }
            }
            if tracked {
                self.irqs_generation = generation;
                self.irqs_read_ns = read_ns;
                to.irqs_taken = to.taken;
            }
        }
        if want.contains(Want::VMSTAT)
            && let Some(groups) = plan.routes.groups
        {
            if to.vmstat.names != plan.names {
                to.vmstat.names = plan.names.clone();
            }
            let values = &mut to.vmstat.values;
            gather::vmstat(
                values,
                object,
                &plan.routes,
                groups,
                plan.names.len(),
                &plan.huge,
                &plan.known,
            );
            let first = groups.first_computed();
            if let Some(lines) = plan.dirty
                && groups.computed >= 2
            {
                (values[first], values[first + 1]) =
                    gather::dirty_limits(values, lines, &run, &plan.known);
            }
            for (line, scalar) in [
                (first + 2, Scalar::NrMemmapPages),
                (first + 3, Scalar::NrMemmapBootPages),
            ] {
                if line < groups.first_event() && plan.routes.scalars & scalar.bit() != 0 {
                    values[line] = run.scalars[scalar as usize];
                }
            }
        }
        #[cfg(test)]
        if let Some(line) = self.options.disagree {
            distort(line, plan, to);
        }
        Ok(if forks_known {
            Gathered::Done
        } else {
            Gathered::Forks
        })
    }
}

/// Makes a line wrong, to test that the comparison finds it.
#[cfg(test)]
fn distort(line: &str, plan: &super::plan::Plan, sample: &mut Sample) {
    let stat = &mut sample.stat;
    match line {
        "cpu" => stat.total.ns[0] += 1 << 40,
        "intr" => stat.intr += 1 << 30,
        "ctxt" => stat.ctxt += 1 << 30,
        "processes" => stat.processes += 1 << 30,
        "softirq" => stat.softirq += 1 << 30,
        _ => {
            if let Some(at) = plan.names.position(line)
                && let Some(value) = sample.vmstat.values.get_mut(at)
            {
                *value += 1 << 30;
            }
        }
    }
}
