//! Queries libbpf, for a kernel whose type information has kinds that `types_in_one_pass.rs` does not know.

use std::collections::HashMap;

use libbpf_rs::btf::{
    Btf, BtfKind, BtfType, HasSize, TypeId,
    types::{Array, Composite, DataSec, Enum, Enum64, MemberAttr},
};

use super::{
    log::Log,
    types::{KernelTypes, PerCpu, Wanted, split_path},
};
use crate::base::error::Error;

pub(super) fn find(wanted: Wanted<'_>) -> Result<KernelTypes, Error> {
    let _log = Log::start();
    let btf = Btf::from_vmlinux().map_err(|error| Error::NoBtf(std::io::Error::other(error)))?;
    let (ids, targets, functions) = (wanted.ids(), wanted.targets(), wanted.all_functions());
    let is_target = |name: &str| targets.iter().any(|target| target == name);
    let mut found = KernelTypes::default();
    for id in 1..btf.len() as u32 {
        let Some(ty) = btf.type_by_id::<BtfType<'_>>(TypeId::from(id)) else {
            continue;
        };
        let name = name_of(&ty);
        match ty.kind() {
            BtfKind::Struct if ids.contains(&name) => found.add_id(name, id),
            BtfKind::Typedef if is_target(name) => found.add_id(name, id),
            BtfKind::Func if functions.contains(&name) || is_target(name) => {
                found.add_function(name, id);
            }
            _ => {}
        }
        if matches!(ty.kind(), BtfKind::Struct | BtfKind::Union) {
            for (path, rest) in wanted.paths_from(name) {
                if leads_to_a_member(&btf, ty, rest) {
                    found.add_path(path);
                }
            }
        }
        match ty.kind() {
            BtfKind::Enum | BtfKind::Enum64 => add_constants(ty, wanted, &mut found),
            BtfKind::DataSec if wanted.percpu && name == ".data..percpu" => {
                add_percpu(&btf, ty, &mut found);
            }
            BtfKind::Struct | BtfKind::Union | BtfKind::Typedef
                if wanted.structures.contains(&name) =>
            {
                let (mut size, mut members) = (0, HashMap::new());
                if let Ok(structure) = Composite::try_from(ty.skip_mods_and_typedefs()) {
                    size = structure.size() as u32;
                    add_members(&btf, structure, 0, &mut members);
                }
                found.add_structure(name, size, members);
            }
            _ => {}
        }
    }
    Ok(found)
}

fn add_constants(ty: BtfType<'_>, wanted: Wanted<'_>, found: &mut KernelTypes) {
    let mut add = |name: Option<&std::ffi::OsStr>, value: i64| {
        if let Some(name) = name.and_then(|name| name.to_str())
            && wanted.constants.contains(&name)
        {
            found.add_constant(name, value);
        }
    };
    if let Ok(list) = Enum::try_from(ty) {
        list.iter()
            .for_each(|member| add(member.name, member.value));
    } else if let Ok(list) = Enum64::try_from(ty) {
        // Signed or unsigned 64 bits.
        list.iter()
            .for_each(|member| add(member.name, member.value as i64));
    }
}

fn add_percpu(btf: &Btf<'_>, ty: BtfType<'_>, found: &mut KernelTypes) {
    let Ok(section) = DataSec::try_from(ty) else {
        return;
    };
    for variable in section.iter() {
        if let Some(var) = btf.type_by_id::<BtfType<'_>>(variable.ty) {
            let place = PerCpu {
                offset: variable.offset,
                size: variable.size as u32,
            };
            found.add_percpu(name_of(&var), place);
        }
    }
}

fn name_of<'a>(ty: &BtfType<'a>) -> &'a str {
    ty.name().and_then(|name| name.to_str()).unwrap_or_default()
}

fn add_members(btf: &Btf<'_>, structure: Composite<'_>, base: u32, to: &mut HashMap<String, u32>) {
    for member in structure.iter() {
        let MemberAttr::Normal { offset } = member.attr else {
            continue;
        };
        let offset = base + offset / 8;
        match member.name.and_then(|name| name.to_str()) {
            Some(name) if !name.is_empty() => {
                to.entry(name.to_owned()).or_insert(offset);
            }
            _ => {
                let inner = btf.type_by_id::<BtfType<'_>>(member.ty);
                let inner = inner
                    .and_then(|inner| Composite::try_from(inner.skip_mods_and_typedefs()).ok());
                if let Some(inner) = inner {
                    add_members(btf, inner, offset, to);
                }
            }
        }
    }
}

fn leads_to_a_member(btf: &Btf<'_>, structure: BtfType<'_>, path: &str) -> bool {
    let Ok(structure) = Composite::try_from(structure.skip_mods_and_typedefs()) else {
        return false;
    };
    let (name, is_array, rest) = split_path(path);
    for member in structure.iter() {
        let Some(ty) = btf.type_by_id::<BtfType<'_>>(member.ty) else {
            return false;
        };
        match member.name.and_then(|name| name.to_str()) {
            Some(found) if found == name => {
                let ty = ty.skip_mods_and_typedefs();
                if is_array != (ty.kind() == BtfKind::Array) {
                    return false;
                }
                let element = Array::try_from(ty).map_or(ty, |array| array.contained_type());
                return rest.is_none_or(|rest| leads_to_a_member(btf, element, rest));
            }
            Some(found) if !found.is_empty() => {}
            _ if leads_to_a_member(btf, ty, path) => return true,
            _ => {}
        }
    }
    false
}
