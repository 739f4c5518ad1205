//! A second, slow implementation of what each call appends.

use seqtext::{Dec, DecWidth, Escape, Hex, Hex16, Label, Octal, SeqBuf};

/// One call with its arguments.
#[derive(Clone, Debug)]
#[cfg_attr(fuzzing, derive(arbitrary::Arbitrary))]
pub enum Call {
    Putc(u8),
    Puts(String),
    Write(Vec<u8>),
    DecimalUll(String, u64),
    DecimalUllWidth(String, u64, u8),
    DecimalLl(String, i64),
    HexLl(String, u64, u8),
    Sigset(u64),
    Octal(String, u64, u8),
    Bitmap(Vec<u64>, u16),
    BitmapList(Vec<u64>, u16),
    Escape(Vec<u8>, Vec<u8>),
    EscapeStr(Vec<u8>, u8, Vec<u8>),
    Unsigned(u64, u128),
    Signed(i64, i128),
    Padded(u64),
    Based(u64),
    Labels([u8; 16], Option<[u8; 5]>),
}

const FLAGS: [Escape; 5] = [
    Escape::SPACE,
    Escape::SPECIAL,
    Escape::NULL,
    Escape::OCTAL,
    Escape::HEX,
];

impl Call {
    pub fn apply(&self, buf: &mut SeqBuf<'_>) {
        match self {
            Self::Putc(byte) => buf.putc(*byte),
            Self::Puts(text) => buf.puts(text),
            Self::Write(text) => buf.write(text),
            Self::DecimalUll(delimiter, n) => buf.put_decimal_ull(delimiter, *n),
            Self::DecimalUllWidth(delimiter, n, width) => {
                buf.put_decimal_ull_width(delimiter, *n, usize::from(*width))
            }
            Self::DecimalLl(delimiter, n) => buf.put_decimal_ll(delimiter, *n),
            Self::HexLl(delimiter, n, width) => buf.put_hex_ll(delimiter, *n, usize::from(*width)),
            Self::Sigset(set) => buf.put_sigset(*set),
            Self::Octal(delimiter, n, width) => buf.put_octal(delimiter, *n, usize::from(*width)),
            Self::Bitmap(words, nbits) => buf.put_bitmap(words, usize::from(*nbits)),
            Self::BitmapList(words, nbits) => buf.put_bitmap_list(words, usize::from(*nbits)),
            Self::Escape(text, chars) => buf.escape(text, chars),
            Self::EscapeStr(text, flags, chars) => {
                let flags = set(*flags).into_iter().reduce(|all, flag| all | flag);
                buf.escape_str(text, flags.unwrap_or(Escape::NULL), chars)
            }
            Self::Unsigned(n, wide) => {
                let short = (Dec(*n as u8), b" ", Dec(*n as u16), b" ", Dec(*n as u32));
                buf.put((
                    short,
                    b" ",
                    Dec(*n),
                    b" ",
                    Dec(*n as usize),
                    b" ",
                    Dec(*wide),
                ))
            }
            Self::Signed(n, wide) => {
                let short = (
                    [Some((Dec(*n as i8), b" ")), None],
                    Dec(*n as i16),
                    [Dec(*n as i32); 3],
                );
                buf.put((short, Dec(*n), Dec(*n as isize), Dec(*wide)))
            }
            Self::Padded(n) => buf.put((
                DecWidth::<0>(*n),
                b"|",
                DecWidth::<8>(*n),
                b"|",
                DecWidth::<33>(*n),
            )),
            Self::Based(n) => buf.put((
                Hex(*n),
                Hex16(*n),
                Octal::<0>(*n),
                b"|",
                Octal::<4>(*n),
                b"|",
                Octal::<40>(*n),
            )),
            Self::Labels(comm, other) => {
                let comm = Label::from_nul_padded(*comm);
                buf.put((comm, other.and_then(|label| Label::<8>::new(&label)), &comm))
            }
        };
    }

    pub fn expected(&self) -> Vec<u8> {
        match self {
            Self::Putc(byte) => vec![*byte],
            Self::Puts(text) => text.clone().into_bytes(),
            Self::Write(text) => text.clone(),
            Self::DecimalUll(delimiter, n) => format!("{delimiter}{n}").into_bytes(),
            Self::DecimalUllWidth(delimiter, n, width) => {
                format!("{delimiter}{n:>0$}", usize::from(*width)).into_bytes()
            }
            Self::DecimalLl(delimiter, n) => format!("{delimiter}{n}").into_bytes(),
            Self::HexLl(delimiter, n, width) => {
                format!("{delimiter}{n:00$x}", usize::from(*width)).into_bytes()
            }
            Self::Sigset(set) => format!("{set:016x}").into_bytes(),
            Self::Octal(delimiter, n, width) => {
                format!("{delimiter}{}", octal(*n, usize::from(*width))).into_bytes()
            }
            Self::Bitmap(words, nbits) => bitmap(words, usize::from(*nbits)).into_bytes(),
            Self::BitmapList(words, nbits) => bitmap_list(words, usize::from(*nbits)).into_bytes(),
            Self::Escape(text, chars) => escape(text, 8, chars),
            Self::EscapeStr(text, flags, chars) => {
                escape(text, if set(*flags).is_empty() { 4 } else { *flags }, chars)
            }
            Self::Unsigned(n, wide) => format!(
                "{} {} {} {n} {} {wide}",
                *n as u8, *n as u16, *n as u32, *n as usize
            )
            .into_bytes(),
            Self::Signed(n, wide) => {
                let three = (*n as i32).to_string().repeat(3);
                format!("{} {}{three}{n}{}{wide}", *n as i8, *n as i16, *n as isize).into_bytes()
            }
            Self::Padded(n) => format!("{n}|{n:8}|{n:33}").into_bytes(),
            Self::Based(n) => format!(
                "{n:x}{n:016x}{}|{}|{}",
                octal(*n, 0),
                octal(*n, 4),
                octal(*n, 40)
            )
            .into_bytes(),
            Self::Labels(comm, other) => {
                let comm: Vec<u8> = comm.iter().copied().take_while(|&byte| byte != 0).collect();
                [
                    &comm[..],
                    &other.unwrap_or_default()[..other.map_or(0, |label| label.len())],
                    &comm[..],
                ]
                .concat()
            }
        }
    }
}

fn set(flags: u8) -> Vec<Escape> {
    FLAGS
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| flags >> bit & 1 == 1)
        .map(|(_, flag)| flag)
        .collect()
}

/// As C's `%#0*o`: the prefix is a zero that the number does not have already.
fn octal(n: u64, width: usize) -> String {
    let digits = if n == 0 {
        String::from("0")
    } else {
        format!("0{n:o}")
    };
    format!("{digits:0>width$}")
}

fn bit(words: &[u64], bit: usize) -> bool {
    words
        .get(bit / 64)
        .is_some_and(|word| word >> (bit % 64) & 1 == 1)
}

/// Digit by digit from the highest bit, with a comma wherever a multiple of 32 bits is left.
fn bitmap(words: &[u64], nbits: usize) -> String {
    let mut text = String::new();
    for digit in (0..nbits.div_ceil(4)).rev() {
        let value = (0..4)
            .filter(|i| digit * 4 + i < nbits && bit(words, digit * 4 + i))
            .map(|i| 1 << i)
            .sum();
        text.push(char::from_digit(value, 16).unwrap());
        if digit > 0 && digit % 8 == 0 {
            text.push(',');
        }
    }
    text
}

fn bitmap_list(words: &[u64], nbits: usize) -> String {
    let set: Vec<usize> = (0..nbits).filter(|&i| bit(words, i)).collect();
    let ranges = set.chunk_by(|a, b| a + 1 == *b);
    let texts = ranges.map(|range| match range {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => unreachable!("chunks are not empty"),
    });
    texts.collect::<Vec<_>>().join(",")
}

/// The rules in the order in which the kernel documents them.
fn escape(text: &[u8], flags: u8, chars: &[u8]) -> Vec<u8> {
    let one = |byte: u8| {
        let class = |bit: u8, from: &[u8], to: &[u8]| {
            let place = from.iter().position(|&c| c == byte)?;
            (flags >> bit & 1 == 1).then(|| vec![b'\\', to[place]])
        };
        if !chars.is_empty() && !chars.contains(&byte) {
            return vec![byte];
        }
        class(0, b"\x0c\n\r\t\x0b", b"fnrtv")
            .or_else(|| class(1, b"\"\\\x07\x1b", b"\"\\ae"))
            .or_else(|| class(2, b"\0", b"0"))
            .or_else(|| (flags & 8 != 0).then(|| format!("\\{byte:03o}").into_bytes()))
            .or_else(|| (flags & 16 != 0).then(|| format!("\\x{byte:02x}").into_bytes()))
            .unwrap_or_else(|| vec![byte])
    };
    text.iter().flat_map(|&byte| one(byte)).collect()
}

/// Renders `calls` into `size` bytes inside larger memory and compares with the model: the whole text if there is at
/// least one byte more than it needs, otherwise an overflow, and no byte outside.
pub fn check(calls: &[Call], size: usize) {
    const GUARD: u8 = 0xa5;
    let expected: Vec<u8> = calls.iter().flat_map(Call::expected).collect();
    let mut memory = vec![GUARD; size + 128];
    let (before, rest) = memory.split_at_mut(64);
    let (inside, after) = rest.split_at_mut(size);
    let mut buf = SeqBuf::new(inside);
    for call in calls {
        call.apply(&mut buf);
        assert!(buf.count() <= buf.size());
    }
    if size > expected.len() {
        assert!(!buf.has_overflowed());
        assert_eq!(buf.count(), expected.len());
        assert_eq!(buf.text(), Ok(&expected[..]));
        assert_eq!(buf.finish().map(|text| &*text), Ok(&expected[..]));
    } else {
        assert!(
            buf.has_overflowed(),
            "{} bytes fit into {size}",
            expected.len()
        );
        assert_eq!(buf.count(), size);
        assert_eq!(buf.text(), Err(seqtext::Overflow { size }));
        assert!(buf.finish().is_err());
    }
    assert!(
        before.iter().chain(&*after).all(|&byte| byte == GUARD),
        "a byte outside the memory was written"
    );
}
