//! The buffer: memory of the caller, a count and the kernel's rule for overflow; and what [`SeqBuf::put`] takes.

use core::{error::Error, fmt, mem::MaybeUninit, ptr};

/// A sequence of bytes that grows inside memory of the caller: the kernel's `struct seq_file`, as far as it is a buffer.
///
/// Each method appends. When the text does not fit, the buffer has overflowed from there on: see the
/// [crate's documentation](crate#overflow).
pub struct SeqBuf<'a> {
    pub(crate) memory: &'a mut [MaybeUninit<u8>],
    /// How many bytes of `memory` are text, all of them initialised; or `memory.len()` after an overflow.
    pub(crate) count: usize,
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

    /// A text can still grow by less than this.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        // Never below zero; wrapping, so that no build has a panic here.
        self.memory.len().wrapping_sub(self.count)
    }

    /// Where the next byte goes.
    #[inline]
    pub(crate) fn end(&mut self) -> *mut u8 {
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
}

/// Appends a piece if there is room for its text, though not for all that it touches, and returns the new count.
/// Arguments are passed by value, so that a `SeqBuf` whose address is not taken can stay in registers.
#[cold]
#[inline(never)]
pub(crate) fn put_tight<P: Piece>(memory: &mut [MaybeUninit<u8>], count: usize, piece: P) -> usize {
    let mut buf = SeqBuf { memory, count };
    piece.write_tight(&mut buf);
    buf.count
}

/// A value whose text can be appended by [`SeqBuf::put`].
///
/// These are the literals `b"…"` (`&[u8; N]`), the numbers in their forms ([`Dec`](crate::Dec),
/// [`DecWidth`](crate::DecWidth), [`Hex`](crate::Hex), [`Hex16`](crate::Hex16), [`Octal`](crate::Octal)),
/// [`Label`](crate::Label)s, and tuples of up to twelve pieces, arrays of pieces, and `Option`, whose `None` has no text.
/// The trait is sealed: the buffer relies on what it promises.
pub trait Piece: Sealed {}

impl<P: Sealed> Piece for P {}

/// # Safety
/// `write` touches no byte outside the `TOUCHES` bytes from `at` on, and returns the end of the text that it has
/// initialised from `at` on, which is not beyond these bytes.
pub unsafe trait Sealed: Copy {
    /// The most bytes that `write` touches, be they text or not.
    const TOUCHES: usize;

    /// Writes the text at `at` and returns its end.
    ///
    /// # Safety
    /// `at` is valid for writes of `TOUCHES` bytes.
    unsafe fn write(self, at: *mut u8) -> *mut u8;

    /// Appends the text if `TOUCHES` bytes may not be left.
    fn write_tight(self, buf: &mut SeqBuf<'_>);
}

impl fmt::Debug for SeqBuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeqBuf")
            .field("count", &self.count)
            .field("size", &self.size())
            .finish()
    }
}
