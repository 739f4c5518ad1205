//! The lines that come from the kernel's text, in place of our values.

use std::sync::atomic::Ordering;

use super::Reader;
use crate::{
    counters::{
        Error, MachineFile, Want,
        report::Route,
        sample::Sample,
        shared::{Kernel, Plan},
        trust::StatLine,
    },
    text::machine_stat::MachineStat,
};

impl Reader {
    /// Replaces the lines that come from the text.
    pub(super) fn overlay(
        &mut self,
        kernel: &Kernel,
        plan: &Plan,
        want: Want,
        sample: &mut Sample,
    ) -> Result<(), Error> {
        let stat = Want::STAT | Want::CPU_TIMES | Want::SOFTIRQS;
        let forks = kernel.object.forks();
        let processes = plan.stat_line(StatLine::Processes);
        let unproven = want.contains(Want::STAT)
            && plan.stat[processes].route == Route::Tracepoint
            && !forks.is_proven();
        if unproven || want.intersects(stat) && !plan.stat_from_text.is_empty() {
            let counted = forks.counted();
            self.read_stat()?;
            let text = &self.text_stat;
            if unproven {
                forks.learn(counted, text.processes, text.procs_running);
                forks.give_out(text.processes);
            }
            if text.cpus.len() == sample.stat.cpus.len() {
                let unproven = unproven.then_some(processes);
                for &line in plan.stat_from_text.iter().chain(&unproven) {
                    copy_line(&mut sample.stat, &self.text_stat, line);
                }
            } else {
                sample.stat.clone_from(&self.text_stat);
            }
            if plan
                .stat_from_text
                .contains(&plan.stat_line(StatLine::Intr))
            {
                self.irqs_generation = 0;
                sample.irqs_taken = sample.taken;
            }
        }
        if want.contains(Want::VMSTAT)
            && !(plan.vm_from_text.is_empty() && plan.vm_computed.is_empty())
        {
            let now = sample.taken.as_nanos() as u64;
            let latency = self.shared.text_latency_ns.load(Ordering::Relaxed);
            if !plan.vm_from_text.is_empty()
                || self.text_vmstat.values.is_empty()
                || now.saturating_sub(self.text_vmstat_ns) >= latency
            {
                self.read_vmstat()?;
                self.text_vmstat_ns = now;
            }
            let text = &self.text_vmstat.values;
            for &line in plan.vm_from_text.iter().chain(&plan.vm_computed) {
                if let (Some(to), Some(&value)) =
                    (sample.vmstat.values.get_mut(line), text.get(line))
                {
                    *to = value;
                }
            }
        }
        Ok(())
    }

    pub(super) fn read_vmstat(&mut self) -> Result<(), Error> {
        let mut parsed = std::mem::take(&mut self.text_vmstat);
        let text = self.kept(MachineFile::Vmstat).read()?;
        let result = parsed.parse_into(text);
        self.text_vmstat = parsed;
        Ok(result?)
    }

    pub(super) fn read_stat(&mut self) -> Result<(), Error> {
        let mut parsed = std::mem::take(&mut self.text_stat);
        let text = self.kept(MachineFile::Stat).read()?;
        let result = parsed.parse_into(text);
        self.text_stat = parsed;
        Ok(result?)
    }
}

/// Replaces one line by that of the text.
fn copy_line(to: &mut MachineStat, text: &MachineStat, line: usize) {
    if line == 0 {
        to.total = text.total;
    } else if let Some(cpu) = text.cpus.get(line - 1) {
        to.cpus[line - 1] = *cpu;
    } else if let Some((line, _)) = StatLine::ALL.get(line - 1 - text.cpus.len()) {
        match line {
            StatLine::Intr => {
                to.intr = text.intr;
                to.irqs.clone_from(&text.irqs);
            }
            StatLine::Ctxt => to.ctxt = text.ctxt,
            StatLine::Btime => to.btime = text.btime,
            StatLine::Processes => to.processes = text.processes,
            StatLine::ProcsRunning => to.procs_running = text.procs_running,
            StatLine::ProcsBlocked => to.procs_blocked = text.procs_blocked,
            StatLine::Softirq => {
                to.softirq = text.softirq;
                to.softirqs.clone_from(&text.softirqs);
            }
        }
    }
}
