//! The exits between two snapshots, kept until the next one is made.

use std::{
    mem,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    io::Errno,
};

use super::{
    Event, Exits,
    programs::Programs,
    queue::{self, ExitQueue},
};
use crate::snapshot::exit::Exit;
use crate::{
    base::error::Error,
    snapshot::{EndedExits, Snapshot},
};

/// The most exits that are kept between two snapshots: about 130 MB. Later ones are lost and counted.
const MOST: usize = 1 << 19;
/// Bytes of command lines that are kept between two snapshots. Later exits have none.
const MOST_BYTES: usize = 64 << 20;
/// Room that is kept even if the last interval had far fewer exits.
const SPARE: usize = 4096;

/// Reads exits from the ring buffer as it fills, in a thread, and passes them to snapshots.
#[derive(Debug)]
pub(crate) struct Backlog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Number of snapshots so far, at most two.
    taken: u8,
    /// The process that opened it. A forked child lacks the thread.
    process: u32,
    queue: ExitQueue,
    lost: u64,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Written to when the ring buffer has been replaced, or when the thread must end.
    wake: OwnedFd,
}

#[derive(Debug)]
struct State {
    exits: Exits,
    gathered: Vec<Exit>,
    lines: Vec<u8>,
    /// `None` if command lines were not requested.
    programs: Option<Programs>,
    dropped: u64,
    must_end: bool,
    failed: Option<Error>,
}

impl Backlog {
    pub(crate) fn open(cmdlines: bool) -> Result<Self, Error> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                exits: Exits::builder().execs(cmdlines).open()?,
                gathered: Vec::new(),
                lines: Vec::new(),
                programs: cmdlines.then(Programs::default),
                dropped: 0,
                must_end: false,
                failed: None,
            }),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(|error| Error::Run(error.into()))?,
        });
        Ok(Self {
            shared,
            thread: None,
            taken: 0,
            process: std::process::id(),
            queue: ExitQueue::default(),
            lost: 0,
        })
    }

    /// Takes the exited processes that are not in `snapshot`.
    pub(crate) fn take(&mut self, snapshot: &Snapshot<'_>) -> Result<(), Error> {
        if self.process != std::process::id() {
            return Err(Error::Forked);
        }
        // Not with the first snapshot: privileges belong to threads, and a caller that drops them may need a snapshot
        // before.
        if self.taken == 1 {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new()
                .name("fastproc-exits".into())
                .spawn(move || shared.run())
                .map_err(Error::Run)?;
            self.thread = Some(thread);
        }
        self.taken = 2.min(self.taken + 1);
        let (shared, lost) = (&self.shared, &mut self.lost);
        self.queue.advance(snapshot, |exits, lines| {
            let mut state = shared.lock();
            let ring = state.exits.fd().as_raw_fd();
            state.read()?;
            if state.exits.fd().as_raw_fd() != ring {
                shared.wake();
            }
            mem::swap(exits, &mut state.gathered);
            mem::swap(lines, &mut state.lines);
            let room = SPARE.max(2 * exits.len());
            state.gathered.shrink_to(room);
            state.lines.shrink_to(room.max(2 * lines.len()));
            let all = state.exits.lost() + state.dropped;
            Ok(all - mem::replace(lost, all))
        })
    }

    /// Whether a process ended until this time that is not in the last snapshot, and its exit is not taken yet.
    pub(crate) fn awaits(&self, last: &Snapshot<'_>, until_ns: u64) -> bool {
        let state = self.shared.lock();
        let ended = state.exits.awaited().chain(&state.gathered);
        let mut ended = ended.filter(|exit| exit.end_ns.is_none_or(|at_ns| at_ns <= until_ns));
        ended.any(|exit| !queue::is_later(exit, last))
    }

    /// The exits that were taken last.
    pub(crate) fn exits(&self) -> (EndedExits<'_>, u64) {
        self.queue.exits()
    }
}

impl Drop for Backlog {
    fn drop(&mut self) {
        // A child has no thread to wait for, and the lock may never be released.
        if self.process != std::process::id() {
            return;
        }
        self.shared.lock().must_end = true;
        self.shared.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A reader that panicked left the state consistent, so another can use it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counter is full only if it was not read, and then it wakes the thread already.
    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Reads whenever a quarter of the ring buffer is used.
    fn run(&self) {
        let mut written = [0; 8];
        loop {
            let ring = {
                let mut state = self.lock();
                let ring = state.read().and_then(|()| {
                    let ring = state.exits.fd().try_clone_to_owned();
                    ring.map_err(Error::Run)
                });
                match ring {
                    _ if state.must_end => return,
                    Ok(ring) => ring,
                    Err(error) => {
                        state.failed = Some(error);
                        return;
                    }
                }
            };
            let mut fds = [
                PollFd::new(&ring, PollFlags::IN),
                PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {
                    let _ = rustix::io::read(&self.wake, &mut written);
                }
                Err(error) => {
                    self.lock().failed = Some(Error::Run(error.into()));
                    return;
                }
            }
        }
    }
}

impl State {
    fn read(&mut self) -> Result<(), Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Self {
            exits,
            gathered,
            lines,
            programs,
            dropped,
            ..
        } = self;
        let viewer = exits.viewer();
        exits.read(|event| match (event, &mut *programs) {
            (Event::Exit(_), _) if gathered.len() >= MOST => *dropped += 1,
            (Event::Exit(mut exit), programs) => {
                let line = programs.as_mut().and_then(|programs| programs.line(&exit));
                if let Some(line) = line.as_ref()
                    && let Some(line) = line.shown_to(&viewer, &exit)
                    && lines.len() + line.bytes.len() <= MOST_BYTES
                {
                    exit.put_line(line, lines);
                }
                gathered.push(exit);
            }
            (Event::Exec(exec), Some(programs)) => programs.begins(&exec),
            _ => {}
        })
    }
}
