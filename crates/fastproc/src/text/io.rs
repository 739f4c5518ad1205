//! `/proc/PID/io`: a line for each counter (`do_io_accounting()` of fs/proc/base.c).

use super::cursor::Cursor;
use crate::base::error::parse::ParseError;
use crate::records::record::Io;

const FILE: &str = "/proc/PID/io";

/// Reads the counters.
pub fn parse(text: &[u8]) -> Result<Io, ParseError> {
    let mut cursor = Cursor::new(FILE, text);
    let mut io = Io::default();
    let counters = [
        ("rchar: ", &mut io.rchar),
        ("wchar: ", &mut io.wchar),
        ("syscr: ", &mut io.syscr),
        ("syscw: ", &mut io.syscw),
        ("read_bytes: ", &mut io.read_bytes),
        ("write_bytes: ", &mut io.write_bytes),
        ("cancelled_write_bytes: ", &mut io.cancelled_write_bytes),
    ];
    for (label, counter) in counters {
        if !cursor.rest().starts_with(label.as_bytes()) {
            return Err(cursor.error(label));
        }
        cursor.skip(label.len());
        *counter = cursor.u64()?;
        cursor.newline()?;
    }
    Ok(io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_counters_or_an_error() {
        let text = b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\n\
            cancelled_write_bytes: 18446744073709551615\n";
        let io = Io {
            rchar: 1,
            wchar: 2,
            syscr: 3,
            syscw: 4,
            read_bytes: 5,
            write_bytes: 6,
            cancelled_write_bytes: u64::MAX,
        };
        assert_eq!(parse(text), Ok(io));
        for end in 0..text.len() {
            assert!(parse(&text[..end]).is_err());
        }
    }
}
