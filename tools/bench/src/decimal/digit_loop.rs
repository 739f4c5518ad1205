//! The first method of all: divide by ten for each digit, last digit first, and turn the digits round.

use super::method::{Method, turn_round};

pub struct DigitLoop;

impl Method for DigitLoop {
    const CASE: &'static str = "digit-loop";

    // A call, as it is in the kernel.
    #[inline(never)]
    fn append(out: &mut [u8], at: usize, mut n: u64) -> usize {
        let mut digits = [0; 20];
        let mut len = 0;
        for digit in &mut digits {
            *digit = b'0' + (n % 10) as u8;
            n /= 10;
            len += 1;
            if n == 0 {
                break;
            }
        }
        turn_round(&digits, len, out, at)
    }
}
