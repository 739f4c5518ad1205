//! Texts that are kept from one rendering to the next, so that only what changed is rendered.
//!
//! From one second to the next most processes do nothing, and of one that does a few lines change. The [`Renderer`] keeps
//! the texts of each process and the record that they show, compares that with the record of now, and rewrites the lines
//! whose values differ; the others need neither formatting nor copying. The bytes are those of the plain renderers.
//!
//! ```no_run
//! use std::{io::Write, path::Path, thread::sleep, time::Duration};
//!
//! use fastproc::{
//!     Collector, Fields,
//!     text::{Access, Units, incremental::{Files, Renderer}, status},
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut collector = Collector::builder().fields(Fields::THREE_FILES).open()?;
//! let calibration = collector.calibration();
//! let format = status::Format::of_this_kernel(Path::new("/proc"), collector.host())?
//!     .with_thp_disable_bit(calibration.thp_disable_bit)
//!     .with_thread_features(calibration.thread_features);
//! let mut texts = Renderer::new(Units::from(collector.host()), format, Files::all());
//! loop {
//!     for process in collector.snapshot()?.iter() {
//!         let texts = texts.render(process, Access::Granted, None)?;
//!         std::io::stdout().write_all(texts.status)?;
//!     }
//!     texts.evict();
//!     sleep(Duration::from_secs(1));
//! }
//! # }
//! ```

mod kept;
mod spliced;

use std::ops::Range;

use bitflags::bitflags;
use seqtext::SeqBuf;

use self::{
    kept::{Kept, Words},
    spliced::Spliced,
};
use super::{
    access::Access,
    parts::{Look, Parts, changed},
    render::RenderError,
    stat, statm, status,
    units::Units,
};
use crate::Process;

bitflags! {
    /// Which texts to render.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Files: u8 {
        /// `/proc/PID/stat`
        const STAT = 1;
        /// `/proc/PID/statm`
        const STATM = 2;
        /// `/proc/PID/status`
        const STATUS = 4;
    }
}

/// The texts of one process, borrowed until the next is rendered. One that was not asked for is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texts<'a> {
    /// `/proc/PID/stat`
    pub stat: &'a [u8],
    /// `/proc/PID/statm`
    pub statm: &'a [u8],
    /// `/proc/PID/status`
    pub status: &'a [u8],
}

/// What is rendered in one go.
#[derive(Clone, Copy, Debug)]
enum What {
    Stat(stat::Put),
    Statm,
    /// A step of the renderer of status.
    Status(usize),
}

impl What {
    #[inline]
    fn put(
        self,
        look: Look<'_>,
        units: &Units,
        status: &status::Renderer,
        kernel_status: Option<&[u8]>,
        out: &mut SeqBuf<'_>,
    ) {
        match self {
            Self::Stat(put) => put(&stat::View::new(look.process, units, look.access), out),
            Self::Statm => statm::put(look.process, units, out),
            Self::Status(step) => status.put(step, look.process, kernel_status, out),
        }
    }
}

/// The segments of the texts, one file behind the other.
#[derive(Clone, Debug)]
struct Plan {
    segments: Vec<(What, Parts)>,
    stat: Range<usize>,
    statm: Range<usize>,
    status: Range<usize>,
    /// All parts that any of them depends on.
    watched: Parts,
}

impl Plan {
    fn new(files: Files, status: &status::Renderer) -> Self {
        let mut segments = Vec::new();
        let mut add = |file, of_file: &mut dyn Iterator<Item = (What, Parts)>| {
            let start = segments.len();
            if files.contains(file) {
                segments.extend(of_file);
            }
            start..segments.len()
        };
        let stat = add(
            Files::STAT,
            &mut stat::RUNS
                .iter()
                .map(|&(put, parts)| (What::Stat(put), parts)),
        );
        let statm = add(
            Files::STATM,
            &mut std::iter::once((What::Statm, Parts::MEMORY)),
        );
        let steps = status.steps().enumerate();
        let status = add(
            Files::STATUS,
            &mut steps.map(|(step, parts)| (What::Status(step), parts)),
        );
        let watched = segments
            .iter()
            .fold(Parts::empty(), |all, &(_, parts)| all | parts);
        Self {
            segments,
            stat,
            statm,
            status,
            watched,
        }
    }

    fn renders_status(&self) -> bool {
        !self.status.is_empty()
    }

    #[inline]
    fn texts<'a>(&self, text: impl Fn(&Range<usize>) -> &'a [u8]) -> Texts<'a> {
        Texts {
            stat: text(&self.stat),
            statm: text(&self.statm),
            status: text(&self.status),
        }
    }
}

/// A process among those that are kept.
#[derive(Clone, Debug)]
struct Slot {
    pid: u32,
    /// Whether it was rendered since the last eviction.
    alive: bool,
    kept: Box<Kept>,
}

/// Renders the texts of processes again and again.
///
/// It pays where lines are many: `statm` alone is faster by [`statm::render`], which takes less
/// time than the comparison.
///
/// # Memory
///
/// About 3 KiB for each process: a copy of its record, and its texts. What is long (of a process in a thousand groups) is
/// not kept but rendered anew each time, so that no process takes more than 18 KiB. What is kept of
/// processes that are gone is given back by [`evict`](Self::evict); and there are never more than
/// [`set_limit`](Self::set_limit) says, the texts of further processes being rendered anew, too.
#[derive(Clone, Debug)]
pub struct Renderer {
    units: Units,
    status: status::Renderer,
    plan: Plan,
    /// By pid.
    slots: Vec<Slot>,
    /// Where the next process is, if they come in the order of their pids.
    next: usize,
    limit: usize,
    /// A text that is rendered anew, and where its segments end.
    scratch: Vec<u8>,
    ends: Vec<usize>,
}

impl Renderer {
    /// Processes that are kept unless [`set_limit`](Self::set_limit) says otherwise.
    pub const LIMIT: usize = 1 << 16;

    /// A renderer of these files that keeps nothing yet.
    pub fn new(units: Units, format: status::Format, files: Files) -> Self {
        let status = status::Renderer::new(format);
        Self {
            units,
            plan: Plan::new(files, &status),
            status,
            slots: Vec::new(),
            next: 0,
            limit: Self::LIMIT,
            scratch: vec![0; 2 * Spliced::LARGEST],
            ends: Vec::new(),
        }
    }

    /// Sets how many processes to keep at most. What is kept beyond that is dropped.
    pub fn set_limit(&mut self, processes: usize) {
        self.limit = processes;
        self.slots.truncate(processes);
    }

    /// How many processes are kept.
    pub fn kept(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of memory that they take.
    pub fn memory_bytes(&self) -> usize {
        let of_processes = self.slots.iter().map(|slot| slot.kept.memory_bytes());
        of_processes.sum::<usize>() + size_of::<Slot>() * self.slots.capacity()
    }

    /// Whether the status of this process takes lines from the kernel's.
    pub fn needs_kernel_text(&self, process: Process<'_>) -> bool {
        self.plan.renders_status() && self.status.needs_kernel_text(process)
    }

    /// The texts of a process, for a reader with this access. It is fastest for processes in the order of their pids, as
    /// a snapshot has them.
    ///
    /// `kernel_status` is as for [`status::Renderer::render`].
    ///
    /// # Errors
    /// Those of the plain renderers. What is kept stays as it is then.
    #[inline]
    pub fn render(
        &mut self,
        process: Process<'_>,
        access: Access,
        kernel_status: Option<&[u8]>,
    ) -> Result<Texts<'_>, RenderError> {
        self.require_shown(process, kernel_status)?;
        let look = Look { process, access };
        let words = self.words();
        match self.find(process.pid()) {
            Ok(at) => {
                let slot = &mut self.slots[at];
                slot.alive = true;
                self.next = at + 1;
                let changed =
                    changed(slot.kept.look(), look, words, self.plan.watched) & self.plan.watched;
                if changed.is_empty() || self.rewrite(at, changed, look, kernel_status) {
                    return Ok(self
                        .plan
                        .texts(|segments| self.slots[at].kept.text.text(segments)));
                }
                self.slots.remove(at);
                self.next = at;
                self.render_anew(look, kernel_status);
            }
            Err(at) => {
                self.next = at;
                self.render_anew(look, kernel_status);
                if self.slots.len() < self.limit {
                    self.keep(at, look);
                }
            }
        }
        Ok(self.plan.texts(|segments| {
            let end = |count: usize| count.checked_sub(1).map_or(0, |last| self.ends[last]);
            &self.scratch[end(segments.start)..end(segments.end)]
        }))
    }

    /// Forgets the processes that were not rendered since the last call: to be called after each round over all of them.
    /// Returns how many these were.
    pub fn evict(&mut self) -> usize {
        let before = self.slots.len();
        self.slots
            .retain_mut(|slot| std::mem::replace(&mut slot.alive, false));
        self.next = 0;
        before - self.slots.len()
    }

    fn require_shown(
        &self,
        process: Process<'_>,
        kernel_status: Option<&[u8]>,
    ) -> Result<(), RenderError> {
        if !self.plan.stat.is_empty() {
            stat::require_shown(process)?;
        }
        if !self.plan.statm.is_empty() {
            statm::require_shown(process)?;
        }
        if self.plan.renders_status() {
            self.status.require_shown(process, kernel_status)?;
        }
        Ok(())
    }

    /// The words of bitmaps, where they are shown.
    #[inline]
    fn words(&self) -> Words {
        let format = self.status.format();
        self.plan
            .renders_status()
            .then(|| (format.cpu_words(), format.node_words()))
    }

    /// Where the process is, or would be.
    #[inline]
    fn find(&self, pid: u32) -> Result<usize, usize> {
        match self.slots.get(self.next) {
            Some(slot) if slot.pid == pid => Ok(self.next),
            _ => self.slots.binary_search_by_key(&pid, |slot| slot.pid),
        }
    }

    /// Renders what depends on these parts into the texts that are kept. `false`: they do not fit any more.
    fn rewrite(
        &mut self,
        at: usize,
        changed: Parts,
        look: Look<'_>,
        kernel_status: Option<&[u8]>,
    ) -> bool {
        if changed.intersects(Parts::CPUS | Parts::MEMS) {
            self.status.turn_to(look.process);
        }
        let words = self.words();
        let Self {
            units,
            status,
            plan,
            slots,
            scratch,
            ..
        } = self;
        let kept = &mut *slots[at].kept;
        for (segment, &(what, parts)) in plan.segments.iter().enumerate() {
            if parts.intersects(changed) {
                let mut out = SeqBuf::new(scratch);
                what.put(look, units, status, kernel_status, &mut out);
                let fits = out
                    .text()
                    .is_ok_and(|text| kept.text.replace(segment, text));
                if !fits {
                    return false;
                }
            }
        }
        kept.remember(look, words)
    }

    /// Renders all texts of a process into `scratch`.
    #[cold]
    fn render_anew(&mut self, look: Look<'_>, kernel_status: Option<&[u8]>) {
        self.status.turn_to(look.process);
        loop {
            let mut out = SeqBuf::new(&mut self.scratch);
            self.ends.clear();
            for &(what, _) in &self.plan.segments {
                what.put(look, &self.units, &self.status, kernel_status, &mut out);
                self.ends.push(out.count());
            }
            if !out.has_overflowed() {
                return;
            }
            let size = 2 * self.scratch.len();
            self.scratch.resize(size, 0);
        }
    }

    /// Keeps what was just rendered anew, if it is not too long.
    fn keep(&mut self, at: usize, look: Look<'_>) {
        let len = self.ends.last().copied().unwrap_or(0);
        let kept = Spliced::new(&self.scratch[..len], &self.ends)
            .and_then(|text| Kept::new(look, self.words(), text));
        if let Some(kept) = kept {
            let slot = Slot {
                pid: look.process.pid(),
                alive: true,
                kept: Box::new(kept),
            };
            self.slots.insert(at, slot);
            self.next = at + 1;
        }
    }
}
