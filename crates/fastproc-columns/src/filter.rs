//! `--filter`: which rows to show.

pub(crate) mod date;
mod decimal;
mod hints;
mod literal;
mod parse;
pub(crate) mod time;
mod unescape;

use std::{cmp::Ordering, str::FromStr};

use regex::bytes::Regex;

pub(crate) use self::decimal::LiteralError;
use self::literal::Literal;
pub use self::{date::parse_as_of as parse_date, parse::FilterError};
use crate::{
    escape::escape,
    field::{Field, Processes, Subject},
};

/// A condition on a row. Its result is true, false or unknown.
#[derive(Clone, Debug)]
pub struct Filter<S: Subject = Processes> {
    root: Node<S>,
    /// The error if it is used on a single snapshot: it compares a rate.
    rate: Option<FilterError>,
}

#[derive(Clone, Debug)]
enum Node<S: Subject> {
    /// A field whose value is true or false.
    Truth(&'static Field<S>),
    Compare(&'static Field<S>, Operator, Literal),
    Match(&'static Field<S>, Regex),
    Not(Box<Node<S>>),
    All(Vec<Node<S>>),
    Any(Vec<Node<S>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    const fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

/// The text of a filter that admits the rows in which a field is exactly this text.
pub fn equal_to(field: &str, value: &[u8]) -> String {
    let mut text = Vec::new();
    escape(value, &mut text);
    let text = String::from_utf8_lossy(&text);
    // A star at either end would be taken for a shell pattern.
    let text = text.replace('"', "\\\"").replace('*', r"\x2a");
    format!("{field} == \"{text}\"")
}

impl<S: Subject> FromStr for Filter<S> {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let (root, rate) = parse::parse(text)?;
        Ok(Self { root, rate })
    }
}

impl<S: Subject> Filter<S> {
    /// Admits what both conditions admit.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            root: Node::All(vec![self.root, other.root]),
            rate: self.rate.or(other.rate),
        }
    }

    /// The groups of fields that the condition needs.
    pub fn needs(&self) -> S::Fields {
        let fields = self.fields().into_iter();
        fields.map(|field| field.needs).collect()
    }

    /// The fields that the condition compares.
    pub fn fields(&self) -> Vec<&'static Field<S>> {
        let mut fields = Vec::new();
        self.root.fields(&mut fields);
        fields
    }

    /// Checks that the filter can be used on a single snapshot, that is, it compares no rates.
    ///
    /// # Errors
    /// If the filter compares a rate, which needs an interval between two snapshots.
    pub fn check_for_one_snapshot(&self) -> Result<(), FilterError> {
        self.rate.clone().map_or(Ok(()), Err)
    }

    /// Whether the row meets the condition for certain.
    pub fn admits(&self, row: &S::Row<'_>, lookup: &mut S::Lookup) -> bool {
        let mut scratch = std::mem::take(S::scratch(lookup));
        let admitted = self.root.test(row, lookup, true, &mut scratch) == Some(true);
        *S::scratch(lookup) = scratch;
        admitted
    }
}

impl<S: Subject> Node<S> {
    fn fields(&self, to: &mut Vec<&'static Field<S>>) {
        match self {
            Self::Truth(field) | Self::Compare(field, ..) | Self::Match(field, _) => {
                to.push(*field);
            }
            Self::Not(node) => node.fields(to),
            Self::All(nodes) | Self::Any(nodes) => nodes.iter().for_each(|node| node.fields(to)),
        }
    }

    /// `None`: not known. A condition on an unknown value is unknown, unless the other conditions decide. A condition that
    /// the missing end of a cut command line decides is `wanted`: what admits the row, which would else be missed.
    fn test(
        &self,
        row: &S::Row<'_>,
        lookup: &mut S::Lookup,
        wanted: bool,
        scratch: &mut Vec<u8>,
    ) -> Option<bool> {
        match self {
            Self::Truth(field) => field.value(row, lookup).truth(),
            Self::Compare(field, Operator::Equal, literal) => {
                literal.equals(field, (row, lookup), wanted, scratch)
            }
            Self::Compare(field, Operator::NotEqual, literal) => {
                let equals = literal.equals(field, (row, lookup), !wanted, scratch);
                equals.map(|equals| !equals)
            }
            Self::Compare(field, operator, literal) => {
                let value = field.value(row, lookup);
                if literal.may_begin_with(&value, scratch) {
                    return Some(wanted);
                }
                let ordering = literal.compare(&value, scratch)?;
                Some(operator.holds(ordering))
            }
            Self::Match(field, pattern) => {
                let value = field.value(row, lookup);
                let is_cut = value.is_cut();
                let text = value.text(scratch)?;
                let found = pattern.find(text);
                if is_cut && found.is_none_or(|found| found.end() == text.len()) {
                    return Some(wanted);
                }
                Some(found.is_some())
            }
            Self::Not(node) => node.test(row, lookup, !wanted, scratch).map(|truth| !truth),
            Self::All(nodes) => {
                decide(nodes, false, |node| node.test(row, lookup, wanted, scratch))
            }
            Self::Any(nodes) => decide(nodes, true, |node| node.test(row, lookup, wanted, scratch)),
        }
    }
}

/// Returns `decisive` if any node is, and the contrary if all nodes are the contrary.
fn decide<S: Subject>(
    nodes: &[Node<S>],
    decisive: bool,
    mut test: impl FnMut(&Node<S>) -> Option<bool>,
) -> Option<bool> {
    let mut result = Some(!decisive);
    for node in nodes {
        match test(node) {
            Some(truth) if truth == decisive => return Some(decisive),
            Some(_) => {}
            None => result = None,
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use fastproc::{Fields, Process, record::Record};

    use super::*;
    use crate::row::{Lookup, Row};

    fn record() -> Record {
        let mut record = Record::default();
        let identity = &mut record.identity;
        identity.tgid = 42;
        identity.start_ns = 5_000_000_000;
        identity.state_bits = 1;
        identity.num_threads = 3;
        identity.groups = Fields::MEMORY.bits();
        identity.comm = *b"a (b)\nc\xff\0\0\0\0\0\0\0\0";
        identity.tpgid = -1;
        record.memory.vsize = 1 << 30;
        record.memory.rss_anon = 100 << 20;
        record
    }

    fn admits(filter: &str) -> bool {
        let record = record();
        let row = Row::new(Process::new(&record, &[]));
        let host = fastproc::Host::read().expect("a machine");
        let mut lookup = Lookup::new(&host, true).expect("/proc");
        lookup.now_ns = 6_500_000_000;
        let filter: Filter = filter.parse().unwrap_or_else(|error| panic!("{error}"));
        filter.admits(&row, &mut lookup)
    }

    #[test]
    fn numbers_are_compared_in_their_units() {
        for filter in [
            "pid == 42",
            "pid = 0x2a",
            "pid >= 42 && pid <= 42",
            "rss == 100M",
            "rss == 104857600",
            "rss_bytes == 0.09765625GiB",
            "rss < 100.00001M",
            "vsize == 1G",
            "etime == 1.5s",
            "etime == 1.5",
            "etime_ns == 1500000000",
            "etime == 0:01.50",
            "etime > 1s400ms && etime < 00:00:02",
            "rss == 100M && rss != 100.1M && rss <= 100M",
            "etime > 1499999999ns && etime < 1500.1ms && etime < 1m",
            "tpgid == -1",
            "num_threads != 2",
        ] {
            assert!(admits(filter), "{filter}");
            assert!(!admits(&format!("!({filter})")), "!({filter})");
        }
    }

    #[test]
    fn texts_are_compared_byte_by_byte() {
        for filter in [
            "state == S",
            "state == \"S\"",
            r#"comm == "a (b)\nc\xff""#,
            r"comm == 'a (b)\nc\xff'",
            "comm =~ '^a'",
            r"comm =~ '\(b\)'",
            "comm !~ z",
            "comm > a && comm < b",
        ] {
            assert!(admits(filter), "{filter}");
        }
        assert!(!admits("comm == a"));
    }

    #[test]
    fn a_list_equals_each_of_its_numbers() {
        let host = fastproc::Host::read().expect("a machine");
        let mut lookup = Lookup::new(&host, true).expect("/proc");
        let (mut record, pool) = (record(), [(4 << 32) + 24]);
        record.identity.groups |= Fields::CREDENTIALS.bits();
        record.credentials.ngroups = 2;
        let row = Row::new(Process::new(&record, &pool));
        for (filter, expected) in [
            ("groups == 24", true),
            ("groups == '24,4'", true),
            ("groups != 4", false),
            ("groups == 2", false),
        ] {
            let filter: Filter = filter.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(filter.admits(&row, &mut lookup), expected, "{filter:?}");
        }
    }

    #[test]
    fn a_value_equals_what_a_table_shows() {
        let mut record = record();
        record.memory.rss_anon = 13_926;
        record.identity.flags = 0x0040_0140;
        record.identity.state_bits = 0x20;
        record.identity.comm = *b"sh\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let host = fastproc::Host::read().expect("a machine");
        let mut lookup = Lookup::new(&host, true).expect("/proc");
        lookup.now_ns = 54_694_321_000;
        for filter in [
            "rss == 13.6K",
            "rss == 13926",
            "etime == 0:49",
            "etime_ns == 49694321000",
            "flags == 0x400140",
            "flags == 4194624",
            "comm == sh",
            "comm == 'sh <defunct>'",
            "comm =~ '^sh$'",
            "lstart >= 1970-01-01",
        ] {
            let filter: Filter = filter.parse().unwrap_or_else(|error| panic!("{error}"));
            assert!(
                filter.admits(&Row::new(Process::new(&record, &[])), &mut lookup),
                "{filter:?}"
            );
        }
        for filter in [
            "rss != 13.6K",
            "rss == 13.5K",
            "rss > 13.6K",
            "etime == 0:48",
            "comm == 'sh x'",
        ] {
            let filter: Filter = filter.parse().unwrap_or_else(|error| panic!("{error}"));
            assert!(
                !filter.admits(&Row::new(Process::new(&record, &[])), &mut lookup),
                "{filter:?}"
            );
        }
    }

    #[test]
    fn a_signal_has_its_name_with_and_without_a_prefix() {
        let mut exit = fastproc::exits::Exit::default();
        exit.status = Some(9);
        let record = exit.to_record();
        let host = fastproc::Host::read().expect("a machine");
        let mut lookup = Lookup::new(&host, true).expect("/proc");
        let row = Row::ended(
            fastproc::difference::Ended::whole(&exit).change(&record),
            None,
        );
        for (filter, expected) in [
            ("status == KILL", true),
            ("status == SIGKILL", true),
            ("status == 'SIGKILL'", true),
            ("status != SIGKILL", false),
            ("status == SIGTERM", false),
        ] {
            let parsed: Filter = filter.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(parsed.admits(&row, &mut lookup), expected, "{filter}");
        }
        for known in ["0", "255", "SIGSEGV", "\"signal 40\""] {
            let filter = format!("status == {known}");
            assert!(filter.parse::<Filter>().is_ok(), "{filter}");
        }
        for unknown in ["SIGFOO", "FOO", "SIG", "256", "SIGSIGKILL", "SIG9"] {
            let filter = format!("pid > 1 && status != {unknown}");
            let error = filter.parse::<Filter>().expect_err(unknown).to_string();
            assert!(
                error.starts_with("this is neither an exit status"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_state_is_compared_with_a_letter() {
        let error = "state == zombie".parse::<Filter>().expect_err("a word");
        assert!(error.to_string().contains("Z is a zombie"), "{error}");
        assert!("state != Z || state =~ '[RS]'".parse::<Filter>().is_ok());
    }

    #[test]
    fn a_rate_is_none_of_a_single_snapshot() {
        let filter: Filter = "pid > 1 && read/s > 1M".parse().expect("a filter");
        let error = filter
            .check_for_one_snapshot()
            .expect_err("a rate")
            .to_string();
        assert!(
            error.contains("--interval 1") && error.ends_with("\n               ^"),
            "{error}"
        );
        let filter: Filter = "pcpu > 5".parse().expect("a filter");
        assert_eq!(filter.check_for_one_snapshot(), Ok(()));
    }

    #[test]
    fn conditions_are_joined_as_in_c() {
        assert!(admits("pid == 1 && pid == 2 || pid == 42"));
        assert!(!admits("pid == 42 && (pid == 2 || pid == 1)"));
        assert!(admits("pid==42&&!(pid==1)"));
        assert!(admits("!kthread and not coredumping"));
        assert!(admits("kthread == false or kthread"));
    }

    #[test]
    fn unknown_values_match_neither_a_condition_nor_its_negation() {
        assert!(!admits("utime > 1s"));
        assert!(!admits("utime <= 1s"));
        assert!(!admits("!(utime > 1s)"));
        assert!(!admits("utime != 1s") && !admits("!(utime == 1s)"));
        assert!(!admits("utime > 1s && pid == 42"));
        assert!(admits("utime > 1s || pid == 42"));
        assert!(admits("!(utime > 1s && pid == 1)"));
    }

    /// A filter that depends on the missing end would wait for ever.
    #[test]
    fn a_cut_command_line_meets_what_its_end_might_meet() {
        let exit = fastproc::exits::Exit::default();
        let record = exit.to_record();
        let host = fastproc::Host::read().expect("a machine");
        let mut lookup = Lookup::new(&host, true).expect("/proc");
        let change = fastproc::difference::Ended::whole(&exit).change(&record);
        let mut admits = |text: &str, cut| {
            let filter: Filter = text.parse().unwrap_or_else(|error| panic!("{error}"));
            let line = fastproc::Cmdline {
                bytes: b"java\0-cp\0a",
                cut,
            };
            filter.admits(&Row::ended(change, Some(line)), &mut lookup)
        };
        for filter in [
            "cmdline =~ Main",
            "cmdline =~ 'Main$'",
            "cmdline !~ Main",
            "!(cmdline =~ Main)",
            "cmdline =~ 'a$' && cmdline !~ 'a$'",
            "cmdline == 'java -cp a.jar'",
            "cmdline != 'java -cp a.jar'",
            "cmdline > 'java -cp a.jar' && cmdline < 'java -cp a.jar'",
            "cmdline =~ Main && cmdline_cut",
            "cmdline =~ java",
        ] {
            assert!(admits(filter, true), "{filter}");
        }
        // What is there decides.
        for filter in [
            "cmdline !~ java",
            "!(cmdline =~ java)",
            "cmdline == 'java -cp'",
            "cmdline == 'java -cp b'",
            "cmdline > python",
            "cmdline =~ Main && pid == 1",
            "cmdline =~ Main && !cmdline_cut",
        ] {
            assert!(!admits(filter, true), "{filter}");
        }
        for filter in ["cmdline =~ Main", "cmdline != 'java -cp a'", "cmdline_cut"] {
            assert!(!admits(filter, false), "{filter}");
        }
        assert!(admits("cmdline =~ ' a$'", false));
    }

    #[test]
    fn the_groups_of_all_conditions_are_needed() {
        let filter: Filter = "!(rss > 1 || user == root) && pid > 1"
            .parse()
            .expect("a filter");
        assert_eq!(filter.needs(), Fields::MEMORY | Fields::USERS);
    }
}
