//! Command lines and paths of programs, kept from walk to walk.
//!
//! A kept text is sent if it was read after the walk began. It is also sent if it is not older than the reader accepts,
//! and the process has been idle since: it has not run, nothing traces it, and no other process shares its memory. The
//! record shows that, if the walk made it ([`Idle`]). Two changes leave no trace in it: another process writes to that
//! memory by force, or a program is renamed or removed.

use std::{
    io,
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use fastproc::{
    Directories, Fields, Process, Rights, Snapshot, TextEntry, TextPlace, Texts as Kinds,
    access::Access,
    difference::PerProcess,
    held_up::LeftOut,
    owner::{Makers, Namespaces, Owner},
};

use crate::{
    idle::Idle,
    reading::{self, Item, Read, Reading, Source},
    view::View,
};

/// Bytes of all texts that are kept.
const MOST_BYTES: usize = 16 << 20;

/// A text, and what it depends on.
#[derive(Debug)]
struct Text {
    /// `None`: it is too long to be kept. It is not read again while the process is idle.
    bytes: Option<Box<[u8]>>,
    read_ns: u64,
    idle: Option<Idle>,
    /// The rights of the process when the text was read, if its path was read for a user.
    rights: Option<Rights>,
}

impl Text {
    fn len(&self) -> usize {
        self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }
}

/// Whether a text is shown. Every user may read a command line; only a user who could trace the process when the path
/// of its program was read may see that.
fn shows(view: View, kind: Kinds, rights: Option<&Rights>) -> bool {
    match view {
        View::Of(reader) if kind == Kinds::EXE => {
            rights.is_some_and(|rights| rights.access_of(&reader) == Access::Granted)
        }
        _ => true,
    }
}

/// What is kept of a process; nothing for one without memory, such as a kernel thread.
#[derive(Debug, Default)]
struct Kept {
    pid: u32,
    start_ns: u64,
    /// By [`index_of`].
    texts: [Option<Text>; 2],
}

/// What the record of a process says about its texts.
#[derive(Clone, Copy, Debug)]
struct Brief {
    start_ns: u64,
    /// Kernel threads and zombies have none.
    has_texts: bool,
    idle: Option<Idle>,
}

impl Brief {
    fn of(process: Process<'_>) -> Self {
        let identity = process.identity();
        Self {
            start_ns: identity.start_ns,
            has_texts: identity.has_mm != 0 && !identity.is_kernel_thread(),
            idle: Idle::from_process(process),
        }
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        let texts = self.texts.iter().flatten();
        texts.map(Text::len).sum()
    }
}

fn index_of(kind: Kinds) -> usize {
    usize::from(kind == Kinds::EXE)
}

/// The texts of all processes.
#[derive(Debug)]
pub(crate) struct Texts {
    source: Source,
    /// One for every process of the latest snapshot, in its order, which is that of the pids, so that following the
    /// order needs no search.
    kept: Vec<Kept>,
    /// Likewise.
    briefs: PerProcess<Brief>,
    /// Those of the snapshot before, while the next one is processed.
    before: Vec<Kept>,
    bytes: usize,
    /// The owners whose texts are left to the readers.
    pub(crate) left_out: LeftOut,
    pub(crate) reads: u64,
}

impl Texts {
    pub(crate) fn open(host: &fastproc::Host) -> Result<Self, fastproc::Error> {
        Ok(Self {
            source: Source {
                directories: Arc::new(Directories::open(host)?),
                boot_offset_ns: host.boot_offset_ns,
                home: Namespaces::own(),
            },
            kept: Vec::new(),
            briefs: PerProcess::new(),
            before: Vec::new(),
            bytes: 0,
            left_out: LeftOut::default(),
            reads: 0,
        })
    }

    /// The fields that show whether a text is still valid and who owns the process; and its user namespace while any
    /// owner is left to the readers.
    pub(crate) fn needs(&self) -> Fields {
        let needs = Fields::CPU | Fields::MEMORY | Fields::USERS;
        if self.left_out.is_empty() {
            needs
        } else {
            needs | Fields::CREDENTIALS
        }
    }

    /// The processes whose texts must be read again: those that may have changed, or are older than `max_age` at the
    /// beginning of the walk. `wanted` gives the kinds for the process at this place of the snapshot; `None`: it is not
    /// sent.
    pub(crate) fn find_missing(
        &mut self,
        snapshot: &Snapshot<'_>,
        max_age: Duration,
        view: View,
        wanted: impl Fn(usize) -> Option<Kinds>,
    ) -> Vec<Item> {
        self.left_out.settle(Instant::now());
        let began_ns = snapshot.stats().kernel_boottime_ns();
        let oldest_ns =
            began_ns.saturating_sub(u64::try_from(max_age.as_nanos()).unwrap_or(u64::MAX));
        self.follow(snapshot);
        let mut items = Vec::new();
        let mut makers = Makers::default();
        let mut place = 0;
        let known = self.kept.iter_mut().zip(self.briefs.values());
        for (at, ((kept, brief), process)) in known.zip(snapshot.iter()).enumerate() {
            let Some(kinds) = wanted(at) else { continue };
            place += 1;
            if !brief.has_texts {
                continue;
            }
            let idle = brief.idle;
            let mut missing = Kinds::empty();
            for kind in kinds.iter() {
                let text = &mut kept.texts[index_of(kind)];
                let holds = |text: &Text| {
                    text.read_ns >= began_ns
                        || (text.read_ns >= oldest_ns && idle.is_some() && idle == text.idle)
                };
                let is_known =
                    |text: &Text| view == View::All || kind != Kinds::EXE || text.rights.is_some();
                if !text
                    .as_ref()
                    .is_some_and(|text| holds(text) && is_known(text))
                {
                    self.bytes -= text.take().map_or(0, |text| text.len());
                    missing |= kind;
                }
            }
            if !missing.is_empty()
                && !is_left_out(&self.left_out, &self.source, process, &mut makers)
            {
                items.push(Item {
                    pid: process.pid(),
                    start_ns: brief.start_ns,
                    uid: process.users().map(|users| users.uid),
                    idle,
                    kinds: missing,
                    place: place - 1,
                });
            }
        }
        items
    }

    /// Brings what is kept into the order of this snapshot, and drops what belongs to other processes.
    fn follow(&mut self, snapshot: &Snapshot<'_>) {
        let briefs = self.briefs.update(snapshot, Brief::of);
        let processes = snapshot.iter().map(Process::pid);
        let processes = processes.zip(briefs.iter().map(|brief| brief.start_ns));
        let kept = self.kept.iter().map(|kept| (kept.pid, kept.start_ns));
        if kept.eq(processes.clone()) {
            return;
        }
        std::mem::swap(&mut self.kept, &mut self.before);
        let mut before = self.before.drain(..).peekable();
        for (pid, start_ns) in processes {
            while let Some(ended) = before.next_if(|kept| kept.pid < pid) {
                self.bytes -= ended.bytes();
            }
            let kept = before.next_if(|kept| (kept.pid, kept.start_ns) == (pid, start_ns));
            self.kept.push(kept.unwrap_or_else(|| Kept {
                pid,
                start_ns,
                ..Kept::default()
            }));
        }
        self.bytes -= before.map(|ended| ended.bytes()).sum::<usize>();
    }

    /// Begins to read for this view what was requested at `asked`. Writes to `done` when it has finished.
    pub(crate) fn read(
        &self,
        items: Vec<Item>,
        view: View,
        asked: Instant,
        done: Arc<OwnedFd>,
    ) -> io::Result<Reading> {
        let source = self.source.clone();
        let rights = view != View::All;
        Reading::start(items, asked, done, move |item, tell_owner| {
            reading::read(item, &source, rights, tell_owner)
        })
    }

    /// Keeps what was read.
    pub(crate) fn keep(&mut self, texts: Vec<Read>) {
        for read in texts {
            self.reads += 1;
            let Read { item, kind, .. } = read;
            let Ok(at) = self.kept.binary_search_by_key(&item.pid, |kept| kept.pid) else {
                continue;
            };
            let kept = &mut self.kept[at];
            let text = Text {
                bytes: read.bytes,
                read_ns: read.read_ns,
                idle: item.idle,
                rights: read.rights,
            };
            let slot = &mut kept.texts[index_of(kind)];
            let replaced = slot.as_ref().map_or(0, Text::len);
            // Another reading may have found a younger text meanwhile.
            let is_younger = slot
                .as_ref()
                .is_none_or(|slot| slot.read_ns <= text.read_ns);
            if kept.start_ns == item.start_ns
                && is_younger
                && self.bytes - replaced + text.len() <= MOST_BYTES
            {
                self.bytes = self.bytes - replaced + text.len();
                *slot = Some(text);
            }
        }
    }

    /// Bytes that [`write`](Self::write) appends.
    pub(crate) fn len(
        &self,
        place: usize,
        process: Process<'_>,
        kinds: Kinds,
        view: View,
    ) -> usize {
        let texts = kinds
            .iter()
            .filter_map(|kind| self.text(place, process, kind, view));
        texts.map(|(text, _)| text.len()).sum()
    }

    /// `place`: the index of the process in the latest snapshot.
    fn text(
        &self,
        place: usize,
        process: Process<'_>,
        kind: Kinds,
        view: View,
    ) -> Option<(&[u8], u64)> {
        let (kept, brief) = (self.kept.get(place)?, self.briefs.values().get(place)?);
        // A zombie has lost its texts.
        let kept = (kept.pid == process.pid() && brief.has_texts).then_some(kept)?;
        let text = kept.texts[index_of(kind)].as_ref()?;
        let text = Some(text).filter(|text| shows(view, kind, text.rights.as_ref()))?;
        Some((text.bytes.as_deref()?, text.read_ns))
    }

    /// Appends the texts of these kinds, and returns their places.
    pub(crate) fn write(
        &self,
        place: usize,
        process: Process<'_>,
        kinds: Kinds,
        view: View,
        to: &mut Writer<'_>,
    ) -> TextEntry {
        let mut entry = TextEntry {
            read_ns: u64::MAX,
            cmdline: TextPlace::NONE,
            exe: TextPlace::NONE,
        };
        for kind in kinds.iter() {
            if let Some((text, read_ns)) = self.text(place, process, kind, view) {
                to.write(kind, text, read_ns, &mut entry);
            }
        }
        entry
    }

    /// The number of processes with texts, the bytes of these, and the number of owners that are left to the readers.
    pub(crate) fn sizes(&self) -> (usize, usize, usize) {
        let of_whom = self
            .kept
            .iter()
            .filter(|kept| kept.texts.iter().any(Option::is_some));
        (of_whom.count(), self.bytes, self.left_out.len())
    }
}

/// Whether a process's texts are left to the readers. `makers` belongs to one snapshot.
fn is_left_out(
    left_out: &LeftOut,
    source: &Source,
    process: Process<'_>,
    makers: &mut Makers,
) -> bool {
    let too_many = left_out.has_too_many();
    if left_out.is_empty() && !too_many {
        return false;
    }
    let owner = source
        .home
        .owner_by_record(process, &source.directories, makers);
    left_out.contains(&owner) || (too_many && !matches!(owner, Owner::Root { .. }))
}

/// Texts, one after the other, in a part of a buffer.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    to: &'a mut [u8],
    len: usize,
}

impl<'a> Writer<'a> {
    /// Appends after the first `len` bytes.
    pub(crate) fn at(to: &'a mut [u8], len: usize) -> Self {
        Self { to, len }
    }

    /// Bytes that are written.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends a text that was read just now, if this view shows it.
    pub(crate) fn add(&mut self, read: &Read, view: View, entry: &mut TextEntry) {
        if let Some(bytes) = &read.bytes
            && shows(view, read.kind, read.rights.as_ref())
        {
            self.write(read.kind, bytes, read.read_ns, entry);
        }
    }

    fn write(&mut self, kind: Kinds, text: &[u8], read_ns: u64, entry: &mut TextEntry) {
        let place = if kind == Kinds::EXE {
            &mut entry.exe
        } else {
            &mut entry.cmdline
        };
        *place = self.append(text);
        entry.read_ns = entry.read_ns.min(read_ns);
    }

    /// Appends a text, or nothing if there is no room.
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
    use std::{
        io::Read as _,
        process::{Command, Stdio},
    };

    use fastproc::{Host, SnapshotStats, SourceKind, Table, held_up::MOST_HELD_UP, record::Record};

    use super::*;
    use crate::reading::tests::held_at;

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
        texts.follow(&Snapshot::recorded(table, stats));
        let kept = texts.kept.iter().map(|kept| (kept.pid, kept.start_ns));
        assert!(
            kept.eq(processes.iter().copied()),
            "in the snapshot's order"
        );
    }

    #[test]
    fn texts_stay_with_their_processes_and_go_with_them() {
        let mut texts = Texts::open(&Host::read().expect("/proc")).expect("/proc");
        follow(&mut texts, &[(3, 30), (5, 50), (7, 70), (9, 90)]);
        for kept in &mut texts.kept {
            let bytes = vec![b'x'; kept.pid as usize].into_boxed_slice();
            texts.bytes += bytes.len();
            kept.texts[0] = Some(Text {
                bytes: Some(bytes),
                read_ns: 0,
                idle: None,
                rights: None,
            });
        }
        let lengths =
            |texts: &Texts| -> Vec<usize> { texts.kept.iter().map(Kept::bytes).collect() };
        // One process has exited, two have begun, and one pid belongs to another process now.
        follow(&mut texts, &[(2, 20), (3, 30), (7, 71), (8, 80), (9, 90)]);
        assert_eq!(lengths(&texts), [0, 3, 0, 0, 9]);
        assert_eq!((texts.bytes, texts.sizes().0), (12, 2));
        // The last ones have exited.
        follow(&mut texts, &[(3, 30)]);
        assert_eq!((lengths(&texts), texts.bytes), (vec![3], 3));
        follow(&mut texts, &[]);
        assert_eq!(texts.bytes, 0);
    }

    /// A user who creates user namespaces could have any number of owners, each of which blocks a reading before it is
    /// left to the readers.
    #[test]
    fn while_too_many_readings_are_held_up_only_roots_processes_are_read() {
        use fastproc_testbed::{gate, needs};
        needs!(gate::root(), gate::programs(&["setpriv", "unshare"]));
        let mut child = Command::new("setpriv")
            .args(["--reuid=4321", "--regid=4321", "--clear-groups"])
            .args(["unshare", "--user", "--map-root-user"])
            .args(["sh", "-c", "echo .; read x"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let told = child.stdout.as_mut().expect("a pipe");
        if told.read_exact(&mut [0]).is_err() {
            child.wait().expect("the child is ours");
            gate::skipped("users may not make user namespaces here");
            return;
        }
        let mut collector = fastproc::Collector::builder()
            .source(Some(SourceKind::Procfs))
            .fields(Fields::USERS | Fields::CREDENTIALS)
            .open()
            .expect("/proc can be read");
        let mut texts = Texts::open(collector.host()).expect("/proc can be read");
        let snapshot = collector.snapshot().expect("/proc can be read");
        let is_left = |texts: &Texts, pid: u32| {
            let process = snapshot.get(pid).expect("the process is shown");
            is_left_out(
                &texts.left_out,
                &texts.source,
                process,
                &mut Makers::default(),
            )
        };
        let own = std::process::id();
        let now = Instant::now();
        let mut releases = Vec::new();
        for _ in 0..MOST_HELD_UP {
            assert!(!is_left(&texts, child.id()));
            let (reading, release) = held_at(3);
            texts
                .left_out
                .watch(reading.thread, Duration::from_secs(3600));
            releases.push(release);
        }
        texts.left_out.settle(now);
        assert_eq!(texts.left_out.len(), 0, "nobody is blamed");
        assert!(is_left(&texts, child.id()));
        assert!(!is_left(&texts, own), "root's are read");
        releases.pop();
        fastproc_testbed::wait_until("the end of one of them", || {
            texts.left_out.settle(now);
            !is_left(&texts, child.id())
        });
        child.kill().expect("the child is killed");
        child.wait().expect("the child ends");
    }
}
