//! Command lines by which processes are named. They are read from the memory of a process, which may take any time. So other
//! threads read them, and a thread that one process holds up is abandoned.

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{
        Arc,
        mpsc::{Receiver, sync_channel},
    },
    time::{Duration, Instant},
};

use fastproc::{
    DetailError, Directories, Directory,
    held_up::{LeftOut, ReadingThread},
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

/// A thread that reads.
#[derive(Debug)]
struct Reading {
    answers: Receiver<Answer>,
    thread: ReadingThread,
}

/// Reads the command lines of processes.
pub(crate) struct CommandLines {
    read: Arc<Read>,
    one: Duration,
    /// The processes that are still wanted, in this order.
    wanted: VecDeque<Id>,
    reading: Option<Reading>,
    left_out: LeftOut,
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
            left_out: LeftOut::default(),
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
        self.left_out.settle(Instant::now());
    }

    /// The command line of the next of these processes. `None`: it did not come in time, or its owner is left out.
    pub(crate) fn next(&mut self, id: Id) -> Option<Result<Vec<u8>, DetailError>> {
        let at = self.wanted.iter().position(|wanted| *wanted == id)?;
        self.wanted.drain(..at);
        if self.patience.is_zero() {
            return None;
        }
        if self.reading.is_none() && !self.left_out.has_too_many() {
            let ids = self.wanted.iter().copied().collect();
            let read = Arc::clone(&self.read);
            self.reading = Reading::start(ids, self.left_out.owners(), read).ok();
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
            let now = Instant::now();
            if let Some((owner, _)) = reading.thread.current(now) {
                self.left_out.add(owner, now);
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
            self.left_out.add(answer.owner, Instant::now());
            // The next thread will leave it out.
            self.hold();
        }
    }

    /// Abandons the thread, which then ends by itself.
    fn hold(&mut self) {
        if let Some(reading) = self.reading.take() {
            self.left_out.watch(reading.thread, self.one);
        }
    }
}

impl Reading {
    fn start(ids: Vec<Id>, left_out: Vec<Owner>, read: Arc<Read>) -> io::Result<Self> {
        let (send, answers) = sync_channel(AHEAD);
        let read_all = move |thread: &ReadingThread| {
            for id in ids {
                if send.send(answer(id, &left_out, thread, &*read)).is_err() {
                    break;
                }
            }
        };
        Ok(Self {
            answers,
            thread: ReadingThread::start("names", read_all, || {})?,
        })
    }
}

/// Reads a command line, unless its owner is left out.
fn answer(id: Id, left_out: &[Owner], thread: &ReadingThread, read: &Read) -> Answer {
    thread.begin(Instant::now());
    let line = read(id, &mut |owner| {
        thread.set_owner(owner);
        !left_out.contains(&owner)
    });
    let none = (Owner::Unknown { user_ns: 0 }, Duration::ZERO);
    let (owner, took) = thread.end(Instant::now()).unwrap_or(none);
    Answer {
        id,
        owner,
        took,
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

#[cfg(test)]
mod tests {
    use std::{
        sync::{Mutex, mpsc::channel},
        thread,
    };

    use fastproc::held_up::MOST_HELD_UP;

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
                lines.left_out.retain(|owner| *owner == A);
                read(&mut lines, pids) == expected
            });
            assert!(lines.left_out.contains(&A));
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
            lines.left_out.retain(|owner| *owner == A);
            read(&mut lines, &pids).last() == Some(&Some(50))
        });
        assert!(lines.left_out.contains(&A));
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
            lines.left_out.held_up() == MOST_HELD_UP
        });
        for _ in 0..3 {
            assert_eq!(read(&mut lines, &[pid + 1]), [None]);
            assert!(lines.reading.is_none() && lines.left_out.held_up() == MOST_HELD_UP);
        }
        drop(release);
        fastproc_testbed::wait_until("the end of the threads", || {
            // The owner that was too slow before is left out.
            pid += 1;
            read(&mut lines, &[pid]) == [Some(pid as u8)]
        });
    }
}
