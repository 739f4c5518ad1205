//! Interrupt counts that may be a little old: correct when they were read, kept as long as allowed, and then read
//! again. The other lines are as exact as ever.

use std::{fs, thread, time::Duration};

use fastproc::{
    counters::{Counters, MachineFile, Options},
    proc_root,
};
use serde::Serialize;

use super::{
    again::RETRIES,
    progress::Progress,
    tally::{Counts, Verdict},
};
use crate::Failure;

/// Readings of the counts until they are renewed.
const LOOKS: u32 = 40;

/// The result for the interrupt counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Aged {
    /// Allowed age in milliseconds, rounded up to the resolution of the kernel's clock.
    pub latency_ms: u64,
    /// Rows of counts that were compared.
    #[serde(flatten)]
    pub counts: Counts,
    /// Rows that were kept from one text to the next, as is allowed.
    pub kept: u64,
    /// Rows that were read again when they were too old.
    pub renewed: u64,
}

/// The counts of one text, and when they were read.
struct Ours {
    row: Row,
    taken: Duration,
}

/// The line `intr` and the rest of the text.
struct Row {
    total: u64,
    irqs: Vec<u32>,
    rest: Vec<(String, String)>,
}

/// Compares `rounds` times; `None` if the counts come from the kernel's text, which is always new.
pub fn compare(
    latency: Duration,
    rounds: u32,
    progress: &mut Progress,
) -> Result<Option<Aged>, Failure> {
    let options = Options::new()
        .line_by_line(true)
        .text_latency(Duration::ZERO)
        .stat_irqs_latency(latency);
    let counters = options.clone().open()?;
    if !counters.report().latency_knob {
        return Ok(None);
    }
    let latency = counters.stat_irqs_latency();
    let mut aged = Aged {
        latency_ms: latency.as_millis() as u64,
        ..Aged::default()
    };
    for done in 0..rounds {
        if !progress.goes_on("interrupts", done as usize, rounds as usize) {
            break;
        }
        let mut attempt = 0;
        loop {
            // Nothing was read before.
            let seen = round(&mut options.clone().open()?, latency)?;
            if attempt == RETRIES || seen.is_whole() {
                aged.add(&seen);
                break;
            }
            attempt += 1;
        }
    }
    Ok(Some(aged))
}

impl Aged {
    /// Whether counts were kept and read again, and none was wrong.
    fn is_whole(&self) -> bool {
        self.counts.wrong == 0 && self.kept > 0 && self.renewed > 0
    }

    fn add(&mut self, seen: &Self) {
        self.counts = [self.counts, seen.counts].into_iter().sum();
        self.kept += seen.kept;
        self.renewed += seen.renewed;
    }
}

fn round(counters: &mut Counters, latency: Duration) -> Result<Aged, Failure> {
    let mut seen = Aged::default();
    let before = kernel()?;
    let first = ours(counters)?;
    let between = kernel()?;
    let second = ours(counters)?;
    seen.counts.add(bracketed(&before, &first.row, &between));
    if second.taken == first.taken {
        seen.kept = 1;
        seen.counts.add(if second.row.irqs == first.row.irqs {
            Verdict::Equal
        } else {
            Verdict::Wrong
        });
        seen.counts.add(current(&first.row, &between, &second.row));
    }
    // Until they are too old by the clock that decides it, however long the machine takes.
    for _ in 0..LOOKS {
        thread::sleep(latency / 8);
        let before = kernel()?;
        let third = ours(counters)?;
        let after = kernel()?;
        if third.taken != second.taken {
            seen.renewed = 1;
            seen.counts.add(bracketed(&before, &third.row, &after));
            break;
        }
    }
    Ok(seen)
}

fn kernel() -> Result<Row, Failure> {
    parse(&fs::read(proc_root::path(MachineFile::Stat.path()))?)
}

fn ours(reader: &mut Counters) -> Result<Ours, Failure> {
    let row = parse(reader.text(MachineFile::Stat)?)?;
    let taken = reader.sample().irqs_taken;
    Ok(Ours { row, taken })
}

fn parse(text: &[u8]) -> Result<Row, Failure> {
    let (mut total, mut irqs, mut rest) = (0, None, Vec::new());
    for line in str::from_utf8(text)?.lines() {
        let (name, values) = line.split_once(' ').unwrap_or((line, ""));
        if name == "intr" {
            let mut numbers = values.split(' ');
            total = numbers.next().unwrap_or_default().parse()?;
            irqs = Some(numbers.map(str::parse).collect::<Result<_, _>>()?);
        } else {
            rest.push((name.to_owned(), values.to_owned()));
        }
    }
    let irqs = irqs.ok_or("/proc/stat has no line intr")?;
    Ok(Row { total, irqs, rest })
}

/// Whether each count is between those of two texts of the kernel.
fn bracketed(before: &Row, row: &Row, after: &Row) -> Verdict {
    if row.irqs == before.irqs || row.irqs == after.irqs {
        return Verdict::Equal;
    }
    // If interrupts were set up or torn down meanwhile, nothing can be compared.
    if before.irqs.len() != after.irqs.len() {
        return Verdict::Moved;
    }
    // Counts wrap around, but none grows by 2^31 between two readings.
    let inside = |((&old, &ours), &new): ((&u32, &u32), &u32)| {
        ours.wrapping_sub(old) <= new.wrapping_sub(old)
    };
    let all = before.irqs.iter().zip(&row.irqs).zip(&after.irqs);
    if row.irqs.len() == before.irqs.len() && all.into_iter().all(inside) {
        Verdict::Moved
    } else {
        Verdict::Wrong
    }
}

/// Everything but the counts by interrupt is as new as the text: the kernel's value lies between ours.
fn current(old: &Row, kernel: &Row, new: &Row) -> Verdict {
    let names =
        |row: &Row| -> Vec<String> { row.rest.iter().map(|(name, _)| name.clone()).collect() };
    if names(old) != names(kernel) || names(kernel) != names(new) {
        return Verdict::Wrong;
    }
    let counted = |row: &Row, name: &str| {
        let line = row.rest.iter().find(|(known, _)| known == name);
        line.and_then(|(_, value)| value.parse::<u64>().ok())
    };
    let grows = ["ctxt", "processes"].into_iter().all(|name| {
        let [old, kernel, new] = [old, kernel, new].map(|row| counted(row, name));
        old.is_some() && old <= kernel && kernel <= new
    });
    if grows && old.total <= kernel.total && kernel.total <= new.total {
        Verdict::Equal
    } else {
        Verdict::Wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Row {
        parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_row_is_judged_count_by_count() {
        let [old, mid, new] =
            ["5 1 2", "6 1 3", "8 2 4"].map(|counts| row(&format!("intr {counts}")));
        assert_eq!(bracketed(&old, &mid, &new), Verdict::Moved);
        assert_eq!(bracketed(&old, &new, &new), Verdict::Equal);
        assert_eq!(bracketed(&mid, &old, &new), Verdict::Wrong);
        assert_eq!(bracketed(&old, &row("intr 6 1 3 0"), &new), Verdict::Wrong);
        let [old, mid, new] =
            ["1 4294967295", "2 0", "3 1"].map(|counts| row(&format!("intr {counts}")));
        assert_eq!(bracketed(&old, &mid, &new), Verdict::Moved);
    }

    #[test]
    fn the_rest_is_of_the_time_of_the_text() {
        let text = |total, ctxt| {
            row(&format!(
                "cpu  1\nintr {total} 1\nctxt {ctxt}\nprocesses 7\n"
            ))
        };
        assert_eq!(
            current(&text(5, 10), &text(6, 11), &text(7, 12)),
            Verdict::Equal
        );
        assert_eq!(
            current(&text(5, 10), &text(6, 11), &text(7, 10)),
            Verdict::Wrong
        );
        assert_eq!(
            current(&text(5, 10), &text(6, 11), &text(5, 12)),
            Verdict::Wrong
        );
        assert_eq!(
            current(&text(5, 10), &text(6, 11), &row("intr 7 1\nctxt 12\n")),
            Verdict::Wrong
        );
    }

    #[test]
    fn counts_that_were_never_kept_or_renewed_are_not_whole() {
        let good = Aged {
            kept: 1,
            renewed: 1,
            ..Aged::default()
        };
        assert!(good.is_whole());
        assert!(!Aged { kept: 0, ..good }.is_whole());
        assert!(!Aged { renewed: 0, ..good }.is_whole());
    }
}
