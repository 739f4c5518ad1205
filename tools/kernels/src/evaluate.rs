//! From a guest's report to findings: what must not change, and what is wrong in any case.

use std::collections::{BTreeMap, BTreeSet};

use fastproc_guest::{
    report::{Ended, Line, Report},
    scenario::Scenario,
};

use crate::{
    finding::Finding,
    output::{self, CounterCosts, Doctor, Scan, Verify},
};

/// The findings of a scenario, by the names of the programs that ran.
pub type Findings = BTreeMap<String, Finding>;

/// The permitted difference between repeated runs: the greatest of their ratios divided by the least.
const SPREAD: f64 = 1.01;

/// Means every line.
pub const ALL_LINES: &str = "all";

/// The program that measures the cost of reading the machine's counters.
pub const COUNTERS: &str = "bench counters";

/// The result of a service that does not refuse.
pub const SERVES: &str = "serves";

/// The result of a scenario on a kernel, independent of what was expected.
#[derive(Debug, Default, PartialEq)]
pub struct Evaluation {
    /// What must not change.
    pub findings: Findings,
    /// What is wrong, one line each. Then the findings do not become the expected ones.
    pub wrong: Vec<String>,
}

/// Evaluates the reports of one scenario: one report, or several that must agree.
pub fn evaluate(reports: &[&Report]) -> Evaluation {
    let mut evaluation = Evaluation::default();
    for report in reports {
        let one = evaluate_one(report);
        for wrong in one.wrong {
            if !evaluation.wrong.contains(&wrong) {
                evaluation.wrong.push(wrong);
            }
        }
        // The first run counts; the other runs only add measurements.
        for (name, finding) in one.findings {
            evaluation.findings.entry(name).or_insert(finding);
        }
    }
    if let [_, _, ..] = reports {
        agree(reports, &mut evaluation);
    }
    evaluation
}

/// Takes the median of each ratio, which may differ little between runs.
fn agree(reports: &[&Report], evaluation: &mut Evaluation) {
    for (name, finding) in &mut evaluation.findings {
        for (case, ratio) in &mut finding.ratios {
            let mut ratios: Vec<f64> = reports
                .iter()
                .filter_map(|report| {
                    evaluate_one(report)
                        .findings
                        .get(name)?
                        .ratios
                        .get(case)
                        .copied()
                })
                .collect();
            ratios.sort_by(f64::total_cmp);
            let (Some(least), Some(greatest)) = (ratios.first(), ratios.last()) else {
                continue;
            };
            if ratios.len() < reports.len() || greatest / least > SPREAD {
                evaluation.wrong.push(format!(
                    "{name}: {case}: ratios differ by more than 1 %: {ratios:?}"
                ));
            }
            *ratio = ratios[ratios.len() / 2];
        }
    }
}

fn evaluate_one(report: &Report) -> Evaluation {
    let mut evaluation = Evaluation::default();
    let scenario: Option<Scenario> = report.scenario.parse().ok();
    for line in &report.lines {
        match line {
            Line::Check {
                name,
                passed: false,
                detail,
            } => evaluation.wrong.push(format!("{name}: {detail}")),
            Line::Command {
                name,
                ended,
                stdout,
                stderr,
                ..
            } => {
                let mut finding = Finding {
                    status: status(*ended),
                    ..Finding::default()
                };
                if let Err(wrong) = command(&mut finding, name, *ended, stdout, stderr) {
                    evaluation.wrong.push(format!("{name}: {wrong}"));
                }
                if scenario == Some(Scenario::Hotplug) && name.starts_with("verify") {
                    lines_amid_changes(&mut finding);
                }
                evaluation.findings.insert(name.clone(), finding);
            }
            Line::Begin { .. } | Line::Fact { .. } | Line::Check { .. } | Line::End { .. } => {}
        }
    }
    evaluation
}

/// While CPUs go offline and online, chance decides which lines are read during a change and come from the text until
/// the next. Their values are compared all the same. It counts if no line comes from a program.
fn lines_amid_changes(finding: &mut Finding) {
    if finding.lines > 0 {
        finding.lines = 0;
        finding.lines_from_text.clear();
    }
}

fn status(ended: Ended) -> String {
    match ended {
        Ended::Status(code) => code.to_string(),
        Ended::Signal(number) => format!("signal {number}"),
        Ended::NotStarted => "not started".into(),
    }
}

/// Fills in what a program showed, and returns what is wrong with it.
fn command(
    finding: &mut Finding,
    name: &str,
    ended: Ended,
    stdout: &str,
    stderr: &str,
) -> Result<(), String> {
    let kind = name.split(' ').next().unwrap_or_default();
    match (kind, ended) {
        // The program reports why it cannot verify that source here: the table shows whether that was expected.
        ("verify", Ended::Status(2)) => {
            finding.error = first_line(stderr);
            Ok(())
        }
        ("verify", Ended::Status(0 | 1)) => verify(finding, &output::object(stdout)?),
        ("doctor", Ended::Status(0)) => {
            doctor(finding, &output::object(stdout)?);
            Ok(())
        }
        ("bench", Ended::Status(0)) if name == COUNTERS => {
            counter_costs(finding, &output::object(stdout)?);
            Ok(())
        }
        ("bench", Ended::Status(0)) => {
            scan(finding, &output::object(stdout)?);
            Ok(())
        }
        ("exits" | "serve" | "cat" | "cgroups" | "cost" | "limits", Ended::Status(0)) => Ok(()),
        // It is not fastproc's fault if a fixture cannot be set up on this kernel or on a busy host: if a field is
        // therefore not in use, that shows.
        ("testbed", Ended::Status(0 | 125)) => {
            finding.status = "0".into();
            Ok(())
        }
        _ => Err(format!("status {}: {}", finding.status, first_line(stderr))),
    }
}

fn doctor(finding: &mut Finding, doctor: &Doctor) {
    for source in &doctor.sources {
        if source.usable {
            finding.usable.push(source.name.clone());
        } else {
            let why = source.error.as_deref().unwrap_or("no reason is given");
            finding.refused.insert(source.name.clone(), first_line(why));
        }
    }
    let others = doctor
        .fields
        .iter()
        .filter(|group| group.from != doctor.source);
    finding.groups_from = others
        .map(|group| (group.group.clone(), group.from.clone()))
        .collect();
    finding.source.clone_from(&doctor.source);
    let service = &doctor.service;
    if service.version.is_some() {
        finding.service = match (&service.shares, &service.error) {
            (Some(_), _) => SERVES.into(),
            (None, why) => first_line(why.as_deref().unwrap_or("no reason is given")),
        };
    }
    if !doctor.counters.available {
        let why = doctor
            .counters
            .error
            .as_deref()
            .unwrap_or("no reason is given");
        finding.error = first_line(why);
    }
    let lines = doctor.counters.lines.iter();
    (finding.lines, finding.lines_from_text) = lines_by_source(
        lines.map(|line| (line.file.as_str(), line.name.as_str(), line.from.as_str())),
    );
}

fn verify(finding: &mut Finding, verify: &Verify) -> Result<(), String> {
    finding.source.clone_from(&verify.source);
    let compared = verify
        .fields
        .iter()
        .filter(|field| field.counts.compared > 0);
    for field in compared {
        let name = format!("{} {}", field.file, field.name);
        finding.fields += 1;
        if field.counts.equal == 0 || field.nonzero == 0 {
            finding.unproven.insert(name);
        }
    }
    let counters = verify
        .counters
        .iter()
        .filter(|counter| counter.counts.compared > 0);
    (finding.lines, finding.lines_from_text) = lines_by_source(counters.map(|counter| {
        (
            counter.file.as_str(),
            counter.line.as_str(),
            counter.from.as_str(),
        )
    }));
    let wrong = wrong_values(verify);
    finding.aged_interrupts = verify
        .aged_interrupts
        .as_ref()
        .is_some_and(|aged| aged.counts.compared > 0 && aged.kept > 0 && aged.renewed > 0);
    let texts = &verify.machine_texts;
    if verify.compared == 0 {
        Err("nothing was compared".into())
    } else if texts.is_empty() || texts.iter().any(|text| text.counts.compared == 0) {
        Err("the machine's files were not compared as a whole".into())
    } else if verify.wrong > 0 || !wrong.is_empty() {
        Err(format!(
            "{} values are wrong: {}",
            verify.wrong,
            wrong.join(", ")
        ))
    } else {
        Ok(())
    }
}

fn wrong_values(verify: &Verify) -> Vec<String> {
    let fields = verify
        .fields
        .iter()
        .map(|field| (&field.file, field.name.as_str(), field.counts));
    let texts = verify
        .texts
        .iter()
        .chain(&verify.machine_texts)
        .map(|text| (&text.file, "as a whole", text.counts));
    let counters = verify
        .counters
        .iter()
        .map(|counter| (&counter.file, counter.line.as_str(), counter.counts));
    let aged = verify.aged_interrupts.iter();
    let file = String::from("/proc/stat");
    let aged = aged.map(|aged| (&file, "interrupt counts that may be old", aged.counts));
    fields
        .chain(texts)
        .chain(counters)
        .chain(aged)
        .filter(|(_, _, counts)| counts.wrong > 0)
        .map(|(file, name, counts)| {
            format!("{file} {name} ({} of {})", counts.wrong, counts.compared)
        })
        .collect()
}

/// The number of lines that come from a program, and the lines that come from the text. CPUs are alike, and go offline
/// and online: `cpu0`, `cpu1`… count as one line.
fn lines_by_source<'l>(
    lines: impl Iterator<Item = (&'l str, &'l str, &'l str)>,
) -> (usize, BTreeSet<String>) {
    let (mut read, mut text) = (BTreeSet::new(), BTreeSet::new());
    for (file, line, from) in lines {
        let number = line.strip_prefix("cpu").unwrap_or_default();
        let line = if number.is_empty() { line } else { "cpuN" };
        let lines = if from == "bpf" { &mut read } else { &mut text };
        lines.insert(format!("{file} {line}"));
    }
    if read.is_empty() && !text.is_empty() {
        text = [ALL_LINES.to_owned()].into();
    }
    (read.len(), text)
}

fn scan(finding: &mut Finding, scan: &Scan) {
    let ours = scan.rows.iter().filter(|row| is_ours(&row.case));
    finding.ratios = ours
        .map(|row| (row.case.clone(), rounded(row.ratio_vs_proc_3files)))
        .collect();
}

fn counter_costs(finding: &mut Finding, costs: &CounterCosts) {
    for row in costs.rows.iter().filter(|row| is_ours(&row.case)) {
        let (stat, interrupts) = (row.ratio_vs_proc_stat, row.ratio_vs_proc_interrupts);
        finding.ratios.insert(row.case.clone(), rounded(stat));
        let to_interrupts = format!("{} to interrupts", row.case);
        finding.ratios.insert(to_interrupts, rounded(interrupts));
    }
}

/// Whether a case is not one of the kernel's texts.
fn is_ours(case: &str) -> bool {
    !case.starts_with("proc-")
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 100.0).round() / 100.0
}

fn first_line(text: &str) -> String {
    text.lines()
        .next()
        .unwrap_or_default()
        .trim_end_matches(':')
        .to_owned()
}

#[cfg(test)]
mod tests;
