//! `--filter`: which rows to show.

mod literal;
mod parse;

use std::{cmp::Ordering, str::FromStr};

use fastproc::Fields;
use regex::bytes::Regex;

use self::literal::Literal;
pub use self::parse::FilterError;
use super::{
    field::Field,
    subject::{Lookup, Subject},
};

/// A condition that a process or thread meets, or does not, or of which that is not known.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Node,
}

#[derive(Clone, Debug)]
enum Node {
    /// A field that is true or false.
    Truth(&'static Field),
    Compare(&'static Field, Operator, Literal),
    Match(&'static Field, Regex),
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
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
        Ok(Self {
            root: parse::parse(text)?,
        })
    }
}

impl Filter {
    /// The groups of fields that it looks at.
    pub fn needs(&self) -> Fields {
        self.root.needs()
    }

    /// Whether the subject meets the condition for certain.
    pub fn admits(
        &self,
        subject: &Subject<'_>,
        lookup: &mut Lookup,
        scratch: &mut Vec<u8>,
    ) -> bool {
        self.root.test(subject, lookup, scratch) == Some(true)
    }
}

impl Node {
    fn needs(&self) -> Fields {
        match self {
            Self::Truth(field) | Self::Compare(field, ..) | Self::Match(field, _) => field.needs,
            Self::Not(node) => node.needs(),
            Self::All(nodes) | Self::Any(nodes) => nodes
                .iter()
                .fold(Fields::empty(), |needs, node| needs | node.needs()),
        }
    }

    /// `None`: not known. What follows from a value that is not known is not known either, unless the rest decides.
    fn test(
        &self,
        subject: &Subject<'_>,
        lookup: &mut Lookup,
        scratch: &mut Vec<u8>,
    ) -> Option<bool> {
        match self {
            Self::Truth(field) => field.value(subject, lookup).truth(),
            Self::Compare(field, operator, literal) => {
                let ordering = literal.compare(&field.value(subject, lookup), scratch)?;
                Some(operator.holds(ordering))
            }
            Self::Match(field, pattern) => {
                let value = field.value(subject, lookup);
                Some(pattern.is_match(value.text(scratch)?))
            }
            Self::Not(node) => node.test(subject, lookup, scratch).map(|truth| !truth),
            Self::All(nodes) => decide(nodes, false, |node| node.test(subject, lookup, scratch)),
            Self::Any(nodes) => decide(nodes, true, |node| node.test(subject, lookup, scratch)),
        }
    }
}

/// `decisive`, if any node is; the contrary, if all nodes are that.
fn decide(
    nodes: &[Node],
    decisive: bool,
    mut test: impl FnMut(&Node) -> Option<bool>,
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
    use fastproc::{
        Process,
        record::{Identity, Memory, Record},
    };

    use super::*;

    fn record() -> Record {
        Record {
            identity: Identity {
                tgid: 42,
                start_ns: 5_000_000_000,
                state_bits: 1,
                num_threads: 3,
                groups: Fields::MEMORY.bits(),
                comm: *b"a (b)\nc\xff\0\0\0\0\0\0\0\0",
                tpgid: -1,
                ..Identity::default()
            },
            memory: Memory {
                vsize: 1 << 30,
                rss_anon: 100 << 20,
                ..Memory::default()
            },
            ..Record::default()
        }
    }

    fn admits(filter: &str) -> bool {
        let record = record();
        let subject = Subject {
            process: Process::new(&record, &[]),
            thread: None,
            change: None,
        };
        let host = fastproc::Host::read().expect("a machine");
        let mut lookup = Lookup::new(&host, true).expect("/proc");
        lookup.now_ns = 6_500_000_000;
        let filter: Filter = filter.parse().unwrap_or_else(|error| panic!("{error}"));
        filter.admits(&subject, &mut lookup, &mut Vec::new())
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
    fn conditions_are_joined_as_in_c() {
        assert!(admits("pid == 1 && pid == 2 || pid == 42"));
        assert!(!admits("pid == 42 && (pid == 2 || pid == 1)"));
        assert!(admits("pid==42&&!(pid==1)"));
        assert!(admits("!kthread and not coredumping"));
        assert!(admits("kthread == false or kthread"));
    }

    #[test]
    fn what_is_not_known_is_neither_so_nor_otherwise() {
        assert!(!admits("utime > 1s"));
        assert!(!admits("utime <= 1s"));
        assert!(!admits("!(utime > 1s)"));
        assert!(!admits("utime > 1s && pid == 42"));
        assert!(admits("utime > 1s || pid == 42"));
        assert!(admits("!(utime > 1s && pid == 1)"));
    }

    #[test]
    fn the_groups_of_all_conditions_are_needed() {
        let filter: Filter = "!(rss > 1 || user == root) && pid > 1"
            .parse()
            .expect("a filter");
        assert_eq!(filter.needs(), Fields::MEMORY | Fields::CREDENTIALS);
    }
}
