//! Reads texts in a separate thread, because reading memory of a process may take any time. Nothing waits for that thread.

use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use fastproc::{
    Directories, Rights, Texts as Kinds,
    held_up::ReadingThread,
    owner::{Makers, Namespaces, Owner},
};
use rustix::time::{ClockId, clock_gettime};

use crate::{budget::cpu_time, idle::Idle};

/// The longest text that is kept or sent. Of longer ones only one byte more is read, which shows that they are longer.
pub(crate) const LONGEST: usize = 4096;
/// Bytes of all texts of one reading. Further ones are left to the reader.
const MOST_BYTES: usize = 2 << 20;
/// If a reading takes too long, an owner that took at least this part of the allowed time is blamed.
const BLAMED_PART: u32 = 8;

/// A process whose texts are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) pid: u32,
    pub(crate) start_ns: u64,
    /// Its real user, if its record has it.
    pub(crate) uid: Option<u32>,
    /// `None`: it may be changing.
    pub(crate) idle: Option<Idle>,
    pub(crate) kinds: Kinds,
    /// Its index among the records that are sent.
    pub(crate) place: usize,
}

/// A text that was read.
#[expect(clippy::struct_field_names, reason = "the time is when it was read")]
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) item: Item,
    pub(crate) kind: Kinds,
    /// The time just before it was read.
    pub(crate) read_ns: u64,
    /// `None`: it is longer than [`LONGEST`].
    pub(crate) bytes: Option<Box<[u8]>>,
    /// The rights of the process before and after, if they were wanted.
    pub(crate) rights: Option<Rights>,
}

/// The result of a reading.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) texts: Vec<Read>,
    /// The owner whose process took too long, and how long.
    pub(crate) blamed: Option<(Owner, Duration)>,
    /// CPU time of the reading.
    pub(crate) cpu: Duration,
}

/// How long a request waits for texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For all of them.
    pub(crate) all: Duration,
    /// For those of one process.
    pub(crate) one: Duration,
}

impl Limits {
    /// An owner that took less than this is not blamed.
    pub(crate) fn blamed_from(self) -> Duration {
        self.one.min(self.all / BLAMED_PART)
    }
}

#[derive(Debug, Default)]
struct Progress {
    /// What remains to be read.
    items: VecDeque<Item>,
    texts: Vec<Read>,
    bytes: usize,
    /// The owner whose process has taken longest so far, and how long.
    slowest: Option<(Owner, Duration)>,
    cpu: Duration,
}

impl Progress {
    /// Adds the texts of a process, as far as there is room, and how long it took.
    fn add(&mut self, texts: Vec<Read>, took: Option<(Owner, Duration)>) {
        for text in texts {
            self.bytes += text.bytes.as_ref().map_or(0, |bytes| bytes.len());
            if self.bytes <= MOST_BYTES {
                self.texts.push(text);
            }
        }
        self.slowest = self.slowest.into_iter().chain(took).max_by_key(|of| of.1);
    }
}

/// Processes that are being read, one after the other.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) thread: ReadingThread,
    progress: Arc<Mutex<Progress>>,
    asked: Instant,
}

impl Reading {
    /// Begins to read what a request has waited for since `asked`. `read` names the owner of a process before it reads what
    /// may take long. `done` is written to when the reading is over.
    pub(crate) fn start(
        items: Vec<Item>,
        asked: Instant,
        done: Arc<OwnedFd>,
        mut read: impl FnMut(&Item, &mut dyn FnMut(Owner)) -> Vec<Read> + Send + 'static,
    ) -> io::Result<Self> {
        let progress = Arc::new(Mutex::new(Progress {
            items: items.into(),
            ..Progress::default()
        }));
        let own = Arc::clone(&progress);
        let read_all = move |thread: &ReadingThread| {
            let next = || lock(&own).items.pop_front();
            while let Some(item) = next() {
                thread.begin(Instant::now());
                // The lock is not held while a process is read.
                let texts = read(&item, &mut |owner| thread.set_owner(owner));
                let took = thread.end(Instant::now());
                let mut progress = lock(&own);
                progress.add(texts, took);
                progress.cpu = cpu_time();
            }
        };
        // It fails only if the counter overflows, which takes more readings than there can be.
        let at_end = move || _ = rustix::io::write(&*done, &1_u64.to_ne_bytes());
        Ok(Self {
            thread: ReadingThread::start("texts", read_all, at_end)?,
            progress,
            asked,
        })
    }

    /// The result by `now`, if the reading is over or has taken too long. In that case no more is read, and the owner
    /// that took longest is blamed if that was long.
    pub(crate) fn outcome(&self, limits: Limits, now: Instant) -> Option<Outcome> {
        let is_over = self.thread.is_over();
        let current = self.thread.current(now);
        let stuck = current.filter(|(_, took)| *took >= limits.one);
        let is_late = now.saturating_duration_since(self.asked) >= limits.all;
        if !is_over && stuck.is_none() && !is_late {
            return None;
        }
        let mut progress = lock(&self.progress);
        progress.items = VecDeque::new();
        let slow = || {
            let all = progress.slowest.into_iter().chain(current);
            let slowest = all.max_by_key(|(_, took)| *took);
            slowest.filter(|(_, took)| *took >= limits.blamed_from())
        };
        let blamed = if is_over { None } else { stuck.or_else(slow) };
        Some(Outcome {
            texts: std::mem::take(&mut progress.texts),
            blamed,
            cpu: progress.cpu,
        })
    }

    /// When [`outcome`](Self::outcome) has a result, if the reading is not over before.
    pub(crate) fn deadline(&self, limits: Limits, now: Instant) -> Option<Instant> {
        let current = self.thread.current(now);
        let of_current =
            current.and_then(|(_, took)| now.checked_add(limits.one)?.checked_sub(took));
        let late = self.asked.checked_add(limits.all);
        late.into_iter().chain(of_current).min()
    }
}

fn lock(progress: &Mutex<Progress>) -> std::sync::MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is needed to read texts.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) directories: Arc<Directories>,
    pub(crate) boot_offset_ns: i64,
    pub(crate) home: Namespaces,
}

/// Reports the owner of the process, and reads the texts that are wanted, and its rights with the path of its program
/// if those are.
pub(crate) fn read(
    item: &Item,
    source: &Source,
    rights: bool,
    tell_owner: &mut dyn FnMut(Owner),
) -> Vec<Read> {
    let mut texts = Vec::new();
    // If its directory cannot be opened, the process has exited, and it has no texts.
    let Ok(directory) = source.directories.get(item.pid, item.start_ns) else {
        return texts;
    };
    let mut makers = Makers::default();
    tell_owner(
        source
            .home
            .owner(&directory, item.pid, item.uid, &mut makers),
    );
    for kind in item.kinds.iter() {
        let now = clock_gettime(ClockId::Boottime);
        let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let read = if kind == Kinds::EXE {
            exe(&directory, rights)
        } else {
            let mut bytes = [0; LONGEST + 1];
            let len = directory.beginning_of_cmdline(&mut bytes).ok();
            len.map(|len| (short(&bytes[..len.min(bytes.len())]), None))
        };
        if let Some((bytes, rights)) = read {
            texts.push(Read {
                item: *item,
                kind,
                read_ns: now_ns.saturating_add_signed(-source.boot_offset_ns),
                bytes,
                rights,
            });
        }
    }
    texts
}

fn short(text: &[u8]) -> Option<Box<[u8]>> {
    (text.len() <= LONGEST).then(|| text.into())
}

/// A text, unless it is too long, and the rights of its process while it was read.
type Text = (Option<Box<[u8]>>, Option<Rights>);

/// The path of the program, and who could see it while it was read.
fn exe(directory: &fastproc::Directory, with_rights: bool) -> Option<Text> {
    let before = with_rights.then(|| directory.rights().ok());
    let path = directory.exe().ok()?;
    let rights = match before {
        None => None,
        // No text if the rights have changed meanwhile.
        Some(before) => Some(before.filter(|&before| directory.rights().ok() == Some(before))?),
    };
    Some((short(&path), rights))
}

#[cfg(test)]
pub(crate) mod tests;
