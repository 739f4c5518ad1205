//! Rules: which processes they match, and how these are named.

use std::collections::{BTreeMap, HashMap, HashSet};

use regex::bytes::Regex;

use super::template::{Template, base};

/// What a rule can ask about a process.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Process id.
    pub pid: u32,
    /// The name in `/proc/PID/stat`.
    pub comm: &'a [u8],
    /// `/proc/PID/cmdline`: arguments that end with a NUL each.
    pub cmdline: &'a [u8],
    /// Name of the effective user.
    pub username: &'a str,
    /// Paths of its cgroups.
    pub cgroups: &'a [String],
    /// Start time, in nanoseconds since 1970.
    pub start_unix_ns: u64,
}

impl<'a> Subject<'a> {
    /// The arguments without the NULs that end the last.
    fn trimmed(&self) -> &'a [u8] {
        let end = self.cmdline.iter().rposition(|&byte| byte != 0);
        &self.cmdline[..end.map_or(0, |at| at + 1)]
    }

    /// The first argument, if there is any.
    fn argv0(&self) -> Option<&'a [u8]> {
        let line = self.trimmed();
        if line.is_empty() {
            return None;
        }
        line.split(|&byte| byte == 0).next()
    }

    /// The first argument, or the name of what has none.
    pub(super) fn exe(&self) -> &'a [u8] {
        self.argv0().unwrap_or(self.comm)
    }

    /// The arguments with a space between them.
    fn line(&self) -> Vec<u8> {
        let mut line = self.trimmed().to_vec();
        for byte in &mut line {
            if *byte == 0 {
                *byte = b' ';
            }
        }
        line
    }
}

/// What has to be read of a process before rules can be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The command line.
    pub cmdline: bool,
    /// The name of the user.
    pub username: bool,
    /// The cgroups.
    pub cgroups: bool,
}

impl Wants {
    fn and(self, other: Self) -> Self {
        Self {
            cmdline: self.cmdline || other.cmdline,
            username: self.username || other.username,
            cgroups: self.cgroups || other.cgroups,
        }
    }
}

/// Matches a process if all that it has match.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub comms: Option<HashSet<Vec<u8>>>,
    /// By the base of the path: the whole path, if it is to match.
    pub exes: Option<HashMap<Vec<u8>, Option<Vec<u8>>>>,
    pub cmdlines: Option<Vec<Regex>>,
    pub name: Template,
}

impl Rule {
    fn name_of(&self, subject: &Subject<'_>) -> Option<String> {
        if let Some(comms) = &self.comms
            && !comms.contains(subject.comm)
        {
            return None;
        }
        if let Some(exes) = &self.exes {
            let argv0 = subject.argv0()?;
            let whole = exes.get(base(argv0))?;
            if whole.as_ref().is_some_and(|whole| whole != argv0) {
                return None;
            }
        }
        let mut matches = BTreeMap::new();
        if let Some(cmdlines) = &self.cmdlines {
            let line = subject.line();
            for regex in cmdlines {
                let captures = regex.captures(&line)?;
                for (at, name) in regex.capture_names().enumerate() {
                    let text = captures.get(at).map_or(&[][..], |found| found.as_bytes());
                    matches.insert(
                        name.unwrap_or_default().to_owned(),
                        String::from_utf8_lossy(text).into_owned(),
                    );
                }
            }
        }
        Some(self.name.render(subject, &matches))
    }

    fn wants(&self) -> Wants {
        Wants {
            cmdline: self.exes.is_some() || self.cmdlines.is_some(),
            ..Wants::default()
        }
        .and(self.name.wants())
    }
}

/// For a name, the regular expression whose first non-empty capture is added to it; or none, and the name is all.
pub(super) type Mapping = HashMap<Vec<u8>, Option<Regex>>;

#[derive(Clone, Debug)]
enum Kind {
    File(Vec<Rule>),
    Names(Mapping),
}

/// The rules, of which the first that matches names a process.
#[derive(Clone, Debug)]
pub struct Rules(Kind);

impl Default for Rules {
    /// A group for each name of a process that has a command line: what the packages of process-exporter ship.
    fn default() -> Self {
        let text = "process_names: [{name: \"{{.Comm}}\", cmdline: ['.+']}]";
        match super::file::parse(text) {
            Ok(rules) => rules,
            Err(_) => Self::from_rules(Vec::new()),
        }
    }
}

impl Rules {
    pub(super) fn from_rules(rules: Vec<Rule>) -> Self {
        Self(Kind::File(rules))
    }

    pub(super) fn from_mapping(mapping: Mapping) -> Self {
        Self(Kind::Names(mapping))
    }

    /// The group of this process, if there is one for it.
    pub fn name_of(&self, subject: &Subject<'_>) -> Option<String> {
        match &self.0 {
            Kind::File(rules) => rules.iter().find_map(|rule| rule.name_of(subject)),
            Kind::Names(mapping) => {
                let comm = String::from_utf8_lossy(subject.comm);
                let Some(regex) = mapping.get(subject.comm)? else {
                    return Some(comm.into_owned());
                };
                let line = subject.line();
                let captures = regex.captures(&line)?;
                let found = captures.iter().skip(1).flatten();
                let mut found = found.map(|found| found.as_bytes());
                let first = found.find(|found| !found.is_empty())?;
                Some(format!("{comm}:{}", String::from_utf8_lossy(first)))
            }
        }
    }

    /// What has to be known of a process before it can be named.
    pub fn wants(&self) -> Wants {
        match &self.0 {
            Kind::File(rules) => rules
                .iter()
                .fold(Wants::default(), |wants, rule| wants.and(rule.wants())),
            Kind::Names(mapping) => Wants {
                cmdline: mapping.values().any(Option::is_some),
                ..Wants::default()
            },
        }
    }
}

/// Compiles an expression of Go's syntax, in which `\s`, `\d`, `\w` and `\b` are of ASCII.
pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
    let bytes = regex::bytes::RegexBuilder::new(pattern)
        .unicode(false)
        .build();
    // A class with characters beyond ASCII, or one of Unicode, needs text.
    bytes.or_else(|_| Regex::new(pattern)).map_err(|error| {
        let reason = error.to_string();
        let last = reason.lines().last().unwrap_or_default().trim();
        format!(
            "the regular expression {pattern:?} is wrong: {}",
            last.trim_start_matches("error: ")
        )
    })
}
