//! The crate lexical-core: straight to their place, by tables, after counting them.

use super::method::Method;

pub struct LexicalCore;

impl Method for LexicalCore {
    const CASE: &'static str = "lexical-core";

    #[inline(always)]
    fn append(out: &mut [u8], at: usize, n: u64) -> usize {
        at + ::lexical_core::write(n, &mut out[at..]).len()
    }
}
