//! The report of the times.

use serde::Serialize;

use super::{
    super::report::{self, Column, Spread, column},
    counters::Counts,
    input::MAX_DIGITS,
};

/// One method on one input.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    case: &'static str,
    input: String,
    ns_per_number: Spread,
    #[serde(flatten)]
    counts: Option<Counts>,
}

impl Row {
    pub fn new(
        case: &'static str,
        input: &str,
        ns_per_number: Spread,
        counts: Option<Counts>,
    ) -> Self {
        Self {
            case,
            input: input.to_owned(),
            ns_per_number,
            counts,
        }
    }
}

impl report::Row for Row {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("input", 0),
        column("ns/number min", 1),
        column("median", 0),
        column("max", 1),
        column("instructions", 2),
        column("branches", 2),
        column("mispredicted", 2),
    ];

    fn cells(&self) -> Vec<String> {
        let Spread { min, median, max } = self.ns_per_number;
        let count = |value: fn(&Counts) -> f64| {
            self.counts
                .as_ref()
                .map_or("-".into(), |counts| format!("{:.2}", value(counts)))
        };
        vec![
            self.case.into(),
            self.input.clone(),
            format!("{min:.2}"),
            format!("{median:.2}"),
            format!("{max:.2}"),
            count(|counts| counts.instructions_per_number),
            count(|counts| counts.branches_per_number),
            count(|counts| counts.branch_misses_per_number),
        ]
    }
}

/// How `seqtext` compares, by the medians.
pub fn verdict(rows: &[Row]) -> Vec<String> {
    compare(rows).into_iter().flatten().collect()
}

fn compare(rows: &[Row]) -> Option<[String; 3]> {
    let time = |case: &str, input: &str| {
        let row = rows
            .iter()
            .find(|row| row.case == case && row.input == input)?;
        Some(row.ns_per_number.median)
    };
    let best_of_others = |input: &str| {
        let others = rows
            .iter()
            .filter(|row| row.input == input && row.case != "seqtext");
        others
            .map(|row| (row.ns_per_number.median, row.case))
            .min_by(|a, b| a.0.total_cmp(&b.0))
    };
    let real = time("seqtext", "real")?;
    let mix = time("seqtext", "digits-mix")?;
    let (next, next_case) = best_of_others("real")?;
    let lengths = (1..=MAX_DIGITS).map(|digits| format!("digits-{digits}"));
    let (worst, worst_input, worst_case) = lengths
        .filter_map(|input| {
            let (best, case) = best_of_others(&input)?;
            Some((time("seqtext", &input)? / best, input, case))
        })
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some([
        format!(
            "real numbers: seqtext takes 1/{:.1} of the time of core-fmt, 1/{:.2} of that of the next, {next_case}",
            time("core-fmt", "real")? / real,
            next / real,
        ),
        format!(
            "the even mix of lengths: seqtext takes 1/{:.1} of the time of digit-loop",
            time("digit-loop", "digits-mix")? / mix,
        ),
        format!(
            "each length: at its worst, {worst_input}, seqtext takes {worst:.2} of the time of the best other, {worst_case}"
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &'static str, input: &str, ns: f64) -> Row {
        Row::new(case, input, Spread::of([ns]), None)
    }

    #[test]
    fn json_has_the_shape_that_is_promised() {
        let counts = Counts {
            instructions_per_number: 9.5,
            branches_per_number: 2.0,
            branch_misses_per_number: 0.25,
        };
        let spread = r#""ns_per_number":{"min":1.5,"median":1.5,"max":1.5}"#;
        let plain = row("jones", "digits-7", 1.5);
        assert_eq!(
            serde_json::to_string(&plain).unwrap(),
            format!(r#"{{"case":"jones","input":"digits-7",{spread}}}"#)
        );
        assert_eq!(
            serde_json::to_string(&Row {
                counts: Some(counts),
                ..plain
            })
            .unwrap(),
            format!(
                r#"{{"case":"jones","input":"digits-7",{spread},"instructions_per_number":9.5,"branches_per_number":2.0,"branch_misses_per_number":0.25}}"#
            )
        );
    }

    #[test]
    fn the_verdict_compares_with_the_best_of_the_others() {
        let mut rows = vec![
            row("core-fmt", "real", 10.0),
            row("itoa", "real", 3.0),
            row("seqtext", "real", 2.0),
        ];
        rows.extend([
            row("digit-loop", "digits-mix", 9.0),
            row("seqtext", "digits-mix", 3.0),
        ]);
        rows.extend([
            row("itoa", "digits-3", 4.0),
            row("jones", "digits-3", 5.0),
            row("seqtext", "digits-3", 3.0),
        ]);
        rows.extend([
            row("itoa", "digits-4", 2.0),
            row("seqtext", "digits-4", 1.0),
        ]);
        assert_eq!(
            verdict(&rows),
            [
                "real numbers: seqtext takes 1/5.0 of the time of core-fmt, 1/1.50 of that of the next, itoa",
                "the even mix of lengths: seqtext takes 1/3.0 of the time of digit-loop",
                "each length: at its worst, digits-3, seqtext takes 0.75 of the time of the best other, itoa",
            ]
        );
        assert!(verdict(&[]).is_empty());
    }
}
