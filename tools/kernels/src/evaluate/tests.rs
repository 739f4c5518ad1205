use super::*;

const DOCTOR: &str = r#"{"kernel":"6.1","source":"bpf-iter","sources":[
    {"source":"bpf","usable":false,"load_ms":null,"error":"this kernel is too old:\nmore"},
    {"source":"bpf-iter","usable":true,"load_ms":12.5,"error":null},
    {"source":"procfs","usable":true,"load_ms":0,"error":null}],
    "fields":[{"group":"cpu","from":"bpf-iter"},{"group":"io","from":"procfs"}],
    "array":{"capacity":500,"bytes":1000},
    "counters":{"available":true,"error":null,"lines":[
    {"file":"stat","line":"cpu","from":"bpf","nonzero":true},
    {"file":"stat","line":"cpu0","from":"text","nonzero":true},
    {"file":"stat","line":"cpu1","from":"text","nonzero":true},
    {"file":"stat","line":"ctxt","from":"bpf","nonzero":true},
    {"file":"vmstat","line":"nr_free_pages","from":"text","nonzero":true}]},
    "service":{"socket":"/run/x","version":null,"pid":null,"source":null,"shares":null,"error":"no service at /run/x"}}"#;

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
    let mut evaluation = evaluate(&[&report(vec![line])]);
    let (_, finding) = evaluation.findings.pop_first().unwrap();
    (finding, evaluation.wrong)
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
        [("bpf".into(), "this kernel is too old".into())].into()
    );
    assert_eq!(finding.groups_from, [("io".into(), "procfs".into())].into());
    assert_eq!(finding.lines, 2);
    assert_eq!(
        finding.lines_from_text,
        set(&["stat cpuN", "vmstat nr_free_pages"])
    );
}

#[test]
fn doctor_tells_what_a_service_does_where_one_answers() {
    let service = |text: &str| one(ran("doctor", Ended::Status(0), text, "")).0.service;
    assert_eq!(service(DOCTOR), "");
    let refuses = DOCTOR.replace(r#""version":null"#, r#""version":"1""#);
    assert_eq!(service(&refuses), "no service at /run/x");
    let serves = refuses.replace(r#""shares":null"#, r#""shares":"everything""#);
    assert_eq!(service(&serves), SERVES);
}

#[test]
fn verify_tells_what_was_compared_and_what_was_proven() {
    let (finding, wrong) = one(ran("verify bpf-iter", Ended::Status(0), VERIFY, ""));
    assert_eq!(wrong, [""; 0]);
    assert_eq!(
        (finding.source.as_str(), finding.fields, finding.lines),
        ("bpf-iter", 3, 1)
    );
    assert_eq!(finding.unproven, set(&["io rchar", "stat majflt"]));
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
        let finding = evaluate(&[&report]).findings.remove("verify").unwrap();
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
fn unknown_results_count_as_wrong() {
    for (name, ended, stdout) in [
        ("doctor", Ended::Status(2), DOCTOR),
        ("doctor", Ended::Status(0), ""),
        ("doctor", Ended::Status(0), "{}"),
        ("verify bpf", Ended::Status(0), DOCTOR),
        ("verify bpf", Ended::Signal(11), VERIFY),
        ("verify bpf", Ended::NotStarted, ""),
        ("bench scan", Ended::Status(1), SCAN),
        ("testbed", Ended::Status(1), ""),
        ("other", Ended::Status(0), ""),
    ] {
        let (_, wrong) = one(ran(name, ended, stdout, "why"));
        assert_eq!(wrong.len(), 1, "{name} {ended:?}");
    }
    // Every key that is read must exist.
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
fn counters_are_compared_with_both_texts() {
    let text = r#"{"bench":"counters","rows":[
        {"case":"proc-stat","ratio_vs_proc_stat":1.0,"ratio_vs_proc_interrupts":0.5},
        {"case":"stat","ratio_vs_proc_stat":20.004,"ratio_vs_proc_interrupts":10.0}]}"#;
    let (finding, wrong) = one(ran(COUNTERS, Ended::Status(0), text, ""));
    assert_eq!(wrong, [""; 0]);
    let expected = [("stat", 20.0), ("stat to interrupts", 10.0)];
    assert_eq!(
        finding.ratios,
        expected
            .map(|(case, ratio)| (case.to_owned(), ratio))
            .into()
    );
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
    let evaluation = evaluate(&reports.iter().collect::<Vec<_>>());
    assert_eq!(evaluation.wrong, [""; 0]);
    assert_eq!(
        evaluation.findings["bench scan"].ratios,
        [("bpf-full".into(), 50.2)].into()
    );

    let far = report(vec![ran(
        "bench scan",
        Ended::Status(0),
        &SCAN.replace("50.126", "51"),
        "",
    )]);
    let evaluation = evaluate(&[&reports[0], &reports[1], &far]);
    assert_eq!(evaluation.wrong.len(), 1, "{evaluation:?}");
    let broken = report(vec![ran("bench scan", Ended::Status(1), "", "")]);
    assert!(
        !evaluate(&[&reports[0], &reports[1], &broken])
            .wrong
            .is_empty()
    );
}

#[test]
fn a_check_that_failed_in_the_guest_is_wrong() {
    let line = Line::Check {
        name: "cpus".into(),
        passed: false,
        detail: "1 of 64".into(),
    };
    assert_eq!(evaluate(&[&report(vec![line])]).wrong, ["cpus: 1 of 64"]);
}

#[test]
fn a_fixture_that_is_absent_is_no_matter_but_a_broken_testbed_is() {
    for (code, wrong) in [(0, 0), (125, 0), (1, 1)] {
        let (finding, found) = one(ran(
            "testbed",
            Ended::Status(code),
            "1	idle
",
            "absent: spent",
        ));
        assert_eq!(found.len(), wrong, "{code}");
        assert_eq!(finding.status == "0", wrong == 0);
    }
}
