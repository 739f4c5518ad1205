//! What comes from the kernel's text, and the reading of it.

use super::Reader;
use crate::{
    counters::{
        Error, MachineFile, Want, clock,
        layout::Run,
        plan::{Kernel, Plan},
        report::Route,
        sample::Sample,
        trust::StatLine,
    },
    text::machine_stat::MachineStat,
};

impl Reader {
    /// What must be read from the text now. A text costs the same for one line as for all, so if any line needs it, all
    /// lines come from it.
    pub(super) fn needs_text(&self, kernel: &Kernel, want: Want) -> Want {
        let plan = &kernel.plan;
        if self.options.line_by_line {
            return want & plan.from_text.whole;
        }
        let mut from_text = want & plan.from_text.partly;
        let forks = plan.stat[plan.stat_line(StatLine::Processes)].route;
        if want.contains(Want::STAT) && forks == Route::Tracepoint && kernel.object.lacks_forks() {
            from_text |= Want::STAT;
        }
        if want.contains(Want::VMSTAT) && self.are_computed_lines_due(plan) {
            from_text |= Want::VMSTAT;
        }
        from_text
    }

    fn are_computed_lines_due(&self, plan: &Plan) -> bool {
        let latency = self.options.text_latency.as_nanos() as u64;
        let age = clock::monotonic_ns().saturating_sub(self.text_vmstat_ns);
        !plan.from_text.computed.is_empty() && (self.text_vmstat_ns == 0 || age >= latency)
    }

    /// Replaces the lines that come from the text.
    pub(super) fn overlay(
        &mut self,
        kernel: &mut Kernel,
        want: Want,
        forks_known: bool,
        sample: &mut Sample,
    ) -> Result<(), Error> {
        let plan = &kernel.plan;
        let unproven = (!forks_known).then(|| plan.stat_line(StatLine::Processes));
        let wants_stat = want.contains(Want::STAT) && !plan.from_text.stat.is_empty();
        if unproven.is_some() || wants_stat {
            self.read_stat(kernel, false)?;
        }
        let plan = &kernel.plan;
        if unproven.is_some() || wants_stat {
            let text = &self.text_stat;
            if text.cpus.len() == sample.stat.cpus.len() {
                for &line in plan.from_text.stat.iter().chain(&unproven) {
                    copy_line(&mut sample.stat, text, line);
                }
            } else {
                sample.stat.clone_from(text);
            }
            if plan
                .from_text
                .stat
                .contains(&plan.stat_line(StatLine::Intr))
            {
                self.irqs_generation = 0;
                sample.irqs_taken = sample.taken;
            }
        }
        if want.contains(Want::VMSTAT)
            && !(plan.from_text.vmstat.is_empty() && plan.from_text.computed.is_empty())
        {
            if !plan.from_text.vmstat.is_empty() || self.are_computed_lines_due(plan) {
                self.vmstat_file()?;
            }
            self.parse_vmstat()?;
            let text = &self.text_vmstat.values;
            for &line in plan.from_text.vmstat.iter().chain(&plan.from_text.computed) {
                if let (Some(to), Some(&value)) =
                    (sample.vmstat.values.get_mut(line), text.get(line))
                {
                    *to = value;
                }
            }
        }
        Ok(())
    }

    /// Reads `/proc/vmstat`. Its computed lines serve for a while.
    pub(super) fn vmstat_file(&mut self) -> Result<&[u8], Error> {
        self.text_vmstat_ns = clock::monotonic_ns();
        self.text_vmstat_parsed = false;
        self.kept(MachineFile::Vmstat).read()
    }

    pub(super) fn read_vmstat(&mut self) -> Result<(), Error> {
        self.vmstat_file()?;
        self.parse_vmstat()
    }

    fn parse_vmstat(&mut self) -> Result<(), Error> {
        if !self.text_vmstat_parsed {
            let mut parsed = std::mem::take(&mut self.text_vmstat);
            let result = parsed.parse_into(self.kept(MachineFile::Vmstat).text());
            self.text_vmstat = parsed;
            result?;
            self.text_vmstat_parsed = true;
        }
        Ok(())
    }

    /// Reads `/proc/stat`. If the number of forks is not certain, this may make it so.
    pub(super) fn stat_file(&mut self, kernel: Option<&mut Kernel>) -> Result<&[u8], Error> {
        if let Some(kernel) = kernel.filter(|kernel| kernel.object.lacks_forks()) {
            self.learn_forks(kernel)?;
            return Ok(self.kept(MachineFile::Stat).text());
        }
        self.kept(MachineFile::Stat).read()
    }

    /// Reads `/proc/stat` between two counts of the forks, and compares.
    fn learn_forks(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        let object = &mut kernel.object;
        let before = object.forks().count();
        let text = self.kept(MachineFile::Stat).read()?;
        if let Some(processes) = processes(text) {
            // The machine's clock, which no time namespace shifts.
            let now_ns = object.collect(Run::default())?.taken_ns;
            object.forks().learn(before, processes, now_ns);
        }
        Ok(())
    }

    /// Reads and parses `/proc/stat`. With `learns`, also compares the number of forks if it is certain.
    pub(super) fn read_stat(&mut self, kernel: &mut Kernel, learns: bool) -> Result<(), Error> {
        if learns {
            self.learn_forks(kernel)?;
        } else {
            self.stat_file(Some(kernel))?;
        }
        let mut parsed = std::mem::take(&mut self.text_stat);
        let result = parsed.parse_into(self.kept(MachineFile::Stat).text());
        self.text_stat = parsed;
        Ok(result?)
    }
}

/// The number in the line `processes`, which is one of the last.
fn processes(text: &[u8]) -> Option<u64> {
    let mut lines = text.rsplit(|&byte| byte == b'\n');
    let number = lines.find_map(|line| line.strip_prefix(b"processes "))?;
    std::str::from_utf8(number).ok()?.parse().ok()
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
