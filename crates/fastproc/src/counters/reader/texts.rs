//! The texts: rendered from our values, or read from the kernel's files.

use std::sync::Arc;

use super::Reader;
use crate::{
    counters::{Error, MachineFile, Want, kept_file::KeptFile},
    text::machine_stat::Moved,
};

impl Reader {
    /// The text of `/proc/stat`, now.
    pub fn stat(&mut self) -> Result<&[u8], Error> {
        Ok(self.texts(Want::STAT)?.0)
    }

    /// The text of `/proc/vmstat`, now.
    pub fn vmstat(&mut self) -> Result<&[u8], Error> {
        Ok(self.texts(Want::VMSTAT)?.1)
    }

    /// The texts of `/proc/stat` and `/proc/vmstat`, from one collection.
    pub fn stat_and_vmstat(&mut self) -> Result<(&[u8], &[u8]), Error> {
        self.texts(Want::STAT | Want::VMSTAT)
    }

    /// The texts of `/proc/stat` and `/proc/vmstat`, of which those in `want` are of now.
    fn texts(&mut self, want: Want) -> Result<(&[u8], &[u8]), Error> {
        self.shared.check_process()?;
        let shared = Arc::clone(&self.shared);
        let from_text = match &shared.kernel {
            Some(kernel) => {
                let plan = self.current_plan(kernel);
                self.needs_text(kernel, &plan, want)
            }
            None => want,
        };
        if from_text.contains(Want::STAT) {
            self.stat_file()?;
        }
        if from_text.contains(Want::VMSTAT) {
            self.vmstat_file()?;
        }
        let computed = want - from_text;
        if !computed.is_empty() {
            self.collect(computed)?;
        }
        if computed.contains(Want::STAT) {
            self.render_stat();
        }
        if computed.contains(Want::VMSTAT) {
            self.vmstat_text.render(&self.sample.vmstat);
        }
        let kept = |file| {
            let mut files = self.files.iter();
            let kept = files.find(|(known, _)| *known == file);
            kept.map_or(&[][..], |(_, kept)| kept.text())
        };
        let stat = if from_text.contains(Want::STAT) {
            kept(MachineFile::Stat)
        } else {
            self.stat_text.text()
        };
        let vmstat = if from_text.contains(Want::VMSTAT) {
            kept(MachineFile::Vmstat)
        } else {
            self.vmstat_text.text()
        };
        Ok((stat, vmstat))
    }

    /// The text of any of the machine's files, now: computed if possible, otherwise read through a descriptor that
    /// stays open. An absent file is an error with the kernel's error number.
    pub fn text(&mut self, file: MachineFile) -> Result<&[u8], Error> {
        self.shared.check_process()?;
        match file {
            MachineFile::Stat => self.stat(),
            MachineFile::Vmstat => self.vmstat(),
            MachineFile::Mtab => self.kept(file).read_watched(),
            _ => self.kept(file).read(),
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

    pub(super) fn kept(&mut self, file: MachineFile) -> &mut KeptFile {
        let known = self.files.iter().position(|(known, _)| *known == file);
        let at = known.unwrap_or_else(|| {
            self.files.push((file, KeptFile::new(file)));
            self.files.len() - 1
        });
        &mut self.files[at].1
    }
}
