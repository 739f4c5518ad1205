//! A value of a field, and its four forms: in a table, in csv, in JSON, and as a rank to sort by.

use fastproc::Cmdline;

use crate::escape::{escape, escape_byte};
use crate::number;

/// What a number means, which decides its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Number,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Time,
    /// Hundredths of a whole.
    Percent,
    /// A rate: events per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// Flags, in a table as `0x` and hexadecimal digits.
    Flags,
    /// An address, likewise.
    Address,
    /// 64 bits, as 16 hexadecimal digits everywhere, as in proc(5).
    Set,
    /// Octal digits everywhere.
    Octal,
    /// Seconds of the calendar: a date and the time of day.
    Date,
    /// The same; a table shows only the time of day, or the day if that is more than 24 hours ago.
    Start,
    /// A scheduling policy `SCHED_*`, in a table by its name in ps(1).
    Policy,
    /// True or false.
    Truth,
    /// Text.
    Text,
    /// Numbers.
    List,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Value::Unsigned`].
    Unsigned,
    /// [`Value::Signed`].
    Signed,
    /// [`Value::Real`].
    Real,
    /// [`Value::Truth`].
    Truth,
    /// [`Value::Text`].
    Text,
    /// [`Value::Arguments`] or [`Value::NoArguments`].
    Arguments,
    /// [`Value::Numbers`] or [`Value::Bitmap`].
    Numbers,
}

impl Kind {
    /// Whether values are single numbers, so that the rank alone decides their order.
    pub(crate) const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Unsigned | Self::Signed | Self::Real | Self::Truth
        )
    }
}

impl Unit {
    /// The type of values of this unit, unless their field has another.
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Number
            | Self::Bytes
            | Self::Time
            | Self::Flags
            | Self::Address
            | Self::Set
            | Self::Octal
            | Self::Policy => Kind::Unsigned,
            Self::Date | Self::Start => Kind::Signed,
            Self::Percent | Self::PerSecond | Self::BytesPerSecond => Kind::Real,
            Self::Truth => Kind::Truth,
            Self::Text => Kind::Text,
            Self::List => Kind::Numbers,
        }
    }

    /// The suffix of a field's name where its numbers have no unit.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Bytes => "_bytes",
            Self::Time => "_ns",
            _ => "",
        }
    }

    /// Whether a table aligns it to the right.
    pub const fn is_right_aligned(self) -> bool {
        !self.is_text() && !matches!(self, Self::Truth | Self::Date | Self::Set | Self::Policy)
    }

    /// Whether filters compare its text: it has words, or several numbers.
    pub(crate) const fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::List)
    }
}

/// A value, borrowed from where it was found.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// The source does not know the value, or the kernel would not show it.
    Unknown,
    /// A number.
    Unsigned(u64),
    /// A number.
    Signed(i64),
    /// A number.
    Real(f64),
    /// True or false.
    Truth(bool),
    /// Bytes, mostly text.
    Text(&'a [u8]),
    /// Arguments of a command.
    Arguments(Cmdline<'a>),
    /// The name of a process that has no arguments.
    NoArguments(&'a [u8]),
    /// Numbers.
    Numbers(&'a [u32]),
    /// A set of numbers: bit n of word w stands for 64 w + n.
    Bitmap(&'a [u64]),
}

impl<'a> Value<'a> {
    /// `Unknown` if `value` is `None`.
    pub fn known<T>(value: Option<T>, form: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Unknown, form)
    }

    /// Its type, if it is known.
    pub const fn kind(&self) -> Option<Kind> {
        Some(match self {
            Self::Unknown => return None,
            Self::Unsigned(_) => Kind::Unsigned,
            Self::Signed(_) => Kind::Signed,
            Self::Real(_) => Kind::Real,
            Self::Truth(_) => Kind::Truth,
            Self::Text(_) => Kind::Text,
            Self::Arguments(_) | Self::NoArguments(_) => Kind::Arguments,
            Self::Numbers(_) | Self::Bitmap(_) => Kind::Numbers,
        })
    }

    /// The value as a number, if it is one; true is 1, false is 0.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Self::Unsigned(number) => Some(number as f64),
            Self::Signed(number) => Some(number as f64),
            Self::Real(number) => Some(number),
            Self::Truth(truth) => Some(truth.into()),
            _ => None,
        }
    }

    /// The value, if it is true or false.
    pub const fn truth(&self) -> Option<bool> {
        match *self {
            Self::Truth(truth) => Some(truth),
            _ => None,
        }
    }

    /// Whether it is a command line of which the end is missing.
    pub const fn is_cut(&self) -> bool {
        matches!(self, Self::Arguments(Cmdline { cut: true, .. }))
    }

    /// The bytes of a text, to compare and to search. Arguments are joined by spaces.
    pub fn text<'s>(&self, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        scratch.clear();
        match *self {
            Self::Text(text) => return Some(text),
            Self::NoArguments(_) => {}
            Self::Arguments(line) => {
                join(line, scratch, |argument, to| to.extend_from_slice(argument));
            }
            Self::Numbers(numbers) => write_numbers(numbers, scratch),
            Self::Bitmap(words) => number::write_ranges(words, scratch),
            _ => return None,
        }
        Some(scratch)
    }

    /// A number that grows with the value. Texts with the same first eight bytes have the same rank. `None` if the
    /// value is unknown.
    pub fn rank(&self) -> Option<u64> {
        const SIGN: u64 = 1 << 63;
        let first_bytes = |bytes: &mut dyn Iterator<Item = u8>| {
            u64::from_be_bytes(std::array::from_fn(|_| bytes.next().unwrap_or(0)))
        };
        Some(match *self {
            Self::Unknown => return None,
            Self::Unsigned(number) => number,
            Self::Signed(number) => number as u64 ^ SIGN,
            // IEEE 754 numbers have the order of their bits; negative ones the reverse.
            Self::Real(number) if number.is_sign_negative() => !number.to_bits(),
            Self::Real(number) => number.to_bits() ^ SIGN,
            Self::Truth(truth) => truth.into(),
            Self::Text(text) => first_bytes(&mut text.iter().copied()),
            Self::Arguments(line) => first_bytes(
                &mut line
                    .bytes
                    .iter()
                    .map(|&byte| if byte == 0 { b' ' } else { byte }),
            ),
            Self::Numbers(numbers) => numbers.first().map_or(0, |&first| u64::from(first) + 1),
            // Only their text decides.
            Self::NoArguments(_) | Self::Bitmap(_) => 0,
        })
    }

    /// Appends the form for a table: rounded, for people to read.
    pub fn write_for_table(&self, unit: Unit, to: &mut Vec<u8>) {
        match (*self, unit) {
            (Self::Unknown, _) => to.push(b'-'),
            (Self::Unsigned(number), Unit::Bytes) => number::write_size(number, to),
            (Self::Unsigned(number), Unit::Time) => number::write_time(number, to),
            (Self::Unsigned(number), Unit::Flags | Unit::Address) => {
                to.extend_from_slice(b"0x");
                number::write_hex(number, 1, to);
            }
            (Self::Unsigned(number), Unit::Policy) => {
                to.extend_from_slice(policy_name(number).as_bytes());
            }
            (Self::Signed(seconds), Unit::Date) => number::write_date_and_clock(seconds, to),
            (Self::Signed(seconds), Unit::Start) => number::write_start(seconds, to),
            (Self::Real(number), Unit::BytesPerSecond) => {
                number::write_size(number.round() as u64, to);
            }
            (Self::Real(number), _) => number::write_fraction(number, 1, to),
            (Self::NoArguments(name), _) => {
                to.push(b'[');
                escape(name, to);
                to.push(b']');
            }
            (Self::Arguments(line), _) => {
                join(line, to, escape);
                if line.cut {
                    to.extend_from_slice("…".as_bytes());
                }
            }
            _ => self.write_for_csv(unit, to),
        }
    }

    /// Appends the form for csv: exact, and without units. An unknown value appends nothing.
    pub fn write_for_csv(&self, unit: Unit, to: &mut Vec<u8>) {
        match (*self, unit) {
            (Self::Unknown | Self::NoArguments(_), _) => {}
            (Self::Unsigned(number), Unit::Set) => number::write_hex(number, 16, to),
            (Self::Unsigned(number), Unit::Octal) => number::write_octal(number, to),
            (Self::Signed(seconds), Unit::Date | Unit::Start) => number::write_date(seconds, to),
            (Self::Unsigned(number), _) => number::write(number, to),
            (Self::Signed(number), _) => number::write_signed(number, to),
            (Self::Real(number), _) => number::write_fraction(number, 4, to),
            (Self::Truth(truth), _) => to.extend_from_slice(if truth { b"true" } else { b"false" }),
            (Self::Text(text), _) => escape(text, to),
            (Self::Arguments(line), _) => join(line, to, |argument, to| {
                // A space separates arguments, so spaces within them are escaped.
                for (i, part) in argument.split(|&byte| byte == b' ').enumerate() {
                    if i > 0 {
                        escape_byte(b' ', to);
                    }
                    escape(part, to);
                }
            }),
            (Self::Numbers(numbers), _) => write_numbers(numbers, to),
            (Self::Bitmap(words), _) => number::write_ranges(words, to),
        }
    }
}

/// The names of ps(1) for `SCHED_*` of include/uapi/linux/sched.h.
pub(crate) const POLICIES: [&str; 8] = ["TS", "FF", "RR", "B", "ISO", "IDL", "DLN", "EXT"];

/// The name of ps(1) for a scheduling policy.
pub(crate) fn policy_name(policy: u64) -> &'static str {
    let policy = usize::try_from(policy).ok();
    policy
        .and_then(|policy| POLICIES.get(policy))
        .unwrap_or(&"?")
}

/// The arguments of a command line. The NUL that ends the last one does not begin another.
pub fn arguments(line: Cmdline<'_>) -> impl Iterator<Item = &[u8]> {
    let bytes = line.bytes.strip_suffix(b"\0").unwrap_or(line.bytes);
    let none = line.bytes.is_empty();
    bytes.split(|&byte| byte == 0).filter(move |_| !none)
}

fn join(line: Cmdline<'_>, to: &mut Vec<u8>, write: impl Fn(&[u8], &mut Vec<u8>)) {
    for (i, argument) in arguments(line).enumerate() {
        if i > 0 {
            to.push(b' ');
        }
        write(argument, to);
    }
}

/// Writes numbers, separated by commas.
fn write_numbers(numbers: &[u32], to: &mut Vec<u8>) {
    for (i, &number) in numbers.iter().enumerate() {
        if i > 0 {
            to.push(b',');
        }
        number::write(number.into(), to);
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Unsigned(number)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Unsigned(number.into())
    }
}

impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Self::Signed(number.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::unescape;

    fn line(bytes: &[u8]) -> Cmdline<'_> {
        Cmdline { bytes, cut: false }
    }

    fn csv(value: Value<'_>, unit: Unit) -> String {
        let mut to = Vec::new();
        value.write_for_csv(unit, &mut to);
        String::from_utf8(to).expect("text")
    }

    fn table(value: Value<'_>, unit: Unit) -> String {
        let mut to = Vec::new();
        value.write_for_table(unit, &mut to);
        String::from_utf8(to).expect("text")
    }

    #[test]
    fn a_list_of_numbers_is_searched_as_it_is_written() {
        let mut scratch = b"earlier".to_vec();
        let text = Value::Numbers(&[7, 12]).text(&mut scratch);
        assert_eq!(text, Some(b"7,12".as_slice()));
    }

    #[test]
    fn arguments_end_at_nul() {
        let all = |bytes: &'static [u8]| arguments(line(bytes)).collect::<Vec<_>>();
        assert_eq!(all(b"a\0b c\0"), [b"a".as_slice(), b"b c"]);
        assert_eq!(all(b"a\0\0"), [b"a".as_slice(), b""]);
        assert_eq!(all(b"postgres: idle"), [b"postgres: idle".as_slice()]);
        assert_eq!(all(b"\0"), [b"".as_slice()]);
        assert_eq!(all(b"").len(), 0);
    }

    #[test]
    fn arguments_can_be_had_back_from_csv() {
        let text = csv(
            Value::Arguments(line(b"sh\0-c\0a b\n\0\0\xff\0")),
            Unit::Text,
        );
        assert_eq!(text, r"sh -c a\x20b\n  \xff");
        let back: Vec<_> = text
            .split(' ')
            .map(|word| unescape(word).expect("escaped"))
            .collect();
        assert_eq!(back, [b"sh".as_slice(), b"-c", b"a b\n", b"", b"\xff"]);
    }

    #[test]
    fn sets_of_cpus_are_written_as_the_kernel_does() {
        let ranges = |words: &[u64]| csv(Value::Bitmap(words), Unit::List);
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[0b1_0111]), "0-2,4");
        assert_eq!(ranges(&[1 << 63, 1]), "63-64");
        assert_eq!(ranges(&[u64::MAX, u64::MAX]), "0-127");
    }

    #[test]
    fn unknown_values_are_not_zero() {
        assert_eq!(table(Value::Unknown, Unit::Bytes), "-");
        assert_eq!(csv(Value::Unknown, Unit::Bytes), "");
        assert_eq!(Value::Unknown.rank(), None);
    }

    #[test]
    fn each_unit_has_its_form() {
        let number = Value::Unsigned(0x1_4002);
        assert_eq!(table(number, Unit::Set), "0000000000014002");
        assert_eq!(table(number, Unit::Flags), "0x14002");
        assert_eq!(csv(number, Unit::Flags), "81922");
        assert_eq!(table(number, Unit::Bytes), "80.0K");
        assert_eq!(csv(number, Unit::Bytes), "81922");
        assert_eq!(table(Value::Unsigned(18), Unit::Octal), "0022");
        assert_eq!(table(Value::Unsigned(1), Unit::Policy), "FF");
        assert_eq!(table(Value::Unsigned(99), Unit::Policy), "?");
        assert_eq!(csv(Value::Unsigned(1), Unit::Policy), "1");
        assert_eq!(table(Value::Real(12.34), Unit::Percent), "12.3");
        assert_eq!(csv(Value::Real(12.34), Unit::Percent), "12.3400");
        assert_eq!(table(Value::Signed(-20), Unit::Number), "-20");
        assert_eq!(csv(Value::Truth(true), Unit::Truth), "true");
    }

    #[test]
    fn ranks_have_the_order_of_the_values() {
        let ordered = [
            [
                Value::Signed(-2),
                Value::Signed(-1),
                Value::Signed(0),
                Value::Signed(7),
            ]
            .as_slice(),
            &[
                Value::Real(-2.5),
                Value::Real(-1.0),
                Value::Real(0.0),
                Value::Real(1e-9),
                Value::Real(3.0),
            ],
            &[
                Value::Text(b""),
                Value::Text(b"a"),
                Value::Text(b"ab"),
                Value::Text(b"b"),
                Value::Text(b"\xff"),
            ],
            &[Value::Unsigned(0), Value::Unsigned(u64::MAX)],
        ];
        for values in ordered {
            assert!(
                values
                    .windows(2)
                    .all(|pair| pair[0].rank() < pair[1].rank()),
                "{values:?}"
            );
        }
    }
}
