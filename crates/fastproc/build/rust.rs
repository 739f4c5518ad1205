//! Generates Rust from a header: constants, structures, and the table of their members.

use std::fmt::Write;

use super::header::{Constant, Header, Member, Shown, Structure, Threads, View};

/// How a header is converted to Rust.
pub struct Style {
    /// The prefix of its names in C, in small letters.
    pub prefix: &'static str,
    /// The view of the record, if the header describes one. Then structures and their table are public. Constants are
    /// always private to the crate.
    pub view: Option<View>,
}

impl Style {
    fn is_public(&self) -> bool {
        self.view.is_some()
    }

    fn visibility(&self) -> &'static str {
        if self.is_public() {
            "pub"
        } else {
            "pub(crate)"
        }
    }

    /// What is public has a description, as in `fastproc::schema`. The other tables exist only for the test that compares
    /// them with what clang made of the header.
    fn table(&self) -> &'static str {
        match &self.view {
            Some(view) if view.has_threads() => "",
            Some(_) => "#[allow(dead_code, reason = \"the test needs all\")]\n",
            None => "#[cfg(test)]\n",
        }
    }

    /// A line of documentation.
    fn doc(&self, text: &str) -> String {
        if self.is_public() && !text.is_empty() {
            format!("/// {text}\n")
        } else {
            String::new()
        }
    }
}

/// Returns the text of a Rust file to include.
pub fn write(header: &Header, style: &Style) -> String {
    let mut out = String::new();
    for constant in &header.constants {
        out += &write_constant(header, constant, style);
    }
    for structure in &header.structures {
        out += &write_structure(header, structure, style);
        out += &write_table(header, structure, style);
    }
    let tables: Vec<_> = header
        .structures
        .iter()
        .map(|structure| format!("&{}", table_name(structure, style)))
        .collect();
    let _ = writeln!(
        out,
        "#[cfg(test)]\npub(crate) static STRUCTURES: &[&crate::schema::Structure] = &[{}];",
        tables.join(", ")
    );
    out
}

fn write_constant(header: &Header, constant: &Constant, style: &Style) -> String {
    let name = constant_name(&constant.name, style);
    let type_name = if header.is_length(&constant.name) {
        "usize"
    } else if constant.value.contains("ULL") {
        "u64"
    } else {
        "u32"
    };
    let value = expression(&constant.value, style);
    let unused = "#[allow(dead_code, reason = \"some are for the programs alone\")]";
    format!("{unused}\npub(crate) const {name}: {type_name} = {value};\n\n")
}

fn write_structure(header: &Header, structure: &Structure, style: &Style) -> String {
    let (name, visibility) = (rust_name(&structure.name, style), style.visibility());
    let mut out = style.doc(&structure.doc);
    let (mut sizes, mut initial) = (Vec::new(), String::new());
    let (mut accessors, mut setters) = (String::new(), String::new());
    let is_plain = |member: &Member| member.length.is_none() && member.tags.unknown.is_none();
    let all_zero = structure.members.iter().all(is_plain);
    // Users must accept new members.
    let open = if style.is_public() {
        "#[non_exhaustive]\n"
    } else {
        ""
    };
    let default = if all_zero { "Default, " } else { "" };
    let view = style.view.as_ref();
    if view.is_some_and(|view| view.hidden.contains(&&*structure.name)) {
        out += "#[doc(hidden)]\n";
    }
    let _ = write!(
        out,
        "#[repr(C)]\n#[derive(Clone, Copy, Debug, {default}PartialEq, Eq)]\n{open}\
         #[allow(clippy::struct_field_names, reason = \"they are the C structure's\")]\n{visibility} struct {name} {{\n"
    );
    for member in &structure.members {
        let type_name = member_type(member, style);
        let unknown = unknown(header, member);
        // A member that may be unknown is read through its accessor.
        let is_hidden = style.is_public() && member.tags.shown == Some(Shown::Nobody);
        let visibility = if is_hidden || unknown.is_some() {
            "pub(crate)"
        } else {
            visibility
        };
        let inner = if style.is_public() && member.tags.is_inner {
            "#[doc(hidden)]\n"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "{}{inner}{visibility} {}: {type_name},",
            style.doc(&member.doc),
            member.name
        );
        sizes.push(format!("size_of::<{type_name}>()"));
        let value = match (length(member, style), &unknown) {
            (Some(length), _) => format!("[0; {length}]"),
            (None, Some(unknown)) => unknown.in_rust.clone(),
            (None, None) if member.is_structure() => format!("{type_name}::default()"),
            (None, None) => "0".into(),
        };
        let _ = writeln!(initial, "            {}: {value},", member.name);
        if let Some(unknown) = &unknown {
            let (accessor, setter) = write_accessors(member, &type_name, &unknown.in_rust);
            accessors += &accessor;
            setters += &setter;
        }
    }
    if !accessors.is_empty() {
        accessors = format!(
            "impl {name} {{\n{accessors}}}\n\n#[doc(hidden)]\nimpl {name} {{\n{setters}}}\n\n"
        );
    }
    let sizes = sizes.join(" + ");
    if !all_zero {
        let _ = write!(
            accessors,
            "#[allow(clippy::derivable_impls, reason = \"not for long arrays\")]\nimpl Default for {name} {{\n    \
                 fn default() -> Self {{\n        Self {{\n{initial}        }}\n    }}\n}}\n\n"
        );
    }
    let _ = write!(
        out,
        "}}\n\n{accessors}\
         const _: () = {{\n    assert!(size_of::<{name}>() == {sizes}, \"no padding\");\n}};\n\n\
         // SAFETY: `#[repr(C)]`, of integers only; asserted above to have no padding.\n\
         unsafe impl crate::base::plain::Plain for {name} {{}}\n\n"
    );
    out
}

/// The accessors of a member that may be unknown: what returns it, and what sets it.
fn write_accessors(member: &Member, type_name: &str, unknown: &str) -> (String, String) {
    let (name, doc) = (&member.name, &member.doc);
    let accessor = format!(
        "    /// {doc} `None`: it is not known.\n    pub const fn {name}(&self) -> Option<{type_name}> {{\n        \
             if self.{name} == {unknown} {{ None }} else {{ Some(self.{name}) }}\n    }}\n\n"
    );
    let setter = format!(
        "    /// Sets what [`{name}`](Self::{name}) returns.\n    \
             pub const fn set_{name}(&mut self, value: Option<{type_name}>) {{\n        self.{name} = match value {{\n            \
             Some(value) => value,\n            None => {unknown},\n        }};\n    }}\n\n"
    );
    (accessor, setter)
}

/// The value of a member that means "not known".
struct Unknown {
    in_rust: String,
    /// Its bits, as a literal.
    bits: String,
}

fn unknown(header: &Header, member: &Member) -> Option<Unknown> {
    let word = member.tags.unknown.as_deref()?;
    let constant = header
        .constants
        .iter()
        .find(|constant| constant.name == word);
    let word = constant.map_or(word, |constant| &constant.value);
    let Ok(value) = word.parse::<i64>() else {
        panic!(
            "{}: no number says that it is unknown: {word:?}",
            member.name
        );
    };
    let (rust, _) = scalar(&member.type_name);
    let in_rust = if value == -1 && rust.starts_with('u') {
        format!("{rust}::MAX")
    } else {
        value.to_string()
    };
    // A negative value stands for all bits set.
    let bits = match rust {
        "u8" if value < 0 => "0xff".into(),
        "u32" | "i32" if value < 0 => "0xffff_ffff".into(),
        _ if value < 0 => "0xffff_ffff_ffff_ffff".into(),
        _ => value.to_string(),
    };
    assert!(
        (-1..10_000).contains(&value),
        "{}: write {value} with separators",
        member.name
    );
    Some(Unknown { in_rust, bits })
}

fn write_table(header: &Header, structure: &Structure, style: &Style) -> String {
    let rust = rust_name(&structure.name, style);
    let mut out = format!(
        "{}pub(crate) static {}: crate::schema::Structure = crate::schema::Structure {{\n    \
             name: {:?},\n    c_name: {:?},\n    size: size_of::<{rust}>(),\n    doc: {:?},\n    members: &[\n",
        style.table(),
        table_name(structure, style),
        structure
            .name
            .strip_prefix(style.prefix)
            .unwrap_or(&structure.name),
        structure.name,
        structure.doc
    );
    for member in &structure.members {
        let element = match member.type_name.strip_prefix("struct ") {
            Some(name) => format!(
                "Structure(&{}_SCHEMA)",
                name.strip_prefix(style.prefix)
                    .unwrap_or(name)
                    .to_uppercase()
            ),
            None => scalar(&member.type_name).1.into(),
        };
        let element = format!("crate::schema::Type::{element}");
        let type_of = match (member.type_name.as_str(), length(member, style)) {
            ("char", Some(length)) => format!("crate::schema::Type::Chars({length})"),
            (_, Some(length)) => format!("crate::schema::Type::Array(&{element}, {length})"),
            (_, None) => element,
        };
        let _ = write!(
            out,
            "        crate::schema::Member {{\n            name: {:?},\n            \
                 offset: std::mem::offset_of!({rust}, {}),\n            type_of: {type_of},\n            \
                 unit: crate::schema::Unit::{},\n            shown: crate::schema::Shown::{},\n            \
                 threads: {},\n            unknown: {},\n            is_inner: {},\n            doc: {:?},\n        }},\n",
            member.name,
            member.name,
            unit(&member.type_name),
            shown(member),
            threads(member),
            unknown(header, member)
                .map_or("None".into(), |unknown| format!("Some({})", unknown.bits)),
            member.tags.is_inner,
            member.doc
        );
    }
    out += "    ],\n};\n\n";
    out
}

/// A type of C: its names in Rust, and in the table.
fn scalar(name: &str) -> (&'static str, &'static str) {
    match name {
        "u8" | "char" => ("u8", "U8"),
        "u32" => ("u32", "U32"),
        "s32" => ("i32", "I32"),
        "u64" | "fp_ns" | "fp_bytes" => ("u64", "U64"),
        "s64" => ("i64", "I64"),
        _ => panic!("no member may be of the type {name}"),
    }
}

fn unit(type_name: &str) -> &'static str {
    match type_name {
        "fp_ns" => "Nanoseconds",
        "fp_bytes" => "Bytes",
        _ => "None",
    }
}

/// For a structure its members decide.
fn shown(member: &Member) -> &'static str {
    match member.tags.shown {
        Some(Shown::Public) => "Public",
        None if member.is_structure() => "Public",
        Some(Shown::Ticks) => "Ticks",
        Some(Shown::BootTicks) => "BootTicks",
        Some(Shown::Tracers) => "Tracers",
        Some(Shown::Nobody) | None => "Nobody",
    }
}

fn threads(member: &Member) -> &'static str {
    match member.tags.threads {
        Some(Threads::Process) => "Some(crate::schema::Threads::Process)",
        Some(Threads::Leader) => "Some(crate::schema::Threads::Leader)",
        Some(Threads::Sum) => "Some(crate::schema::Threads::Sum)",
        None => "None",
    }
}

pub fn member_type(member: &Member, style: &Style) -> String {
    let element = match member.type_name.strip_prefix("struct ") {
        Some(name) => rust_name(name, style),
        None => scalar(&member.type_name).0.into(),
    };
    match length(member, style) {
        Some(length) => format!("[{element}; {length}]"),
        None => element,
    }
}

fn length(member: &Member, style: &Style) -> Option<String> {
    member
        .length
        .as_deref()
        .map(|length| expression(length, style))
}

/// `fp_memory_details`: `MemoryDetails`.
pub fn rust_name(c: &str, style: &Style) -> String {
    let words = c.strip_prefix(style.prefix).unwrap_or(c).split('_');
    words
        .map(|word| word[..1].to_uppercase() + &word[1..])
        .collect()
}

fn table_name(structure: &Structure, style: &Style) -> String {
    let name = structure
        .name
        .strip_prefix(style.prefix)
        .unwrap_or(&structure.name);
    format!("{}_SCHEMA", name.to_uppercase())
}

pub fn constant_name<'a>(c: &'a str, style: &Style) -> &'a str {
    c.strip_prefix(style.prefix.to_uppercase().as_str())
        .unwrap_or(c)
}

/// An expression of C in Rust: literals lose their suffixes, and constants their prefix.
fn expression(c: &str, style: &Style) -> String {
    let words = c.split_inclusive(|of: char| !(of.is_ascii_alphanumeric() || of == '_'));
    let rust: String = words
        .map(|word| {
            let end = word
                .find(|of: char| !(of.is_ascii_alphanumeric() || of == '_'))
                .unwrap_or(word.len());
            let (word, rest) = word.split_at(end);
            if word.starts_with(|of: char| of.is_ascii_digit()) {
                word.trim_end_matches(['u', 'U', 'l', 'L']).to_owned() + rest
            } else {
                constant_name(word, style).to_owned() + rest
            }
        })
        .collect();
    let outer = rust
        .strip_prefix('(')
        .and_then(|rust| rust.strip_suffix(')'));
    outer
        .filter(|inner| !inner.contains(['(', ')']))
        .map_or(rust.clone(), str::to_owned)
}
