//! The crate itoa: two digits at a time into a buffer of its own, from where they are copied.

use super::method::Method;

pub struct Itoa;

impl Method for Itoa {
    const CASE: &'static str = "itoa";

    #[inline(always)]
    fn append(out: &mut [u8], at: usize, n: u64) -> usize {
        let mut buffer = ::itoa::Buffer::new();
        let digits = buffer.format(n).as_bytes();
        let end = at + digits.len();
        out[at..end].copy_from_slice(digits);
        end
    }
}
