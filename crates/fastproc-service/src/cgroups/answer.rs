//! A snapshot of the cgroups, as the parts of a buffer.

use fastproc::{
    cgroups::{self, Cgroup, Fields, Snapshot, Source},
    source::service::wire::{Part, Reply, Status, part},
};

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
    pub(super) fn new(snapshot: Snapshot<'_>, groups: Fields, source: Source) -> Self {
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

    /// Adds a cgroup with these groups of fields.
    pub(super) fn push(&mut self, snapshot: Snapshot<'_>, cgroup: Cgroup<'_>, groups: Fields) {
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
    pub(crate) fn write(&self, to: &mut [u64], generation: u64) -> Reply {
        let mut reply = Reply {
            layout: cgroups::record::LAYOUT,
            generation,
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
