//! Thrift's compact protocol, as far as Parquet uses it. The `parquet` crate parses it too, but builds schemas by recursion,
//! allocates what a length promises, and loops over lists of nothing: all before anything can be checked.

use std::collections::BTreeSet;

/// A value. Numbers of two bytes and more are one.
#[derive(Debug, PartialEq)]
pub enum Value<'a> {
    Bool(bool),
    Int(i64),
    Bytes(&'a [u8]),
    List(Vec<Value<'a>>),
    Struct(Vec<(i16, Value<'a>)>),
    /// A floating-point number or a byte, which our files do not have.
    Other,
}

/// A footer nests ten deep.
const DEEPEST: u8 = 16;
/// A structure has at most so many values, which take more memory than what they are read from: an hour of 720 parts has
/// two thirds of them.
const MOST_VALUES: usize = 1 << 20;

impl<'a> Value<'a> {
    /// Takes a structure from the head of bytes. `None` if they hold another thing.
    pub fn structure(bytes: &mut &'a [u8]) -> Option<Self> {
        read(bytes, 12, DEEPEST, &mut { MOST_VALUES })
    }

    /// The member of a structure with this number.
    pub fn member(&self, id: i16) -> Option<&Self> {
        match self {
            Self::Struct(members) => members.iter().find(|member| member.0 == id),
            _ => None,
        }
        .map(|member| &member.1)
    }

    /// A member that is a number.
    pub fn int(&self, id: i16) -> Option<i64> {
        match self.member(id)? {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// A member that is a number and not negative.
    pub fn size(&self, id: i16) -> Option<u64> {
        self.int(id)?.try_into().ok()
    }

    /// A member that holds bytes.
    pub fn bytes(&self, id: i16) -> Option<&'a [u8]> {
        match self.member(id)? {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A member that is a text.
    pub fn text(&self, id: i16) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(id)?).ok()
    }

    /// A member that is a list.
    pub fn list(&self, id: i16) -> Option<&[Self]> {
        match self.member(id)? {
            Self::List(values) => Some(values),
            _ => None,
        }
    }
}

/// Members with their types, as paths of numbers.
pub type Shapes = BTreeSet<Vec<i16>>;

impl Value<'_> {
    /// Collects the members below this one, which is at a path.
    pub fn shapes(&self, path: &mut Vec<i16>, found: &mut Shapes) {
        let type_of = match self {
            Self::Bool(_) => -1,
            Self::Int(_) => -2,
            Self::Bytes(_) => -3,
            Self::List(_) => -4,
            Self::Struct(_) => -5,
            Self::Other => -6,
        };
        path.push(type_of);
        if !found.contains(path) {
            found.insert(path.clone());
        }
        match self {
            Self::List(values) => values.iter().for_each(|value| value.shapes(path, found)),
            Self::Struct(members) => {
                for (id, value) in members {
                    path.push(*id);
                    value.shapes(path, found);
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
}

/// Takes bytes from the head.
pub fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// Takes a number of seven bits a byte.
pub fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Takes a number like that, with a sign.
pub fn zigzag(bytes: &mut &[u8]) -> Option<i64> {
    let number = varint(bytes)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

/// Takes a value of a type, by its number in the protocol. Each value of a list takes a byte at least, so that no length
/// promises more than there is.
fn read<'a>(bytes: &mut &'a [u8], type_of: u8, deeper: u8, left: &mut usize) -> Option<Value<'a>> {
    let deeper = deeper.checked_sub(1)?;
    *left = left.checked_sub(1)?;
    Some(match type_of {
        1 | 2 => Value::Bool(take(bytes, 1)?[0] == 1),
        3 => {
            take(bytes, 1)?;
            Value::Other
        }
        4..=6 => Value::Int(zigzag(bytes)?),
        7 => {
            take(bytes, 8)?;
            Value::Other
        }
        8 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            Value::Bytes(take(bytes, length)?)
        }
        9 => {
            let head = take(bytes, 1)?[0];
            let length = match head >> 4 {
                15 => usize::try_from(varint(bytes)?).ok()?,
                length => length.into(),
            };
            if length > bytes.len() {
                return None;
            }
            let values = (0..length).map(|_| read(bytes, head & 15, deeper, left));
            Value::List(values.collect::<Option<_>>()?)
        }
        12 => {
            let (mut members, mut last) = (Vec::new(), 0_i16);
            loop {
                let head = take(bytes, 1)?[0];
                let (step, type_of) = (head >> 4, head & 15);
                if type_of == 0 {
                    break Value::Struct(members);
                }
                let id = match step {
                    0 => i16::try_from(zigzag(bytes)?).ok()?,
                    step => last.checked_add(step.into())?,
                };
                // No member comes twice: another reader takes the other one.
                last = (id > last).then_some(id)?;
                let value = match type_of {
                    1 => Value::Bool(true),
                    2 => Value::Bool(false),
                    type_of => read(bytes, type_of, deeper, left)?,
                };
                members.push((last, value));
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_that_make_other_readers_loop_recurse_or_differ_are_refused() {
        let read = |bytes: &[u8]| Value::structure(&mut &*bytes).is_some();
        assert!(read(&[0x15, 2, 0x15, 4, 0]));
        // The second member has the number of the first.
        assert!(!read(&[0x15, 2, 0x05, 2, 4, 0]));
        // A list of two thousand million values that take no bytes, and one of as many that are missing.
        assert!(!read(&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 7, 0]));
        assert!(!read(&[0x18, 0xff, 0xff, 0xff, 0xff, 7, 0]));
        // Structures in structures.
        assert!(!read(&vec![0x1c; 1 << 20]));
        assert!(!read(&[
            0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0
        ]));
    }
}
