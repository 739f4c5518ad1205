//! `docs/kernels.md`: the table for users who want to know what works on their kernel.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
};

use fastproc_guest::scenario::Scenario;

use crate::{
    architecture::Architecture,
    evaluate::ALL_LINES,
    expected::{Expected, Kernel},
    finding::Finding,
    machine::Machine,
    series::Series,
};

const HEADING: &str = "\
# Supported kernels

<!-- Written by `make kernels-expected`, from kernels/expected.toml. -->

`make test-kernels` boots Debian's kernels in an emulator. On each, fastproc compares every field of every process, including a
testbed of odd processes, and every line of the machine's counters with the kernel's own files. A difference from this page is a
failure. A value counts as proven if it was equal to the kernel's and not zero. `kernels/expected.toml` has the details.

The newest series moves with the archive. A series that is not listed yet is compared with the next older one. It fails if a
source no longer loads, a line comes from the text instead, a value is wrong, or fewer fields are compared. Its improvements
and costs are not compared; `make kernels-expected` writes them here.
";

/// Remove this once `make kernels-expected` has run every scenario on these kernels.
const UNTRIED: &str = "
The programs are compiled on another architecture. The test has run the first three circumstances on each of these kernels, and has
recorded exits on all but 7.3. The other circumstances were not tried on arm64: the table shows what x86-64 shows.
";

const COST: &str = "
Reading `stat`, `statm` and `status` of every process takes this many times as many emulated instructions. The numbers show changes,
not speed: the test fails if one of them falls by more than 5 %.
";

const COST_OF_COUNTERS: &str = "
A machine with 255 possible CPUs, one of them online, and thousands of interrupt numbers. `stat` is what fastproc reads instead of
`/proc/stat`, with a count for each number; `stat-kept` the same if these counts may be old (`--stat-irqs-latency-ms`). Reading
`/proc/stat` takes this many times as many instructions, and reading `/proc/interrupts`, which has a column for each online CPU, as
many as the column “to interrupts” says. Below 1 the text is cheaper: the kernel prints unused numbers by copying, and for each CPU
that is not there the program still reads whether it has been there meanwhile, by three calls before Linux 6.2.
";

/// The path of the page in this repository.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kernels.md")
}

/// Makes the page.
pub fn page(expected: &Expected) -> String {
    let mut page = HEADING.to_owned();
    for architecture in Architecture::ALL {
        let half = Half {
            expected,
            architecture,
        };
        if half.kernels().next().is_none() {
            continue;
        }
        let _ = writeln!(page, "\n## {}", architecture.name());
        if architecture == Architecture::Arm64 {
            page.push_str(UNTRIED);
        }
        half.sources(&mut page);
        half.circumstances(&mut page);
        half.costs(&mut page);
        half.refusals(&mut page);
    }
    not_in_use(&mut page, expected);
    page
}

/// The part of the page about one architecture.
struct Half<'e> {
    expected: &'e Expected,
    architecture: Architecture,
}

impl<'e> Half<'e> {
    fn kernels(&self) -> impl Iterator<Item = (Series, &'e Kernel)> {
        let all = self.expected.kernels.iter();
        let own = |series: &Series| series.architecture() == self.architecture;
        all.map(|(&series, kernel)| (series, kernel))
            .filter(move |(series, _)| own(series))
    }

    fn sources(&self, page: &mut String) {
        let columns = [
            "kernel",
            "source",
            "`bpf`",
            "`bpf-iter`",
            "`procfs`",
            "fields compared",
            "counter lines by BPF",
            "by text",
        ];
        table(page, "Sources", &columns);
        for (series, kernel) in self.kernels() {
            let doctor = self
                .expected
                .finding(series, Scenario::Conformance, "doctor");
            let loads = |source: &str| {
                if doctor.usable.iter().any(|usable| usable == source) {
                    "yes"
                } else {
                    "no"
                }
            };
            row(
                page,
                [
                    format!("{series} ({})", kernel.release),
                    format!("`{}`", doctor.source),
                    loads("bpf").into(),
                    loads("bpf-iter").into(),
                    loads("procfs").into(),
                    kernel.fields.to_string(),
                    doctor.lines.to_string(),
                    text_lines(&doctor),
                ],
            );
        }
    }

    fn circumstances(&self, page: &mut String) {
        let names: Vec<_> = self
            .kernels()
            .map(|(series, _)| series.to_string())
            .collect();
        let mut columns = vec!["circumstance"];
        columns.extend(names.iter().map(String::as_str));
        table(page, "Circumstances", &columns);
        for (words, scenario, program) in CIRCUMSTANCES {
            let sources = self.kernels().map(|(series, _)| {
                if Machine::refuses(scenario, series).is_some() {
                    return "–".into();
                }
                let finding = self.expected.finding(series, scenario, program);
                let aged = if finding.aged_interrupts { " \\*" } else { "" };
                format!("`{}`{aged}", finding.source)
            });
            row(page, std::iter::once(words.to_owned()).chain(sources));
        }
        let _ = writeln!(
            page,
            "\nThe cells name the source that fastproc used.\n\n\\* also tested with `--stat-irqs-latency-ms`: interrupt counts were \
         reused within the allowed time, were correct, and were then read again."
        );
    }

    fn costs(&self, page: &mut String) {
        self.ratios(page, "Cost", |kernel| &kernel.ratios, COST);
        let (heading, words) = ("Cost of interrupt counts", COST_OF_COUNTERS);
        self.ratios(page, heading, |kernel| &kernel.counter_ratios, words);
    }

    /// A table of ratios, if any kernel has some, and words about it.
    fn ratios(
        &self,
        page: &mut String,
        heading: &str,
        ratios: impl Fn(&Kernel) -> &BTreeMap<String, f64>,
        words: &str,
    ) {
        let kernels = || {
            self.kernels()
                .map(|(series, kernel)| (series, ratios(kernel)))
        };
        let cases: BTreeSet<_> = kernels().flat_map(|(_, ratios)| ratios.keys()).collect();
        if cases.is_empty() {
            return;
        }
        let mut columns = vec!["kernel"];
        columns.extend(cases.iter().map(|case| case.as_str()));
        table(page, heading, &columns);
        for (series, ratios) in kernels().filter(|(_, ratios)| !ratios.is_empty()) {
            let cells = cases.iter().map(|&case| {
                let ratio = ratios.get(case);
                ratio.map_or("–".into(), |ratio| format!("{ratio:.1}"))
            });
            row(page, std::iter::once(series.to_string()).chain(cells));
        }
        page.push_str(words);
    }

    fn refusals(&self, page: &mut String) {
        let _ = writeln!(page, "\n### Refused\n");
        for (series, kernel) in self.kernels() {
            for (what, why) in &kernel.refused {
                // Other users are served, or refused because of their rights.
                let to = if what == "service" { ", to root" } else { "" };
                let _ = writeln!(page, "- Linux {series}, `{what}`{to}: {why}.");
            }
            if !kernel.lines_from_text.is_empty() {
                let _ = writeln!(
                    page,
                    "- Linux {series}, lines that come from the text: {}.",
                    list(&kernel.lines_from_text)
                );
            }
            if !kernel.lines_by_symbols.is_empty() {
                let _ = writeln!(
                    page,
                    "- Linux {series}, lines that come from the text if the kernel hides its symbols: {}.",
                    list(&kernel.lines_by_symbols)
                );
            }
        }
    }
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
    let _ = writeln!(page, "\n### {heading}\n");
    row(page, columns.iter().map(|&column| column.into()));
    let _ = writeln!(page, "|{}", "---|".repeat(columns.len()));
}

/// A short description of each scenario, and the program whose source shows the result.
const CIRCUMSTANCES: [(&str, Scenario, &str); 14] = [
    ("root", Scenario::Conformance, "doctor"),
    (
        "a user with CAP_BPF and CAP_PERFMON",
        Scenario::Conformance,
        "doctor as reader",
    ),
    (
        "an unprivileged user",
        Scenario::Conformance,
        "doctor as nobody",
    ),
    ("root, with the service", Scenario::Service, "doctor"),
    (
        "an unprivileged user, with the service",
        Scenario::Service,
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

fn not_in_use(page: &mut String, expected: &Expected) {
    let _ = writeln!(
        page,
        "\n## Not proven\n\nNo scenario makes a process use these fields, so they may be zero everywhere: {}.",
        list(&expected.not_in_use)
    );
}

/// The number of lines that come from the text.
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
}
