//! Numbers and strings to text without printf.
//!
//! The kernel prints its busiest files in `/proc` with `seq_putc`, `seq_puts` and `seq_put_decimal_ull` instead of
//! `seq_printf`, because parsing a format string costs more than the text. This crate is that interface over memory
//! that you own: no allocation, no `std`, no dependency, and no panic reachable from any call.
//!
//! ```
//! use seqtext::SeqBuf;
//!
//! let mut memory = [0; 64];
//! let mut buf = SeqBuf::new(&mut memory);
//! buf.put_decimal_ull("", 4711).puts(" (cat) R").put_decimal_ll(" ", -1).put_hex_ll(" 0x", 0x1f, 4).putc(b'\n');
//! assert_eq!(buf.text(), Ok(&b"4711 (cat) R -1 0x001f\n"[..]));
//! ```
//!
//! # Overflow
//!
//! Nothing is cut silently. A text that does not fit leaves the buffer *overflowed*, as in the kernel: its count equals
//! its size, further calls change nothing, and [`SeqBuf::text`] returns [`Overflow`]. The caller takes more memory and
//! renders again, as `seq_read` does. A text of `n` bytes needs `n + 1` bytes of memory, since a full buffer looks like
//! an overflowed one.
//!
//! # Many values at once
//!
//! [`SeqBuf::put`] takes a [`Piece`]: a literal, a number in some form, a [`Label`], or a tuple or an array of pieces. The most
//! bytes that a piece can touch is known from its type, so there is one check for the whole tuple, and behind it every
//! store has a fixed width.
//!
//! ```
//! use seqtext::{Dec, DecWidth, Hex16, SeqBuf};
//!
//! let mut memory = [0; 128];
//! let mut buf = SeqBuf::new(&mut memory);
//! buf.put((b"Threads:\t", Dec(3_u32), b"\nSigPnd:\t", Hex16(1 << 16), b"\nVmRSS:\t", DecWidth::<8>(13968), b" kB\n"));
//! assert_eq!(buf.text(), Ok(&b"Threads:\t3\nSigPnd:\t0000000000010000\nVmRSS:\t   13968 kB\n"[..]));
//! ```
#![no_std]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![allow(
    clippy::inline_always,
    reason = "a piece is a few stores, and many of them are to be one run of stores"
)]

mod bitmap;
mod buf;
mod decimal;
mod escape;
mod hex;
mod numbers;
mod octal;
mod piece;
mod sixteen;
mod store;

pub use buf::{Overflow, Piece, SeqBuf};
pub use escape::Escape;
pub use piece::{Dec, DecWidth, Hex, Hex16, Label, Octal};

/// The examples of README.md are tested with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
