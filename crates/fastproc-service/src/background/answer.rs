//! A snapshot of the cgroups, laid out as in a buffer.

use fastproc::{
    cgroups::{self, Cgroup, Fields, Snapshot, Source},
    source::service::wire::{Part, Reply, Status, part},
};

/// A snapshot of the cgroups, laid out as in a buffer. The thread makes it, so that the service only copies it.
#[derive(Debug)]
pub(crate) struct Answer {
    /// All of the reply but the buffer.
    pub(crate) reply: Reply,
    pub(crate) words: Vec<u64>,
}

/// An answer to which cgroups are added.
#[derive(Debug)]
pub(super) struct Draft {
    reply: Reply,
    /// The records, which come first; the other parts follow in the end.
    words: Vec<u64>,
    count: usize,
    devices: Vec<u64>,
    device_count: usize,
    places: Vec<u64>,
    paths: Vec<u8>,
    names: Vec<u8>,
}

impl Draft {
    pub(super) fn new(
        snapshot: Snapshot<'_>,
        groups: Fields,
        source: Source,
        generation: u64,
    ) -> Self {
        let mut names = Vec::new();
        if groups.contains(Fields::MEMORY_STAT) {
            for (_, name) in snapshot.memory_stat_lines() {
                names.extend_from_slice(name.as_bytes());
                names.push(b'\n');
            }
        }
        let reply = Reply {
            layout: cgroups::record::Record::LAYOUT,
            generation,
            groups: groups.bits(),
            kernel_boottime_ns: snapshot.began_ns(),
            missed: snapshot.left_out() as u32,
            source: match source {
                Source::Bpf => 1,
                _ => 2,
            },
            ..Reply::empty(Status::Ok)
        };
        Self {
            reply,
            words: Vec::new(),
            count: 0,
            devices: Vec::new(),
            device_count: 0,
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
                self.devices.extend_from_slice(fastproc::words(device));
                self.device_count += 1;
            }
        }
        self.words.extend_from_slice(fastproc::words(&record));
        self.count += 1;
        let path = cgroup.path();
        self.places
            .push(self.paths.len() as u64 | (path.len() as u64) << 32);
        self.paths.extend_from_slice(path);
    }

    /// Puts the other parts after the records.
    pub(super) fn finish(self) -> Answer {
        let Self {
            mut reply,
            mut words,
            count,
            devices,
            device_count,
            places,
            paths,
            names,
        } = self;
        reply.parts[part::CGROUPS] = place(0, words.len(), count);
        reply.parts[part::DEVICES] = place(words.len(), devices.len(), device_count);
        words.extend_from_slice(&devices);
        reply.parts[part::PATHS] = place(words.len(), places.len(), count);
        words.extend_from_slice(&places);
        for (number, bytes) in [(part::PATH_BYTES, &paths), (part::STAT_NAMES, &names)] {
            reply.parts[number] = Part {
                offset: words.len() as u64 * 8,
                count: bytes.len() as u64,
                stride: 1,
            };
            words.extend(in_words(bytes));
        }
        Answer { reply, words }
    }
}

/// A part that begins at this word, with so many words for all elements together.
fn place(at: usize, words: usize, count: usize) -> Part {
    Part {
        offset: at as u64 * 8,
        count: count as u64,
        stride: (words * 8).checked_div(count).unwrap_or(0) as u64,
    }
}

/// Bytes as words, with zeros at the end.
fn in_words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    })
}
