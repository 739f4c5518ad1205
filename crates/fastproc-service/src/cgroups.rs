//! Cgroups: read when root asks for them, and shared as long as they are young enough.

use std::time::Instant;

use fastproc::{
    cgroups::{self, Cgroup, Fields, Snapshot, Source},
    source::service::wire::{Part, Reply, Status, part},
};

use crate::buffers::Contents;

/// More than that are refused, because a user may make as many as memory permits.
const MOST: usize = 1 << 16;

/// The number of collectors: pressure costs more than all the rest, so one is without it.
pub(crate) const COUNT: usize = 2;

/// Which collector reads these groups.
pub(crate) fn collector_of(groups: Fields) -> usize {
    usize::from(groups.contains(Fields::PRESSURE))
}

/// The collectors of cgroups, which are opened at the first request.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    all: [Collecting; COUNT],
    generation: u64,
}

#[derive(Debug, Default)]
struct Collecting {
    collector: Option<cgroups::Cgroups>,
    /// When the last snapshot began, and its generation.
    read: Option<(Instant, u64)>,
}

impl Cgroups {
    /// The generation of the last snapshot, if it began at `since` or later.
    pub(crate) fn read_since(&self, at: usize, since: Option<Instant>) -> Option<u64> {
        let (read, generation) = self.all[at].read?;
        since
            .is_none_or(|since| read >= since)
            .then_some(generation)
    }

    /// Makes a snapshot. Returns its generation.
    pub(crate) fn read(&mut self, at: usize) -> Result<u64, cgroups::Error> {
        let collecting = &mut self.all[at];
        collecting.read = None;
        let began = Instant::now();
        let collector = match &mut collecting.collector {
            Some(collector) => collector,
            none => {
                let fields = [Fields::all() - Fields::PRESSURE, Fields::all()][at];
                none.insert(cgroups::Cgroups::builder().fields(fields).open()?)
            }
        };
        collector.snapshot()?;
        self.generation += 1;
        collecting.read = Some((began, self.generation));
        Ok(self.generation)
    }

    /// Converts the last snapshot.
    pub(crate) fn answer(&self, contents: Contents) -> Result<Answer, Status> {
        let groups = Fields::from_bits_retain(contents.groups);
        let collecting = &self.all[collector_of(groups)];
        let collector = collecting.collector.as_ref().ok_or(Status::Failed)?;
        let snapshot = collector.last();
        if snapshot.len() > MOST {
            return Err(Status::Busy);
        }
        let mut answer = Answer::new(snapshot, groups, collector.source());
        for cgroup in snapshot.iter() {
            answer.push(snapshot, cgroup, groups);
        }
        Ok(answer)
    }
}

/// A snapshot of the cgroups, as the parts of a buffer.
#[derive(Debug)]
pub(crate) struct Answer {
    groups: Fields,
    source: Source,
    began_ns: u64,
    count: usize,
    records: Vec<u64>,
    device_count: usize,
    devices: Vec<u64>,
    places: Vec<u64>,
    paths: Vec<u8>,
    names: Vec<u8>,
}

impl Answer {
    fn new(snapshot: Snapshot<'_>, groups: Fields, source: Source) -> Self {
        let mut names = Vec::new();
        if groups.contains(Fields::MEMORY_STAT) {
            for (_, name) in snapshot.memory_stat_lines() {
                names.extend_from_slice(name.as_bytes());
                names.push(b'\n');
            }
        }
        Self {
            groups,
            source,
            began_ns: snapshot.began_ns(),
            count: 0,
            records: Vec::new(),
            device_count: 0,
            devices: Vec::new(),
            places: Vec::new(),
            paths: Vec::new(),
            names,
        }
    }

    fn push(&mut self, snapshot: Snapshot<'_>, cgroup: Cgroup<'_>, groups: Fields) {
        let values = groups.contains(Fields::MEMORY_STAT).then(|| {
            // All lines, or none.
            let lines = snapshot.memory_stat_lines();
            let values = lines.map(|(line, _)| cgroup.memory_stat_value(line));
            values.collect::<Option<Vec<u64>>>()
        });
        let values = values.flatten();
        let shown = match values {
            Some(_) => groups,
            None => groups - Fields::MEMORY_STAT,
        };
        let mut record = cgroup.record().shared(shown);
        if let Some(values) = values {
            // In the order of the lines, whatever the source.
            record.identity.stat_by_line = 1;
            record.memory_stat.slots.fill(0);
            for (slot, value) in record.memory_stat.slots.iter_mut().zip(values) {
                *slot = value;
            }
        }
        if groups.contains(Fields::IO) {
            record.io.devices_at = self.device_count as u32;
            for device in cgroup.devices() {
                self.devices.extend_from_slice(device.words());
                self.device_count += 1;
            }
        }
        self.records.extend_from_slice(record.words());
        self.count += 1;
        let path = cgroup.path();
        self.places
            .push(self.paths.len() as u64 | (path.len() as u64) << 32);
        self.paths.extend_from_slice(path);
    }

    /// The number of words of the buffer.
    pub(crate) fn words(&self) -> usize {
        let bytes = [&self.paths, &self.names].map(|bytes| bytes.len().div_ceil(8));
        self.records.len()
            + self.devices.len()
            + self.places.len()
            + bytes.into_iter().sum::<usize>()
    }

    /// Writes it, and returns where its parts are, and the rest of the reply.
    pub(crate) fn write(&self, to: &mut [u64], contents: Contents) -> Reply {
        let mut reply = Reply {
            layout: cgroups::record::LAYOUT,
            generation: contents.generation,
            groups: self.groups.bits(),
            kernel_boottime_ns: self.began_ns,
            source: match self.source {
                Source::Bpf => 1,
                _ => 2,
            },
            ..Reply::empty(Status::Ok)
        };
        let mut at = 0;
        let mut put = |words: &[u64], part: usize, count: usize, stride: usize| {
            to[at..at + words.len()].copy_from_slice(words);
            reply.parts[part] = Part {
                offset: at as u64 * 8,
                count: count as u64,
                stride: stride as u64,
            };
            at += words.len();
        };
        let of = |words: &[u64], count: usize| (words.len() * 8).checked_div(count).unwrap_or(0);
        let record = of(&self.records, self.count);
        put(&self.records, part::CGROUPS, self.count, record);
        let device = of(&self.devices, self.device_count);
        put(&self.devices, part::DEVICES, self.device_count, device);
        put(&self.places, part::PATHS, self.count, 8);
        put(
            &in_words(&self.paths),
            part::PATH_BYTES,
            self.paths.len(),
            1,
        );
        put(
            &in_words(&self.names),
            part::STAT_NAMES,
            self.names.len(),
            1,
        );
        reply
    }
}

/// Bytes as words, with zeros at the end.
fn in_words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
