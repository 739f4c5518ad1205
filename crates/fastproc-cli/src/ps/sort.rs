//! `--sort` and `--top`: which rows come first.

use std::{cmp::Ordering, ops::Range, str::FromStr};

use super::{
    field::{self, Field, UnknownField},
    subject::{Lookup, Subject},
};

/// What to sort by.
#[derive(Clone, Copy, Debug)]
pub struct Sort {
    /// The field.
    pub field: &'static Field,
    descending: bool,
}

impl FromStr for Sort {
    type Err = UnknownField;

    fn from_str(text: &str) -> Result<Self, UnknownField> {
        let (name, descending) = match text.strip_prefix('-') {
            Some(name) => (name, true),
            None => (text.strip_prefix('+').unwrap_or(text), false),
        };
        Ok(Self {
            field: field::find(name)?,
            descending,
        })
    }
}

/// A row to be: where its subject stands, and how it ranks.
#[derive(Clone, Debug)]
struct Ranked {
    /// `None`: the value is not known.
    rank: Option<u64>,
    at: u32,
    /// Where the value stands among the texts, if it is one: its rank has the first bytes only.
    text: Range<usize>,
}

/// Puts rows into their order. Its memory is used again for the next snapshot.
#[derive(Debug, Default)]
pub struct Sorter {
    ranked: Vec<Ranked>,
    /// All values are fetched before the first is compared: one that changes meanwhile would make an order that is none.
    texts: Vec<u8>,
    scratch: Vec<u8>,
}

impl Sorter {
    /// Returns the first `top` subjects in the order of `sort`; those whose value is not known come last, and equal
    /// ones in the order of their ids.
    pub fn first<'s, 'a>(
        &'s mut self,
        sort: Sort,
        top: usize,
        subjects: &'s [Subject<'a>],
        lookup: &mut Lookup,
    ) -> impl ExactSizeIterator<Item = &'s Subject<'a>> + use<'s, 'a> {
        self.rank(sort.field, subjects, lookup);
        let Self { ranked, texts, .. } = self;
        let order = |a: &Ranked, b: &Ranked| compare(sort, a, b, subjects, texts);
        if top < ranked.len() {
            if top > 0 {
                ranked.select_nth_unstable_by(top - 1, order);
            }
            ranked.truncate(top);
        }
        ranked.sort_unstable_by(order);
        ranked
            .iter()
            .map(move |ranked| &subjects[ranked.at as usize])
    }

    fn rank(&mut self, field: &Field, subjects: &[Subject<'_>], lookup: &mut Lookup) {
        self.ranked.clear();
        self.texts.clear();
        for (at, subject) in subjects.iter().enumerate() {
            let value = field.value(subject, lookup);
            let start = self.texts.len();
            if let Some(text) = value.text(&mut self.scratch) {
                self.texts.extend_from_slice(text);
            }
            self.ranked.push(Ranked {
                rank: value.rank(),
                at: at as u32,
                text: start..self.texts.len(),
            });
        }
    }
}

fn compare(sort: Sort, a: &Ranked, b: &Ranked, subjects: &[Subject<'_>], texts: &[u8]) -> Ordering {
    let by_value = match (a.rank, b.rank) {
        (Some(rank_a), Some(rank_b)) => {
            let ordering = rank_a
                .cmp(&rank_b)
                .then_with(|| texts[a.text.clone()].cmp(&texts[b.text.clone()]));
            if sort.descending {
                ordering.reverse()
            } else {
                ordering
            }
        }
        (a, b) => a.is_none().cmp(&b.is_none()),
    };
    let ids = |ranked: &Ranked| subjects[ranked.at as usize].ids();
    by_value.then_with(|| ids(a).cmp(&ids(b)))
}

#[cfg(test)]
mod tests {
    use fastproc::{
        Fields, Process,
        record::{Identity, Memory, Record},
    };

    use super::*;

    fn record(pid: u32, comm: &[u8], rss: Option<u64>) -> Record {
        let mut record = Record {
            identity: Identity {
                tgid: pid,
                groups: rss.map_or(0, |_| Fields::MEMORY.bits()),
                ..Identity::default()
            },
            memory: Memory {
                rss_anon: rss.unwrap_or_default(),
                ..Memory::default()
            },
            ..Record::default()
        };
        record.identity.comm[..comm.len()].copy_from_slice(comm);
        record
    }

    fn sorted(sort: &str, top: usize) -> Vec<u32> {
        let records = [
            record(1, b"kworker/0:1", Some(0)),
            record(2, b"kworker/0:0", None),
            record(3, b"a", Some(70)),
            record(4, b"kworker/", Some(50)),
            record(5, b"b", Some(70)),
        ];
        let subject = |record| Subject {
            process: Process::new(record, &[]),
            thread: None,
            change: None,
        };
        let subjects: Vec<_> = records.iter().map(subject).collect();
        let host = fastproc::Host::read().expect("a machine");
        let mut lookup = Lookup::new(&host, true).expect("/proc");
        let sort = sort.parse().expect("a field");
        let mut sorter = Sorter::default();
        sorter
            .first(sort, top, &subjects, &mut lookup)
            .map(Subject::tid)
            .collect()
    }

    #[test]
    fn rows_are_sorted_either_way() {
        assert_eq!(sorted("pid", 9), [1, 2, 3, 4, 5]);
        assert_eq!(sorted("-pid", 9), [5, 4, 3, 2, 1]);
        assert_eq!(sorted("rss", 9), [1, 4, 3, 5, 2]);
        assert_eq!(sorted("-rss", 9), [3, 5, 4, 1, 2]);
        assert_eq!(sorted("comm", 9), [3, 5, 4, 2, 1]);
        assert_eq!(sorted("-comm", 9), [1, 2, 4, 5, 3]);
    }

    #[test]
    fn only_the_first_are_returned() {
        assert_eq!(sorted("-rss", 3), [3, 5, 4]);
        assert_eq!(sorted("comm", 4), [3, 5, 4, 2]);
        assert!(sorted("pid", 0).is_empty());
    }
}
