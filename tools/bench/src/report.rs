//! The report of a benchmark: a table for people, or one JSON object for programs.

use std::{
    fmt::Write as _,
    fs,
    io::{self, Write as _},
    thread::available_parallelism,
};

use indicatif::{ProgressBar, ProgressStyle};
use serde::{Serialize, Serializer};

/// Least, median and greatest of several measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    #[serde(serialize_with = "four_decimals")]
    pub min: f64,
    /// The middle one, or the mean of the two.
    #[serde(serialize_with = "four_decimals")]
    pub median: f64,
    /// The greatest.
    #[serde(serialize_with = "four_decimals")]
    pub max: f64,
}

impl Spread {
    /// The spread of these values. Without values it is NaN, which JSON shows as `null`.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (values.first(), values.last()) else {
            return Self {
                min: f64::NAN,
                median: f64::NAN,
                max: f64::NAN,
            };
        };
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Self { min, median, max }
    }
}

/// For JSON: more precise than all measurements here.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "it is what serde calls")]
pub fn four_decimals<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1e4).round() / 1e4)
}

/// The object that every benchmark prints: what was measured, where, and a row for each case.
///
/// `R` is a row, with a field `case` and the values of this benchmark. `H` has the values of the whole run, such as the
/// number of processes.
#[derive(Clone, Debug, Serialize)]
pub struct Report<H, R> {
    bench: &'static str,
    kernel: String,
    cpus: usize,
    #[serde(flatten)]
    head: H,
    rows: Vec<R>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<Skipped>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// A case that could not be measured here.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    /// Its name.
    pub case: &'static str,
    /// The reason.
    pub reason: String,
}

/// A row that can be shown as a table, too.
pub trait Row: Serialize {
    /// The columns. The first is the case.
    const COLUMNS: &'static [Column];

    /// A cell for each column.
    fn cells(&self) -> Vec<String>;
}

/// A column of the table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its heading.
    pub title: &'static str,
    /// If the terminal is too narrow, columns with the greatest rank are left out first; those with 0 always stay.
    pub rank: u8,
}

/// Creates a column.
pub const fn column(title: &'static str, rank: u8) -> Column {
    Column { title, rank }
}

impl<H: Serialize, R: Row> Report<H, R> {
    /// The report of the machine that this runs on.
    pub fn new(bench: &'static str, head: H, rows: Vec<R>, skipped: Vec<Skipped>) -> Self {
        let kernel = rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned();
        Self {
            bench,
            kernel,
            cpus: online_cpus(),
            head,
            rows,
            skipped,
            notes: Vec::new(),
        }
    }

    /// The values of the whole run.
    pub fn head(&self) -> &H {
        &self.head
    }

    /// Adds a remark about the numbers.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// One line with one JSON object.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// An aligned table of at most `width` columns of text, below a line that names the machine.
    pub fn table(&self, title: &str, width: usize) -> String {
        let mut out = format!("{title}, Linux {}, {} CPUs\n\n", self.kernel, self.cpus);
        let rows: Vec<Vec<String>> = self.rows.iter().map(Row::cells).collect();
        let widest = |column: usize| {
            rows.iter()
                .map(|row| row[column].len())
                .max()
                .unwrap_or(0)
                .max(R::COLUMNS[column].title.len())
        };
        let mut shown: Vec<usize> = (0..R::COLUMNS.len()).collect();
        while shown
            .iter()
            .map(|&column| widest(column) + 2)
            .sum::<usize>()
            > width + 2
        {
            let last = shown
                .iter()
                .copied()
                .max_by_key(|&column| (R::COLUMNS[column].rank, column));
            match last {
                Some(column) if R::COLUMNS[column].rank > 0 => {
                    shown.retain(|&other| other != column);
                }
                _ => break,
            }
        }
        let mut line = |cells: &dyn Fn(usize) -> String| {
            let mut text = String::new();
            for &column in &shown {
                let (cell, wide) = (cells(column), widest(column));
                // Names to the left, numbers to the right.
                let _ = if column == 0 {
                    write!(text, "{cell:<wide$}")
                } else {
                    write!(text, "  {cell:>wide$}")
                };
            }
            out.push_str(text.trim_end());
            out.push('\n');
        };
        line(&|column| R::COLUMNS[column].title.to_owned());
        for row in &rows {
            line(&|column| row[column].clone());
        }
        for skipped in &self.skipped {
            let _ = writeln!(out, "{}: not measured: {}", skipped.case, skipped.reason);
        }
        for note in &self.notes {
            let _ = writeln!(out, "{note}");
        }
        out
    }

    /// Prints the JSON or the table to standard output. A closed output is not an error.
    pub fn print(&self, title: &str, json: bool) -> io::Result<()> {
        let text = if json {
            self.json()? + "\n"
        } else {
            self.table(title, terminal_width())
        };
        match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}

/// A progress line on standard error, if that is a terminal. `of` is the unit.
pub fn progress(length: u64, of: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {{pos}}/{{len}} {of}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style)
}

fn terminal_width() -> usize {
    rustix::termios::tcgetwinsize(io::stdout())
        .ok()
        .map(|size| size.ws_col.into())
        .filter(|&width| width > 0)
        .unwrap_or(usize::MAX - 2)
}

fn online_cpus() -> usize {
    fs::read_to_string("/sys/devices/system/cpu/online")
        .ok()
        .and_then(|text| count_list(text.trim()))
        .or_else(|| available_parallelism().ok().map(usize::from))
        .unwrap_or(1)
}

/// The number of entries of a list like `0-3,6`.
fn count_list(text: &str) -> Option<usize> {
    text.split(',').try_fold(0, |sum: usize, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Head {
        processes: usize,
    }

    #[derive(Serialize)]
    struct Sample {
        case: &'static str,
        cpu_us: Spread,
    }

    impl Row for Sample {
        const COLUMNS: &'static [Column] = &[
            column("case", 0),
            column("min", 2),
            column("median", 0),
            column("max", 1),
        ];

        fn cells(&self) -> Vec<String> {
            let number = |value: f64| format!("{value:.1}");
            vec![
                self.case.to_owned(),
                number(self.cpu_us.min),
                number(self.cpu_us.median),
                number(self.cpu_us.max),
            ]
        }
    }

    fn report() -> Report<Head, Sample> {
        let row = |case, values: [f64; 3]| Sample {
            case,
            cpu_us: Spread::of(values),
        };
        Report {
            bench: "sample",
            kernel: "6.18.0".into(),
            cpus: 2,
            head: Head { processes: 4000 },
            rows: vec![
                row("plain", [3.0, 1.000_049, 2.0]),
                row("far-better", [0.25, 0.125, 0.5]),
            ],
            skipped: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn json_is_one_object_of_the_shape_that_is_promised() {
        assert_eq!(
            report().json().unwrap(),
            r#"{"bench":"sample","kernel":"6.18.0","cpus":2,"processes":4000,"rows":[{"case":"plain","cpu_us":{"min":1.0,"median":2.0,"max":3.0}},{"case":"far-better","cpu_us":{"min":0.125,"median":0.25,"max":0.5}}]}"#
        );
    }

    #[test]
    fn both_forms_name_skipped_cases() {
        let skipped = vec![Skipped {
            case: "best",
            reason: "no \"taskstats\"".into(),
        }];
        let report = Report {
            skipped,
            ..report()
        };
        assert!(
            report
                .json()
                .unwrap()
                .ends_with(r#""skipped":[{"case":"best","reason":"no \"taskstats\""}]}"#)
        );
        assert!(
            report
                .table("t", 80)
                .ends_with("\nbest: not measured: no \"taskstats\"\n")
        );
    }

    #[test]
    fn notes_are_in_both() {
        let mut report = report();
        report.note("not all of it".into());
        assert!(
            report
                .json()
                .unwrap()
                .ends_with(r#","notes":["not all of it"]}"#)
        );
        assert!(report.table("t", 80).ends_with("\nnot all of it\n"));
    }

    #[test]
    fn the_table_is_aligned() {
        let expected = "a sample, Linux 6.18.0, 2 CPUs\n\n\
            case        min  median  max\n\
            plain       1.0     2.0  3.0\n\
            far-better  0.1     0.2  0.5\n";
        assert_eq!(report().table("a sample", 28), expected);
    }

    #[test]
    fn a_narrow_terminal_loses_the_columns_that_matter_least() {
        let header = |width| {
            report()
                .table("a", width)
                .lines()
                .nth(2)
                .unwrap()
                .to_owned()
        };
        assert_eq!(header(27), "case        median  max");
        assert_eq!(header(22), "case        median");
        assert_eq!(header(1), "case        median");
    }

    #[test]
    fn a_spread_has_its_middle() {
        assert_eq!(
            Spread::of([4.0, 1.0, 2.0, 3.0]),
            Spread {
                min: 1.0,
                median: 2.5,
                max: 4.0
            }
        );
        assert_eq!(
            Spread::of([7.0]),
            Spread {
                min: 7.0,
                median: 7.0,
                max: 7.0
            }
        );
        assert!(Spread::of([]).median.is_nan());
    }

    #[test]
    fn cpus_are_counted() {
        assert_eq!(count_list("0"), Some(1));
        assert_eq!(count_list("0-3,6,8-9"), Some(7));
        for damaged in ["", "3-1", "0-", "a", "0,,1", "0-18446744073709551615"] {
            assert_eq!(count_list(damaged), None, "{damaged}");
        }
        assert!(online_cpus() > 0);
    }
}
