//! Threads that read memory of processes, and the owners whose processes hold them up.
//!
//! Reading memory of a process may take any time: if it must be fetched from a file system in user space, its server decides. So
//! a thread of its own reads it, which nobody waits for, and the processes of an owner that holds it up are left out.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use super::owner::Owner;

/// An owner is left out for this long after the kernel has finally answered.
const LEFT_OUT_FOR: Duration = Duration::from_secs(60);
/// Threads that may be held up at the same time.
pub const MOST_HELD_UP: usize = 32;

#[derive(Debug, Default)]
struct State {
    /// The owner of the process that is being read, and since when.
    current: Option<(Owner, Instant)>,
    is_over: bool,
}

/// A thread that reads one process after the other.
#[derive(Clone, Debug, Default)]
pub struct ReadingThread(Arc<Mutex<State>>);

/// Notes that the thread ends, even by a panic, and calls what waits for that.
struct End<F: FnMut()>(ReadingThread, F);

impl<F: FnMut()> Drop for End<F> {
    fn drop(&mut self) {
        *self.0.lock() = State {
            current: None,
            is_over: true,
        };
        (self.1)();
    }
}

impl ReadingThread {
    /// Starts a thread, which has the rights that this one has now. `at_end` is called when it ends.
    pub fn start(
        name: &str,
        read: impl FnOnce(&Self) + Send + 'static,
        at_end: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let thread = Self::default();
        let own = thread.clone();
        thread::Builder::new()
            .name(name.into())
            .stack_size(128 << 10)
            .spawn(move || {
                let end = End(own, at_end);
                read(&end.0);
            })?;
        Ok(thread)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that it reads the next process from now on, whose owner is not known yet.
    pub fn begin(&self, now: Instant) {
        self.lock().current = Some((Owner::Unknown { user_ns: 0 }, now));
    }

    /// Notes the owner of the process, before anything of it is read that may take long.
    pub fn set_owner(&self, owner: Owner) {
        if let Some(current) = &mut self.lock().current {
            current.0 = owner;
        }
    }

    /// Notes that the process is read. Returns its owner, and how long it took.
    pub fn end(&self, now: Instant) -> Option<(Owner, Duration)> {
        let took = self.current(now);
        self.lock().current = None;
        took
    }

    /// The owner of the process that is being read, and how long that has taken.
    pub fn current(&self, now: Instant) -> Option<(Owner, Duration)> {
        let current = self.lock().current;
        current.map(|(owner, since)| (owner, now.saturating_duration_since(since)))
    }

    /// Whether the thread has ended.
    pub fn is_over(&self) -> bool {
        self.lock().is_over
    }
}

/// An unfinished thread that nobody waits for any more.
#[derive(Debug)]
struct HeldUp {
    thread: ReadingThread,
    /// An owner whose process has held it up at least this long is left out.
    patience: Duration,
    by: Option<Owner>,
}

/// The owners whose processes are left out.
#[derive(Debug, Default)]
pub struct LeftOut {
    until: HashMap<Owner, Instant>,
    held_up: Vec<HeldUp>,
}

impl LeftOut {
    /// The number of owners.
    pub fn len(&self) -> usize {
        self.until.len()
    }

    /// Whether nobody is left out.
    pub fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    /// Whether this owner is left out.
    pub fn contains(&self, owner: &Owner) -> bool {
        self.until.contains_key(owner)
    }

    /// All owners.
    pub fn owners(&self) -> Vec<Owner> {
        self.until.keys().copied().collect()
    }

    /// The number of threads that are held up, or were when they were last looked at.
    pub fn held_up(&self) -> usize {
        self.held_up.len()
    }

    /// Whether so many threads are held up that there may be no more.
    pub fn has_too_many(&self) -> bool {
        self.held_up() >= MOST_HELD_UP
    }

    /// Leaves out only those of these owners for whom `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&Owner) -> bool) {
        self.until.retain(|owner, _| keep(owner));
    }

    /// Leaves out an owner from now on.
    pub fn add(&mut self, owner: Owner, now: Instant) {
        self.until.insert(owner, now + LEFT_OUT_FOR);
    }

    /// Watches a thread that nobody waits for any more.
    pub fn watch(&mut self, thread: ReadingThread, patience: Duration) {
        if !thread.is_over() {
            self.held_up.push(HeldUp {
                thread,
                patience,
                by: None,
            });
        }
    }

    /// Forgets owners whose time is over. An owner that still holds up a thread stays.
    pub fn settle(&mut self, now: Instant) {
        let Self { until, held_up } = self;
        held_up.retain_mut(|held_up| {
            let is_over = held_up.thread.is_over();
            if let Some((owner, took)) = held_up.thread.current(now)
                && took >= held_up.patience
            {
                held_up.by = Some(owner);
            }
            if let Some(owner) = held_up.by {
                until.insert(owner, now + LEFT_OUT_FOR);
            }
            !is_over
        });
        until.retain(|_, until| *until > now);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const OWNER: Owner = Owner::User(3);

    /// A thread that reads a process of this owner until the other end of the channel is dropped.
    fn held_up() -> (ReadingThread, mpsc::Sender<()>) {
        let (release, held) = mpsc::channel::<()>();
        let (tell, arrived) = mpsc::channel();
        let read = move |thread: &ReadingThread| {
            thread.begin(Instant::now());
            thread.set_owner(OWNER);
            tell.send(()).expect("the test listens");
            let _ = held.recv();
        };
        let thread = ReadingThread::start("test", read, || {}).expect("a thread");
        arrived.recv().expect("it arrives");
        (thread, release)
    }

    #[test]
    fn a_process_that_blocks_an_unneeded_reading_is_left_out() {
        const PATIENCE: Duration = Duration::from_secs(3600);
        let mut left_out = LeftOut::default();
        let (thread, release) = held_up();
        left_out.watch(thread, PATIENCE);
        let now = Instant::now();
        left_out.settle(now);
        assert!(left_out.is_empty(), "the reading has just begun");
        left_out.settle(now + 2 * PATIENCE);
        assert!(left_out.contains(&OWNER));
        left_out.settle(now + 3 * PATIENCE);
        assert!(left_out.contains(&OWNER), "it still does");
        drop(release);
        fastproc_testbed::wait_until("the end of the thread", || {
            left_out.held_up[0].thread.is_over()
        });
        left_out.settle(now + 3 * PATIENCE);
        left_out.settle(now + 3 * PATIENCE + LEFT_OUT_FOR / 2);
        assert!(left_out.contains(&OWNER), "for a while");
        left_out.settle(now + 3 * PATIENCE + LEFT_OUT_FOR);
        assert!(left_out.is_empty() && left_out.held_up.is_empty());
    }
}
