//! The thread that writes, so that a disk that hangs does not stop the walks.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};

use fastproc::error_chain;

use super::group::Group;

/// Parts that wait: two minutes. An older one is left to its row group.
const MOST_PARTS: usize = 24;
/// Memory of row groups that wait, in bytes.
const MOST_BYTES: usize = if cfg!(test) { 64 << 10 } else { 40 << 20 };
/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// How long a disk may take at the end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Something that readers have to know: a row of `events`. Times are in microseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its kind, as in the table.
    pub event: &'static str,
    /// Its beginning.
    pub since: Option<i64>,
    /// Its end.
    pub until: Option<i64>,
    /// In words.
    pub detail: String,
}

/// Rows to write.
#[derive(Debug)]
pub enum Job {
    /// A part, until its row group is written.
    Part(Group),
    /// A row group, which replaces its parts.
    Group(Group),
}

/// Where rows are written to.
pub trait Place: Send + 'static {
    /// Why nothing was written.
    type Error: std::error::Error;

    /// Bytes of memory that a row group takes at most: with its parts it must have room there.
    fn most_of_group(&self) -> usize {
        usize::MAX
    }

    /// Writes, and adds what readers have to know. A job that failed may come again, or not.
    ///
    /// # Errors
    /// Nothing was written.
    fn write(&mut self, job: &Job, told: &mut Vec<Event>) -> Result<(), Self::Error>;
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    told: Vec<Event>,
    has_failed: bool,
    ends: bool,
}

impl Queue {
    fn add(&mut self, job: Job) {
        match &job {
            Job::Part(_) => {
                let parts = self.jobs.iter().filter(|job| matches!(job, Job::Part(_)));
                if parts.count() >= MOST_PARTS {
                    let first = self.jobs.iter().position(|job| matches!(job, Job::Part(_)));
                    self.jobs.remove(first.unwrap_or(0));
                }
            }
            // The parts are in it.
            Job::Group(_) => self.jobs.retain(|job| matches!(job, Job::Group(_))),
        }
        self.jobs.push_back(job);
        let bytes = |job: &Job| match job {
            Job::Part(group) | Job::Group(group) => group.bytes(),
        };
        while self.jobs.len() > 1 && self.jobs.iter().map(bytes).sum::<usize>() > MOST_BYTES {
            if let Some(Job::Group(group)) = self.jobs.pop_front() {
                self.told
                    .push(lost(&group, "the disk did not take what was recorded"));
            }
        }
    }
}

fn lost(group: &Group, why: &str) -> Event {
    Event {
        event: "blind",
        since: Some(group.from),
        until: Some(group.to),
        detail: why.into(),
    }
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands rows to the thread.
#[derive(Debug)]
pub struct Writing {
    shared: Arc<Shared>,
    ended: Receiver<()>,
}

impl Writing {
    /// Starts the thread.
    ///
    /// # Errors
    /// The kernel starts no thread.
    pub fn start(place: impl Place) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (end, ended) = channel();
        let of_thread = Arc::clone(&shared);
        thread::Builder::new()
            .name("history".into())
            .spawn(move || {
                write_all(&of_thread, place);
                // The recorder may have ended first.
                let _ = end.send(());
            })?;
        Ok(Self { shared, ended })
    }

    /// Adds a job. This never waits for the disk.
    pub fn push(&self, job: Job) {
        self.shared.queue().add(job);
        self.shared.changed.notify_one();
    }

    /// What the thread has told since the last call.
    pub fn told(&self) -> Vec<Event> {
        std::mem::take(&mut self.shared.queue().told)
    }

    /// Waits until everything is written. Returns whether it is: a disk that hangs or is full gets twenty seconds.
    pub fn finish(&self) -> bool {
        self.shared.queue().ends = true;
        self.shared.changed.notify_one();
        let ended = self.ended.recv_timeout(PATIENCE);
        ended.is_ok() && !self.shared.queue().has_failed
    }
}

/// Without [`Writing::finish`], what waits is lost.
impl Drop for Writing {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.ends = true;
        queue.jobs.clear();
        self.shared.changed.notify_one();
    }
}

fn write_all(shared: &Shared, mut place: impl Place) {
    loop {
        let mut queue = shared.queue();
        let job = loop {
            if let Some(job) = queue.jobs.pop_front() {
                break job;
            }
            if queue.ends {
                return;
            }
            queue = shared
                .changed
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        let mut told = Vec::new();
        let written = place.write(&job, &mut told);
        let mut queue = shared.queue();
        queue.told.append(&mut told);
        let Err(error) = written else {
            queue.has_failed = false;
            continue;
        };
        // Once for a failure that lasts.
        if !std::mem::replace(&mut queue.has_failed, true) {
            let failed = Event {
                event: "failed",
                detail: error_chain(&error),
                ..Event::default()
            };
            queue.told.push(failed);
        }
        if queue.ends {
            continue;
        }
        // A part is not tried again: its row group has its rows.
        if let Job::Group(_) = job {
            queue.jobs.push_front(job);
            let waited = shared.changed.wait_timeout(queue, RETRY);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }
}
