//! Queries for the running kernel's type information, and the answers.

use std::{
    collections::{HashMap, HashSet},
    io,
    os::fd::OwnedFd,
};

use rustix::fs::{MemfdFlags, memfd_create};

use super::{
    object_file::{FUNCTION_IDS, ObjectFile, TYPE_IDS},
    section::Kind,
};

/// A query.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted<'a> {
    /// The programs whose relocations must be resolved.
    pub(crate) object: Option<&'a ObjectFile>,
    /// Structures, also by the names of types: their sizes, and the offsets of their members.
    pub(crate) structures: &'a [&'a str],
    /// Members, by their paths from a structure: `mm_struct.rss_stat[].count` is a member of each element of an array.
    pub(crate) paths: &'a [&'a str],
    pub(crate) functions: &'a [&'a str],
    /// Enumerators.
    pub(crate) constants: &'a [&'a str],
    /// Whether to list the per-CPU variables.
    pub(crate) percpu: bool,
}

impl<'a> Wanted<'a> {
    /// The structures whose ids the programs need.
    pub(super) fn ids(&self) -> Vec<&'a str> {
        let ids = self.object.map(|object| object.members(TYPE_IDS));
        let ids = ids.unwrap_or_default();
        ids.into_iter().map(|(name, _)| name).collect()
    }

    /// The paths from this structure, without its name.
    pub(super) fn paths_from(
        &self,
        structure: &str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let structure = structure.to_owned();
        self.paths.iter().filter_map(move |path| {
            let (first, rest) = path.split_once('.')?;
            (first == structure).then_some((*path, rest))
        })
    }

    /// The kernel's names of what the programs attach to.
    pub(super) fn targets(&self) -> Vec<String> {
        let sections = self.object.map(ObjectFile::section_names);
        let sections = sections.unwrap_or_default();
        let targets = sections.into_iter().filter_map(Kind::from_section);
        targets.filter_map(Kind::target).collect()
    }

    /// Functions that are queried, and those that the programs call.
    pub(super) fn all_functions(&self) -> Vec<&'a str> {
        let calls = self.object.map(|object| object.members(FUNCTION_IDS));
        let calls = calls.unwrap_or_default().into_iter().map(|(name, _)| name);
        calls.chain(self.functions.iter().copied()).collect()
    }
}

/// Answers from the kernel's types. The type information itself, which has megabytes, is not kept.
#[derive(Debug, Default)]
pub(crate) struct KernelTypes {
    /// BTF for libbpf; `None`: it must read the kernel's.
    pub(super) cut: Option<Vec<u8>>,
    pub(super) ids: HashMap<String, u32>,
    pub(super) structures: HashMap<String, Structure>,
    pub(super) paths: HashSet<String>,
    pub(super) functions: HashMap<String, u32>,
    pub(super) constants: HashMap<String, i64>,
    pub(super) percpu: HashMap<String, PerCpu>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Structure {
    pub(super) size: u32,
    /// Offsets in bytes, including members of anonymous parts.
    pub(super) members: HashMap<String, u32>,
}

/// A per-CPU variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PerCpu {
    /// From the beginning of the per-CPU section.
    pub(crate) offset: u32,
    pub(crate) size: u32,
}

impl KernelTypes {
    pub(crate) fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// The kernel's id of this function; 0 if it does not exist.
    pub(crate) fn function_id(&self, name: &str) -> u32 {
        self.functions.get(name).copied().unwrap_or(0)
    }

    pub(crate) fn has_type(&self, name: &str) -> bool {
        self.structures.contains_key(name)
    }

    /// The kernel's id of this structure, or of this tracepoint's type; 0 if it does not exist.
    pub(crate) fn id(&self, name: &str) -> u32 {
        self.ids.get(name).copied().unwrap_or(0)
    }

    /// The size of a structure in bytes.
    pub(crate) fn size(&self, structure: &str) -> Option<u32> {
        self.structures.get(structure).map(|found| found.size)
    }

    /// Bytes from the beginning of a structure to a member.
    pub(crate) fn offset(&self, structure: &str, member: &str) -> Option<u32> {
        self.structures.get(structure)?.members.get(member).copied()
    }

    /// Whether this path, which was queried, leads to a member.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// The value of an enumerator.
    pub(crate) fn constant(&self, name: &str) -> Option<u32> {
        self.constants
            .get(name)
            .and_then(|&value| u32::try_from(value).ok())
    }

    pub(crate) fn percpu(&self, name: &str) -> Option<PerCpu> {
        self.percpu.get(name).copied()
    }

    /// The cut as a file whose path libbpf can open. `Ok(None)`: there is none.
    pub(super) fn cut_as_file(&self) -> io::Result<Option<OwnedFd>> {
        let Some(cut) = &self.cut else {
            return Ok(None);
        };
        let file = memfd_create("fastproc-types", MemfdFlags::CLOEXEC)?;
        let mut rest = &cut[..];
        while !rest.is_empty() {
            rest = &rest[rustix::io::write(&file, rest)?..];
        }
        Ok(Some(file))
    }

    pub(super) fn add_structure(&mut self, name: &str, size: u32, members: HashMap<String, u32>) {
        self.structures
            .entry(name.to_owned())
            .or_insert(Structure { size, members });
    }

    /// The first one of the name counts.
    pub(super) fn add_id(&mut self, name: &str, id: u32) {
        self.ids.entry(name.to_owned()).or_insert(id);
    }

    pub(super) fn add_path(&mut self, path: &str) {
        self.paths.insert(path.to_owned());
    }

    pub(super) fn add_function(&mut self, name: &str, id: u32) {
        self.functions.entry(name.to_owned()).or_insert(id);
    }

    pub(super) fn add_constant(&mut self, name: &str, value: i64) {
        self.constants.insert(name.to_owned(), value);
    }

    pub(super) fn add_percpu(&mut self, name: &str, variable: PerCpu) {
        self.percpu.insert(name.to_owned(), variable);
    }
}

/// The first member of a path, whether it is an array, and the rest of the path.
pub(super) fn split_path(path: &str) -> (&str, bool, Option<&str>) {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    match first.strip_suffix("[]") {
        Some(name) => (name, true, rest),
        None => (first, false, rest),
    }
}
