//! What a history has, for people and for programs.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use fastproc_columns::number::{write_instant, write_size};
use fastproc_history::{
    read::{Error, History, Size, Span, shown},
    table::EVENTS,
};
use serde_json::{Value, json};

/// What there is of a host.
pub struct Report {
    host: String,
    spans: Vec<Span>,
    /// Walks that were missed within them.
    missed: u64,
    sizes: BTreeMap<Box<str>, Size>,
    events: Vec<Event>,
}

/// A row of `events`. Times are in microseconds since 1970.
struct Event {
    time: Option<i64>,
    kind: String,
    since: Option<i64>,
    until: Option<i64>,
    detail: String,
}

/// The most gaps and events that are listed for people.
const MOST_GAPS: usize = 20;
const MOST_EVENTS: usize = 20;
const DAY: f64 = 86_400e6;

impl Report {
    pub fn new(history: &mut History) -> Result<Self, Error> {
        let (spans, missed) = history.spans()?;
        Ok(Self {
            host: history.host().into(),
            spans,
            missed,
            sizes: history.sizes()?,
            events: events(history)?,
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
            write_instant(time, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        let spans = self.spans.iter();
        let spans: Vec<_> = spans
            .map(|(from, to)| json!({"from": date(*from), "to": date(*to)}))
            .collect();
        let tables = self.sizes.iter().map(|(name, size)| {
            json!({"table": name, "files": size.files, "rows": size.rows, "bytes": size.bytes})
        });
        let date = |time: Option<i64>| time.map(date);
        let events = self.events.iter().map(|of| {
            json!({
                "time": date(of.time), "event": of.kind, "since": date(of.since), "until": date(of.until),
                "detail": of.detail,
            })
        });
        json!({
            "host": self.host, "recorded": spans, "missed_walks": self.missed, "tables": tables.collect::<Vec<_>>(),
            "events": events.collect::<Vec<_>>(),
        })
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
        if self.missed > 0 {
            writeln!(
                to,
                "  walks that were missed, one at a time: {}",
                self.missed
            )?;
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
        let earlier = self.events.len().saturating_sub(MOST_EVENTS);
        if earlier > 0 {
            writeln!(to, "  {earlier} earlier events, which --json lists, and")?;
        }
        for event in self.events.iter().skip(earlier) {
            // The folder may be anybody's.
            writeln!(to, "  {}", fastproc::log_line(&event.line()))?;
        }
        Ok(())
    }
}

impl Event {
    fn line(&self) -> String {
        let Self { kind, detail, .. } = self;
        let [time, since, until] =
            [self.time, self.since, self.until].map(|time| time.map_or_else(|| "-".into(), shown));
        let lasted = match (self.since, self.until) {
            // Its times are those of the gap before it.
            (Some(_), Some(_)) if kind == "started" => {
                format!("; nothing was recorded from {since} to {until}")
            }
            (Some(_), Some(_)) => format!(" from {since} to {until}"),
            _ => String::new(),
        };
        format!("{time} {kind}{lasted}: {detail}")
    }
}

/// All events, by their time.
fn events(history: &mut History) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    let columns = ["time", "event", "since", "until", "detail"];
    history.read(&EVENTS, (0, i64::MAX), &columns, |rows| {
        for row in 0..rows.count {
            let time = |name: &str| rows.numbers(name).get(row).copied().flatten();
            let text = |name: &str| {
                let text = rows.texts(name).get(row).and_then(Option::as_deref);
                text.unwrap_or_default().to_owned()
            };
            events.push(Event {
                time: time("time"),
                kind: text("event"),
                since: time("since"),
                until: time("until"),
                detail: text("detail"),
            });
        }
    })?;
    events.sort_by_key(|event| event.time);
    Ok(events)
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

#[cfg(test)]
#[test]
fn a_start_tells_what_was_not_recorded_before_it() {
    let event = Event {
        time: Some(60_000_000),
        kind: "started".into(),
        since: Some(0),
        until: Some(60_000_000),
        detail: "fastproc".into(),
    };
    let line = event.line();
    assert!(
        line.contains(" started; nothing was recorded from "),
        "{line}"
    );
}
