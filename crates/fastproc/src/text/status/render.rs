//! Writing status from a record.

use seqtext::SeqBuf;

use super::{
    format::{Format, Step, What},
    lines::View,
    mask::MaskText,
};
use crate::{
    records::fields::Fields,
    snapshot::process::Process,
    text::render::{RenderError, require},
};

/// The groups of fields that status shows.
const SHOWN: Fields = Fields::THREE_FILES.difference(Fields::LAYOUT);

/// Renders status in the learned format. Bitmaps are kept from one process to the next.
#[derive(Clone, Debug)]
pub struct Renderer {
    format: Format,
    cpus: MaskText,
    mems: MaskText,
    /// The first line that needs the kernel's text: for all processes, and for those with memory.
    kernel_line: [Option<usize>; 2],
}

impl Renderer {
    /// A renderer for this format.
    pub fn new(format: Format) -> Self {
        let first = |has_memory: bool| {
            format.steps.iter().position(|step| {
                matches!(step.what, What::Kernel(_)) && (has_memory || !step.needs_memory)
            })
        };
        Self {
            cpus: format.cpus(),
            mems: format.mems(),
            kernel_line: [first(false), first(true)],
            format,
        }
    }

    /// The format.
    pub const fn format(&self) -> &Format {
        &self.format
    }

    /// Whether the text of this process needs lines of the kernel's text.
    pub fn needs_kernel_text(&self, process: Process<'_>) -> bool {
        self.kernel_line(process).is_some()
    }

    fn kernel_line(&self, process: Process<'_>) -> Option<usize> {
        self.kernel_line[usize::from(process.identity().has_mm != 0)]
    }

    /// Appends the text.
    ///
    /// `kernel_text` is the kernel's own file of this process, if it was read. Lines that records lack are copied from
    /// it. It is used only if [`needs_kernel_text`](Self::needs_kernel_text) returns true.
    ///
    /// # Errors
    /// [`RenderError::KernelText`] if it is needed but missing, [`RenderError::MissingFields`] if the record
    /// lacks groups. Then nothing is written.
    pub fn render(
        &mut self,
        process: Process<'_>,
        kernel_text: Option<&[u8]>,
        out: &mut SeqBuf<'_>,
    ) -> Result<(), RenderError> {
        require(process, SHOWN)?;
        if kernel_text.is_none() {
            self.refuse_without_kernel_text(process)?;
        }
        // The texts of the process before are reused if this one's bitmaps are the same.
        self.cpus.set(process.cpus_allowed(self.format.cpu_words()));
        self.mems
            .set(process.mems_allowed(self.format.node_words()));
        let view = self.view(process);
        let has_memory = view.record.identity.has_mm != 0;
        for step in &self.format.steps {
            if has_memory || !step.needs_memory {
                put_step(step, &view, kernel_text, out);
            }
        }
        Ok(())
    }

    #[inline]
    fn view<'a>(&'a self, process: Process<'a>) -> View<'a> {
        View {
            process,
            record: process.record(),
            facts: &self.format.facts,
            cpus: &self.cpus,
            mems: &self.mems,
        }
    }

    #[inline]
    fn refuse_without_kernel_text(&self, process: Process<'_>) -> Result<(), RenderError> {
        let Some(line) = self.kernel_line(process) else {
            return Ok(());
        };
        let label = match &self.format.steps[line].what {
            What::Kernel(label) => {
                String::from_utf8_lossy(label.strip_suffix(b":").unwrap_or(label)).into_owned()
            }
            _ => String::new(),
        };
        Err(RenderError::KernelText { label })
    }
}

#[inline]
fn put_step(step: &Step, view: &View<'_>, kernel_text: Option<&[u8]>, out: &mut SeqBuf<'_>) {
    match &step.what {
        What::Run(put) => put(view, out),
        What::Line(line) => line.put(view, out),
        What::Kernel(label) => copy_line(label, kernel_text.unwrap_or_default(), out),
    }
}

/// Copies the line with this label, if there is one: the kernel may print it for some processes only.
#[cold]
fn copy_line(label: &[u8], kernel_text: &[u8], out: &mut SeqBuf<'_>) {
    if let Some(line) = kernel_text
        .split_inclusive(|&byte| byte == b'\n')
        .find(|line| line.starts_with(label))
    {
        out.write(line);
    }
}
