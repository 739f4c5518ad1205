//! Cgroups and open files: a thread of its own reads them when a reader asks, so nobody else waits for it, however many there
//! are.
//!
//! The thread has the collectors while it works, and gives them back with its answer.

mod answer;
mod cgroups;
mod files;
mod permission;

use std::{
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use fastproc::{
    files::Files,
    source::service::wire::{Op, Request, Status},
};

pub(crate) use self::answer::Answer;
use crate::view::View;

/// The number of collectors, those of cgroups first.
pub(crate) const COUNT: usize = cgroups::COUNT + files::COUNT;
/// The most descriptors of all collectors.
pub(crate) const DESCRIPTORS: usize = cgroups::DESCRIPTORS + files::DESCRIPTORS;

/// After this time without use a collector is closed, which gives its memory back.
const UNUSED: Duration = Duration::from_secs(600);

/// Which collector reads for this request.
pub(crate) fn collector_of(request: &Request, view: View) -> usize {
    match request.op {
        Op::Files => cgroups::COUNT + files::collector_of(request.groups, view),
        _ => cgroups::collector_of(request.groups),
    }
}

/// The most CPU time of a thread for this request.
pub(crate) fn longest(request: &Request, view: View) -> Duration {
    match request.op {
        Op::Files => files::longest(view),
        _ => cgroups::LONGEST,
    }
}

/// What a thread is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) view: View,
    pub(crate) request: Request,
    /// The generation of the last snapshot, if that is young enough.
    pub(crate) known: Option<u64>,
    /// That of a new one.
    pub(crate) next: u64,
    /// The most cgroups that users are shown.
    pub(crate) most_of_user: usize,
    /// The most CPU time for open files, and for a user's cgroups.
    pub(crate) longest: Duration,
}

/// What a thread has done.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) generation: u64,
    pub(crate) answer: Result<Answer, Status>,
    /// What failed, for whoever runs the service.
    pub(crate) reason: Option<String>,
    /// Whether it failed because of what the user itself has.
    pub(crate) is_own: bool,
    /// Whether it is of an earlier snapshot.
    pub(crate) was_known: bool,
    /// CPU time of making the snapshot, and of all.
    pub(crate) read: Duration,
    pub(crate) cpu: Duration,
}

/// The state of the thread.
#[derive(Debug)]
pub(crate) enum Progress {
    Reading,
    Done(Box<Done>),
    /// The thread has panicked.
    Failed,
}

/// The collectors of one kind, and their thread.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// `None` while a thread has them.
    all: Option<Box<Collectors>>,
    /// When the last snapshot of each began, and its generation.
    read: [Option<(Instant, u64)>; COUNT],
    /// The largest generation of all snapshots. Buffers refer to them, whatever becomes of the collectors.
    generation: u64,
    running: Option<Receiver<(Box<Collectors>, Done)>>,
}

#[derive(Debug, Default)]
pub(crate) struct Collectors {
    all: [Option<fastproc::cgroups::Cgroups>; cgroups::COUNT],
    files: [Option<Files>; files::COUNT],
    /// When each was last used, if it is open.
    used: [Option<Instant>; COUNT],
    read: [Option<(Instant, u64)>; COUNT],
    /// What has failed since the last answer.
    reason: Option<String>,
}

/// Tells the service when it is dropped, at the end of a thread.
struct Signal(Arc<OwnedFd>);

impl Drop for Signal {
    fn drop(&mut self) {
        // It fails only if the counter overflows, which takes more readings than there can be.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

impl Background {
    /// The generation of the last snapshot, if it began at `since` or later.
    pub(crate) fn read_since(&self, at: usize, since: Option<Instant>) -> Option<u64> {
        let (read, generation) = self.read[at]?;
        since
            .is_none_or(|since| read >= since)
            .then_some(generation)
    }

    /// The generation of the next snapshot.
    pub(crate) fn next_generation(&self) -> u64 {
        self.generation + 1
    }

    /// Whether a thread is at work.
    pub(crate) fn is_reading(&self) -> bool {
        self.running.is_some()
    }

    /// When a collector will have been unused for so long that it is closed.
    pub(crate) fn closes_at(&self) -> Option<Instant> {
        let used = self.all.as_ref()?.used;
        used.into_iter().flatten().min().map(|used| used + UNUSED)
    }

    /// Closes the collectors that nobody has used for long.
    pub(crate) fn close_unused(&mut self, now: Instant) {
        let Some(all) = &mut self.all else {
            return;
        };
        for at in 0..COUNT {
            if all.used[at].is_some_and(|used| now.saturating_duration_since(used) >= UNUSED) {
                all.used[at] = None;
                (all.read[at], self.read[at]) = (None, None);
                let unused = match at.checked_sub(cgroups::COUNT) {
                    None => (all.all[at].take(), None),
                    Some(at) => (None, all.files[at].take()),
                };
                // That takes some time. If there is no thread for it, it is closed here.
                let close = thread::Builder::new().name("collector".into());
                let _ = close.spawn(move || drop(unused));
            }
        }
    }

    /// Starts a thread, which has the rights that this one has now. `done` is written to when it is over.
    pub(crate) fn start(&mut self, wish: Wish, done: Arc<OwnedFd>) -> io::Result<()> {
        let (sender, running) = channel();
        let (give, take) = channel::<Box<Collectors>>();
        let work = move || {
            // Dropped last, after the answer was sent or the sender was dropped by a panic.
            let _signal = Signal(done);
            let sender = sender;
            let Ok(mut all) = take.recv() else {
                return;
            };
            let done = all.make(wish);
            // The receiver is gone if the service has ended.
            let _ = sender.send((all, done));
        };
        thread::Builder::new()
            .name("collector".into())
            .spawn(work)?;
        // Only now: a thread that could not be started would have taken them along.
        let _ = give.send(self.all.take().unwrap_or_default());
        self.running = Some(running);
        Ok(())
    }

    /// What became of the thread, if one was started.
    pub(crate) fn progress(&mut self) -> Option<Progress> {
        Some(match self.running.as_ref()?.try_recv() {
            Err(TryRecvError::Empty) => Progress::Reading,
            Ok((all, done)) => {
                *self = Self {
                    read: all.read,
                    all: Some(all),
                    generation: self.generation.max(done.generation),
                    running: None,
                };
                Progress::Done(Box::new(done))
            }
            Err(TryRecvError::Disconnected) => {
                // It may have made a snapshot, which nobody was shown.
                *self = Self {
                    generation: self.generation,
                    ..Self::default()
                };
                Progress::Failed
            }
        })
    }
}

#[cfg(test)]
pub(crate) type Held = std::sync::mpsc::Sender<(Box<Collectors>, Done)>;

#[cfg(test)]
impl Background {
    /// As if a thread were at work until this is dropped.
    pub(crate) fn hold(&mut self) -> Held {
        let (sender, running) = channel();
        self.running = Some(running);
        sender
    }
}

impl Collectors {
    fn make(&mut self, wish: Wish) -> Done {
        match wish.request.op {
            Op::Files => self.make_files(wish),
            _ => self.make_cgroups(wish),
        }
    }
}
