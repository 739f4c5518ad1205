//! Describes the layout of records, for readers that were built with another one.
//!
//! The description is made from [`crate::schema`], as the records are.

use std::{fmt::Write, sync::LazyLock};

use crate::records::schema::{EXIT, Field, RECORD, Structure, THREAD, Type, Unit};

/// Returns the description as text: see `docs/dev/protocol.md`.
///
/// It has a line for each structure and for each of its fields, with columns that are separated by tabs.
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let mut text = String::new();
        for (name, structure) in [("process", RECORD), ("thread", THREAD), ("exit", EXIT)] {
            describe(&mut text, name, structure);
        }
        text
    });
    &TEXT
}

/// The id of this layout. Readers with the same id can use records without translating them.
pub fn id() -> u64 {
    static ID: LazyLock<u64> = LazyLock::new(|| fnv(text().as_bytes()));
    *ID
}

/// FNV-1a.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn describe(text: &mut String, name: &str, structure: &Structure) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "structure\t{name}\t{}", structure.size);
    for field in structure.fields() {
        let [type_of, unit, group] = described(&field);
        let Field { path, offset, .. } = field;
        let _ = writeln!(text, "field\t{path}\t{offset}\t{type_of}\t{unit}\t{group}");
    }
}

/// The properties that must agree for a field to be the same in two layouts: its type, its unit, its group.
pub(super) fn described(field: &Field) -> [String; 3] {
    let unit = match field.unit {
        Unit::None => "-",
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
    };
    let group = field.group.map_or(0, |group| group.bits());
    [type_name(field.type_of), unit.into(), group.to_string()]
}

fn type_name(type_of: Type) -> String {
    match type_of {
        Type::U8 => "u8".into(),
        Type::U32 => "u32".into(),
        Type::I32 => "i32".into(),
        Type::U64 => "u64".into(),
        Type::I64 => "i64".into(),
        Type::Chars(len) => format!("char[{len}]"),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_described_once_and_within_its_structure() {
        let mut size = 0;
        let mut paths = Vec::new();
        let mut structures = 0;
        for line in text().lines() {
            let columns: Vec<&str> = line.split('\t').collect();
            match columns[..] {
                ["structure", _, bytes] => {
                    size = bytes.parse().expect("a number");
                    paths.clear();
                    structures += 1;
                }
                ["field", path, offset, type_of, "-" | "ns" | "bytes", group] => {
                    let offset: usize = offset.parse().expect("a number");
                    let known = ["u8", "u32", "i32", "u64", "i64"].contains(&type_of);
                    assert!(known || type_of.starts_with("char["), "{line}");
                    assert!(offset < size && group.parse::<u32>().is_ok(), "{line}");
                    assert!(!paths.contains(&path.to_owned()), "{line}");
                    paths.push(path.to_owned());
                }
                _ => panic!("{line:?}"),
            }
        }
        assert_eq!(structures, 3);
    }
}
