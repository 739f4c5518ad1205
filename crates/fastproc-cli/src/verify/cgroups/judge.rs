//! How a value of ours relates to the kernel's values before and after it.

use crate::verify::tally::Verdict;

/// The verdict on a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It is one of the kernel's.
    Equal,
    /// It is between them.
    Between,
    /// It is outside of them, but the kernel's has changed, and may have been there.
    InMotion,
    /// The kernel's is the same before and after.
    Differs,
    /// The kernel's only grows.
    Impossible,
}

impl Judgement {
    /// How it counts.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Equal => Verdict::Equal,
            Self::Between | Self::InMotion => Verdict::Moved,
            Self::Differs | Self::Impossible => Verdict::Wrong,
        }
    }

    /// Whether it is wrong.
    pub fn is_wrong(self) -> bool {
        self.verdict() == Verdict::Wrong
    }
}

/// Which lines of a file are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All, in their order.
    Whole,
    /// Those that both texts have.
    Part,
}

/// Calls `each` for the values of three texts: the kernel's, ours, the kernel's. False: ours has other lines.
pub fn compare(
    file: &str,
    shape: Shape,
    texts: [&str; 3],
    mut each: impl FnMut(&str, [u64; 3]),
) -> bool {
    let [before, ours, after] = texts.map(|text| values(file, text));
    let names = |values: &[(String, u64)]| -> Vec<String> {
        values.iter().map(|(name, _)| name.clone()).collect()
    };
    match shape {
        Shape::Whole => {
            let [was, is, will] = [&before, &ours, &after].map(|values| names(values));
            if was != will {
                // A controller was enabled or disabled, or a device was used for the first time.
                return true;
            }
            if is != was {
                return false;
            }
            for ((before, ours), after) in before.iter().zip(&ours).zip(&after) {
                each(&ours.0, [before.1, ours.1, after.1]);
            }
        }
        Shape::Part => {
            for (name, value) in ours {
                let find = |values: &[(String, u64)]| {
                    let mut values = values.iter();
                    values.find(|(of, _)| *of == name).map(|(_, value)| *value)
                };
                if let (Some(before), Some(after)) = (find(&before), find(&after)) {
                    each(&name, [before, value, after]);
                }
            }
        }
    }
    true
}

/// The numbers of a text, with the words before them.
fn values(file: &str, text: &str) -> Vec<(String, u64)> {
    if file == "cgroup.type" {
        return vec![("threaded".into(), u64::from(text == "threaded\n"))];
    }
    let has_names = ["stat", "events", "local", "pressure"]
        .iter()
        .any(|end| file.ends_with(end));
    let mut all = Vec::new();
    for line in text.lines() {
        if !has_names {
            // Limits: one or two words.
            let words = line.split(' ').enumerate();
            all.extend(words.map(|(at, word)| (at.to_string(), number(word))));
            continue;
        }
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        if !rest.contains('=') {
            // A device without numbers has a name alone.
            all.push((name.into(), number(rest)));
            continue;
        }
        let mut name = name;
        for word in rest.split(' ') {
            match word.split_once('=') {
                Some((key, value)) => all.push((format!("{name} {key}"), number(value))),
                // Kernels from 5.14 to 5.16 do not end the line of a device without values.
                None if word.contains(':') => {
                    all.push((name.into(), 0));
                    name = word;
                }
                None => {}
            }
        }
    }
    all
}

/// A number, or the largest for `max`. Other words, as averages, are not compared.
fn number(word: &str) -> u64 {
    if word == "max" {
        u64::MAX
    } else {
        word.parse().unwrap_or(0)
    }
}

/// Judges a value: the kernel's before, ours, the kernel's after. `most`: what a total of pressure is at most, in
/// microseconds.
///
/// The kernel adds to this total the times of the CPUs since it last did, weighted by how long each was not idle
/// (`collect_percpu_times`). So the total never falls. A CPU that becomes busy later takes weight from the others, so
/// what a reader in between calculates can be above the kernel's next total. But it is above the last one by no more
/// than the time since then, because no CPU waited longer.
pub fn judge(
    file: &str,
    line: &str,
    [before, ours, after]: [u64; 3],
    most: Option<u64>,
) -> Judgement {
    if ours == before || ours == after {
        Judgement::Equal
    } else if (before.min(after)..before.max(after)).contains(&ours) {
        Judgement::Between
    } else if let Some(most) = most {
        if (before..=most).contains(&ours) {
            Judgement::InMotion
        } else {
            Judgement::Impossible
        }
    } else if before == after {
        Judgement::Differs
    } else if before < after && only_grows(file, line) {
        Judgement::Impossible
    } else {
        Judgement::InMotion
    }
}

/// Lines of memory.stat that count events begin like this.
const COUNTERS: [&str; 6] = ["pg", "workingset_", "thp_", "zswp", "swp", "numa_"];

/// Whether a value never falls while its file exists.
fn only_grows(file: &str, line: &str) -> bool {
    match file {
        // The kernel divides the time again, and only the sum is certain.
        "cpu.stat" => !["user_usec", "system_usec"].contains(&line),
        "memory.stat" => {
            line != "workingset_nodes" && COUNTERS.iter().any(|start| line.starts_with(start))
        }
        "memory.events"
        | "memory.events.local"
        | "memory.swap.events"
        | "memory.peak"
        | "memory.swap.peak"
        | "pids.peak"
        | "io.stat" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_must_be_between_and_gauges_must_not_stand_still_elsewhere() {
        let counter = |values| judge("cpu.stat", "usage_usec", values, None);
        assert_eq!(counter([3, 3, 5]), Judgement::Equal);
        assert_eq!(counter([3, 4, 5]), Judgement::Between);
        for wrong in [[3, 2, 5], [3, 6, 5]] {
            assert_eq!(counter(wrong), Judgement::Impossible, "{wrong:?}");
        }
        assert_eq!(counter([3, 4, 3]), Judgement::Differs);
        // A controller was disabled and enabled.
        assert_eq!(counter([5, 6, 3]), Judgement::InMotion);
        let gauge = |values| judge("memory.stat", "anon", values, None);
        assert_eq!(gauge([5, 4, 3]), Judgement::Between);
        assert_eq!(gauge([3, 9, 5]), Judgement::InMotion);
        assert_eq!(gauge([3, 9, 3]), Judgement::Differs);
        let total = |values| judge("cpu.pressure", "some total", values, Some(5));
        assert_eq!(total([3, 5, 3]), Judgement::InMotion);
        assert_eq!(total([3, 5, 4]), Judgement::InMotion);
        assert_eq!(total([3, 6, 8]), Judgement::Between);
        for wrong in [[3, 2, 3], [3, 2, 4], [3, 6, 4]] {
            assert_eq!(total(wrong), Judgement::Impossible, "{wrong:?}");
        }
        assert_eq!(
            judge("memory.stat", "workingset_nodes", [1, 9, 2], None),
            Judgement::InMotion
        );
        assert_eq!(
            judge("memory.stat", "pgfault", [1, 9, 2], None),
            Judgement::Impossible
        );
    }

    #[test]
    fn all_forms_of_files_have_values() {
        for (file, text, expected) in [
            (
                "cpu.max",
                "max 100000\n",
                &[("0", u64::MAX), ("1", 100_000)][..],
            ),
            ("memory.current", "4096\n", &[("0", 4096)]),
            (
                "memory.events",
                "high 1\nmax 2\n",
                &[("high", 1), ("max", 2)],
            ),
            (
                "io.stat",
                "8:0 \n8:16 rbytes=1 wbytes=2\n",
                &[("8:0", 0), ("8:16 rbytes", 1), ("8:16 wbytes", 2)],
            ),
            (
                "io.stat",
                "7:7 8:16 rbytes=1\n",
                &[("7:7", 0), ("8:16 rbytes", 1)],
            ),
            (
                "cpu.pressure",
                "some avg10=0.10 total=7\n",
                &[("some avg10", 0), ("some total", 7)],
            ),
            ("cgroup.type", "threaded\n", &[("threaded", 1)]),
            ("cgroup.type", "domain threaded\n", &[("threaded", 0)]),
        ] {
            let found = values(file, text);
            let found: Vec<_> = found.iter().map(|(name, of)| (&**name, *of)).collect();
            assert_eq!(found, expected, "{file}");
        }
    }

    #[test]
    fn other_lines_are_wrong_unless_the_kernels_changed() {
        let compare = |texts: [&str; 3]| {
            let mut seen = Vec::new();
            let file = "memory.stat";
            let is_right = compare(file, Shape::Whole, texts, |name, values| {
                seen.push((name.to_owned(), values));
            });
            (is_right, seen)
        };
        let (is_right, seen) =
            compare(["anon 1\nfile 2\n", "anon 3\nfile 4\n", "anon 5\nfile 6\n"]);
        assert!(is_right);
        assert_eq!(seen[1], ("file".into(), [2, 4, 6]));
        assert!(!compare(["anon 1\nfile 2\n", "file 2\nanon 1\n", "anon 1\nfile 2\n"]).0);
        assert!(!compare(["anon 1\nfile 2\n", "anon 1\n", "anon 1\nfile 2\n"]).0);
        assert_eq!(
            compare(["anon 1\n", "", "anon 1\nfile 2\n"]),
            (true, vec![])
        );
    }
}
