//! Messages between a reader and the service: see `docs/dev/protocol.md`.
//!
//! A message is a sequence of 64-bit words, in the byte order of the machine, on which both ends run. A receiver
//! ignores words after those that it knows, so words can be added.

pub use crate::base::error::service::Status;
use crate::{
    base::error::service::Error,
    records::layout,
    snapshot::{calibration::Calibration, texts::Texts},
};

/// Version of the messages. The layout of records has its own id: [`Reply::layout`].
pub const VERSION: u64 = 1;

/// Number of buffers that a reader can say it has mapped.
pub const HOLDS: usize = 4;

/// A part of a buffer cannot be read.
pub(crate) const MALFORMED: Error = Error::Protocol("a part that is not within the buffer");

/// Operations that a reader can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Op {
    /// Ask whether and how the service serves this reader. The answer has no buffer.
    Hello = 1,
    /// A snapshot.
    Snapshot = 2,
    /// The description of the records, as text.
    Layout = 3,
    /// The users of the service, as JSON.
    Status = 4,
    /// Exits, without a snapshot.
    Exits = 5,
    /// A snapshot of the cgroups.
    Cgroups = 6,
    /// A snapshot of open files.
    Files = 7,
}

impl Op {
    const fn from_word(word: u64) -> Option<Self> {
        Some(match word {
            1 => Self::Hello,
            2 => Self::Snapshot,
            3 => Self::Layout,
            4 => Self::Status,
            5 => Self::Exits,
            6 => Self::Cgroups,
            7 => Self::Files,
            _ => return None,
        })
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// Groups of fields, as the bits of [`Fields`](crate::Fields); for cgroups and open files of theirs.
    pub groups: u32,
    /// Greatest age of a snapshot, in nanoseconds. 0: its walk must begin after this message arrived.
    pub max_age_ns: u64,
    /// Generation of the last snapshot that this reader had, or 0.
    pub generation: u64,
    /// Buffers that this reader has mapped, by their ids; 0 for none.
    pub holds: [u64; HOLDS],
    /// Texts that the answer must include.
    pub texts: Texts,
    /// How long before the walk began a text may have been read, in nanoseconds.
    pub texts_max_age_ns: u64,
    /// Whether this reader wants exits. They are recorded while any reader wants them.
    pub exits: bool,
    /// Number of the last exit that this reader has received, or 0.
    pub exits_after: u64,
}

impl Request {
    /// Words of the message.
    pub const WORDS: usize = 13;
    /// Words that must be present. Missing words after these are 0.
    const NEEDED: usize = 12;

    /// A request with this operation, for no groups, texts or exits, and of no age.
    pub const fn new(op: Op) -> Self {
        Self {
            op,
            groups: 0,
            max_age_ns: 0,
            generation: 0,
            holds: [0; HOLDS],
            texts: Texts::empty(),
            texts_max_age_ns: 0,
            exits: false,
            exits_after: 0,
        }
    }

    /// The message.
    pub fn to_words(self) -> [u64; Self::WORDS] {
        let [a, b, c, d] = self.holds;
        [
            VERSION,
            self.op as u64,
            u64::from(self.groups),
            self.max_age_ns,
            self.generation,
            a,
            b,
            c,
            d,
            u64::from(self.texts.bits()),
            self.texts_max_age_ns,
            u64::from(self.exits),
            self.exits_after,
        ]
    }

    /// Parses a message.
    pub fn from_words(words: &[u64]) -> Result<Self, Status> {
        match words.first() {
            None => return Err(Status::BadRequest),
            Some(&VERSION) => (),
            Some(_) => return Err(Status::Version),
        }
        if words.len() < Self::NEEDED {
            return Err(Status::BadRequest);
        }
        let mut all = [0; Self::WORDS];
        let known = words.len().min(all.len());
        all[..known].copy_from_slice(&words[..known]);
        let words = all;
        Ok(Self {
            op: Op::from_word(words[1]).ok_or(Status::BadRequest)?,
            groups: u32::try_from(words[2]).map_err(|_| Status::Groups)?,
            max_age_ns: words[3],
            generation: words[4],
            holds: [words[5], words[6], words[7], words[8]],
            texts: Texts::from_bits_truncate(words[9] as u32),
            texts_max_age_ns: words[10],
            exits: words[11] & 1 != 0,
            exits_after: words[12],
        })
    }
}

/// A part of a buffer: a sequence of elements of one size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Bytes from the start of the buffer.
    pub offset: u64,
    /// Number of elements.
    pub count: u64,
    /// Bytes from one element to the next.
    pub stride: u64,
}

/// Parts of a buffer, by their places in [`Reply::parts`].
pub mod part {
    /// Records of processes, in the order of their pids.
    pub const RECORDS: usize = 0;
    /// Records of threads.
    pub const THREADS: usize = 1;
    /// Words that the records' offsets point into.
    pub const POOL: usize = 2;
    /// Processes that the reader must read from `/proc` itself: 32-bit pids, in ascending order.
    pub const UNSURE: usize = 3;
    /// Where the texts of each process are: a [`TextEntry`](crate::TextEntry) for each record, in their
    /// order.
    pub const TEXTS: usize = 4;
    /// The bytes of all texts.
    pub const TEXT_BYTES: usize = 5;
    /// Exited processes, as [`ExitRecord`](crate::record::ExitRecord), in the order of their numbers.
    pub const EXITS: usize = 6;
    /// The bytes of their command lines.
    pub const EXIT_LINES: usize = 7;
    /// Number of parts that a reply has room for.
    pub const COUNT: usize = 8;

    /// In a snapshot of the cgroups: their records, parents before their children.
    pub const CGROUPS: usize = 0;
    /// Their block devices, to which records refer.
    pub const DEVICES: usize = 1;
    /// Where the path of each cgroup is: an offset and a length of 32 bits each.
    pub const PATHS: usize = 2;
    /// The bytes of the paths.
    pub const PATH_BYTES: usize = 3;
    /// The names of the lines of memory.stat, in the order of their values, each followed by a line feed.
    pub const STAT_NAMES: usize = 4;

    /// In a snapshot of open files: the processes.
    pub const PROCESSES: usize = 0;
    /// Their descriptors, to which processes refer.
    pub const FILES: usize = 1;
    /// Their sockets, to which descriptors refer.
    pub const SOCKETS: usize = 2;
    /// The bytes of all names.
    pub const NAMES: usize = 3;
}

/// Bits of the results of comparing records with the kernel's text: see [`Calibration`](crate::Calibration).
mod fact {
    pub(super) const EXACT_RSS_KNOWN: u64 = 1;
    pub(super) const EXACT_RSS: u64 = 1 << 1;
    pub(super) const WORKERS_BY_COMM: u64 = 1 << 2;
    pub(super) const THREAD_FEATURES: u64 = 1 << 3;
    pub(super) const THP_DISABLE_BIT_KNOWN: u64 = 1 << 4;
    pub(super) const THP_DISABLE_BIT_SHIFT: u32 = 8;
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Whether the request was served.
    pub status: Status,
    /// Id of the layout of records: [`layout::id`](crate::records::layout::id), or that of cgroups or open files.
    pub layout: u64,
    /// Number of the snapshot, never 0. A larger number is a later snapshot.
    pub generation: u64,
    /// Groups of fields that the records hold.
    pub groups: u32,
    /// Whether the descriptor of the buffer comes with this message.
    pub has_descriptor: bool,
    /// Id of the buffer, which is never reused; 0 for none.
    pub buffer: u64,
    /// Bytes of the buffer.
    pub buffer_bytes: u64,
    /// When the walk began: time since boot, in nanoseconds, on the clock of start times.
    pub kernel_boottime_ns: u64,
    /// How long reading the records took from then on, in nanoseconds.
    pub read_for_ns: u64,
    /// Records that changed while they were read, and were read again from `/proc`.
    pub torn: u32,
    /// Processes that the walk does not meet, or cgroups that were left out because of their long paths.
    pub missed: u32,
    /// The service's own source: 1 `bpf`, 2 `bpf-iter`, 3 `procfs`.
    pub source: u64,
    /// Facts that the service found out about this kernel.
    pub calibration: Calibration,
    /// Number of the last exit before the snapshot. 0: exits are not recorded.
    pub exits_last: u64,
    /// Every exit with a larger number, up to `exits_last`, is in this answer or was lost.
    pub exits_after: u64,
    /// First byte in the buffer of the generations in which the records changed last, one for each record. 0: there are
    /// none that can be compared with the last snapshot of this reader.
    pub changed_at: u64,
    /// The places of the parts in the buffer: see [`part`].
    pub parts: [Part; part::COUNT],
}

impl Reply {
    /// Words of the message.
    pub const WORDS: usize = 16 + 3 * part::COUNT;

    /// An answer without a buffer.
    pub fn empty(status: Status) -> Self {
        let mut words = [0; Self::WORDS];
        (words[1], words[2]) = (status as u64, layout::id());
        Self::from_known(&words)
    }

    /// The message.
    pub fn to_words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        words[..16].copy_from_slice(&[
            VERSION,
            self.status as u64,
            self.layout,
            self.generation,
            u64::from(self.groups),
            u64::from(self.has_descriptor),
            self.buffer,
            self.buffer_bytes,
            self.kernel_boottime_ns,
            self.read_for_ns,
            u64::from(self.torn) | u64::from(self.missed) << 32,
            self.source,
            facts(self.calibration),
            self.exits_last,
            self.exits_after,
            self.changed_at,
        ]);
        let (parts, _) = words[16..].as_chunks_mut::<3>();
        for (words, part) in parts.iter_mut().zip(self.parts) {
            *words = [part.offset, part.count, part.stride];
        }
        words
    }

    /// Parses a message. `None` if it is not valid.
    pub fn from_words(words: &[u64]) -> Option<Self> {
        let words: &[u64; Self::WORDS] = words.first_chunk()?;
        if words[0] != VERSION {
            return Some(Self::empty(Status::Version));
        }
        Some(Self::from_known(words))
    }

    fn from_known(words: &[u64; Self::WORDS]) -> Self {
        let mut parts = [Part::default(); part::COUNT];
        let (triples, _) = words[16..].as_chunks::<3>();
        for (part, &[offset, count, stride]) in parts.iter_mut().zip(triples) {
            *part = Part {
                offset,
                count,
                stride,
            };
        }
        Self {
            status: Status::from_word(words[1]),
            layout: words[2],
            generation: words[3],
            groups: words[4] as u32,
            has_descriptor: words[5] & 1 != 0,
            buffer: words[6],
            buffer_bytes: words[7],
            kernel_boottime_ns: words[8],
            read_for_ns: words[9],
            torn: words[10] as u32,
            missed: (words[10] >> 32) as u32,
            source: words[11],
            calibration: calibration(words[12]),
            exits_last: words[13],
            exits_after: words[14],
            changed_at: words[15],
            parts,
        }
    }
}

fn facts(calibration: Calibration) -> u64 {
    let mut facts = 0;
    if let Some(exact) = calibration.exact_rss {
        facts |= fact::EXACT_RSS_KNOWN;
        facts |= if exact { fact::EXACT_RSS } else { 0 };
    }
    if calibration.workers_by_comm {
        facts |= fact::WORKERS_BY_COMM;
    }
    if calibration.thread_features {
        facts |= fact::THREAD_FEATURES;
    }
    if let Some(bit) = calibration.thp_disable_bit {
        facts |= fact::THP_DISABLE_BIT_KNOWN;
        facts |= u64::from(bit & 63) << fact::THP_DISABLE_BIT_SHIFT;
    }
    facts
}

fn calibration(facts: u64) -> Calibration {
    let has = |fact| facts & fact != 0;
    let bit = (facts >> fact::THP_DISABLE_BIT_SHIFT & 63) as u32;
    Calibration {
        exact_rss: has(fact::EXACT_RSS_KNOWN).then_some(has(fact::EXACT_RSS)),
        workers_by_comm: has(fact::WORKERS_BY_COMM),
        thp_disable_bit: has(fact::THP_DISABLE_BIT_KNOWN).then_some(bit),
        thread_features: has(fact::THREAD_FEATURES),
    }
}

/// The bytes of a message.
pub fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The words of a message. Bytes after the last whole word are ignored.
pub fn from_bytes(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_ne_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn requests() -> impl Strategy<Value = Request> {
        (1..8_u64, any::<u32>(), any::<[u64; 6]>()).prop_map(|(op, groups, words)| Request {
            op: Op::from_word(op).expect("an operation"),
            groups,
            max_age_ns: words[0],
            generation: words[1],
            holds: [words[2], words[3], words[4], words[5]],
            texts: Texts::from_bits_truncate(groups),
            texts_max_age_ns: words[5],
            exits: groups % 2 == 1,
            exits_after: words[4],
        })
    }

    #[test]
    fn a_request_of_an_older_reader_is_understood() {
        let mut words = [0; Request::NEEDED];
        (words[0], words[1]) = (VERSION, 2);
        let request = Request::from_words(&words).expect("as long as it was");
        assert_eq!((request.exits, request.exits_after), (false, 0));
        assert_eq!(
            Request::from_words(&words[1..]),
            Err(Status::Version),
            "another first word"
        );
        assert_eq!(Request::from_words(&words[..11]), Err(Status::BadRequest));
    }

    proptest! {
        #[test]
        fn a_request_is_read_as_it_was_written(request in requests(), more in prop::collection::vec(any::<u64>(), 0..4)) {
            let bytes = to_bytes(&[&request.to_words()[..], &more].concat());
            let words: Vec<u64> = from_bytes(&bytes).collect();
            prop_assert_eq!(Request::from_words(&words), Ok(request));
        }

        #[test]
        fn a_reply_is_read_as_it_was_written(mut words in any::<[u64; Reply::WORDS]>(), status in 0..12_u64) {
            words[0] = VERSION;
            words[1] = status;
            let reply = Reply::from_words(&words).expect("long enough");
            prop_assert_eq!(Reply::from_words(&reply.to_words()), Some(reply));
        }

        #[test]
        fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let words: Vec<u64> = from_bytes(&bytes).collect();
            let _ = Request::from_words(&words);
            let reply = Reply::from_words(&words);
            prop_assert!(reply.is_none() == (words.len() < Reply::WORDS));
        }
    }
}
