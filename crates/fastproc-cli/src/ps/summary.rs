//! The summary on standard error: the number of rows and processes, the source, and the time.

use std::{
    fmt,
    io::{self, Write},
};

use fastproc::{Collector, Snapshot};
use fastproc_history::read::shown;

use crate::{history::when::dated, paragraphs::Counted};

/// Why a better source is not used, if it is not: the first line of the first refusal.
pub fn fallback(collector: &Collector) -> Option<String> {
    let refusal = collector.refused().first()?;
    let error = refusal.error.to_string();
    let reason = error.lines().next().unwrap_or_default();
    Some(format!("{} was refused: {reason}", refusal.source))
}

/// The summary of a snapshot.
#[derive(Debug)]
pub struct Summary<'a> {
    /// The snapshot.
    pub snapshot: Snapshot<'a>,
    /// The number of processes that exited before it, if exits are shown.
    pub ended: Option<usize>,
    /// Of when the processes are, in microseconds since 1970, if they are those of a history: the begin of a window, and its
    /// end.
    pub past: Option<(Option<i64>, i64)>,
    /// The number of rows shown.
    pub shown: usize,
    /// Whether each row is a thread.
    pub threads: bool,
    /// The values that this user may not see, as in `EXE of other users`.
    pub hidden: Option<&'a str>,
    /// Whether the height of the terminal limits the rows.
    pub is_cut: bool,
    /// Why a better source is not used.
    pub fallback: Option<&'a str>,
}

impl Summary<'_> {
    /// Writes the line to standard error. If that is closed, the line is lost.
    pub fn write(&self) {
        let _ = io::stderr().write_all(format!("{}\n", self.line()).as_bytes());
    }

    /// How a JSON document begins, up to its list of rows.
    pub fn document(&self) -> String {
        let stats = self.snapshot.stats();
        let mut text = format!(
            r#"{{"source":"{}","boottime_ns":{},"took_ns":{},"torn":{},"missed":{},"read":{}"#,
            self.past.map_or(stats.source.name(), |_| "history"),
            stats.boottime_ns,
            stats.took.as_nanos(),
            stats.torn,
            stats.missed,
            self.snapshot.len(),
        );
        if let Some((from, time)) = self.past {
            text += &dated(from, time);
        }
        let some = |number: u32| Some(u64::from(number)).filter(|&number| number > 0);
        let lost = self.ended.map(|_| stats.lost_exits);
        for (name, number) in [
            ("disproven", some(stats.disproven)),
            ("left_out", some(stats.left_out)),
            ("ended", self.ended.map(|ended| ended as u64)),
            ("lost_exits", lost),
        ] {
            if let Some(number) = number {
                text.extend([r#",""#, name, r#"":"#, &number.to_string()]);
            }
        }
        let list = if self.threads { "threads" } else { "processes" };
        text + &format!(r#","{list}":["#)
    }

    /// The line.
    pub fn line(&self) -> String {
        format!("fastproc: {self}")
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.snapshot.stats();
        let mut rows = self.snapshot.len();
        write!(f, "read {}", Counted(rows, "process", "processes"))?;
        if self.threads {
            rows = self.snapshot.threads().count();
            write!(f, " with {}", Counted(rows, "thread", "threads"))?;
        }
        if let Some(ended) = self.ended {
            rows += ended;
            write!(f, " and {}", Counted(ended, "exit", "exits"))?;
        }
        if let Some((from, time)) = self.past {
            match from {
                Some(from) => write!(f, " from {} to {}", shown(from), shown(time))?,
                None => write!(f, " as of {}", shown(time))?,
            }
            if self.shown < rows {
                write!(f, ", showed {}", self.shown)?;
                f.write_str(if self.is_cut { "; -e shows all" } else { "" })?;
            }
            return Ok(());
        }
        let milliseconds = stats.took.as_secs_f64() * 1e3;
        write!(f, " from {}", stats.source)?;
        // Some changed while the walk read them, or were not on its way; that is no fault.
        let from_proc = stats.torn + stats.missed;
        if from_proc > 0 {
            write!(f, " ({from_proc} from /proc)")?;
        }
        write!(f, " in {milliseconds:.3} ms")?;
        if self.shown < rows {
            write!(f, ", showed {}", self.shown)?;
            f.write_str(if self.is_cut { "; -e shows all" } else { "" })?;
        }
        if stats.lost_exits > 0 {
            let lost = Counted(stats.lost_exits, "exit", "exits");
            write!(f, "; {lost} lost")?;
        }
        if stats.left_out > 0 {
            let left_out = Counted(stats.left_out, "process", "processes");
            write!(
                f,
                "; {left_out} left out, whose text in /proc cannot be parsed"
            )?;
        }
        if let Some(values) = self.hidden {
            write!(f, "; {values} is known to root only")?;
        }
        self.fallback
            .map_or(Ok(()), |fallback| write!(f, "; {fallback}"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fastproc::{SnapshotStats, SourceKind, Table, record::Record};

    use super::*;

    #[test]
    fn a_summary_counts_what_was_read_and_what_is_shown() {
        let table = Table {
            records: &[Record::default(); 3],
            ..Table::default()
        };
        let mut stats = SnapshotStats::recorded(SourceKind::Bpf, 0, Duration::from_micros(1500));
        (stats.torn, stats.missed, stats.left_out, stats.lost_exits) = (1, 2, 4, 1);
        let summary = |shown| Summary {
            snapshot: Snapshot::recorded(table, stats),
            ended: Some(2),
            past: None,
            shown,
            threads: false,
            hidden: Some("EXE of other users"),
            is_cut: false,
            fallback: Some("why"),
        };
        let read = "fastproc: read 3 processes and 2 exits from bpf (3 from /proc) in 1.500 ms";
        let rest = "; 1 exit lost; 4 processes left out, whose text in /proc cannot be parsed; EXE of other users is known to root only; why";
        assert_eq!(summary(5).line(), format!("{read}{rest}"));
        assert_eq!(summary(4).line(), format!("{read}, showed 4{rest}"));
    }
}
