//! What a copy of a record has in place of values that are not known: every bit is set. A C program has no other sign than
//! a value, and zero would be a wrong one.

use std::{ops::Range, sync::LazyLock};

use fastproc::{
    Fields, Mask,
    record::{Record, ThreadRecord},
    schema::{self, Field, Shown, Structure, Type},
    words_mut,
};

static PROCESS: LazyLock<Plan> = LazyLock::new(|| Plan::new(schema::RECORD));
static THREAD: LazyLock<Plan> = LazyLock::new(|| Plan::new(schema::THREAD));

/// Where a structure has values that may be unknown.
struct Plan {
    /// Those that have a sign of their own: the word, its bits, and the sign among them.
    signs: Vec<(usize, u64, u64)>,
    /// Those that not every user may see: the word and its bits.
    guarded: Vec<(usize, u64)>,
    /// The words of a group.
    groups: Vec<(Fields, Range<usize>)>,
}

/// The words that a field has bits of, and these bits.
fn bits(field: &Field) -> impl Iterator<Item = (usize, u64)> {
    let range = field.offset..field.offset + field.type_of.size();
    (range.start / 8..range.end.div_ceil(8)).map(move |word| {
        let bytes = std::array::from_fn(|at| {
            if range.contains(&(8 * word + at)) {
                0xff
            } else {
                0
            }
        });
        (word, u64::from_le_bytes(bytes))
    })
}

impl Plan {
    fn new(structure: &Structure) -> Self {
        let fields = structure.fields();
        let signs = fields.iter().filter_map(|field| {
            let unknown = field.unknown?;
            let (word, bits) = bits(field).next()?;
            Some((word, bits, unknown << bits.trailing_zeros() & bits))
        });
        let guarded = fields.iter().filter(|field| field.shown == Shown::Tracers);
        let groups = structure.members.iter().filter_map(|member| {
            let Type::Structure(part) = member.type_of else {
                return None;
            };
            let words = member.offset / 8..(member.offset + part.size) / 8;
            Some((Fields::from_name(&member.name.to_uppercase())?, words))
        });
        Self {
            signs: signs.collect(),
            guarded: guarded.flat_map(bits).collect(),
            groups: groups.collect(),
        }
    }

    fn apply(&self, words: &mut [u64], groups: Fields, is_guarded: bool) {
        for &(word, bits, sign) in &self.signs {
            if words[word] & bits == sign {
                words[word] |= bits;
            }
        }
        if is_guarded {
            for &(word, bits) in &self.guarded {
                words[word] |= bits;
            }
        }
        for (group, range) in &self.groups {
            if !groups.contains(*group) {
                words[range.clone()].fill(u64::MAX);
            }
        }
    }
}

/// Marks what is not known of a process. `may_trace`: the kernel would show this reader guarded values; `may_read_io`: also
/// I/O counters.
pub(crate) fn mark(record: &mut Record, may_trace: bool, may_read_io: impl FnOnce() -> bool) {
    Mask::record_for_tracers(record);
    record.identity.masked = (!may_trace).into();
    let mut groups = Fields::from_bits_truncate(record.identity.groups);
    if groups.contains(Fields::IO) && !(may_trace && may_read_io()) {
        groups -= Fields::IO;
        record.identity.groups = groups.bits();
    }
    PROCESS.apply(words_mut(record), groups, !may_trace);
}

/// Marks what is not known of a thread.
pub(crate) fn mark_thread(thread: &mut ThreadRecord, has_io: bool) {
    Mask::thread_for_tracers(thread);
    let groups = if has_io { Fields::IO } else { Fields::empty() };
    THREAD.apply(words_mut(thread), groups, false);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> Record {
        let mut record = Record::default();
        record.identity.tgid = 7;
        record.identity.exit_code = 9;
        record.identity.groups = (Fields::CPU | Fields::LAYOUT | Fields::IO).bits();
        record.cpu.minflt = 5;
        record.cpu.set_sum_exec_ns(None);
        record.layout.start_code = 0x1000;
        record.io.rchar = 6;
        record
    }

    #[test]
    fn a_group_that_is_not_there_has_every_bit_set() {
        let mut record = process();
        mark(&mut record, true, || true);
        assert_eq!((record.identity.tgid, record.cpu.minflt), (7, 5));
        assert_eq!((record.identity.exit_code, record.identity.masked), (9, 0));
        assert_eq!((record.layout.start_code, record.io.rchar), (0x1000, 6));
        assert_eq!(record.memory.vsize, u64::MAX);
        assert_eq!(
            (record.users.uid, record.limits.fd_size),
            (u32::MAX, u32::MAX)
        );
        // An unknown value of a group that is there: /proc does not tell the precise run time.
        assert_eq!(record.cpu.sum_exec_ns(), Some(u64::MAX));
    }

    #[test]
    fn guarded_values_have_every_bit_set_for_a_reader_who_may_not_see_them() {
        let mut record = process();
        mark(&mut record, false, || panic!("not asked for"));
        assert_eq!((record.identity.tgid, record.identity.masked), (7, 1));
        assert_eq!(
            (record.identity.exit_code, record.identity.wchan),
            (-1, 0xff)
        );
        assert_eq!(
            (record.layout.start_code, record.io.rchar),
            (u64::MAX, u64::MAX)
        );
        let groups = Fields::CPU | Fields::LAYOUT;
        assert_eq!(record.identity.groups, groups.bits());
        assert_eq!(record.cpu.minflt, 5);
    }

    #[test]
    fn io_of_a_process_that_is_not_dumpable_is_unknown_to_itself() {
        let mut record = process();
        mark(&mut record, true, || false);
        assert_eq!((record.identity.exit_code, record.identity.masked), (9, 0));
        assert_eq!(record.io.rchar, u64::MAX);
        assert_eq!(record.identity.groups & Fields::IO.bits(), 0);
        let mut thread = ThreadRecord::default();
        thread.minflt = 3;
        mark_thread(&mut thread, false);
        assert_eq!((thread.minflt, thread.io.rchar), (3, u64::MAX));
    }
}
