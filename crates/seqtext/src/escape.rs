//! Escapes, by the kernel's `string_escape_mem`.

use core::ops::BitOr;

use crate::buf::SeqBuf;

/// Which bytes are escaped and how: the flags of the kernel's `string_escape_mem`. Where several would apply, the first
/// of this list does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escape(u8);

impl Escape {
    /// `\f`, `\n`, `\r`, `\t` and `\v` by these letters.
    pub const SPACE: Self = Self(1);
    /// `"` and `\` behind a backslash, alert as `\a`, escape as `\e`.
    pub const SPECIAL: Self = Self(2);
    /// NUL as `\0`.
    pub const NULL: Self = Self(4);
    /// Any byte by three octal digits: `\012`.
    pub const OCTAL: Self = Self(8);
    /// Any byte by two hexadecimal digits: `\x0a`.
    pub const HEX: Self = Self(16);

    const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The letter after the backslash, if the escape is a single letter.
    fn letter(self, byte: u8) -> Option<u8> {
        let (class, letter) = match byte {
            b'\n' => (Self::SPACE, b'n'),
            b'\r' => (Self::SPACE, b'r'),
            b'\t' => (Self::SPACE, b't'),
            0x0b => (Self::SPACE, b'v'),
            0x0c => (Self::SPACE, b'f'),
            b'\\' | b'"' => (Self::SPECIAL, byte),
            0x07 => (Self::SPECIAL, b'a'),
            0x1b => (Self::SPECIAL, b'e'),
            0 => (Self::NULL, b'0'),
            _ => return None,
        };
        self.contains(class).then_some(letter)
    }

    /// Whether some of the flags apply to `byte`.
    fn applies(self, byte: u8) -> bool {
        self.contains(Self::OCTAL | Self::HEX) || self.letter(byte).is_some()
    }
}

impl Escape {
    const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr for Escape {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.or(other)
    }
}

impl SeqBuf<'_> {
    /// Appends `text` with those of its bytes that are in `chars` as `\ooo`, three octal digits (`seq_escape`). If
    /// `chars` is empty, every byte is escaped.
    ///
    /// ```
    /// use seqtext::SeqBuf;
    ///
    /// let mut memory = [0; 32];
    /// let mut buf = SeqBuf::new(&mut memory);
    /// buf.escape(b"/media/my disk", b" \t\n\\");
    /// assert_eq!(buf.text(), Ok(&br"/media/my\040disk"[..]));
    /// ```
    pub fn escape(&mut self, text: &[u8], chars: &[u8]) -> &mut Self {
        self.escape_str(text, Escape::OCTAL, chars)
    }

    /// Appends `text` with those of its bytes escaped that are in `chars` and to which `flags` apply
    /// (`seq_escape_str`). If `chars` is empty, every byte to which `flags` apply is escaped.
    ///
    /// ```
    /// use seqtext::{Escape, SeqBuf};
    ///
    /// // The kernel's rule for `Name` in /proc/PID/status.
    /// let mut memory = [0; 32];
    /// let mut buf = SeqBuf::new(&mut memory);
    /// buf.escape_str(b"a\nb\\c\td\"", Escape::SPACE | Escape::SPECIAL, b"\n\\");
    /// assert_eq!(buf.text(), Ok(&b"a\\nb\\\\c\td\""[..]));
    /// ```
    pub fn escape_str(&mut self, text: &[u8], flags: Escape, chars: &[u8]) -> &mut Self {
        let passes =
            |byte: &u8| !(chars.is_empty() || chars.contains(byte)) || !flags.applies(*byte);
        let mut rest = text;
        loop {
            // A run of bytes that are not escaped, then one that is.
            let run = rest
                .iter()
                .position(|byte| !passes(byte))
                .unwrap_or(rest.len());
            let (plain, escaped) = rest.split_at_checked(run).unwrap_or((rest, &[]));
            self.write(plain);
            let Some((&byte, after)) = escaped.split_first() else {
                return self;
            };
            self.put_escaped(byte, flags);
            rest = after;
        }
    }

    fn put_escaped(&mut self, byte: u8, flags: Escape) {
        if let Some(letter) = flags.letter(byte) {
            self.put(&[b'\\', letter]);
        } else if flags.contains(Escape::OCTAL) {
            let digit = |shift: u32| b'0' + (byte >> shift & 7);
            self.put(&[b'\\', digit(6), digit(3), digit(0)]);
        } else {
            self.puts("\\x").put_hex_ll("", byte.into(), 2);
        }
    }
}
