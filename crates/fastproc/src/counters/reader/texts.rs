//! The texts: rendered from our values, or read from the kernel's files.

use std::sync::Arc;

use super::Reader;
use crate::{
    counters::{
        Error, MachineFile, Want, clock,
        kept_file::KeptFile,
        layout::SOFTIRQS,
        shared::{Plan, lock},
        trust::{self, StatLine},
    },
    text::{machine_stat::Moved, softirqs::Softirqs, uptime::Uptime},
};

impl Reader {
    /// The text of `/proc/stat`, now.
    pub fn stat(&mut self) -> Result<&[u8], Error> {
        self.shared.check_process()?;
        if self.whole_from_text(Want::STAT) {
            return self.file(MachineFile::Stat);
        }
        self.collect(Want::STAT)?;
        Ok(self.render_stat())
    }

    /// The text of `/proc/vmstat`, now.
    pub fn vmstat(&mut self) -> Result<&[u8], Error> {
        self.shared.check_process()?;
        if self.whole_from_text(Want::VMSTAT) {
            return self.file(MachineFile::Vmstat);
        }
        self.collect(Want::VMSTAT)?;
        Ok(self.vmstat_text.render(&self.sample.vmstat))
    }

    /// The texts of `/proc/stat` and `/proc/vmstat`, from one collection.
    pub fn stat_and_vmstat(&mut self) -> Result<(&[u8], &[u8]), Error> {
        self.shared.check_process()?;
        if self.whole_from_text(Want::STAT | Want::VMSTAT) {
            self.stat()?;
            self.vmstat()?;
            let stat_whole = self.whole_from_text(Want::STAT);
            let vmstat_whole = self.whole_from_text(Want::VMSTAT);
            let kept = |file| {
                self.files
                    .iter()
                    .find(|(known, _)| *known == file)
                    .map_or(&[][..], |(_, kept)| kept.text())
            };
            let stat = if stat_whole {
                kept(MachineFile::Stat)
            } else {
                self.stat_text.text()
            };
            let vmstat = if vmstat_whole {
                kept(MachineFile::Vmstat)
            } else {
                self.vmstat_text.text()
            };
            return Ok((stat, vmstat));
        }
        self.collect(Want::STAT | Want::VMSTAT)?;
        self.render_stat();
        Ok((
            self.stat_text.text(),
            self.vmstat_text.render(&self.sample.vmstat),
        ))
    }

    /// The text of any of the machine's files, now: computed if possible, otherwise read through a descriptor that
    /// stays open. An absent file is an error with the kernel's error number.
    pub fn text(&mut self, file: MachineFile) -> Result<&[u8], Error> {
        self.shared.check_process()?;
        match file {
            MachineFile::Stat => self.stat(),
            MachineFile::Vmstat => self.vmstat(),
            MachineFile::Softirqs => self.softirqs(),
            MachineFile::Interrupts => self.interrupts(),
            MachineFile::Uptime => self.uptime(),
            MachineFile::Mtab => self.kept(file).read_watched(),
            _ => self.file(file),
        }
    }

    fn render_stat(&mut self) -> &[u8] {
        let moved = if self.rendered_generation == self.irqs_generation && self.irqs_generation != 0
        {
            Moved::Only(&self.hot)
        } else {
            Moved::Any
        };
        self.rendered_generation = self.irqs_generation;
        self.stat_text.render(&self.sample.stat, moved)
    }

    fn whole_from_text(&mut self, want: Want) -> bool {
        let Some(kernel) = &self.shared.kernel else {
            return true;
        };
        let plan = match &mut self.plan {
            Some(plan) if plan.version == kernel.version() => plan,
            plan => plan.insert(kernel.plan()),
        };
        (want.contains(Want::STAT) && plan.stat_whole)
            || (want.contains(Want::VMSTAT) && plan.vm_whole)
    }

    pub(super) fn kept(&mut self, file: MachineFile) -> &mut KeptFile {
        let known = self.files.iter().position(|(known, _)| *known == file);
        let at = known.unwrap_or_else(|| {
            self.files.push((file, KeptFile::new(file)));
            self.files.len() - 1
        });
        &mut self.files[at].1
    }

    fn file(&mut self, file: MachineFile) -> Result<&[u8], Error> {
        self.kept(file).read()
    }

    fn uptime(&mut self) -> Result<&[u8], Error> {
        let shared = Arc::clone(&self.shared);
        let ours = match &shared.kernel {
            None => false,
            Some(kernel) => {
                let plan = self.current_plan(kernel);
                plan.stat.first().is_some_and(|line| !line.is_from_text()) && !plan.stat_whole
            }
        };
        if !ours {
            return self.file(MachineFile::Uptime);
        }
        self.collect(Want::CPU_TIMES)?;
        let uptime = Uptime {
            up: clock::boottime(),
            idle: self.sample.stat.total.idle(),
        };
        self.small.clear();
        uptime.render(&mut self.small);
        Ok(&self.small)
    }

    fn softirqs(&mut self) -> Result<&[u8], Error> {
        let shared = Arc::clone(&self.shared);
        let Some(kernel) = &shared.kernel else {
            return self.file(MachineFile::Softirqs);
        };
        let plan = self.current_plan(kernel);
        if plan.stat_whole || plan.stat.last().is_none_or(trust::Line::is_from_text) {
            return self.file(MachineFile::Softirqs);
        }
        if self.softirqs.is_none() {
            // names and columns, once
            let text = self.file(MachineFile::Softirqs)?.to_vec();
            let parsed = Softirqs::parse(&text)?;
            let same = parsed.cpus == plan.routes.possible && parsed.names.len() == SOFTIRQS;
            if !same || self.softirqs_text.render(&parsed) != text {
                return self.file(MachineFile::Softirqs);
            }
            self.softirqs = Some(parsed);
        }
        self.collect(Want::SOFTIRQS)?;
        if let Some(softirqs) = &mut self.softirqs {
            let state = lock(&kernel.slots[self.slot]);
            let records = state.slot.cpus();
            let columns = softirqs.cpus.len();
            for (column, &cpu) in softirqs.cpus.iter().enumerate() {
                for kind in 0..SOFTIRQS {
                    softirqs.counts[kind * columns + column] = records[cpu as usize].softirqs[kind];
                }
            }
            drop(state);
            return Ok(self.softirqs_text.render(softirqs));
        }
        self.file(MachineFile::Softirqs)
    }

    fn interrupts(&mut self) -> Result<&[u8], Error> {
        let shared = Arc::clone(&self.shared);
        let Some(kernel) = &shared.kernel else {
            return self.file(MachineFile::Interrupts);
        };
        let plan = self.current_plan(kernel);
        if plan.stat_whole
            || plan.stat[plan.stat_line(StatLine::Intr)].is_from_text()
            || self.interrupts.given_up()
        {
            return self.file(MachineFile::Interrupts);
        }
        self.collect(Want::STAT)?;
        let mut rows = std::mem::take(&mut self.interrupts);
        let result = {
            let mut state = lock(&kernel.slots[self.slot]);
            let oldest = self.sample.taken.saturating_sub(shared.check_interval());
            rows.update(
                &mut state,
                &self.plan_or(&plan),
                self.sample.taken,
                oldest,
                self.kept(MachineFile::Interrupts),
            )
        };
        self.interrupts = rows;
        if result? {
            Ok(self.interrupts.text())
        } else {
            self.file(MachineFile::Interrupts)
        }
    }

    fn plan_or(&self, plan: &Arc<Plan>) -> Arc<Plan> {
        self.plan
            .as_ref()
            .map_or_else(|| Arc::clone(plan), Arc::clone)
    }
}
