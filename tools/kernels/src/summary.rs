//! The summary of a run: a table, and below it everything that is not as expected.

use std::fmt::Write as _;

use fastproc_guest::scenario::Scenario;

use crate::{evaluate::Findings, finding::Finding, page::text_lines, series::Series};

/// A scenario on a kernel.
pub struct Outcome {
    /// The kernel.
    pub series: Series,
    /// The scenario.
    pub scenario: Scenario,
    /// The findings.
    pub findings: Findings,
    /// What is not as expected, one line each.
    pub wrong: Vec<String>,
}

const COLUMNS: [&str; 7] = [
    "kernel", "scenario", "source", "loads", "fields", "lines", "text",
];

/// The table.
pub fn table(outcomes: &[Outcome]) -> String {
    let heading = COLUMNS.map(str::to_owned);
    let rows: Vec<_> = std::iter::once(heading)
        .chain(outcomes.iter().map(cells))
        .collect();
    let widths: Vec<_> = (0..COLUMNS.len())
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for (row, result) in rows
        .iter()
        .zip(std::iter::once("").chain(outcomes.iter().map(result)))
    {
        let line: Vec<_> = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        text.push_str(format!("{}  {result}", line.join("  ")).trim_end());
        text.push('\n');
    }
    for outcome in outcomes.iter().filter(|outcome| !outcome.wrong.is_empty()) {
        let _ = writeln!(
            text,
            "
Linux {}, {}:",
            outcome.series, outcome.scenario
        );
        for line in &outcome.wrong {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

fn result(outcome: &Outcome) -> &'static str {
    if outcome.wrong.is_empty() {
        "as expected"
    } else {
        "NOT as expected"
    }
}

fn cells(outcome: &Outcome) -> [String; 7] {
    let program = |wanted: fn(&str, &Finding) -> bool| {
        outcome
            .findings
            .iter()
            .find(|(name, finding)| wanted(name, finding))
            .map(|(_, finding)| finding)
    };
    let doctor = program(|name, _| name.starts_with("doctor"));
    let verified = program(|name, finding| name.starts_with("verify") && finding.fields > 0);
    let cell =
        |finding: Option<&Finding>, show: fn(&Finding) -> String| finding.map_or("-".into(), show);
    [
        outcome.series.to_string(),
        outcome.scenario.to_string(),
        cell(doctor.or(verified), |finding| finding.source.clone()),
        cell(doctor, |finding| finding.usable.join(" ")),
        cell(verified, |finding| finding.fields.to_string()),
        cell(doctor, |finding| finding.lines.to_string()),
        cell(doctor, text_lines),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::architecture::Flavour;

    #[test]
    fn the_table_ends_with_what_is_wrong() {
        let finding = |source: &str, fields| Finding {
            source: source.into(),
            usable: vec![source.into()],
            fields,
            ..Finding::default()
        };
        let outcome = |wrong: &[&str]| Outcome {
            series: Series::new(Flavour::Amd64, 6, 1),
            scenario: Scenario::Hotplug,
            findings: [
                ("doctor".into(), finding("bpf", 0)),
                ("verify bpf".into(), finding("bpf", 120)),
            ]
            .into(),
            wrong: wrong.iter().map(|&line| line.into()).collect(),
        };
        let text = table(&[outcome(&[]), outcome(&["verify bpf: 3 values are wrong"])]);
        assert_eq!(
            text,
            "kernel  scenario  source  loads  fields  lines  text\n\
             6.1     hotplug   bpf     bpf    120     0      0     as expected\n\
             6.1     hotplug   bpf     bpf    120     0      0     NOT as expected\n\
             \nLinux 6.1, hotplug:\n  verify bpf: 3 values are wrong\n"
        );
    }
}
