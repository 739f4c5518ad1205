//! Reads the kernel's type information in one pass. It knows all kinds of types that libbpf knows.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    io,
};

use super::{
    btf::{self, Btf, Type},
    cut::{Cut, Places},
    mapping::MappedFile,
    names::Names,
    object_file::ObjectFile,
    types::{KernelTypes, PerCpu, Wanted, split_path},
};
use crate::base::error::Error;

const PATH: &str = "/sys/kernel/btf/vmlinux";
/// The section of the per-CPU variables.
const PERCPU: &str = ".data..percpu";
/// Kinds of types that are searched by name.
const NAMED: u32 = 1 << btf::STRUCT
    | 1 << btf::UNION
    | 1 << btf::TYPEDEF
    | LISTS
    | 1 << btf::FUNC
    | 1 << btf::DATASEC;
/// Kinds that list constants.
const LISTS: u32 = 1 << btf::ENUM | 1 << btf::ENUM64;

impl KernelTypes {
    pub(crate) fn read(wanted: Wanted<'_>) -> Result<Self, Error> {
        let file = File::open(PATH).map_err(Error::no_types)?;
        let found = match MappedFile::new(&file) {
            Ok(mapped) => Pass::over(mapped.as_bytes(), wanted),
            // Kernels before 6.16 cannot map it.
            Err(_) => Pass::over(&fs::read(PATH).map_err(Error::no_types)?, wanted),
        };
        found.ok_or_else(|| {
            Error::no_types(io::Error::other("it has a kind of types that is not known"))
        })
    }
}

struct Pass<'a> {
    btf: Btf<'a>,
    places: Places,
    found: KernelTypes,
}

impl<'a> Pass<'a> {
    /// `None` if there is an unknown kind.
    fn over(bytes: &'a [u8], wanted: Wanted<'_>) -> Option<KernelTypes> {
        let of_object = wanted.object.map(ObjectFile::type_names);
        let of_object = of_object.unwrap_or_default();
        let (ids, targets) = (wanted.ids(), wanted.targets());
        let targets = || targets.iter().map(|name| &**name);
        let structures = wanted.structures.iter().copied();
        let of_paths = wanted
            .paths
            .iter()
            .filter_map(|path| path.split('.').next());
        let types = structures
            .clone()
            .chain(of_object.iter().map(|name| &**name))
            .chain(of_paths);
        let types: Vec<&str> = types.chain(targets()).collect();
        let structures: HashSet<_> = structures.collect();
        let functions: Vec<&str> = wanted
            .all_functions()
            .into_iter()
            .chain(targets())
            .collect();
        let any = types.iter().chain(&functions).copied().chain([PERCPU]);
        let any = Names::new(any);
        let (types, functions) = (
            Names::new(types.into_iter()),
            Names::new(functions.into_iter()),
        );
        let constants = Names::new(wanted.constants.iter().copied());
        // All lists of constants are searched, whatever their names.
        let lists = if wanted.constants.is_empty() {
            0
        } else {
            LISTS
        };
        let mut pass = Self {
            btf: Btf::new(bytes)?,
            places: Places::default(),
            found: KernelTypes::default(),
        };
        let (mut roots, mut percpu) = (Vec::new(), None);
        let btf = pass.btf;
        let mut all = btf.iter();
        for item in &mut all {
            pass.places.push(item.at);
            let kind = 1 << item.kind();
            if kind & NAMED == 0 {
                continue;
            }
            let names = btf.names_from(item.name)?;
            if kind & lists == 0 && !any.may_have(names) {
                continue;
            }
            let id = pass.places.count;
            match item.kind() {
                btf::FUNC => {
                    if let Some(name) = functions.find(names) {
                        pass.found.add_function(std::str::from_utf8(name).ok()?, id);
                    }
                }
                btf::DATASEC => {
                    if wanted.percpu && btf.name(item.name)? == PERCPU {
                        percpu = Some(item);
                    }
                }
                _ => {
                    if types.find(names).is_some() {
                        roots.push(id);
                    }
                    if kind & lists != 0 {
                        pass.add_constants(item, &constants)?;
                    }
                }
            }
        }
        if !all.is_whole() {
            return None;
        }
        for &root in &roots {
            let item = pass.type_of(root)?;
            let name = btf.name(item.name)?;
            let wants_id = match item.kind() {
                btf::STRUCT => ids.contains(&name),
                btf::TYPEDEF => targets().any(|target| target == name),
                _ => false,
            };
            if wants_id {
                pass.found.add_id(name, root);
            }
            if structures.contains(name) {
                pass.add_structure(name, item)?;
            }
            for (path, rest) in wanted.paths_from(name) {
                if pass.leads_to_a_member(item, rest)? {
                    pass.found.add_path(path);
                }
            }
        }
        if let Some(section) = percpu {
            pass.add_percpu(section)?;
        }
        let Self {
            places, mut found, ..
        } = pass;
        found.cut = Some(Cut::write(btf, &places, &roots)?);
        Some(found)
    }

    fn type_of(&self, id: u32) -> Option<Type> {
        self.places.find(self.btf, id)
    }

    fn add_constants(&mut self, list: Type, wanted: &Names<'_>) -> Option<()> {
        let wide = list.kind() == btf::ENUM64;
        for index in 0..list.len() {
            let at = list.entry(index);
            let Some(name) = wanted.find(self.btf.names_from(self.btf.word(at)?)?) else {
                continue;
            };
            let low = self.btf.word(at + 4)?;
            let value = if wide {
                i64::from(low) | i64::from(self.btf.word(at + 8)?) << 32
            } else {
                i64::from(low as i32)
            };
            self.found
                .add_constant(std::str::from_utf8(name).ok()?, value);
        }
        Some(())
    }

    /// The type behind a name.
    fn named_by(&self, named: Type) -> Type {
        let mut found = named;
        while matches!(
            found.kind(),
            btf::TYPEDEF | btf::CONST | btf::VOLATILE | btf::RESTRICT | btf::TYPE_TAG
        ) {
            // A type of another kind has a name, but no members.
            match self.type_of(found.size) {
                Some(next) => found = next,
                None => break,
            }
        }
        found
    }

    fn leads_to_a_member(&self, structure: Type, path: &str) -> Option<bool> {
        let structure = self.named_by(structure);
        if !matches!(structure.kind(), btf::STRUCT | btf::UNION) {
            return Some(false);
        }
        let (name, is_array, rest) = split_path(path);
        for index in 0..structure.len() {
            let at = structure.entry(index);
            let found = self.btf.word(at)?;
            let id = self.btf.word(at + 4)?;
            if found == 0 {
                if self.leads_to_a_member(self.type_of(id)?, path)? {
                    return Some(true);
                }
            } else if self.btf.name(found)? == name {
                let mut member = self.named_by(self.type_of(id)?);
                if is_array != (member.kind() == btf::ARRAY) {
                    return Some(false);
                }
                if is_array {
                    member = self.type_of(self.btf.word(member.at + 12)?)?;
                }
                return rest.map_or(Some(true), |rest| self.leads_to_a_member(member, rest));
            }
        }
        Some(false)
    }

    fn add_structure(&mut self, name: &str, named: Type) -> Option<()> {
        let structure = self.named_by(named);
        let mut members = HashMap::new();
        let mut size = 0;
        if matches!(structure.kind(), btf::STRUCT | btf::UNION) {
            size = structure.size;
            self.add_members(structure, 0, &mut members)?;
        }
        self.found.add_structure(name, size, members);
        Some(())
    }

    fn add_members(&self, structure: Type, base: u32, to: &mut HashMap<String, u32>) -> Option<()> {
        for index in 0..structure.len() {
            let at = structure.entry(index);
            let (name, id, offset) = (
                self.btf.word(at)?,
                self.btf.word(at + 4)?,
                self.btf.word(at + 8)?,
            );
            let Some(bits) = structure.member_offset(offset) else {
                continue;
            };
            let offset = base + bits / 8;
            if name != 0 {
                to.entry(self.btf.name(name)?.to_owned()).or_insert(offset);
                continue;
            }
            let inner = self.type_of(id)?;
            if matches!(inner.kind(), btf::STRUCT | btf::UNION) {
                self.add_members(inner, offset, to)?;
            }
        }
        Some(())
    }

    fn add_percpu(&mut self, section: Type) -> Option<()> {
        for index in 0..section.len() {
            let at = section.entry(index);
            let (id, offset, size) = (
                self.btf.word(at)?,
                self.btf.word(at + 4)?,
                self.btf.word(at + 8)?,
            );
            let name = self.btf.name(self.type_of(id)?.name)?;
            self.found.add_percpu(name, PerCpu { offset, size });
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::btf::{
        self as libbpf, HasSize as _,
        types::{self, Composite, MemberAttr},
    };

    use super::*;
    use crate::{counters, kernel::walk};

    /// The library's own query.
    fn wanted() -> Wanted<'static> {
        Wanted {
            object: Some(walk::OBJECTS[0]),
            structures: &[
                "task_struct",
                "signal_struct",
                "zone",
                "rq",
                "irq_cpustat_t",
                "no_such_structure",
            ],
            paths: &[
                "task_struct.thread_info.flags",
                "task_struct.comm[]",
                "signal_struct.rlim[].rlim_cur",
                "signal_struct.stats_lock.seqcount.seqcount.sequence",
                "task_struct.comm",
                "signal_struct.rlim.rlim_cur",
                "signal_struct.rlim[].no_such_member",
                "no_such_structure.member",
            ],
            functions: &["bpf_map_lookup_percpu_elem", "no_such_function"],
            constants: &["NR_SOFTIRQS", "CPUTIME_STEAL", "NO_SUCH_CONSTANT"],
            percpu: true,
        }
    }

    fn kernel() -> Vec<u8> {
        fs::read(PATH).expect("this kernel has type information")
    }

    #[test]
    fn one_pass_and_libbpf_find_the_same() {
        let ours = Pass::over(&kernel(), wanted()).expect("every kind is known");
        let theirs = libbpf::Btf::from_vmlinux().expect("libbpf reads it");
        let id = theirs
            .type_by_name::<types::Struct<'_>>("task_struct")
            .map(|of| u32::from(of.type_id()));
        assert_eq!(id, Some(ours.id("task_struct")));
        for name in wanted().structures {
            let structure = theirs
                .type_by_name::<types::Struct<'_>>(name)
                .and_then(|of| Composite::try_from(*of).ok());
            let structure = structure.or_else(|| {
                let named = theirs.type_by_name::<types::Typedef<'_>>(name)?;
                Composite::try_from(named.skip_mods_and_typedefs()).ok()
            });
            let size = structure.as_ref().map(|found| found.size() as u32);
            assert_eq!(ours.size(name), size, "{name}");
            for member in structure.iter().flat_map(Composite::iter) {
                let name_of = member.name.and_then(|name| name.to_str());
                let name_of = name_of.filter(|name| !name.is_empty());
                if let (Some(member_name), MemberAttr::Normal { offset }) = (name_of, member.attr) {
                    assert_eq!(
                        ours.offset(name, member_name),
                        Some(offset / 8),
                        "{name}.{member_name}"
                    );
                }
            }
        }
        let paths: HashSet<_> = wanted().paths[..4]
            .iter()
            .map(|&path| path.to_owned())
            .collect();
        assert_eq!(ours.paths, paths);
        for name in wanted().functions {
            let id = theirs
                .type_by_name::<types::Func<'_>>(name)
                .map_or(0, |of| u32::from(of.type_id()));
            assert_eq!(ours.function_id(name), id, "{name}");
        }
        let numbers = wanted()
            .constants
            .iter()
            .filter_map(|name| ours.constant(name));
        assert_eq!(numbers.count(), 2);
    }

    #[test]
    fn the_reduced_types_agree_with_the_kernels_for_all_named_structures() {
        let kernel = kernel();
        for object in [walk::OBJECTS[0], walk::OBJECTS[1], &counters::OBJECT] {
            let names = object.type_names();
            let structures: Vec<&str> = names.iter().map(|name| &**name).collect();
            let wanted = Wanted {
                object: Some(object),
                structures: &structures,
                ..Wanted::default()
            };
            let whole = Pass::over(&kernel, wanted).expect("every kind is known");
            let cut = whole.cut.as_ref().expect("it was written");
            assert!(
                cut.len() < kernel.len() / 20,
                "{} of {} bytes",
                cut.len(),
                kernel.len()
            );
            let again = Pass::over(cut, wanted).expect("it can be read");
            assert_eq!(again.structures.len(), whole.structures.len());
            for (name, structure) in &whole.structures {
                assert_eq!(again.structures[name].size, structure.size, "{name}");
                assert_eq!(again.structures[name].members, structure.members, "{name}");
            }
        }
    }

    #[test]
    fn a_kind_that_is_not_known_is_refused() {
        let kernel = kernel();
        let btf = Btf::new(&kernel).expect("it is BTF");
        let mut types = btf.types.to_vec();
        for word in [0u32, 31 << 24, 0] {
            types.extend_from_slice(&word.to_ne_bytes());
        }
        let names = btf.names_from(0).expect("it has names");
        assert!(Pass::over(&btf::file(btf.types, names), wanted()).is_some());
        assert!(Pass::over(&btf::file(&types, names), wanted()).is_none());
        assert!(Pass::over(&kernel[..kernel.len() / 2], wanted()).is_none());
        assert!(Pass::over(b"no BTF", wanted()).is_none());
    }
}
