//! Finds a few names among a hundred thousand.

use std::collections::HashSet;

/// The names to find. Their first eight bytes are checked first, because a kernel has a hundred thousand other
/// names.
pub(super) struct Names<'a> {
    sieve: Box<[u64; 1024]>,
    names: HashSet<&'a [u8]>,
}

impl<'a> Names<'a> {
    pub(super) fn new(names: impl Iterator<Item = &'a str>) -> Self {
        let names: HashSet<_> = names.map(str::as_bytes).collect();
        let mut sieve = Box::new([0; 1024]);
        for name in &names {
            let place = Self::place(name);
            sieve[place / 64] |= 1 << (place % 64);
        }
        Self { sieve, names }
    }

    /// A 16-bit hash of the bytes before the first NUL, of the first eight.
    #[inline]
    fn place(names: &[u8]) -> usize {
        const ONES: u64 = 0x0101_0101_0101_0101;
        let word = if let Some(word) = names.first_chunk() {
            u64::from_le_bytes(*word)
        } else {
            let mut word = [0; 8];
            word[..names.len()].copy_from_slice(names);
            u64::from_le_bytes(word)
        };
        // The highest bit of each byte that is 0, and perhaps of some after the first such byte.
        let nul = word.wrapping_sub(ONES) & !word & (ONES << 7);
        let before = if nul == 0 {
            u64::MAX
        } else {
            (1 << (nul.trailing_zeros() & !7)) - 1
        };
        ((word & before).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize
    }

    #[inline]
    pub(super) fn may_have(&self, names: &[u8]) -> bool {
        let place = Self::place(names);
        self.sieve[place / 64] >> (place % 64) & 1 != 0
    }

    pub(super) fn find<'b>(&self, names: &'b [u8]) -> Option<&'b [u8]> {
        if !self.may_have(names) {
            return None;
        }
        let name = &names[..names.iter().position(|&byte| byte == 0)?];
        self.names.contains(name).then_some(name)
    }
}
