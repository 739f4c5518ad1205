//! `/proc/interrupts`: interrupts by number, or by the architecture's name, and CPU. See `show_interrupts()` in
//! `kernel/irq/proc.c` and `arch_show_interrupts()`.

use super::lines::{Source, digits, words};
use crate::base::error::parse::ParseError;

const FILE: &str = "/proc/interrupts";

/// A count and the space before it.
const COLUMN: usize = 11;

/// One row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The text before the colon, padded as by the kernel: a number, or an abbreviation such as `LOC`.
    pub label: Box<[u8]>,
    /// Counts by online CPU; a row of the architecture's error counts has only one. 32 bits, as in the kernel: they
    /// wrap.
    pub counts: Vec<u32>,
    /// The text after the counts: chip, trigger and names, or the abbreviation's meaning.
    pub rest: Box<[u8]>,
}

impl Row {
    /// The interrupt's number, for a row that has one.
    pub fn irq(&self) -> Option<u32> {
        digits(self.label.trim_ascii()).and_then(|irq| u32::try_from(irq).ok())
    }
}

/// What the kernel writes before the first count. On arm64 `IPI0` has no space if numbers have fewer than four digits.
fn gap(label: &[u8], indent: usize) -> &'static str {
    if label.len() + 8 > indent { "" } else { " " }
}

/// The values of `/proc/interrupts`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interrupts {
    /// The online CPUs: the columns.
    pub cpus: Vec<u32>,
    /// Indentation of the header: the width of the widest label plus 8.
    pub indent: usize,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Interrupts {
    /// Reads a text of `/proc/interrupts`.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let source = Source { file: FILE, text };
        let mut lines = source.lines();
        let mut interrupts = Self::default();
        let header = lines.next().unwrap_or_default();
        interrupts.indent = header.iter().take_while(|&&byte| byte == b' ').count();
        for word in words(header) {
            let cpu = word
                .strip_prefix(b"CPU")
                .ok_or_else(|| source.wrong(word, "a CPU"))?;
            interrupts.cpus.push(source.number(Some(cpu), word)?);
        }
        if interrupts.cpus.is_empty() {
            return Err(source.wrong(header, "the CPUs"));
        }
        for line in lines {
            let colon = line.iter().position(|&byte| byte == b':');
            let colon = colon.ok_or_else(|| source.wrong(line, "a label and a colon"))?;
            let mut row = Row {
                label: line[..colon].into(),
                ..Row::default()
            };
            let mut rest = &line[colon + 1..];
            let mut width = COLUMN - 1 + gap(&row.label, interrupts.indent).len();
            while row.counts.len() < interrupts.cpus.len() && rest.len() >= width {
                let (column, after) = rest.split_at(width);
                width = COLUMN;
                let Some(count) =
                    digits(column.trim_ascii_start()).and_then(|count| u32::try_from(count).ok())
                else {
                    break;
                };
                row.counts.push(count);
                rest = after;
            }
            if row.counts.is_empty() {
                return Err(source.wrong(line, "a count"));
            }
            row.rest = rest.into();
            interrupts.rows.push(row);
        }
        Ok(interrupts)
    }

    /// The row of an interrupt, or of an abbreviation.
    pub fn row(&self, label: &str) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.label.trim_ascii() == label.as_bytes())
    }
}
