//! `kernels/expected.toml`: what is expected of each kernel.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::{judge::Findings, series::Series};

const HEADING: &str = "\
# What fastproc shows on each kernel, by scenario and by the program that was run. `make test-kernels` fails on any
# difference; `make kernels-expected` writes this file anew from what the kernels show, together with docs/kernels.md.
#
# Names that are in a list in one run and not in the next are moved to `sometimes`, and judged no more. To have them judged
# again, delete the section and run it.
";

/// The whole table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expected {
    /// By series.
    pub kernels: BTreeMap<Series, Kernel>,
}

/// One kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    /// The release that the table was last written from, as in `uname -r`.
    pub release: String,
    /// By scenario and program.
    #[serde(flatten)]
    pub scenarios: BTreeMap<String, Findings>,
}

impl Expected {
    /// Where it is, in this repository.
    pub fn path() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kernels/expected.toml")
    }

    /// Reads it.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{} is not understood", path.display()))
    }

    /// As a file.
    pub fn text(&self) -> Result<String> {
        Ok(format!("{HEADING}\n{}", toml::to_string_pretty(self)?))
    }

    /// The series whose expectations a series is judged by: its own or, if there are none, those of the next older one.
    pub fn stand_in(&self, series: Series) -> Option<Series> {
        let (&nearest, _) = self.kernels.range(..=series).next_back()?;
        Some(nearest)
    }

    /// How the findings of a scenario differ from what is expected, a line each. A series that nothing is expected of yet is
    /// judged by the next older one: it may not lose anything.
    pub fn differences(&self, series: Series, scenario: &str, found: &Findings) -> Vec<String> {
        let Some(judge) = self.stand_in(series) else {
            return vec![format!(
                "nothing is expected of Linux {series} yet: make kernels-expected KERNELS={series}"
            )];
        };
        let same = judge == series;
        let none = Findings::new();
        let expected = self.kernels[&judge].scenarios.get(scenario);
        if expected.is_none() && !same {
            return Vec::new();
        }
        let expected = expected.unwrap_or(&none);
        let mut all = Vec::new();
        for (name, expected) in expected {
            let lines = match found.get(name) {
                None => vec!["was not run".into()],
                Some(found) if same => expected.differences(found),
                Some(found) => expected.losses(found),
            };
            all.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
        }
        let new = found.keys().filter(|name| !expected.contains_key(*name));
        all.extend(new.map(|name| format!("{name}: nothing is expected of it yet")));
        all
    }

    /// Expects from now on what was found.
    pub fn update(&mut self, series: Series, release: &str, scenario: &str, found: Findings) {
        let kernel = self.kernels.entry(series).or_default();
        kernel.release = release.into();
        let before = kernel.scenarios.remove(scenario).unwrap_or_default();
        let next = found.into_iter().map(|(name, finding)| {
            let finding = match before.get(&name) {
                Some(before) => finding.or_sometimes(before),
                None => finding,
            };
            (name, finding)
        });
        kernel.scenarios.insert(scenario.into(), next.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;

    fn series(text: &str) -> Series {
        Series::of_release(text).unwrap()
    }

    fn found(source: &str) -> Findings {
        let finding = Finding {
            status: "0".into(),
            source: source.into(),
            ..Finding::default()
        };
        [("doctor".to_owned(), finding)].into()
    }

    #[test]
    fn the_table_is_written_and_read_in_the_order_of_the_series() {
        let mut expected = Expected::default();
        for name in ["6.12", "5.10", "6.1"] {
            expected.update(
                series(name),
                &format!("{name}.0"),
                "conformance",
                found("bpf"),
            );
        }
        let text = expected.text().unwrap();
        assert_eq!(toml::from_str::<Expected>(&text).unwrap(), expected);
        let places: Vec<_> = ["[\"5.10\"]", "[\"6.1\"]", "[\"6.12\"]"]
            .map(|name| text.find(name).unwrap())
            .into();
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn a_kernel_a_scenario_and_a_program_are_expected_or_they_differ() {
        let mut expected = Expected::default();
        assert_eq!(
            expected
                .differences(series("6.1"), "conformance", &found("bpf"))
                .len(),
            1
        );
        expected.update(series("6.1"), "6.1.0", "conformance", found("bpf"));
        assert_eq!(
            expected.differences(series("6.1"), "conformance", &found("bpf")),
            [""; 0]
        );
        assert_eq!(
            expected.differences(series("6.1"), "conformance", &found("procfs")),
            ["doctor: source: bpf expected, procfs"]
        );
        assert_eq!(
            expected.differences(series("6.1"), "conformance", &Findings::new()),
            ["doctor: was not run"]
        );
        assert_eq!(
            expected.differences(series("6.1"), "hotplug", &found("bpf")),
            ["doctor: nothing is expected of it yet"]
        );
    }

    #[test]
    fn a_series_without_expectations_is_judged_by_the_next_older_one() {
        let mut expected = Expected::default();
        for (name, source) in [("6.1", "procfs"), ("6.12", "bpf"), ("7.3", "procfs")] {
            expected.update(series(name), name, "conformance", found(source));
        }
        assert_eq!(expected.stand_in(series("6.12")), Some(series("6.12")));
        assert_eq!(expected.stand_in(series("6.18")), Some(series("6.12")));
        let differences =
            |name, scenario, source| expected.differences(series(name), scenario, &found(source));
        assert_eq!(differences("6.18", "conformance", "bpf"), [""; 0]);
        assert_eq!(differences("6.18", "hotplug", "bpf"), [""; 0]);
        assert_eq!(
            differences("6.18", "conformance", "procfs"),
            ["doctor: source: bpf before, procfs"]
        );
        let nothing = expected.differences(series("6.18"), "conformance", &Findings::new());
        assert_eq!(nothing, ["doctor: was not run"]);
        assert_eq!(differences("5.10", "conformance", "bpf").len(), 1);
    }

    #[test]
    fn the_table_of_this_repository_is_understood() {
        let expected = Expected::read(&Expected::path()).unwrap();
        assert!(!expected.kernels.is_empty());
    }
}
