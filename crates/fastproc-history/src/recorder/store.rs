//! Rows of a table in little memory: for each key the bytes of what changed from row to row.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::cells::{Cell, EVERYWHERE, Row};
use crate::{
    rows::{Cells, Columns},
    table::{Kind, Table},
};

/// What rows are sorted by before their time.
pub type Key = (i64, i64);

/// Bytes that a key takes besides those of its rows.
const OF_KEY: usize = 96;

/// The machine's boot that rows belong to.
#[derive(Clone, Debug)]
pub struct Boot {
    /// `/proc/sys/kernel/random/boot_id`.
    pub id: Arc<str>,
    /// Its time, in microseconds since 1970.
    pub time: i64,
}

/// Rows of a table, sorted by key and time.
#[derive(Debug)]
pub struct Store {
    table: &'static Table,
    boot: Boot,
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, i64>,
    series: BTreeMap<Key, Series>,
    rows: usize,
    bytes: usize,
}

/// The rows of a key.
///
/// A row is the time since the row before (or since 1970) and whether it is the first one, a set of the columns that
/// changed, a set of those among them that are null now, and the differences of the others to the row before, in which
/// null counts as 0. A text is its number.
#[derive(Debug, Default)]
struct Series {
    time: i64,
    bytes: Vec<u8>,
}

impl Store {
    /// No rows.
    pub fn new(table: &'static Table, boot: Boot) -> Self {
        // A set is one number.
        debug_assert!(table.columns.len() - EVERYWHERE <= 64, "{}", table.name);
        Self {
            table,
            boot,
            texts: Vec::new(),
            numbers: HashMap::new(),
            series: BTreeMap::new(),
            rows: 0,
            bytes: 0,
        }
    }

    /// The table.
    pub fn table(&self) -> &'static Table {
        self.table
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// About how many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a row, later than those under this key. `before` is the row that was pushed last under it, if that is known.
    pub fn push(&mut self, key: Key, time: i64, before: Option<&Row>, now: &Row) {
        let series = self.series.entry(key).or_default();
        let is_new = series.bytes.is_empty();
        let before = before.filter(|_| !is_new);
        let had = series.bytes.capacity();
        let bytes = &mut series.bytes;
        let begins_anew = u64::from(before.is_none());
        put(folded(time - series.time) << 1 | begins_anew, bytes);
        series.time = time;
        let is_changed = |at: &usize| before.map_or(&Cell::Null, |row| &row[*at]) != &now[*at];
        let changed = (0..now.len()).filter(is_changed);
        let set = |set, at: usize| set | 1 << at;
        put(changed.clone().fold(0, set), bytes);
        let nulls = changed.clone().filter(|&at| now[at] == Cell::Null);
        put(nulls.fold(0, set), bytes);
        for at in changed {
            let last = match before.map(|row| &row[at]) {
                Some(Cell::Number(last)) => *last,
                _ => 0,
            };
            match &now[at] {
                Cell::Null => (),
                Cell::Number(number) => put(fold(number.wrapping_sub(last)), bytes),
                Cell::Text(text) => put(
                    number_of(text, &mut self.texts, &mut self.numbers, &mut self.bytes),
                    bytes,
                ),
            }
        }
        self.bytes += bytes.capacity() - had + if is_new { OF_KEY } else { 0 };
        self.rows += 1;
    }

    /// Calls `each` for every row, with its time and the value of a column: a number, or that of a text.
    fn each(&self, at: usize, mut each: impl FnMut(i64, Option<i64>)) {
        let is_text = self.table.columns[at].kind == Kind::Text;
        // The columns that all tables have are in no set.
        let wanted = at.checked_sub(EVERYWHERE).unwrap_or(64);
        for series in self.series.values() {
            let mut input = series.bytes.as_slice();
            let (mut time, mut value) = (0, None::<i64>);
            while !input.is_empty() {
                let first = take(&mut input);
                time += unfolded(first >> 1);
                if first & 1 == 1 {
                    value = None;
                }
                let changed = take(&mut input);
                let nulls = take(&mut input);
                let mut given = changed & !nulls;
                if wanted < 64 && nulls >> wanted & 1 == 1 {
                    value = None;
                }
                while given != 0 {
                    let column = given.trailing_zeros() as usize;
                    given &= given - 1;
                    let number = take(&mut input);
                    if column != wanted {
                        continue;
                    }
                    value = Some(if is_text {
                        number.cast_signed()
                    } else {
                        value.unwrap_or(0).wrapping_add(unfold(number))
                    });
                }
                each(time, value);
            }
        }
    }
}

impl Columns for Store {
    fn rows(&self) -> usize {
        self.rows
    }

    fn column(&self, at: usize) -> Cells {
        let mut numbers = Vec::new();
        let mut texts = Vec::new();
        let column = &self.table.columns[at];
        match column.kind {
            Kind::Text => texts.reserve_exact(self.rows),
            _ => numbers.reserve_exact(self.rows),
        }
        match column.name {
            "time" => self.each(at, |time, _| numbers.push(Some(time))),
            "boot_time" => numbers.resize(self.rows, Some(self.boot.time)),
            "boot_id" => texts.resize(self.rows, Some((&*self.boot.id).into())),
            _ => self.each(at, |_, value| match column.kind {
                Kind::Text => {
                    texts.push(value.map(|number| (&*self.texts[number as usize]).into()));
                }
                _ => numbers.push(value),
            }),
        }
        match column.kind {
            Kind::Text => Cells::Texts(texts),
            _ => Cells::Numbers(numbers),
        }
    }
}

fn number_of(
    text: &Arc<str>,
    texts: &mut Vec<Arc<str>>,
    numbers: &mut HashMap<Arc<str>, i64>,
    bytes: &mut usize,
) -> u64 {
    if let Some(number) = numbers.get(text) {
        return number.cast_unsigned();
    }
    let number = texts.len() as i64;
    *bytes += text.len() + 64;
    texts.push(Arc::clone(text));
    numbers.insert(Arc::clone(text), number);
    number.cast_unsigned()
}

const SECOND: i64 = 1_000_000;

/// A difference of times as a small number: mostly it is in whole seconds.
fn folded(time: i64) -> u64 {
    if time % SECOND == 0 {
        fold(time / SECOND) << 1
    } else {
        fold(time) << 1 | 1
    }
}

fn unfolded(number: u64) -> i64 {
    let time = unfold(number >> 1);
    if number & 1 == 0 { time * SECOND } else { time }
}

/// A number near zero as a small one.
fn fold(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

fn unfold(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

fn put(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Takes what [`put`] has put.
fn take(input: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = input.split_first() {
        *input = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::table::PROCESSES;

    fn boot() -> Boot {
        Boot {
            id: "boot".into(),
            time: 7,
        }
    }

    fn cell(at: usize, number: Option<i64>) -> Cell {
        match (number, PROCESSES.columns[at].kind) {
            (None, _) => Cell::Null,
            (Some(number), Kind::Text) => Cell::Text(number.to_string().into()),
            (Some(number), _) => Cell::Number(number),
        }
    }

    proptest! {
        #[test]
        fn rows_come_back_sorted(
            pushed in prop::collection::vec(
                (0..3_i64, 0..3_000_000_i64, prop::collection::vec((0..32_usize, any::<Option<i64>>()), 0..5)),
                1..40,
            ),
        ) {
            let mut store = Store::new(&PROCESSES, boot());
            let mut rows: BTreeMap<i64, Vec<(i64, Row)>> = BTreeMap::new();
            let mut now = 1_700_000_000_000_000;
            for (key, after, changes) in pushed {
                now += after;
                let of_key = rows.entry(key).or_default();
                let before = of_key.last().map(|(_, row)| row.clone());
                let none = || vec![Cell::Null; PROCESSES.columns.len() - EVERYWHERE];
                let mut row = before.clone().unwrap_or_else(none);
                for (at, number) in changes {
                    if at < row.len() {
                        row[at] = cell(at + EVERYWHERE, number);
                    }
                }
                store.push((key, 0), now, before.as_ref(), &row);
                of_key.push((now, row));
            }
            let sorted: Vec<_> = rows.into_values().flatten().collect();
            prop_assert_eq!(store.rows(), sorted.len());
            let times = sorted.iter().map(|(time, _)| Some(*time)).collect();
            prop_assert_eq!(store.column(0), Cells::Numbers(times));
            for at in EVERYWHERE..PROCESSES.columns.len() {
                let column = sorted.iter().map(|(_, row)| &row[at - EVERYWHERE]);
                let same = match store.column(at) {
                    Cells::Numbers(values) => values.iter().zip(column).all(|(value, cell)| {
                        value.map_or(Cell::Null, Cell::Number) == *cell
                    }),
                    Cells::Texts(values) => values.iter().zip(column).all(|(value, cell)| {
                        value.as_deref().map_or(Cell::Null, |text| Cell::Text(text.into())) == *cell
                    }),
                };
                prop_assert!(same, "{}", PROCESSES.columns[at].name);
            }
        }
    }
}
