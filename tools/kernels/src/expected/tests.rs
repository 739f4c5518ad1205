//! What is expected follows from the table.

use super::*;

fn series(text: &str) -> Series {
    Series::of_release(text).unwrap()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.into()).collect()
}

fn expected() -> Expected {
    let circumstance = |scenario: &str, reader: &str| Circumstance {
        scenario: scenario.into(),
        reader: reader.into(),
        ..Circumstance::default()
    };
    let kernel = |refused: &[(&str, &str)], lines| Kernel {
        refused: refused
            .iter()
            .map(|&(source, why)| (source.into(), why.into()))
            .collect(),
        fields: 120,
        lines,
        lines_by_symbols: set(&["vmstat hidden"]),
        ratios: [("bpf-full".into(), 25.0)].into(),
        ..Kernel::default()
    };
    Expected {
        not_in_use: set(&["stat nswap"]),
        used_by_memory: set(&["status VmSwap"]),
        circumstances: vec![
            Circumstance {
                procfs_because: "no capabilities".into(),
                text_because: "not permitted".into(),
                ..circumstance("", "as nobody")
            },
            Circumstance {
                symbols_hidden: true,
                service_because: "not a plain user".into(),
                ..circumstance("", "as reader")
            },
            Circumstance {
                procfs_because: "locked down".into(),
                ..circumstance("lockdown", "")
            },
        ],
        kernels: [
            (
                series("5.10"),
                kernel(&[("bpf", "too old"), ("counters", "refused")], 0),
            ),
            (series("6.12"), kernel(&[], 190)),
        ]
        .into(),
    }
}

#[test]
fn doctor_shows_what_the_kernel_and_the_circumstances_allow() {
    let expected = expected();
    let doctor = |name, scenario, program| expected.finding(series(name), scenario, program);
    let root = doctor("6.12", Scenario::Conformance, "doctor");
    assert_eq!(
        (root.source.as_str(), root.usable.len(), root.lines),
        ("bpf", 3, 190)
    );
    let old = doctor("5.10", Scenario::Conformance, "doctor");
    assert_eq!(
        (old.source.as_str(), old.error.as_str(), old.lines),
        ("bpf-iter", "refused", 0)
    );
    assert_eq!(old.refused, [("bpf".into(), "too old".into())].into());
    assert_eq!(old.lines_from_text, set(&[ALL_LINES]));
    let nobody = doctor("6.12", Scenario::HidePid, "doctor as nobody");
    assert_eq!(nobody.usable, ["procfs"]);
    assert_eq!(nobody.refused["bpf-iter"], "no capabilities");
    assert_eq!(nobody.error, "not permitted");
    let reader = doctor("6.12", Scenario::Conformance, "doctor as reader");
    assert_eq!((reader.source.as_str(), reader.lines), ("bpf", 189));
    assert_eq!(reader.lines_from_text, set(&["vmstat hidden"]));
    let lockdown = doctor("6.12", Scenario::Lockdown, "doctor");
    assert_eq!((lockdown.source.as_str(), lockdown.lines), ("procfs", 190));
}

#[test]
fn verify_is_of_the_source_it_is_asked_for_or_fails_as_doctor_says() {
    let expected = expected();
    let verify = |name, scenario, program| expected.finding(series(name), scenario, program);
    let refused = verify("5.10", Scenario::Conformance, "verify bpf");
    assert_eq!(
        (refused.status.as_str(), refused.error.as_str()),
        ("2", "fastproc: too old")
    );
    let iter = verify("5.10", Scenario::Conformance, "verify bpf-iter");
    assert_eq!(
        (iter.source.as_str(), iter.fields, iter.error.as_str()),
        ("bpf-iter", 120, "")
    );
    let procfs = verify("6.12", Scenario::Memory, "verify procfs");
    assert_eq!((procfs.lines, procfs.fields), (0, 120));
    let big = verify("6.12", Scenario::Big, "verify");
    assert!(big.aged_interrupts && big.lines == 190);
    assert!(!verify("5.10", Scenario::Big, "verify").aged_interrupts);
    let amid = verify("6.12", Scenario::Hotplug, "verify bpf");
    assert_eq!((amid.lines, amid.lines_from_text.len()), (0, 0));
    let text = verify("5.10", Scenario::Hotplug, "verify bpf-iter");
    assert_eq!(text.lines_from_text, set(&[ALL_LINES]));
    let scan = verify("6.12", Scenario::Cost, "bench scan");
    assert_eq!(scan.ratios.len(), 1);
}

#[test]
fn a_service_serves_whom_the_kernel_and_the_circumstances_let_it() {
    let mut expected = expected();
    let refused = &mut expected.kernels.get_mut(&series("5.10")).unwrap().refused;
    refused.insert(SERVICE.into(), "root is not told apart".into());
    let of = |name, program| {
        let finding = expected.finding(series(name), Scenario::Service, program);
        (finding.source, finding.service)
    };
    let pair = |source: &str, service: &str| (source.to_owned(), service.to_owned());
    assert_eq!(of("6.12", "doctor"), pair("service", SERVES));
    assert_eq!(of("6.12", "doctor as nobody"), pair("service", SERVES));
    assert_eq!(of("6.12", "verify as nobody"), pair("service", ""));
    assert_eq!(
        of("6.12", "doctor as reader"),
        pair("bpf", "not a plain user")
    );
    assert_eq!(
        of("5.10", "doctor"),
        pair("bpf-iter", "root is not told apart")
    );
    assert_eq!(of("5.10", "doctor as nobody"), pair("service", SERVES));
    assert_eq!(of("5.10", "verify as nobody"), pair("service", ""));
    let elsewhere = expected.finding(series("6.12"), Scenario::Conformance, "doctor");
    assert_eq!(
        (elsewhere.source.as_str(), elsewhere.service.as_str()),
        ("bpf", "")
    );
}

#[test]
fn a_field_has_to_be_in_use_in_one_scenario_unless_nothing_uses_it() {
    let expected = expected();
    let unproven = |scenario, program: &str| {
        let mut finding = expected.finding(series("6.12"), scenario, program);
        finding.unproven = set(&["stat nswap", "stat utime", "status VmSwap"]);
        let found = [(program.to_owned(), finding)].into();
        expected.differences(series("6.12"), scenario, &found)
    };
    let never = |program, field| format!("{program}: {field} was never seen equal and in use");
    assert_eq!(
        unproven(Scenario::Conformance, "verify bpf"),
        [never("verify bpf", "stat utime")]
    );
    assert_eq!(
        unproven(Scenario::Memory, "verify bpf"),
        [never("verify bpf", "status VmSwap")]
    );
    for (scenario, program) in [
        (Scenario::Conformance, "verify as nobody"),
        (Scenario::HidePid, "verify bpf"),
    ] {
        assert_eq!(unproven(scenario, program), [""; 0]);
    }
}

#[test]
fn lines_without_symbols_come_from_the_text_for_everybody() {
    let mut table = expected();
    let number = series("6.12");
    let kernel = table.kernels.get_mut(&number).unwrap();
    kernel.lines_from_text = set(&["vmstat nameless"]);
    let before = kernel.clone();
    let found: Findings = ["doctor", "doctor as reader"]
        .map(|name| {
            let finding = table.finding(number, Scenario::Conformance, name);
            (name.into(), finding)
        })
        .into();
    let [root, reader] = ["doctor", "doctor as reader"].map(|name| &found[name]);
    assert_eq!(root.lines_from_text, set(&["vmstat nameless"]));
    let both = set(&["vmstat hidden", "vmstat nameless"]);
    assert_eq!(reader.lines_from_text, both);
    assert_eq!(reader.lines + 1, root.lines);
    table.kernels.remove(&number);
    table.update(number, "", Scenario::Conformance, &found);
    let after = &table.kernels[&number];
    assert_eq!(after.lines_from_text, before.lines_from_text);
    assert_eq!(after.lines_by_symbols, before.lines_by_symbols);
}

#[test]
fn an_update_expects_what_was_found() {
    let mut table = expected();
    let programs = ["doctor", "doctor as reader", "verify procfs"];
    let found = |table: &Expected, scenario, programs: &[&str]| -> Findings {
        programs
            .iter()
            .map(|&name| (name.into(), table.finding(series("5.10"), scenario, name)))
            .collect()
    };
    let conformance = found(&table, Scenario::Conformance, &programs);
    let cost = found(&table, Scenario::Cost, &["bench scan"]);
    let before = table.kernels.remove(&series("5.10")).unwrap();
    table.update(series("5.10"), "", Scenario::Conformance, &conformance);
    table.update(series("5.10"), "", Scenario::Cost, &cost);
    let after = &table.kernels[&series("5.10")];
    assert_eq!((&after.refused, after.fields), (&before.refused, 120));
    assert_eq!(after.ratios, before.ratios);
    let text = table.text().unwrap();
    assert_eq!(toml::from_str::<Expected>(&text).unwrap(), table);
}

#[test]
fn a_cost_that_got_worse_is_a_difference_on_its_kernel_alone() {
    let expected = expected();
    let differences = |name, share: f64| {
        let mut finding = expected.finding(series("6.12"), Scenario::Cost, "bench scan");
        for ratio in finding.ratios.values_mut() {
            *ratio *= share;
        }
        let found = [("bench scan".into(), finding)].into();
        let of = |name| (series(name), Scenario::Cost);
        let (number, cost) = of(name);
        (
            expected.differences(number, cost, &found),
            expected.gains(number, cost, &found),
        )
    };
    let none: [String; 0] = [];
    assert_eq!(differences("6.12", 0.96), (none.to_vec(), none.to_vec()));
    let (worse, gains) = differences("6.12", 0.94);
    assert_eq!((worse.len(), gains.len()), (1, 0));
    assert_eq!(
        worse[0],
        "bench scan: bpf-full: 25 times cheaper expected, 23.5 times"
    );
    let (worse, gains) = differences("6.12", 1.1);
    assert_eq!((worse.len(), gains.len()), (0, 1));
    // A newer kernel may cost more or less until it has a row.
    assert_eq!(differences("6.18", 0.5), (none.to_vec(), none.to_vec()));
    assert_eq!(differences("6.18", 2.0), (none.to_vec(), none.to_vec()));
}

#[test]
fn a_series_without_a_row_is_compared_with_the_next_older_one() {
    let expected = expected();
    let found = |name: &str| -> Findings {
        let finding = expected.finding(series(name), Scenario::Conformance, "doctor");
        [("doctor".into(), finding)].into()
    };
    let differences =
        |name, found: &Findings| expected.differences(series(name), Scenario::Conformance, found);
    assert_eq!(differences("6.12", &found("6.12")), [""; 0]);
    assert!(differences("6.12", &found("5.10")).len() > 1);
    assert_eq!(differences("6.1", &found("5.10")), [""; 0]);
    assert_eq!(
        differences("6.18", &found("5.10"))[0],
        "doctor: source: bpf before, bpf-iter"
    );
    assert_eq!(differences("5.4", &found("5.10")).len(), 1);
    // A kernel of another architecture does not stand in.
    assert_eq!(differences("6.12.1-cloud-arm64", &found("5.10")).len(), 1);
    assert_eq!(
        differences("6.12", &Findings::new()),
        ["no program was run"]
    );
}

#[test]
fn the_table_of_this_repository_is_understood() {
    let expected = Expected::read(&Expected::path()).unwrap();
    assert!(!expected.kernels.is_empty());
    let scenarios: Vec<&str> = Scenario::ALL.iter().map(|one| one.name()).collect();
    for Circumstance { scenario, .. } in &expected.circumstances {
        assert!(
            scenario.is_empty() || scenarios.contains(&scenario.as_str()),
            "{scenario}"
        );
    }
}
