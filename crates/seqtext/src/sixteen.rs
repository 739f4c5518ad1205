//! Two numbers of eight digits at once, in parallel lanes.
//!
//! Each step halves the lanes: 10^8 to two of 10^4, these to four of 100, these to eight of 10, by multiplications with
//! reciprocals that are exact in their range.

/// The digits of `high` and of `low`, both below 10^8, with leading zeros, the first digit of each in the lowest byte of
/// its word.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline(always)]
pub(crate) fn sixteen(high: u32, low: u32) -> (u64, u64) {
    use core::arch::x86_64::{
        _mm_cvtsi32_si128, _mm_cvtsi128_si64, _mm_mul_epu32, _mm_mulhi_epu16, _mm_mullo_epi16,
        _mm_or_si128, _mm_set1_epi8, _mm_set1_epi16, _mm_set1_epi64x, _mm_slli_epi16,
        _mm_slli_epi32, _mm_slli_epi64, _mm_srli_epi16, _mm_srli_epi64, _mm_sub_epi16,
        _mm_sub_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi64,
    };
    // SAFETY: the target has SSE2, and none of these touches memory.
    unsafe {
        let lanes = _mm_unpacklo_epi64(
            _mm_cvtsi32_si128(high as i32),
            _mm_cvtsi32_si128(low as i32),
        );
        let quotients = _mm_srli_epi64(_mm_mul_epu32(lanes, _mm_set1_epi64x(109_951_163)), 40);
        let rests = _mm_sub_epi32(lanes, _mm_mul_epu32(quotients, _mm_set1_epi64x(10_000)));
        let lanes = _mm_or_si128(quotients, _mm_slli_epi64(rests, 32));

        let quotients = _mm_srli_epi16(_mm_mulhi_epu16(lanes, _mm_set1_epi16(5243)), 3);
        let rests = _mm_sub_epi16(lanes, _mm_mullo_epi16(quotients, _mm_set1_epi16(100)));
        let lanes = _mm_or_si128(quotients, _mm_slli_epi32(rests, 16));

        let quotients = _mm_mulhi_epu16(lanes, _mm_set1_epi16(6554));
        // The quotient below, the rest above: 256 * (lane - 10 * quotient) + quotient.
        let lanes = _mm_sub_epi16(
            _mm_slli_epi16(lanes, 8),
            _mm_mullo_epi16(quotients, _mm_set1_epi16(2559)),
        );
        let lanes = _mm_or_si128(lanes, _mm_set1_epi8(b'0' as i8));
        (
            _mm_cvtsi128_si64(lanes) as u64,
            _mm_cvtsi128_si64(_mm_unpackhi_epi64(lanes, lanes)) as u64,
        )
    }
}

/// The same with words of 64 bits.
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
#[inline(always)]
pub(crate) fn sixteen(high: u32, low: u32) -> (u64, u64) {
    (eight(high), eight(low))
}

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
#[inline(always)]
fn eight(n: u32) -> u64 {
    let lanes = u64::from(n);
    // Quotient below, rest above, in one: lane * 2^32 - quotient * (10^4 * 2^32 - 1). The same in the next two steps.
    let quotients = (lanes * 109_951_163) >> 40;
    let lanes = (lanes << 32).wrapping_sub(quotients * ((10_000 << 32) - 1));
    let quotients = (lanes * 5243) >> 19 & 0x0000_007f_0000_007f;
    let lanes = (lanes << 16).wrapping_sub(quotients * ((100 << 16) - 1));
    let quotients = (lanes * 103) >> 10 & 0x000f_000f_000f_000f;
    (lanes << 8).wrapping_sub(quotients * ((10 << 8) - 1)) | u64::from_ne_bytes([b'0'; 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_has_its_digits() {
        let digits = |n: u32| {
            let mut digits = [b'0'; 8];
            let mut rest = n;
            for digit in digits.iter_mut().rev() {
                *digit += (rest % 10) as u8;
                rest /= 10;
            }
            u64::from_le_bytes(digits)
        };
        let step = if cfg!(miri) { 999_983 } else { 97 };
        for n in (0..100_000_000).step_by(step).chain([99_999_999]) {
            let other = 99_999_999 - n;
            assert_eq!(eight(n), digits(n));
            assert_eq!(sixteen(n, other), (digits(n), digits(other)));
        }
    }
}
