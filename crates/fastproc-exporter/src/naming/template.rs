//! The part of Go's text/template that names of groups are made with: text and values.

use std::collections::BTreeMap;

use super::rules::{Subject, Wants};

/// A template, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Value),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Comm,
    ExeBase,
    ExeFull,
    Username,
    Pid,
    StartTime,
    Cgroups,
    Cgroup(usize),
    Matches,
    /// The name, and whether `index` asks: then one that is not there is empty.
    Match(String, bool),
}

/// What Go prints for a key that is not in the map.
const NO_VALUE: &str = "<no value>";

const SUPPORTED: &str = "use .Comm, .ExeBase, .ExeFull, .Username, .PID, .StartTime, .Cgroups, .Matches, .Matches.NAME, \
                         or index .Matches \"NAME\" and index .Cgroups N";

impl Template {
    /// Takes a template apart. The error says what of it is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut trim = false;
        loop {
            let (before, action) = match rest.split_once("{{") {
                Some((before, after)) => (before, Some(after)),
                None => (rest, None),
            };
            let mut before = if trim { before.trim_start() } else { before };
            let Some(after) = action else {
                parts.push(Part::Text(before.to_owned()));
                break;
            };
            let (inside, after) = after
                .split_once("}}")
                .ok_or_else(|| format!("the template {text:?} has a {{{{ without a }}}}"))?;
            let mut inside = inside;
            // `{{- ` and ` -}}` eat the space around them.
            if let Some(trimmed) = inside.strip_prefix("- ") {
                before = before.trim_end();
                inside = trimmed;
            }
            trim = false;
            if let Some(trimmed) = inside.strip_suffix(" -") {
                trim = true;
                inside = trimmed;
            }
            parts.push(Part::Text(before.to_owned()));
            let inside = inside.trim();
            if !(inside.starts_with("/*") && inside.ends_with("*/")) {
                parts.push(Part::Value(Value::parse(inside).ok_or_else(|| {
                    format!("the template {text:?} has {{{{{inside}}}}}, which is not understood; {SUPPORTED}")
                })?));
            }
            rest = after;
        }
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        Ok(Self(parts))
    }

    /// What has to be known of a process to name it.
    pub fn wants(&self) -> Wants {
        let values = || {
            self.0.iter().filter_map(|part| match part {
                Part::Value(value) => Some(value),
                Part::Text(_) => None,
            })
        };
        Wants {
            cmdline: values().any(|value| matches!(value, Value::ExeBase | Value::ExeFull)),
            username: values().any(|value| *value == Value::Username),
            cgroups: values().any(|value| matches!(value, Value::Cgroups | Value::Cgroup(_))),
        }
    }

    /// The name of this process.
    pub fn render(&self, subject: &Subject<'_>, matches: &BTreeMap<String, String>) -> String {
        let mut name = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => name += text,
                Part::Value(value) => value.render(subject, matches, &mut name),
            }
        }
        name
    }
}

impl Value {
    fn parse(text: &str) -> Option<Self> {
        let text = text
            .strip_prefix('(')
            .and_then(|text| text.strip_suffix(')'))
            .unwrap_or(text)
            .trim();
        if let Some(rest) = text.strip_prefix("index ") {
            let (of, key) = rest.trim_start().split_once(char::is_whitespace)?;
            let key = key.trim();
            return match of {
                ".Cgroups" => key.parse().ok().map(Self::Cgroup),
                ".Matches" => {
                    let quoted = |quote| key.strip_prefix(quote)?.strip_suffix(quote);
                    quoted('"')
                        .or_else(|| quoted('`'))
                        .filter(|key: &&str| !key.contains(['"', '\\', '`']))
                        .map(|key| Self::Match(key.to_owned(), true))
                }
                _ => None,
            };
        }
        Some(match text {
            ".Comm" => Self::Comm,
            ".ExeBase" => Self::ExeBase,
            ".ExeFull" => Self::ExeFull,
            ".Username" => Self::Username,
            ".PID" => Self::Pid,
            ".StartTime" => Self::StartTime,
            ".Cgroups" => Self::Cgroups,
            ".Matches" => Self::Matches,
            _ => {
                let name = text.strip_prefix(".Matches.")?;
                let plain = |c: char| c == '_' || c.is_alphanumeric();
                if name.is_empty() || !name.chars().all(plain) {
                    return None;
                }
                Self::Match(name.to_owned(), false)
            }
        })
    }

    fn render(&self, subject: &Subject<'_>, matches: &BTreeMap<String, String>, to: &mut String) {
        match self {
            Self::Comm => *to += &String::from_utf8_lossy(subject.comm),
            Self::ExeBase => *to += &String::from_utf8_lossy(base(subject.exe())),
            Self::ExeFull => *to += &String::from_utf8_lossy(subject.exe()),
            Self::Username => *to += subject.username,
            Self::Pid => *to += &subject.pid.to_string(),
            Self::StartTime => start_time(subject.start_unix_ns, to),
            Self::Cgroups => {
                *to += "[";
                *to += &subject.cgroups.join(" ");
                *to += "]";
            }
            // Go stops there with an error and keeps what it has; the value alone is left out.
            Self::Cgroup(at) => *to += subject.cgroups.get(*at).map_or("", String::as_str),
            Self::Matches => {
                let pairs: Vec<String> = matches
                    .iter()
                    .map(|(name, value)| format!("{name}:{value}"))
                    .collect();
                *to += &format!("map[{}]", pairs.join(" "));
            }
            Self::Match(name, indexed) => {
                let absent = if *indexed { "" } else { NO_VALUE };
                *to += matches.get(name).map_or(absent, String::as_str);
            }
        }
    }
}

/// The last element of a path, as Go's `filepath.Base` has it.
pub fn base(path: &[u8]) -> &[u8] {
    if path.is_empty() {
        return b".";
    }
    let end = path.iter().rposition(|&byte| byte != b'/');
    let Some(end) = end else { return b"/" };
    let path = &path[..=end];
    let start = path.iter().rposition(|&byte| byte == b'/');
    &path[start.map_or(0, |at| at + 1)..]
}

/// As Go prints a time: `2024-02-29 12:00:00.25 +0000 UTC`.
fn start_time(unix_ns: u64, to: &mut String) {
    let (seconds, ns) = (unix_ns / 1_000_000_000, unix_ns % 1_000_000_000);
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(day);
    *to += &format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    );
    if ns > 0 {
        let fraction = format!(".{ns:09}");
        *to += fraction.trim_end_matches('0');
    }
    *to += " +0000 UTC";
}

/// The date so many days after 1970-01-01, by counting years of 400 that begin in March.
fn date(day: u64) -> (u64, u64, u64) {
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let day = day + 719_468;
    let (era, day) = (day / DAYS_IN_400_YEARS, day % DAYS_IN_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day_of_month = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (
        era * 400 + year + u64::from(month <= 2),
        month,
        day_of_month,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject<'static> {
        Subject {
            pid: 17,
            comm: b"postgres",
            cmdline: b"/usr/lib/postgres/bin/postgres\0-D\0/data\0",
            username: "pg",
            cgroups: &[],
            start_unix_ns: 1_709_208_000_250_000_000,
        }
    }

    fn render(template: &str) -> Result<String, String> {
        let matches = [("Cfg".to_owned(), "a.yml".to_owned())].into();
        Ok(Template::parse(template)?.render(&subject(), &matches))
    }

    #[test]
    fn values_are_put_between_the_text() {
        for (template, name) in [
            ("{{.Comm}}", "postgres"),
            ("plain", "plain"),
            ("{{ .ExeBase }}:{{.PID}}", "postgres:17"),
            ("{{.ExeFull}}", "/usr/lib/postgres/bin/postgres"),
            ("{{.Username}}/{{.Matches.Cfg}}", "pg/a.yml"),
            ("{{.Matches.None}}", "<no value>"),
            ("{{index .Matches \"None\"}}", ""),
            ("{{index .Matches \"Cfg\"}}", "a.yml"),
            ("{{.Matches}}", "map[Cfg:a.yml]"),
            ("{{.Cgroups}}", "[]"),
            ("{{.StartTime}}", "2024-02-29 12:00:00.25 +0000 UTC"),
            ("a {{- .PID -}} b", "a17b"),
            ("{{/* nothing */}}x", "x"),
            ("", ""),
        ] {
            assert_eq!(render(template).as_deref(), Ok(name), "{template}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for template in [
            "{{.Comm",
            "{{.Nothing}}",
            "{{if .Comm}}x{{end}}",
            "{{.Matches.}}",
            "{{.Comm | printf \"%q\"}}",
            "{{index .Cgroups x}}",
        ] {
            let error = render(template).expect_err(template);
            assert!(error.contains("{{"), "{error}");
        }
    }

    #[test]
    fn bases_are_as_go_has_them() {
        for (path, expected) in [
            ("", "."),
            ("/", "/"),
            ("//", "/"),
            ("a/b/", "b"),
            ("b", "b"),
            ("/x", "x"),
        ] {
            assert_eq!(base(path.as_bytes()), expected.as_bytes(), "{path}");
        }
    }

    #[test]
    fn dates_are_of_the_calendar() {
        assert_eq!(date(0), (1970, 1, 1));
        assert_eq!(date(59), (1970, 3, 1));
        assert_eq!(date(11_016), (2000, 2, 29));
        assert_eq!(date(19_782), (2024, 2, 29));
        assert_eq!(date(20_453), (2025, 12, 31));
    }
}
