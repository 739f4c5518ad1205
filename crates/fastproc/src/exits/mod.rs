//! Exited processes: each of them once, with its final values, however short it lived.
//!
//! Polling misses what a process did after the last snapshot, and misses every process that started and ended
//! between two. Here the scheduler's tracepoints (`sched_process_exit`, `sched_process_free`) write a record of
//! every exited process into a ring buffer, and the reader takes the records from there. It costs nothing unless
//! an [`Exits`] is open.
//!
//! A process gets its record when it has left `/proc`: its parent has waited for it, and some milliseconds later
//! the kernel has released it. Until then it is a zombie that snapshots show. So a snapshot and the exits before
//! it together have every process, except those that the kernel is releasing just then.
//!
//! ```no_run
//! use std::time::Duration;
//! use fastproc::exits::{Event, Exits};
//!
//! # fn main() -> Result<(), fastproc::Error> {
//! let mut exits = Exits::builder().open()?;
//! loop {
//!     exits.wait(Duration::from_secs(60))?;
//!     exits.read(|event| {
//!         if let Event::Exit(exit) = event {
//!             println!("{} {} {} ns", exit.pid, exit.comm().escape_ascii(), exit.utime_ns + exit.stime_ns);
//!         }
//!     })?;
//! }
//! # }
//! ```

mod backlog;
mod layout;
mod pending;
mod programs;
mod queue;
mod ring;
mod served;

use std::{os::fd::BorrowedFd, time::Duration};

pub use self::programs::{ExecLine, Programs};
pub(crate) use self::{
    backlog::Backlog,
    served::{Answer, Served},
};
#[cfg(test)]
pub(crate) use self::{layout::STRUCTURES, ring::OBJECT};
use self::{layout::Settings, pending::Pending, ring::Rings};
pub use crate::snapshot::exit::Exit;
use crate::snapshot::exit::Owner;
use crate::{
    base::{
        error::Error,
        namespaces::{Numbering, own_pid_ns},
        timing::{Part, Timing},
    },
    kernel::support,
    records::{
        fields::Fields,
        record::{Cgroup, Identity, Record},
    },
    rules::access::Viewer,
    snapshot::cmdline::Cmdline,
};

/// A process that executed another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exec<'a> {
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub ppid: u32,
    /// When it started, in nanoseconds after boot (`task->start_boottime`).
    pub start_ns: u64,
    /// When it executed the program, in nanoseconds after boot.
    pub at_ns: u64,
    /// Real user id.
    pub uid: u32,
    /// Effective user id.
    pub euid: u32,
    /// Kernel flags, `PF_*` (`task->flags`).
    pub flags: u32,
    /// Id of its cgroup in the default hierarchy; 0 if the kernel has none.
    pub cgroup_id: u64,
    /// Its new command name.
    pub comm: &'a [u8],
    /// The path that execve(2) was given, cut after 127 bytes.
    pub path: &'a [u8],
    /// Its arguments, cut after 4 KiB, or after 512 bytes while a quarter of the ring buffer is unread. `None` if they
    /// could not be read, or belong to a user whose arguments the [`Viewer`] may not see.
    pub cmdline: Option<Cmdline<'a>>,
    /// The number of the exec in this process (`task->self_exec_id`).
    pub(crate) number: u64,
    /// The owner of the process after it.
    pub(crate) owner: Owner,
}

impl Exec<'_> {
    /// The exec as a record, for programs that show processes: running, with its ids and name, and
    /// [`Fields::CGROUP`].
    pub fn to_record(&self) -> Record {
        let mut comm = [0; 16];
        let len = self.comm.len().min(comm.len());
        comm[..len].copy_from_slice(&self.comm[..len]);
        Record {
            identity: Identity {
                start_ns: self.start_ns,
                tgid: self.pid,
                ppid: self.ppid,
                tpgid: -1,
                flags: self.flags,
                num_threads: 1,
                has_mm: 1,
                groups: Fields::CGROUP.bits(),
                comm,
                ..Identity::default()
            },
            cgroup: Cgroup { id: self.cgroup_id },
            ..Record::default()
        }
    }
}

/// An event of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A process has exited.
    Exit(Exit),
    /// A thread has exited, if [`Builder::threads`] requested threads. Its process follows later.
    ThreadExit(Exit),
    /// A process has executed another program, if [`Builder::execs`] requested execs.
    Exec(Exec<'a>),
}

/// Removes from an event what the viewer may not see.
fn hide(event: &mut Event<'_>, viewer: &Viewer) {
    match event {
        Event::Exit(exit) | Event::ThreadExit(exit) => *exit = viewer.redact_exit(exit),
        Event::Exec(exec) if !viewer.may_see_arguments_of(&exec.owner) => exec.cmdline = None,
        Event::Exec(_) => {}
    }
}

/// What to record.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    threads: bool,
    execs: bool,
    ring_bytes: u32,
    at_once: bool,
    viewer: Option<Viewer>,
}

impl Builder {
    /// Whether to record every thread as well. Default: false.
    pub fn threads(mut self, threads: bool) -> Self {
        self.threads = threads;
        self
    }

    /// Whether to record every exec as well. Default: false.
    pub fn execs(mut self, execs: bool) -> Self {
        self.execs = execs;
        self
    }

    /// Size of the ring buffer in bytes, a power of two of pages; an exit takes about 300. Default: 2 MiB.
    /// When a reader finds it more than half full, it grows, up to 64 MiB.
    pub fn ring_bytes(mut self, bytes: u32) -> Self {
        self.ring_bytes = bytes;
        self
    }

    /// Whether [`Exits::wait`] ends with the first event, and not only when there are many. Default: false,
    /// because waking the reader is most of the cost of an event.
    pub fn at_once(mut self, at_once: bool) -> Self {
        self.at_once = at_once;
        self
    }

    /// The viewer of the events. Default: [`Viewer::own`] when this is opened. A program with the right to record, but
    /// without the right to trace other users' processes, then gets no arguments, no exit status and no I/O of theirs.
    pub fn viewer(mut self, viewer: Viewer) -> Self {
        self.viewer = Some(viewer);
        self
    }

    /// Begins to record. This needs `CAP_BPF` and `CAP_PERFMON`, and Linux 5.8.
    ///
    /// # Errors
    /// The kernel refuses, or would hide some processes from this reader: in a user namespace other than the
    /// initial one, with `hidepid`, under lockdown. In a pid namespace of its own, threads cannot be recorded.
    pub fn open(self) -> Result<Exits, Error> {
        let timing = Timing::start();
        let pid_ns = match Numbering::of_proc()? {
            Numbering::Own if self.threads => return Err(Error::NestedThreads),
            Numbering::Own => own_pid_ns()?,
            Numbering::Initial | Numbering::Outer => 0,
        };
        support::permitted()?;
        let settings = Settings {
            page_shift: rustix::param::page_size().trailing_zeros(),
            threads: self.threads.into(),
            at_once: self.at_once.into(),
            pid_ns,
        };
        Ok(Exits {
            rings: Rings::open(&settings, self.execs, self.ring_bytes)?,
            pending: Pending::default(),
            viewer: self.viewer.unwrap_or_else(Viewer::own),
            opening: timing.parts(),
        })
    }
}

/// Records every exited process, until it is dropped.
#[derive(Debug)]
pub struct Exits {
    rings: Rings,
    pending: Pending,
    viewer: Viewer,
    opening: Vec<Part>,
}

impl Exits {
    /// Returns a builder, with which the caller says what to record.
    pub fn builder() -> Builder {
        Builder {
            threads: false,
            execs: false,
            ring_bytes: 2 << 20,
            at_once: false,
            viewer: None,
        }
    }

    /// The viewer of the events.
    pub fn viewer(&self) -> Viewer {
        self.viewer
    }

    /// Calls `each` with every event since the last call, in the order in which the kernel recorded them.
    ///
    /// # Errors
    /// [`Error::Forked`]: this process was forked from the one that opened it.
    pub fn read(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        let (pending, viewer) = (&mut self.pending, self.viewer);
        let mut each = |mut event: Event<'_>| {
            hide(&mut event, &viewer);
            each(event);
        };
        self.rings.read(|bytes| {
            // A record that this library does not know is none.
            let _ = pending.take(bytes, &mut each);
        })?;
        pending.give_up(&mut each);
        Ok(())
    }

    /// Processes that have ended, and whose exit may still come.
    fn awaited(&self) -> impl Iterator<Item = &Exit> {
        self.pending.ended()
    }

    /// Waits until there is much to read, or anything at all with [`Builder::at_once`], but not longer than
    /// `timeout`. Returns whether there is something to read.
    ///
    /// # Errors
    /// poll(2) failed.
    pub fn wait(&self, timeout: Duration) -> Result<bool, Error> {
        self.rings.wait(timeout)
    }

    /// A descriptor for an event loop. It becomes readable when [`wait`](Self::wait) would end. After
    /// [`read`](Self::read) it is another one if the ring buffer has grown.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.rings.fd()
    }

    /// Events that the ring had no room for, since it was opened. They are gone.
    pub fn lost(&self) -> u64 {
        self.rings.lost()
    }

    /// What opening took, part by part.
    pub fn opening(&self) -> &[Part] {
        &self.opening
    }

    /// Bytes of the ring.
    pub fn ring_bytes(&self) -> u32 {
        self.rings.bytes()
    }
}
