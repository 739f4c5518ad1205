//! The report of a benchmark: a table for people, or one JSON object for programs. The columns of a benchmark describe
//! both.

use std::{
    fmt::{Display, Write as _},
    io::{self, Write as _},
    num::NonZero,
    thread::available_parallelism,
};

use serde_json::{Map, Value, json};

/// Least, median and greatest of several measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The middle one, or the mean of the two.
    pub median: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// The spread of these values. Without values it is NaN, which JSON shows as `null`.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let (min, median, max) = match values[..] {
            [] => (f64::NAN, f64::NAN, f64::NAN),
            [first, .., last] if values.len().is_multiple_of(2) => (
                first,
                f64::midpoint(values[middle - 1], values[middle]),
                last,
            ),
            [first, ..] => (first, values[middle], values[values.len() - 1]),
        };
        Self { min, median, max }
    }

    /// The JSON of it.
    pub fn json(self) -> Value {
        json!({"min": rounded(self.min), "median": rounded(self.median), "max": rounded(self.max)})
    }
}

/// For JSON, to four decimals: more precise than all measurements here.
pub fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A name.
    Text(String),
    /// How many there are.
    Count(u64),
    /// A measurement.
    Number(f64),
    /// Several of them.
    Spread(Spread),
    /// It does not exist for this case: a dash in the table, and not in the JSON.
    Absent,
}

macro_rules! cell_from {
    ($($from:ty: $value:ident => $cell:expr;)*) => {
        $(impl From<$from> for Cell {
            fn from($value: $from) -> Self {
                $cell
            }
        })*
    };
}

cell_from! {
    &str: text => Self::Text(text.to_owned());
    String: text => Self::Text(text);
    usize: count => Self::Count(count as u64);
    u64: count => Self::Count(count);
    f64: number => Self::Number(number);
    Spread: spread => Self::Spread(spread);
    Option<f64>: number => number.map_or(Self::Absent, Self::Number);
}

impl Cell {
    fn json(&self) -> Option<Value> {
        match self {
            Self::Text(text) => Some(json!(text)),
            Self::Count(count) => Some(json!(count)),
            Self::Number(number) => Some(json!(rounded(*number))),
            Self::Spread(spread) => Some(spread.json()),
            Self::Absent => None,
        }
    }

    /// The texts of the table: one, or three for a spread.
    fn shown(&self, column: &Column) -> Vec<String> {
        let number = |value: f64| {
            if value.is_nan() {
                return "–".into();
            }
            let value = value / column.unit;
            let whole = value.abs().log10().floor().max(-1.0);
            let decimals = match column.decimals {
                THREE_DIGITS => (2.0 - whole).max(0.0) as usize,
                decimals => decimals,
            };
            format!("{value:.decimals$}")
        };
        match self {
            Self::Text(text) => vec![text.clone()],
            Self::Count(count) if column.decimals == 0 && column.unit < 2.0 => {
                vec![count.to_string()]
            }
            Self::Count(count) => vec![number(*count as f64)],
            Self::Number(value) => vec![number(*value)],
            Self::Spread(of) => vec![number(of.median), number(of.min), number(of.max)],
            Self::Absent => vec!["–".into()],
        }
    }
}

/// A column of the table, and a key of the JSON. The first column is the case.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    key: &'static str,
    /// The heading; without one it is only in the JSON.
    title: &'static str,
    /// If the terminal is too narrow, columns with the greatest rank are left out first; those with 0 always stay. Least
    /// and greatest of a spread have a rank of [`SPREAD`] more.
    rank: u8,
    decimals: usize,
    unit: f64,
}

/// As many decimals as make three digits.
pub const THREE_DIGITS: usize = usize::MAX;

/// A spread's least and greatest matter less than its median.
const SPREAD: u8 = 3;

/// Creates a column with this many decimals.
pub const fn column(key: &'static str, title: &'static str, decimals: usize, rank: u8) -> Column {
    Column {
        key,
        title,
        rank,
        decimals,
        unit: 1.0,
    }
}

impl Column {
    /// Shows the number in this unit.
    pub const fn per(self, unit: f64) -> Self {
        Self { unit, ..self }
    }
}

/// The object that every benchmark prints: what was measured, where, and a row for each case.
#[derive(Debug)]
pub struct Report {
    bench: &'static str,
    title: &'static str,
    kernel: String,
    cpus: usize,
    columns: &'static [Column],
    /// Values of the whole run, such as the number of processes.
    head: Value,
    rows: Vec<Vec<Cell>>,
    skipped: Vec<(String, String)>,
    notes: Vec<String>,
}

impl Report {
    /// An empty report of the machine that this runs on.
    pub fn new(bench: &'static str, title: &'static str, columns: &'static [Column]) -> Self {
        let uname = rustix::system::uname();
        Self {
            bench,
            title,
            kernel: uname.release().to_string_lossy().into_owned(),
            cpus: available_parallelism().map_or(1, NonZero::get),
            columns,
            head: json!({}),
            rows: Vec::new(),
            skipped: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets the values of the whole run.
    pub fn head(&mut self, head: Value) {
        self.head = head;
    }

    /// Adds a case, with a value for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a case that could not be measured here, once.
    pub fn skip(&mut self, case: &str, reason: &dyn Display) {
        if !self.is_skipped(case) {
            self.skipped.push((case.to_owned(), reason.to_string()));
        }
    }

    /// Whether a case could not be measured.
    pub fn is_skipped(&self, case: &str) -> bool {
        self.skipped.iter().any(|(skipped, _)| skipped == case)
    }

    /// Adds a remark about the numbers.
    pub fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The JSON object.
    pub fn json(&self) -> Value {
        let row = |cells: &Vec<Cell>| {
            let pairs = self.columns.iter().zip(cells);
            let pairs = pairs.filter_map(|(column, cell)| Some((column.key.into(), cell.json()?)));
            Value::Object(pairs.collect::<Map<String, Value>>())
        };
        let skipped = |(case, reason): &(String, String)| json!({"case": case, "reason": reason});
        let mut object = json!({"bench": self.bench, "kernel": self.kernel, "cpus": self.cpus});
        for (key, value) in self.head.as_object().into_iter().flatten() {
            object[key] = value.clone();
        }
        object["rows"] = self.rows.iter().map(row).collect();
        if !self.skipped.is_empty() {
            object["skipped"] = self.skipped.iter().map(skipped).collect();
        }
        if !self.notes.is_empty() {
            object["notes"] = json!(self.notes);
        }
        object
    }

    /// An aligned table of at most `width` columns of text, below a line that names the machine.
    fn table(&self, width: usize) -> String {
        let mut out = format!(
            "{}, Linux {}, {} CPUs\n\n",
            self.title, self.kernel, self.cpus
        );
        // Each column of text: its rank, whether it has names, and its heading followed by its cells.
        let mut texts: Vec<(u8, bool, Vec<String>)> = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            let cells: Vec<_> = self.rows.iter().map(|row| row[at].shown(column)).collect();
            let is_name = self.rows.iter().all(|row| matches!(row[at], Cell::Text(_)));
            let widest = cells.iter().map(Vec::len).max().unwrap_or(1);
            for (part, title) in [column.title, "min", "max"]
                .into_iter()
                .take(widest)
                .enumerate()
            {
                let rank = column.rank + if part > 0 { SPREAD } else { 0 };
                let cell = |cells: &Vec<String>| cells.get(part).cloned().unwrap_or("–".into());
                let cells = [title.to_owned()].into_iter().chain(cells.iter().map(cell));
                if !column.title.is_empty() {
                    texts.push((rank, is_name, cells.collect()));
                }
            }
        }
        let wide = |cells: &[String]| {
            let wide = cells.iter().map(|cell| cell.chars().count());
            wide.max().unwrap_or(0)
        };
        while texts
            .iter()
            .map(|(.., cells)| wide(cells) + 2)
            .sum::<usize>()
            > width + 2
        {
            let last = (0..texts.len()).max_by_key(|&at| (texts[at].0, at));
            match last {
                Some(last) if texts[last].0 > 0 => drop(texts.remove(last)),
                _ => break,
            }
        }
        for line in 0..=self.rows.len() {
            let mut text = String::new();
            for (_, is_name, cells) in &texts {
                let (cell, wide) = (&cells[line], wide(cells));
                // Names to the left, numbers to the right.
                let _ = if *is_name {
                    write!(text, "{cell:<wide$}  ")
                } else {
                    write!(text, "{cell:>wide$}  ")
                };
            }
            out.push_str(text.trim_end());
            out.push('\n');
        }
        for (case, reason) in &self.skipped {
            let _ = writeln!(out, "{case}: not measured: {reason}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "{note}");
        }
        out
    }

    /// Prints the JSON or the table to standard output. A closed output is not an error.
    pub fn print(&self, json: bool) -> io::Result<()> {
        let text = if json {
            format!("{}\n", self.json())
        } else {
            self.table(terminal_width())
        };
        match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}

fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    size.map(|size| size.ws_col.into())
        .filter(|&width| width > 0)
        .unwrap_or(usize::MAX - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        column("case", "case", 0, 0),
        column("cpu_us", "median", 1, 0),
        column("bytes", "KB", 0, 1).per(1e3),
    ];

    fn report() -> Report {
        let mut report = Report {
            kernel: "6.18.0".into(),
            cpus: 2,
            ..Report::new("sample", "a sample", &COLUMNS)
        };
        let row = |case: &str, values: [f64; 3], bytes: Cell| {
            [case.into(), Spread::of(values).into(), bytes]
        };
        report.head(json!({"processes": 4000}));
        report.row(row("plain", [3.0, 1.000_049, 2.0], 2_000_usize.into()));
        report.row(row("far-better", [0.25, 0.125, 0.5], None.into()));
        report
    }

    #[test]
    fn json_is_one_object_with_what_was_skipped_and_noted() {
        let mut report = report();
        let mut expected = json!({
            "bench": "sample", "kernel": "6.18.0", "cpus": 2, "processes": 4000,
            "rows": [
                {"case": "plain", "cpu_us": {"min": 1.0, "median": 2.0, "max": 3.0}, "bytes": 2000},
                {"case": "far-better", "cpu_us": {"min": 0.125, "median": 0.25, "max": 0.5}},
            ],
        });
        assert_eq!(report.json(), expected);
        report.skip("best", &"no \"taskstats\"");
        report.skip("best", &"again");
        report.note("not all of it");
        expected["skipped"] = json!([{"case": "best", "reason": "no \"taskstats\""}]);
        expected["notes"] = json!(["not all of it"]);
        assert_eq!(report.json(), expected);
        let lines = "\nbest: not measured: no \"taskstats\"\nnot all of it\n";
        assert!(report.table(80).ends_with(lines));
    }

    #[test]
    fn a_table_is_aligned_and_loses_the_columns_that_matter_least() {
        let expected = "a sample, Linux 6.18.0, 2 CPUs\n\n\
            case        median  min  max  KB\n\
            plain          2.0  1.0  3.0   2\n\
            far-better     0.2  0.1  0.5   –\n";
        assert_eq!(report().table(32), expected);
        let header = |width| report().table(width).lines().nth(2).unwrap().to_owned();
        assert_eq!(header(31), "case        median  min  KB");
        assert_eq!(header(22), "case        median  KB");
        assert_eq!(header(1), "case        median");
    }
}
