//! Thrift's compact protocol, as far as Parquet uses it. The `parquet` crate parses it too, but builds schemas by recursion,
//! allocates what a length promises, and loops over lists of nothing: all before anything can be checked.

/// A value. Numbers of all sizes are one.
#[derive(Debug, PartialEq)]
pub enum Value<'a> {
    Bool(bool),
    Int(i64),
    Bytes(&'a [u8]),
    List(Vec<Value<'a>>),
    Struct(Vec<(i16, Value<'a>)>),
    /// A floating-point number, which nothing here needs.
    Double,
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
        3 => Value::Int(i64::from(take(bytes, 1)?[0] as i8)),
        4..=6 => Value::Int(zigzag(bytes)?),
        7 => {
            take(bytes, 8)?;
            Value::Double
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
                last = match step {
                    0 => i16::try_from(zigzag(bytes)?).ok()?,
                    step => last.checked_add(step.into())?,
                };
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
