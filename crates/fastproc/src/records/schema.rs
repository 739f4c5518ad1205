//! What a record is made of, as data: names, offsets, types, units and meaning of all members.
//!
//! Made from `bpf/record.h`, as the structures of [`record`] are. It is what a reader in another language
//! or in another process needs to make sense of the bytes of a record.
//!
//! ```
//! for field in fastproc::schema::RECORD.fields() {
//!     println!("{:>4} {:?} {} ({:?}): {}", field.offset, field.type_of, field.path, field.unit, field.doc);
//! }
//! ```

use std::fmt;

use crate::records::{fields::Fields, record};
pub use crate::records::{layout::text as layout, translation::Translation};

/// A [`Record`](record::Record): one process.
pub static RECORD: &Structure = &record::RECORD_SCHEMA;

/// A [`ThreadRecord`](record::ThreadRecord): one thread.
pub static THREAD: &Structure = &record::THREAD_RECORD_SCHEMA;

/// An [`ExitRecord`](record::ExitRecord): a process that has ended, as a service hands it to its readers.
pub static EXIT: &Structure = &record::EXIT_RECORD_SCHEMA;

/// A structure that C and Rust lay out alike, without padding.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Structure {
    /// Its name, as in `memory_details`.
    pub name: &'static str,
    /// Its name in C, as in `fp_memory_details`.
    pub c_name: &'static str,
    /// Bytes.
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
    /// What its number counts.
    pub unit: Unit,
    /// Who may see it. Of a structure its own members say so.
    pub shown: Shown,
    /// How it comes from threads, in a group of a process.
    pub threads: Option<Threads>,
    /// The bits that say that it is not known, if it may be.
    pub unknown: Option<u64>,
    /// Whether it says how a record is put together.
    pub is_inner: bool,
    /// What it means.
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
    /// So many bytes: a name of any bytes but NUL, up to the first NUL.
    Chars(usize),
    /// So many of another type.
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

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Things, or it is a set of bits, an id or an address.
    None,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
}

/// Whom the kernel shows a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shown {
    /// Everybody.
    Public,
    /// Everybody, in whole clock ticks: a time that was spent.
    Ticks,
    /// Everybody, in whole clock ticks of the time since boot.
    BootTicks,
    /// Those who could trace the process.
    Tracers,
    /// Nobody: nothing is said of it.
    Nobody,
}

/// How a value of a process comes from its threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threads {
    /// The kernel keeps one for the process, or for all its threads together.
    Process,
    /// It is that of the leading thread.
    Leader,
    /// It is the sum of what ended threads have left and of that of each living thread.
    Sum,
}

/// A number or name in a record, however deep it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Field {
    /// Names from the outermost structure to it, as in `memory.vsize`.
    pub path: String,
    /// Bytes from the beginning of the outermost structure.
    pub offset: usize,
    /// Its type: never a structure.
    pub type_of: Type,
    /// What its number counts.
    pub unit: Unit,
    /// The group that it belongs to; none: it is always there.
    pub group: Option<Fields>,
    /// Who may see it.
    pub shown: Shown,
    /// How it comes from threads, in a group of a process.
    pub threads: Option<Threads>,
    /// The bits that say that it is not known, if it may be.
    pub unknown: Option<u64>,
    /// Whether it says how a record is put together.
    pub is_inner: bool,
    /// What it means.
    pub doc: &'static str,
}

impl Structure {
    /// All numbers and names in it, those of the structures in it included, but for what is shown to nobody.
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
                // A part of a record is there if the group of its name is.
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
    use crate::{cgroups, counters, exits, kernel::walk, source::bpf};

    /// The description is read by this crate's build, the headers by clang: both must have understood the same.
    #[test]
    fn clang_lays_the_structures_out_as_they_are_described() {
        let of_tasks = [record::STRUCTURES, bpf::run::STRUCTURES].concat();
        // The service makes those, not a program.
        let of_tasks: Vec<_> = of_tasks.into_iter().filter(|of| *of != EXIT).collect();
        // Only the other walk remembers anything beside a record.
        let beside = ["fp_place", "fp_proof"];
        let of_iterator = of_tasks.iter().filter(|of| !beside.contains(&of.c_name));
        let of_iterator: Vec<_> = of_iterator.copied().collect();
        let tasks = walk::OBJECTS.map(|object| {
            let is_iterator = object.type_names().contains(&"bpf_iter__task");
            let structures = if is_iterator { &of_iterator } else { &of_tasks };
            (object, structures.clone())
        });
        let others = [
            (&counters::OBJECT, counters::STRUCTURES.to_vec()),
            (&exits::OBJECT, exits::STRUCTURES.to_vec()),
            (
                &cgroups::OBJECT,
                [cgroups::record::STRUCTURES, cgroups::layout::STRUCTURES].concat(),
            ),
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
