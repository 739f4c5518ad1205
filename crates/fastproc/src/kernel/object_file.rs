//! An object file of this library, embedded by the build.

use std::ffi::CStr;

use super::{
    btf::{self, Btf},
    elf,
};

/// The constant with the kernel's ids of the types that the programs pass to it.
pub(super) const TYPE_IDS: &str = "type_ids";
/// The same for the functions that they call.
pub(super) const FUNCTION_IDS: &str = "function_ids";

/// An object file that the build has embedded.
pub(crate) struct ObjectFile {
    pub(crate) bytes: &'static [u8],
}

/// Embeds what the build made of `bpf/NAME.c`, at the alignment that ELF requires.
macro_rules! object_file {
    ($name:literal) => {{
        #[repr(C, align(8))]
        struct Aligned<T: ?Sized>(T);
        static ALIGNED: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".o")));
        $crate::kernel::ObjectFile { bytes: &ALIGNED.0 }
    }};
}
pub(crate) use object_file;

impl ObjectFile {
    fn btf(&self) -> Option<Btf<'static>> {
        Btf::new(elf::section(self.bytes, b".BTF")?)
    }

    /// Names of the kernel's types that the programs may use.
    pub(crate) fn type_names(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        let Some(btf) = self.btf() else {
            return names;
        };
        for item in btf.iter() {
            if let btf::STRUCT | btf::UNION | btf::ENUM | btf::ENUM64 | btf::TYPEDEF | btf::FWD =
                item.kind()
                && let Some(name) = btf.name(item.name)
                && !name.is_empty()
            {
                names.push(essential(name));
            }
        }
        names
    }

    /// The names of its sections: those of programs define what they attach to.
    pub(super) fn section_names(&self) -> Vec<&'static str> {
        let names = elf::sections(self.bytes).map(|(name, _)| std::str::from_utf8(name));
        names.filter_map(Result::ok).collect()
    }

    /// The licence of the programs, which the kernel requires.
    pub(super) fn licence(&self) -> Option<&'static CStr> {
        CStr::from_bytes_until_nul(elf::section(self.bytes, b"license")?).ok()
    }

    /// The members of a constant, each with a name of the kernel, and their offsets in it.
    pub(super) fn members(&self, constant: &str) -> Vec<(&'static str, usize)> {
        let members = || {
            let btf = self.btf()?;
            let variable = btf
                .iter()
                .find(|item| item.kind() == btf::VAR && btf.name(item.name) == Some(constant))?;
            let to_const = btf.iter().nth(variable.size as usize - 1)?;
            let to_volatile = btf.iter().nth(to_const.size as usize - 1)?;
            let list = btf.iter().nth(to_volatile.size as usize - 1)?;
            let members = (0..list.len()).map(|index| {
                let word = |number: usize| btf.word(list.entry(index) + 4 * number);
                let name = btf.name(word(0)?)?;
                Some((essential(name), word(2)? as usize / 8))
            });
            members.collect::<Option<Vec<_>>>()
        };
        members().unwrap_or_default()
    }

    /// The offset of a constant in the read-only data of the programs, and its size.
    pub(super) fn constant(&self, name: &str) -> Option<(usize, usize)> {
        // Before libbpf has processed it, the object's types lack the offsets of variables; symbols have them.
        elf::symbol(self.bytes, name.as_bytes())
    }
}

/// The kernel's name of a type: what follows three underscores distinguishes variants of it.
fn essential(name: &'static str) -> &'static str {
    name.split_once("___").map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{counters, exits, kernel::walk, source::bpf};

    #[test]
    fn constants_and_what_ids_are_wanted_are_found_in_the_object() {
        let tasks = walk::OBJECTS[0];
        let (settings, ids) = (tasks.constant("settings"), tasks.constant("type_ids"));
        assert_eq!(
            settings.map(|(_, size)| size),
            Some(size_of::<bpf::run::Settings>())
        );
        assert_eq!(
            ids.map(|(_, size)| size),
            Some(4 * tasks.members(TYPE_IDS).len())
        );
        assert_ne!(settings.map(|(at, _)| at), ids.map(|(at, _)| at));
        assert!(tasks.members(TYPE_IDS).contains(&("signal_struct", 4)));
        assert!(
            counters::OBJECT
                .members(TYPE_IDS)
                .iter()
                .any(|&(name, _)| name == "kernel_cpustat")
        );
        for object in walk::OBJECTS
            .into_iter()
            .chain([&counters::OBJECT, &exits::OBJECT])
        {
            let functions = object.members(FUNCTION_IDS);
            assert_eq!(functions.first(), Some(&("bpf_rdonly_cast", 0)));
            let (_, size) = object
                .constant(FUNCTION_IDS)
                .expect("the object has the constant");
            assert_eq!(size, 4 * functions.len());
        }
        assert!(tasks.constant("no_such_constant").is_none());
        assert_eq!(walk::OBJECTS[1].members(TYPE_IDS), tasks.members(TYPE_IDS));
    }
}
