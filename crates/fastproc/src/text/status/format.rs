//! The format of a kernel's status.

use seqtext::SeqBuf;

use super::{
    lines::{KernelFacts, Line, RUNS, View},
    mask::MaskText,
    speculation::Speculation,
};

/// The labels of status in their order, and how this kernel fills its lines.
#[derive(Clone, Debug, Default)]
pub struct Format {
    pub(super) entries: Vec<Entry>,
    pub(super) steps: Vec<Step>,
    /// The lines that every text has, and those that a process with memory has, as bits.
    needed_lines: [u64; 2],
    pub(super) cpu_bits: usize,
    pub(super) node_bits: usize,
    pub(super) facts: KernelFacts,
    thread_features: bool,
}

/// A line of the text from which the format was learned.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) label: Label,
    /// Its kind, if it is known and has the expected form.
    pub(super) line: Option<Line>,
    /// Whether rendering it has been shown to yield the kernel's bytes.
    pub(super) proven: bool,
}

/// A label with its colon and tab, prepared for a comparison of one word.
#[derive(Clone, Debug)]
pub(super) struct Label {
    text: Box<[u8]>,
    word: u128,
    mask: u128,
}

impl Label {
    const WORD: usize = size_of::<u128>();

    pub(super) fn new(text: &[u8]) -> Self {
        let len = text.len().min(Self::WORD);
        let mut word = [0; Self::WORD];
        word[..len].copy_from_slice(&text[..len]);
        let mask = u128::MAX >> (8 * (Self::WORD - len.max(1)));
        Self {
            text: text.into(),
            word: u128::from_le_bytes(word),
            mask,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether `text` starts with this label.
    #[inline]
    pub(super) fn starts(&self, text: &[u8]) -> bool {
        match text.first_chunk() {
            Some(word) if (u128::from_le_bytes(*word) ^ self.word) & self.mask != 0 => false,
            Some(_) if self.text.len() <= Self::WORD => true,
            _ => text.starts_with(&self.text),
        }
    }
}

/// A step of rendering.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) needs_memory: bool,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// Several lines at once.
    Run(fn(&View<'_>, &mut SeqBuf<'_>)),
    Line(Line),
    /// A line to be copied from the kernel's own text: its label, with the colon.
    Kernel(Box<[u8]>),
}

impl Format {
    /// Sets the bit of `mm->flags` that disables transparent huge pages for a process. It is unknown at first, since
    /// the kernel's type information lacks it. Without it `THP_enabled` comes from the kernel's text.
    pub fn set_thp_disable_bit(&mut self, bit: Option<u32>) {
        self.facts.thp_disable_bit = bit.filter(|&bit| bit < u64::BITS);
        self.plan();
    }

    /// This format with the bit set.
    #[must_use]
    pub fn with_thp_disable_bit(mut self, bit: Option<u32>) -> Self {
        self.set_thp_disable_bit(bit);
        self
    }

    /// The bit that was set last.
    pub const fn thp_disable_bit(&self) -> Option<u32> {
        self.facts.thp_disable_bit
    }

    /// Sets whether records have the features of a thread, which some sources cannot find. The default is false: then
    /// `x86_Thread_features` and `x86_Thread_features_locked` come from the kernel's text.
    pub fn set_thread_features(&mut self, held: bool) {
        self.thread_features = held;
        self.plan();
    }

    /// Whether records have the features of a thread.
    pub const fn thread_features(&self) -> bool {
        self.thread_features
    }

    /// This format with [`set_thread_features`](Self::set_thread_features) called.
    #[must_use]
    pub fn with_thread_features(mut self, held: bool) -> Self {
        self.set_thread_features(held);
        self
    }

    /// Labels of the lines that come from the kernel's own text, because records lack their values, or because
    /// rendering them did not yield the kernel's bytes.
    pub fn kernel_lines(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.what {
            What::Kernel(label) => {
                std::str::from_utf8(label.strip_suffix(b":").unwrap_or(label)).ok()
            }
            _ => None,
        })
    }

    /// The words of `Cpus_allowed`.
    pub const fn cpu_words(&self) -> usize {
        self.cpu_bits.div_ceil(64)
    }

    /// The words of `Mems_allowed`, enough for all nodes that this kernel was built for.
    pub const fn node_words(&self) -> usize {
        self.node_bits.div_ceil(64)
    }

    pub(super) fn cpus(&self) -> MaskText {
        MaskText::new("Cpus_allowed", self.cpu_bits)
    }

    pub(super) fn mems(&self) -> MaskText {
        MaskText::new("Mems_allowed", self.node_bits)
    }

    /// The lines that a text must have, as bits.
    pub(super) const fn needed_lines(&self, has_memory: bool) -> u64 {
        self.needed_lines[has_memory as usize]
    }

    pub(super) const fn store_bypass(&self) -> Option<&Speculation> {
        self.facts.store_bypass.as_ref()
    }

    pub(super) const fn indirect_branch(&self) -> Option<&Speculation> {
        self.facts.indirect_branch.as_ref()
    }

    /// Makes steps from the entries, with runs of lines where possible.
    pub(super) fn plan(&mut self) {
        let lines = self.entries.iter().filter_map(|entry| entry.line);
        self.needed_lines = [false, true].map(|has_memory| {
            let present =
                |line: &Line| *line != Line::Umask && (has_memory || !line.needs_memory());
            lines
                .clone()
                .filter(present)
                .fold(0, |bits, line| bits | 1 << line as u32)
        });
        self.steps.clear();
        let known: Vec<Option<Line>> = self
            .entries
            .iter()
            .map(|entry| self.renderable(entry))
            .collect();
        let mut at = 0;
        while at < known.len() {
            let run = RUNS.iter().find(|run| {
                let lines = known[at..].iter().take(run.lines.len()).copied();
                lines.eq(run.lines.iter().copied().map(Some))
            });
            let needs_memory = self.entries[at].line.is_some_and(Line::needs_memory);
            let (what, lines) = match (run, known[at]) {
                (Some(run), _) => (What::Run(run.put), run.lines.len()),
                (None, Some(line)) => (What::Line(line), 1),
                (None, None) => {
                    let label = &self.entries[at].label.text;
                    let label = label.strip_suffix(b"\t").unwrap_or(label);
                    (What::Kernel(label.into()), 1)
                }
            };
            self.steps.push(Step { needs_memory, what });
            at += lines;
        }
    }

    fn renderable(&self, entry: &Entry) -> Option<Line> {
        entry.line.filter(|&line| {
            let held = match line {
                Line::THP_enabled => self.facts.thp_disable_bit.is_some(),
                Line::x86_Thread_features | Line::x86_Thread_features_locked => {
                    self.thread_features
                }
                _ => true,
            };
            entry.proven && held
        })
    }
}
