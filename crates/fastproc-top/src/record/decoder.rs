//! Reads the records of a frame, in any layout.

use std::collections::HashMap;

use fastproc::{
    exits::Exit,
    record::{ExitRecord, Record, ThreadRecord},
    schema::Translation,
};

use super::{Error, coding::Input};

/// The largest part of a snapshot that is read, in bytes: a malicious file may request any size.
const LARGEST: usize = 1 << 30;
/// The largest record.
const LARGEST_RECORD: usize = 1 << 16;

/// Reads the records of each frame, which are stored as differences to the frame before.
#[derive(Debug)]
pub struct Decoder {
    translation: Translation,
    processes: Raw,
    threads: Raw,
}

/// Records in the layout of the file.
#[derive(Debug, Default)]
struct Raw {
    /// Words of a record.
    stride: usize,
    /// The key of each record.
    keys: Vec<u32>,
    words: Vec<u64>,
}

impl Decoder {
    /// A decoder for records of this layout. `None`: their size is not possible.
    pub fn new(translation: Translation) -> Option<Self> {
        let strides = translation.strides();
        let fits = |&stride: &usize| stride.is_multiple_of(8) && stride <= LARGEST_RECORD;
        let [processes, threads, _] = strides.map(|stride| Raw {
            stride: stride / 8,
            ..Raw::default()
        });
        strides.iter().all(fits).then_some(Self {
            translation,
            processes,
            threads,
        })
    }

    /// Prepares for a frame that does not depend on the one before.
    pub fn forget(&mut self) {
        self.processes.take();
        self.threads.take();
    }

    /// Reads the processes of a frame, in the order of their ids.
    pub fn processes(
        &mut self,
        input: &mut Input<'_>,
        records: &mut Vec<Record>,
    ) -> Result<(), Error> {
        let before = self.processes.begin(input)?;
        let (mut last, mut at) = (0_u32, 0);
        for i in 0..before.count {
            let gap = input.small()?;
            let pid = last.checked_add(gap).filter(|_| i == 0 || gap > 0);
            last = pid.ok_or(Error::Damaged("processes are not in order"))?;
            let rest = before.raw.keys.get(at..).unwrap_or_default();
            at += rest.iter().take_while(|&&pid| pid < last).count();
            let base = (before.raw.keys.get(at) == Some(&last)).then_some(at);
            self.processes.push(last, before.raw.get(base), input)?;
        }
        self.translation.processes(&self.processes.bytes(), records);
        // Readers search by this id, so it must match.
        let ids = records.iter().map(|record| record.identity.tgid);
        if !ids.eq(self.processes.keys.iter().copied()) {
            return Err(Error::Damaged("a process has two ids"));
        }
        Ok(())
    }

    /// Reads the threads of a frame.
    pub fn threads(
        &mut self,
        input: &mut Input<'_>,
        records: &mut Vec<ThreadRecord>,
    ) -> Result<(), Error> {
        let before = self.threads.begin(input)?;
        let places = before.raw.keys.iter().enumerate();
        let places: HashMap<u32, usize> = places.map(|(at, &tid)| (tid, at)).collect();
        for _ in 0..before.count {
            let tid = input.small()?;
            let base = places.get(&tid).copied();
            self.threads.push(tid, before.raw.get(base), input)?;
        }
        self.translation.threads(&self.threads.bytes(), records);
        Ok(())
    }

    /// Reads this many exits. `None`: the version that wrote them had too few fields.
    pub fn exits(&self, input: &mut Input<'_>, count: usize) -> Result<Option<Vec<Exit>>, Error> {
        let [.., stride] = self.translation.strides();
        let mut raw = Raw {
            stride: stride / 8,
            ..Raw::default()
        };
        check(count, stride)?;
        for _ in 0..count {
            raw.push(0, None, input)?;
        }
        let mut records: Vec<ExitRecord> = Vec::new();
        self.translation.exits(&raw.bytes(), &mut records);
        let exits = records.iter().map(Exit::from_exit_record).collect();
        Ok(self.translation.has_exits().then_some(exits))
    }
}

/// The records of the frame before, and the number of records in this one.
struct Before {
    raw: Raw,
    count: usize,
}

impl Raw {
    /// Takes the records, and leaves none.
    fn take(&mut self) -> Self {
        let stride = self.stride;
        std::mem::replace(
            self,
            Self {
                stride,
                ..Self::default()
            },
        )
    }

    fn begin(&mut self, input: &mut Input<'_>) -> Result<Before, Error> {
        let count = input.count()?;
        check(count, 8 * self.stride)?;
        Ok(Before {
            raw: self.take(),
            count,
        })
    }

    fn get(&self, at: Option<usize>) -> Option<&[u64]> {
        let start = at? * self.stride;
        self.words.get(start..start + self.stride)
    }

    /// Reads a record, stored as the differences to `base`, or to zeros.
    fn push(&mut self, key: u32, base: Option<&[u64]>, input: &mut Input<'_>) -> Result<(), Error> {
        let start = self.words.len();
        self.words.resize(start + self.stride, 0);
        let words = &mut self.words[start..];
        if let Some(base) = base {
            words.copy_from_slice(base);
        }
        input.words(words)?;
        self.keys.push(key);
        Ok(())
    }

    fn bytes(&self) -> Vec<u8> {
        let words = self.words.iter();
        words.flat_map(|word| word.to_ne_bytes()).collect()
    }
}

fn check(count: usize, size: usize) -> Result<(), Error> {
    if count > 0 && (size == 0 || count > LARGEST / size) {
        return Err(Error::Damaged("a snapshot is too large"));
    }
    Ok(())
}
