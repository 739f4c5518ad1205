//! A text whose words stay the same while its numbers change.

use seqtext::SeqBuf;

/// Bytes of the longest number in its widest column.
const LONGEST: usize = 40;

#[derive(Clone, Copy, Debug)]
struct Place {
    at: u32,
    len: u16,
    width: u16,
}

/// A text and the places of its numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    /// Longer than the text, since a full buffer looks like an overflowed one.
    memory: Vec<u8>,
    len: usize,
    places: Vec<Place>,
    values: Vec<u64>,
}

/// The target of a renderer.
pub(super) struct Writer<'a> {
    buf: SeqBuf<'a>,
    places: &'a mut Vec<Place>,
    values: &'a mut Vec<u64>,
}

impl Writer<'_> {
    pub(super) fn puts(&mut self, text: &str) {
        self.buf.puts(text);
    }

    /// A number that does not change, like the words.
    pub(super) fn fixed(&mut self, n: u64) {
        self.buf.put_decimal_ull("", n);
    }

    pub(super) fn number(&mut self, delimiter: &str, n: u64) {
        self.number_width(delimiter, n, 0);
    }

    /// A number in a column, padded with spaces to the left.
    pub(super) fn number_width(&mut self, delimiter: &str, n: u64, width: usize) {
        self.buf.puts(delimiter);
        let at = self.buf.count();
        if width == 0 {
            self.buf.put_decimal_ull("", n);
        } else {
            self.buf.put_decimal_ull_width("", n, width);
        }
        self.places.push(Place {
            at: at as u32,
            len: (self.buf.count() - at) as u16,
            width: width as u16,
        });
        self.values.push(n);
    }
}

impl Numbers {
    /// Renders the whole text, with as much memory as it needs.
    pub(super) fn write(&mut self, mut render: impl FnMut(&mut Writer<'_>)) {
        if self.memory.is_empty() {
            self.memory.resize(4096, 0);
        }
        loop {
            self.places.clear();
            self.values.clear();
            let mut writer = Writer {
                buf: SeqBuf::new(&mut self.memory),
                places: &mut self.places,
                values: &mut self.values,
            };
            render(&mut writer);
            if !writer.buf.has_overflowed() {
                self.len = writer.buf.count();
                return;
            }
            let size = self.memory.len() * 2;
            self.memory.resize(size, 0);
        }
    }

    /// Rewrites one number if it has changed; the rest of the text moves only if its length changes.
    #[inline]
    pub(super) fn set(&mut self, index: usize, n: u64) {
        if self.values.get(index).is_some_and(|&old| old != n) {
            self.rewrite(index, n);
        }
    }

    /// [`set`](Self::set) for consecutive numbers. Most are unchanged, so many are compared at once.
    pub(super) fn set_row(&mut self, first: usize, row: &[u64]) {
        const AT_ONCE: usize = 16;
        for (part, new) in row.chunks(AT_ONCE).enumerate() {
            let at = first + part * AT_ONCE;
            let same = self.values.get(at..at + new.len()).is_some_and(|old| {
                old.iter()
                    .zip(new)
                    .fold(0, |all, (old, new)| all | old ^ new)
                    == 0
            });
            if !same {
                for (place, &n) in new.iter().enumerate() {
                    self.set(at + place, n);
                }
            }
        }
    }

    fn rewrite(&mut self, index: usize, n: u64) {
        self.values[index] = n;
        let mut digits = [0; LONGEST];
        let place = self.places[index];
        let mut buf = SeqBuf::new(&mut digits);
        if place.width == 0 {
            buf.put_decimal_ull("", n);
        } else {
            buf.put_decimal_ull_width("", n, usize::from(place.width));
        }
        let len = buf.count();
        if len != usize::from(place.len) {
            self.resize(index, len);
        }
        let at = place.at as usize;
        self.memory[at..at + len].copy_from_slice(&digits[..len]);
    }

    fn resize(&mut self, index: usize, len: usize) {
        let place = &mut self.places[index];
        let end = place.at as usize + usize::from(place.len);
        let new_end = place.at as usize + len;
        place.len = len as u16;
        let new_len = self.len - end + new_end;
        if new_len >= self.memory.len() {
            self.memory.resize(new_len * 2, 0);
        }
        self.memory.copy_within(end..self.len, new_end);
        self.len = new_len;
        for place in &mut self.places[index + 1..] {
            place.at = place.at.wrapping_add_signed(new_end as i32 - end as i32);
        }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.memory[..self.len]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::*;

    use super::*;

    fn slow(widths: &[usize], values: &[u64]) -> String {
        let mut text = String::from("<");
        for (width, value) in widths.iter().zip(values) {
            write!(text, ";{value:>width$}").unwrap();
        }
        text + ">\n"
    }

    proptest! {
        #[test]
        fn rewriting_equals_writing(
            (widths, rounds) in prop::collection::vec(prop_oneof![Just(0_usize), 1..12_usize], 1..40).prop_flat_map(|widths| {
                let count = widths.len();
                let value = prop_oneof![0..20_u64, 0..100_000_u64, any::<u64>()];
                (Just(widths), prop::collection::vec(prop::collection::vec(value, count), 1..8))
            })
        ) {
            let mut numbers = Numbers::default();
            for (round, values) in rounds.iter().enumerate() {
                if round == 0 {
                    numbers.write(|to| {
                        to.puts("<");
                        for (&width, &value) in widths.iter().zip(values) {
                            to.number_width(";", value, width);
                        }
                        to.puts(">\n");
                    });
                } else if round % 2 == 0 {
                    numbers.set_row(0, values);
                } else {
                    for (index, &value) in values.iter().enumerate() {
                        numbers.set(index, value);
                    }
                }
                prop_assert_eq!(std::str::from_utf8(numbers.text()).unwrap(), slow(&widths, values));
            }
        }
    }
}
