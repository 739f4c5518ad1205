//! What is measured: one way each to turn numbers into text.

/// One way to turn a number into text.
pub trait Method {
    /// Its name in the report.
    const CASE: &'static str;

    /// Writes the digits of `n` into `out` from `at` on, and returns where they end. There is always room for 32 bytes.
    fn append(out: &mut [u8], at: usize, n: u64) -> usize;

    /// Writes the digits of all numbers, one behind the other, and returns where they end.
    #[inline(always)]
    fn append_all(numbers: &[u64], out: &mut [u8]) -> usize {
        numbers.iter().fold(0, |at, &n| Self::append(out, at, n))
    }
}

/// A [`Method`] among others.
#[derive(Clone, Copy)]
pub struct Converter {
    /// Its name in the report.
    pub case: &'static str,
    /// Writes the digits of all numbers, one behind the other, and returns where they end.
    pub all: fn(&[u64], &mut [u8]) -> usize,
    /// Writes the digits of one number, and returns how many they are.
    pub one: fn(&mut [u8], u64) -> usize,
}

impl Converter {
    pub const fn of<M: Method>() -> Self {
        Self {
            case: M::CASE,
            all: all::<M>,
            one: |out, n| M::append(out, 0, n),
        }
    }
}

// Not inlined: each has its loop, as if it were alone.
#[inline(never)]
fn all<M: Method>(numbers: &[u64], out: &mut [u8]) -> usize {
    M::append_all(numbers, out)
}

/// Copies the first `len` of `digits`, last first, to `at`, and returns where they end.
#[inline]
pub fn turn_round(digits: &[u8], len: usize, out: &mut [u8], at: usize) -> usize {
    let end = at + len;
    for (to, from) in out[at..end].iter_mut().zip(digits[..len].iter().rev()) {
        *to = *from;
    }
    end
}
