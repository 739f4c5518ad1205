//! `--sort` and `--top`: which rows come first.

use std::{cmp::Ordering, ops::Range, str::FromStr};

use fastproc::Snapshot;

use crate::{
    field::{Field, Processes, Subject, UnknownField},
    row::Row,
    value::Value,
};

/// The keys to sort by. The first key decides, the next one among equal values.
#[derive(Clone, Debug)]
pub struct Sort<S: Subject = Processes> {
    keys: Vec<Key<S>>,
}

#[derive(Clone, Copy, Debug)]
struct Key<S: Subject> {
    field: &'static Field<S>,
    descending: bool,
}

impl<S: Subject> FromStr for Sort<S> {
    type Err = UnknownField;

    /// Parses names of fields separated by commas; a minus sign before a name means largest first.
    fn from_str(text: &str) -> Result<Self, UnknownField> {
        let key = |text: &str| {
            let (name, descending) = match text.strip_prefix('-') {
                Some(name) => (name, true),
                None => (text.strip_prefix('+').unwrap_or(text), false),
            };
            let field = Field::find(name)?;
            Ok(Key { field, descending })
        };
        let keys = text.split(',').map(key).collect::<Result<_, _>>()?;
        Ok(Self { keys })
    }
}

impl<S: Subject> Sort<S> {
    /// The first field, and whether its largest value comes first.
    pub fn first(&self) -> (&'static Field<S>, bool) {
        (self.keys[0].field, self.keys[0].descending)
    }

    /// The fields of the keys.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field<S>> {
        self.keys.iter().map(|key| key.field)
    }

    /// The field and whether its largest value comes first, if there is one key, whose values are numbers.
    pub fn by_number(&self) -> Option<(&'static Field<S>, bool)> {
        match self.keys.as_slice() {
            [key] if key.field.kind().is_number() => Some((key.field, key.descending)),
            _ => None,
        }
    }

    /// The groups of fields that the keys need.
    pub fn needs(&self) -> S::Fields {
        self.fields().map(|field| field.needs).collect()
    }
}

/// A list of rows, stored or made on demand. Storing thousands costs more than making each twice.
pub trait RowList<'a, S: Subject = Processes> {
    /// The number of rows.
    fn len(&self) -> usize;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row at this index, which is less than [`len`](Self::len).
    fn row(&self, place: usize) -> S::Row<'a>;
}

impl<'a, S: Subject> RowList<'a, S> for [S::Row<'a>] {
    fn len(&self) -> usize {
        self.len()
    }

    fn row(&self, place: usize) -> S::Row<'a> {
        self[place]
    }
}

/// All processes of a snapshot, without changes.
impl<'a> RowList<'a> for Snapshot<'a> {
    fn len(&self) -> usize {
        self.len()
    }

    fn row(&self, place: usize) -> Row<'a> {
        Row::new(self.at(place).expect("a place of the list"))
    }
}

/// The rank of a row by one key.
#[derive(Clone, Debug)]
struct Rank {
    /// `None`: the value is not known.
    rank: Option<u64>,
    /// The place of the value in the buffer of texts, if it is a text: the rank has only its first bytes.
    text: Range<usize>,
}

/// The sort key for rows by a single number: whether it is unknown, the number, the ids; then the index of the row.
type Number = ((bool, u64), (u32, u32), u32);

/// A row to be sorted by a number that is known already.
#[derive(Clone, Copy, Debug)]
pub struct Ranked {
    /// [`Value::rank`](crate::Value::rank) of the number.
    pub rank: Option<u64>,
    /// [`Subject::place`].
    pub ids: (u32, u32),
    /// What [`Sorter::order_ranked`] returns for the row.
    pub at: u32,
}

/// Appends the text that decides the order of a row in a field. Returns false, and appends nothing, if the value decides.
pub type Shown<S> =
    fn(&Field<S>, &<S as Subject>::Row<'_>, &mut <S as Subject>::Lookup, &mut Vec<u8>) -> bool;

/// Sorts rows. Its memory is used again for the next snapshot.
#[derive(Debug, Default)]
pub struct Sorter<S: Subject = Processes> {
    shown: Option<Shown<S>>,
    /// Indices of rows, in order.
    order: Vec<u32>,
    /// All values are fetched before the first comparison: a value that changes during sorting would break the
    /// ordering.
    ranks: Vec<Rank>,
    texts: Vec<u8>,
    scratch: Vec<u8>,
    numbers: Vec<Number>,
}

impl<S: Subject> Sorter<S> {
    /// Returns the first `top` rows in the order of `sort`. Rows with unknown values come last, and equal ones in the
    /// order of their ids.
    pub fn first<'s, 'a, R: RowList<'a, S> + ?Sized>(
        &'s mut self,
        sort: &Sort<S>,
        top: usize,
        rows: &'s R,
        lookup: &mut S::Lookup,
    ) -> impl ExactSizeIterator<Item = S::Row<'a>> + use<'s, 'a, S, R> {
        let order = self.order(sort, top, rows, lookup);
        order.iter().map(move |&at| rows.row(at as usize))
    }

    /// Like [`first`](Self::first), but returns indices into `rows`.
    pub fn order<'a, R: RowList<'a, S> + ?Sized>(
        &mut self,
        sort: &Sort<S>,
        top: usize,
        rows: &R,
        lookup: &mut S::Lookup,
    ) -> &[u32] {
        if let Some((field, descending)) = sort.by_number() {
            let ranked = (0..rows.len()).map(|at| {
                let row = rows.row(at);
                Ranked {
                    rank: field.value(&row, lookup).rank(),
                    ids: S::place(&row),
                    at: at as u32,
                }
            });
            return self.order_ranked(descending, ranked, |_| top);
        }
        self.order.clear();
        self.rank(sort, rows, lookup);
        let Self {
            order,
            ranks,
            texts,
            ..
        } = self;
        order.extend(0..rows.len() as u32);
        let ids = |at: u32| S::place(&rows.row(at as usize));
        let compare = |&a: &u32, &b: &u32| {
            let ranks = |at: u32| &ranks[at as usize * sort.keys.len()..][..sort.keys.len()];
            compare(sort, ranks(a), ranks(b), texts).then_with(|| ids(a).cmp(&ids(b)))
        };
        keep_first(order, top, compare);
        order
    }

    fn rank<'a, R: RowList<'a, S> + ?Sized>(
        &mut self,
        sort: &Sort<S>,
        rows: &R,
        lookup: &mut S::Lookup,
    ) {
        self.ranks.clear();
        self.texts.clear();
        for at in 0..rows.len() {
            let row = rows.row(at);
            for key in &sort.keys {
                let start = self.texts.len();
                let is_shown = |shown: Shown<S>| shown(key.field, &row, lookup, &mut self.texts);
                let rank = if self.shown.is_some_and(is_shown) {
                    Value::Text(&self.texts[start..]).rank()
                } else {
                    let value = key.field.value(&row, lookup);
                    if let Some(text) = value.text(&mut self.scratch) {
                        self.texts.extend_from_slice(text);
                    }
                    value.rank()
                };
                self.ranks.push(Rank {
                    rank,
                    text: start..self.texts.len(),
                });
            }
        }
    }
}

/// Keeps the first `top` items, sorted.
fn keep_first<T>(items: &mut Vec<T>, top: usize, mut compare: impl FnMut(&T, &T) -> Ordering) {
    if top < items.len() {
        if top > 0 {
            items.select_nth_unstable_by(top - 1, &mut compare);
        }
        items.truncate(top);
    }
    items.sort_unstable_by(compare);
}

fn compare<S: Subject>(sort: &Sort<S>, a: &[Rank], b: &[Rank], texts: &[u8]) -> Ordering {
    let by_key = |((key, a), b): ((&Key<S>, &Rank), &Rank)| match (a.rank, b.rank) {
        (Some(rank_a), Some(rank_b)) => {
            let ordering = rank_a
                .cmp(&rank_b)
                .then_with(|| texts[a.text.clone()].cmp(&texts[b.text.clone()]));
            if key.descending {
                ordering.reverse()
            } else {
                ordering
            }
        }
        (a, b) => a.is_none().cmp(&b.is_none()),
    };
    sort.keys
        .iter()
        .zip(a)
        .zip(b)
        .map(by_key)
        .find(|ordering| ordering.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[doc(hidden)]
impl<S: Subject> Sorter<S> {
    /// Sorts by texts as they are shown elsewhere than in a table of fastproc.
    pub fn by_shown(shown: Shown<S>) -> Self {
        Self {
            shown: Some(shown),
            ..Self::default()
        }
    }

    /// Sorts by one number, the usual case: the keys are adjacent in memory. Returns [`Ranked::at`] of the first rows, of
    /// as many as `top` says for the number of rows.
    pub fn order_ranked(
        &mut self,
        descending: bool,
        ranked: impl Iterator<Item = Ranked>,
        top: impl FnOnce(usize) -> usize,
    ) -> &[u32] {
        self.numbers.clear();
        self.numbers.extend(ranked.map(|Ranked { rank, ids, at }| {
            let number = match rank {
                Some(rank) if descending => (false, !rank),
                Some(rank) => (false, rank),
                None => (true, 0),
            };
            (number, ids, at)
        }));
        let top = top(self.numbers.len());
        keep_first(&mut self.numbers, top, Ord::cmp);
        self.order.clear();
        self.order.extend(self.numbers.iter().map(|&(.., at)| at));
        &self.order
    }
}

#[cfg(test)]
mod tests {
    use fastproc::{Fields, Process, record::Record};

    use super::*;
    use crate::row::Lookup;

    fn record(pid: u32, comm: &[u8], rss: Option<u64>) -> Record {
        let mut record = Record::default();
        record.identity.tgid = pid;
        record.identity.groups = rss.map_or(0, |_| Fields::MEMORY.bits());
        record.memory.rss_anon = rss.unwrap_or_default();
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
        let row = |record| Row::new(Process::new(record, &[]));
        let rows: Vec<_> = records.iter().map(row).collect();
        let host = fastproc::Host::read().expect("a machine");
        let mut lookup = Lookup::new(&host, true).expect("/proc");
        let sort: Sort = sort.parse().expect("fields");
        let mut sorter = Sorter::default();
        sorter
            .first(&sort, top, rows.as_slice(), &mut lookup)
            .map(|row| row.tid())
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
    fn the_next_key_decides_between_equals() {
        assert_eq!(sorted("-rss,-pid", 9), [5, 3, 4, 1, 2]);
        assert_eq!(sorted("rss,-comm", 9), [1, 4, 5, 3, 2]);
        assert_eq!(sorted("kthread,+comm", 2), [3, 5]);
        assert!("rss,".parse::<Sort>().is_err());
        assert_eq!(
            "-rss,rsss"
                .parse::<Sort>()
                .expect_err("misspelt")
                .to_string(),
            "there is no field 'rsss'; did you mean 'rss'?"
        );
    }

    #[test]
    fn sorts_by_the_shown_text_if_there_is_one() {
        let records = [record(1, b"b", None), record(2, b"a", None)];
        let row = |record| Row::new(Process::new(record, &[]));
        let rows: Vec<_> = records.iter().map(row).collect();
        let host = fastproc::Host::read().expect("a machine");
        let mut lookup = Lookup::recorded(host, 0);
        let mut sorter = Sorter::by_shown(|field: &Field, row, _, to| {
            to.extend((field.name == "comm").then(|| row.process.name()[0] ^ 0xff));
            field.name == "comm"
        });
        for (sort, first) in [("comm", 1), ("-comm", 2), ("pid", 1)] {
            let sort = sort.parse().expect("a field");
            let mut first_of = sorter.first(&sort, 2, rows.as_slice(), &mut lookup);
            assert_eq!(first_of.next().map(|row| row.tid()), Some(first));
        }
    }

    #[test]
    fn only_the_first_are_returned() {
        assert_eq!(sorted("-rss", 3), [3, 5, 4]);
        assert_eq!(sorted("comm", 4), [3, 5, 4, 2]);
        assert!(sorted("pid", 0).is_empty());
    }
}
