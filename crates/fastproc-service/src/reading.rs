//! Reading texts in a thread of its own, because memory of a process may take any time: where it has to be fetched from a
//! file system in user space, whoever answers there decides. Nobody waits for that thread.

use std::{
    collections::VecDeque,
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use fastproc::{Directories, Rights, Texts as Kinds};
use rustix::time::{ClockId, clock_gettime};

use crate::{budget::cpu_time, texts::Rest};

/// Longest text that is kept or handed out. Of longer ones no more than a byte is read that tells so.
pub(crate) const LONGEST: usize = 4096;
/// Bytes of all texts that are read at once. Further ones are left to the reader.
const MOST_BYTES: usize = 2 << 20;

/// A process of which something is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) pid: u32,
    pub(crate) start_ns: u64,
    /// `None`: it may be changing.
    pub(crate) rest: Option<Rest>,
    pub(crate) kinds: Kinds,
    /// Where it stands among the records that are handed out.
    pub(crate) place: usize,
}

/// A text that was read.
#[expect(clippy::struct_field_names, reason = "the time is when it was read")]
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) item: Item,
    pub(crate) kind: Kinds,
    /// When it was about to be.
    pub(crate) read_ns: u64,
    /// `None`: it is longer than [`LONGEST`].
    pub(crate) bytes: Option<Box<[u8]>>,
    /// Those of the process before and after, if they were wanted.
    pub(crate) rights: Option<Rights>,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) texts: Vec<Read>,
    /// The process that takes too long.
    pub(crate) stuck_at: Option<Item>,
    /// CPU time that it took.
    pub(crate) cpu: Duration,
}

#[derive(Debug, Default)]
struct Progress {
    /// What is left to be read.
    items: VecDeque<Item>,
    texts: Vec<Read>,
    bytes: usize,
    /// What is being read, and since when.
    current: Option<(Item, Instant)>,
    cpu: Duration,
    over: bool,
}

/// Processes that are being read, one after the other.
#[derive(Debug)]
pub(crate) struct Reading {
    progress: Arc<Mutex<Progress>>,
    began: Instant,
}

impl Reading {
    /// Begins. The thread has the rights that this one has now. `done` is written to when it is over.
    pub(crate) fn start(
        items: Vec<Item>,
        done: Arc<OwnedFd>,
        mut read: impl FnMut(&Item) -> Vec<Read> + Send + 'static,
    ) -> io::Result<Self> {
        let progress = Arc::new(Mutex::new(Progress {
            items: items.into(),
            ..Progress::default()
        }));
        let reading = Self {
            progress: Arc::clone(&progress),
            began: Instant::now(),
        };
        let next = move |texts: Vec<Read>, progress: &mut Progress| {
            for text in texts {
                progress.bytes += text.bytes.as_ref().map_or(0, |bytes| bytes.len());
                if progress.bytes <= MOST_BYTES {
                    progress.texts.push(text);
                }
            }
            progress.cpu = cpu_time();
            let next = progress.items.pop_front();
            progress.current = next.map(|item| (item, Instant::now()));
            progress.over = next.is_none();
            next
        };
        let read_all = move || {
            let mut texts = Vec::new();
            loop {
                // Nothing is locked while it is read.
                let item = next(texts, &mut lock(&progress));
                let Some(item) = item else { break };
                texts = read(&item);
            }
            // Its counter overflows after more readings than there can be.
            let _ = rustix::io::write(&*done, &1_u64.to_ne_bytes());
        };
        thread::Builder::new()
            .name("texts".into())
            .stack_size(128 << 10)
            .spawn(read_all)?;
        Ok(reading)
    }

    /// What came of it, if it is over, or has taken as long as `limit`, or one process as long as `stuck`. Then no more is
    /// read.
    pub(crate) fn outcome(&self, limit: Duration, stuck: Duration) -> Option<Outcome> {
        let mut progress = lock(&self.progress);
        let current = progress.current;
        let stuck_at = current.filter(|(_, since)| since.elapsed() >= stuck);
        if !progress.over && stuck_at.is_none() && self.began.elapsed() < limit {
            return None;
        }
        progress.items = VecDeque::new();
        Some(Outcome {
            texts: std::mem::take(&mut progress.texts),
            stuck_at: stuck_at.map(|(item, _)| item),
            cpu: progress.cpu,
        })
    }

    /// When [`outcome`](Self::outcome) may have something to tell, if it is not over before.
    pub(crate) fn deadline(&self, limit: Duration, stuck: Duration) -> Instant {
        let current = lock(&self.progress).current;
        let late = self.began.checked_add(limit);
        let of_current = current.and_then(|(_, since)| since.checked_add(stuck));
        let far = || Instant::now() + Duration::from_secs(3600);
        late.into_iter().chain(of_current).min().unwrap_or_else(far)
    }

    /// Whether the thread has nothing to do any more.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.progress).over
    }
}

fn lock(progress: &Mutex<Progress>) -> std::sync::MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the texts of a process that are wanted, and its rights with the path of its program if those are.
pub(crate) fn read(
    item: &Item,
    directories: &Directories,
    boot_offset_ns: i64,
    rights: bool,
) -> Vec<Read> {
    let mut texts = Vec::new();
    // Whose directory cannot be opened has ended, and there is nothing to be told of it.
    let Ok(directory) = directories.get(item.pid, item.start_ns) else {
        return texts;
    };
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
                read_ns: now_ns.saturating_add_signed(-boot_offset_ns),
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

/// Where the program lies, and who could see that while it was read.
fn exe(directory: &fastproc::Directory, with_rights: bool) -> Option<Text> {
    let before = with_rights.then(|| directory.rights().ok());
    let path = directory.exe().ok()?;
    let rights = match before {
        None => None,
        // It becomes another meanwhile.
        Some(before) => Some(before.filter(|&before| directory.rights().ok() == Some(before))?),
    };
    Some((short(&path), rights))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use fastproc_testbed::{wait_for, wait_until};
    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    fn items(pids: std::ops::Range<u32>) -> Vec<Item> {
        let item = |pid| Item {
            pid,
            start_ns: 0,
            rest: None,
            kinds: Kinds::CMDLINE,
            place: 0,
        };
        pids.map(item).collect()
    }

    fn text(item: &Item, bytes: usize) -> Vec<Read> {
        vec![Read {
            item: *item,
            kind: Kinds::CMDLINE,
            read_ns: 0,
            bytes: Some(vec![b'x'; bytes].into()),
            rights: None,
        }]
    }

    fn done() -> Arc<OwnedFd> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Arc::new(eventfd(0, flags).expect("a descriptor"))
    }

    /// A reading that stands at process 3 until the other end of the channel is dropped.
    fn held_at_3() -> (Reading, mpsc::Sender<()>) {
        let (release, held) = mpsc::channel::<()>();
        let (tell, arrived) = mpsc::channel();
        let read = move |item: &Item| {
            if item.pid == 3 {
                tell.send(()).expect("the test listens");
                let _ = held.recv();
            }
            text(item, 1)
        };
        let reading = Reading::start(items(0..100), done(), read).expect("a thread");
        arrived.recv().expect("it arrives");
        (reading, release)
    }

    fn nothing_more_is_read(reading: &Reading, release: mpsc::Sender<()>) {
        assert!(!reading.is_over());
        drop(release);
        wait_until("the end of the thread", || reading.is_over());
        assert_eq!(lock(&reading.progress).texts.len(), 1, "that of process 3");
    }

    #[test]
    fn everything_is_read_and_the_end_is_told() {
        let done = done();
        let read = |item: &Item| text(item, 1);
        let reading = Reading::start(items(0..100), Arc::clone(&done), read).expect("a thread");
        wait_until("it is told", || {
            rustix::io::read(&*done, &mut [0; 8]).is_ok()
        });
        let outcome = reading.outcome(Duration::MAX, Duration::MAX);
        let outcome = outcome.expect("it is over");
        let pids: Vec<u32> = outcome.texts.iter().map(|text| text.item.pid).collect();
        assert_eq!(pids, (0..100).collect::<Vec<_>>());
        assert!(outcome.stuck_at.is_none() && reading.is_over());
    }

    #[test]
    fn who_takes_too_long_is_left_and_what_was_read_before_is_there() {
        let (reading, release) = held_at_3();
        let outcome = wait_for("an outcome", || reading.outcome(Duration::MAX, SHORT));
        assert_eq!(outcome.stuck_at.map(|item| item.pid), Some(3));
        assert_eq!(outcome.texts.len(), 3);
        nothing_more_is_read(&reading, release);
    }

    #[test]
    fn it_takes_no_longer_than_the_limit_says() {
        let (reading, release) = held_at_3();
        let outcome = wait_for("an outcome", || reading.outcome(SHORT, Duration::MAX));
        assert!(outcome.stuck_at.is_none());
        assert_eq!(outcome.texts.len(), 3);
        nothing_more_is_read(&reading, release);
    }

    #[test]
    fn however_much_there_is_no_more_is_held_than_the_bound() {
        let count = 3 * MOST_BYTES / LONGEST;
        let read = |item: &Item| text(item, LONGEST);
        let reading = Reading::start(items(0..count as u32), done(), read).expect("a thread");
        let outcome = wait_for("an outcome", || {
            reading.outcome(Duration::MAX, Duration::MAX)
        });
        assert_eq!(outcome.texts.len(), MOST_BYTES / LONGEST);
    }
}
