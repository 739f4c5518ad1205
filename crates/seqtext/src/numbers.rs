//! The kernel's functions that append numbers, as methods of the buffer.

use crate::{
    buf::{SeqBuf, put_tight},
    decimal, hex, octal,
    piece::{Dec, Hex, Hex16, Octal},
};

impl SeqBuf<'_> {
    /// Appends `delimiter` and a number in base ten (`seq_put_decimal_ull`).
    ///
    /// The whole conversion is copied to where this is called, which is best for a loop of numbers; for many places, a
    /// tuple of [`Dec`] takes less code.
    #[inline(always)]
    pub fn put_decimal_ull(&mut self, delimiter: &str, n: u64) -> &mut Self {
        self.puts(delimiter);
        if n < 10 && self.room() > 0 {
            // SAFETY: there is room for one byte.
            unsafe { self.end().write(b'0' + n as u8) };
            self.count += 1;
        } else if self.count < self.memory.len().saturating_sub(decimal::TOUCHES_U64) {
            // SAFETY: more bytes are there than the conversion touches, and it has initialised as many as it says.
            self.count += unsafe { decimal::write_u64_in_line(self.end(), n) };
        } else {
            self.count = put_tight(self.memory, self.count, Dec(n));
        }
        self
    }

    /// Appends `delimiter` and a number in base ten, behind spaces to make it at least `width` bytes long
    /// (`seq_put_decimal_ull_width`, `%*llu`).
    #[inline]
    pub fn put_decimal_ull_width(&mut self, delimiter: &str, n: u64, width: usize) -> &mut Self {
        self.puts(delimiter)
            .fill(b' ', width.saturating_sub(decimal::digits(n)))
            .put(Dec(n))
    }

    /// Appends `delimiter` and a signed number in base ten (`seq_put_decimal_ll`).
    #[inline]
    pub fn put_decimal_ll(&mut self, delimiter: &str, n: i64) -> &mut Self {
        self.puts(delimiter).put(Dec(n))
    }

    /// Appends `delimiter` and a number in lower-case hexadecimal, behind zeros to make it at least `width` bytes long
    /// (`seq_put_hex_ll`, `%0*llx`).
    #[inline]
    pub fn put_hex_ll(&mut self, delimiter: &str, v: u64, width: usize) -> &mut Self {
        self.puts(delimiter)
            .fill(b'0', width.saturating_sub(hex::digits(v)))
            .put(Hex(v))
    }

    /// Appends a set of 64 signals as 16 hexadecimal digits, signal 1 the lowest bit (`render_sigset_t`). The
    /// capability sets have the same form.
    #[inline]
    pub fn put_sigset(&mut self, set: u64) -> &mut Self {
        self.put(Hex16(set))
    }

    /// Appends `delimiter` and a number in base eight with a leading 0, behind zeros to make it at least `width` bytes
    /// long (`%#0*llo`, as in `Umask`).
    #[inline]
    pub fn put_octal(&mut self, delimiter: &str, v: u64, width: usize) -> &mut Self {
        self.puts(delimiter)
            .fill(b'0', width.saturating_sub(octal::digits(v)))
            .put(Octal::<0>(v))
    }
}
