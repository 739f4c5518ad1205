//! `--filter`: which rows to show.

mod date;
mod decimal;
mod hints;
mod literal;
mod parse;
pub(crate) mod time;
mod unescape;

use std::{cmp::Ordering, str::FromStr};

use fastproc::Fields;
use regex::bytes::Regex;

pub(crate) use self::decimal::LiteralError;
use self::literal::Literal;
pub use self::{date::parse_as_of as parse_date, parse::FilterError};
use crate::{
    field::{self, Field, UnknownField},
    row::{Lookup, Row},
    value::{Unit, Value},
};

/// A field that a filter can compare, of processes or of cgroups.
pub(crate) trait Named: Copy {
    fn find(name: &str) -> Result<Self, UnknownField>;
    fn name(self) -> &'static str;
    fn unit(self) -> Unit;
    fn key(self) -> String;
    fn is_rate(self) -> bool;
}

/// A row, from which a filter takes values.
pub(crate) trait Values<F> {
    fn value(&mut self, field: F) -> Value<'_>;
    fn write_for_table(&mut self, field: F, to: &mut Vec<u8>);
}

/// A condition on a process or thread. Its result is true, false or unknown.
#[derive(Clone, Debug)]
pub struct Filter(Condition<&'static Field>);

/// A condition on fields.
#[derive(Clone, Debug)]
pub(crate) struct Condition<F> {
    root: Node<F>,
    /// The error if it is used on a single snapshot: it compares a rate.
    rate: Option<FilterError>,
}

#[derive(Clone, Debug)]
enum Node<F> {
    /// A field whose value is true or false.
    Truth(F),
    Compare(F, Operator, Literal),
    Match(F, Regex),
    Not(Box<Node<F>>),
    All(Vec<Node<F>>),
    Any(Vec<Node<F>>),
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

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        text.parse().map(Self)
    }
}

impl Filter {
    /// The groups of fields that the condition needs.
    pub fn needs(&self) -> Fields {
        let fields = self.fields().into_iter();
        fields.fold(Fields::empty(), |needs, field| needs | field.needs)
    }

    /// The fields that the condition compares.
    pub fn fields(&self) -> Vec<&'static Field> {
        self.0.fields()
    }

    /// Checks that the filter can be used on a single snapshot, that is, it compares no rates.
    ///
    /// # Errors
    /// If the filter compares a rate, which needs an interval between two snapshots.
    pub fn check_for_one_snapshot(&self) -> Result<(), FilterError> {
        self.0.check_for_one_snapshot()
    }

    /// Whether the row meets the condition for certain.
    pub fn admits(&self, row: &Row<'_>, lookup: &mut Lookup) -> bool {
        let mut scratch = std::mem::take(&mut lookup.scratch);
        let admitted = self.0.admits(&mut OfProcess { row, lookup }, &mut scratch);
        lookup.scratch = scratch;
        admitted
    }
}

impl Named for &'static Field {
    fn find(name: &str) -> Result<Self, UnknownField> {
        field::find(name)
    }

    fn name(self) -> &'static str {
        self.name
    }

    fn unit(self) -> Unit {
        self.unit
    }

    fn key(self) -> String {
        Field::key(self)
    }

    fn is_rate(self) -> bool {
        self.is_rate
    }
}

/// The row of a process or thread.
struct OfProcess<'a, 'r> {
    row: &'a Row<'r>,
    lookup: &'a mut Lookup,
}

impl Values<&'static Field> for OfProcess<'_, '_> {
    fn value(&mut self, field: &'static Field) -> Value<'_> {
        field.value(self.row, self.lookup)
    }

    fn write_for_table(&mut self, field: &'static Field, to: &mut Vec<u8>) {
        field.write_for_table(self.row, self.lookup, to);
    }
}

impl<F: Named> FromStr for Condition<F> {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let (root, rate) = parse::parse(text)?;
        Ok(Self { root, rate })
    }
}

impl<F: Copy> Condition<F> {
    pub(crate) fn fields(&self) -> Vec<F> {
        let mut fields = Vec::new();
        self.root.fields(&mut fields);
        fields
    }

    pub(crate) fn check_for_one_snapshot(&self) -> Result<(), FilterError> {
        self.rate.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn admits(&self, row: &mut impl Values<F>, scratch: &mut Vec<u8>) -> bool {
        self.root.test(row, true, scratch) == Some(true)
    }
}

impl<F: Copy> Node<F> {
    fn fields(&self, to: &mut Vec<F>) {
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
    fn test(&self, row: &mut impl Values<F>, wanted: bool, scratch: &mut Vec<u8>) -> Option<bool> {
        match self {
            Self::Truth(field) => row.value(*field).truth(),
            Self::Compare(field, Operator::Equal, literal) => {
                literal.equals(*field, row, wanted, scratch)
            }
            Self::Compare(field, Operator::NotEqual, literal) => {
                let equals = literal.equals(*field, row, !wanted, scratch);
                equals.map(|equals| !equals)
            }
            Self::Compare(field, operator, literal) => {
                let value = row.value(*field);
                if literal.may_begin_with(&value, scratch) {
                    return Some(wanted);
                }
                let ordering = literal.compare(&value, scratch)?;
                Some(operator.holds(ordering))
            }
            Self::Match(field, pattern) => {
                let value = row.value(*field);
                let is_cut = value.is_cut();
                let text = value.text(scratch)?;
                let found = pattern.find(text);
                if is_cut && found.is_none_or(|found| found.end() == text.len()) {
                    return Some(wanted);
                }
                Some(found.is_some())
            }
            Self::Not(node) => node.test(row, !wanted, scratch).map(|truth| !truth),
            Self::All(nodes) => decide(nodes, false, |node| node.test(row, wanted, scratch)),
            Self::Any(nodes) => decide(nodes, true, |node| node.test(row, wanted, scratch)),
        }
    }
}

/// Returns `decisive` if any node is, and the contrary if all nodes are the contrary.
fn decide<F>(
    nodes: &[Node<F>],
    decisive: bool,
    mut test: impl FnMut(&Node<F>) -> Option<bool>,
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
    use fastproc::{Process, record::Record};

    use super::*;

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
            "etime == 0:49.69",
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
            "etime == 0:49.68",
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
