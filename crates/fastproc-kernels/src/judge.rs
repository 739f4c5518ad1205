//! From a guest's report to findings: what must not change, and what is wrong whatever was expected.

use std::collections::{BTreeMap, BTreeSet};

use fastproc_guest::{
    report::{Ended, Line, Report},
    scenario::Scenario,
};

use crate::{
    finding::Finding,
    said::{self, Doctor, Scan, Verify},
};

/// The findings of a scenario, by the names of the programs that were run.
pub type Findings = BTreeMap<String, Finding>;

/// What several runs of the same may differ by: the greatest of their ratios over the least.
const SPREAD: f64 = 1.01;

/// Stands for every line there is.
pub const ALL_LINES: &str = "all";

/// A scenario on a kernel, judged without knowing what was expected.
#[derive(Debug, Default, PartialEq)]
pub struct Judged {
    /// What must not change.
    pub findings: Findings,
    /// What is wrong, a line each. With any of these there is nothing to expect.
    pub wrong: Vec<String>,
}

/// Judges the reports of one scenario: one report, or several that have to agree.
pub fn judge(reports: &[&Report]) -> Judged {
    let mut judged = Judged::default();
    for report in reports {
        let one = judge_one(report);
        for wrong in one.wrong {
            if !judged.wrong.contains(&wrong) {
                judged.wrong.push(wrong);
            }
        }
        // The first run counts; of the others only what is measured.
        for (name, finding) in one.findings {
            judged.findings.entry(name).or_insert(finding);
        }
    }
    if let [_, _, ..] = reports {
        agree(reports, &mut judged);
    }
    judged
}

/// Takes the middle of each ratio, which may differ little from run to run.
fn agree(reports: &[&Report], judged: &mut Judged) {
    for (name, finding) in &mut judged.findings {
        for (case, ratio) in &mut finding.ratios {
            let mut ratios: Vec<f64> = reports
                .iter()
                .filter_map(|report| {
                    judge_one(report)
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
                judged.wrong.push(format!(
                    "{name}: {case}: ratios differ by more than 1 %: {ratios:?}"
                ));
            }
            *ratio = ratios[ratios.len() / 2];
        }
    }
}

fn judge_one(report: &Report) -> Judged {
    let mut judged = Judged::default();
    let scenario: Option<Scenario> = report.scenario.parse().ok();
    let uses_fields = scenario.is_some_and(Scenario::uses_fields);
    for line in &report.lines {
        match line {
            Line::Check {
                name,
                passed: false,
                detail,
            } => judged.wrong.push(format!("{name}: {detail}")),
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
                    judged.wrong.push(format!("{name}: {wrong}"));
                }
                if scenario == Some(Scenario::Hotplug) && name.starts_with("verify") {
                    lines_amid_changes(&mut finding);
                }
                if !uses_fields {
                    // Too few processes: chance has too great a part in these.
                    finding.only_zero.clear();
                    finding.never_equal.clear();
                }
                judged.findings.insert(name.clone(), finding);
            }
            Line::Begin { .. } | Line::Fact { .. } | Line::Check { .. } | Line::End { .. } => {}
        }
    }
    judged
}

/// While CPUs come and go it is a matter of chance which lines are caught amid a change, and left to the text until the next.
/// Their values are judged all the same, and so is it if none is left to the programs.
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

/// Fills in what a program showed, and says what is wrong with it.
fn command(
    finding: &mut Finding,
    name: &str,
    ended: Ended,
    stdout: &str,
    stderr: &str,
) -> Result<(), String> {
    let kind = name.split(' ').next().unwrap_or_default();
    match (kind, ended) {
        // It says why it cannot verify that source here: whether that was to be expected, the table knows.
        ("verify", Ended::Status(2)) => {
            finding.error = first_line(stderr);
            Ok(())
        }
        ("verify", Ended::Status(0 | 1)) => verify(finding, &said::object(stdout)?),
        ("doctor", Ended::Status(0)) => {
            doctor(finding, &said::object(stdout)?);
            Ok(())
        }
        ("bench", Ended::Status(0)) => {
            scan(finding, &said::object(stdout)?);
            Ok(())
        }
        // It is no matter of fastproc's if an animal cannot be had on this kernel, or not on a busy host: if a field is not
        // in use for want of it, that shows.
        ("zoo", Ended::Status(0 | 125)) => {
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
        if field.counts.equal == 0 {
            finding.never_equal.insert(name);
        } else if field.nonzero == 0 {
            finding.only_zero.insert(name);
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

/// How many lines come from a program, and which come from the text. CPUs are alike, and come and go: `cpu0`, `cpu1`… are
/// one line.
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
    let ours = scan
        .rows
        .iter()
        .filter(|row| !row.case.starts_with("proc-"));
    finding.ratios = ours
        .map(|row| {
            (
                row.case.clone(),
                (row.ratio_vs_proc_3files * 100.0).round() / 100.0,
            )
        })
        .collect();
}

fn first_line(text: &str) -> String {
    text.lines()
        .next()
        .unwrap_or_default()
        .trim_end_matches(':')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCTOR: &str = r#"{"kernel":"6.1","source":"bpf-iter","sources":[
        {"source":"bpf","usable":false,"load_ms":null,"error":"this kernel is too old for it:\nmore"},
        {"source":"bpf-iter","usable":true,"load_ms":12.5,"error":null},
        {"source":"procfs","usable":true,"load_ms":0,"error":null}],
        "fields":[{"group":"cpu","from":"bpf-iter"},{"group":"io","from":"procfs"}],
        "array":{"capacity":500,"bytes":1000},
        "counters":{"available":true,"error":null,"lines":[
        {"file":"stat","line":"cpu","from":"bpf","nonzero":true},
        {"file":"stat","line":"cpu0","from":"text","nonzero":true},
        {"file":"stat","line":"cpu1","from":"text","nonzero":true},
        {"file":"stat","line":"ctxt","from":"bpf","nonzero":true},
        {"file":"vmstat","line":"nr_free_pages","from":"text","nonzero":true}]}}"#;

    const VERIFY: &str = r#"{"verify":"processes","kernel":"6.1","source":"bpf-iter","rounds":3,"processes":70,"fields":[
        {"file":"stat","field":"utime","compared":210,"equal":200,"moved":10,"wrong":0,"nonzero":9},
        {"file":"stat","field":"majflt","compared":210,"equal":210,"moved":0,"wrong":0,"nonzero":0},
        {"file":"io","field":"rchar","compared":3,"equal":0,"moved":3,"wrong":0,"nonzero":0},
        {"file":"status","field":"Ngid","compared":0,"equal":0,"moved":0,"wrong":0,"nonzero":0}],
        "texts":[{"file":"stat","compared":210,"equal":200,"moved":10,"wrong":0}],
        "counters":[{"file":"stat","line":"ctxt","from":"bpf","compared":3,"equal":2,"moved":1,"wrong":0,"nonzero":2},
        {"file":"vmstat","line":"nr_free_pages","from":"text","compared":3,"equal":2,"moved":1,"wrong":0,"nonzero":2}],
        "machine_texts":[{"file":"/proc/stat","compared":3,"equal":1,"moved":2,"wrong":0}],
        "aged_interrupts":{"latency_ms":1000,"compared":9,"equal":8,"moved":1,"wrong":0,"kept":3,"renewed":3},
        "missing":0,"compared":1053,"wrong":0,"examples":[]}"#;

    const SCAN: &str = r#"{"bench":"scan","kernel":"6.1","cpus":1,"processes":400,"rows":[
        {"case":"proc-3files","ratio_vs_proc_3files":1.0,"cpu_us_per_process":{"min":1,"median":1,"max":1}},
        {"case":"bpf-full","ratio_vs_proc_3files":50.126}]}"#;

    fn ran(name: &str, ended: Ended, stdout: &str, stderr: &str) -> Line {
        Line::Command {
            name: name.into(),
            argv: vec!["/fastproc".into()],
            ended,
            milliseconds: 1,
            stdout: stdout.replace('\n', " ") + "\n",
            stderr: stderr.into(),
        }
    }

    fn report(lines: Vec<Line>) -> Report {
        Report {
            scenario: "conformance".into(),
            release: "6.1".into(),
            lines,
            failed: 0,
        }
    }

    fn one(line: Line) -> (Finding, Vec<String>) {
        let mut judged = judge(&[&report(vec![line])]);
        let (_, finding) = judged.findings.pop_first().unwrap();
        (finding, judged.wrong)
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.into()).collect()
    }

    #[test]
    fn doctor_tells_what_loads_and_where_lines_come_from() {
        let (finding, wrong) = one(ran("doctor", Ended::Status(0), DOCTOR, ""));
        assert_eq!(wrong, [""; 0]);
        assert_eq!(
            (finding.status.as_str(), finding.source.as_str()),
            ("0", "bpf-iter")
        );
        assert_eq!(finding.usable, ["bpf-iter", "procfs"]);
        assert_eq!(
            finding.refused,
            [("bpf".into(), "this kernel is too old for it".into())].into()
        );
        assert_eq!(finding.groups_from, [("io".into(), "procfs".into())].into());
        assert_eq!(finding.lines, 2);
        assert_eq!(
            finding.lines_from_text,
            set(&["stat cpuN", "vmstat nr_free_pages"])
        );
    }

    #[test]
    fn verify_tells_what_was_compared_and_what_was_proven() {
        let (finding, wrong) = one(ran("verify bpf-iter", Ended::Status(0), VERIFY, ""));
        assert_eq!(wrong, [""; 0]);
        assert_eq!(
            (finding.source.as_str(), finding.fields, finding.lines),
            ("bpf-iter", 3, 1)
        );
        assert_eq!(finding.only_zero, set(&["stat majflt"]));
        assert_eq!(finding.never_equal, set(&["io rchar"]));
        assert_eq!(finding.lines_from_text, set(&["vmstat nr_free_pages"]));
    }

    #[test]
    fn interrupt_counts_that_may_be_old_are_kept_and_read_again() {
        let aged = |text: &str| one(ran("verify", Ended::Status(0), text, ""));
        assert!(aged(VERIFY).0.aged_interrupts);
        for (from, to) in [
            ("\"kept\":3", "\"kept\":0"),
            ("\"renewed\":3", "\"renewed\":0"),
        ] {
            assert!(!aged(&VERIFY.replace(from, to)).0.aged_interrupts);
        }
        let wrong = VERIFY.replace(
            "\"moved\":1,\"wrong\":0,\"kept\"",
            "\"moved\":0,\"wrong\":1,\"kept\"",
        );
        assert!(aged(&wrong).1[0].ends_with("may be old (1 of 9)"));
    }

    #[test]
    fn the_machines_files_are_compared_as_a_whole() {
        let file = "{\"file\":\"/proc/stat\",\"compared\":3,\"equal\":1,\"moved\":2,\"wrong\":0}";
        for (text, wrong) in [
            (
                String::new(),
                "the machine's files were not compared as a whole",
            ),
            (
                file.replace("\"compared\":3", "\"compared\":0"),
                "not compared as a whole",
            ),
            (
                file.replace("\"wrong\":0", "\"wrong\":1"),
                "/proc/stat as a whole (1 of 3)",
            ),
        ] {
            let (_, found) = one(ran(
                "verify",
                Ended::Status(0),
                &VERIFY.replace(file, &text),
                "",
            ));
            assert!(found[0].ends_with(wrong), "{found:?}");
        }
    }

    #[test]
    fn amid_changes_it_counts_only_whether_programs_read_lines_at_all() {
        let lines = |scenario: &str, text: &str| {
            let mut report = report(vec![ran("verify", Ended::Status(0), text, "")]);
            report.scenario = scenario.into();
            let finding = judge(&[&report]).findings.remove("verify").unwrap();
            (finding.lines, finding.lines_from_text)
        };
        assert_eq!(lines("hotplug", VERIFY), (0, set(&[])));
        assert_eq!(lines("big", VERIFY), (1, set(&["vmstat nr_free_pages"])));
        let text = VERIFY.replace("\"from\":\"bpf\"", "\"from\":\"text\"");
        assert_eq!(lines("hotplug", &text), (0, set(&[ALL_LINES])));
    }

    #[test]
    fn where_every_line_comes_from_the_text_none_is_named() {
        let text = DOCTOR.replace("\"from\":\"bpf\"", "\"from\":\"text\"");
        let (finding, _) = one(ran("doctor", Ended::Status(0), &text, ""));
        assert_eq!(
            (finding.lines, finding.lines_from_text),
            (0, set(&[ALL_LINES]))
        );
    }

    #[test]
    fn few_processes_prove_no_field() {
        let mut few = report(vec![ran("verify", Ended::Status(0), VERIFY, "")]);
        few.scenario = "hidepid".into();
        let finding = &judge(&[&few]).findings["verify"];
        assert_eq!(
            (
                finding.fields,
                finding.only_zero.len(),
                finding.never_equal.len()
            ),
            (3, 0, 0)
        );
    }

    #[test]
    fn a_wrong_value_is_wrong_whatever_was_expected() {
        let text = VERIFY.replace(
            "\"moved\":10,\"wrong\":0,\"nonzero\":9",
            "\"moved\":9,\"wrong\":1,\"nonzero\":9",
        );
        for text in [
            text.clone(),
            text.replace(
                "\"compared\":1053,\"wrong\":0",
                "\"compared\":1053,\"wrong\":1",
            ),
        ] {
            let (_, wrong) = one(ran("verify bpf-iter", Ended::Status(1), &text, ""));
            assert_eq!(wrong.len(), 1);
            assert!(wrong[0].ends_with("stat utime (1 of 210)"), "{wrong:?}");
        }
        let text = VERIFY.replace("\"compared\":1053", "\"compared\":0");
        let (_, wrong) = one(ran("verify bpf-iter", Ended::Status(1), &text, ""));
        assert_eq!(wrong, ["verify bpf-iter: nothing was compared"]);
    }

    #[test]
    fn a_source_that_cannot_be_verified_says_why() {
        let (finding, wrong) = one(ran(
            "verify bpf",
            Ended::Status(2),
            "",
            "fastproc: too old\nmore",
        ));
        assert_eq!(
            (finding.status.as_str(), finding.error.as_str()),
            ("2", "fastproc: too old")
        );
        assert_eq!(wrong, [""; 0]);
    }

    #[test]
    fn what_is_not_understood_is_wrong() {
        for (name, ended, stdout) in [
            ("doctor", Ended::Status(2), DOCTOR),
            ("doctor", Ended::Status(0), ""),
            ("doctor", Ended::Status(0), "{}"),
            ("verify bpf", Ended::Status(0), DOCTOR),
            ("verify bpf", Ended::Signal(11), VERIFY),
            ("verify bpf", Ended::NotStarted, ""),
            ("bench scan", Ended::Status(1), SCAN),
            ("zoo", Ended::Status(1), ""),
            ("other", Ended::Status(0), ""),
        ] {
            let (_, wrong) = one(ran(name, ended, stdout, "why"));
            assert_eq!(wrong.len(), 1, "{name} {ended:?}");
        }
        // Every key that is judged must be there.
        for key in [
            "\"counters\"",
            "\"fields\"",
            "\"source\"",
            "\"compared\"",
            "\"nonzero\"",
            "\"from\"",
        ] {
            let text = VERIFY.replace(key, "\"gone\"");
            let (_, wrong) = one(ran("verify", Ended::Status(0), &text, ""));
            assert_eq!(wrong.len(), 1, "{key}");
        }
    }

    #[test]
    fn runs_of_the_same_have_to_agree() {
        let reports: Vec<_> = ["50.126", "50.3", "50.2"]
            .map(|ratio| {
                report(vec![ran(
                    "bench scan",
                    Ended::Status(0),
                    &SCAN.replace("50.126", ratio),
                    "",
                )])
            })
            .into();
        let judged = judge(&reports.iter().collect::<Vec<_>>());
        assert_eq!(judged.wrong, [""; 0]);
        assert_eq!(
            judged.findings["bench scan"].ratios,
            [("bpf-full".into(), 50.2)].into()
        );

        let far = report(vec![ran(
            "bench scan",
            Ended::Status(0),
            &SCAN.replace("50.126", "51"),
            "",
        )]);
        let judged = judge(&[&reports[0], &reports[1], &far]);
        assert_eq!(judged.wrong.len(), 1, "{judged:?}");
        let broken = report(vec![ran("bench scan", Ended::Status(1), "", "")]);
        assert!(!judge(&[&reports[0], &reports[1], &broken]).wrong.is_empty());
    }

    #[test]
    fn a_check_that_failed_in_the_guest_is_wrong() {
        let line = Line::Check {
            name: "cpus".into(),
            passed: false,
            detail: "1 of 64".into(),
        };
        assert_eq!(judge(&[&report(vec![line])]).wrong, ["cpus: 1 of 64"]);
    }

    #[test]
    fn an_animal_that_is_absent_is_no_matter_but_a_broken_zoo_is() {
        for (code, wrong) in [(0, 0), (125, 0), (1, 1)] {
            let (finding, found) = one(ran(
                "zoo",
                Ended::Status(code),
                "1	idle
",
                "absent: spent",
            ));
            assert_eq!(found.len(), wrong, "{code}");
            assert_eq!(finding.status == "0", wrong == 0);
        }
    }
}
