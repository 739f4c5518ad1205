//! What the running kernel's status looks like, learned from it.

use std::{fs, io, path::Path};

use rustix::process::{SpeculationFeature, SpeculationFeatureState, speculative_feature_state};
use seqtext::SeqBuf;
use thiserror::Error;

use super::{
    lines::{Line, RUNS, View},
    mask::{self, MaskText},
    parse::parse_line,
    speculation::{Kind, Speculation},
};
use crate::{
    Fields, Host, Process,
    record::Record,
    text::{
        parse::{Cursor, ParseError},
        parts::Parts,
    },
};

/// The labels of status in their order, and how this kernel fills its lines.
#[derive(Clone, Debug)]
pub struct Format {
    pub(super) entries: Vec<Entry>,
    pub(super) steps: Vec<Step>,
    /// The lines that every text has, and those that a process with memory has, as bits.
    needed_lines: [u64; 2],
    cpu_bits: usize,
    node_bits: usize,
    store_bypass: Option<Speculation>,
    indirect_branch: Option<Speculation>,
    thp_disable_bit: Option<u32>,
    thread_features: bool,
}

/// A line of the text that was learned from.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) label: Label,
    /// What it is, if it is known and reads as expected.
    pub(super) line: Option<Line>,
    /// Whether rendering it has been shown to yield the kernel's bytes.
    proven: bool,
}

/// A label with the colon and the tab behind it, to be compared with in one go as far as it fits a word.
#[derive(Clone, Debug)]
pub(super) struct Label {
    text: Box<[u8]>,
    word: u128,
    mask: u128,
}

impl Label {
    const WORD: usize = size_of::<u128>();

    fn new(text: &[u8]) -> Self {
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

    /// Whether `text` starts with it.
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
    /// What its lines depend on.
    pub(super) parts: Parts,
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

/// Whether processes have a say in their speculation, by `prctl(PR_GET_SPECULATION_CTRL)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpeculationControl {
    /// In `Speculation_Store_Bypass`.
    pub store_bypass: bool,
    /// In `SpeculationIndirectBranch`.
    pub indirect_branch: bool,
}

impl SpeculationControl {
    /// Asks the running kernel.
    pub fn of_this_kernel() -> Self {
        let controlled = |feature| {
            speculative_feature_state(feature).is_ok_and(|state| {
                state.is_some_and(|state| state.contains(SpeculationFeatureState::PRCTL))
            })
        };
        Self {
            store_bypass: controlled(SpeculationFeature::SpeculativeStoreBypass),
            indirect_branch: controlled(SpeculationFeature::IndirectBranchSpeculation),
        }
    }
}

/// Why the format could not be learned.
#[derive(Debug, Error)]
pub enum FormatError {
    /// The process's own status could not be read.
    #[error("cannot read {path}: is /proc mounted?")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// It is no status.
    #[error(transparent)]
    Parse(#[from] ParseError),
}

impl Format {
    /// Learns the format of the kernel that this process runs on; `proc` is where the proc file system is mounted.
    pub fn of_this_kernel(proc: &Path, host: &Host) -> Result<Self, FormatError> {
        let path = proc.join("self/status");
        let own = fs::read(&path).map_err(|source| FormatError::Read {
            path: path.display().to_string(),
            source,
        })?;
        Ok(Self::learn(
            &own,
            Some(host.possible_cpus as usize),
            SpeculationControl::of_this_kernel(),
        )?)
    }

    /// Learns from the status of this process, or of any that has memory of its own.
    ///
    /// `cpus` is the kernel's `nr_cpu_ids`, one more than the highest possible CPU, by which it cuts `Cpus_allowed`. Where
    /// that is not known, these two lines are taken from the kernel.
    pub fn learn(
        own: &[u8],
        cpus: Option<usize>,
        control: SpeculationControl,
    ) -> Result<Self, ParseError> {
        let mut format = Self {
            entries: Vec::new(),
            steps: Vec::new(),
            needed_lines: [0; 2],
            cpu_bits: 0,
            node_bits: 0,
            store_bypass: None,
            indirect_branch: None,
            thp_disable_bit: None,
            thread_features: false,
        };
        let mut cursor = Cursor::new(super::parse::FILE, own);
        let mut texts = Vec::new();
        while !cursor.is_at_end() {
            let mut ahead = cursor;
            let text = ahead.line()?;
            let Some(colon) = text
                .iter()
                .position(|&byte| byte == b':')
                .filter(|&at| at > 0)
            else {
                return Err(cursor.error("a label and a colon"));
            };
            let (name, value) = text.split_at(colon);
            let line = Line::with_label(name).filter(|_| value.starts_with(b":\t"));
            let value = value.get(2..).unwrap_or(&[]);
            match line {
                Some(Line::Cpus_allowed) => format.cpu_bits = mask::room(value),
                Some(Line::Mems_allowed) => format.node_bits = mask::room(value),
                Some(Line::Speculation_Store_Bypass) => {
                    format.store_bypass =
                        Speculation::learn(Kind::StoreBypass, value, control.store_bypass);
                }
                Some(Line::SpeculationIndirectBranch) => {
                    format.indirect_branch =
                        Speculation::learn(Kind::IndirectBranch, value, control.indirect_branch);
                }
                _ => {}
            }
            let label_len = if line.is_some() { colon + 2 } else { colon + 1 };
            format.entries.push(Entry {
                label: Label::new(&text[..label_len]),
                line,
                proven: false,
            });
            texts.push(cursor);
            cursor = ahead;
        }
        let cpus = cpus.filter(|cpus| cpus.next_multiple_of(4) == format.cpu_bits);
        format.cpu_bits = cpus.unwrap_or(format.cpu_bits);
        format.prove(own, &texts, cpus.is_some());
        format.plan();
        Ok(format)
    }

    /// Sets the bit of `mm->flags` that says that a process may not have transparent huge pages; not known at first,
    /// for it is not part of the kernel's type information. Without it `THP_enabled` comes from the kernel's text.
    pub fn set_thp_disable_bit(&mut self, bit: Option<u32>) {
        self.thp_disable_bit = bit.filter(|&bit| bit < u64::BITS);
        self.plan();
    }

    /// This format with the bit set.
    #[must_use]
    pub fn with_thp_disable_bit(mut self, bit: Option<u32>) -> Self {
        self.set_thp_disable_bit(bit);
        self
    }

    /// The bit last set so.
    pub const fn thp_disable_bit(&self) -> Option<u32> {
        self.thp_disable_bit
    }

    /// Says whether records hold the features of a thread; a source may not have found them. Until then
    /// `x86_Thread_features` and `x86_Thread_features_locked` come from the kernel's text.
    pub fn set_thread_features(&mut self, held: bool) {
        self.thread_features = held;
        self.plan();
    }

    /// Whether it was said so.
    pub const fn thread_features(&self) -> bool {
        self.thread_features
    }

    /// This format with that said.
    #[must_use]
    pub fn with_thread_features(mut self, held: bool) -> Self {
        self.set_thread_features(held);
        self
    }

    /// Labels of the lines that come from the kernel's own text, as no record holds their values or it could not be
    /// shown that rendering them yields the kernel's bytes.
    pub fn kernel_lines(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.what {
            What::Kernel(label) => {
                std::str::from_utf8(label.strip_suffix(b":").unwrap_or(label)).ok()
            }
            _ => None,
        })
    }

    /// The words that `Cpus_allowed` takes.
    pub const fn cpu_words(&self) -> usize {
        self.cpu_bits.div_ceil(64)
    }

    /// The words that `Mems_allowed` takes, that is room for all nodes that this kernel was built for.
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
        self.store_bypass.as_ref()
    }

    pub(super) const fn indirect_branch(&self) -> Option<&Speculation> {
        self.indirect_branch.as_ref()
    }

    /// The bit of `mm->flags`, as a mask.
    pub(super) const fn thp_disabled(&self) -> u64 {
        match self.thp_disable_bit {
            Some(bit) => 1 << bit,
            None => 0,
        }
    }

    /// Parses each line alone, renders it again, and compares.
    fn prove(&mut self, own: &[u8], texts: &[Cursor<'_>], cpus_known: bool) {
        let mut pool = Vec::new();
        let mut record = Record::default();
        record.identity.groups = Fields::THREE_FILES.bits();
        for index in 0..texts.len() {
            if let Some(line) = self.entries[index].line {
                let mut cursor = texts[index];
                cursor.skip(self.entries[index].label.len());
                let parsed = parse_line(line, &mut cursor, self, &mut record, &mut pool);
                if parsed.is_err()
                    || texts.get(index + 1).map_or(own.len(), Cursor::position) != cursor.position()
                {
                    self.entries[index].line = None;
                }
            }
        }
        let process = Process::new(&record, &pool);
        let (mut cpus, mut mems) = (self.cpus(), self.mems());
        cpus.set(process.cpus_allowed(self.cpu_words()));
        mems.set(process.mems_allowed(self.node_words()));
        let mut rendered = Vec::new();
        for index in 0..texts.len() {
            let Some(line) = self.entries[index].line else {
                continue;
            };
            let start = texts[index].position();
            let end = texts.get(index + 1).map_or(own.len(), Cursor::position);
            rendered.resize(2 * (end - start) + 256, 0);
            let mut out = SeqBuf::new(&mut rendered);
            line.put(
                &View {
                    process,
                    record: &record,
                    format: self,
                    cpus: &cpus,
                    mems: &mems,
                },
                &mut out,
            );
            let is_cut = matches!(line, Line::Cpus_allowed | Line::Cpus_allowed_list);
            // Without the bit no record says anything about huge pages, so this line is for `plan` to judge.
            let proven = line == Line::THP_enabled || out.text() == Ok(&own[start..end]);
            self.entries[index].proven = proven && (cpus_known || !is_cut);
        }
    }

    /// From the entries to steps: runs where there are any.
    fn plan(&mut self) {
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
            let (what, parts, lines) = match (run, known[at]) {
                (Some(run), _) => {
                    let parts = run.lines.iter().map(|line| line.parts());
                    let parts = parts.fold(Parts::empty(), Parts::union);
                    (What::Run(run.put), parts, run.lines.len())
                }
                (None, Some(line)) => (What::Line(line), line.parts(), 1),
                (None, None) => {
                    let label = &self.entries[at].label.text;
                    (
                        What::Kernel(label.strip_suffix(b"\t").unwrap_or(label).into()),
                        Parts::KERNEL,
                        1,
                    )
                }
            };
            self.steps.push(Step {
                needs_memory,
                parts,
                what,
            });
            at += lines;
        }
    }

    fn renderable(&self, entry: &Entry) -> Option<Line> {
        entry.line.filter(|&line| {
            let held = match line {
                Line::THP_enabled => self.thp_disable_bit.is_some(),
                Line::x86_Thread_features | Line::x86_Thread_features_locked => {
                    self.thread_features
                }
                _ => true,
            };
            entry.proven && held
        })
    }
}
