//! A cursor that parses the kernel's texts without allocating, and the error that it reports.

use crate::base::error::parse::ParseError;

/// A place in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    file: &'static str,
    text: &'a [u8],
    at: usize,
}

/// The expected texts for numbers in error messages.
const NUMBER: &str = "a number";
const TOO_LARGE: &str = "a smaller number";

impl<'a> Cursor<'a> {
    pub(crate) const fn new(file: &'static str, text: &'a [u8]) -> Self {
        Self { file, text, at: 0 }
    }

    #[inline]
    pub(crate) fn error(&self, expected: &'static str) -> ParseError {
        self.error_at(self.at, expected)
    }

    #[inline]
    pub(crate) fn error_at(&self, at: usize, expected: &'static str) -> ParseError {
        locate(self.file, self.text, at, expected)
    }

    pub(crate) const fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or(&[])
    }

    pub(crate) const fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Whether `byte` is next; skips it if so.
    #[inline]
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    #[inline]
    pub(crate) fn byte(&mut self, byte: u8, expected: &'static str) -> Result<(), ParseError> {
        if self.eat(byte) {
            Ok(())
        } else {
            Err(self.error(expected))
        }
    }

    #[inline]
    pub(crate) fn newline(&mut self) -> Result<(), ParseError> {
        self.byte(b'\n', "the end of the line")
    }

    /// The rest of the line without its end, which is skipped too.
    pub(crate) fn line(&mut self) -> Result<&'a [u8], ParseError> {
        let rest = self.rest();
        let Some(end) = find(rest, b'\n') else {
            return Err(self.error_at(self.text.len(), "the end of the line"));
        };
        self.at += end + 1;
        Ok(&rest[..end])
    }

    /// The next eight bytes, the first in the lowest byte.
    #[inline]
    fn word(&self) -> Option<u64> {
        self.rest()
            .first_chunk()
            .map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// A decimal number.
    #[inline(always)]
    pub(crate) fn u64(&mut self) -> Result<u64, ParseError> {
        if let Some(word) = self.word() {
            let len = leading_digits(word);
            if (1..8).contains(&len) {
                self.at += len as usize;
                return Ok(eight_digits(word << (64 - 8 * len)));
            }
        }
        match long_number(self.rest()) {
            Some((_, 0)) => Err(self.error(NUMBER)),
            Some((number, len)) => {
                self.at += len;
                Ok(number)
            }
            None => Err(self.error(TOO_LARGE)),
        }
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, ParseError> {
        let start = self.at;
        let number = self.u64()?;
        u32::try_from(number).map_err(|_| self.error_at(start, TOO_LARGE))
    }

    #[inline]
    pub(crate) fn i32(&mut self) -> Result<i32, ParseError> {
        let start = self.at;
        let negative = self.eat(b'-');
        let number = i128::from(self.u64()?);
        i32::try_from(if negative { -number } else { number })
            .map_err(|_| self.error_at(start, TOO_LARGE))
    }

    /// A number in units of `unit`, times the unit.
    #[inline]
    pub(crate) fn u64_times(&mut self, unit: u64) -> Result<u64, ParseError> {
        let start = self.at;
        let number = self.u64()?;
        number
            .checked_mul(unit)
            .ok_or_else(|| self.error_at(start, TOO_LARGE))
    }

    /// A size in units of `unit`, in bytes, small enough that sums of sizes do not overflow.
    #[inline]
    pub(crate) fn size(&mut self, unit: u64) -> Result<u64, ParseError> {
        const LIMIT: u64 = 1 << 60;
        let start = self.at;
        let size = self.u64_times(unit)?;
        if size < LIMIT {
            Ok(size)
        } else {
            Err(self.error_at(start, TOO_LARGE))
        }
    }

    /// A number that spaces pad to at least eight bytes.
    #[inline]
    pub(crate) fn padded_size(&mut self, unit: u64) -> Result<u64, ParseError> {
        if let Some(word) = self.word() {
            // A space differs from the digit zero in one bit, and comes only before the first digit.
            let spaces = (word ^ SPACES).trailing_zeros() / 8;
            let filled = word | (DIGITS & !(u64::MAX.checked_shl(8 * spaces).unwrap_or(0)));
            if spaces < 8
                && leading_digits(filled) == 8
                && self.text.get(self.at + 8) == Some(&b' ')
            {
                self.at += 8;
                return Ok(eight_digits(filled) * unit);
            }
        }
        while self.eat(b' ') {}
        self.size(unit)
    }

    /// Up to 16 lower-case hexadecimal digits.
    #[inline]
    pub(crate) fn hex(&mut self) -> Result<u64, ParseError> {
        let start = self.at;
        let mut number = 0_u64;
        let digits = self
            .rest()
            .iter()
            .map(|&byte| HEX[usize::from(byte)])
            .take_while(|&digit| digit < 16);
        for digit in digits {
            if self.at - start == 16 {
                return Err(self.error_at(start, TOO_LARGE));
            }
            number = number << 4 | u64::from(digit);
            self.at += 1;
        }
        if self.at == start {
            Err(self.error("a hexadecimal number"))
        } else {
            Ok(number)
        }
    }

    /// Sixteen hexadecimal digits of a set of signals or capabilities.
    #[inline]
    pub(crate) fn set(&mut self) -> Result<u64, ParseError> {
        if let Some(digits) = self.rest().first_chunk::<16>() {
            let mut set = 0;
            let mut all = 0;
            for &byte in digits {
                let digit = HEX[usize::from(byte)];
                all |= digit;
                set = set << 4 | u64::from(digit);
            }
            if all < 16 {
                self.at += 16;
                return Ok(set);
            }
        }
        Err(self.error("sixteen hexadecimal digits"))
    }

    /// An octal number of up to 32 bits.
    pub(crate) fn octal(&mut self) -> Result<u32, ParseError> {
        let start = self.at;
        let mut number = 0_u32;
        while let Some(digit) = self
            .peek()
            .map(|byte| byte.wrapping_sub(b'0'))
            .filter(|&digit| digit < 8)
        {
            number = number
                .checked_mul(8)
                .map(|eights| eights | u32::from(digit))
                .ok_or_else(|| self.error_at(start, TOO_LARGE))?;
            self.at += 1;
        }
        if self.at == start {
            Err(self.error("an octal number"))
        } else {
            Ok(number)
        }
    }
}

/// Not inlined, so that the cursor stays in registers.
#[cold]
fn locate(file: &'static str, text: &[u8], at: usize, expected: &'static str) -> ParseError {
    let before = &text[..at.min(text.len())];
    let line_start = before
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |newline| newline + 1);
    #[allow(clippy::naive_bytecount, reason = "only errors count lines")]
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    ParseError {
        file,
        line,
        byte: before.len() - line_start + 1,
        expected,
    }
}

/// A number of more than seven digits, or at the end of the text, and its end. `None`: it is too large.
#[inline(never)]
fn long_number(text: &[u8]) -> Option<(u64, usize)> {
    let (words, _) = text.as_chunks::<8>();
    let mut number = 0_u64;
    let mut at = 0;
    for word in words.iter().take(2).map(|word| u64::from_le_bytes(*word)) {
        if leading_digits(word) < 8 {
            break;
        }
        number = number * 100_000_000 + eight_digits(word);
        at += 8;
    }
    while let Some(digit) = text
        .get(at)
        .map(|byte| byte.wrapping_sub(b'0'))
        .filter(|&digit| digit < 10)
    {
        number = number.checked_mul(10)?.checked_add(digit.into())?;
        at += 1;
    }
    Some((number, at))
}

const DIGITS: u64 = u64::from_le_bytes([b'0'; 8]);
const SPACES: u64 = u64::from_le_bytes([b' '; 8]);
const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGHS: u64 = ONES << 7;

/// The number of digits at the beginning of the word, which is its lowest byte.
#[inline]
const fn leading_digits(word: u64) -> u32 {
    // A digit is 0x30 to 0x39: its upper half is 3, and adding six to its lower half does not carry.
    let upper = (word & (ONES * 0xf0)) ^ DIGITS;
    let carried = ((word & (ONES * 0x0f)) + ONES * 6) & (ONES * 0xf0);
    (upper | carried).trailing_zeros() / 8
}

/// The number of these eight digits, the first in the lowest byte; a byte of zero counts as the digit zero.
#[inline]
const fn eight_digits(word: u64) -> u64 {
    // Pairs, then fours, then all: each step is a multiplication that adds neighbours, the first with the larger
    // weight.
    let word = word & (ONES * 0x0f);
    let word = word.wrapping_mul(10 << 8 | 1) >> 8 & 0x00ff_00ff_00ff_00ff;
    let word = word.wrapping_mul(100 << 16 | 1) >> 16 & 0x0000_ffff_0000_ffff;
    word.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// The index of the first `byte`.
#[inline]
pub(crate) fn find(text: &[u8], byte: u8) -> Option<usize> {
    let (words, rest) = text.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let difference = u64::from_le_bytes(*word) ^ (ONES * u64::from(byte));
        let found = difference.wrapping_sub(ONES) & !difference & HIGHS;
        if found != 0 {
            return Some(8 * index + found.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|&other| other == byte)?;
    Some(text.len() - rest.len() + at)
}

/// The values of lower-case hexadecimal digits; for other bytes, more than any.
static HEX: [u8; 256] = {
    let mut values = [255; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

pub(crate) fn hex_digit(byte: u8) -> Option<u8> {
    Some(HEX[usize::from(byte)]).filter(|&digit| digit < 16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_error_says_where() {
        let mut cursor = Cursor::new("file", b"1 2\n34 x\n");
        assert_eq!(cursor.u64(), Ok(1));
        cursor.line().expect("there is a line");
        assert_eq!(cursor.u32(), Ok(34));
        cursor.byte(b' ', "a space").expect("there is a space");
        let error = cursor.u64().expect_err("x is no number");
        assert_eq!(
            error,
            ParseError {
                file: "file",
                line: 2,
                byte: 4,
                expected: NUMBER
            }
        );
        assert_eq!(error.to_string(), "file, line 2, byte 4: expected a number");
    }

    #[test]
    fn numbers_end_where_their_type_does() {
        let parse = |text: &'static str| Cursor::new("file", text.as_bytes());
        assert_eq!(parse("18446744073709551615").u64(), Ok(u64::MAX));
        assert!(parse("18446744073709551616").u64().is_err());
        assert!(parse("99999999999999999999999").u64().is_err());
        assert_eq!(parse("4294967295").u32(), Ok(u32::MAX));
        assert!(parse("4294967296").u32().is_err());
        assert_eq!(parse("-2147483648").i32(), Ok(i32::MIN));
        assert!(parse("2147483648").i32().is_err());
        assert!(parse("-").i32().is_err());
        assert!(parse("").u64().is_err());
        assert_eq!(parse("ffffffffffffffff").hex(), Ok(u64::MAX));
        assert!(parse("fffffffffffffffff").hex().is_err());
        assert!(parse("12345678901234567890123").u64().is_err());
        assert_eq!(parse("0123456789abcdef").set(), Ok(0x0123_4567_89ab_cdef));
        assert!(parse("0123456789abcdeg").set().is_err());
        assert!(parse("0123456789abcde").set().is_err());
        assert_eq!(parse("37777777777").octal(), Ok(u32::MAX));
        assert!(parse("40000000000").octal().is_err());
        assert!(parse("9000").u64_times(u64::MAX / 8999).is_err());
    }

    #[test]
    fn a_byte_is_found_wherever_it_is() {
        let text: Vec<u8> = (1..=40).collect();
        for len in 0..text.len() {
            for byte in 0..=60 {
                let found = text[..len].iter().position(|&other| other == byte);
                assert_eq!(find(&text[..len], byte), found);
            }
        }
    }

    proptest! {
        #[test]
        fn numbers_survive(number in any::<u64>(), shift in 0..64_u32, behind in "[ \n/:a]{0,9}") {
            let number = number >> shift;
            let text = format!("{number}{behind}");
            let mut cursor = Cursor::new("file", text.as_bytes());
            prop_assert_eq!(cursor.u64(), Ok(number));
            prop_assert_eq!(cursor.rest(), behind.as_bytes());
            let text = format!("{number:8} kB{behind}");
            let mut cursor = Cursor::new("file", text.as_bytes());
            let expected = number.checked_mul(1024).filter(|size| size >> 60 == 0);
            prop_assert_eq!(cursor.padded_size(1024).ok(), expected);
        }

        #[test]
        fn text_that_is_not_a_number_is_refused(text in "[^0-9].{0,12}") {
            prop_assert!(Cursor::new("file", text.as_bytes()).u64().is_err());
        }

        #[test]
        fn only_digits_are_digits(bytes: [u8; 8]) {
            let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            prop_assert_eq!(leading_digits(u64::from_le_bytes(bytes)), digits as u32);
        }
    }
}
