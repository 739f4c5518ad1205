//! The pieces: numbers in their forms, labels, literals, and tuples and arrays of them.

use core::mem::MaybeUninit;

use crate::{
    buf::{Sealed, SeqBuf},
    decimal, hex, octal,
};

/// [`Sealed::write_tight`] by a copy through a scratch buffer of `N` bytes, for pieces that touch no more than that.
fn write_by_copy<P: Sealed, const N: usize>(piece: P, buf: &mut SeqBuf<'_>) {
    const { assert!(P::TOUCHES <= N) };
    let mut scratch = [MaybeUninit::<u8>::uninit(); N];
    let start = scratch.as_mut_ptr().cast::<u8>();
    // SAFETY: the piece touches no more than the scratch has, and its text is initialised.
    let text = unsafe {
        let end = piece.write(start);
        core::slice::from_raw_parts(start, end.offset_from_unsigned(start))
    };
    buf.write(text);
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// An integer in base ten: `Dec(7_u32)`. Every integer type has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dec<T>(pub T);

/// An unsigned number in base ten, behind spaces to make it at least `WIDTH` bytes long: `%*llu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecWidth<const WIDTH: usize>(pub u64);

/// A number in lower-case hexadecimal: `%llx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex(pub u64);

/// A number as 16 digits of lower-case hexadecimal, as signal and capability sets have it: `%016llx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hex16(pub u64);

/// A number in base eight with a leading 0, behind zeros to make it at least `WIDTH` bytes long: `%#0*llo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Octal<const WIDTH: usize>(pub u64);

/// A short text that is not known to the compiler: up to `N` bytes, stored in one piece of `N`.
///
/// ```
/// use seqtext::{Dec, Label, SeqBuf};
///
/// let label = Label::<16>::new(b"Seccomp:\t").expect("no longer than 16 bytes");
/// let mut memory = [0; 64];
/// let mut buf = SeqBuf::new(&mut memory);
/// buf.put((label, Dec(2_u8), b"\n"));
/// assert_eq!(buf.text(), Ok(&b"Seccomp:\t2\n"[..]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<const N: usize> {
    bytes: [u8; N],
    /// At most `N`.
    len: usize,
}

impl<const N: usize> Label<N> {
    /// A copy of `text`; `None` when it is longer than `N` bytes.
    #[inline]
    pub fn new(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self {
            bytes,
            len: text.len(),
        })
    }

    /// The bytes before the first NUL, or all of them, as in the kernel's `comm`.
    #[inline]
    pub fn from_nul_padded(bytes: [u8; N]) -> Self {
        let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(N);
        Self { bytes, len }
    }

    /// The text.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `len` is at most `N`.
        unsafe { self.bytes.get_unchecked(..self.len) }
    }
}

// SAFETY: writes N bytes and returns the end of a part of them.
unsafe impl<const N: usize> Sealed for Label<N> {
    const TOUCHES: usize = N;

    #[inline(always)]
    unsafe fn write(self, at: *mut u8) -> *mut u8 {
        // SAFETY: the caller's promise, and `len` is at most `N`.
        unsafe { (&self).write(at) }
    }

    fn write_tight(self, buf: &mut SeqBuf<'_>) {
        buf.write(self.as_bytes());
    }
}

// SAFETY: writes N bytes and returns the end of a part of them.
unsafe impl<const N: usize> Sealed for &Label<N> {
    const TOUCHES: usize = N;

    #[inline(always)]
    unsafe fn write(self, at: *mut u8) -> *mut u8 {
        // SAFETY: the caller's promise, and `len` is at most `N`.
        unsafe {
            crate::store::store(at, self.bytes);
            at.add(self.len)
        }
    }

    fn write_tight(self, buf: &mut SeqBuf<'_>) {
        buf.write(self.as_bytes());
    }
}

// SAFETY: writes N bytes and returns their end.
unsafe impl<const N: usize> Sealed for &[u8; N] {
    const TOUCHES: usize = N;

    #[inline(always)]
    unsafe fn write(self, at: *mut u8) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            crate::store::store(at, *self);
            at.add(N)
        }
    }

    fn write_tight(self, buf: &mut SeqBuf<'_>) {
        buf.write(self);
    }
}

/// `Dec` for a type, by the writer of a wider type; `$touches` is what that touches for the type's longest text.
macro_rules! unsigned {
    ($($type:ty, $wide:ty, $write:ident, $touches:expr;)*) => {$(
        // SAFETY: the digits of the type's greatest value and one byte, or four bytes, are the most that the writer touches.
        unsafe impl Sealed for Dec<$type> {
            const TOUCHES: usize = $touches;

            #[inline(always)]
            unsafe fn write(self, at: *mut u8) -> *mut u8 {
                // SAFETY: the caller's promise.
                unsafe { decimal::$write(at, self.0 as $wide) }
            }

            fn write_tight(self, buf: &mut SeqBuf<'_>) {
                write_by_copy::<_, 40>(self, buf);
            }
        }
    )*};
}

unsigned! {
    u8, u32, write_u32, 4;
    u16, u32, write_u32, 6;
    u32, u32, write_u32, 11;
    u64, u64, write_u64, decimal::TOUCHES_U64;
    usize, u64, write_u64, decimal::TOUCHES_U64;
    u128, u128, write_u128, 40;
}

/// As `unsigned`, with one more byte for the sign.
macro_rules! signed {
    ($($type:ty, $wide:ty, $write:ident, $touches:expr;)*) => {$(
        // SAFETY: a sign, then as the unsigned type.
        unsafe impl Sealed for Dec<$type> {
            const TOUCHES: usize = $touches;

            #[inline(always)]
            unsafe fn write(self, at: *mut u8) -> *mut u8 {
                // SAFETY: the caller's promise. The sign is stored even if a digit takes its place.
                unsafe {
                    at.write(b'-');
                    let at = at.add(usize::from(self.0 < 0));
                    decimal::$write(at, self.0.unsigned_abs() as $wide)
                }
            }

            fn write_tight(self, buf: &mut SeqBuf<'_>) {
                write_by_copy::<_, 41>(self, buf);
            }
        }
    )*};
}

signed! {
    i8, u32, write_u32, 5;
    i16, u32, write_u32, 7;
    i32, u32, write_u32, 12;
    i64, u64, write_u64, 1 + decimal::TOUCHES_U64;
    isize, u64, write_u64, 1 + decimal::TOUCHES_U64;
    i128, u128, write_u128, 41;
}

// SAFETY: the spaces are `WIDTH` bytes; the number ends within them, or starts at their beginning, and has a byte after
// it.
unsafe impl<const WIDTH: usize> Sealed for DecWidth<WIDTH> {
    const TOUCHES: usize = max(WIDTH, 20) + 4;

    #[inline(always)]
    unsafe fn write(self, at: *mut u8) -> *mut u8 {
        // SAFETY: 21 bytes are left from the first digit of the longest number on, and 4 from the last place of the
        // width on.
        unsafe {
            crate::store::store(at, [b' '; WIDTH]);
            let spaces = WIDTH.saturating_sub(decimal::digits(self.0));
            decimal::write_u64(at.add(spaces), self.0)
        }
    }

    fn write_tight(self, buf: &mut SeqBuf<'_>) {
        buf.put_decimal_ull_width("", self.0, WIDTH);
    }
}

// SAFETY: at most 16 digits.
unsafe impl Sealed for Hex {
    const TOUCHES: usize = 16;

    #[inline(always)]
    unsafe fn write(self, at: *mut u8) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { at.add(hex::write(at, self.0)) }
    }

    fn write_tight(self, buf: &mut SeqBuf<'_>) {
        write_by_copy::<_, 16>(self, buf);
    }
}

// SAFETY: 16 digits.
unsafe impl Sealed for Hex16 {
    const TOUCHES: usize = 16;

    #[inline(always)]
    unsafe fn write(self, at: *mut u8) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { at.add(hex::write16(at, self.0)) }
    }

    fn write_tight(self, buf: &mut SeqBuf<'_>) {
        write_by_copy::<_, 16>(self, buf);
    }
}

// SAFETY: as many digits as the number has, or the width.
unsafe impl<const WIDTH: usize> Sealed for Octal<WIDTH> {
    const TOUCHES: usize = max(WIDTH, octal::MAX);

    #[inline(always)]
    unsafe fn write(self, at: *mut u8) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { at.add(octal::write(at, self.0, max(WIDTH, octal::digits(self.0)))) }
    }

    fn write_tight(self, buf: &mut SeqBuf<'_>) {
        buf.fill(b'0', WIDTH.saturating_sub(octal::digits(self.0)));
        write_by_copy::<_, { octal::MAX }>(Octal::<0>(self.0), buf);
    }
}

// SAFETY: the piece, or nothing.
unsafe impl<P: Sealed> Sealed for Option<P> {
    const TOUCHES: usize = P::TOUCHES;

    #[inline(always)]
    unsafe fn write(self, at: *mut u8) -> *mut u8 {
        match self {
            // SAFETY: the caller's promise.
            Some(piece) => unsafe { piece.write(at) },
            None => at,
        }
    }

    fn write_tight(self, buf: &mut SeqBuf<'_>) {
        if let Some(piece) = self {
            piece.write_tight(buf);
        }
    }
}

// SAFETY: each piece starts where the one before it ended, so that all together touch no more than the sum.
unsafe impl<P: Sealed, const N: usize> Sealed for [P; N] {
    const TOUCHES: usize = P::TOUCHES * N;

    #[inline(always)]
    unsafe fn write(self, mut at: *mut u8) -> *mut u8 {
        for piece in self {
            // SAFETY: the caller's promise.
            at = unsafe { piece.write(at) };
        }
        at
    }

    fn write_tight(self, buf: &mut SeqBuf<'_>) {
        for piece in self {
            buf.put(piece);
        }
    }
}

macro_rules! tuple {
    ($($piece:ident)*) => {
        // SAFETY: as for the array.
        unsafe impl<$($piece: Sealed),*> Sealed for ($($piece,)*) {
            const TOUCHES: usize = 0 $(+ $piece::TOUCHES)*;

            #[inline(always)]
            unsafe fn write(self, at: *mut u8) -> *mut u8 {
                #[allow(non_snake_case, reason = "the pieces are named as their types")]
                let ($($piece,)*) = self;
                // SAFETY: the caller's promise.
                $(let at = unsafe { $piece.write(at) };)*
                at
            }

            fn write_tight(self, buf: &mut SeqBuf<'_>) {
                #[allow(non_snake_case, reason = "the pieces are named as their types")]
                let ($($piece,)*) = self;
                $(buf.put($piece);)*
            }
        }
    };
}

tuple!(A);
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);
tuple!(A B C D E F G H I);
tuple!(A B C D E F G H I J);
tuple!(A B C D E F G H I J K);
tuple!(A B C D E F G H I J K L);
