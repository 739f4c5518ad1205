//! Compares the machine's counters: our text, the kernel's, our text.

use std::{collections::HashMap, fs, time::Duration};

use fastproc::{
    counters::{Counters, MachineFile},
    proc_root,
};
use serde::Serialize;

use super::{
    again::{self, RETRIES},
    progress::Progress,
    tally::{Counts, Verdict},
};
use crate::{Failure, doctor::origin};

/// The files whose lines are compared.
const FILES: [(MachineFile, &str); 2] =
    [(MachineFile::Stat, "stat"), (MachineFile::Vmstat, "vmstat")];

/// The results for a line.
#[derive(Clone, Debug, Serialize)]
#[allow(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub struct Line {
    /// `stat` or `vmstat`.
    pub file: &'static str,
    /// Its first word.
    pub line: String,
    /// `bpf`, or `text` for the kernel's text, which proves nothing.
    pub from: &'static str,
    #[serde(flatten)]
    pub counts: Counts,
    /// Rounds in which it was equal and had a number other than zero.
    pub nonzero: u64,
}

/// A wrong line, for the report.
#[derive(Clone, Debug, Serialize)]
pub struct Example {
    /// `stat` or `vmstat`.
    pub file: &'static str,
    /// The line's first word.
    pub line: String,
    /// Ours before, the kernel's, ours after; `None` if the line was missing.
    pub seen: [Option<String>; 3],
}

/// The most examples that are kept.
const EXAMPLES: usize = 20;

/// The results for both files.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Line by line.
    pub lines: Vec<Line>,
    /// Examples of wrong lines.
    pub examples: Vec<Example>,
    /// Whole texts: whether they have the kernel's lines in its order, and the same bytes except numbers.
    pub texts: Vec<(&'static str, Counts)>,
}

/// Opens the counters. `bpf`: whether the kernel's structures may be read at all.
pub fn open(bpf: bool) -> Result<Counters, Failure> {
    // Lines that the kernel computes on request may otherwise be a tenth of a second old.
    let options = fastproc::counters::Options::new()
        .bpf(bpf)
        .line_by_line(true)
        .text_latency(Duration::ZERO);
    Ok(options.open()?)
}

/// Compares both files, line by line and as a whole, `rounds` times.
pub fn compare(
    counters: &mut Counters,
    rounds: u32,
    progress: &mut Progress,
) -> Result<Seen, Failure> {
    let mut lines: Vec<Line> = counters
        .report()
        .lines
        .iter()
        .map(|line| Line {
            file: line.file.trim_start_matches("/proc/"),
            line: line.name.clone(),
            from: origin(line.route),
            counts: Counts::default(),
            nonzero: 0,
        })
        .collect();
    let mut examples = Vec::new();
    let mut texts = FILES.map(|(file, _)| (file.path(), Counts::default()));
    for round_number in 0..rounds {
        if !progress.goes_on("counters", round_number as usize, rounds as usize) {
            break;
        }
        for ((file, name), (_, text)) in FILES.into_iter().zip(&mut texts) {
            text.add(round(counters, file, name, &mut lines, &mut examples)?);
        }
    }
    // Lines that disagreed come from the text from now on, and are reported so.
    for line in counters.report().lines {
        let file = line.file.trim_start_matches("/proc/");
        for known in lines
            .iter_mut()
            .filter(|known| known.file == file && known.line == line.name)
        {
            known.from = origin(line.route);
        }
    }
    Ok(Seen {
        lines,
        examples,
        texts: texts.into(),
    })
}

/// Compares the lines of a file, and the file as a whole.
fn round(
    reader: &mut Counters,
    file: MachineFile,
    name: &'static str,
    lines: &mut Vec<Line>,
    examples: &mut Vec<Example>,
) -> Result<Verdict, Failure> {
    let mut open: Option<Vec<String>> = None;
    let mut text = Verdict::Wrong;
    for attempt in 0..=RETRIES {
        let settled = attempt == RETRIES;
        let before = reader.text(file)?.to_vec();
        let kernel = fs::read(proc_root::path(file.path()))?;
        let after = reader.text(file)?.to_vec();
        if text == Verdict::Wrong {
            text = whole(&before, &kernel, &after);
        }
        let (before, kernel, after) = (by_name(&before), by_name(&kernel), by_name(&after));
        let mut again = Vec::new();
        for key in kernel
            .keys()
            .chain(after.keys().filter(|key| !kernel.contains_key(*key)))
        {
            if open.as_ref().is_some_and(|open| !open.contains(key)) {
                continue;
            }
            let kernel = kernel.get(key);
            let verdict = match (before.get(key), kernel, after.get(key)) {
                (Some(before), Some(kernel), Some(after)) => verdict(before, kernel, after),
                // It appeared or disappeared meanwhile, as lines of CPUs do.
                (None, _, Some(_)) | (Some(_), _, None) => Verdict::Moved,
                _ => Verdict::Wrong,
            };
            if verdict == Verdict::Wrong && !settled {
                again.push(key.clone());
                continue;
            }
            if verdict == Verdict::Wrong && examples.len() < EXAMPLES {
                examples.push(Example {
                    file: name,
                    line: key.clone(),
                    seen: [before.get(key), kernel, after.get(key)].map(Option::<&String>::cloned),
                });
            }
            let line = find(lines, name, key);
            line.counts.add(verdict);
            let nonzero = kernel.is_some_and(|kernel| has_nonzero(kernel));
            line.nonzero += u64::from(verdict == Verdict::Equal && nonzero);
        }
        if again.is_empty() && text != Verdict::Wrong {
            break;
        }
        open = Some(again);
        if !settled {
            again::pause(attempt);
        }
    }
    Ok(text)
}

/// Equal to one of ours byte for byte; or moved, if all but the numbers is equal; or wrong.
fn whole(before: &[u8], kernel: &[u8], after: &[u8]) -> Verdict {
    if kernel == before || kernel == after {
        return Verdict::Equal;
    }
    let shape = form(kernel);
    if shape == form(before) || shape == form(after) {
        Verdict::Moved
    } else {
        Verdict::Wrong
    }
}

/// A text with every number replaced by one digit. Numbers follow a space: `cpu1` has none.
fn form(text: &[u8]) -> Vec<u8> {
    let mut form = Vec::with_capacity(text.len());
    let mut in_number = false;
    for &byte in text {
        let digit = byte.is_ascii_digit() && (in_number || form.last() == Some(&b' '));
        if !(digit && in_number) {
            form.push(if digit { b'0' } else { byte });
        }
        in_number = digit;
    }
    form
}

fn find<'l>(lines: &'l mut Vec<Line>, file: &'static str, name: &str) -> &'l mut Line {
    let at = lines
        .iter()
        .position(|line| line.file == file && line.line == name);
    let at = at.unwrap_or_else(|| {
        lines.push(Line {
            file,
            line: name.into(),
            from: "text",
            counts: Counts::default(),
            nonzero: 0,
        });
        lines.len() - 1
    });
    &mut lines[at]
}

fn by_name(text: &[u8]) -> HashMap<String, String> {
    let lines = str::from_utf8(text).unwrap_or_default().lines();
    lines
        .filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.to_owned()))
        })
        .collect()
}

/// Equal to one of ours; or each number equals one of ours, or ours moved; or wrong.
fn verdict(before: &str, kernel: &str, after: &str) -> Verdict {
    if kernel == before || kernel == after {
        return Verdict::Equal;
    }
    let numbers = |line: &str| -> Vec<i128> {
        line.split(' ')
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    let (old, mid, new) = (numbers(before), numbers(kernel), numbers(after));
    let same_shape = old.len() == mid.len() && mid.len() == new.len();
    // A gauge that moved may have had any value between; one that did not move has only one.
    let explained =
        |((old, mid), new): ((&i128, &i128), &i128)| mid == old || mid == new || old != new;
    if same_shape && old.iter().zip(&mid).zip(&new).all(explained) {
        Verdict::Moved
    } else {
        Verdict::Wrong
    }
}

fn has_nonzero(line: &str) -> bool {
    line.split(' ')
        .any(|word| word.parse::<i128>().is_ok_and(|number| number != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_judged_as_a_whole() {
        let text = |text: &str| text.as_bytes().to_vec();
        let judge = |kernel: &str| {
            whole(
                &text("cpu  1 2\ncpu1 33 4\n"),
                &text(kernel),
                &text("cpu  3 4\ncpu1 34 5\n"),
            )
        };
        assert_eq!(judge("cpu  3 4\ncpu1 34 5\n"), Verdict::Equal);
        assert_eq!(judge("cpu  123 0\ncpu1 9 9\n"), Verdict::Moved);
        for wrong in [
            "cpu 3 4\ncpu1 34 5\n",
            "cpu  3 4\ncpu1 34 5 0\n",
            "cpu1 34 5\ncpu  3 4\n",
            "cpu  3 4\ncpu2 34 5\n",
            "cpu  3 4\ncpu1 34 5",
        ] {
            assert_eq!(judge(wrong), Verdict::Wrong, "{wrong}");
        }
    }

    #[test]
    fn a_line_is_judged_number_by_number() {
        assert_eq!(verdict("1 2", "1 3", "1 4"), Verdict::Moved);
        assert_eq!(verdict("1 2", "1 2", "1 4"), Verdict::Equal);
        assert_eq!(
            verdict("1 2", "2 2", "1 4"),
            Verdict::Wrong,
            "the first number stood still"
        );
        assert_eq!(
            verdict("1 2", "1 2 0", "1 2"),
            Verdict::Wrong,
            "another shape"
        );
    }
}
