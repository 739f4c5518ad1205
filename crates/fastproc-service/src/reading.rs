//! Reading texts in a thread of its own, because memory of a process may take any time: where it has to be fetched from a
//! file system in user space, whoever answers there decides.

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fastproc::{Directories, Texts as Kinds};
use rustix::time::{ClockId, clock_gettime};

use crate::texts::Rest;

/// A process of which something is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) pid: u32,
    pub(crate) start_ns: u64,
    /// `None`: it may be changing.
    pub(crate) rest: Option<Rest>,
    pub(crate) kinds: Kinds,
}

/// A text that was read: of whom, which, when it was about to be read, and what.
pub(crate) type Read = (Item, Kinds, u64, Vec<u8>);

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) texts: Vec<Read>,
    /// The process that takes too long.
    pub(crate) stuck_at: Option<Item>,
}

#[derive(Debug, Default)]
struct Progress {
    texts: Vec<Read>,
    /// What is being read, and since when.
    current: Option<(Item, Instant)>,
    over: bool,
}

#[derive(Debug, Default)]
struct Shared {
    progress: Mutex<Progress>,
    over: Condvar,
    cancelled: AtomicBool,
}

/// Processes that are being read, one after the other.
#[derive(Debug)]
pub(crate) struct Reading(Arc<Shared>);

impl Reading {
    /// Begins. The thread has the rights that this one has now.
    pub(crate) fn start(
        items: Vec<Item>,
        read: impl Fn(&Item) -> Vec<Read> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let reading = Self(Arc::clone(&shared));
        let read_all = move || {
            for item in items {
                if shared.cancelled.load(Ordering::Relaxed) {
                    break;
                }
                shared.with(|progress| progress.current = Some((item, Instant::now())));
                let texts = read(&item);
                shared.with(|progress| progress.texts.extend(texts));
            }
            shared.with(|progress| {
                progress.current = None;
                progress.over = true;
            });
            shared.over.notify_one();
        };
        thread::Builder::new()
            .name("texts".into())
            .spawn(read_all)?;
        Ok(reading)
    }

    /// Waits until everything is read, but no longer than `limit`, and for no process longer than `stuck`.
    pub(crate) fn wait(&self, limit: Duration, stuck: Duration) -> Outcome {
        let started = Instant::now();
        let mut outcome = Outcome::default();
        let mut progress = self.0.lock();
        while !progress.over && started.elapsed() < limit {
            let current = progress.current;
            let stuck_at = current.filter(|(_, since)| since.elapsed() >= stuck);
            if let Some((item, _)) = stuck_at {
                outcome.stuck_at = Some(item);
                break;
            }
            let rest = limit.saturating_sub(started.elapsed());
            let of_current =
                current.map_or(stuck, |(_, since)| stuck.saturating_sub(since.elapsed()));
            let waited = self.0.over.wait_timeout(progress, rest.min(of_current));
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.0.cancelled.store(true, Ordering::Relaxed);
        outcome.texts = std::mem::take(&mut progress.texts);
        outcome
    }

    /// Whether the thread has nothing to do any more.
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().over
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.lock());
    }
}

/// Reads the texts of a process that are wanted.
pub(crate) fn read(item: &Item, directories: &Directories, boot_offset_ns: i64) -> Vec<Read> {
    let mut texts = Vec::new();
    // Whose directory cannot be opened has ended, and there is nothing to be told of it.
    let Ok(directory) = directories.of(item.pid, item.start_ns) else {
        return texts;
    };
    for kind in item.kinds.iter() {
        let now = clock_gettime(ClockId::Boottime);
        let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let mut bytes = Vec::new();
        let read = if kind == Kinds::EXE {
            directory.exe().map(|path| bytes = path)
        } else {
            directory.cmdline(&mut bytes).map(|_| ())
        };
        if read.is_ok() {
            let read_ns = now_ns.saturating_add_signed(-boot_offset_ns);
            texts.push((*item, kind, read_ns, bytes));
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use fastproc_testbed::wait_until;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    fn items(pids: std::ops::Range<u32>) -> Vec<Item> {
        let item = |pid| Item {
            pid,
            start_ns: 0,
            rest: None,
            kinds: Kinds::CMDLINE,
        };
        pids.map(item).collect()
    }

    fn text(item: &Item) -> Vec<Read> {
        vec![(*item, Kinds::CMDLINE, 0, vec![item.pid as u8])]
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
            text(item)
        };
        let reading = Reading::start(items(0..100), read).expect("a thread");
        arrived.recv().expect("it arrives");
        (reading, release)
    }

    fn nothing_more_is_read(reading: &Reading, release: mpsc::Sender<()>) {
        assert!(!reading.is_over());
        drop(release);
        wait_until("the end of the thread", || reading.is_over());
        assert_eq!(reading.0.lock().texts.len(), 1, "that of process 3");
    }

    #[test]
    fn everything_is_read() {
        let reading = Reading::start(items(0..100), text).expect("a thread");
        let outcome = reading.wait(Duration::MAX, Duration::MAX);
        let pids: Vec<u32> = outcome.texts.iter().map(|(item, ..)| item.pid).collect();
        assert_eq!(pids, (0..100).collect::<Vec<_>>());
        assert!(outcome.stuck_at.is_none() && reading.is_over());
    }

    #[test]
    fn who_takes_too_long_is_left_and_what_was_read_before_is_there() {
        let (reading, release) = held_at_3();
        let outcome = reading.wait(Duration::MAX, SHORT);
        assert_eq!(outcome.stuck_at.map(|item| item.pid), Some(3));
        assert_eq!(outcome.texts.len(), 3);
        nothing_more_is_read(&reading, release);
    }

    #[test]
    fn no_longer_is_waited_than_the_limit_says() {
        let (reading, release) = held_at_3();
        let outcome = reading.wait(SHORT, Duration::MAX);
        assert!(outcome.stuck_at.is_none());
        assert_eq!(outcome.texts.len(), 3);
        nothing_more_is_read(&reading, release);
    }
}
