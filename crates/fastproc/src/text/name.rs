//! Names in texts: raw between parentheses in stat, escaped in status.

use seqtext::{Escape, Label, SeqBuf};

use super::cursor::Cursor;
use crate::base::error::parse::ParseError;
use crate::{
    records::record::{NAME_COMM, NAME_FULL, NAME_LEN, NameParts, Record},
    snapshot::process::Process,
};

const LONG: &str = "a name of at most 63 bytes";
const ONES: u128 = u128::from_le_bytes([1; 16]);
const HIGHS: u128 = ONES << 7;

/// The bytes of `word` that equal `byte`, each marked by its highest bit; marks above the lowest such byte may be
/// wrong.
const fn equal_bytes(word: u128, byte: u8) -> u128 {
    let zero_where_equal = word ^ (ONES * byte as u128);
    zero_where_equal.wrapping_sub(ONES) & !zero_where_equal & HIGHS
}

/// A name that fits into `comm`, and whether it contains a byte that status escapes.
fn short(comm: [u8; 16]) -> (Label<16>, bool) {
    let word = u128::from_le_bytes(comm);
    let len = (equal_bytes(word, 0).trailing_zeros() / 8) as usize;
    let special = equal_bytes(word, b'\n') | equal_bytes(word, b'\\');
    (
        Label::new(&comm[..len]).unwrap_or(Label::from_nul_padded(comm)),
        special != 0,
    )
}

/// The name in the form of stat.
#[inline]
pub(super) fn put_raw(process: Process<'_>, out: &mut SeqBuf<'_>) {
    let record = process.record();
    if record.name.kind == 0 {
        out.put(short(record.identity.comm).0);
    } else {
        out.write(&process.name());
    }
}

/// The name in the form of status: `proc_task_name(…, true)`.
#[inline]
pub(super) fn put_escaped(process: Process<'_>, out: &mut SeqBuf<'_>) {
    let record = process.record();
    if record.name.kind == 0 {
        let (name, special) = short(record.identity.comm);
        if !special {
            out.put(name);
            return;
        }
    }
    out.escape_str(&process.name(), Escape::SPACE | Escape::SPECIAL, b"\n\\");
}

/// Stores the raw name in `cursor` up to `end`, and skips it.
pub(super) fn parse_raw(
    cursor: &mut Cursor<'_>,
    end: usize,
    record: &mut Record,
) -> Result<(), ParseError> {
    let len = end - cursor.position();
    let Some(name) = cursor
        .rest()
        .get(..len)
        .filter(|name| name.len() < NAME_LEN)
    else {
        return Err(cursor.error(LONG));
    };
    if name.contains(&0) {
        return Err(cursor.error("a name without NUL"));
    }
    store(name, record);
    cursor.skip(len);
    Ok(())
}

/// Stores the escaped name in the rest of the line, and skips the line.
pub(super) fn parse_escaped(
    cursor: &mut Cursor<'_>,
    record: &mut Record,
) -> Result<(), ParseError> {
    let start = cursor.position();
    let line = cursor.line()?;
    if line.len() < NAME_LEN && !line.iter().any(|&byte| byte == b'\\' || byte == 0) {
        store(line, record);
        return Ok(());
    }
    let mut name = [0; NAME_LEN];
    let mut len = 0;
    let mut bytes = line.iter().enumerate();
    while let Some((at, &byte)) = bytes.next() {
        let plain = match (byte, line.get(at + 1)) {
            (b'\\', Some(b'n')) => b'\n',
            (b'\\', Some(b'\\')) => b'\\',
            (b'\\' | 0, _) => {
                return Err(cursor.error_at(start + at, "\\n, \\\\ or a byte of the name"));
            }
            _ => byte,
        };
        if byte == b'\\' {
            bytes.next();
        }
        if len == NAME_LEN - 1 {
            return Err(cursor.error_at(start + at, LONG));
        }
        name[len] = plain;
        len += 1;
    }
    store(&name[..len], record);
    Ok(())
}

/// Only a kernel thread can have a name that is longer than `comm`, which then holds its beginning.
fn store(name: &[u8], record: &mut Record) {
    let comm = &mut record.identity.comm;
    let short = name.len().min(comm.len() - 1);
    *comm = [0; 16];
    comm[..short].copy_from_slice(&name[..short]);
    record.name.kind = NAME_COMM;
    if short < name.len() {
        record.name = NameParts {
            kind: NAME_FULL,
            ..NameParts::default()
        };
        record.name.text[..name.len()].copy_from_slice(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_end_at_the_first_nul() {
        let mut comm = *b"a b)\nc\0\0\0\0\0\0\0\0\0\0";
        assert_eq!(short(comm).0.as_bytes(), b"a b)\nc");
        assert!(short(comm).1);
        comm[4] = b'n';
        assert!(!short(comm).1);
        assert_eq!(short([0; 16]).0.as_bytes(), b"");
        assert_eq!(
            short(*b"fifteen bytes!!\0").0.as_bytes(),
            b"fifteen bytes!!"
        );
        assert_eq!(
            short(*b"sixteen bytes!!!").0.as_bytes(),
            b"sixteen bytes!!!"
        );
    }

    #[test]
    fn every_name_survives() {
        for name in [
            &b""[..],
            b"cat",
            b"a\nb\\c",
            b"\\n",
            b"\\\\\n\n",
            b"\xff(\x01)",
            &[b'x'; 63],
            b"kworker/u8:3-events_unbound",
        ] {
            let mut record = Record::default();
            store(name, &mut record);
            let mut memory = [0; 256];
            let mut out = SeqBuf::new(&mut memory);
            put_escaped(Process::new(&record, &[]), &mut out);
            out.putc(b'\n');
            let mut parsed = Record::default();
            parse_escaped(
                &mut Cursor::new("file", out.text().expect("it fits")),
                &mut parsed,
            )
            .expect("it parses");
            assert_eq!(*Process::new(&parsed, &[]).name(), *name);
            assert_eq!(parsed, record);
        }
    }

    #[test]
    fn damaged_names_are_refused() {
        let parse =
            |text: &[u8]| parse_escaped(&mut Cursor::new("file", text), &mut Record::default());
        assert!(parse(b"a\\x\n").is_err());
        assert!(parse(b"a\\\n").is_err());
        assert!(parse(b"a\0b\n").is_err());
        assert!(parse(b"no end").is_err());
        assert!(parse(&[[b'x'; 64].as_slice(), b"\n"].concat()).is_err());
        assert!(parse(&[[b'x'; 63].as_slice(), b"\n"].concat()).is_ok());
    }
}
