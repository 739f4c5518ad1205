//! What one program showed on one kernel, reduced to what must not change.

use std::collections::{BTreeMap, BTreeSet};

/// The smallest relative fall of a ratio that counts as a defect. Instructions are counted, so the same programs on the
/// same kernel differ by less than a hundredth from run to run.
const WORSE: f64 = 0.05;

/// What one program showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// The exit status, or what else ended it.
    pub status: String,
    /// The first line of why it failed, or why the counters are not read.
    pub error: String,
    /// The source that was used.
    pub source: String,
    /// Sources that load.
    pub usable: Vec<String>,
    /// Sources that do not load, with the first line of the reason.
    pub refused: BTreeMap<String, String>,
    /// What a running service does for this reader: `serves`, or why not.
    pub service: String,
    /// Groups of fields that come from another source than the rest.
    pub groups_from: BTreeMap<String, String>,
    /// Fields of processes that were compared.
    pub fields: usize,
    /// Fields that were never seen both equal and not zero.
    pub unproven: BTreeSet<String>,
    /// Lines of the machine's counters that a program reads.
    pub lines: usize,
    /// Lines that come from the kernel's text.
    pub lines_from_text: BTreeSet<String>,
    /// Whether interrupt counts that may be a little old were kept, and read again in time.
    pub aged_interrupts: bool,
    /// The cost of reading three files of each process, divided by that of this case.
    pub ratios: BTreeMap<String, f64>,
}

impl Finding {
    /// How `found` differs from these expected findings, one line each.
    pub fn differences(&self, found: &Self) -> Vec<String> {
        let mut all = Vec::new();
        let mut value = |what: &str, expected: &str, found: &str| {
            if expected != found {
                all.push(format!(
                    "{what}: {} expected, {}",
                    shown(expected),
                    shown(found)
                ));
            }
        };
        value("status", &self.status, &found.status);
        value("error", &self.error, &found.error);
        value("source", &self.source, &found.source);
        value("service", &self.service, &found.service);
        value(
            "sources that load",
            &self.usable.join(" "),
            &found.usable.join(" "),
        );
        value(
            "fields compared",
            &self.fields.to_string(),
            &found.fields.to_string(),
        );
        value(
            "lines read by a program",
            &self.lines.to_string(),
            &found.lines.to_string(),
        );
        value(
            "lines from the text",
            &names(&self.lines_from_text),
            &names(&found.lines_from_text),
        );
        value(
            "interrupt counts that may be old",
            verified(self.aged_interrupts),
            verified(found.aged_interrupts),
        );
        pairs(&mut all, "refused", &self.refused, &found.refused);
        pairs(
            &mut all,
            "group from another source",
            &self.groups_from,
            &found.groups_from,
        );
        let unproven = found.unproven.difference(&self.unproven);
        all.extend(unproven.map(|name| format!("{name} was never seen equal and in use")));
        all.extend(self.ratio_differences(found));
        all
    }

    /// Ratios that are so much better than expected that a later fall to the expected value would be a defect, one line
    /// each.
    pub fn gains(&self, found: &Self) -> Vec<String> {
        let better = self.ratios.iter().filter_map(|(case, expected)| {
            let ratio = found.ratios.get(case)?;
            (expected < &(ratio * (1.0 - WORSE)))
                .then(|| format!("{case}: {expected} times cheaper expected, {ratio} times"))
        });
        better.collect()
    }

    /// What `found` lacks compared with these findings, which were expected of an older kernel, one line each. A newer
    /// kernel may print more or less, and at another cost.
    pub fn losses(&self, found: &Self) -> Vec<String> {
        let mut all = Vec::new();
        let mut lost = |lost: bool, what: &str, before: &str, now: &str| {
            if lost {
                all.push(format!("{what}: {} before, {}", shown(before), shown(now)));
            }
        };
        let differs = self.status != found.status;
        lost(differs, "status", &self.status, &found.status);
        let differs = self.source != found.source;
        lost(differs, "source", &self.source, &found.source);
        let differs = self.service != found.service;
        lost(differs, "service", &self.service, &found.service);
        let new_error = self.error.is_empty() && !found.error.is_empty();
        lost(new_error, "error", &self.error, &found.error);
        let fewer = !self
            .usable
            .iter()
            .all(|source| found.usable.contains(source));
        let [before, now] = [self, found].map(|finding| finding.usable.join(" "));
        lost(fewer, "sources that load", &before, &now);
        let [before, now] = [self, found].map(|finding| finding.fields.to_string());
        lost(found.fields < self.fields, "fields compared", &before, &now);
        // A line that the kernel no longer prints is not lost; one that now comes from the text is.
        let to_text = found.lines_from_text.difference(&self.lines_from_text);
        let went = found.lines < self.lines && to_text.count() > 0;
        let [before, now] = [self, found].map(|finding| finding.lines.to_string());
        lost(went, "lines read by a program", &before, &now);
        let [before, now] = [self, found].map(|finding| verified(finding.aged_interrupts));
        let differs = self.aged_interrupts && !found.aged_interrupts;
        lost(differs, "interrupt counts that may be old", before, now);
        pairs(
            &mut all,
            "group from another source",
            &self.groups_from,
            &found.groups_from,
        );
        let gone = self
            .ratios
            .keys()
            .filter(|case| !found.ratios.contains_key(*case));
        all.extend(gone.map(|case| format!("{case}: not measured")));
        all
    }

    /// A ratio may rise, and fall a little.
    #[expect(
        clippy::neg_cmp_op_on_partial_ord,
        reason = "what cannot be compared must not pass"
    )]
    fn ratio_differences(&self, found: &Self) -> Vec<String> {
        let lost =
            self.ratios
                .iter()
                .filter_map(|(case, &expected)| match found.ratios.get(case) {
                    None => Some(format!(
                        "{case}: {expected} times cheaper expected, not measured"
                    )),
                    // NaN is not a ratio, either.
                    Some(&ratio) if !(ratio >= expected * (1.0 - WORSE)) => Some(format!(
                        "{case}: {expected} times cheaper expected, {ratio} times"
                    )),
                    Some(_) => None,
                });
        let new = found
            .ratios
            .keys()
            .filter(|case| !self.ratios.contains_key(*case));
        lost.chain(new.map(|case| format!("{case}: measured for the first time")))
            .collect()
    }
}

fn verified(truth: bool) -> &'static str {
    if truth { "verified" } else { "not verified" }
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

fn names(set: &BTreeSet<String>) -> String {
    let names: Vec<&str> = set.iter().map(String::as_str).collect();
    names.join(", ")
}

fn pairs(
    all: &mut Vec<String>,
    what: &str,
    expected: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
) {
    let names: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    for name in names {
        let (expected, found) = (expected.get(name), found.get(name));
        if expected != found {
            let text =
                |value: Option<&String>| value.map_or("none", |value| shown(value)).to_owned();
            all.push(format!(
                "{what}: {name}: {} expected, {}",
                text(expected),
                text(found)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.into()).collect()
    }

    fn good() -> Finding {
        Finding {
            status: "0".into(),
            source: "bpf".into(),
            service: "serves".into(),
            usable: vec!["bpf".into(), "procfs".into()],
            refused: [("bpf-iter".into(), "too old".into())].into(),
            fields: 120,
            lines: 190,
            lines_from_text: set(&["stat intr"]),
            aged_interrupts: true,
            ratios: [("bpf-full".into(), 50.0)].into(),
            ..Finding::default()
        }
    }

    fn differences(change: impl FnOnce(&mut Finding)) -> String {
        let mut found = good();
        change(&mut found);
        good().differences(&found).join("; ")
    }

    #[test]
    fn every_loss_is_a_difference() {
        assert_eq!(differences(|_| ()), "");
        assert_eq!(
            differences(|found| found.status = "1".into()),
            "status: 0 expected, 1"
        );
        assert_eq!(
            differences(|found| found.source = "procfs".into()),
            "source: bpf expected, procfs"
        );
        assert_eq!(
            differences(|found| {
                found.usable = vec!["procfs".into()];
                found
                    .refused
                    .insert("bpf".into(), "the kernel refused the program".into());
            }),
            "sources that load: bpf procfs expected, procfs; \
             refused: bpf: none expected, the kernel refused the program"
        );
        assert_eq!(
            differences(|found| found.service = "nobody may".into()),
            "service: serves expected, nobody may"
        );
        assert_eq!(
            differences(|found| found.fields = 119),
            "fields compared: 120 expected, 119"
        );
        assert_eq!(
            differences(|found| {
                found.lines = 189;
                found.lines_from_text.insert("vmstat pgpgin".into());
            }),
            "lines read by a program: 190 expected, 189; \
             lines from the text: stat intr expected, stat intr, vmstat pgpgin"
        );
        assert_eq!(
            differences(|found| found.unproven = set(&["stat utime"])),
            "stat utime was never seen equal and in use"
        );
        assert_eq!(
            differences(|found| found.aged_interrupts = false),
            "interrupt counts that may be old: verified expected, not verified"
        );
        assert_eq!(
            differences(|found| found.groups_from = [("cpu".into(), "procfs".into())].into()),
            "group from another source: cpu: none expected, procfs"
        );
    }

    #[test]
    fn a_newer_kernel_may_gain_and_not_lose() {
        let losses = |change: fn(&mut Finding)| {
            let mut found = good();
            change(&mut found);
            good().losses(&found).join("; ")
        };
        let gains: [fn(&mut Finding); 7] = [
            |found| found.fields = 121,
            |found| found.lines = 200,
            |found| found.unproven = set(&["status New"]),
            |found| found.usable = vec!["bpf-iter".into(), "bpf".into(), "procfs".into()],
            |found| found.ratios = [("bpf-full".into(), 30.0)].into(),
            // Lines that are missing, or new and unknown.
            |found| found.lines = 189,
            |found| {
                found.lines_from_text.insert("vmstat new".into());
            },
        ];
        for gain in gains {
            assert_eq!(losses(gain), "");
        }
        let lost: [fn(&mut Finding); 9] = [
            |found| found.status = "1".into(),
            |found| found.service = "refuses".into(),
            |found| found.source = "procfs".into(),
            |found| found.error = "the kernel refused the programs".into(),
            |found| found.usable = vec!["procfs".into()],
            |found| found.fields = 119,
            |found| {
                found.lines = 0;
                found.lines_from_text = set(&["all"]);
            },
            |found| found.aged_interrupts = false,
            |found| found.ratios.clear(),
        ];
        for loss in lost {
            assert!(!losses(loss).is_empty());
        }
    }

    #[test]
    fn a_ratio_that_has_risen_much_is_reported() {
        let gains = |ratio| {
            let mut found = good();
            found.ratios = [("bpf-full".into(), ratio)].into();
            good().gains(&found).join("; ")
        };
        for little in [30.0, 50.0, 52.0, f64::NAN] {
            assert_eq!(gains(little), "");
        }
        assert_eq!(gains(53.0), "bpf-full: 50 times cheaper expected, 53 times");
    }

    #[test]
    fn a_ratio_may_rise_and_fall_a_little() {
        let ratio = |ratio| differences(|found| found.ratios = [("bpf-full".into(), ratio)].into());
        assert_eq!(ratio(47.6), "");
        assert_eq!(ratio(500.0), "");
        // 6 % worse.
        assert_eq!(ratio(47.0), "bpf-full: 50 times cheaper expected, 47 times");
        assert_eq!(
            ratio(f64::NAN),
            "bpf-full: 50 times cheaper expected, NaN times"
        );
        assert_eq!(
            differences(|found| found.ratios.clear()),
            "bpf-full: 50 times cheaper expected, not measured"
        );
        assert_eq!(
            differences(|found| found.ratios.extend([("bpf-lean".into(), 300.0)])),
            "bpf-lean: measured for the first time"
        );
    }
}
