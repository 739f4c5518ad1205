//! Generates code for the groups of a record: `Fields`, the accessors of a process, copies of groups, sums of threads.

use std::fmt::Write;

use super::{
    header::{Header, Member, Presence, Shown, Structure, Threads, View},
    rust::{Style, constant_name, member_type, rust_name},
};

/// The group that has no structure in the records, and its description.
const THREADS: (&str, &str) = (
    "threads",
    "Every thread on its own: [`ThreadRecord`](crate::record::ThreadRecord).",
);

/// A structure in a record.
struct Part<'a> {
    member: &'a Member,
    structure: &'a Structure,
}

impl Part<'_> {
    fn is_group(&self) -> bool {
        self.member.tags.presence == Some(Presence::Group)
    }

    /// Its name as a constant of `Fields`.
    fn constant(&self) -> String {
        self.member.name.to_uppercase()
    }
}

fn parts<'a>(header: &'a Header, view: &View) -> Vec<Part<'a>> {
    let record = find(header, view.record);
    let parts = record.members.iter().map(|member| Part {
        member,
        structure: find(header, member.structure().unwrap_or_default()),
    });
    parts.collect()
}

fn find<'a>(header: &'a Header, name: &str) -> &'a Structure {
    let found = header.find(name);
    found.unwrap_or_else(|| panic!("the header has no struct {name:?}"))
}

/// Returns `Fields`, which `fields.rs` includes.
pub fn write_fields(header: &Header, style: &Style, view: &View) -> String {
    let View {
        record: of_record,
        path,
        noun,
        ..
    } = view;
    let (mut constants, mut names) = (String::new(), String::new());
    let mut count = 0;
    let parts = parts(header, view);
    let mut left: Vec<_> = parts.iter().filter(|part| part.is_group()).collect();
    // In the order of the bits, like the constants.
    for constant in &header.constants {
        let name = constant_name(&constant.name, style);
        let doc = match left.iter().position(|part| part.constant() == name) {
            Some(at) => {
                let part = left.remove(at);
                let rust = rust_name(&part.structure.name, style);
                format!("{} [`{rust}`]({path}::{rust}).", part.member.doc)
            }
            None if name == THREADS.0.to_uppercase() => THREADS.1.into(),
            None => continue,
        };
        let _ = writeln!(
            constants,
            "        /// {doc}\n        const {name} = record::{name};"
        );
        let shown = name.to_lowercase().replace('_', "-");
        let _ = writeln!(names, "        ({shown:?}, Self::{name}),");
        count += 1;
    }
    if let Some(part) = left.first() {
        panic!(
            "{of_record}: the group {} has no bit FP_{}",
            part.member.name,
            part.constant()
        );
    }
    format!(
        "bitflags::bitflags! {{\n    \
             /// Groups of fields. A snapshot holds [`Identity`]({path}::Identity) of every {noun} and the groups that\n    \
             /// were asked for; nothing else is read.\n    \
             #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n    pub struct Fields: u32 {{\n{constants}    }}\n}}\n\n\
         impl Fields {{\n    /// The groups with their names, in the order of the bits.\n    \
             pub const NAMES: [(&'static str, Self); {count}] = [\n{names}    ];\n}}\n"
    )
}

/// Returns the accessors of the type that lends a record; its file includes them.
pub fn write_accessors(header: &Header, style: &Style, view: &View) -> String {
    let View { path, of, .. } = view;
    let mut methods = String::new();
    for part in parts(header, view) {
        let Part { member, structure } = &part;
        let (name, rust) = (&member.name, rust_name(&structure.name, style));
        let is_hidden = member.tags.shown == Some(Shown::Tracers);
        if part.is_group() {
            let (why, filter) = if is_hidden {
                (
                    ", or the kernel hid it from this reader",
                    ".filter(|_| self.record.identity.masked == 0)",
                )
            } else {
                ("", "")
            };
            let constant = part.constant();
            let _ = writeln!(
                methods,
                "    /// {} `None`: it was not requested, or is not known{why}.\n    \
                     pub fn {name}(self) -> Option<&'a {path}::{rust}> {{\n        \
                     self.group(Fields::{constant}, &self.record.{name}){filter}\n    }}\n",
                member.doc
            );
        }
        // If a whole group is hidden, its own accessor covers that.
        let of_all = |member: &&Member| member.tags.shown == Some(Shown::Tracers);
        if structure.members.iter().all(|member| of_all(&member)) {
            continue;
        }
        for one in structure.members.iter().filter(of_all) {
            if one.tags.unknown.is_some() {
                continue;
            }
            let (type_name, one_name) = (member_type(one, style), &one.name);
            let group = if part.is_group() {
                format!("{name}()?")
            } else {
                format!("record.{name}")
            };
            let _ = writeln!(
                methods,
                "    /// {} `None`: {}the kernel hid it from this reader.\n    \
                     pub fn {one_name}(self) -> Option<{type_name}> {{\n        let value = self.{group}.{one_name};\n        \
                     (self.record.identity.masked == 0).then_some(value)\n    }}\n",
                one.doc,
                if part.is_group() {
                    "it was not requested, or "
                } else {
                    ""
                },
            );
        }
    }
    format!("impl<'a> {of}<'a> {{\n{methods}}}\n")
}

/// Returns the methods of whole records, which `record.rs` includes.
pub fn write_records(header: &Header, style: &Style, view: &View) -> String {
    let (mut copies, mut sums) = (String::new(), String::new());
    let thread = find(header, "fp_thread_record");
    for part in parts(header, view) {
        let Part { member, structure } = &part;
        let (name, constant) = (&member.name, part.constant());
        let copy = format!("self.{name} = from.{name};");
        let _ = if part.is_group() {
            writeln!(
                copies,
                "        if groups.contains(crate::Fields::{constant}) {{\n            {copy}\n        }}"
            )
        } else {
            writeln!(copies, "        {copy}")
        };
        let summed = structure
            .members
            .iter()
            .filter(|one| one.tags.threads == Some(Threads::Sum));
        let mut body = String::new();
        for one in summed {
            let is_lost = one.tags.unknown.as_deref() == Some("-1");
            let one = &one.name;
            let has = |list: &Structure, name: &str| list.members.iter().any(|of| of.name == *name);
            let place = if has(thread, name) {
                format!("{name}.{one}")
            } else {
                one.clone()
            };
            assert!(
                has(thread, name) || has(thread, one),
                "record.h: {name}.{one} is a sum, but fp_thread_record has no {one}"
            );
            // A sum is unknown if a part is.
            let _ = if is_lost {
                writeln!(
                    body,
                    "        self.{one} = match (self.{one}, thread.{place}) {{\n            \
                         (u64::MAX, _) | (_, u64::MAX) => u64::MAX,\n            (sum, part) => sum + part,\n        }};"
                )
            } else {
                writeln!(body, "        self.{one} += thread.{place};")
            };
        }
        if !body.is_empty() {
            let rust = rust_name(&structure.name, style);
            let _ = writeln!(
                sums,
                "impl {rust} {{\n    /// Adds what a thread has.\n    \
                     pub(crate) const fn add_thread(&mut self, thread: &ThreadRecord) {{\n{body}    }}\n}}\n"
            );
        }
    }
    format!(
        "impl Record {{\n    /// Takes these groups, and what is in every record, from another record. The others stay as they are, and are not\n    \
             /// named.\n    pub const fn copy_groups(&mut self, from: &Self, groups: crate::Fields) {{\n{copies}        \
             self.identity.groups = groups.bits();\n    }}\n}}\n\n{sums}"
    )
}
