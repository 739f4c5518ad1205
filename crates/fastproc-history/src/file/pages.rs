//! The values of one column of a row group. The crate's decoders panic on pages whose CRC is right and whose numbers are not;
//! these know the encodings that the writer uses, and trust no number.

use zstd::bulk::Decompressor;

use super::thrift::{Value, take, varint, zigzag};
use crate::rows::Cells;

/// Numbers of the format: types of pages.
const DATA: i64 = 0;
const DICTIONARY: i64 = 2;
/// Encodings.
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const DELTA_BINARY_PACKED: i64 = 5;
const RLE_DICTIONARY: i64 = 8;

/// Bytes after a page, so that a number is loaded as a whole.
const PADDING: usize = 8;

/// How many bytes may still be decoded.
pub struct Room(pub usize);

impl Room {
    /// Takes some. Once they do not fit, nothing does.
    fn take(&mut self, bytes: usize) -> Option<()> {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.map(drop)
    }

    /// Whether some are left.
    pub const fn is_left(&self) -> bool {
        self.0 > 0
    }
}

/// Decodes a column chunk of so many rows: all, or those of `kept`, which ascend, and are unknown where there is no such row.
/// `None` if it does not follow the format.
pub fn decode(
    mut chunk: &[u8],
    rows: usize,
    is_text: bool,
    kept: Option<&[usize]>,
    room: &mut Room,
) -> Option<Cells> {
    let size = kept.map_or(rows, <[usize]>::len);
    let mut numbers = Vec::with_capacity(if is_text { 0 } else { size });
    let mut texts = Vec::with_capacity(if is_text { size } else { 0 });
    let mut dictionary = None;
    let mut zstd = Decompressor::new().ok()?;
    let (mut page, mut present, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut row, mut kept) = (0, kept);
    while !chunk.is_empty() {
        // No header is longer than this: it has no statistics.
        let mut head = &chunk[..chunk.len().min(1 << 10)];
        let before = head.len();
        let header = Value::structure(&mut head)?;
        chunk = &chunk[before - head.len()..];
        let size = usize::try_from(header.size(2)?).ok()?;
        let compressed = take(&mut chunk, usize::try_from(header.size(3)?).ok()?)?;
        // A page is one frame, so that it is decompressed at once.
        room.take(size)?;
        page.clear();
        page.try_reserve_exact(size.checked_add(PADDING)?).ok()?;
        zstd.decompress_to_buffer(compressed, &mut page).ok()?;
        if page.len() != size {
            return None;
        }
        match header.int(1)? {
            DICTIONARY => {
                let header = header.member(7)?;
                let count = usize::try_from(header.size(1)?).ok()?;
                let is_first = row == 0 && is_text && dictionary.is_none();
                if !is_first || header.int(2)? != PLAIN {
                    return None;
                }
                dictionary = Some(Texts::plain(std::mem::take(&mut page), count)?);
                continue;
            }
            DATA => {}
            _ => return None,
        }
        let header = header.member(5)?;
        let count = usize::try_from(header.size(1)?).ok()?;
        if header.int(3)? != RLE || count > rows - row {
            return None;
        }
        page.resize(size + PADDING, 0);
        let mut rest = &page[..size];
        let length = u32::from_le_bytes(*take(&mut rest, 4)?.first_chunk()?) as usize;
        present.clear();
        hybrid(take(&mut rest, length)?, 1, count, |level, times| {
            present.extend(std::iter::repeat_n(level == 1, times));
            Some(())
        })?;
        let filled = present.iter().filter(|present| **present).count();
        let within = kept.as_mut().map(|kept| {
            let end = kept.partition_point(|&kept| kept < row + count);
            kept.split_off(..end).unwrap_or_default()
        });
        let chosen = Chosen::new(&present, row, within);
        row += count;
        match (is_text, header.int(2)?) {
            (false, DELTA_BINARY_PACKED) => {
                values.clear();
                if filled > 0 {
                    delta(&page[size - rest.len()..], filled, &mut values)?;
                }
                if within.is_none() && filled == count {
                    numbers.extend(values.iter().copied().map(Some));
                } else {
                    numbers.extend(chosen.map(|at| values.get(at?).copied()));
                }
            }
            (true, RLE_DICTIONARY) => {
                let mut places = Vec::with_capacity(filled);
                if filled > 0 {
                    let width = take(&mut rest, 1)?[0];
                    hybrid(rest, width.into(), filled, |place, times| {
                        places.extend(std::iter::repeat_n(place, times));
                        Some(())
                    })?;
                    let known = dictionary.as_ref()?.places.len() as u64;
                    if places.iter().any(|&place| place >= known) {
                        return None;
                    }
                }
                for at in chosen {
                    texts.push(match at {
                        Some(at) => Some(dictionary.as_ref()?.get(places[at] as usize, room)?),
                        None => None,
                    });
                }
            }
            (true, PLAIN) => {
                let plain = Texts::plain(rest.to_vec(), filled)?;
                for at in chosen {
                    texts.push(match at {
                        Some(at) => Some(plain.get(at, room)?),
                        None => None,
                    });
                }
            }
            _ => return None,
        }
    }
    let beyond = kept.map_or(0, <[usize]>::len);
    let cells = if is_text {
        texts.extend(std::iter::repeat_n(None, beyond));
        Cells::Texts(texts)
    } else {
        numbers.extend(std::iter::repeat_n(None, beyond));
        Cells::Numbers(numbers)
    };
    (row == rows).then_some(cells)
}

/// For each row of a page, or for those that are kept, which of the page's values it has; `None` if it has none.
struct Chosen<'a> {
    present: &'a [bool],
    /// The first row of the page.
    first: usize,
    kept: Option<std::slice::Iter<'a, usize>>,
    /// The next row of the page, and how many values are before it.
    row: usize,
    values: usize,
}

impl<'a> Chosen<'a> {
    fn new(present: &'a [bool], first: usize, kept: Option<&'a [usize]>) -> Self {
        Self {
            present,
            first,
            kept: kept.map(<[usize]>::iter),
            row: 0,
            values: 0,
        }
    }
}

impl Iterator for Chosen<'_> {
    type Item = Option<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = match &mut self.kept {
            Some(kept) => kept.next()?.checked_sub(self.first)?,
            None => self.row,
        };
        let has_value = *self.present.get(row)?;
        let before = self.present.get(self.row..row)?;
        let value = self.values + before.iter().filter(|present| **present).count();
        (self.row, self.values) = (row + 1, value + usize::from(has_value));
        Some(has_value.then_some(value))
    }
}

/// Texts one after the other, each after its length.
struct Texts {
    bytes: Vec<u8>,
    places: Vec<(u32, u32)>,
}

impl Texts {
    fn plain(bytes: Vec<u8>, count: usize) -> Option<Self> {
        let mut rest = bytes.as_slice();
        if count > rest.len() / 4 {
            return None;
        }
        let mut places = Vec::with_capacity(count);
        for _ in 0..count {
            let length = u32::from_le_bytes(*take(&mut rest, 4)?.first_chunk()?);
            let at = u32::try_from(bytes.len() - rest.len()).ok()?;
            std::str::from_utf8(take(&mut rest, length as usize)?).ok()?;
            places.push((at, length));
        }
        rest.is_empty().then_some(())?;
        Some(Self { bytes, places })
    }

    fn get(&self, place: usize, room: &mut Room) -> Option<Box<str>> {
        let &(at, length) = self.places.get(place)?;
        // An allocation takes some bytes more.
        room.take(length as usize + 16)?;
        let bytes = self.bytes.get(at as usize..)?.get(..length as usize)?;
        Some(std::str::from_utf8(bytes).ok()?.into())
    }
}

/// A number of `width` bits, from a bit on. There are [`PADDING`] bytes after it.
fn bits(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let (byte, shift) = (at / 8, at % 8);
    let word = u64::from_le_bytes(*bytes.get(byte..)?.first_chunk()?);
    let mut value = word >> shift;
    if shift + width > 64 {
        value |= u64::from(*bytes.get(byte + 8)?) << (64 - shift);
    }
    Some(match width {
        64.. => value,
        _ => value & ((1 << width) - 1),
    })
}

/// Runs of equal numbers, and packed ones: calls for each number with how often it comes, until there are `count`.
fn hybrid(
    mut bytes: &[u8],
    width: usize,
    count: usize,
    mut with: impl FnMut(u64, usize) -> Option<()>,
) -> Option<()> {
    if width > 32 {
        return None;
    }
    let mut left = count;
    while left > 0 {
        let head = varint(&mut bytes)?;
        let many = usize::try_from(head >> 1).ok().filter(|&many| many > 0)?;
        if head & 1 == 0 {
            let value = take(&mut bytes, width.div_ceil(8))?;
            let value = value
                .iter()
                .rev()
                .fold(0, |value, byte| value << 8 | u64::from(*byte));
            with(value, left.min(many))?;
            left = left.saturating_sub(many);
        } else {
            let packed = take(&mut bytes, many.checked_mul(width)?)?;
            for group in 0..many {
                let mut eight = [0; 32 + PADDING];
                let group = &packed[group * width..][..width];
                eight[..width].copy_from_slice(group);
                for at in 0..left.min(8) {
                    with(bits(&eight, at * width, width)?, 1)?;
                }
                left = left.saturating_sub(8);
                if left == 0 {
                    break;
                }
            }
        }
    }
    Some(())
}

/// Differences between numbers, packed in blocks: `bytes` end with [`PADDING`].
fn delta(mut bytes: &[u8], count: usize, values: &mut Vec<i64>) -> Option<()> {
    let block = varint(&mut bytes)?;
    let parts = varint(&mut bytes)?;
    if varint(&mut bytes)? != count as u64 || parts == 0 || parts > 64 || block > 1 << 16 {
        return None;
    }
    let (parts, each) = (parts as usize, (block / parts) as usize);
    if each == 0 || each % 32 != 0 {
        return None;
    }
    let mut last = zigzag(&mut bytes)?;
    values.reserve(count);
    values.push(last);
    while values.len() < count {
        let least = zigzag(&mut bytes)?;
        let widths = take(&mut bytes, parts)?;
        for &width in widths {
            let here = each.min(count - values.len());
            if here == 0 {
                break;
            }
            let width = usize::from(width);
            if width > 64 {
                return None;
            }
            for at in 0..here {
                let difference = match width {
                    0 => 0,
                    // These are within a word.
                    1..=56 => {
                        let word = bytes.get(at * width / 8..)?.first_chunk()?;
                        let word = u64::from_le_bytes(*word) >> (at * width % 8);
                        word & ((1 << width) - 1)
                    }
                    _ => bits(bytes, at * width, width)?,
                };
                last = last.wrapping_add(least).wrapping_add(difference as i64);
                values.push(last);
            }
            // The last part may be cut.
            let length = (each * width / 8).min(bytes.len());
            take(&mut bytes, length)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::file::tests::cases;

    /// A page: numbers of its header, which are small here, and its body.
    fn page(type_of: i64, body: &[u8], numbers: &[i64]) -> Vec<u8> {
        let packed = zstd::bulk::compress(body, 1).expect("memory");
        let int = |bytes: &mut Vec<u8>, number: i64| {
            let mut number = (number << 1 ^ number >> 63) as u64;
            bytes.push(0x15);
            while number > 0x7f {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
        };
        let mut bytes = Vec::new();
        for number in [type_of, body.len() as i64, packed.len() as i64] {
            int(&mut bytes, number);
        }
        // Member 5 of the header, or 7 of that of a dictionary.
        bytes.push(if type_of == DICTIONARY { 0x4c } else { 0x2c });
        for &number in numbers {
            int(&mut bytes, number);
        }
        bytes.extend([0, 0]);
        bytes.extend(packed);
        bytes
    }

    /// The body of a page: levels in one run of ones, and what follows.
    fn with_levels(count: u8, values: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, count << 1, 1], values].concat()
    }

    fn room() -> Room {
        Room(1 << 20)
    }

    #[test]
    fn a_page_that_promises_more_numbers_than_it_has_is_refused() {
        // Blocks of 128, 4 parts, a count, the first number 7; then a block of differences of 1.
        let body = |count: u8| with_levels(3, &[0x80, 1, 4, count, 14, 2, 0, 0, 0, 0]);
        let chunk = |count| page(DATA, &body(count), &[3, DELTA_BINARY_PACKED, RLE, RLE]);
        let numbers = Cells::Numbers(vec![Some(7), Some(8), Some(9)]);
        assert_eq!(
            decode(&chunk(3), 3, false, None, &mut room()),
            Some(numbers)
        );
        // The crate's own decoder panics at the first of these.
        for count in [0, 1, 2, 4, 127] {
            assert_eq!(
                decode(&chunk(count), 3, false, None, &mut room()),
                None,
                "{count}"
            );
        }
        assert_eq!(decode(&chunk(3), 2, false, None, &mut room()), None);
        assert_eq!(decode(&chunk(3), 4, false, None, &mut room()), None);
    }

    #[test]
    fn a_text_beyond_the_dictionary_is_refused() {
        let dictionary = page(DICTIONARY, b"\x02\0\0\0ab\x01\0\0\0c", &[2, PLAIN]);
        let chunk = |place| {
            let values = with_levels(4, &[1, 4 << 1, place]);
            [
                dictionary.clone(),
                page(DATA, &values, &[4, RLE_DICTIONARY, RLE, RLE]),
            ]
            .concat()
        };
        let texts = Cells::Texts(vec![Some("c".into()); 4]);
        assert_eq!(decode(&chunk(1), 4, true, None, &mut room()), Some(texts));
        assert_eq!(decode(&chunk(2), 4, true, None, &mut room()), None);
        let mut little = Room(60);
        assert_eq!(decode(&chunk(1), 4, true, None, &mut little), None);
        assert!(!little.is_left());
    }

    #[test]
    fn a_small_page_that_becomes_large_is_refused() {
        let mut bomb = page(DATA, &vec![0; 64 << 20], &[1, PLAIN, RLE, RLE]);
        assert!(bomb.len() < 16 << 10);
        assert_eq!(decode(&bomb, 1, true, None, &mut room()), None);
        // It says that it is small.
        bomb.splice(2..7, [0x15, 20]);
        assert_eq!(decode(&bomb, 1, true, None, &mut room()), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases(1000)) })]

        #[test]
        fn pages_of_any_bytes_cause_no_panic(
            count in 0..50_u8,
            encodings in prop::array::uniform3(prop::sample::select(vec![PLAIN, RLE, DELTA_BINARY_PACKED, RLE_DICTIONARY])),
            head in prop::sample::select(vec![&[][..], &[0x80, 1, 4], &[1], &[0x80, 1, 4, 8, 0, 0, 63, 64, 65, 1]]),
            values: Vec<u8>,
            levels: bool,
            is_text: bool,
        ) {
            let values = [head, &values].concat();
            let body = if levels { with_levels(count, &values) } else { values };
            let rows = i64::from(count);
            let dictionary = page(DICTIONARY, b"\x02\0\0\0ab\x01\0\0\0c", &[2, PLAIN]);
            let data = page(DATA, &body, &[rows, encodings[0], encodings[1], encodings[2]]);
            decode(&data, count.into(), is_text, None, &mut room());
            let data = page(DATA, &body, &[rows, encodings[0], RLE, RLE]);
            let chunk = if is_text { [dictionary, data].concat() } else { data };
            if let Some(cells) = decode(&chunk, count.into(), is_text, None, &mut room()) {
                prop_assert_eq!(cells.len(), usize::from(count));
            }
            if let Some(cells) = decode(&chunk, count.into(), is_text, Some(&[1, 3, 60]), &mut room()) {
                prop_assert_eq!(cells.len(), 3);
            }
        }
    }
}
