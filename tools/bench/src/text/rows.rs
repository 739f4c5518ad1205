//! The report of the times.

use serde::Serialize;

use crate::{
    measure::Measured,
    report::{self, Column, Spread, column, four_decimals},
};

/// What is reported once.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Head {
    /// Processes whose texts are made.
    pub processes: usize,
}

/// One way of making one file.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    case: &'static str,
    file: &'static str,
    /// Of `all`, for the three texts of a process together.
    ns_per_text: Spread,
    /// How many times cheaper than reading the file again by a kept descriptor, by the medians.
    #[serde(serialize_with = "four_decimals")]
    ratio_vs_kernel_pread: f64,
}

const BASELINE: &str = "kernel-pread";

/// The rows, from what was measured of each file.
pub fn of<'a>(measured: impl Iterator<Item = (&'static str, &'a Measured)>) -> Vec<Row> {
    let nanoseconds = |spread: Spread| Spread {
        min: spread.min * 1e3,
        median: spread.median * 1e3,
        max: spread.max * 1e3,
    };
    let mut rows: Vec<Row> = measured
        .map(|(file, measured)| Row {
            case: measured.name,
            file,
            ns_per_text: nanoseconds(measured.cpu_us()),
            ratio_vs_kernel_pread: f64::NAN,
        })
        .collect();
    let ratios: Vec<f64> = rows
        .iter()
        .map(|row| time(&rows, BASELINE, row.file) / row.ns_per_text.median)
        .collect();
    for (row, ratio) in rows.iter_mut().zip(ratios) {
        row.ratio_vs_kernel_pread = ratio;
    }
    rows
}

/// The median. Not a number for a case that was not measured.
fn time(rows: &[Row], case: &str, file: &str) -> f64 {
    rows.iter()
        .find(|row| row.case == case && row.file == file)
        .map_or(f64::NAN, |row| row.ns_per_text.median)
}

/// How the three texts of a process compare, in a sentence.
pub fn verdict(rows: &[Row]) -> Option<String> {
    const OURS: &str = "seqtext";
    let ours = time(rows, OURS, "all");
    let times = |other| time(rows, other, "all") / ours;
    let (pread, printf) = (times(BASELINE), times("core-fmt"));
    if pread.is_nan() {
        return None;
    }
    let printf = if printf.is_nan() {
        String::new()
    } else {
        format!(" and {printf:.1} times cheaper than core-fmt")
    };
    Some(format!(
        "{OURS}, all three texts of a process: {pread:.1} times cheaper than kernel-pread{printf}"
    ))
}

impl report::Row for Row {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("file", 0),
        column("ns/text min", 1),
        column("median", 0),
        column("max", 1),
        column("times cheaper than kernel-pread", 2),
    ];

    fn cells(&self) -> Vec<String> {
        let Spread { min, median, max } = self.ns_per_text;
        vec![
            self.case.into(),
            self.file.into(),
            format!("{min:.1}"),
            format!("{median:.1}"),
            format!("{max:.1}"),
            format!("{:.2}", self.ratio_vs_kernel_pread),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{measure::Round, report::Report};

    fn measured(name: &'static str, ns: u64) -> Measured {
        let round = Round {
            cpu: Duration::from_nanos(100 * ns),
            wall: Duration::from_nanos(200 * ns),
            count: 100,
        };
        Measured {
            name,
            rounds: vec![round; 3],
            cold: vec![round; 3],
        }
    }

    fn rows() -> Vec<Row> {
        let cases = [
            ("stat", measured("kernel-pread", 3_000)),
            ("all", measured("kernel-pread", 10_000)),
            ("all", measured("core-fmt", 2_000)),
            ("all", measured("seqtext", 200)),
        ];
        of(cases.iter().map(|(file, measured)| (*file, measured)))
    }

    #[test]
    fn json_has_the_shape_that_is_promised() {
        let head = Head { processes: 100 };
        let json = Report::new("text", head, rows(), Vec::new())
            .json()
            .unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["bench"], "text");
        assert!(json["kernel"].is_string() && json["cpus"].is_number());
        assert_eq!(
            json["rows"][3],
            serde_json::json!({
                "case": "seqtext",
                "file": "all",
                "ns_per_text": {"min": 200.0, "median": 200.0, "max": 200.0},
                "ratio_vs_kernel_pread": 50.0,
            })
        );
    }

    #[test]
    fn the_verdict_is_of_the_three_texts_together() {
        assert_eq!(
            verdict(&rows()).unwrap(),
            "seqtext, all three texts of a process: 50.0 times cheaper than kernel-pread and 10.0 times cheaper than \
             core-fmt"
        );
        assert!(verdict(&rows()[..1]).is_none());
        let without_printf: Vec<Row> = rows()
            .into_iter()
            .filter(|row| row.case != "core-fmt")
            .collect();
        assert!(!verdict(&without_printf).unwrap().contains("core-fmt"));
    }
}
