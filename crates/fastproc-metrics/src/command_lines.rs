//! Command lines by which processes are named. They are read from the memory of a process, which may take any time: if
//! a file system in user space provides it, its server decides. So other threads read them, and a thread that one
//! process blocks is abandoned.

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use fastproc::{
    DetailError, Directories, Directory,
    owner::{Makers, Namespaces, Owner},
    parse_rights, proc_root,
};

/// How long a scrape waits for one process. A virtual CPU may stall for a while.
const ONE: Duration = Duration::from_secs(2);
/// How long it waits for all of them, plus this for each.
const ALL: Duration = Duration::from_secs(4);
const EACH: Duration = Duration::from_millis(1);
/// Readings that take at least this long are added up. An owner whose sum reaches [`ONE`] is left out for a while.
const SLOW: Duration = Duration::from_millis(50);
const LEFT_FOR: Duration = Duration::from_secs(60);
/// Blocked threads. At this number no command line is read.
const MOST_HELD: usize = 32;
/// Command lines that a thread reads ahead; each takes up to 128 KiB.
const AHEAD: usize = 8;

/// A process: its pid and its start.
pub(crate) type Id = (u32, u64);

/// The result of a thread, or its error. `None`: the owner is left out.
#[derive(Debug)]
struct Answer {
    id: Id,
    owner: Owner,
    took: Duration,
    line: Option<Result<Vec<u8>, DetailError>>,
}

/// Reads a command line. First it passes the owner of the process to the given function, and reads only if that returns
/// true, since reading may take long.
type Read =
    dyn Fn(Id, &mut dyn FnMut(Owner) -> bool) -> Option<Result<Vec<u8>, DetailError>> + Send + Sync;

/// The state of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The owner of the current process, and since when it is read.
    current: Option<(Owner, Instant)>,
    /// Whether the thread has ended.
    over: bool,
}

type Shared = Arc<Mutex<State>>;

/// Marks a thread as ended when it ends, even by a panic.
struct End(Shared);

impl Drop for End {
    fn drop(&mut self) {
        *lock(&self.0) = State {
            current: None,
            over: true,
        };
    }
}

/// A thread that reads.
#[derive(Debug)]
struct Reading {
    answers: Receiver<Answer>,
    state: Shared,
}

/// Reads the command lines of processes.
pub(crate) struct CommandLines {
    read: Arc<Read>,
    one: Duration,
    /// The processes that are still wanted, in this order.
    wanted: VecDeque<Id>,
    reading: Option<Reading>,
    /// Abandoned threads.
    held: Vec<Shared>,
    /// Owners that are left out, and until when.
    left: HashMap<Owner, Instant>,
    /// The time of each owner's slow processes since the last [`prepare`](Self::prepare).
    slow: HashMap<Owner, Duration>,
    /// The time that may still be spent waiting.
    patience: Duration,
}

impl std::fmt::Debug for CommandLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandLines").finish_non_exhaustive()
    }
}

impl CommandLines {
    /// Threads are started later, because privileges belong to threads.
    pub(crate) fn new(directories: Directories) -> Self {
        let home = Namespaces::own();
        Self::by(ONE, move |(pid, start_ns), wants| {
            let directory = match directories.get(pid, start_ns) {
                Ok(directory) => directory,
                Err(error) => return Some(Err(error)),
            };
            wants(owner(home, &directory, pid)).then(|| {
                let mut line = Vec::new();
                directory.cmdline(&mut line)?;
                line.shrink_to_fit();
                Ok(line)
            })
        })
    }

    fn by(
        one: Duration,
        read: impl Fn(Id, &mut dyn FnMut(Owner) -> bool) -> Option<Result<Vec<u8>, DetailError>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            read: Arc::new(read),
            one,
            wanted: VecDeque::new(),
            reading: None,
            held: Vec::new(),
            left: HashMap::new(),
            slow: HashMap::new(),
            patience: Duration::ZERO,
        }
    }

    /// Begins to read the command lines of these processes. [`next`](Self::next) returns them in this order.
    pub(crate) fn prepare(&mut self, wanted: VecDeque<Id>) {
        self.hold();
        self.slow.clear();
        self.patience = ALL + EACH * wanted.len() as u32;
        self.wanted = wanted;
        let now = Instant::now();
        let Self {
            held, left, one, ..
        } = self;
        held.retain(|state| {
            let state = *lock(state);
            if let Some((owner, since)) = state.current
                && now.saturating_duration_since(since) >= *one
            {
                left.insert(owner, now + LEFT_FOR);
            }
            !state.over
        });
        left.retain(|_, until| *until > now);
    }

    /// The command line of the next of these processes. `None`: it did not come in time, or its owner is left out.
    pub(crate) fn next(&mut self, id: Id) -> Option<Result<Vec<u8>, DetailError>> {
        let at = self.wanted.iter().position(|wanted| *wanted == id)?;
        self.wanted.drain(..at);
        if self.patience.is_zero() {
            return None;
        }
        if self.reading.is_none() && self.held.len() < MOST_HELD {
            let left = self.left.keys().copied().collect();
            let ids = self.wanted.iter().copied().collect();
            self.reading = Reading::start(ids, left, Arc::clone(&self.read)).ok();
        }
        let reading = self.reading.as_ref()?;
        let since = Instant::now();
        let limit = self.one.min(self.patience);
        let answer = loop {
            let limit = limit.saturating_sub(since.elapsed());
            match reading.answers.recv_timeout(limit) {
                Ok(answer) if answer.id != id => {}
                other => break other.ok(),
            }
        };
        self.patience = self.patience.saturating_sub(since.elapsed());
        self.wanted.pop_front();
        let Some(answer) = answer else {
            // The thread has ended if it has panicked.
            if let Some((owner, _)) = lock(&reading.state).current {
                self.left.insert(owner, Instant::now() + LEFT_FOR);
            }
            self.hold();
            return None;
        };
        self.count(&answer);
        answer.line
    }

    /// Leaves out an owner whose slow processes together have taken as long as one may.
    fn count(&mut self, answer: &Answer) {
        if answer.took < SLOW {
            return;
        }
        let sum = self.slow.entry(answer.owner).or_default();
        *sum += answer.took;
        if *sum >= self.one {
            self.left.insert(answer.owner, Instant::now() + LEFT_FOR);
            // The next thread will leave it out.
            self.hold();
        }
    }

    /// Abandons the thread, which then ends by itself.
    fn hold(&mut self) {
        self.held
            .extend(self.reading.take().map(|reading| reading.state));
    }
}

impl Reading {
    fn start(ids: Vec<Id>, left: Vec<Owner>, read: Arc<Read>) -> io::Result<Self> {
        let (send, answers) = sync_channel(AHEAD);
        let state = Shared::default();
        let reading = Self {
            answers,
            state: Arc::clone(&state),
        };
        let body = move || {
            let end = End(state);
            let state = &end.0;
            for id in ids {
                lock(state).current = Some((Owner::Unknown { user_ns: 0 }, Instant::now()));
                let answer = answer(id, &left, state, &*read);
                lock(state).current = None;
                if send.send(answer).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new()
            .name("names".into())
            .stack_size(128 << 10)
            .spawn(body)?;
        Ok(reading)
    }
}

/// Reads a command line, unless its owner is left out.
fn answer(id: Id, left: &[Owner], state: &Shared, read: &Read) -> Answer {
    let mut owner = Owner::Unknown { user_ns: 0 };
    let since = Instant::now();
    let line = read(id, &mut |of| {
        owner = of;
        lock(state).current = Some((owner, since));
        !left.contains(&owner)
    });
    Answer {
        id,
        owner,
        took: since.elapsed(),
        line,
    }
}

/// The owner of a process. Without `CAP_SYS_PTRACE` its namespaces are unknown, and its real user counts.
fn owner(home: Namespaces, directory: &Directory, pid: u32) -> Owner {
    if directory.user_namespace().is_ok() {
        return home.owner(directory, pid, None, &mut Makers::default());
    }
    let status = std::fs::read(proc_root::path(&format!("/proc/{pid}/status"))).unwrap_or_default();
    parse_rights(&status).map_or(Owner::Unknown { user_ns: 0 }, |(users, _)| {
        home.owner_by_user(pid, users.uid)
    })
}

fn lock(state: &Shared) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const A: Owner = Owner::User(7);
    const B: Owner = Owner::User(8);

    fn line(pid: u32) -> Vec<u8> {
        vec![pid as u8]
    }

    /// What is read of these processes, in this order.
    fn read(lines: &mut CommandLines, pids: &[u32]) -> Vec<Option<u8>> {
        let ids = pids.iter().map(|&pid| (pid, 1));
        lines.prepare(ids.clone().collect());
        ids.map(|id| {
            lines
                .next(id)
                .map(|line| line.expect("the line is known")[0])
        })
        .collect()
    }

    #[test]
    fn a_user_whose_process_hangs_is_left_out_alone() {
        let (release, go_on) = channel::<()>();
        let go_on = Mutex::new(go_on);
        let mut lines = CommandLines::by(Duration::from_millis(20), move |(pid, _), wants| {
            let owner = if pid < 5 { A } else { B };
            wants(owner).then_some(())?;
            if pid == 2 {
                let _ = go_on.lock().expect("nobody has panicked").recv();
            }
            Some(Ok(line(pid)))
        });
        // A virtual CPU may stall: then a thread that takes longer is abandoned, too, and the next one takes over.
        let mut both = |pids: &[u32], expected: &[Option<u8>]| {
            fastproc_testbed::wait_until("the others", || {
                lines.left.retain(|owner, _| *owner == A);
                read(&mut lines, pids) == expected
            });
            assert!(lines.left.contains_key(&A));
        };
        both(&[1, 2, 3, 5, 6], &[None, None, None, Some(5), Some(6)]);
        drop(release);
    }

    #[test]
    fn a_user_with_many_slow_processes_is_left_out() {
        let mut lines = CommandLines::by(3 * SLOW, |(pid, _), wants| {
            let owner = if pid < 50 { A } else { B };
            wants(owner).then_some(())?;
            if owner == A {
                thread::sleep(SLOW);
            }
            Some(Ok(line(pid)))
        });
        let pids: Vec<u32> = (1..=50).collect();
        fastproc_testbed::wait_until("the last one", || {
            lines.left.remove(&B);
            read(&mut lines, &pids).last() == Some(&Some(50))
        });
        assert!(lines.left.contains_key(&A));
        assert_eq!(read(&mut lines, &pids)[..49], [None; 49]);
    }

    #[test]
    fn however_many_hold_up_threads_there_are_no_more_than_the_bound() {
        let (release, go_on) = channel::<()>();
        let go_on = Mutex::new(go_on);
        let mut lines = CommandLines::by(Duration::from_millis(1), move |(pid, _), wants| {
            wants(Owner::User(pid)).then_some(())?;
            let _ = go_on.lock().expect("nobody has panicked").recv();
            Some(Ok(line(pid)))
        });
        let mut pid = 0;
        fastproc_testbed::wait_until("all of them", || {
            pid += 1;
            assert_eq!(read(&mut lines, &[pid]), [None]);
            lines.held.len() == MOST_HELD
        });
        for _ in 0..3 {
            assert_eq!(read(&mut lines, &[pid + 1]), [None]);
            assert!(lines.reading.is_none() && lines.held.len() == MOST_HELD);
        }
        drop(release);
        fastproc_testbed::wait_until("the end of the threads", || {
            // The owner that was too slow before is left out.
            pid += 1;
            read(&mut lines, &[pid]) == [Some(pid as u8)]
        });
    }
}
