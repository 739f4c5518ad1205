//! Renders files of a process as this kernel prints them.

use super::{RenderError, Text, Units, schedstat, stat, statm, status};
use crate::{
    base::{error::parse::FormatError, host::Host},
    records::{fields::Fields, record::ThreadRecord},
    rules::access::Access,
    snapshot::{calibration::Calibration, process::Process},
};

/// Renders the files of processes, as the kernel would print them for this reader.
#[derive(Debug)]
pub struct Files {
    units: Units,
    status: status::Renderer,
    text: Text,
}

impl Files {
    /// The groups of fields that the three files show, and those that decide who may see them.
    pub const FIELDS: Fields = Fields::THREE_FILES;

    /// Learns the format that this kernel prints. `host` and `calibration` are those of the collector that
    /// reads the processes.
    ///
    /// # Errors
    /// `/proc` cannot be read, or has an unknown format.
    pub fn open(host: &Host, calibration: Calibration) -> Result<Self, FormatError> {
        let format = status::Format::read(host)?
            .with_thp_disable_bit(calibration.thp_disable_bit)
            .with_thread_features(calibration.thread_features);
        Ok(Self {
            units: Units::from(host),
            status: status::Renderer::new(format),
            text: Text::default(),
        })
    }

    /// `/proc/PID/stat`.
    ///
    /// # Errors
    /// The record lacks groups that the text shows.
    pub fn stat(&mut self, process: Process<'_>, access: Access) -> Result<&[u8], RenderError> {
        self.text
            .render(|out| stat::render(process, &self.units, access, out))
    }

    /// `/proc/PID/statm`.
    ///
    /// # Errors
    /// As [`stat`](Self::stat).
    pub fn statm(&mut self, process: Process<'_>) -> Result<&[u8], RenderError> {
        self.text
            .render(|out| statm::render(process, &self.units, out))
    }

    /// `/proc/PID/task/TID/schedstat`; that of the leading thread is also `/proc/PID/schedstat`. The collector needs
    /// [`Fields::CPU`] and [`Fields::THREADS`].
    ///
    /// # Errors
    /// The source did not tell the values: `/proc` lacks them in the files that it is read from.
    pub fn schedstat(&mut self, thread: &ThreadRecord) -> Result<&[u8], RenderError> {
        self.text.render(|out| schedstat::render(thread, out))
    }

    /// Whether [`status`](Self::status) needs the kernel's own text of this process.
    pub fn needs_kernel_status(&self, process: Process<'_>) -> bool {
        self.status.needs_kernel_text(process)
    }

    /// `/proc/PID/status`; `kernel` is the kernel's own text, if it is needed.
    ///
    /// # Errors
    /// As for [`stat`](Self::stat), and if the kernel's text is needed but missing.
    pub fn status(
        &mut self,
        process: Process<'_>,
        kernel: Option<&[u8]>,
    ) -> Result<&[u8], RenderError> {
        self.text
            .render(|out| self.status.render(process, kernel, out))
    }
}
