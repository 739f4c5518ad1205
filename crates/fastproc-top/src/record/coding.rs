//! Encodes numbers in few bytes, seven bits each, the lowest first; and differences of words.

use super::Error;

const CUT: Error = Error::Damaged("a frame ends early");

/// Appends a number.
pub fn put(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends the difference of two words, small whether it is positive or negative.
pub fn put_difference(now: u64, before: u64, to: &mut Vec<u8>) {
    let difference = now.wrapping_sub(before) as i64;
    put((difference << 1 ^ difference >> 63) as u64, to);
}

/// Appends the words that differ: the number of words skipped before each, and its difference; finally 0.
pub fn put_words(now: &[u64], before: &[u64], to: &mut Vec<u8>) {
    let mut skipped = 1;
    for (&now, &before) in now.iter().zip(before) {
        if now == before {
            skipped += 1;
        } else {
            put(skipped, to);
            put_difference(now, before, to);
            skipped = 1;
        }
    }
    put(0, to);
}

/// The rest of a block.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// A byte.
    pub fn byte(&mut self) -> Result<u8, Error> {
        let (&byte, rest) = self.0.split_first().ok_or(CUT)?;
        self.0 = rest;
        Ok(byte)
    }

    /// Reads this many bytes.
    pub fn bytes(&mut self, count: u64) -> Result<&'a [u8], Error> {
        let count = usize::try_from(count).map_err(|_| CUT)?;
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(CUT)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// A number.
    pub fn number(&mut self) -> Result<u64, Error> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Error::Damaged("a number is too long"))
    }

    /// Reads a number of items, each of which takes at least one byte.
    pub fn count(&mut self) -> Result<usize, Error> {
        let count = self.number()?;
        if count > self.0.len() as u64 {
            return Err(CUT);
        }
        Ok(count as usize)
    }

    /// A number that fits into 32 bits.
    pub fn small(&mut self) -> Result<u32, Error> {
        let number = self.number()?.try_into();
        number.map_err(|_| Error::Damaged("a number is too large"))
    }

    /// Reads a word, given its previous value.
    pub fn difference(&mut self, before: u64) -> Result<u64, Error> {
        let coded = self.number()?;
        let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        Ok(before.wrapping_add(difference as u64))
    }

    /// Changes the words that differ.
    pub fn words(&mut self, words: &mut [u64]) -> Result<(), Error> {
        let mut at = 0_usize;
        loop {
            let skipped = self.number()?;
            if skipped == 0 {
                return Ok(());
            }
            let skipped = usize::try_from(skipped - 1).unwrap_or(usize::MAX);
            at = at.saturating_add(skipped);
            let word = words
                .get_mut(at)
                .ok_or(Error::Damaged("a record is too long"))?;
            *word = self.difference(*word)?;
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// For any number of unchanged words before it.
    #[test]
    fn a_word_comes_back_in_its_place() {
        let before = [7; 300];
        for at in 0..before.len() {
            let mut now = before;
            now[at] = 9;
            let mut bytes = Vec::new();
            put_words(&now, &before, &mut bytes);
            let mut words = before;
            let read = Input(&bytes).words(&mut words);
            read.expect("what was written");
            assert_eq!(words, now, "{at}");
        }
    }

    proptest! {
        #[test]
        fn words_come_back(pairs in prop::collection::vec(any::<(u64, u64)>(), 0..40), same in any::<u64>()) {
            // Some words are the same.
            let pick = |i: usize, (now, before): (u64, u64)| if same >> (i % 64) & 1 == 0 { now } else { before };
            let before: Vec<u64> = pairs.iter().map(|pair| pair.1).collect();
            let now: Vec<u64> = pairs.iter().enumerate().map(|(i, &pair)| pick(i, pair)).collect();
            let mut bytes = Vec::new();
            put_words(&now, &before, &mut bytes);
            let mut words = before.clone();
            let mut input = Input(&bytes);
            input.words(&mut words).expect("what was written");
            prop_assert_eq!(words, now);
            prop_assert!(input.0.is_empty());
            for cut in 0..bytes.len() {
                prop_assert!(Input(&bytes[..cut]).words(&mut before.clone()).is_err());
            }
        }

        #[test]
        fn anything_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut words = [0; 5];
            let _ = Input(&bytes).words(&mut words);
            let _ = Input(&bytes).number();
            let _ = Input(&bytes).count();
        }
    }
}
