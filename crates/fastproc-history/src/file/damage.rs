//! Files that are damaged by chance, and files whose CRCs are right and whose numbers are not.

use std::sync::LazyLock;

use proptest::{prelude::*, sample::Index};

use super::{
    sums::{Block, TAIL},
    tests::{all, cases, file, rows, written},
    *,
};
use crate::{
    rows::Rows,
    table::{EVENTS, PROCESSES, Table},
};

/// A file, what is in it, and where its row groups begin and end.
struct Whole {
    rows: Vec<Rows>,
    bytes: Vec<u8>,
    places: Vec<std::ops::Range<usize>>,
}

static WHOLE: LazyLock<[Whole; 2]> = LazyLock::new(|| {
    let events = vec![
        rows(&EVENTS, 40, 5),
        rows(&EVENTS, 1, 7),
        rows(&EVENTS, 300, 9),
    ];
    let processes = vec![rows(&PROCESSES, 20, 5), rows(&PROCESSES, 200, 7)];
    [events, processes].map(|rows| {
        let bytes = written(&rows);
        let file = File::open(file(&bytes), rows[0].table).expect("a file");
        let places = (0..rows.len()).map(|group| file.place(group)).collect();
        Whole {
            rows,
            bytes,
            places,
        }
    })
});

#[derive(Clone, Debug)]
enum Fault {
    Bit(Index, u8),
    Byte(Index, u8),
    End(Index),
    Hole(Index, Index),
    Twice(Index, Index),
}

impl Fault {
    fn seed(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        let range = |one: &Index, other: &Index| {
            let (one, other) = (one.index(length), other.index(length));
            one.min(other)..one.max(other)
        };
        match self {
            Self::Bit(at, bit) => bytes[at.index(length)] ^= 1 << (bit & 7),
            Self::Byte(at, byte) => bytes[at.index(length)] = *byte,
            Self::End(at) => bytes.truncate(at.index(length)),
            Self::Hole(one, other) => drop(bytes.drain(range(one, other))),
            Self::Twice(one, other) => {
                let part = bytes[range(one, other)].to_vec();
                bytes.splice(range(one, other).start..range(one, other).start, part);
            }
        }
    }
}

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let at = any::<Index>;
    let fault = prop_oneof![
        6 => (at(), any::<u8>()).prop_map(|(at, bit)| Fault::Bit(at, bit)),
        3 => (at(), any::<u8>()).prop_map(|(at, byte)| Fault::Byte(at, byte)),
        1 => at().prop_map(Fault::End),
        1 => (at(), at()).prop_map(|(one, other)| Fault::Hole(one, other)),
        1 => (at(), at()).prop_map(|(one, other)| Fault::Twice(one, other)),
    ];
    prop::collection::vec(fault, 1..4)
}

/// Reads everything, and copies it.
fn use_all(bytes: &[u8], table: &'static Table) {
    let Ok(opened) = File::open(file(bytes), table) else {
        return;
    };
    let all: Vec<_> = table.columns.iter().map(|column| column.name).collect();
    for group in 0..opened.groups() {
        let (_, _) = (opened.span(group), opened.rows(group));
        let _ = opened.read(group, &all);
    }
    let mut writer = Writer::new(Vec::new(), table).expect("a file");
    if (0..opened.groups()).all(|group| writer.copy_group(&opened, group).is_ok()) {
        let _ = writer.finish();
    }
}

/// Replaces the CRCs by those of the bytes, as who wrote the file can. Row groups are those of the whole file.
fn with_right_sums(whole: &Whole, groups: &[u8], indexes: &[u8], footer: &[u8]) -> Vec<u8> {
    let sum = |range: &std::ops::Range<usize>| {
        format!(
            "{:08x}",
            crc32fast::hash(groups.get(range.clone()).unwrap_or_default())
        )
    };
    let before: String = whole
        .places
        .iter()
        .map(|range| hash(&whole.bytes[range.clone()]))
        .collect();
    let after: String = whole.places.iter().map(sum).collect();
    let mut footer = footer.to_vec();
    let place = footer
        .windows(before.len())
        .position(|bytes| bytes == before.as_bytes());
    if let Some(place) = place {
        footer[place..place + before.len()].copy_from_slice(after.as_bytes());
    }
    let mut tail = (footer.len() as u32).to_le_bytes().to_vec();
    tail.extend(b"PAR1");
    let block = Block::of(groups.len() as u64, indexes, &footer, &tail);
    [groups, indexes, &block.to_bytes(), &footer, &tail].concat()
}

fn hash(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

/// The row groups, the indexes of pages and the footer of a file.
fn parts(whole: &Whole) -> [Vec<u8>; 3] {
    let bytes = &whole.bytes;
    let end = whole.places.last().expect("a row group").end;
    let (rest, tail) = bytes.split_last_chunk::<TAIL>().expect("a footer");
    let footer = u32::from_le_bytes(tail[..4].try_into().expect("four bytes")) as usize;
    let footer_at = rest.len() - footer;
    [
        bytes[..end].to_vec(),
        bytes[end..footer_at - Block::BYTES].to_vec(),
        rest[footer_at..].to_vec(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases(1000)) })]

    #[test]
    fn damage_loses_a_row_group_or_the_file_and_shows_nothing_wrong(which in 0..2_usize, faults in faults()) {
        let whole = &WHOLE[which];
        let table = whole.rows[0].table;
        let mut bytes = whole.bytes.clone();
        for fault in &faults {
            fault.seed(&mut bytes);
        }
        let end = whole.places.last().expect("a row group").end;
        let is_footer_intact = bytes.len() == whole.bytes.len()
            && bytes[end..] == whole.bytes[end..]
            && bytes[..4] == whole.bytes[..4];
        match File::open(file(&bytes), table) {
            Ok(opened) => {
                prop_assert!(is_footer_intact);
                for (group, place) in whole.places.iter().enumerate() {
                    let is_intact = bytes[place.clone()] == whole.bytes[place.clone()];
                    match opened.read(group, &all(table)) {
                        Ok(read) => prop_assert_eq!(&read.columns, &whole.rows[group].columns),
                        Err(Error::Group { .. }) => prop_assert!(!is_intact),
                        Err(error) => prop_assert!(false, "{error}"),
                    }
                }
            }
            Err(_) => prop_assert!(!is_footer_intact),
        }
    }

    #[test]
    fn files_with_right_sums_and_wrong_numbers_cause_no_panic(
        which in 0..2_usize,
        part in prop::sample::select(vec![0, 1, 2, 2]),
        faults in faults(),
    ) {
        let whole = &WHOLE[which];
        let mut parts = parts(whole);
        for fault in &faults {
            fault.seed(&mut parts[part]);
        }
        let [groups, indexes, footer] = &parts;
        use_all(&with_right_sums(whole, groups, indexes, footer), whole.rows[0].table);
    }
}

#[test]
fn a_file_with_members_that_only_a_later_version_writes_is_sealed_nevertheless() {
    let whole = &WHOLE[1];
    let [groups, indexes, mut footer] = parts(whole);
    assert_eq!(footer.pop(), Some(0), "the end of the structure");
    // A number as a member that no version writes.
    footer.extend([0x55, 2, 0]);
    let bytes = with_right_sums(whole, &groups, &indexes, &footer);
    let later = File::open(file(&bytes), &PROCESSES).expect("a file");
    assert!(later.chunks(0).is_err());
    let mut writer = Writer::new(Vec::new(), &PROCESSES).expect("a writer");
    for group in 0..whole.rows.len() {
        let copied = writer.copy_group(&later, group);
        copied.expect("it can be decoded");
    }
    let sealed = writer.finish().expect("it is written");
    let sealed = File::open(file(&sealed), &PROCESSES).expect("a file");
    for (group, rows) in whole.rows.iter().enumerate() {
        let read = sealed.read(group, &all(&PROCESSES)).expect("it is whole");
        assert_eq!(read.columns, rows.columns);
    }
}
