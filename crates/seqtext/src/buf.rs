//! The buffer: memory of the caller, a count and the kernel's rule for overflow.

use core::{error::Error, fmt, mem::MaybeUninit, ptr};

use crate::{Dec, Hex, Hex16, Octal, Piece, decimal, hex, octal};

/// A sequence of bytes that grows inside memory of the caller: the kernel's `struct seq_file`, as far as it is a buffer.
///
/// Each method appends. When the text does not fit, the buffer has overflowed from there on: see the
/// [crate's documentation](crate#overflow).
pub struct SeqBuf<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    /// How many bytes of `memory` are text, all of them initialised; or `memory.len()` after an overflow.
    count: usize,
}

/// The text did not fit into the memory of its [`SeqBuf`].
///
/// Take more memory (the kernel doubles it) and render again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// The bytes of memory there were. The text has at least as many.
    pub size: usize,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the text does not fit into its buffer; give the buffer more memory and render again",
        )
    }
}

impl Error for Overflow {}

impl<'a> SeqBuf<'a> {
    /// An empty text in `memory`, which may hold anything.
    #[inline]
    pub fn new(memory: &'a mut [u8]) -> Self {
        let memory: *mut [u8] = memory;
        // SAFETY: the layout is the same, the borrow lasts as long, and only initialised bytes are ever stored.
        Self::uninit(unsafe { &mut *(memory as *mut [MaybeUninit<u8>]) })
    }

    /// An empty text in memory that need not be initialised, such as `Vec::spare_capacity_mut`.
    #[inline]
    pub fn uninit(memory: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { memory, count: 0 }
    }

    /// The bytes of memory there are.
    #[inline]
    pub fn size(&self) -> usize {
        self.memory.len()
    }

    /// The bytes of text so far; [`size`](Self::size) after an overflow.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether the text did not fit (`seq_has_overflowed`). True from the start where there is no memory at all.
    #[inline]
    pub fn has_overflowed(&self) -> bool {
        self.count == self.memory.len()
    }

    /// The text.
    ///
    /// # Errors
    /// [`Overflow`] when it did not fit.
    #[inline]
    pub fn text(&self) -> Result<&[u8], Overflow> {
        self.overflow()?;
        // SAFETY: without an overflow, `count` bytes have been written.
        Ok(unsafe { core::slice::from_raw_parts(self.memory.as_ptr().cast(), self.count) })
    }

    /// The text, for as long as the memory lives.
    ///
    /// # Errors
    /// [`Overflow`] when it did not fit.
    #[inline]
    pub fn finish(self) -> Result<&'a mut [u8], Overflow> {
        self.overflow()?;
        // SAFETY: without an overflow, `count` bytes have been written; they are borrowed for as long as the memory was.
        Ok(unsafe { core::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), self.count) })
    }

    /// Empties the text, to render the next one into the same memory.
    #[inline]
    pub fn clear(&mut self) -> &mut Self {
        self.count = 0;
        self
    }

    #[inline]
    fn overflow(&self) -> Result<(), Overflow> {
        if self.has_overflowed() {
            Err(Overflow { size: self.size() })
        } else {
            Ok(())
        }
    }

    /// What a text may still grow by is less than this.
    #[inline]
    fn room(&self) -> usize {
        // Never below zero; wrapping, so that no build has a panic here.
        self.memory.len().wrapping_sub(self.count)
    }

    /// Where the next byte goes.
    #[inline]
    fn end(&mut self) -> *mut u8 {
        // SAFETY: `count` never exceeds the length.
        unsafe { self.memory.as_mut_ptr().cast::<u8>().add(self.count) }
    }

    /// Marks the text as overflowed (`seq_set_overflow`).
    #[inline]
    fn set_overflow(&mut self) {
        self.count = self.memory.len();
    }

    /// Appends one byte (`seq_putc`).
    #[inline]
    pub fn putc(&mut self, byte: u8) -> &mut Self {
        if self.room() > 0 {
            // SAFETY: there is room for one byte.
            unsafe { self.end().write(byte) };
            self.count += 1;
        }
        self
    }

    /// Appends a string (`seq_puts`).
    #[inline]
    pub fn puts(&mut self, text: &str) -> &mut Self {
        self.write(text.as_bytes())
    }

    /// Appends bytes (`seq_write`).
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> &mut Self {
        if bytes.len() < self.room() {
            // SAFETY: there is room for them all, in memory that is borrowed mutably and thus apart from `bytes`.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.end(), bytes.len()) };
            self.count += bytes.len();
        } else {
            self.set_overflow();
        }
        self
    }

    /// Appends a piece, or a tuple or an array of them, behind one check of the room for all.
    ///
    /// ```
    /// use seqtext::{Dec, SeqBuf};
    ///
    /// let mut memory = [0; 32];
    /// let mut buf = SeqBuf::new(&mut memory);
    /// buf.put((Dec(1_u8), b" (init) S ", [(Dec(-1_i64), b" "); 2]));
    /// assert_eq!(buf.text(), Ok(&b"1 (init) S -1 -1 "[..]));
    /// ```
    #[inline(always)]
    pub fn put<P: Piece>(&mut self, piece: P) -> &mut Self {
        if self.count < self.memory.len().saturating_sub(P::TOUCHES) {
            let start = self.end();
            // SAFETY: more bytes are there than the piece touches; what it returns is behind `start` in the same memory.
            self.count += unsafe { piece.write(start).offset_from_unsigned(start) };
        } else {
            self.count = put_tight(self.memory, self.count, piece);
        }
        self
    }

    /// Appends `byte` `times` times.
    #[inline]
    pub(crate) fn fill(&mut self, byte: u8, times: usize) -> &mut Self {
        if times < self.room() {
            // SAFETY: there is room for them all.
            unsafe { self.end().write_bytes(byte, times) };
            self.count += times;
        } else {
            self.set_overflow();
        }
        self
    }

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

/// Appends a piece where there may be room for its text, though not for all that it touches, and returns the new count.
/// By values, so that a `SeqBuf` whose address nobody takes can live in registers.
#[cold]
#[inline(never)]
fn put_tight<P: Piece>(memory: &mut [MaybeUninit<u8>], count: usize, piece: P) -> usize {
    let mut buf = SeqBuf { memory, count };
    piece.write_tight(&mut buf);
    buf.count
}

impl fmt::Debug for SeqBuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeqBuf")
            .field("count", &self.count)
            .field("size", &self.size())
            .finish()
    }
}
