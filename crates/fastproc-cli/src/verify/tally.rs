//! Counts comparisons by field and by whole text.

use std::{collections::BTreeMap, iter::Sum};

use serde::Serialize;

use super::fields::{Field, File, Motion, is_nonzero, motion, split};

/// The result of comparing a value with the kernel's, read between two of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel's is one of ours.
    Equal,
    /// Ours changed meanwhile, or the kernel's changed and came back: neither right nor wrong.
    Moved,
    /// Ours did not change but differs however often it is read; or it changed and has a value that the kernel cannot
    /// show.
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

impl Sum for Counts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |mut total, counts| {
            total.compared += counts.compared;
            total.equal += counts.equal;
            total.moved += counts.moved;
            total.wrong += counts.wrong;
            total
        })
    }
}

impl Counts {
    /// Its columns of a table.
    pub fn numbers(self) -> Vec<u64> {
        vec![self.compared, self.equal, self.moved, self.wrong]
    }

    /// Counts a verdict.
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
    /// Equal and not zero: a field that was always zero is not proven.
    pub nonzero: u64,
}

/// An example of a wrong value, for the report.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// Process.
    pub pid: u32,
    /// File of the process.
    pub file: &'static str,
    /// Field in it.
    pub field: String,
    /// The kernel's value.
    pub kernel: String,
    /// fastproc's value.
    pub fastproc: String,
    /// The value in each reading: the kernel's, fastproc's, the kernel's, fastproc's, the kernel's.
    pub readings: Vec<[String; 5]>,
}

/// The most examples that are kept.
const EXAMPLES: usize = 20;

/// All counts of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By file and field, in the order of their first occurrence.
    pub fields: BTreeMap<(File, usize), (String, FieldCounts)>,
    /// Whole texts, byte for byte.
    pub texts: BTreeMap<File, Counts>,
    /// Examples of wrong values.
    pub examples: Vec<Example>,
    /// Processes that `/proc` lists all the time, but no snapshot has.
    pub missing: u64,
    /// Values that moved and could have had any value between: nothing is proven about these.
    pub in_motion: u64,
    places: BTreeMap<(File, String), usize>,
}

/// A reading of a file of a process: the kernel's text, ours, the kernel's, ours, the kernel's.
pub type Look = [Vec<u8>; 5];

/// The name of a field, and a value of it.
pub type Value = (String, Vec<u8>);

/// In place of a missing line.
const NO_LINE: &[u8] = b"(no such line)";

/// Fields with the momentary activity of a thread, by the files' own names.
const MOMENTARY: [&str; 4] = ["state", "wchan", "processor", "State"];

/// Parts of the CPU time, by the file's own names. The kernel and a reader that reads often may divide it differently, and
/// only the sum is certain: see `ShownTime::after` of the library.
const DIVIDED: [&str; 2] = ["utime", "stime"];

/// One file of one process: ours before, the kernel's, ours after.
#[derive(Clone, Copy, Debug)]
pub struct Bracket<'t> {
    pub pid: u32,
    pub file: File,
    pub before: &'t [u8],
    pub kernel: &'t [u8],
    pub after: &'t [u8],
    /// All snapshots of it; this one is the last.
    pub looks: &'t [Look],
    /// Values that only longer reading showed: [`Bracket::unseen`].
    pub shown_since: &'t [Value],
    /// Whether the leading thread was switched between our two readings. A thread that sleeps before and after may have
    /// been woken, for example by our reading of files (`rcu_preempt`), and have gone back to sleep. Then what it did
    /// in between cannot be derived from both ends. It cannot do that without a switch, which the kernel counts.
    pub switched: bool,
}

/// How a difference is judged that did not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It proves nothing.
    Early,
    /// It is a reason to read again.
    Suspects,
    /// It is wrong if it was there each time.
    Last,
}

impl Stage {
    fn of(settled: bool) -> Self {
        if settled { Self::Last } else { Self::Early }
    }
}

impl Bracket<'_> {
    /// The verdict on the whole text. `settled`: it was read often enough to call a difference wrong.
    pub fn verdict(&self, settled: bool) -> Verdict {
        let whole = verdict(self.before, self.kernel, self.after, settled);
        let (mut wrong, mut moved) = (false, Vec::new());
        self.fields(Stage::of(settled), |name, _, verdict| match verdict {
            Verdict::Wrong => wrong = true,
            Verdict::Moved => moved.push(name.to_owned()),
            Verdict::Equal => {}
        });
        match whole {
            _ if wrong => Verdict::Wrong,
            Verdict::Wrong
                if self.without(self.kernel, &moved) == self.without(self.after, &moved) =>
            {
                Verdict::Moved
            }
            verdict => verdict,
        }
    }

    /// A text without the values of these fields.
    fn without(&self, text: &[u8], fields: &[String]) -> Vec<u8> {
        let (mut rest, mut from) = (Vec::new(), 0);
        for (name, value) in split(self.file, text) {
            if fields.iter().any(|field| field == name) {
                // A value is a part of the text.
                let at = value.as_ptr().addr() - text.as_ptr().addr();
                rest.extend_from_slice(&text[from..at]);
                from = at + value.len();
            }
        }
        rest.extend_from_slice(&text[from..]);
        rest
    }

    /// Whether a field differs that did not change: it should be read again before it is called wrong.
    pub fn is_suspicious(&self) -> bool {
        let mut suspicious = false;
        self.fields(Stage::Suspects, |_, _, verdict| {
            suspicious |= verdict == Verdict::Wrong;
        });
        suspicious
    }

    /// Values of ours that the kernel showed in no reading, of a field with few values. A process that changes all the
    /// time may hardly ever be in one of its states.
    pub fn unseen(&self) -> Vec<Value> {
        let looks = self.moving();
        let mut unseen: Vec<Value> = Vec::new();
        for (name, value) in split(self.file, self.kernel) {
            if motion(name, value) == Motion::Few {
                unseen.extend(unshown(&looks, name).map(|ours| (name.to_owned(), ours.to_vec())));
            }
        }
        unseen
    }

    /// All readings, split into fields; empty if nothing changed in any of them.
    fn moving(&self) -> Vec<[Vec<Field<'_>>; 5]> {
        let still = |look: &Look| look.iter().all(|text| *text == look[0]);
        if self.looks.iter().all(still) {
            return Vec::new();
        }
        let looks = self.looks.iter();
        looks
            .map(|look| look.each_ref().map(|text| split(self.file, text)))
            .collect()
    }

    /// A field in all readings.
    fn readings(&self, name: &str) -> Vec<[String; 5]> {
        let of = |text: &Vec<u8>| shown(value(&split(self.file, text), name));
        let looks = self.looks.iter();
        looks.map(|look| look.each_ref().map(of)).collect()
    }

    fn fields(&self, stage: Stage, mut each: impl FnMut(&str, [&[u8]; 3], Verdict)) {
        let before = split(self.file, self.before);
        let after = split(self.file, self.after);
        let kernel = split(self.file, self.kernel);
        let looks = self.moving();
        let is_divided_anew =
            self.file == File::Stat && is_divided_anew([&before, &kernel, &after]);
        for (at, &(name, value)) in kernel.iter().enumerate() {
            // Mostly at the same index; a missing line shifts the others.
            let find = |fields: &[(&str, &[u8])]| -> Vec<u8> {
                let same = fields.get(at).filter(|field| field.0 == name);
                let found = same.or_else(|| fields.iter().find(|field| field.0 == name));
                found.map_or_else(|| NO_LINE.to_vec(), |field| field.1.to_vec())
            };
            if let Some(ours) = impossible(&looks, name, value, self.shown_since) {
                each(name, [ours, value, ours], Verdict::Wrong);
                continue;
            }
            let (before, after) = (find(&before), find(&after));
            let is_judged = match stage {
                Stage::Early => false,
                _ if DIVIDED.contains(&name) && is_divided_anew => false,
                Stage::Suspects => true,
                Stage::Last if MOMENTARY.contains(&name) => !self.switched,
                Stage::Last => differs_each_time(&looks, name),
            };
            each(
                name,
                [&before, value, &after],
                verdict(&before, value, &after, is_judged),
            );
        }
        for &(name, value) in &after {
            if !kernel.iter().any(|field| field.0 == name) {
                each(name, [value, NO_LINE, value], Verdict::Wrong);
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

/// Whether the kernel's value differed from both of ours in each reading. One field is enough for a text to be read again. So in
/// the last reading another field may have changed and changed back between our two readings.
fn differs_each_time(looks: &[[Vec<Field<'_>>; 5]], name: &str) -> bool {
    looks.iter().all(|look| {
        let [before, kernel, after] = [1, 2, 3].map(|at| value(&look[at], name));
        verdict(before, kernel, after, true) == Verdict::Wrong
    })
}

/// A value of ours, in any reading, that the kernel cannot have shown at that time.
fn impossible<'t>(
    looks: &[[Vec<Field<'t>>; 5]],
    name: &str,
    kernel: &[u8],
    shown_since: &[Value],
) -> Option<&'t [u8]> {
    match motion(name, kernel) {
        Motion::Any => None,
        Motion::Few => unshown(looks, name).find(|ours| {
            let mut shown = shown_since.iter();
            !shown.any(|(field, value)| field == name && value == ours)
        }),
        Motion::Rising => looks
            .iter()
            .flat_map(|look| [[0, 1, 2], [2, 3, 4]].map(|around| around.map(|at| &look[at])))
            .filter(|[old, ours, new]| {
                let [least, number, last] = [old, ours, new].map(|text| number(text, name));
                let fell = most(ours, name)
                    < if DIVIDED.contains(&name) {
                        cpu_ticks(old)
                    } else {
                        least
                    };
                // If the kernel's own value falls, nothing can be compared.
                last >= least && (fell || number > most(new, name))
            })
            .map(|[_, ours, _]| value(ours, name))
            .next(),
    }
}

/// Values of ours that no text of the kernel has.
fn unshown<'t>(looks: &[[Vec<Field<'t>>; 5]], name: &str) -> impl Iterator<Item = &'t [u8]> {
    let of = |places: &'static [usize]| {
        let all = looks.iter();
        all.flat_map(move |look| places.iter().map(move |&at| value(&look[at], name)))
    };
    let shown: Vec<&[u8]> = of(&[0, 2, 4]).collect();
    let ours: Vec<&[u8]> = of(&[1, 3]).collect();
    ours.into_iter().filter(move |ours| !shown.contains(ours))
}

/// A value, for the report.
fn shown(value: &[u8]) -> String {
    value.trim_ascii().escape_ascii().to_string()
}

fn value<'t>(text: &[Field<'t>], name: &str) -> &'t [u8] {
    text.iter()
        .find(|field| field.0 == name)
        .map_or(NO_LINE, |field| field.1)
}

fn number(text: &[Field<'_>], name: &str) -> Option<u64> {
    str::from_utf8(value(text, name)).ok()?.trim().parse().ok()
}

/// The most that a counter can have been before this text. The kernel divides the CPU time of a process into user and
/// system time again each time it shows them, so only the sum is certain; a tick is lost in rounding.
fn most(text: &[Field<'_>], name: &str) -> Option<u64> {
    if DIVIDED.contains(&name) {
        Some(cpu_ticks(text)? + 1)
    } else {
        number(text, name)
    }
}

/// User and system time together.
fn cpu_ticks(text: &[Field<'_>]) -> Option<u64> {
    Some(number(text, "utime")? + number(text, "stime")?)
}

/// Whether the process ran between our two readings, the first and the last of these texts, and the sum of user and system
/// time is right in the kernel's text between them. Each part is cut to a tick.
fn is_divided_anew(texts: [&[Field<'_>]; 3]) -> bool {
    let [Some(before), Some(kernel), Some(after)] = texts.map(cpu_ticks) else {
        return false;
    };
    before < after && before <= kernel + 1 && kernel <= after + 1
}

impl Tally {
    /// Counts a text and its fields.
    pub fn add(&mut self, bracket: &Bracket<'_>, settled: bool) {
        self.texts
            .entry(bracket.file)
            .or_default()
            .add(bracket.verdict(settled));
        bracket.fields(
            Stage::of(settled),
            |name, [before, kernel, after], verdict| {
                let next = self.places.len();
                let place = *self
                    .places
                    .entry((bracket.file, name.to_owned()))
                    .or_insert(next);
                let field = self.fields.entry((bracket.file, place));
                let (_, counts) =
                    field.or_insert_with(|| (name.to_owned(), FieldCounts::default()));
                counts.counts.add(verdict);
                // Between two equal values of ours the kernel's can have been any other for a moment.
                let unbounded = motion(name, kernel) == Motion::Any || before == after;
                self.in_motion += u64::from(verdict == Verdict::Moved && unbounded);
                counts.nonzero += u64::from(verdict == Verdict::Equal && is_nonzero(kernel));
                if verdict == Verdict::Wrong && self.examples.len() < EXAMPLES {
                    self.examples.push(Example {
                        pid: bracket.pid,
                        file: bracket.file.name(),
                        field: name.to_owned(),
                        kernel: shown(kernel),
                        fastproc: shown(after),
                        readings: bracket.readings(name),
                    });
                }
            },
        );
    }

    /// The sum of all. A missing process is wrong.
    pub fn total(&self) -> Counts {
        let counts = self.fields.values().map(|(_, field)| field.counts);
        let mut total: Counts = counts.chain(self.texts.values().copied()).sum();
        total.wrong += self.missing;
        total
    }
}

#[cfg(test)]
mod tests;
