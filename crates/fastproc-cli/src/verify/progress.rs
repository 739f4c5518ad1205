//! How far a comparison is, on a terminal, and whether Ctrl-C has ended it; and its result: a line, and a table.

use std::{
    fmt,
    io::{self, Write as _},
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use signal_hook::{consts::SIGINT, flag};

use crate::{Failure, terminal};

/// The most cells of the bar.
const WIDTH: usize = 40;

/// The bar, on standard error.
pub struct Progress {
    is_ended: Arc<AtomicBool>,
    is_shown: bool,
    drawn: Option<usize>,
}

impl Progress {
    /// From now on the first Ctrl-C ends the comparison, and the second one the command.
    pub fn new() -> io::Result<Self> {
        let is_ended = Arc::new(AtomicBool::new(false));
        flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&is_ended))?;
        flag::register(SIGINT, Arc::clone(&is_ended))?;
        Ok(Self {
            is_ended,
            is_shown: terminal::draws_errors(),
            drawn: None,
        })
    }

    /// Shows how many parts of all are compared. Returns whether to go on.
    pub fn goes_on(&mut self, what: &str, done: usize, all: usize) -> bool {
        let cells = done * WIDTH / all.max(1);
        if self.is_shown && self.drawn != Some(cells) {
            self.drawn = Some(cells);
            let bar = "#".repeat(cells);
            // Without standard error there is no bar.
            let _ = write!(io::stderr(), "\r\x1b[Kcomparing {what} [{bar:.<WIDTH$}]");
        }
        !self.is_ended.load(Relaxed)
    }

    /// Removes the bar. Returns whether Ctrl-C ended the comparison.
    pub fn finish(self) -> bool {
        self.is_ended.load(Relaxed)
    }
}

/// Compares all items in each round, some at a time. Returns how many there were at most, and whether Ctrl-C ended it.
pub fn rounds<T>(
    what: &str,
    (rounds, batch): (u32, usize),
    mut list: impl FnMut() -> Vec<T>,
    mut compare: impl FnMut(&[T]) -> Result<(), Failure>,
) -> Result<(usize, bool), Failure> {
    let mut progress = Progress::new()?;
    let mut count = 0;
    let rounds = rounds as usize;
    for round in 0..rounds {
        let items = list();
        let all = items.len().div_ceil(batch);
        for (at, some) in items.chunks(batch).enumerate() {
            if !progress.goes_on(what, round * all + at, rounds * all) {
                return Ok((count, true));
            }
            compare(some)?;
            count = count.max(at * batch + some.len());
        }
    }
    Ok((count, progress.finish()))
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// A row of the table: its name, its numbers, and a remark.
pub type Row = (String, Vec<u64>, &'static str);

/// Prints a table whose first column is so wide.
pub fn table(
    out: &mut impl io::Write,
    (name, width): (&str, usize),
    heading: &[&str],
    rows: impl Iterator<Item = Row>,
) -> io::Result<()> {
    writeln!(out, "{name:<width$}{}", columns(heading))?;
    for (name, numbers, remark) in rows {
        writeln!(out, "{name:<width$}{}{remark}", columns(&numbers))?;
    }
    Ok(())
}

fn columns(cells: &[impl fmt::Display]) -> String {
    let cells = cells.iter().map(|cell| format!("{cell:>10}"));
    cells.collect::<Vec<_>>().concat()
}

/// The result of a comparison.
pub struct Outcome {
    pub compared: u64,
    pub equal: u64,
    pub wrong: u64,
    /// What the values are of, as in `101 processes`.
    pub of: String,
    pub is_ended: bool,
}

impl Outcome {
    /// Whether something was compared, and nothing was wrong.
    pub fn code(compared: u64, wrong: u64) -> ExitCode {
        match (compared, wrong) {
            (1.., 0) => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = &self.of;
        match (self.compared, self.wrong) {
            (0, 0) => write!(f, "nothing was compared")?,
            (_, 0) => {
                let equal = grouped(self.equal);
                write!(f, "OK: {equal} values of {of} are equal to the kernel's")?;
            }
            (compared, wrong) => {
                let [compared, wrong] = [compared, wrong].map(grouped);
                write!(
                    f,
                    "WRONG: {wrong} of {compared} values of {of} are not the kernel's"
                )?;
            }
        }
        f.write_str(if self.is_ended {
            "; Ctrl-C ended it early"
        } else {
            ""
        })
    }
}

/// The digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_one_line() {
        let line = |compared, equal, wrong| {
            let of = "101 processes".into();
            let is_ended = compared == 7;
            #[rustfmt::skip]
            let outcome = Outcome { compared, equal, wrong, of, is_ended };
            outcome.to_string()
        };
        let ok = "OK: 1,058,714 values of 101 processes are equal to the kernel's";
        assert_eq!(line(1_058_800, 1_058_714, 0), ok);
        let wrong = "WRONG: 1 of 999 values of 101 processes are not the kernel's";
        assert_eq!(line(999, 900, 1), wrong);
        assert_eq!(line(0, 0, 0), "nothing was compared");
        assert!(line(7, 7, 0).ends_with("; Ctrl-C ended it early"));
    }
}
