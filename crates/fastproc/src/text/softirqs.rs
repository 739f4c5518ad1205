//! `/proc/softirqs`: softirqs by kind and CPU. See `show_softirqs()` in `fs/proc/softirqs.c`.

use super::{
    lines::{Source, words},
    numbers::Numbers,
};
use crate::base::error::parse::ParseError;

const FILE: &str = "/proc/softirqs";

/// The values of `/proc/softirqs`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Softirqs {
    /// The possible CPUs: the columns.
    pub cpus: Vec<u32>,
    /// The kinds' names, as in `NET_RX`: the rows.
    pub names: Vec<Box<str>>,
    /// Row by row. 32 bits, as in the kernel: they wrap.
    pub counts: Vec<u32>,
}

impl Softirqs {
    /// Reads a text of `/proc/softirqs`.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let source = Source { file: FILE, text };
        let mut lines = source.lines();
        let mut softirqs = Self::default();
        for word in words(lines.next().unwrap_or_default()) {
            let cpu = word
                .strip_prefix(b"CPU")
                .ok_or_else(|| source.wrong(word, "a CPU"))?;
            softirqs.cpus.push(source.number(Some(cpu), word)?);
        }
        for line in lines {
            let mut words = words(line);
            let name = words.next().and_then(|word| word.strip_suffix(b":"));
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            softirqs.names.push(
                name.ok_or_else(|| source.wrong(line, "a name and a colon"))?
                    .into(),
            );
            let before = softirqs.counts.len();
            for word in words {
                softirqs.counts.push(source.number(Some(word), line)?);
            }
            if softirqs.counts.len() - before != softirqs.cpus.len() {
                return Err(source.wrong(line, "a count for every CPU"));
            }
        }
        if softirqs.names.is_empty() {
            return Err(source.wrong(b"", "a row"));
        }
        Ok(softirqs)
    }

    /// The counts of one kind, by CPU.
    pub fn row(&self, name: &str) -> Option<&[u32]> {
        let row = self.names.iter().position(|known| **known == *name)?;
        self.counts
            .get(row * self.cpus.len()..(row + 1) * self.cpus.len())
    }
}

/// The text of `/proc/softirqs`, kept from one rendering to the next.
#[derive(Clone, Debug, Default)]
pub struct Renderer {
    numbers: Numbers,
    cpus: Vec<u32>,
    names: Vec<Box<str>>,
}

impl Renderer {
    /// Renders the text of `softirqs`.
    pub fn render(&mut self, softirqs: &Softirqs) -> &[u8] {
        if !self.numbers.is_empty() && self.cpus == softirqs.cpus && self.names == softirqs.names {
            for (at, &count) in softirqs.counts.iter().enumerate() {
                self.numbers.set(at, u64::from(count));
            }
            return self.numbers.text();
        }
        self.cpus.clone_from(&softirqs.cpus);
        self.names.clone_from(&softirqs.names);
        self.numbers.write(|to| {
            to.puts("                    ");
            for &cpu in &softirqs.cpus {
                to.cpu_heading(cpu);
            }
            to.puts("\n");
            let mut counts = softirqs.counts.iter();
            for name in &softirqs.names {
                to.right(name, 12);
                to.puts(":");
                for &count in counts.by_ref().take(softirqs.cpus.len()) {
                    to.number_width(" ", u64::from(count), 10);
                }
                to.puts("\n");
            }
        });
        self.numbers.text()
    }
}
