//! The bitmaps of allowed CPUs and memory nodes.

use seqtext::SeqBuf;

use crate::{
    base::error::parse::ParseError,
    text::{
        Text,
        cursor::{Cursor, hex_digit},
    },
};

/// Digits of a group, and a group with the comma before it.
const DIGITS: usize = 8;
const GROUP: usize = DIGITS + 1;

/// The two lines of a bitmap, kept because most processes have the same bitmap.
#[derive(Clone, Debug)]
pub(super) struct MaskText {
    label: &'static str,
    bits: usize,
    /// The bitmap of `text`, and the end of its first part.
    words: Vec<u64>,
    text: Text,
    bitmap_end: usize,
}

impl MaskText {
    /// For the lowest `bits` bits of the bitmap with this label.
    pub(super) fn new(label: &'static str, bits: usize) -> Self {
        let mut mask = Self {
            label,
            bits,
            words: Vec::new(),
            text: Text::default(),
            bitmap_end: 0,
        };
        mask.render();
        mask
    }

    /// Renders the bitmap `words`, unless the text has it already.
    #[inline]
    pub(super) fn set(&mut self, words: &[u64]) {
        if self.words != words {
            self.words.clear();
            self.words.extend_from_slice(words);
            self.render();
        }
    }

    #[cold]
    fn render(&mut self) {
        let Self {
            label,
            bits,
            words,
            text,
            bitmap_end,
        } = self;
        let Ok(_) = text.render(|out: &mut SeqBuf<'_>| {
            out.puts(label).puts(":\t").put_bitmap(words, *bits);
            *bitmap_end = out.count();
            out.puts("\n")
                .puts(label)
                .puts("_list:\t")
                .put_bitmap_list(words, *bits)
                .putc(b'\n');
            Ok::<_, std::convert::Infallible>(())
        });
    }

    /// Both lines.
    #[inline]
    pub(super) fn both(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The line with the bitmap.
    pub(super) fn bitmap(&self) -> &[u8] {
        &self.both()[..=self.bitmap_end]
    }

    /// The line with the list.
    pub(super) fn list(&self) -> &[u8] {
        &self.both()[self.bitmap_end + 1..]
    }
}

/// The number of bits of this bitmap: four for each digit.
pub(super) fn room(bitmap: &[u8]) -> usize {
    4 * bitmap.iter().filter(|&&byte| byte != b',').count()
}

/// Parses the bitmap in the rest of the line, and skips the line. Returns the first word, and the place of all words in
/// `pool`, unless the words after the first are zero.
pub(super) fn parse(
    cursor: &mut Cursor<'_>,
    pool: &mut Vec<u64>,
) -> Result<(u64, u32), ParseError> {
    const SHAPE: &str = "groups of eight hexadecimal digits with commas between them";
    let start = cursor.position();
    let line = cursor.line()?;
    let first_len = line
        .iter()
        .take(GROUP)
        .position(|&byte| byte == b',')
        .unwrap_or(line.len());
    if first_len == 0 || first_len > DIGITS || !(line.len() - first_len).is_multiple_of(GROUP) {
        return Err(cursor.error_at(start, SHAPE));
    }
    let (first, rest) = line.split_at(first_len);
    let mut index = rest.len() / GROUP;
    let word_count = index / 2 + 1;
    let mut word = 0;
    let mut at = 0;
    let mut add = |index: usize, group: u32| {
        if index < 2 {
            word |= u64::from(group) << (32 * index);
        } else if group != 0 {
            if at == 0 {
                at = take(pool, word_count);
            }
            pool[at + index / 2] |= u64::from(group) << (32 * (index % 2));
        }
    };
    add(
        index,
        parse_group(first).ok_or_else(|| cursor.error_at(start, SHAPE))?,
    );
    for (passed, group) in rest.as_chunks::<GROUP>().0.iter().enumerate() {
        index -= 1;
        if group != b",00000000" {
            let digits = group.strip_prefix(b",").and_then(parse_group);
            add(
                index,
                digits.ok_or_else(|| cursor.error_at(start + first_len + passed * GROUP, SHAPE))?,
            );
        }
    }
    if at != 0 {
        pool[at] = word;
    }
    Ok((word, at as u32))
}

fn parse_group(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |group, &byte| {
        Some(group << 4 | u32::from(hex_digit(byte)?))
    })
}

/// Appends `words` words to the pool, whose word 0 is never used. Returns their place.
pub(super) fn take(pool: &mut Vec<u64>, words: usize) -> usize {
    let at = pool.len().max(1);
    pool.resize(at + words, 0);
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Result<(u64, Vec<u64>), ParseError> {
        let mut pool = Vec::new();
        let line = format!("{text}\n");
        let (word, at) = parse(&mut Cursor::new("file", line.as_bytes()), &mut pool)?;
        Ok((word, pool.split_off((at as usize).min(pool.len()))))
    }

    #[test]
    fn bitmaps_of_any_width() {
        assert_eq!(parsed("3"), Ok((3, vec![])));
        assert_eq!(parsed("ff,00000000"), Ok((0xff_0000_0000, vec![])));
        assert_eq!(parsed("00000000,00000000,00000001"), Ok((1, vec![])));
        assert_eq!(parsed("1,00000000,00000002"), Ok((2, vec![2, 1])));
        assert_eq!(
            parsed("8,00000000,00000000,00000000"),
            Ok((0, vec![0, 0x8_0000_0000]))
        );
    }

    #[test]
    fn damaged_bitmaps() {
        for text in [
            "",
            ",00000001",
            "000000001",
            "1,0000000",
            "1,0000000g",
            "1,00000000,",
            "x",
            "1 00000000",
            "1,,0000000",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn rendered_masks_parse_back(words in prop::collection::vec(any::<u64>(), 1..20), spare in 0..64_usize) {
            let bits = 64 * words.len() - spare;
            let mut words = words;
            *words.last_mut().expect("there is one") &= u64::MAX >> spare;
            let mut mask = MaskText::new("Cpus_allowed", bits);
            mask.set(&words);
            let line = std::str::from_utf8(mask.bitmap()).expect("it is ASCII");
            let bitmap = line.strip_prefix("Cpus_allowed:\t").and_then(|line| line.strip_suffix('\n')).expect("a whole line");
            prop_assert_eq!(room(bitmap.as_bytes()), bits.next_multiple_of(4));
            let (word, all) = parsed(bitmap).expect("it parses");
            prop_assert_eq!(word, words[0]);
            if words[1..].iter().all(|&word| word == 0) {
                prop_assert!(all.is_empty());
            } else {
                prop_assert_eq!(all, words);
            }
            let list = std::str::from_utf8(mask.list()).expect("it is ASCII");
            prop_assert!(list.starts_with("Cpus_allowed_list:\t") && list.ends_with('\n'));
        }
    }
}
