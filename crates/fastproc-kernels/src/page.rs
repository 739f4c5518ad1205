//! `docs/kernels.md`: the table, for people who want to know what works on their kernel.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use fastproc_guest::scenario::Scenario;

use crate::{
    expected::{Expected, Kernel},
    finding::Finding,
    judge::ALL_LINES,
};

const HEADING: &str = "\
# What works on which kernel

<!-- Written by `make kernels-expected`, from kernels/expected.toml. -->

Debian's kernels are booted in an emulator, and there fastproc compares itself with the kernel's own files: every field of
every process, beside a zoo of odd ones, and every line of the machine's counters. `make test-kernels` does it all, and
fails on any difference from what is written here. A value counts as proven where it was equal to the kernel's and not zero.

The newest series moves with the archive. One that is not written here yet is judged by the next older one: a source that no
longer loads, fewer fields, a line that went to the text or a wrong value fails; what it shows more or at another price is
written down by `make kernels-expected`.
";

/// Where it is, in this repository.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernels.md")
}

/// The page.
pub fn page(expected: &Expected) -> String {
    let mut page = HEADING.to_owned();
    sources(&mut page, expected);
    circumstances(&mut page, expected);
    costs(&mut page, expected);
    for (series, kernel) in &expected.kernels {
        details(&mut page, &format!("Linux {series}"), kernel);
    }
    page
}

/// A row of a Markdown table.
fn row(page: &mut String, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<_> = cells
        .into_iter()
        .map(|cell| cell.replace('|', "\\|"))
        .collect();
    let _ = writeln!(page, "| {} |", cells.join(" | "));
}

fn table(page: &mut String, heading: &str, columns: &[&str]) {
    let _ = writeln!(page, "\n## {heading}\n");
    row(page, columns.iter().map(|&column| column.into()));
    let _ = writeln!(page, "|{}", "---|".repeat(columns.len()));
}

fn find<'k>(kernel: &'k Kernel, scenario: Scenario, program: &str) -> Option<&'k Finding> {
    kernel.scenarios.get(scenario.name())?.get(program)
}

fn sources(page: &mut String, expected: &Expected) {
    let columns = [
        "kernel",
        "source",
        "`bpf`",
        "`bpf-iter`",
        "`procfs`",
        "fields compared",
        "only ever zero",
        "counter lines by BPF",
        "by text",
    ];
    table(page, "Sources", &columns);
    for (series, kernel) in &expected.kernels {
        let Some(doctor) = find(kernel, Scenario::Conformance, "doctor") else {
            continue;
        };
        let loads = |source: &str| {
            if doctor.usable.iter().any(|usable| usable == source) {
                "yes"
            } else {
                "no"
            }
        };
        let verified = find(
            kernel,
            Scenario::Conformance,
            &format!("verify {}", doctor.source),
        );
        row(
            page,
            [
                format!("{series} ({})", kernel.release),
                format!("`{}`", doctor.source),
                loads("bpf").into(),
                loads("bpf-iter").into(),
                loads("procfs").into(),
                verified.map_or("–".into(), |finding| finding.fields.to_string()),
                unproven(kernel).len().to_string(),
                doctor.lines.to_string(),
                text_lines(doctor),
            ],
        );
    }
}

/// What a scenario is, in a few words, and the program whose source tells how it went.
const CIRCUMSTANCES: [(&str, Scenario, &str); 12] = [
    ("root", Scenario::Conformance, "doctor"),
    (
        "a user with CAP_BPF and CAP_PERFMON",
        Scenario::Conformance,
        "doctor as reader",
    ),
    (
        "a user without privileges",
        Scenario::Conformance,
        "doctor as nobody",
    ),
    ("kptr_restrict=2", Scenario::KptrRestrict, "doctor"),
    ("lockdown=confidentiality", Scenario::Lockdown, "doctor"),
    ("CPUs going offline and online", Scenario::Hotplug, "doctor"),
    ("swap and huge pages in use", Scenario::Memory, "doctor"),
    (
        "hidepid=2, a user with CAP_BPF and CAP_PERFMON",
        Scenario::HidePid,
        "doctor as reader",
    ),
    (
        "in a pid namespace",
        Scenario::Namespaces,
        "doctor in pid-namespace",
    ),
    (
        "in a user namespace",
        Scenario::Namespaces,
        "doctor in user-namespace",
    ),
    ("64 CPUs, hundreds of interrupts", Scenario::Big, "verify"),
    (
        "thousands of interrupt numbers",
        Scenario::Interrupts,
        "verify",
    ),
];

fn circumstances(page: &mut String, expected: &Expected) {
    let names: Vec<_> = expected.kernels.keys().map(ToString::to_string).collect();
    let mut columns = vec!["source that is used"];
    columns.extend(names.iter().map(String::as_str));
    table(page, "Circumstances", &columns);
    for (words, scenario, program) in CIRCUMSTANCES {
        let sources = expected.kernels.values().map(|kernel| {
            let finding = find(kernel, scenario, program);
            finding.map_or("–".into(), |finding| {
                let aged = if finding.aged_interrupts { " \\*" } else { "" };
                format!("`{}`{aged}", finding.source)
            })
        });
        row(page, std::iter::once(words.to_owned()).chain(sources));
    }
    let _ = writeln!(
        page,
        "\n\\* with `--stat-irqs-latency-ms` as well: interrupt counts were kept as long as allowed, right, and then read again."
    );
}

fn costs(page: &mut String, expected: &Expected) {
    let scans = expected
        .kernels
        .iter()
        .filter_map(|(series, kernel)| Some((series, find(kernel, Scenario::Cost, "bench scan")?)));
    let scans: Vec<_> = scans.collect();
    let cases: BTreeSet<_> = scans
        .iter()
        .flat_map(|(_, scan)| scan.ratios.keys())
        .collect();
    let mut columns = vec!["kernel"];
    columns.extend(cases.iter().map(|case| case.as_str()));
    table(page, "Cost", &columns);
    for (series, scan) in scans {
        let ratios = cases.iter().map(|&case| {
            scan.ratios
                .get(case)
                .map_or("–".into(), |ratio| format!("{ratio:.1}"))
        });
        row(page, std::iter::once(series.to_string()).chain(ratios));
    }
    let _ = writeln!(
        page,
        "\nHow many times cheaper than reading stat, statm and status of every process, counted in emulated instructions: good \
         to see a change, not to tell a speed."
    );
}

fn details(page: &mut String, heading: &str, kernel: &Kernel) {
    let _ = writeln!(page, "\n## {heading}\n");
    let doctor = find(kernel, Scenario::Conformance, "doctor");
    for (source, why) in doctor.iter().flat_map(|doctor| &doctor.refused) {
        let _ = writeln!(page, "- `{source}` is refused: {why}.");
    }
    if let Some(doctor) = doctor {
        if !doctor.error.is_empty() {
            let _ = writeln!(
                page,
                "- Counters are read from the kernel's text: {}.",
                doctor.error
            );
        } else if !doctor.lines_from_text.is_empty() {
            let _ = writeln!(
                page,
                "- Lines of counters from the kernel's text: {}.",
                list(&doctor.lines_from_text)
            );
        }
        for (group, source) in &doctor.groups_from {
            let _ = writeln!(page, "- The group `{group}` comes from `{source}`.");
        }
    }
    let unproven = unproven(kernel);
    if !unproven.is_empty() {
        let _ = writeln!(
            page,
            "- Fields that were only ever zero: {}.",
            list(&unproven)
        );
    }
}

/// How many lines come from the text.
pub fn text_lines(doctor: &Finding) -> String {
    if doctor.lines_from_text.contains(ALL_LINES) {
        ALL_LINES.into()
    } else {
        doctor.lines_from_text.len().to_string()
    }
}

fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Fields that no scenario has seen in use by a reader from whom nothing is hidden.
fn unproven(kernel: &Kernel) -> BTreeSet<String> {
    let scenarios = kernel.scenarios.iter().filter(|(scenario, _)| {
        let scenario: Result<Scenario, _> = scenario.parse();
        scenario.is_ok_and(Scenario::uses_fields)
    });
    let root = scenarios
        .flat_map(|(_, programs)| programs)
        .filter(|(program, finding)| {
            program.starts_with("verify") && !program.contains(" as ") && finding.fields > 0
        });
    let doubtful = |finding: &Finding| -> BTreeSet<String> {
        let zero = finding.only_zero.union(&finding.never_equal);
        zero.chain(&finding.sometimes).cloned().collect()
    };
    root.map(|(_, finding)| doubtful(finding))
        .reduce(|all, next| all.intersection(&next).cloned().collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_page_of_this_repository_is_what_the_table_says() {
        let expected = Expected::read(&Expected::path()).unwrap();
        let page = page(&expected);
        let written = fs::read_to_string(path()).unwrap_or_default();
        assert!(
            written == page,
            "docs/kernels.md is not what kernels/expected.toml says: make kernels-page"
        );
    }

    #[test]
    fn a_field_is_proven_by_any_scenario() {
        let text = "release = '6.1.0'\n\
            [conformance.\"verify bpf\"]\nstatus = '0'\nfields = 3\nonly_zero = ['status Ngid', 'status VmSwap']\n\
            [conformance.\"verify as nobody\"]\nstatus = '0'\nfields = 3\nonly_zero = ['io rchar']\n\
            [conformance.\"verify bpf-iter\"]\nstatus = '2'\n\
            [hotplug.\"verify bpf\"]\nstatus = '0'\nfields = 3\n\
            [memory.\"verify bpf\"]\nstatus = '0'\nfields = 3\nonly_zero = ['status Ngid', 'status Threads']\n";
        let kernel: Kernel = toml::from_str(text).unwrap();
        assert_eq!(unproven(&kernel), ["status Ngid".to_owned()].into());
    }
}
