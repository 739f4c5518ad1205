//! The command lines of processes that may exit before they could be read.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use super::Exec;
use crate::{
    rules::access::Viewer,
    snapshot::{
        cmdline::Cmdline,
        exit::{Exit, Owner},
    },
};

/// Events of two CPUs may arrive out of order: a child's exit after its parent's.
const LATEST: Duration = Duration::from_secs(10);
/// The most processes that have ended and are remembered until then. A machine may start thousands in a second.
const MOST_GONE: usize = 1 << 11;

/// The most processes, and bytes of command lines, that are remembered. A lost exit leaves its process here, so
/// without a bound a flood of exits could fill the memory. Beyond it, processes that have ended are forgotten, and if
/// these are too few, the half that started first.
const MOST: usize = 1 << 16;
const MOST_BYTES: usize = 20 << 20;
/// While there are more bytes than this, a line is cut after 1 KiB: nobody makes many lines of others be forgotten by
/// executing programs with long ones.
const CROWDED_BYTES: usize = 4 << 20;
const CROWDED_LINE: usize = 1 << 10;

/// The command lines of processes that executed a program while execs were recorded, until shortly after their exit.
///
/// For callers that read events. A collector that collects command lines has them in its snapshots
/// ([`Snapshot::exit_cmdline`](crate::Snapshot::exit_cmdline)).
#[derive(Debug, Default)]
pub struct Programs {
    running: HashMap<u32, Running>,
    /// Bytes of all command lines.
    bytes: usize,
    /// Pid, start time and end of those that have ended, the earliest first.
    gone: VecDeque<(u32, u64, Instant)>,
}

#[derive(Debug)]
struct Running {
    start_ns: u64,
    exec_id: u64,
    line: Arc<ExecLine>,
}

/// A command line as of its exec. It belongs to whoever executed the program.
///
/// A program may erase its arguments while it runs, as `mysql` and `curl` do with passwords, and then become another
/// user, or fork a process that does. So there is no way to the bytes without a [`Viewer`].
#[derive(Debug)]
pub struct ExecLine {
    owner: Owner,
    bytes: Box<[u8]>,
    cut: bool,
}

impl ExecLine {
    /// The command line of this exit, if its viewer owned the process both when it executed the program and when it
    /// ended, or could have traced it.
    pub fn shown_to(&self, viewer: &Viewer, exit: &Exit) -> Option<Cmdline<'_>> {
        let shows = viewer.may_see_arguments_of(&self.owner) && viewer.may_see_arguments(exit);
        shows.then_some(Cmdline {
            bytes: &self.bytes,
            cut: self.cut,
        })
    }

    /// A line whose owner is not known: only [`Viewer::All`] sees it.
    #[doc(hidden)]
    pub fn of_nobody(bytes: &[u8]) -> Self {
        Self {
            owner: Owner::default(),
            bytes: bytes.into(),
            cut: false,
        }
    }

    /// Its bytes, for callers that bound their memory.
    #[allow(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

impl Programs {
    /// Records that a process executes another program.
    pub fn begins(&mut self, exec: &Exec<'_>) {
        let whole = exec.cmdline.map_or(&[][..], |line| line.bytes);
        let is_crowded = self.bytes > CROWDED_BYTES;
        let most = if is_crowded { CROWDED_LINE } else { usize::MAX };
        let kept = &whole[..whole.len().min(most)];
        let running = Running {
            start_ns: exec.start_ns,
            exec_id: exec.number,
            line: Arc::new(ExecLine {
                owner: exec.owner,
                bytes: kept.into(),
                cut: kept.len() < whole.len() || exec.cmdline.is_some_and(|line| line.cut),
            }),
        };
        self.bytes += running.line.len();
        if let Some(before) = self.running.insert(exec.pid, running) {
            self.bytes -= before.line.len();
        }
        if self.is_full() {
            self.forget(0);
        }
        if self.is_full() {
            self.forget_half();
        }
    }

    /// The command line of an exited process: that of its last exec. A process that executed nothing has the line that the
    /// process had that forked it. `None` if that exec or the fork was not recorded.
    pub fn line(&mut self, exit: &Exit) -> Option<Arc<ExecLine>> {
        if self.is_running(exit.pid, exit.start_ns) {
            let gone = (exit.pid, exit.start_ns, Instant::now());
            self.gone.push_back(gone);
        }
        self.forget(MOST_GONE);
        let of = exit.program;
        let running = self.running.get(&of.pid)?;
        let is_it = (running.start_ns, running.exec_id) == (of.start_ns, of.exec_id);
        (is_it && of.exec_id != 0 && running.line.len() > 0).then(|| Arc::clone(&running.line))
    }

    fn is_running(&self, pid: u32, start_ns: u64) -> bool {
        let running = self.running.get(&pid);
        running.is_some_and(|program| program.start_ns == start_ns)
    }

    fn is_full(&self) -> bool {
        self.running.len() > MOST || self.bytes > MOST_BYTES
    }

    /// Forgets the processes that have ended, except so many of the latest ones.
    fn forget(&mut self, most_gone: usize) {
        while let Some(&(pid, start_ns, at)) = self.gone.front()
            && (self.gone.len() > most_gone || at.elapsed() >= LATEST)
        {
            self.gone.pop_front();
            // Another process may have its pid now.
            if self.is_running(pid, start_ns)
                && let Some(program) = self.running.remove(&pid)
            {
                self.bytes -= program.line.len();
            }
        }
    }

    fn forget_half(&mut self) {
        let mut starts: Vec<u64> = self.running.values().map(|one| one.start_ns).collect();
        let middle = starts.len() / 2;
        let (_, &mut median, _) = starts.select_nth_unstable(middle);
        self.retain(|program| program.start_ns > median);
    }

    fn retain(&mut self, keep: impl Fn(&Running) -> bool) {
        let bytes = &mut self.bytes;
        self.running.retain(|_, program| {
            let keeps = keep(program);
            if !keeps {
                *bytes -= program.line.len();
            }
            keeps
        });
    }
}

#[cfg(test)]
mod tests;
