//! BTF as it is in memory: Documentation/bpf/btf.rst. Nothing here trusts it; invalid parts are `None`.

pub(super) const INT: u32 = 1;
pub(super) const PTR: u32 = 2;
pub(super) const ARRAY: u32 = 3;
pub(super) const STRUCT: u32 = 4;
pub(super) const UNION: u32 = 5;
pub(super) const ENUM: u32 = 6;
pub(super) const FWD: u32 = 7;
pub(super) const TYPEDEF: u32 = 8;
pub(super) const VOLATILE: u32 = 9;
pub(super) const CONST: u32 = 10;
pub(super) const RESTRICT: u32 = 11;
pub(super) const FUNC: u32 = 12;
pub(super) const FUNC_PROTO: u32 = 13;
pub(super) const VAR: u32 = 14;
pub(super) const DATASEC: u32 = 15;
pub(super) const FLOAT: u32 = 16;
pub(super) const DECL_TAG: u32 = 17;
pub(super) const TYPE_TAG: u32 = 18;
pub(super) const ENUM64: u32 = 19;

/// Bytes of a type of each kind, without its members, enumerators, parameters or variables; 0: unknown.
const BYTES: [u8; 32] = {
    let mut bytes = [0; 32];
    let mut kind = INT;
    while kind <= ENUM64 {
        bytes[kind as usize] = match kind {
            INT | VAR | DECL_TAG => 16,
            ARRAY => 24,
            _ => 12,
        };
        kind += 1;
    }
    bytes
};

/// Bytes of a member, enumerator, parameter or variable.
const ENTRY_BYTES: [u8; 32] = {
    let mut bytes = [0; 32];
    bytes[STRUCT as usize] = 12;
    bytes[UNION as usize] = 12;
    bytes[DATASEC as usize] = 12;
    bytes[ENUM64 as usize] = 12;
    bytes[ENUM as usize] = 8;
    bytes[FUNC_PROTO as usize] = 8;
    bytes
};

const MAGIC: u16 = 0xeb9f;
const HEADER: usize = 24;

/// The two sections: types, and the names that they point to.
#[derive(Clone, Copy)]
pub(super) struct Btf<'a> {
    pub(super) types: &'a [u8],
    names: &'a [u8],
}

/// The words at the beginning of every type.
#[derive(Clone, Copy)]
pub(super) struct Type {
    /// Its offset in the section of types.
    pub(super) at: usize,
    pub(super) name: u32,
    pub(super) info: u32,
    /// Its size or the type that it refers to.
    pub(super) size: u32,
}

impl Type {
    pub(super) const fn kind(self) -> u32 {
        self.info >> 24 & 0x1f
    }

    /// The number of members, enumerators, parameters or variables.
    pub(super) const fn len(self) -> usize {
        (self.info & 0xffff) as usize
    }

    /// The offset of one of those.
    pub(super) const fn entry(self, index: usize) -> usize {
        self.at + 12 + index * ENTRY_BYTES[self.kind() as usize] as usize
    }

    /// The offset of the next type. `None` for an unknown kind, whose length is not known.
    #[inline]
    pub(super) const fn end(self) -> Option<usize> {
        // From tables: a hundred thousand branches by kind would take most of the time of a pass.
        let kind = self.kind() as usize;
        match BYTES[kind] {
            0 => None,
            bytes => Some(self.at + bytes as usize + self.len() * ENTRY_BYTES[kind] as usize),
        }
    }

    /// Bits from the beginning of the structure to the member with this second word. `None` for a bit-field.
    /// bit-field.
    pub(super) const fn member_offset(self, word: u32) -> Option<u32> {
        let has_bit_fields = self.info >> 31 != 0;
        match (has_bit_fields, word >> 24) {
            (false, _) => Some(word),
            (true, 0) => Some(word & 0xff_ffff),
            (true, _) => None,
        }
    }
}

impl<'a> Btf<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        if u16::from_ne_bytes(*bytes.first_chunk()?) != MAGIC {
            return None;
        }
        let header = word(4)? as usize;
        let section = |at: usize| {
            let start = header.checked_add(word(at)? as usize)?;
            bytes.get(start..start.checked_add(word(at + 4)? as usize)?)
        };
        Some(Self {
            types: section(8)?,
            names: section(16)?,
        })
    }

    #[inline]
    pub(super) fn word(self, at: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(*self.types.get(at..)?.first_chunk()?))
    }

    #[inline]
    pub(super) fn type_at(self, at: usize) -> Option<Type> {
        let words: &[u8; 12] = self.types.get(at..)?.first_chunk()?;
        let word = |at: usize| {
            u32::from_ne_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]])
        };
        Some(Type {
            at,
            name: word(0),
            info: word(4),
            size: word(8),
        })
    }

    /// The names from this one on, each terminated by a NUL.
    #[inline]
    pub(super) fn names_from(self, at: u32) -> Option<&'a [u8]> {
        self.names.get(at as usize..)
    }

    pub(super) fn name(self, at: u32) -> Option<&'a str> {
        let rest = self.names_from(at)?;
        std::str::from_utf8(&rest[..rest.iter().position(|&byte| byte == 0)?]).ok()
    }

    /// All types; the first has the id 1. Ends early at an unknown kind; see [`Types::is_whole`].
    pub(super) fn iter(self) -> Types<'a> {
        Types { btf: self, at: 0 }
    }
}

pub(super) struct Types<'a> {
    btf: Btf<'a>,
    at: usize,
}

impl Types<'_> {
    /// Whether every type was understood.
    pub(super) fn is_whole(&self) -> bool {
        self.at == self.btf.types.len()
    }
}

impl Iterator for Types<'_> {
    type Item = Type;

    #[inline]
    fn next(&mut self) -> Option<Type> {
        let next = self.btf.type_at(self.at)?;
        self.at = next.end()?;
        Some(next)
    }
}

/// Both sections as a file.
pub(super) fn file(types: &[u8], names: &[u8]) -> Vec<u8> {
    let (types_len, names_len) = (types.len() as u32, names.len() as u32);
    let mut file = Vec::with_capacity(HEADER + types.len() + names.len());
    file.extend_from_slice(&MAGIC.to_ne_bytes());
    file.extend_from_slice(&[1, 0]);
    for word in [HEADER as u32, 0, types_len, types_len, names_len] {
        file.extend_from_slice(&word.to_ne_bytes());
    }
    file.extend_from_slice(types);
    file.extend_from_slice(names);
    file
}
