//! Counts comparisons by field and by whole text.

use std::collections::BTreeMap;

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

impl Counts {
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

impl Bracket<'_> {
    /// The verdict on the whole text. `settled`: it was read often enough to call a difference wrong.
    pub fn verdict(&self, settled: bool) -> Verdict {
        let whole = verdict(self.before, self.kernel, self.after, settled);
        let (mut wrong, mut momentary) = (false, false);
        self.fields(settled, |name, _, verdict| {
            wrong |= verdict == Verdict::Wrong;
            momentary |= verdict == Verdict::Moved && MOMENTARY.contains(&name);
        });
        match whole {
            _ if wrong => Verdict::Wrong,
            Verdict::Wrong if momentary => Verdict::Moved,
            verdict => verdict,
        }
    }

    /// Whether a field differs that did not change: it should be read again before it is called wrong.
    pub fn is_suspicious(&self) -> bool {
        let mut suspicious = false;
        let as_if_asleep = Bracket {
            switched: false,
            ..*self
        };
        as_if_asleep.fields(true, |_, _, verdict| {
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

    fn fields(&self, settled: bool, mut each: impl FnMut(&str, [&[u8]; 3], Verdict)) {
        let before = split(self.file, self.before);
        let after = split(self.file, self.after);
        let kernel = split(self.file, self.kernel);
        let looks = self.moving();
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
            let unknown = self.switched && MOMENTARY.contains(&name);
            each(
                name,
                [&before, value, &after],
                verdict(&before, value, &after, settled && !unknown),
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
                // If the kernel's own value falls, nothing can be compared.
                last >= least && (number < least || number > most(new, name))
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
    if ["utime", "stime"].contains(&name) {
        Some(number(text, "utime")? + number(text, "stime")? + 1)
    } else {
        number(text, name)
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
            let unbounded = motion(name, kernel) == Motion::Any;
            self.in_motion += u64::from(verdict == Verdict::Moved && unbounded);
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
            looks: &[],
            shown_since: &[],
            switched: false,
        }
    }

    /// Whether texts that changed are wrong.
    fn is_wrong(file: File, looks: &[[&str; 5]]) -> bool {
        let looks: Vec<Look> = looks
            .iter()
            .map(|look| look.map(|text| text.as_bytes().to_vec()))
            .collect();
        let [_, before, kernel, after, _] = looks.last().expect("one look");
        let bracket = Bracket {
            pid: 1,
            file,
            before,
            kernel,
            after,
            looks: &looks,
            shown_since: &[],
            switched: false,
        };
        let mut tally = Tally::default();
        tally.add(&bracket, true);
        assert_eq!(bracket.is_suspicious(), tally.total().1 > 0);
        tally.total().1 > 0
    }

    #[test]
    fn a_list_that_moves_is_one_that_the_kernel_shows() {
        let [long, short, garbage] = [
            "Groups:\t7777 7777 \n",
            "Groups:\t8888 \n",
            "Groups:\t8888 18446744071612759648 \n",
        ];
        let file = File::Status;
        assert!(is_wrong(file, &[[long, garbage, short, long, short]]));
        // Ours changed, and the kernel's is one of ours.
        assert!(is_wrong(file, &[[long, garbage, short, short, short]]));
        // A later reading does not undo it.
        let usual = [long, short, short, long, long];
        assert!(is_wrong(
            file,
            &[[long, garbage, short, long, short], usual]
        ));
        assert!(!is_wrong(file, &[usual]));
        // The kernel shows it in the end.
        let unknown = [long, short, long, short, long];
        assert!(is_wrong(file, &[unknown]));
        assert!(!is_wrong(file, &[unknown, usual]));
    }

    /// A list that is rarely in force.
    #[test]
    fn a_list_that_the_kernel_shows_when_it_is_looked_at_for_longer_is_right() {
        let looks = ["7777", "8888", "7777", "9999", "7777"];
        let looks = [looks.map(|list| format!("Groups:\t{list} \n").into_bytes())];
        let [_, before, kernel, after, _] = &looks[0];
        let list = |list: &str| ("Groups".to_owned(), format!("\t{list} ").into_bytes());
        let bracket = Bracket {
            pid: 1,
            file: File::Status,
            before,
            kernel,
            after,
            looks: &looks,
            shown_since: &[],
            switched: false,
        };
        assert_eq!(bracket.unseen(), [list("8888"), list("9999")]);
        let wrong = |shown_since: &[Value]| {
            let mut tally = Tally::default();
            let bracket = Bracket {
                shown_since,
                ..bracket
            };
            tally.add(&bracket, true);
            tally.total().1
        };
        assert_eq!(wrong(&[list("8888"), list("9999")]), 0);
        assert_eq!(wrong(&[list("8888")]), 2, "the field and the text");
        assert_eq!(wrong(&[]), 2);
    }

    #[test]
    fn a_counter_that_moves_is_between_the_kernels_texts() {
        let texts = |values: [u64; 5]| values.map(|value| format!("rchar: {value}\n"));
        let wrong = |values| {
            let texts = texts(values);
            is_wrong(File::Io, &[texts.each_ref().map(String::as_str)])
        };
        assert!(!wrong([10, 20, 30, 100, 110]));
        assert!(wrong([10, 9, 30, 100, 110]), "it fell");
        assert!(wrong([10, 31, 30, 100, 110]), "it came before its time");
        assert!(wrong([10, 20, 30, 29, 110]));
        assert!(!wrong([10, 5, 4, 4, 4]), "the kernel's fell as well");
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

    /// Like `rcu_preempt`, which reading wakes each time.
    #[test]
    fn what_a_thread_did_between_two_sleeps_is_only_known_if_it_was_not_switched() {
        let (asleep, awake) = (
            b"State:\tI (idle)\nTgid:\t16\n",
            b"State:\tR (running)\nTgid:\t16\n",
        );
        let bracket = |kernel: &'static [u8], switched| Bracket {
            pid: 16,
            file: File::Status,
            before: asleep,
            kernel,
            after: asleep,
            looks: &[],
            shown_since: &[],
            switched,
        };
        let wrong = |bracket: Bracket<'_>| {
            let mut tally = Tally::default();
            tally.add(&bracket, true);
            tally.total().1
        };
        assert_eq!(wrong(bracket(awake, true)), 0);
        assert!(
            bracket(awake, true).is_suspicious(),
            "it is looked at again"
        );
        assert_eq!(wrong(bracket(awake, false)), 2, "the field and the text");
        let other = b"State:\tR (running)\nTgid:\t17\n";
        assert_eq!(wrong(bracket(other, true)), 2, "a switch changes no pid");
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
                looks: &[],
                shown_since: &[],
                switched: false,
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
