//! Parses the Prometheus text format as strictly as `node_exporter` does.

use std::collections::{HashMap, HashSet};

use crate::exposition::{Kind, escape};

/// Metrics of one name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parsed {
    pub name: String,
    pub kind: Kind,
    pub help: Option<String>,
    pub samples: Vec<Sample>,
}

/// One series with its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// The family's name, with the suffix of a histogram or a summary.
    pub name: String,
    /// As they appear between the braces, in the order of the labels' names.
    pub labels: String,
    pub value: f64,
}

/// An error in a line. It goes to the log, and quotes nothing: the file may be another than the one that was meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub(super) struct Wrong {
    pub line: usize,
    pub reason: Reason,
}

type Reason = &'static str;

/// The families of a text in their order. Families without series are left out.
pub(super) fn parse(text: &str) -> Result<Vec<Parsed>, Wrong> {
    let mut parser = Parser::default();
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let read = match line.strip_suffix('\n') {
            Some(line) => parser.line(line.trim_start_matches([' ', '\t'])),
            None => Err("the text ends within a line"),
        };
        read.map_err(|reason| Wrong {
            line: at + 1,
            reason,
        })?;
    }
    let mut families = parser.families;
    families.retain(|family| !family.samples.is_empty());
    Ok(families)
}

#[derive(Default)]
struct Parser {
    families: Vec<Parsed>,
    /// Where a family of this name is, and whether its type was given.
    places: HashMap<String, (usize, bool)>,
    /// Names and labels of all series.
    seen: HashSet<(String, String)>,
}

impl Parser {
    fn line(&mut self, line: &str) -> Result<(), Reason> {
        if line.is_empty() {
            return Ok(());
        }
        let Some(comment) = line.strip_prefix('#') else {
            return self.sample(line);
        };
        let comment = comment.trim_start_matches([' ', '\t']);
        let (keyword, rest) = word(comment);
        match keyword {
            "HELP" => self.help(rest),
            "TYPE" => self.kind(rest),
            _ => Ok(()),
        }
    }

    fn help(&mut self, text: &str) -> Result<(), Reason> {
        let (name, text) = metric_name(text)?;
        let (at, _) = self.family(name);
        let family = &mut self.families[at];
        if family.help.is_some() {
            return Err("a metric has a second HELP line");
        }
        family.help = Some(unescape(text.trim_start_matches([' ', '\t']), false)?);
        Ok(())
    }

    fn kind(&mut self, text: &str) -> Result<(), Reason> {
        let (name, kind) = metric_name(text)?;
        let kind = match &*kind.trim_matches([' ', '\t']).to_ascii_lowercase() {
            "counter" => Kind::Counter,
            "gauge" => Kind::Gauge,
            "histogram" => Kind::Histogram,
            "summary" => Kind::Summary,
            "untyped" => Kind::Untyped,
            _ => return Err("the type is not known"),
        };
        let (at, has_type) = self.family(name);
        if has_type {
            return Err("a metric has a second TYPE line");
        }
        if !self.families[at].samples.is_empty() {
            return Err("the TYPE line comes after the series");
        }
        self.families[at].kind = kind;
        self.places.insert(name.to_owned(), (at, true));
        Ok(())
    }

    fn sample(&mut self, line: &str) -> Result<(), Reason> {
        let (name, rest) = metric_name(line)?;
        let rest = rest.trim_start_matches([' ', '\t']);
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest)?,
            None => (Vec::new(), rest),
        };
        let mut words = rest.split([' ', '\t']).filter(|word| !word.is_empty());
        let value = words.next().ok_or("there is no value")?;
        let value = number(value).ok_or("there is no value that is a number")?;
        if let Some(timestamp) = words.next() {
            return Err(match timestamp.parse::<i64>() {
                Ok(_) => "it has a timestamp, which a file must not have",
                Err(_) => "what follows the value is no timestamp",
            });
        }
        if words.next().is_some() {
            return Err("there is something after the timestamp");
        }
        let at = self.family_of_sample(name)?;
        let family = &self.families[at];
        let needed = match family.kind {
            Kind::Histogram if name.ends_with("_bucket") => Some("le"),
            Kind::Summary if name == family.name => Some("quantile"),
            _ => None,
        };
        if let Some(needed) = needed {
            let bound = labels.iter().find(|(label, _)| label == needed);
            if bound.and_then(|(_, bound)| number(bound)).is_none() {
                return Err(match needed {
                    "le" => "the label le has no number",
                    _ => "the label quantile has no number",
                });
            }
        }
        // An empty value is as good as none.
        let labels: Vec<String> = labels
            .iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name}=\"{}\"", escape(value)))
            .collect();
        let labels = labels.join(",");
        if !self.seen.insert((name.to_owned(), labels.clone())) {
            return Err("the series is there twice");
        }
        self.families[at].samples.push(Sample {
            name: name.to_owned(),
            labels,
            value,
        });
        Ok(())
    }

    /// The family of this name, created if needed, and whether its type was given.
    fn family(&mut self, name: &str) -> (usize, bool) {
        if let Some(&place) = self.places.get(name) {
            return place;
        }
        let at = self.families.len();
        self.families.push(Parsed {
            name: name.to_owned(),
            kind: Kind::Untyped,
            help: None,
            samples: Vec::new(),
        });
        self.places.insert(name.to_owned(), (at, false));
        (at, false)
    }

    /// `a_sum` belongs to the histogram or summary `a`, if there is one.
    fn family_of_sample(&mut self, name: &str) -> Result<usize, Reason> {
        for suffix in ["_bucket", "_sum", "_count"] {
            let Some(&(at, _)) = name
                .strip_suffix(suffix)
                .and_then(|stem| self.places.get(stem))
            else {
                continue;
            };
            let has_it = match self.families[at].kind {
                Kind::Histogram => true,
                Kind::Summary => suffix != "_bucket",
                _ => false,
            };
            if has_it {
                return Ok(at);
            }
        }
        let (at, _) = self.family(name);
        if self.families[at].kind == Kind::Histogram {
            return Err("a histogram has _bucket, _sum and _count alone");
        }
        Ok(at)
    }
}

/// Splits at the first blank.
fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (word, rest.trim_start_matches([' ', '\t']))
}

/// Splits off a name at the beginning.
fn metric_name(text: &str) -> Result<(&str, &str), Reason> {
    name(text, |c| c == ':').ok_or("a name is missing")
}

fn name(text: &str, also: impl Fn(char) -> bool) -> Option<(&str, &str)> {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_' || also(c);
    let end = text.find(|c| !goes_on(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let first = name.chars().next()?;
    (!first.is_ascii_digit()).then_some((name, rest))
}

/// A label's name and value.
type Label = (String, String);

/// Labels after the opening brace, in the order of their names, and the text after the closing one.
fn labels(text: &str) -> Result<(Vec<Label>, &str), Reason> {
    let blank = [' ', '\t'];
    let mut labels = Vec::<Label>::new();
    let mut rest = text.trim_start_matches(blank);
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            labels.sort();
            return Ok((labels, after));
        }
        let (label, after) = name(rest, |_| false).ok_or("a label's name is missing")?;
        if label == "__name__" {
            return Err("the label __name__ is reserved");
        }
        let after = after.trim_start_matches(blank).strip_prefix('=');
        let after = after.map(|after| after.trim_start_matches(blank));
        let after = after
            .and_then(|after| after.strip_prefix('"'))
            .ok_or("a label has no value in quotes")?;
        let end = closing_quote(after).ok_or("the value of a label does not end")?;
        if labels.iter().any(|(known, _)| known == label) {
            return Err("a label is there twice");
        }
        labels.push((label.to_owned(), unescape(&after[..end], true)?));
        rest = after[end + 1..].trim_start_matches(blank);
        match rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start_matches(blank),
            None if rest.starts_with('}') => {}
            None => {
                return Err("after the value of a label there is neither , nor }");
            }
        }
    }
}

/// The index of the quote that ends a value.
fn closing_quote(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return Some(at),
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    None
}

fn unescape(text: &str, in_quotes: bool) -> Result<String, Reason> {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('\\') => plain.push('\\'),
            Some('n') => plain.push('\n'),
            Some('"') if in_quotes => plain.push('"'),
            _ => return Err("there is a backslash that is no escape"),
        }
    }
    Ok(plain)
}

/// As Go parses it: no underscores, and nothing hexadecimal.
fn number(text: &str) -> Option<f64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wrong(text: &str) -> Wrong {
        parse(text).expect_err(text)
    }

    #[test]
    fn families_have_their_types_and_texts() {
        let text = "# a comment\n\n# HELP a_total Some \\\\ text.\n# TYPE a_total counter\na_total{y=\"1\", x=\"a\\\"b\\n\",} 5\n\
                    \t b 1e3\na_total 7\n# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum NaN\nh_count 2\n# TYPE none gauge\n";
        let families = parse(text).unwrap();
        let names: Vec<(&str, Kind, usize)> = families
            .iter()
            .map(|family| (&*family.name, family.kind, family.samples.len()))
            .collect();
        assert_eq!(
            names,
            [
                ("a_total", Kind::Counter, 2),
                ("b", Kind::Untyped, 1),
                ("h", Kind::Histogram, 3)
            ]
        );
        assert_eq!(families[0].help.as_deref(), Some("Some \\ text."));
        assert_eq!(families[0].samples[0].labels, "x=\"a\\\"b\\n\",y=\"1\"");
        assert!(families[2].samples[1].value.is_nan());
    }

    #[test]
    fn errors_name_their_line() {
        for (text, line, word) in [
            ("a 1", 1, "ends within"),
            ("a 1\na\n", 2, "no value"),
            ("a x\n", 1, "no value"),
            ("a 0x10\n", 1, "no value"),
            ("a 1_000\n", 1, "no value"),
            ("a 1 1234\n", 1, "timestamp"),
            ("a 1 now\n", 1, "timestamp"),
            ("1a 1\n", 1, "name"),
            ("a{b} 1\n", 1, "quotes"),
            ("a{b=\"1} 1\n", 1, "does not end"),
            ("a{b=\"1\" c=\"2\"} 1\n", 1, "neither"),
            ("a{b=\"1\",b=\"2\"} 1\n", 1, "twice"),
            ("a{b=\"\\x\"} 1\n", 1, "escape"),
            ("a{__name__=\"b\"} 1\n", 1, "reserved"),
            ("a{b=\"1\"} 1\na{b=\"1\"} 2\n", 2, "twice"),
            ("a 1\na{b=\"\"} 2\n", 2, "twice"),
            ("a 1\n# TYPE a counter\n", 2, "after"),
            ("# TYPE a counter\n# TYPE a counter\n", 2, "second"),
            ("# HELP a x\n# HELP a x\n", 2, "second"),
            ("# TYPE a info\n", 1, "not known"),
            ("# TYPE h histogram\nh 1\n", 2, "histogram"),
            ("# TYPE h histogram\nh_bucket 1\n", 2, "le"),
            ("# TYPE s summary\ns 1\n", 2, "quantile"),
        ] {
            let wrong = wrong(text);
            assert_eq!(wrong.line, line, "{text}: {wrong}");
            assert!(wrong.reason.contains(word), "{text}: {wrong}");
        }
    }

    /// A link may lead to a file of secrets, which would then stand in the log.
    #[test]
    fn errors_do_not_quote_the_file() {
        for text in [
            "secret:$y$j9T$secret:20000:0:99999:7:::\n",
            "secret secret\n",
            "secret 1 secret\n",
            "secret{secret=\"\\s\"} 1\n",
            "secret{secret} 1\n",
            "secret{secret=\"1\" secret} 1\n",
            "secret 1\nsecret 2\n",
            "# TYPE secret secret\n",
            "# HELP secret \\secret\n",
        ] {
            let told = wrong(text).to_string();
            assert!(!told.contains("secret") && !told.contains("\\s"), "{told}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[#{}\"\\\\=, \nA-Za-z_:0-9.+é-]{0,80}") {
            let _ = parse(&text);
        }
    }
}
