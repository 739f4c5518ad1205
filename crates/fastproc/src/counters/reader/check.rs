//! The comparison with the kernel's text: at start, every few seconds, and when something changed.

use super::{Gathered, Irqs, Reader};
use crate::{
    counters::{
        Error, MachineFile, Want, clock,
        kinds::Scalar,
        plan::Kernel,
        report::{Route, WhyText},
        trust::{self, StatLine},
    },
    text::interrupts::Interrupts,
};

impl Reader {
    /// After CPU hotplug: finds and compares everything again.
    pub(super) fn after_hotplug(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        kernel.resolve()?;
        kernel.plan.renew_stat_lines();
        kernel.plan.settle();
        self.recheck = true;
        Ok(())
    }

    /// Compares with the text. At `first`, and for lines that seem wrong, in many rounds. A line that stays wrong comes
    /// from the text from then on.
    pub(in crate::counters) fn check_lines(
        &mut self,
        kernel: &mut Kernel,
        first: bool,
    ) -> Result<(), Error> {
        self.since_check = 0;
        self.checked_ns = clock::monotonic_ns();
        self.recheck = false;
        self.learn_errors(kernel)?;
        let rounds = if first { trust::ROUNDS } else { 1 };
        let mut inside = self.batch(kernel, rounds)?;
        if first || !inside {
            if !first {
                // Memory or CPUs may have been added.
                kernel.resolve()?;
            }
            let mut other_idle = false;
            for attempt in 0..trust::ATTEMPTS {
                if attempt > 0 || !first {
                    self.batch(kernel, trust::ROUNDS)?;
                }
                inside = !kernel.plan.disagrees();
                if inside {
                    break;
                }
                let disagreeing = kernel.plan.disagreeing_cpus();
                if disagreeing > 0 && !other_idle {
                    // Try the other place of idle times, as on a kernel run with nohz=off; keep it if more CPUs agree.
                    other_idle = true;
                    kernel.plan.known.idle_from_tick ^= true;
                    self.batch(kernel, trust::ROUNDS)?;
                    if kernel.plan.disagreeing_cpus() >= disagreeing {
                        kernel.plan.known.idle_from_tick ^= true;
                    }
                }
            }
            if other_idle && !inside {
                self.batch(kernel, trust::ROUNDS)?;
            }
            for line in kernel.plan.lines_mut() {
                if !line.is_from_text() && line.disagrees() {
                    line.give_up(WhyText::Disagreed);
                }
            }
        }
        self.checks += 1;
        kernel.plan.settle();
        Ok(())
    }

    /// Brackets the text of both files, and ignores earlier results. Returns whether every line was inside in every round.
    fn batch(&mut self, kernel: &mut Kernel, rounds: u32) -> Result<bool, Error> {
        for line in kernel.plan.lines_mut() {
            line.begin_batch();
        }
        let mut all_inside = true;
        let [mut before, mut between, mut after] = std::mem::take(&mut self.scratch);
        for _ in 0..rounds {
            let both = Want::STAT | Want::VMSTAT;
            let mut gathered = self.gather(kernel, both, Irqs::Each, &mut before)?;
            let known_before = gathered == Gathered::Done;
            before.stat.btime = self.boot.read().0;
            let line = kernel.plan.stat_line(StatLine::Processes);
            let is_counted = kernel.plan.stat[line].route == Route::Tracepoint;
            self.read_stat(kernel, is_counted)?;
            let processes = self.text_stat.processes;
            if gathered.is_usable() {
                gathered = self.gather(kernel, both, Irqs::Each, &mut between)?;
            }
            between.stat.btime = self.boot.read().0;
            if is_counted && gathered.is_usable() {
                let forks = kernel.object.forks();
                // An unknown number is not compared: the text serves in its place.
                if !known_before {
                    before.stat.processes = processes;
                }
                if between.stat.processes < processes {
                    between.stat.processes = forks.total_after(processes).unwrap_or(processes);
                }
            }
            self.read_vmstat()?;
            if gathered.is_usable() {
                gathered = self.gather(kernel, Want::VMSTAT, Irqs::Keep, &mut after)?;
            }
            match gathered {
                Gathered::Done | Gathered::Forks => {}
                Gathered::Hotplug => {
                    kernel.resolve()?;
                    kernel.plan.renew_stat_lines();
                    all_inside = false;
                    continue;
                }
                Gathered::NoIrqs => {
                    let plan = &mut kernel.plan;
                    plan.irq_columns = self.text_stat.irqs.len();
                    if plan.irq_columns > kernel.object.shape.max_irqs as usize * 8
                        || rounds > 1 && !all_inside
                    {
                        let line = plan.stat_line(StatLine::Intr);
                        plan.stat[line].give_up(WhyText::NoRoute);
                    }
                    all_inside = false;
                    continue;
                }
            }
            all_inside &= trust::compare_stat(
                &mut kernel.plan.stat,
                &before.stat,
                &self.text_stat,
                &between.stat,
            );
            all_inside &= trust::compare_vmstat(
                &mut kernel.plan.vmstat,
                &between.vmstat.values,
                &self.text_vmstat.values,
                &after.vmstat.values,
            );
        }
        self.scratch = [before, between, after];
        Ok(all_inside)
    }

    /// Error interrupts are part of the sum; if no symbol leads to them, they come from the text.
    fn learn_errors(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        let plan = &mut kernel.plan;
        let known = plan.routes.scalars & Scalar::IrqErrCount.bit() != 0;
        if !known && !plan.routes.arch.is_empty() && !plan.routes.errors_counted {
            let text = self.kept(MachineFile::Interrupts).read()?;
            let parsed = Interrupts::parse(text)?;
            plan.known.irq_errors = parsed
                .row("ERR")
                .and_then(|row| row.counts.first())
                .map_or(0, |&n| u64::from(n));
        }
        Ok(())
    }
}
