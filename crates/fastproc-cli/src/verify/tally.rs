//! Counting what was compared, by field and by whole text.

use std::collections::BTreeMap;

use serde::Serialize;

use super::fields::{File, is_nonzero, split};

/// How a value compares with the kernel's, read between two of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel's is one of ours.
    Equal,
    /// Ours moved meanwhile, or the kernel's did and came back: it can be neither right nor wrong.
    Moved,
    /// Ours stood still, and is not the kernel's, however often it is read.
    Wrong,
}

/// Counts of verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Values compared.
    pub compared: u64,
    /// Equal to the kernel's.
    pub equal: u64,
    /// Moved while they were compared.
    pub moved: u64,
    /// Wrong.
    pub wrong: u64,
}

impl Counts {
    /// Counts one more.
    pub fn add(&mut self, verdict: Verdict) {
        self.compared += 1;
        match verdict {
            Verdict::Equal => self.equal += 1,
            Verdict::Moved => self.moved += 1,
            Verdict::Wrong => self.wrong += 1,
        }
    }
}

/// Counts for a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FieldCounts {
    /// All comparisons.
    #[serde(flatten)]
    pub counts: Counts,
    /// Equal, and not zero: what is only ever zero is not proven.
    pub nonzero: u64,
}

/// An example of a wrong value, for people.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// Process.
    pub pid: u32,
    /// File of the process.
    pub file: &'static str,
    /// Field in it.
    pub field: String,
    /// What the kernel says.
    pub kernel: String,
    /// What fastproc says.
    pub fastproc: String,
}

/// Most examples that are kept.
const EXAMPLES: usize = 20;

/// All counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By file and field, in the order in which they were first met.
    pub fields: BTreeMap<(File, usize), (String, FieldCounts)>,
    /// Whole texts, byte for byte.
    pub texts: BTreeMap<File, Counts>,
    /// Examples of wrong values.
    pub examples: Vec<Example>,
    /// Processes that `/proc` lists throughout and no snapshot has.
    pub missing: u64,
    places: BTreeMap<(File, String), usize>,
}

/// One file of one process: ours before, the kernel's, ours after.
#[derive(Clone, Copy, Debug)]
pub struct Bracket<'t> {
    pub pid: u32,
    pub file: File,
    pub before: &'t [u8],
    pub kernel: &'t [u8],
    pub after: &'t [u8],
}

impl Bracket<'_> {
    /// The verdict on the whole text. `settled`: it was read often enough to call a difference wrong.
    pub fn verdict(&self, settled: bool) -> Verdict {
        verdict(self.before, self.kernel, self.after, settled)
    }

    /// Whether a field differs that did not move: it should be read again before it is called wrong.
    pub fn is_suspicious(&self) -> bool {
        let mut suspicious = false;
        self.fields(true, |_, _, verdict| {
            suspicious |= verdict == Verdict::Wrong;
        });
        suspicious
    }

    fn fields(&self, settled: bool, mut each: impl FnMut(&str, [&[u8]; 3], Verdict)) {
        let before = split(self.file, self.before);
        let after = split(self.file, self.after);
        let kernel = split(self.file, self.kernel);
        for (at, &(name, value)) in kernel.iter().enumerate() {
            // Nearly always the same place; a line that one of them lacks shifts the rest.
            let find = |fields: &[(&str, &[u8])]| -> Vec<u8> {
                let same = fields.get(at).filter(|field| field.0 == name);
                let found = same.or_else(|| fields.iter().find(|field| field.0 == name));
                found.map_or_else(|| b"(no such line)".to_vec(), |field| field.1.to_vec())
            };
            let (before, after) = (find(&before), find(&after));
            each(
                name,
                [&before, value, &after],
                verdict(&before, value, &after, settled),
            );
        }
        for &(name, value) in &after {
            if !kernel.iter().any(|field| field.0 == name) {
                each(name, [value, b"(no such line)", value], Verdict::Wrong);
            }
        }
    }
}

fn verdict(before: &[u8], kernel: &[u8], after: &[u8], settled: bool) -> Verdict {
    if kernel == before || kernel == after {
        Verdict::Equal
    } else if before != after || !settled {
        Verdict::Moved
    } else {
        Verdict::Wrong
    }
}

impl Tally {
    /// Counts a text and its fields.
    pub fn add(&mut self, bracket: &Bracket<'_>, settled: bool) {
        self.texts
            .entry(bracket.file)
            .or_default()
            .add(bracket.verdict(settled));
        bracket.fields(settled, |name, [_, kernel, after], verdict| {
            let next = self.places.len();
            let place = *self
                .places
                .entry((bracket.file, name.to_owned()))
                .or_insert(next);
            let field = self.fields.entry((bracket.file, place));
            let (_, counts) = field.or_insert_with(|| (name.to_owned(), FieldCounts::default()));
            counts.counts.add(verdict);
            counts.nonzero += u64::from(verdict == Verdict::Equal && is_nonzero(kernel));
            if verdict == Verdict::Wrong && self.examples.len() < EXAMPLES {
                self.examples.push(Example {
                    pid: bracket.pid,
                    file: bracket.file.name(),
                    field: name.to_owned(),
                    kernel: kernel.trim_ascii().escape_ascii().to_string(),
                    fastproc: after.trim_ascii().escape_ascii().to_string(),
                });
            }
        });
    }

    /// Values that were compared, and how many of them were wrong.
    pub fn total(&self) -> (u64, u64) {
        let counts = self.fields.values().map(|(_, field)| field.counts);
        let texts = self.texts.values().copied();
        let (compared, wrong) = counts
            .chain(texts)
            .fold((0, 0), |(compared, wrong), counts| {
                (compared + counts.compared, wrong + counts.wrong)
            });
        (compared, wrong + self.missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statm<'t>(before: &'t [u8], kernel: &'t [u8], after: &'t [u8]) -> Bracket<'t> {
        Bracket {
            pid: 1,
            file: File::Statm,
            before,
            kernel,
            after,
        }
    }

    #[test]
    fn a_value_that_moved_is_not_wrong() {
        let mut tally = Tally::default();
        tally.add(
            &statm(b"1 2 3 4 0 5 0\n", b"1 3 3 4 0 5 0\n", b"1 4 3 4 0 5 0\n"),
            true,
        );
        assert_eq!(tally.total(), (8, 0));
        assert_eq!(tally.texts[&File::Statm].moved, 1);
    }

    #[test]
    fn a_value_that_stood_still_is_wrong_if_it_differs() {
        let mut tally = Tally::default();
        let bracket = statm(b"1 2 3 4 0 5 0\n", b"1 3 3 4 0 5 0\n", b"1 2 3 4 0 5 0\n");
        assert!(bracket.is_suspicious());
        tally.add(&bracket, true);
        assert_eq!(tally.total(), (8, 2), "the field and the text");
        assert_eq!(tally.examples[0].field, "resident");
    }

    #[test]
    fn a_line_too_few_or_too_many_is_wrong() {
        for (kernel, ours) in [
            (&b"a:\t1\nb:\t2\n"[..], &b"a:\t1\n"[..]),
            (b"a:\t1\n", b"a:\t1\nb:\t2\n"),
        ] {
            let mut tally = Tally::default();
            let bracket = Bracket {
                pid: 1,
                file: File::Status,
                before: ours,
                kernel,
                after: ours,
            };
            tally.add(&bracket, true);
            assert_eq!(
                tally
                    .fields
                    .values()
                    .map(|(_, field)| field.counts.wrong)
                    .sum::<u64>(),
                1
            );
        }
    }
}
