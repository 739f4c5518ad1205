//! This program's own: groups of three digits from tables, straight to their place.

use ::seqtext::SeqBuf;

use super::method::Method;

pub struct Seqtext;

impl Method for Seqtext {
    const CASE: &'static str = "seqtext";

    #[inline(always)]
    fn append(out: &mut [u8], at: usize, n: u64) -> usize {
        let mut buf = SeqBuf::new(&mut out[at..]);
        buf.put_decimal_ull("", n);
        at + buf.count()
    }

    /// The buffer knows where it is.
    #[inline(always)]
    fn append_all(numbers: &[u64], out: &mut [u8]) -> usize {
        let mut buf = SeqBuf::new(out);
        for &n in numbers {
            buf.put_decimal_ull("", n);
        }
        buf.count()
    }
}
