//! The texts: rendered from our values, or read from the kernel's files.

use super::Reader;
use crate::{
    counters::{Error, MachineFile, Want, kept_file::KeptFile, plan::Kernel},
    text::machine_stat::Moved,
};

impl Reader {
    /// The text of a file, now: computed if possible, otherwise read through a descriptor that stays open.
    pub(in crate::counters) fn text(
        &mut self,
        mut kernel: Option<&mut Kernel>,
        file: MachineFile,
    ) -> Result<&[u8], Error> {
        let want = match file {
            MachineFile::Stat => Want::STAT,
            MachineFile::Vmstat => Want::VMSTAT,
            MachineFile::Mtab => {
                let kept = self.kept(file);
                kept.close();
                return kept.read();
            }
            _ => return self.kept(file).read(),
        };
        let is_computed = kernel
            .as_deref()
            .is_some_and(|kernel| self.needs_text(kernel, want).is_empty());
        match (is_computed, file) {
            (false, MachineFile::Stat) => self.stat_file(kernel),
            (false, _) => self.vmstat_file(),
            (true, MachineFile::Stat) => {
                self.collect(kernel.as_deref_mut(), want)?;
                Ok(self.render_stat())
            }
            (true, _) => {
                self.collect(kernel, want)?;
                Ok(self.vmstat_text.render(&self.sample.vmstat))
            }
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
