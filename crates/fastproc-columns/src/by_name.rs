//! What the exited processes of one name did together: the table of `fastproc exits --summary`.

use fastproc::{Fields, exits::Exit};

use crate::{
    field::{Field, Subject, groups},
    value::{
        Unit,
        Value::{self, Text, Unsigned},
    },
};

/// Names of exited processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByName;

/// The exited processes of one name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Total {
    comm: [u8; 16],
    count: u64,
    /// `None`: no exit status is known.
    failed: Option<u64>,
    cpu_ns: u64,
    longest_ns: Option<u64>,
    peak_rss: u64,
    /// Read and written. `None`: no I/O is known.
    io: Option<(u64, u64)>,
}

impl Total {
    /// Adds a process of this name.
    pub fn add(&mut self, exit: &Exit) {
        self.comm = exit.comm;
        self.count += 1;
        if let Some(status) = exit.status {
            *self.failed.get_or_insert(0) += u64::from(status != 0);
        }
        self.cpu_ns += exit.utime_ns + exit.stime_ns;
        let lifetime = exit.lifetime().map(|time| time.as_nanos() as u64);
        self.longest_ns = self.longest_ns.max(lifetime);
        self.peak_rss = self.peak_rss.max(exit.peak_rss);
        if let Some(io) = exit.io {
            let (read, written) = self.io.get_or_insert((0, 0));
            *read += io.read_bytes;
            *written += io.write_bytes;
        }
    }
}

groups! {
    ByName;
    field: ;
}

/// Every column.
#[rustfmt::skip]
static COLUMNS: &[Field<ByName>] = &[
    field("count", Unit::Number, "exited processes of this name", |row, _| row.count.into()),
    field("failed", Unit::Number, "how many of them failed or were killed, of those whose status is known", |row, _| Value::known(row.failed, Unsigned)),
    field("time", Unit::Time, "CPU time of all together", |row, _| row.cpu_ns.into()),
    field("longest", Unit::Time, "the longest lifetime of one", |row, _| Value::known(row.longest_ns, Unsigned)),
    field("vmhwm", Unit::Bytes, "the largest resident memory of one", |row, _| row.peak_rss.into()),
    field("read_bytes", Unit::Bytes, "read from disk by all together", |row, _| Value::known(row.io, |(read, _)| Unsigned(read))),
    field("write_bytes", Unit::Bytes, "written to disk by all together", |row, _| Value::known(row.io, |(_, written)| Unsigned(written))),
    field("comm", Unit::Text, "their name", |row, _| Text(row.comm.split(|&byte| byte == 0).next().unwrap_or_default())),
];

impl Subject for ByName {
    type Row<'a> = Total;
    /// The memory in which texts are made to compare them.
    type Lookup = Vec<u8>;
    type Fields = Fields;
    type Id = u32;

    const NO_FIELDS: Fields = Fields::empty();

    fn fields() -> &'static [Field<Self>] {
        COLUMNS
    }

    fn id(_: &Total) -> u32 {
        0
    }

    fn parent(_: &Total) -> u32 {
        0
    }

    /// By name.
    fn place(row: &Total) -> (u32, u32) {
        let part = |at| {
            row.comm[at..at + 4]
                .iter()
                .fold(0, |all, &byte| all << 8 | u32::from(byte))
        };
        (part(0), part(4))
    }

    fn hides(_: &Field<Self>, _: &Total, _: &mut Vec<u8>) -> bool {
        false
    }

    fn write_before_name(_: &Total, _: &mut Vec<u8>) {}

    fn write_after_name(_: &Total, _: &mut Vec<u8>) {}

    fn scratch(lookup: &mut Vec<u8>) -> &mut Vec<u8> {
        lookup
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_total_is_not_zero() {
        let mut total = Total::default();
        let shown = |total: &Total| {
            let mut text = Vec::new();
            for column in COLUMNS {
                column.write_for_table(total, &mut Vec::new(), &mut text);
                text.push(b' ');
            }
            String::from_utf8(text).expect("text")
        };
        let mut exit = Exit::default();
        exit.comm[0] = b'a';
        exit.utime_ns = 2_000_000_000;
        total.add(&exit);
        assert_eq!(shown(&total), "1 - 0:02.00 - 0 - - a ");
        exit.status = Some(9);
        total.add(&exit);
        assert_eq!(shown(&total), "2 1 0:04.00 - 0 - - a ");
    }
}
