//! What a history has, for people and for programs.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use fastproc_columns::number::{write_date, write_size};
use fastproc_history::read::{Error, History, Size, Span, shown};
use serde_json::{Value, json};

/// What there is of a host.
pub struct Report {
    host: String,
    spans: Vec<Span>,
    sizes: BTreeMap<Box<str>, Size>,
}

/// The most gaps that are listed for people.
const MOST_GAPS: usize = 20;
const DAY: f64 = 86_400e6;

impl Report {
    pub fn new(history: &mut History) -> Result<Self, Error> {
        Ok(Self {
            host: history.host().into(),
            spans: history.spans()?,
            sizes: history.sizes()?,
        })
    }

    /// Whether no walk is there.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How long was recorded, in microseconds.
    fn recorded(&self) -> i64 {
        self.spans.iter().map(|(from, to)| to - from).sum()
    }

    fn json(&self) -> Value {
        let date = |time: i64| {
            let mut text = Vec::new();
            write_date(time.div_euclid(1_000_000), &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        let spans = self.spans.iter();
        let spans: Vec<_> = spans
            .map(|(from, to)| json!({"from": date(*from), "to": date(*to)}))
            .collect();
        let tables = self.sizes.iter().map(|(name, size)| {
            json!({"table": name, "files": size.files, "rows": size.rows, "bytes": size.bytes})
        });
        json!({"host": self.host, "recorded": spans, "tables": tables.collect::<Vec<_>>()})
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let name = if self.host.is_empty() {
            "unknown"
        } else {
            &self.host
        };
        writeln!(to, "host {name}")?;
        match (self.spans.first(), self.spans.last()) {
            (Some((first, _)), Some((_, last))) => {
                writeln!(to, "  from {} to {}", shown(*first), shown(*last))?;
            }
            _ => writeln!(to, "  nothing was recorded")?,
        }
        let gaps = self.spans.windows(2).map(|pair| (pair[0].1, pair[1].0));
        let more = gaps.len().saturating_sub(MOST_GAPS);
        for (before, after) in gaps.take(MOST_GAPS) {
            writeln!(
                to,
                "  without the time from {} to {}",
                shown(before),
                shown(after)
            )?;
        }
        if more > 0 {
            writeln!(to, "  and {more} more gaps, which --json lists")?;
        }
        writeln!(
            to,
            "  {:<12}{:>7}{:>12}{:>9}{:>9}",
            "TABLE", "FILES", "ROWS", "SIZE", "A DAY"
        )?;
        let recorded = self.recorded() as f64;
        for (table, size) in &self.sizes {
            let a_day = if recorded > 0.0 {
                sized((size.bytes as f64 * DAY / recorded) as u64)
            } else {
                "-".into()
            };
            let (files, rows, bytes) = (size.files, size.rows, sized(size.bytes));
            writeln!(to, "  {table:<12}{files:>7}{rows:>12}{bytes:>9}{a_day:>9}")?;
        }
        Ok(())
    }
}

fn sized(bytes: u64) -> String {
    let mut text = Vec::new();
    write_size(bytes, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Writes what there is of each host.
pub fn write(reports: &[Report], as_json: bool, to: &mut impl Write) -> io::Result<()> {
    if as_json {
        let hosts: Vec<_> = reports.iter().map(Report::json).collect();
        return writeln!(to, "{}", json!({"hosts": hosts}));
    }
    reports.iter().try_for_each(|report| report.write(to))
}
