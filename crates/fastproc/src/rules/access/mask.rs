//! Removes from a record what only some users may see. The tags of members in `bpf/record.h` decide; a member without a
//! tag is removed.

use std::sync::LazyLock;

use crate::{
    base::{host::Host, plain::words_mut},
    records::{
        fields::Fields,
        record::{EXIT_IO, EXIT_STATUS, ExitRecord, Record, ThreadRecord, mark_rounded},
        schema::{EXIT, RECORD, Shown, Structure, THREAD, Type},
    },
    snapshot::calibration::Calibration,
};

static PLANS: LazyLock<[Plan; 3]> =
    LazyLock::new(|| [RECORD, THREAD, EXIT].map(Plan::from_structure));

/// A word of a structure: its index, the bits that are kept, and the bits that mark the rest as unknown.
type Kept = (usize, u64, u64);

/// The changes to the words of a structure.
#[derive(Debug)]
struct Plan {
    /// The words of which every user sees only a part.
    public: Vec<Kept>,
    /// The words of which even a user who could trace the process sees only a part.
    tracers: Vec<Kept>,
    ticks: Vec<usize>,
    boot_ticks: Vec<usize>,
}

/// The bytes of a structure that a reader may see: none, until its members add theirs.
#[derive(Debug)]
struct Bytes {
    public: Vec<u8>,
    tracers: Vec<u8>,
    /// The values in place of bytes that not every user may see.
    unknown: Vec<u8>,
}

impl Plan {
    fn from_structure(structure: &Structure) -> Self {
        let mut plan = Self {
            public: Vec::new(),
            tracers: Vec::new(),
            ticks: Vec::new(),
            boot_ticks: Vec::new(),
        };
        let none = vec![0; structure.size];
        let mut bytes = Bytes {
            public: none.clone(),
            tracers: none.clone(),
            unknown: none.clone(),
        };
        plan.add(structure, 0, &mut bytes);
        plan.public = kept(&bytes.public, &bytes.unknown);
        plan.tracers = kept(&bytes.tracers, &none);
        plan
    }

    fn add(&mut self, structure: &Structure, start: usize, bytes: &mut Bytes) {
        for member in structure.members {
            let offset = start + member.offset;
            if let Type::Structure(part) = member.type_of {
                self.add(part, offset, bytes);
                continue;
            }
            let (is_public, is_traced) = match member.shown {
                Shown::Public | Shown::Ticks | Shown::BootTicks => (true, true),
                Shown::Tracers => (false, true),
                Shown::Nobody => (false, false),
            };
            let range = offset..offset + member.type_of.size();
            bytes.public[range.clone()].fill(if is_public { 0xff } else { 0 });
            bytes.tracers[range.clone()].fill(if is_traced { 0xff } else { 0 });
            if let Some(unknown) = member.unknown.filter(|_| !is_public) {
                let size = range.len();
                let bits = unknown.to_le_bytes();
                bytes.unknown[range].copy_from_slice(&bits[..size]);
                if cfg!(target_endian = "big") {
                    bytes.unknown[offset..offset + size].reverse();
                }
            }
            match member.shown {
                Shown::Ticks => self.ticks.push(word_of(member.type_of, offset)),
                Shown::BootTicks => self.boot_ticks.push(word_of(member.type_of, offset)),
                _ => {}
            }
        }
    }

    fn hide(&self, words: &mut [u64]) {
        keep(&self.public, words);
    }

    fn round(&self, words: &mut [u64], mask: &Mask) {
        for &at in &self.ticks {
            words[at] -= words[at] % mask.tick_ns;
        }
        for &at in &self.boot_ticks {
            let shown = words[at].saturating_add_signed(mask.boot_offset_ns);
            let rounded = words[at].saturating_sub(shown % mask.tick_ns);
            words[at] = mark_rounded(rounded, mask.tick_ns);
        }
    }
}

/// The words that change.
fn kept(bytes: &[u8], unknown: &[u8]) -> Vec<Kept> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_ne_bytes(word)
    };
    let words = bytes.chunks(8).zip(unknown.chunks(8)).enumerate();
    let words = words.map(|(at, (bytes, unknown))| (at, word(bytes), word(unknown)));
    words.filter(|&(_, bits, _)| bits != u64::MAX).collect()
}

fn keep(kept: &[Kept], words: &mut [u64]) {
    for &(at, bits, unknown) in kept {
        words[at] = words[at] & bits | unknown;
    }
}

fn word_of(type_of: Type, offset: usize) -> usize {
    assert!(
        type_of == Type::U64 && offset.is_multiple_of(8),
        "bpf/record.h: only a u64 can be rounded"
    );
    offset / 8
}

/// Removes from records what the kernel does not show to every user, and excess precision.
#[derive(Clone, Copy, Debug)]
pub struct Mask {
    tick_ns: u64,
    /// How far the readers' clocks are ahead of the clock of start times. Ticks are counted on the readers'
    /// clocks.
    boot_offset_ns: i64,
    thp_disable_bit: Option<u32>,
}

impl Mask {
    /// A mask for records of this machine.
    pub fn new(host: &Host, calibration: Calibration) -> Self {
        Self {
            tick_ns: 1_000_000_000 / host.ticks_per_second.max(1),
            boot_offset_ns: host.boot_offset_ns,
            thp_disable_bit: calibration.thp_disable_bit,
        }
    }

    /// Reduces a record to what every user may see.
    pub fn record(&self, record: &mut Record) {
        // The status file shows one of these flags to every user: `THP_enabled`.
        let thp = self.thp_disable_bit.map_or(0, |bit| 1 << bit);
        let thp = record.memory_details.mm_flags & thp;
        Self::hide(record);
        record.memory_details.mm_flags = thp;
        PLANS[0].round(words_mut(record), self);
    }

    /// Removes from a record what not every user may see. Times keep their precision.
    pub fn hide(record: &mut Record) {
        PLANS[0].hide(words_mut(record));
        record.identity.masked = 1;
        record.identity.groups &= !Fields::IO.bits();
    }

    /// Reduces a record to what a user who could trace the process may see.
    pub fn record_for_tracers(record: &mut Record) {
        keep(&PLANS[0].tracers, words_mut(record));
    }

    /// Reduces a thread to what every user may see.
    pub fn thread(&self, thread: &mut ThreadRecord) {
        Self::hide_thread(thread);
        PLANS[1].round(words_mut(thread), self);
    }

    /// Removes from a thread what not every user may see. Times keep their precision.
    pub fn hide_thread(thread: &mut ThreadRecord) {
        PLANS[1].hide(words_mut(thread));
    }

    /// Reduces a thread to what a user who could trace its process may see.
    pub fn thread_for_tracers(thread: &mut ThreadRecord) {
        keep(&PLANS[1].tracers, words_mut(thread));
    }

    /// Reduces an exit to what every user may see.
    pub fn exit(&self, exit: &mut ExitRecord) {
        PLANS[2].hide(words_mut(exit));
        exit.known &= !(EXIT_STATUS | EXIT_IO);
        PLANS[2].round(words_mut(exit), self);
    }

    /// Reduces an exit to what a user who could have traced the process may see.
    pub fn exit_for_tracers(exit: &mut ExitRecord) {
        keep(&PLANS[2].tracers, words_mut(exit));
    }
}

#[cfg(test)]
mod tests;
