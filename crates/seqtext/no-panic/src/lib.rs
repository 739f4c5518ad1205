//! Every public call of seqtext, in a library that links only if no call can panic: the panic handler calls a function
//! that does not exist, and the linker must leave nothing undefined.
#![no_std]

use core::{ffi::c_void, fmt::Write as _, mem::MaybeUninit, panic::PanicInfo, slice};

use seqtext::{Dec, DecWidth, Escape, Hex, Hex16, Label, Octal, Overflow, Piece, SeqBuf};

unsafe extern "C" {
    fn seqtext_can_panic() -> !;
}

// For memcpy and related functions.
#[link(name = "c")]
unsafe extern "C" {}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: never linked, so never called.
    unsafe { seqtext_can_panic() }
}

/// The target of formatted text, unknown to the optimiser.
struct Sink(extern "C" fn(*const u8, usize));

impl core::fmt::Write for Sink {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        self.0(s.as_ptr(), s.len());
        Ok(())
    }
}

/// A borrowed slice of bytes from a caller that the optimiser does not know.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Bytes {
    start: *mut c_void,
    len: usize,
}

impl Bytes {
    /// # Safety
    /// `start` is good for `len` values of `T`, mutably for as long as the slice is used.
    unsafe fn slice<'a, T>(self) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { slice::from_raw_parts_mut(self.start.cast(), self.len) }
    }
}

/// Values for all arguments.
#[repr(C)]
pub struct Values {
    n: u64,
    signed: i64,
    wide: [u64; 2],
    width: usize,
    comm: [u8; 16],
    text: Bytes,
    chars: Bytes,
    words: Bytes,
    flags: u8,
}

/// # Safety
/// The slices are what they say, the text UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn every_method(memory: Bytes, values: &Values) -> usize {
    // SAFETY: the caller's promise.
    let (memory, text, chars, words) = unsafe {
        (
            memory.slice::<u8>(),
            values.text.slice::<u8>(),
            values.chars.slice::<u8>(),
            values.words.slice::<u64>(),
        )
    };
    // SAFETY: the caller's promise.
    let string = unsafe { str::from_utf8_unchecked(text) };
    let mut flags = Escape::NULL;
    for (bit, flag) in [
        Escape::SPACE,
        Escape::SPECIAL,
        Escape::NULL,
        Escape::OCTAL,
        Escape::HEX,
    ]
    .into_iter()
    .enumerate()
    {
        if values.flags & (1 << bit) != 0 {
            flags = flags | flag;
        }
    }
    let mut buf = SeqBuf::new(memory);
    buf.putc(values.flags)
        .puts(string)
        .write(text)
        .put_decimal_ull(string, values.n)
        .put_decimal_ull_width(string, values.n, values.width)
        .put_decimal_ll(string, values.signed)
        .put_hex_ll(string, values.n, values.width)
        .put_sigset(values.n)
        .put_octal(string, values.n, values.width)
        .put_bitmap(words, values.width)
        .put_bitmap_list(words, values.width)
        .escape(text, chars)
        .escape_str(text, flags, chars);
    let seen = buf.count() ^ buf.size() ^ usize::from(buf.has_overflowed());
    let text = buf
        .text()
        .map_or_else(|Overflow { size }| size, |text| text.len());
    buf.clear();
    let finished = buf
        .finish()
        .map_or_else(|Overflow { size }| size, |text| text.len());
    seen ^ text ^ finished
}

fn put(memory: Bytes, piece: impl Piece) -> usize {
    // SAFETY: the caller of the exported function promises it.
    let mut buf = SeqBuf::uninit(unsafe { memory.slice::<MaybeUninit<u8>>() });
    buf.put(piece).put(piece);
    buf.count()
}

/// # Safety
/// The slices are what they say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn every_piece(memory: Bytes, values: &Values) -> usize {
    let n = values.n;
    let wide = u128::from(values.wide[0]) << 64 | u128::from(values.wide[1]);
    // SAFETY: the caller's promise.
    let label = Label::<24>::new(unsafe { values.text.slice() });
    let comm = Label::from_nul_padded(values.comm);
    let mut counts = 0;
    counts ^= put(
        memory,
        (
            Dec(n as u8),
            Dec(n as u16),
            Dec(n as u32),
            Dec(n),
            Dec(n as usize),
            Dec(wide),
        ),
    );
    counts ^= put(
        memory,
        (
            Dec(n as i8),
            Dec(n as i16),
            Dec(n as i32),
            Dec(n as i64),
            Dec(n as isize),
            Dec(wide as i128),
        ),
    );
    counts ^= put(
        memory,
        (
            DecWidth::<0>(n),
            DecWidth::<8>(n),
            DecWidth::<30>(n),
            Hex(n),
            Hex16(n),
        ),
    );
    counts ^= put(
        memory,
        (
            Octal::<0>(n),
            Octal::<4>(n),
            Octal::<30>(n),
            label,
            label.as_ref(),
            comm,
            &comm,
        ),
    );
    counts ^= put(memory, ([Some((b"label:\t", Hex(n))), None], [Dec(n); 3]));
    counts ^ comm.as_bytes().len() ^ usize::from(label == Label::new(&values.comm))
}

/// # Safety
/// The slice is what it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn every_format(
    memory: Bytes,
    sink: extern "C" fn(*const u8, usize),
) -> bool {
    // SAFETY: the caller's promise.
    let buf = SeqBuf::new(unsafe { memory.slice::<u8>() });
    let mut sink = Sink(sink);
    let written = write!(sink, "{buf:?}").is_ok();
    match buf.text() {
        Ok(_) => written,
        Err(error) => {
            written && write!(sink, "{error} {error:?}").is_ok() && error == Overflow { size: 0 }
        }
    }
}

/// # Safety
/// The slice is what it says.
#[cfg(feature = "control")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn control(memory: Bytes, index: usize) -> u8 {
    // SAFETY: the caller's promise.
    let memory = unsafe { memory.slice::<u8>() };
    memory[index]
}
