//! `/proc/vmstat`: the counters of the memory management, by name. See `vmstat_show()` in `mm/vmstat.c`.

use std::sync::Arc;

use super::{lines::Source, numbers::Numbers};
use crate::base::error::parse::ParseError;

const FILE: &str = "/proc/vmstat";

/// The names of a kernel's counters, in the order of the text.
#[derive(Clone, Debug, Default, Eq)]
pub struct Names(Arc<[Box<str>]>);

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        // Mostly the same list; comparing two hundred names costs as much as collecting their counters.
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Names {
    /// The names, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The line of a counter, from 0.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|known| **known == *name)
    }

    /// The name of a line.
    pub fn get(&self, line: usize) -> Option<&str> {
        self.0.get(line).map(AsRef::as_ref)
    }
}

impl<S: Into<Box<str>>> FromIterator<S> for Names {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}

/// The values of `/proc/vmstat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmStat {
    /// The counters' names.
    pub names: Names,
    /// Their values, in the names' order. Most are pages; `pgpgin` and `pgpgout` are KiB; the others are events.
    pub values: Vec<u64>,
}

impl VmStat {
    /// A counter by its name, as in `pgfault`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.values.get(self.names.position(name)?).copied()
    }

    /// Names and values, in the text's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.names.iter().zip(self.values.iter().copied())
    }

    /// Reads a text of `/proc/vmstat`.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let mut stat = Self::default();
        stat.parse_into(text)?;
        Ok(stat)
    }

    /// Parses a text of `/proc/vmstat` into `self`, keeping its names if they are the same.
    pub fn parse_into(&mut self, text: &[u8]) -> Result<(), ParseError> {
        self.values.clear();
        let source = Source { file: FILE, text };
        let mut same = true;
        for (at, line) in source.lines().enumerate() {
            let (name, value) = split(source, line)?;
            same &= self
                .names
                .get(at)
                .is_some_and(|known| known.as_bytes() == name.as_bytes());
            self.values.push(value);
        }
        if !same || self.names.len() != self.values.len() {
            self.names = source
                .lines()
                .map(|line| split(source, line).map(|(name, _)| name))
                .collect::<Result<_, _>>()?;
        }
        Ok(())
    }
}

fn split<'a>(source: Source<'_>, line: &'a [u8]) -> Result<(&'a str, u64), ParseError> {
    let space = line.iter().position(|&byte| byte == b' ');
    let (name, value) =
        line.split_at(space.ok_or_else(|| source.wrong(line, "a name and a number"))?);
    match std::str::from_utf8(name) {
        Ok(name) if !name.is_empty() => Ok((name, source.number(Some(&value[1..]), line)?)),
        _ => Err(source.wrong(line, "a name")),
    }
}

/// The text of `/proc/vmstat`, kept from one rendering to the next.
#[derive(Clone, Debug, Default)]
pub struct Renderer {
    numbers: Numbers,
    names: Names,
}

impl Renderer {
    /// The text that was rendered last.
    pub fn text(&self) -> &[u8] {
        self.numbers.text()
    }

    /// Renders the text of `stat`: only lines with changed values are written.
    pub fn render(&mut self, stat: &VmStat) -> &[u8] {
        if !self.numbers.is_empty()
            && (Arc::ptr_eq(&self.names.0, &stat.names.0) || self.names == stat.names)
        {
            self.numbers.set_row(0, &stat.values);
        } else {
            self.names = stat.names.clone();
            self.numbers.write(|to| {
                for (name, value) in stat.iter() {
                    to.puts(name);
                    to.number(" ", value);
                    to.puts("\n");
                }
            });
        }
        self.numbers.text()
    }
}
