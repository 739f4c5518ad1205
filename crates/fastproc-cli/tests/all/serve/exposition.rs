//! Parses metrics strictly: any violation of the format fails the test.

use std::collections::{BTreeMap, HashSet};

type Labels = BTreeMap<String, String>;

/// A parsed text.
#[derive(Debug)]
pub struct Metrics {
    series: Vec<(String, Labels, f64)>,
    /// Families with their types, in the order of the text.
    pub families: Vec<(String, String)>,
}

impl Metrics {
    #[track_caller]
    pub fn parse(text: &str) -> Self {
        let (mut series, mut families) = (Vec::new(), Vec::<(String, String)>::new());
        let (mut known, mut seen) = (HashSet::new(), HashSet::new());
        assert!(text.ends_with('\n'), "the last line has no end");
        for line in text.lines() {
            if let Some(comment) = line.strip_prefix("# ") {
                if let Some(family) = comment.strip_prefix("TYPE ") {
                    let (name, kind) = family.split_once(' ').expect("a type");
                    assert!(known.insert(name), "{name} is there twice");
                    families.push((name.into(), kind.into()));
                }
                continue;
            }
            let (name, labels, value) = sample(line);
            let (family, kind) = families.last().expect("a family comes first");
            let suffixes: &[&str] = match &**kind {
                "histogram" => &["_bucket", "_sum", "_count"],
                "summary" => &["", "_sum", "_count"],
                _ => &["", "_total"],
            };
            let rest = name.strip_prefix(&**family);
            assert!(
                rest.is_some_and(|rest| suffixes.contains(&rest)),
                "{line} under {family}"
            );
            assert!(
                seen.insert(line.rsplit_once(' ').expect("a value").0),
                "{line} is there twice"
            );
            series.push((name.to_owned(), labels, value));
        }
        Self { series, families }
    }

    /// The value of the only series with this name and at least these labels.
    #[track_caller]
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut values = self.all(name, labels);
        let value = values.next();
        assert!(
            values.next().is_none(),
            "{name} {labels:?} is not the only one"
        );
        value
    }

    /// The values of all series with this name and at least these labels.
    pub fn all(&self, name: &str, labels: &[(&str, &str)]) -> impl Iterator<Item = f64> {
        self.series
            .iter()
            .filter(move |(series, its, _)| {
                series == name
                    && labels
                        .iter()
                        .all(|(key, value)| its.get(*key).is_some_and(|its| its == value))
            })
            .map(|(_, _, value)| *value)
    }

    /// The labels of the only series of this name.
    #[track_caller]
    pub fn labels(&self, name: &str) -> &Labels {
        let mut found = self.series.iter().filter(|(series, ..)| series == name);
        let (_, labels, _) = found.next().unwrap_or_else(|| panic!("no {name}"));
        assert!(found.next().is_none(), "{name} is not the only one");
        labels
    }

    /// All names, labels and values.
    pub fn series(&self) -> impl Iterator<Item = (&str, &Labels, f64)> {
        self.series
            .iter()
            .map(|(name, labels, value)| (name.as_str(), labels, *value))
    }
}

fn sample(line: &str) -> (&str, Labels, f64) {
    let (key, value) = line.rsplit_once(' ').expect("a value");
    let value = value.parse().unwrap_or_else(|_| panic!("no value: {line}"));
    let Some((name, labels)) = key.split_once('{') else {
        return (key, Labels::new(), value);
    };
    let mut rest = labels.strip_suffix('}').expect("the braces end");
    let mut labels = Labels::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").expect("a label");
        let (text, after) = quoted(after);
        assert!(
            labels.insert(label.into(), text).is_none(),
            "{line}: {label} twice"
        );
        rest = match after.strip_prefix(',') {
            Some(after) => after,
            None if after.is_empty() => after,
            None => panic!("labels are separated by commas: {line}"),
        };
    }
    (name, labels, value)
}

/// A text up to its closing quote, and the rest.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => match characters.next().map(|(_, escaped)| escaped) {
                Some('n') => value.push('\n'),
                Some(escaped @ ('\\' | '"')) => value.push(escaped),
                other => panic!("no escape: {other:?} in {text}"),
            },
            plain => value.push(plain),
        }
    }
    panic!("a quote is missing: {text}");
}
