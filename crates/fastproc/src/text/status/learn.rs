//! Learns the format of status from the running kernel's own text.

use std::fs;

use rustix::process::{SpeculationFeature, SpeculationFeatureState, speculative_feature_state};
use seqtext::SeqBuf;

use super::{
    format::{Entry, Format, Label},
    lines::{Line, View},
    mask,
    parse::{FILE, parse_line},
    speculation::{Kind, Speculation},
};
use crate::{
    base::{
        error::parse::{FormatError, ParseError},
        frozen,
        host::Host,
        proc_root,
    },
    records::{fields::Fields, record::Record},
    snapshot::process::Process,
    text::cursor::Cursor,
};

/// Whether a process can control its speculation, by `prctl(PR_GET_SPECULATION_CTRL)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpeculationControl {
    /// In `Speculation_Store_Bypass`.
    pub store_bypass: bool,
    /// In `SpeculationIndirectBranch`.
    pub indirect_branch: bool,
}

impl SpeculationControl {
    /// Asks the running kernel.
    pub fn read() -> Self {
        if frozen::folder().is_some() {
            return Self {
                store_bypass: true,
                indirect_branch: true,
            };
        }
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

impl Format {
    /// Learns the format of the kernel that this process runs on.
    pub fn read(host: &Host) -> Result<Self, FormatError> {
        let path = "/proc/self/status";
        let own = fs::read(proc_root::own_path(path)).map_err(|source| FormatError::Read {
            path: path.into(),
            source,
        })?;
        Ok(Self::learn(
            &own,
            Some(host.possible_cpus as usize),
            SpeculationControl::read(),
        )?)
    }

    /// Learns from the status of this process, or of any process with memory of its own.
    ///
    /// `cpus` is the kernel's `nr_cpu_ids`, one more than the highest possible CPU, which limits `Cpus_allowed`. If it
    /// is unknown, these two lines come from the kernel's text.
    pub fn learn(
        own: &[u8],
        cpus: Option<usize>,
        control: SpeculationControl,
    ) -> Result<Self, ParseError> {
        let mut format = Self::default();
        let mut cursor = Cursor::new(FILE, own);
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
                    format.facts.store_bypass =
                        Speculation::learn(Kind::StoreBypass, value, control.store_bypass);
                }
                Some(Line::SpeculationIndirectBranch) => {
                    format.facts.indirect_branch =
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

    /// Parses each line separately, renders it again, and compares.
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
                    facts: &self.facts,
                    cpus: &cpus,
                    mems: &mems,
                },
                &mut out,
            );
            let is_cut = matches!(line, Line::Cpus_allowed | Line::Cpus_allowed_list);
            // Without the bit, records have nothing about huge pages, so `plan` decides about this line.
            let proven = line == Line::THP_enabled || out.text() == Ok(&own[start..end]);
            self.entries[index].proven = proven && (cpus_known || !is_cut);
        }
    }
}
