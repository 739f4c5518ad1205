//! Bitmaps, as `Cpus_allowed` and `Mems_allowed` print them.

use crate::{
    buf::{Sealed, SeqBuf},
    hex,
    piece::Dec,
};

/// Two groups behind others: `,xxxxxxxx,xxxxxxxx`.
#[derive(Clone, Copy)]
struct Groups(u64);

// SAFETY: 18 bytes, written one behind the other.
unsafe impl Sealed for Groups {
    const TOUCHES: usize = 18;

    #[inline(always)]
    unsafe fn write(self, at: *mut u8) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            if self.0 == 0 {
                return b",00000000,00000000".write(at);
            }
            b",".write(at);
            hex::write8(at.add(1), (self.0 >> 32) as u32);
            b",".write(at.add(9));
            hex::write8(at.add(10), self.0 as u32);
            at.add(18)
        }
    }

    fn write_tight(self, buf: &mut SeqBuf<'_>) {
        let high = self.0 >> 32;
        let low = self.0 & u64::from(u32::MAX);
        buf.put_hex_ll(",", high, 8).put_hex_ll(",", low, 8);
    }
}

/// Word `index` of a bitmap, zero behind its end.
#[inline]
fn word(words: &[u64], index: usize) -> u64 {
    words.get(index).copied().unwrap_or(0)
}

impl SeqBuf<'_> {
    /// Appends the lowest `nbits` bits of a bitmap in hexadecimal, highest first, in groups of 32 bits with commas
    /// between them (`%*pb`, as in `Cpus_allowed`). The first group has as many digits as its bits need.
    ///
    /// Bit *i* is bit *i* % 64 of word *i* / 64. Words that are not there are zero.
    ///
    /// ```
    /// use seqtext::SeqBuf;
    ///
    /// let mut memory = [0; 32];
    /// let mut buf = SeqBuf::new(&mut memory);
    /// buf.put_bitmap(&[0xff_0000_000f], 42);
    /// assert_eq!(buf.text(), Ok(&b"0ff,0000000f"[..]));
    /// ```
    pub fn put_bitmap(&mut self, words: &[u64], nbits: usize) -> &mut Self {
        let groups = nbits.div_ceil(32);
        if groups == 0 {
            return self;
        }
        // The first group, of 1 to 32 bits, which may be either half of its word.
        let first = groups - 1;
        let bits = nbits - first * 32;
        let value = word(words, first / 2) >> (first % 2 * 32) & (u64::MAX >> (64 - bits));
        self.put_hex_ll("", value, bits.div_ceil(4));
        if first % 2 == 1 {
            self.put_hex_ll(",", word(words, first / 2) & u64::from(u32::MAX), 8);
        }
        for index in (0..first / 2).rev() {
            self.put(Groups(word(words, index)));
            if self.has_overflowed() {
                break;
            }
        }
        self
    }

    /// Appends the numbers of the bits that are set among the lowest `nbits` of a bitmap, as ranges with commas between
    /// them: `0-3,5,7-9` (`%*pbl`, as in `Cpus_allowed_list`).
    ///
    /// Bit *i* is bit *i* % 64 of word *i* / 64. Words that are not there are zero.
    ///
    /// ```
    /// use seqtext::SeqBuf;
    ///
    /// let mut memory = [0; 32];
    /// let mut buf = SeqBuf::new(&mut memory);
    /// buf.put_bitmap_list(&[0b11_1010_1111], 64);
    /// assert_eq!(buf.text(), Ok(&b"0-3,5,7-9"[..]));
    /// ```
    pub fn put_bitmap_list(&mut self, words: &[u64], nbits: usize) -> &mut Self {
        let nbits = nbits.min(words.len().saturating_mul(64));
        let mut from = 0;
        while let Some(start) = next_bit(words, from, nbits, 0) {
            let end = next_bit(words, start, nbits, u64::MAX).unwrap_or(nbits);
            if from > 0 {
                self.putc(b',');
            }
            if end - start > 1 {
                self.put((Dec(start), b"-", Dec(end - 1)));
            } else {
                self.put(Dec(start));
            }
            if self.has_overflowed() {
                break;
            }
            from = end;
        }
        self
    }
}

/// The first bit from `from` on and below `nbits` that is set in `words` if `flip` is 0, or clear if `flip` is all
/// ones.
fn next_bit(words: &[u64], from: usize, nbits: usize, flip: u64) -> Option<usize> {
    let mut mask = u64::MAX << (from % 64);
    for (index, &word) in words.iter().enumerate().skip(from / 64) {
        let rest = (word ^ flip) & mask;
        if rest != 0 {
            let bit = index * 64 + rest.trailing_zeros() as usize;
            return (bit < nbits).then_some(bit);
        }
        mask = u64::MAX;
    }
    None
}
