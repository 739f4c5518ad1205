//! Command lines and paths of programs, kept from walk to walk.
//!
//! What is kept is handed out if it was read after the walk began. It is also handed out if it is not older than the
//! reader wants, and nothing can have changed it but what leaves no trace: the process has not run since, nobody traces
//! it, and no other process has its memory. The record tells, if the walk has made it ([`Rest`]). What leaves none: somebody
//! else writes to that memory by force, or renames or removes a program.

use std::{
    collections::HashMap,
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use fastproc::{Directories, Fields, Process, Snapshot, TextEntry, TextPlace, Texts as Kinds};

use crate::reading::{self, Item, Reading};

/// Longest text that is kept, and of all of them together.
const LONGEST: usize = 4096;
const MOST_BYTES: usize = 16 << 20;
/// A process whose memory cannot be read in time holds up everybody: it, or all of its user unless that is root, is left to
/// the readers for a while.
const LEFT_FOR: Duration = Duration::from_secs(60);
/// Readings that still wait for such memory. With more nothing is read any more.
const MOST_STUCK: usize = 8;

/// A text, and what it holds on.
#[derive(Debug)]
struct Text {
    bytes: Box<[u8]>,
    read_ns: u64,
    rest: Option<Rest>,
}

/// What is kept of a process; nothing of one that has no memory, as a kernel thread.
#[derive(Debug, Default)]
struct Kept {
    pid: u32,
    start_ns: u64,
    /// By [`place_of`].
    texts: [Option<Text>; 2],
}

impl Kept {
    fn is_of(&self, process: Process<'_>) -> bool {
        (self.pid, self.start_ns) == (process.pid(), process.identity().start_ns)
    }

    fn bytes(&self) -> usize {
        let texts = self.texts.iter().flatten();
        texts.map(|text| text.bytes.len()).sum()
    }
}

fn place_of(kind: Kinds) -> usize {
    usize::from(kind == Kinds::EXE)
}

/// What is the same while a process rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Every run ends in a switch that is counted before it is on no CPU any more, and the walk looks at that first.
    switches: u64,
    /// A thread that executes a program takes the leader's place, with switches of its own; the run time is of both.
    run_ns: u64,
}

impl Rest {
    /// `None`: the process runs, or somebody else uses its memory. It may be changing.
    fn of(process: Process<'_>) -> Option<Self> {
        let (identity, cpu) = (process.identity(), process.cpu()?);
        let is_alone = identity.num_threads == 1 && process.memory()?.mm_users == 1;
        let rests = identity.on_cpu == 0 && identity.tracer_pid == 0;
        (is_alone && rests).then(|| Self {
            switches: cpu.nvcsw.wrapping_add(cpu.nivcsw),
            run_ns: cpu.sum_exec_ns,
        })
    }
}

/// Who is left to the readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Left {
    User(u32),
    Process(u32),
}

impl Left {
    /// `uid`: its real user, if its record tells.
    fn of(pid: u32, uid: Option<u32>) -> Self {
        match uid.or_else(|| real_user(pid)) {
            None | Some(0) => Self::Process(pid),
            Some(uid) => Self::User(uid),
        }
    }
}

/// The real user of a process.
fn real_user(pid: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let mut lines = status.split(|&byte| byte == b'\n');
    let uids = lines.find_map(|line| line.strip_prefix(b"Uid:\t"))?;
    let real = uids.split(u8::is_ascii_whitespace).next()?;
    std::str::from_utf8(real).ok()?.parse().ok()
}

/// The texts of all processes.
#[derive(Debug)]
pub(crate) struct Texts {
    directories: Arc<Directories>,
    boot_offset_ns: i64,
    /// How long a request waits. What has not been read by then the reader reads itself.
    timeout: Duration,
    /// Of every process of the snapshot that was looked at last, in its order, which is that of the pids: what follows the
    /// order needs no search.
    kept: Vec<Kept>,
    /// Of the snapshot before, while the next is looked at.
    before: Vec<Kept>,
    bytes: usize,
    left: HashMap<Left, Instant>,
    stuck: Vec<Reading>,
    pub(crate) reads: u64,
}

impl Texts {
    pub(crate) fn open(host: &fastproc::Host, timeout: Duration) -> Result<Self, fastproc::Error> {
        Ok(Self {
            directories: Arc::new(Directories::open(host)?),
            boot_offset_ns: host.boot_offset_ns,
            timeout,
            kept: Vec::new(),
            before: Vec::new(),
            bytes: 0,
            left: HashMap::new(),
            stuck: Vec::new(),
            reads: 0,
        })
    }

    /// The fields of a record that tell whether a text still holds; and whose it is, while somebody is left to the readers.
    pub(crate) fn needs(&self) -> Fields {
        let mut needs = Fields::CPU | Fields::MEMORY;
        needs.set(Fields::USERS, !self.left.is_empty());
        needs
    }

    /// Reads again what may have changed, or is older than `max_age` at the beginning of the walk. What could not be read
    /// is not kept.
    pub(crate) fn refresh(&mut self, snapshot: Snapshot<'_>, kinds: Kinds, max_age: Duration) {
        let now = Instant::now();
        self.left.retain(|_, until| *until > now);
        self.stuck.retain(|reading| !reading.is_over());
        let began_ns = snapshot.stats().kernel_boottime_ns();
        let oldest_ns =
            began_ns.saturating_sub(u64::try_from(max_age.as_nanos()).unwrap_or(u64::MAX));
        self.follow(snapshot);
        let mut items = Vec::new();
        for (kept, process) in self.kept.iter_mut().zip(snapshot.iter()) {
            let identity = process.identity();
            if identity.is_kernel_thread() || identity.has_mm == 0 {
                continue;
            }
            let rest = Rest::of(process);
            let mut missing = Kinds::empty();
            for kind in kinds.iter() {
                let text = &mut kept.texts[place_of(kind)];
                let holds = |text: &Text| {
                    text.read_ns >= began_ns
                        || (text.read_ns >= oldest_ns && rest.is_some() && rest == text.rest)
                };
                if !text.as_ref().is_some_and(holds) {
                    self.bytes -= text.take().map_or(0, |text| text.bytes.len());
                    missing |= kind;
                }
            }
            let uid = process.users().map(|of| of.uid);
            let is_left =
                || !self.left.is_empty() && self.left.contains_key(&Left::of(process.pid(), uid));
            if !missing.is_empty() && !is_left() {
                items.push(Item {
                    pid: process.pid(),
                    start_ns: identity.start_ns,
                    rest,
                    kinds: missing,
                });
            }
        }
        if !items.is_empty() && self.stuck.len() < MOST_STUCK {
            self.read(items);
        }
    }

    /// Brings what is kept into the order of this snapshot, and lets go of what is kept of others.
    fn follow(&mut self, snapshot: Snapshot<'_>) {
        std::mem::swap(&mut self.kept, &mut self.before);
        let mut before = self.before.drain(..).peekable();
        for process in snapshot.iter() {
            while let Some(ended) = before.next_if(|kept| kept.pid < process.pid()) {
                self.bytes -= ended.bytes();
            }
            let kept = before.next_if(|kept| kept.is_of(process));
            self.kept.push(kept.unwrap_or_else(|| Kept {
                pid: process.pid(),
                start_ns: process.identity().start_ns,
                ..Kept::default()
            }));
        }
        self.bytes -= before.map(|ended| ended.bytes()).sum::<usize>();
    }

    fn read(&mut self, items: Vec<Item>) {
        let directories = Arc::clone(&self.directories);
        let boot_offset_ns = self.boot_offset_ns;
        let read = move |item: &Item| reading::read(item, &directories, boot_offset_ns);
        let Ok(reading) = Reading::start(items, read) else {
            return;
        };
        let outcome = reading.wait(self.timeout, self.timeout / 2);
        for (item, kind, read_ns, bytes) in outcome.texts {
            self.reads += 1;
            let Ok(at) = self.kept.binary_search_by_key(&item.pid, |kept| kept.pid) else {
                continue;
            };
            if bytes.len() <= LONGEST && self.bytes + bytes.len() <= MOST_BYTES {
                self.bytes += bytes.len();
                self.kept[at].texts[place_of(kind)] = Some(Text {
                    bytes: bytes.into(),
                    read_ns,
                    rest: item.rest,
                });
            }
        }
        if let Some(item) = outcome.stuck_at {
            let left = Left::of(item.pid, None);
            self.left.insert(left, Instant::now() + LEFT_FOR);
        }
        if !reading.is_over() {
            self.stuck.push(reading);
        }
    }

    /// Bytes that [`write`](Self::write) appends.
    pub(crate) fn len(&self, place: usize, process: Process<'_>, kinds: Kinds) -> usize {
        let texts = kinds
            .iter()
            .filter_map(|kind| self.text(place, process, kind));
        texts.map(|text| text.bytes.len()).sum()
    }

    /// `place`: where the process stands in the snapshot that was looked at last.
    fn text(&self, place: usize, process: Process<'_>, kind: Kinds) -> Option<&Text> {
        let kept = self.kept.get(place).filter(|kept| kept.is_of(process))?;
        // A zombie has lost what it had.
        let kept = (process.identity().has_mm != 0).then_some(kept)?;
        kept.texts[place_of(kind)].as_ref()
    }

    /// Writes the texts of these kinds behind those that are there, and says where they stand.
    pub(crate) fn write(
        &self,
        place: usize,
        process: Process<'_>,
        kinds: Kinds,
        to: &mut Writer<'_>,
    ) -> TextEntry {
        let mut entry = TextEntry {
            read_ns: u64::MAX,
            cmdline: TextPlace::NONE,
            exe: TextPlace::NONE,
        };
        for kind in kinds.iter() {
            let Some(text) = self.text(place, process, kind) else {
                continue;
            };
            let place = if kind == Kinds::EXE {
                &mut entry.exe
            } else {
                &mut entry.cmdline
            };
            *place = to.append(&text.bytes);
            entry.read_ns = entry.read_ns.min(text.read_ns);
        }
        entry
    }

    /// Processes of which something is kept, bytes of it, and who is left to the readers.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        let of_whom = self
            .kept
            .iter()
            .filter(|kept| kept.texts.iter().any(Option::is_some));
        (of_whom.count(), self.bytes, self.left.len())
    }
}

/// Texts, one after the other, in a part of a buffer.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    to: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(to: &'a mut [u8]) -> Self {
        Self { to, len: 0 }
    }

    /// A text that finds no room is not there.
    fn append(&mut self, text: &[u8]) -> TextPlace {
        let end = self.len + text.len();
        let (Some(to), Ok(at), Ok(len)) = (
            self.to.get_mut(self.len..end),
            u32::try_from(self.len),
            u32::try_from(text.len()),
        ) else {
            return TextPlace::NONE;
        };
        to.copy_from_slice(text);
        self.len = end;
        TextPlace { at, len }
    }
}

#[cfg(test)]
mod tests {
    use fastproc::{Host, SnapshotStats, SourceKind, Table, record::Record};

    use super::*;

    fn follow(texts: &mut Texts, processes: &[(u32, u64)]) {
        let records: Vec<Record> = processes
            .iter()
            .map(|&(pid, start_ns)| {
                let mut record = Record::default();
                (record.identity.tgid, record.identity.start_ns) = (pid, start_ns);
                record
            })
            .collect();
        let table = Table {
            records: &records,
            threads: &[],
            pool: &[],
        };
        let stats = SnapshotStats::recorded(SourceKind::Procfs, 0, Duration::ZERO);
        texts.follow(Snapshot::recorded(table, stats));
        let kept = texts.kept.iter().map(|kept| (kept.pid, kept.start_ns));
        assert!(
            kept.eq(processes.iter().copied()),
            "in the snapshot's order"
        );
    }

    #[test]
    fn texts_stay_with_their_processes_and_go_with_them() {
        let mut texts = Texts::open(&Host::read().expect("/proc"), Duration::MAX).expect("/proc");
        follow(&mut texts, &[(3, 30), (5, 50), (7, 70), (9, 90)]);
        for kept in &mut texts.kept {
            let bytes = vec![b'x'; kept.pid as usize].into_boxed_slice();
            texts.bytes += bytes.len();
            kept.texts[0] = Some(Text {
                bytes,
                read_ns: 0,
                rest: None,
            });
        }
        let lengths =
            |texts: &Texts| -> Vec<usize> { texts.kept.iter().map(Kept::bytes).collect() };
        // One has ended, two have begun, and one pid is another process's now.
        follow(&mut texts, &[(2, 20), (3, 30), (7, 71), (8, 80), (9, 90)]);
        assert_eq!(lengths(&texts), [0, 3, 0, 0, 9]);
        assert_eq!((texts.bytes, texts.sizes().0), (12, 2));
        // The last ones have ended.
        follow(&mut texts, &[(3, 30)]);
        assert_eq!((lengths(&texts), texts.bytes), (vec![3], 3));
        follow(&mut texts, &[]);
        assert_eq!(texts.bytes, 0);
    }
}
