//! Comparing the machine's counters: our text, the kernel's, our text.

use std::{collections::HashMap, fs, time::Duration};

use fastproc::counters::{Counters, MachineFile, Reader};
use serde::Serialize;

use super::tally::{Counts, Verdict};
use crate::{Failure, doctor::origin};

/// The files whose lines are compared.
const FILES: [(MachineFile, &str); 2] =
    [(MachineFile::Stat, "stat"), (MachineFile::Vmstat, "vmstat")];
/// A line that differs is read again this often before it is called wrong.
const RETRIES: u32 = 6;

/// What was seen of a line.
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
    /// Rounds in which it was equal and held a number that is not zero.
    pub nonzero: u64,
}

/// Compares both files, line by line, `rounds` times. `bpf`: whether the kernel's structures may be read at all.
pub fn compare(bpf: bool, rounds: u32) -> Result<Vec<Line>, Failure> {
    // Lines that the kernel computes when asked may otherwise be a tenth of a second old.
    let options = fastproc::counters::Options::new()
        .bpf(bpf)
        .text_latency(Duration::ZERO);
    let counters: Counters = options.open()?;
    let mut reader = counters.reader();
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
    for _ in 0..rounds {
        for (file, name) in FILES {
            round(&mut reader, file, name, &mut lines)?;
        }
    }
    // What disagreed meanwhile comes from the text from now on, and is said to.
    for line in counters.report().lines {
        let file = line.file.trim_start_matches("/proc/");
        for known in lines
            .iter_mut()
            .filter(|known| known.file == file && known.line == line.name)
        {
            known.from = origin(line.route);
        }
    }
    Ok(lines)
}

fn round(
    reader: &mut Reader,
    file: MachineFile,
    name: &'static str,
    lines: &mut Vec<Line>,
) -> Result<(), Failure> {
    let mut open: Option<Vec<String>> = None;
    for attempt in 0..=RETRIES {
        let settled = attempt == RETRIES;
        let before = reader.text(file)?.to_vec();
        let kernel = fs::read(file.path())?;
        let after = reader.text(file)?.to_vec();
        let (before, kernel, after) = (by_name(&before), by_name(&kernel), by_name(&after));
        let mut again = Vec::new();
        for (key, value) in &kernel {
            if open.as_ref().is_some_and(|open| !open.contains(key)) {
                continue;
            }
            let verdict = match (before.get(key), after.get(key)) {
                (Some(before), Some(after)) => verdict(before, value, after),
                _ => Verdict::Wrong,
            };
            if verdict == Verdict::Wrong && !settled {
                again.push(key.clone());
                continue;
            }
            let line = find(lines, name, key);
            line.counts.add(verdict);
            line.nonzero += u64::from(verdict == Verdict::Equal && has_nonzero(value));
        }
        for key in after.keys().filter(|key| !kernel.contains_key(*key)) {
            find(lines, name, key).counts.add(Verdict::Wrong);
        }
        if again.is_empty() {
            break;
        }
        open = Some(again);
    }
    Ok(())
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

/// Equal to one of ours; or each number between ours, or ours moved; or wrong.
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
    // A gauge that moved may have been anywhere between; one that stood still was not.
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
