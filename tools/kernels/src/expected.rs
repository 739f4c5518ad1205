//! `kernels/expected.toml`: what is expected of each kernel. A row for each kernel, and the circumstances that change
//! what it permits, determine what every program shows in every scenario.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use fastproc_guest::scenario::Scenario;
use serde::{Deserialize, Serialize};

use crate::{
    evaluate::{ALL_LINES, COUNTERS, Findings, SERVES},
    finding::Finding,
    series::Series,
};

const HEADING: &str = "\
# What fastproc shows on each kernel; tools/kernels/src/expected.rs says what follows from it for each scenario and program.
# `make test-kernels` fails on any difference. `make kernels-expected` writes the kernels' rows anew from what they show,
# together with docs/kernels.md; the rest is written by hand.
";

/// The sources, the best first.
const SOURCES: [&str; 3] = ["bpf", "bpf-iter", "procfs"];

/// The entry for a service that does not serve root.
const SERVICE: &str = "service";

/// The whole table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expected {
    /// Fields that no scenario makes a process use: they are compared, and may be zero everywhere.
    pub not_in_use: BTreeSet<String>,
    /// Fields that only the scenario `memory` must show in use; the scenario `conformance` must show all others.
    pub used_by_memory: BTreeSet<String>,
    /// Circumstances that permit less than root has on a plain machine.
    pub circumstances: Vec<Circumstance>,
    /// By series.
    pub kernels: BTreeMap<Series, Kernel>,
}

/// The effects of a scenario, a reader, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Circumstance {
    /// The scenario; empty for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scenario: String,
    /// The end of the names of its programs, such as `as nobody`; empty for any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reader: String,
    /// The first series for which it does not hold; none if it holds for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_than: Option<Series>,
    /// Why processes are only read from /proc.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub procfs_because: String,
    /// Why only `bpf` does not read them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bpf_because: String,
    /// Why the machine's counters are read from the kernel's text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text_because: String,
    /// Why a service refuses.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_because: String,
    /// Whether the kernel hides the addresses of its symbols.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub symbols_hidden: bool,
}

/// One kernel, for root.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Kernel {
    /// The release from which the row was last written, as in `uname -r`.
    pub release: String,
    /// Sources that do not load, `counters`, or a service that does not serve root: why.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
    /// Fields of processes.
    pub fields: usize,
    /// Lines of the machine's counters that a program reads.
    pub lines: usize,
    /// Lines that come from the text: a kernel may be built without the symbols of its data.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub lines_from_text: BTreeSet<String>,
    /// Those of `lines` that come from the text if symbols are hidden.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub lines_by_symbols: BTreeSet<String>,
    /// The cost of reading three files of each process, divided by that of this case.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub ratios: BTreeMap<String, f64>,
    /// The cost of reading `/proc/stat` with thousands of interrupt numbers of 255 CPUs, divided by that of this case;
    /// and the same for `/proc/interrupts`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counter_ratios: BTreeMap<String, f64>,
}

impl Expected {
    /// The path of the table in this repository.
    pub fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/expected.toml")
    }

    /// Reads the table.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{} is not understood", path.display()))
    }

    /// The text of the file.
    pub fn text(&self) -> Result<String> {
        Ok(format!("{HEADING}\n{}", toml::to_string_pretty(self)?))
    }

    /// The series with which a series is compared: itself or, if the table has no row for it, the next older one.
    pub fn stand_in(&self, series: Series) -> Option<Series> {
        let (&nearest, _) = self.kernels.range(..=series).next_back()?;
        (nearest.flavour() == series.flavour()).then_some(nearest)
    }

    /// How the findings of a scenario differ from what is expected, one line each. A series without a row is compared
    /// with the next older one: it may not lose anything.
    pub fn differences(&self, series: Series, scenario: Scenario, found: &Findings) -> Vec<String> {
        let Some(stand_in) = self.stand_in(series) else {
            return vec![format!(
                "nothing is expected of Linux {series} yet: make kernels-expected KERNELS={series}"
            )];
        };
        if found.is_empty() && !scenario.has_only_checks() {
            return vec!["no program was run".into()];
        }
        let mut all = Vec::new();
        for (program, found) in found {
            let expected = self.finding(stand_in, scenario, program);
            let mut found = found.clone();
            found
                .unproven
                .retain(|field| self.has_to_be_proven(scenario, program, field));
            let lines = if stand_in == series {
                expected.differences(&found)
            } else {
                expected.losses(&found)
            };
            all.extend(lines.into_iter().map(|line| format!("{program}: {line}")));
        }
        all
    }

    /// Costs that have fallen so much that they should be recorded, one line each.
    pub fn gains(&self, series: Series, scenario: Scenario, found: &Findings) -> Vec<String> {
        if !self.kernels.contains_key(&series) {
            return Vec::new();
        }
        let of_program =
            |(program, found): (&String, _)| self.finding(series, scenario, program).gains(found);
        found.iter().flat_map(of_program).collect()
    }

    /// What is expected of a program in a scenario on a kernel that has a row.
    pub fn finding(&self, series: Series, scenario: Scenario, program: &str) -> Finding {
        let kernel = &self.kernels[&series];
        let circumstance = self.circumstance(series, scenario, program);
        let refused = kernel.refused_sources(&circumstance);
        let usable = || {
            SOURCES
                .into_iter()
                .filter(|source| !refused.contains_key(*source))
        };
        let mut finding = Finding {
            status: "0".into(),
            ..Finding::default()
        };
        let service = kernel.service(&circumstance, program);
        let served = scenario == Scenario::Service && service == SERVES;
        let (kind, rest) = program.split_once(' ').unwrap_or((program, ""));
        match kind {
            "bench" if program == COUNTERS => finding.ratios.clone_from(&kernel.counter_ratios),
            "bench" => finding.ratios.clone_from(&kernel.ratios),
            "doctor" => {
                finding.usable = usable().map(str::to_owned).collect();
                finding.source = finding.usable.first().cloned().unwrap_or_default();
                finding.refused = refused;
                if scenario == Scenario::Service {
                    finding.service = service.into();
                }
                kernel.counters(&mut finding, &circumstance);
            }
            "verify" => {
                if let Some(why) = refused.get(rest) {
                    finding.status = "2".into();
                    finding.error = format!("fastproc: {why}");
                    return finding;
                }
                let asked = SOURCES.into_iter().find(|source| *source == rest);
                finding.source = asked.or_else(|| usable().next()).unwrap_or_default().into();
                finding.fields = kernel.fields;
                kernel.counters(&mut finding, &circumstance);
                // `doctor` reports the reason.
                finding.error.clear();
                if asked == Some("procfs") {
                    (finding.lines, finding.lines_from_text) = (0, [ALL_LINES.into()].into());
                }
                let asks_for_old = matches!(scenario, Scenario::Big | Scenario::Interrupts);
                finding.aged_interrupts = asks_for_old && finding.lines > 0;
                if scenario == Scenario::Hotplug && finding.lines > 0 {
                    // Chance decides which lines are read during a change.
                    (finding.lines, finding.lines_from_text) = (0, BTreeSet::new());
                }
            }
            _ => {}
        }
        if served && !finding.source.is_empty() {
            finding.source = "service".into();
        }
        finding
    }

    /// Combines everything that changes what a kernel permits to a program.
    fn circumstance(&self, series: Series, scenario: Scenario, program: &str) -> Circumstance {
        let mut all = Circumstance::default();
        for one in &self.circumstances {
            let applies = (one.scenario.is_empty() || one.scenario == scenario.name())
                && program.ends_with(&one.reader)
                && one
                    .older_than
                    .is_none_or(|first| series.is_older_than(first));
            if applies {
                all.procfs_because.push_str(&one.procfs_because);
                all.bpf_because.push_str(&one.bpf_because);
                all.text_because.push_str(&one.text_because);
                all.service_because.push_str(&one.service_because);
                all.symbols_hidden |= one.symbols_hidden;
            }
        }
        all
    }

    /// Whether a program must show a field equal and in use. Other users than root see less, and other scenarios have
    /// too few processes.
    fn has_to_be_proven(&self, scenario: Scenario, program: &str, field: &str) -> bool {
        let by_memory = self.used_by_memory.contains(field);
        match scenario {
            Scenario::Conformance if !program.contains(" as ") => {
                !by_memory && !self.not_in_use.contains(field)
            }
            Scenario::Memory => by_memory,
            _ => false,
        }
    }

    /// Updates a kernel's row from the findings of a scenario.
    pub fn update(&mut self, series: Series, release: &str, scenario: Scenario, found: &Findings) {
        let kernel = self.kernels.entry(series).or_default();
        kernel.release = release.into();
        match scenario {
            Scenario::Cost => {
                if let Some(scan) = found.get("bench scan") {
                    kernel.ratios.clone_from(&scan.ratios);
                }
            }
            Scenario::InterruptsCost => {
                if let Some(counters) = found.get(COUNTERS) {
                    kernel.counter_ratios.clone_from(&counters.ratios);
                }
            }
            Scenario::Conformance => {
                if let Some(doctor) = found.get("doctor") {
                    let service = kernel.refused.remove_entry(SERVICE);
                    kernel.refused.clone_from(&doctor.refused);
                    kernel.refused.extend(service);
                    if !doctor.error.is_empty() {
                        kernel
                            .refused
                            .insert("counters".into(), doctor.error.clone());
                    }
                    kernel.lines = doctor.lines;
                    kernel.lines_from_text.clone_from(&doctor.lines_from_text);
                    kernel.lines_from_text.remove(ALL_LINES);
                }
                if let Some(verify) = found.get("verify procfs") {
                    kernel.fields = verify.fields;
                }
                if let Some(reader) = found.get("doctor as reader").filter(|_| kernel.lines > 0) {
                    let hidden = reader.lines_from_text.difference(&kernel.lines_from_text);
                    kernel.lines_by_symbols = hidden.cloned().collect();
                }
            }
            Scenario::Service => {
                if let Some(doctor) = found.get("doctor") {
                    kernel.refused.remove(SERVICE);
                    if doctor.service != SERVES {
                        let why = doctor.service.clone();
                        kernel.refused.insert(SERVICE.into(), why);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Kernel {
    /// What a service does for a reader. A kernel's own reason only holds for root.
    fn service<'f>(&'f self, circumstance: &'f Circumstance, program: &str) -> &'f str {
        let because = Some(&circumstance.service_because).filter(|why| !why.is_empty());
        let own = self.refused.get(SERVICE);
        let why = own.filter(|_| !program.contains(" as ")).or(because);
        why.map_or(SERVES, String::as_str)
    }

    /// Sources that are refused, and why.
    fn refused_sources(&self, circumstance: &Circumstance) -> BTreeMap<String, String> {
        let sources = SOURCES.into_iter().filter(|source| *source != "procfs");
        sources
            .filter_map(|source| {
                let alone = Some(&circumstance.bpf_because).filter(|_| source == "bpf");
                let because = [Some(&circumstance.procfs_because), alone];
                let mut because = because.into_iter().flatten().filter(|why| !why.is_empty());
                let why = because.next().or_else(|| self.refused.get(source))?;
                Some((source.to_owned(), why.clone()))
            })
            .collect()
    }

    /// The sources of the machine's counters.
    fn counters(&self, finding: &mut Finding, circumstance: &Circumstance) {
        let because = Some(&circumstance.text_because).filter(|why| !why.is_empty());
        if let Some(why) = because.or_else(|| self.refused.get("counters")) {
            finding.error.clone_from(why);
            finding.lines_from_text = [ALL_LINES.into()].into();
            return;
        }
        finding.lines = self.lines;
        finding.lines_from_text.clone_from(&self.lines_from_text);
        if circumstance.symbols_hidden {
            finding.lines -= self.lines_by_symbols.len().min(self.lines);
            let hidden = self.lines_by_symbols.iter().cloned();
            finding.lines_from_text.extend(hidden);
        }
    }
}

#[cfg(test)]
mod tests;
