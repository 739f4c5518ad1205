//! A BTF of some hundreds of types for libbpf, instead of the kernel's.
//!
//! For each structure that the relocations of a program name, libbpf searches all of about 130,000 types, and loads
//! those of every module. So it gets a BTF with only the types that the programs name, and those that they contain by
//! value. Its pointers have no target type. Its ids differ from the kernel's, so programs that pass an id to the kernel
//! get it as a constant, not by a relocation.

use std::collections::HashMap;

use super::btf::{self, Btf, Type};

/// Offsets of types, by their ids.
#[derive(Default)]
pub(super) struct Places {
    /// The offset of every eighth type.
    eighth: Vec<u32>,
    pub(super) count: u32,
}

impl Places {
    pub(super) fn push(&mut self, at: usize) {
        if self.count.is_multiple_of(8) {
            self.eighth.push(at as u32);
        }
        self.count += 1;
    }

    pub(super) fn find(&self, btf: Btf<'_>, id: u32) -> Option<Type> {
        let from = id.checked_sub(1)?;
        let mut found = btf.type_at(*self.eighth.get(from as usize / 8)? as usize)?;
        for _ in 0..from % 8 {
            found = btf.type_at(found.end()?)?;
        }
        Some(found)
    }
}

/// Writes a BTF of the given types and of those that they contain by value.
pub(super) struct Cut<'a> {
    btf: Btf<'a>,
    places: &'a Places,
    /// The new id of each old one.
    new: HashMap<u32, u32>,
    /// Old ids, by new id minus one.
    order: Vec<u32>,
    types: Vec<u8>,
    names: Vec<u8>,
    /// The only pointer type, without a target.
    pointer: Option<u32>,
}

impl<'a> Cut<'a> {
    pub(super) fn write(btf: Btf<'a>, places: &'a Places, roots: &[u32]) -> Option<Vec<u8>> {
        let mut cut = Self {
            btf,
            places,
            new: HashMap::new(),
            order: Vec::new(),
            types: Vec::new(),
            names: vec![0],
            pointer: None,
        };
        for &root in roots {
            cut.id(root)?;
        }
        let mut next = 0;
        while let Some(&old) = cut.order.get(next) {
            cut.put_type(places.find(btf, old)?)?;
            next += 1;
        }
        Some(btf::file(&cut.types, &cut.names))
    }

    fn id(&mut self, old: u32) -> Option<u32> {
        if old == 0 {
            return Some(0);
        }
        if let Some(&known) = self.new.get(&old) {
            return Some(known);
        }
        let is_pointer = self.places.find(self.btf, old)?.kind() == btf::PTR;
        let id = match self.pointer {
            Some(pointer) if is_pointer => pointer,
            _ => {
                self.order.push(old);
                self.order.len() as u32
            }
        };
        if is_pointer {
            self.pointer = Some(id);
        }
        self.new.insert(old, id);
        Some(id)
    }

    fn put(&mut self, word: u32) {
        self.types.extend_from_slice(&word.to_ne_bytes());
    }

    fn put_name(&mut self, old: u32) -> Option<()> {
        let mut new = 0;
        if old != 0 {
            new = self.names.len() as u32;
            self.names.extend_from_slice(self.btf.name(old)?.as_bytes());
            self.names.push(0);
        }
        self.put(new);
        Some(())
    }

    fn put_type(&mut self, of: Type) -> Option<()> {
        self.put_name(of.name)?;
        self.put(of.info);
        match of.kind() {
            btf::PTR => self.put(0),
            btf::TYPEDEF | btf::VOLATILE | btf::CONST | btf::RESTRICT | btf::TYPE_TAG => {
                let id = self.id(of.size)?;
                self.put(id);
            }
            _ => self.put(of.size),
        }
        let end = of.end()?;
        match of.kind() {
            btf::INT => self.put(self.btf.word(of.at + 12)?),
            btf::ARRAY => {
                for at in [of.at + 12, of.at + 16] {
                    let id = self.id(self.btf.word(at)?)?;
                    self.put(id);
                }
                self.put(self.btf.word(of.at + 20)?);
            }
            btf::STRUCT | btf::UNION => {
                for index in 0..of.len() {
                    let at = of.entry(index);
                    self.put_name(self.btf.word(at)?)?;
                    let id = self.id(self.btf.word(at + 4)?)?;
                    self.put(id);
                    self.put(self.btf.word(at + 8)?);
                }
            }
            btf::ENUM | btf::ENUM64 => {
                for index in 0..of.len() {
                    let at = of.entry(index);
                    self.put_name(self.btf.word(at)?)?;
                    let next = if index + 1 < of.len() {
                        of.entry(index + 1)
                    } else {
                        end
                    };
                    for at in (at + 4..next).step_by(4) {
                        self.put(self.btf.word(at)?);
                    }
                }
            }
            btf::PTR
            | btf::FWD
            | btf::FLOAT
            | btf::TYPEDEF
            | btf::VOLATILE
            | btf::CONST
            | btf::RESTRICT
            | btf::TYPE_TAG => {}
            // Functions, variables and sections: a structure cannot contain them.
            _ => return None,
        }
        Some(())
    }
}
