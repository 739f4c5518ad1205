//! The values of a column in Arrow's layout.

use fastproc_columns::{Kind, Value, arguments};

/// Bits, the first one the lowest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bits {
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    pub fn push(&mut self, bit: bool) {
        if self.len.is_multiple_of(8) {
            self.bytes.push(0);
        }
        self.bytes[self.len / 8] |= u8::from(bit) << (self.len % 8);
        self.len += 1;
    }

    pub fn get(&self, at: usize) -> bool {
        self.bytes
            .get(at / 8)
            .is_some_and(|byte| byte >> (at % 8) & 1 == 1)
    }

    /// The first ones.
    fn head(&self, len: usize) -> Self {
        let mut head = Self::default();
        (0..len).for_each(|at| head.push(self.get(at)));
        head
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Consecutive lists, and the end of each. The first offset is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Lists<T> {
    pub offsets: Vec<i64>,
    pub items: T,
}

/// Consecutive texts.
pub type Texts = Lists<Vec<u8>>;

impl<T> Lists<T> {
    pub fn new(items: T, rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { offsets, items }
    }

    /// The range of the list with this index in `items`.
    pub fn range(&self, at: usize) -> std::ops::Range<usize> {
        self.offsets[at] as usize..self.offsets[at + 1] as usize
    }

    /// The first lists, whose items `head` takes.
    fn head(&self, len: usize, head: impl FnOnce(&T, usize) -> T) -> Self {
        Self {
            offsets: self.offsets[..=len].to_vec(),
            items: head(&self.items, self.offsets[len] as usize),
        }
    }

    /// The number of lists.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }
}

impl Texts {
    pub fn push(&mut self, text: &[u8]) {
        self.items.extend_from_slice(text);
        self.offsets.push(self.items.len() as i64);
    }

    pub fn get(&self, at: usize) -> &[u8] {
        &self.items[self.range(at)]
    }

    /// Whether every text is UTF-8.
    pub fn are_utf8(&self) -> bool {
        self.items.is_ascii() || (0..self.len()).all(|at| std::str::from_utf8(self.get(at)).is_ok())
    }

    /// The same with U+FFFD in place of bytes that are not UTF-8.
    pub fn to_utf8(&self) -> Self {
        let mut texts = Self::new(Vec::new(), self.len());
        for at in 0..self.len() {
            texts.push(String::from_utf8_lossy(self.get(at)).as_bytes());
        }
        texts
    }
}

/// The values of a column. Unknown values are 0 or empty here.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    Unsigned(Vec<u64>),
    Signed(Vec<i64>),
    Real(Vec<f64>),
    Truth(Bits),
    Text(Texts),
    Arguments(Lists<Texts>),
    Numbers(Lists<Vec<u32>>),
}

/// The values, and which of them are known.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    pub values: Values,
    pub known: Bits,
    pub unknown: usize,
    pub len: usize,
}

impl Data {
    pub fn new(kind: Kind, rows: usize) -> Self {
        let values = match kind {
            Kind::Unsigned => Values::Unsigned(Vec::with_capacity(rows)),
            Kind::Signed => Values::Signed(Vec::with_capacity(rows)),
            Kind::Real => Values::Real(Vec::with_capacity(rows)),
            Kind::Truth => Values::Truth(Bits::default()),
            Kind::Text => Values::Text(Lists::new(Vec::new(), rows)),
            Kind::Arguments => Values::Arguments(Lists::new(Lists::new(Vec::new(), rows), rows)),
            Kind::Numbers => Values::Numbers(Lists::new(Vec::new(), rows)),
        };
        Self {
            values,
            known: Bits::default(),
            unknown: 0,
            len: 0,
        }
    }

    pub fn push(&mut self, value: Value<'_>) {
        let is_known = match (&mut self.values, value) {
            (Values::Unsigned(to), Value::Unsigned(number)) => {
                to.push(number);
                true
            }
            (Values::Signed(to), Value::Signed(number)) => {
                to.push(number);
                true
            }
            (Values::Real(to), Value::Real(number)) => {
                to.push(number);
                true
            }
            (Values::Truth(to), Value::Truth(truth)) => {
                to.push(truth);
                true
            }
            (Values::Text(to), Value::Text(text)) => {
                to.push(text);
                true
            }
            (Values::Arguments(to), Value::Arguments(line)) => {
                for argument in arguments(line) {
                    to.items.push(argument);
                }
                to.offsets.push(to.items.len() as i64);
                true
            }
            (Values::Arguments(to), Value::NoArguments(_)) => {
                to.offsets.push(to.items.len() as i64);
                true
            }
            (Values::Numbers(to), Value::Numbers(numbers)) => {
                to.items.extend_from_slice(numbers);
                to.offsets.push(to.items.len() as i64);
                true
            }
            (Values::Numbers(to), Value::Bitmap(words)) => {
                let bits = words.iter().zip(0_u32..).flat_map(|(word, nth)| {
                    (0..64)
                        .filter(move |bit| word >> bit & 1 == 1)
                        .map(move |bit| 64 * nth + bit)
                });
                to.items.extend(bits);
                to.offsets.push(to.items.len() as i64);
                true
            }
            (values, _) => {
                values.push_nothing();
                false
            }
        };
        self.known.push(is_known);
        self.unknown += usize::from(!is_known);
        self.len += 1;
    }

    /// The first values, of as many rows at most as there are.
    pub fn head(&self, len: usize) -> Self {
        let texts = |texts: &Texts, len| texts.head(len, |bytes, len| bytes[..len].to_vec());
        let values = match &self.values {
            Values::Unsigned(numbers) => Values::Unsigned(numbers[..len].to_vec()),
            Values::Signed(numbers) => Values::Signed(numbers[..len].to_vec()),
            Values::Real(numbers) => Values::Real(numbers[..len].to_vec()),
            Values::Truth(bits) => Values::Truth(bits.head(len)),
            Values::Text(of) => Values::Text(texts(of, len)),
            Values::Arguments(lists) => Values::Arguments(lists.head(len, texts)),
            Values::Numbers(lists) => {
                Values::Numbers(lists.head(len, |numbers, len| numbers[..len].to_vec()))
            }
        };
        let known = self.known.head(len);
        let unknown = (0..len).filter(|&at| !known.get(at)).count();
        Self {
            values,
            known,
            unknown,
            len,
        }
    }

    /// Whether the value at this index is known.
    pub fn is_known(&self, at: usize) -> bool {
        self.known.get(at)
    }

    /// The whole number at this index; `None` if it is unknown, or if there are no such numbers.
    pub fn number(&self, at: usize) -> Option<i128> {
        let number = match &self.values {
            Values::Unsigned(numbers) => numbers.get(at).copied().map(i128::from),
            Values::Signed(numbers) => numbers.get(at).copied().map(i128::from),
            _ => None,
        };
        number.filter(|_| self.unknown == 0 || self.is_known(at))
    }

    /// Whether both have the same whole number there, or both have none that is known.
    pub fn has_same_number(&self, at: usize, other: &Self, there: usize) -> bool {
        let are_numbers = matches!(self.values, Values::Unsigned(_) | Values::Signed(_));
        are_numbers && self.number(at) == other.number(there)
    }
}

impl Values {
    fn push_nothing(&mut self) {
        match self {
            Self::Unsigned(to) => to.push(0),
            Self::Signed(to) => to.push(0),
            Self::Real(to) => to.push(0.0),
            Self::Truth(to) => to.push(false),
            Self::Text(to) => to.push(&[]),
            Self::Arguments(to) => to.offsets.push(to.items.len() as i64),
            Self::Numbers(to) => to.offsets.push(to.items.len() as i64),
        }
    }
}
