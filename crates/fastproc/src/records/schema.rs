//! The description of records as data: names, offsets, types, units and meanings of all members.
//!
//! Generated from `bpf/record.h`, as the structures of [`record`] are. A reader in another language or another process
//! needs it to interpret the bytes of a record.
//!
//! ```
//! for field in fastproc::schema::RECORD.fields() {
//!     println!("{:>4} {:?} {} ({:?}): {}", field.offset, field.type_of, field.path, field.unit, field.doc);
//! }
//! ```

use std::fmt;

pub use crate::records::layout::text as layout;
use crate::records::{fields::Fields, record};

/// A [`Record`](record::Record): one process.
pub static RECORD: &Structure = &record::RECORD_SCHEMA;

/// A [`ThreadRecord`](record::ThreadRecord): one thread.
pub static THREAD: &Structure = &record::THREAD_RECORD_SCHEMA;

/// An [`ExitRecord`](record::ExitRecord): an exited process, in the form in which a service sends it to its readers.
pub static EXIT: &Structure = &record::EXIT_RECORD_SCHEMA;

/// A structure that C and Rust lay out alike, without padding.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Structure {
    /// Its name, as in `memory_details`.
    pub name: &'static str,
    /// Its name in C, as in `fp_memory_details`.
    pub c_name: &'static str,
    /// Size in bytes.
    pub size: usize,
    /// What it describes.
    pub doc: &'static str,
    /// Its members, in the order of their offsets.
    pub members: &'static [Member],
}

/// A member of a structure.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// Its name, in C and in Rust.
    pub name: &'static str,
    /// Bytes from the beginning of the structure.
    pub offset: usize,
    /// Its type.
    pub type_of: Type,
    /// The unit of its number.
    pub unit: Unit,
    /// Who may see it. For a structure its own members decide.
    pub shown: Shown,
    /// How a process's value derives from its threads, if it belongs to a group of a process.
    pub threads: Option<Threads>,
    /// The bits that mark it as unknown, if it may be.
    pub unknown: Option<u64>,
    /// Whether it is internal to the record's structure.
    pub is_inner: bool,
    /// Its meaning.
    pub doc: &'static str,
}

/// The type of a member. Numbers have the byte order of the machine.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// An unsigned number of 8 bits.
    U8,
    /// An unsigned number of 32 bits.
    U32,
    /// A signed number of 32 bits.
    I32,
    /// An unsigned number of 64 bits.
    U64,
    /// A signed number of 64 bits.
    I64,
    /// This many bytes: a name of any bytes but NUL, up to the first NUL.
    Chars(usize),
    /// This many values of another type.
    Array(&'static Type, usize),
    /// Another structure.
    Structure(&'static Structure),
}

impl Type {
    /// Bytes of a value.
    pub const fn size(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U32 | Self::I32 => 4,
            Self::U64 | Self::I64 => 8,
            Self::Chars(count) => count,
            Self::Array(element, count) => element.size() * count,
            Self::Structure(structure) => structure.size,
        }
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U8 => f.write_str("u8"),
            Self::U32 => f.write_str("u32"),
            Self::I32 => f.write_str("i32"),
            Self::U64 => f.write_str("u64"),
            Self::I64 => f.write_str("i64"),
            Self::Chars(count) => write!(f, "char[{count}]"),
            Self::Array(element, count) => write!(f, "{element:?}[{count}]"),
            Self::Structure(structure) => f.write_str(structure.name),
        }
    }
}

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// A plain count, or a set of bits, an id or an address.
    None,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
}

/// To whom the kernel shows a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// Every user.
    Public,
    /// Every user, in whole clock ticks: a duration.
    Ticks,
    /// Every user, in whole clock ticks of the time since boot.
    BootTicks,
    /// Users who could trace the process.
    Tracers,
    /// No user: the member is not published.
    Nobody,
}

/// How a value of a process derives from its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threads {
    /// The kernel keeps one value for the process, or for all its threads together.
    Process,
    /// It is the value of the leading thread.
    Leader,
    /// It is the sum over exited and living threads.
    Sum,
}

/// A number or name in a record, at any depth.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// The names from the outermost structure down to it, as in `memory.vsize`.
    pub path: String,
    /// Bytes from the beginning of the outermost structure.
    pub offset: usize,
    /// Its type: never a structure.
    pub type_of: Type,
    /// The unit of its number.
    pub unit: Unit,
    /// The group that it belongs to; `None`: it is always present.
    pub group: Option<Fields>,
    /// Who may see it.
    pub shown: Shown,
    /// How a process's value derives from its threads, if it belongs to a group of a process.
    pub threads: Option<Threads>,
    /// The bits that mark it as unknown, if it may be.
    pub unknown: Option<u64>,
    /// Whether it is internal to the record's structure.
    pub is_inner: bool,
    /// Its meaning.
    pub doc: &'static str,
}

impl Structure {
    /// All numbers and names in it, including those of inner structures, except those that are shown to no user.
    pub fn fields(&self) -> Vec<Field> {
        let mut fields = Vec::new();
        self.add_fields("", 0, None, &mut fields);
        fields.retain(|field| field.shown != Shown::Nobody);
        fields
    }

    fn add_fields(&self, path: &str, start: usize, group: Option<Fields>, fields: &mut Vec<Field>) {
        for member in self.members {
            let path = format!("{path}{}", member.name);
            let offset = start + member.offset;
            if let Type::Structure(structure) = member.type_of {
                // A part of a record is present if the group of its name is.
                let group = group.or_else(|| Fields::from_name(&member.name.to_uppercase()));
                structure.add_fields(&format!("{path}."), offset, group, fields);
                continue;
            }
            fields.push(Field {
                path,
                offset,
                type_of: member.type_of,
                unit: member.unit,
                group,
                shown: member.shown,
                threads: member.threads,
                unknown: member.unknown,
                is_inner: member.is_inner,
                doc: member.doc,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::{
        Btf, HasSize,
        types::{MemberAttr, Struct},
    };

    use super::*;
    use crate::{cgroups, counters, exits, files, kernel::walk, source::bpf};

    /// This crate's build parses the description, clang the headers: both must agree.
    #[test]
    fn clang_lays_the_structures_out_as_they_are_described() {
        let of_tasks = [record::STRUCTURES, bpf::run::STRUCTURES].concat();
        // The service makes exit records, not a program.
        let of_tasks: Vec<_> = of_tasks.into_iter().filter(|of| *of != EXIT).collect();
        let tasks = walk::OBJECTS.map(|object| {
            let is_iterator = object.type_names().contains(&"bpf_iter__task");
            // Only the iterator keeps the order of pids.
            let has = |of: &&Structure| is_iterator || of.c_name != "fp_position";
            let of_object = of_tasks.iter().copied().filter(has);
            (object, of_object.collect::<Vec<_>>())
        });
        let of_cgroups = [cgroups::record::STRUCTURES, cgroups::layout::STRUCTURES].concat();
        let others = [
            (&counters::OBJECT, counters::STRUCTURES.to_vec()),
            (&exits::OBJECT, exits::STRUCTURES.to_vec()),
            (&cgroups::OBJECT, of_cgroups),
            (&files::OBJECT, files::layout::STRUCTURES.to_vec()),
        ];
        for (object, structures) in tasks.into_iter().chain(others) {
            let btf = Btf::from_raw("object", object.bytes)
                .expect("it has types")
                .expect("it has types");
            for ours in structures {
                let name = ours.c_name;
                let c: Struct<'_> = btf
                    .type_by_name(name)
                    .unwrap_or_else(|| panic!("{name} is not in the object"));
                assert_eq!(c.size(), ours.size, "{name}");
                assert_eq!(c.len(), ours.members.len(), "{name}");
                for (theirs, member) in c.iter().zip(ours.members) {
                    let place = format!("{name}.{}", member.name);
                    assert_eq!(
                        theirs.name.and_then(|name| name.to_str()),
                        Some(member.name),
                        "{place}"
                    );
                    let MemberAttr::Normal { offset } = theirs.attr else {
                        panic!("{place} is a bit-field");
                    };
                    assert_eq!(offset as usize, 8 * member.offset, "{place}");
                    let next = c.iter().find_map(|other| match other.attr {
                        MemberAttr::Normal { offset: next } if next > offset => {
                            Some(next as usize / 8)
                        }
                        _ => None,
                    });
                    assert_eq!(
                        next.unwrap_or(ours.size) - member.offset,
                        member.type_of.size(),
                        "{place}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_field_of_a_record_has_its_group_unit_and_meaning() {
        let fields = RECORD.fields();
        let find = |path: &str| {
            let field = fields.iter().find(|field| field.path == path);
            field.unwrap_or_else(|| panic!("{path} is not there"))
        };
        let rss = find("memory.rss_anon");
        assert_eq!(rss.group, Some(Fields::MEMORY));
        assert_eq!((rss.unit, rss.type_of), (Unit::Bytes, Type::U64));
        assert_eq!(
            rss.offset,
            std::mem::offset_of!(record::Record, memory.rss_anon)
        );
        assert_eq!(find("identity.start_ns").unit, Unit::Nanoseconds);
        assert_eq!(find("identity.comm").type_of, Type::Chars(16));
        assert_eq!(find("cgroup.id").group, Some(Fields::CGROUP));
        for field in fields.iter().chain(&THREAD.fields()).chain(&EXIT.fields()) {
            assert!(!field.doc.is_empty(), "{} says nothing", field.path);
            assert_eq!(
                field.path.ends_with("_ns") && field.type_of == Type::U64,
                field.unit == Unit::Nanoseconds,
                "{}",
                field.path
            );
        }
        let always = |path: &str| path.starts_with("identity.") || path.starts_with("name.");
        for field in &fields {
            assert_eq!(field.group.is_none(), always(&field.path), "{}", field.path);
        }
    }
}
