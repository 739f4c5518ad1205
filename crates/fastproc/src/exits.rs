//! Processes that ended: each of them once, with its final values, however short it lived.
//!
//! Who polls loses what a process did after the last look at it, and all of what began and ended between two. Here the
//! kernel's own tracepoints of the scheduler (`sched_process_exit`, `sched_process_free`) write a record of every
//! process that is gone into a ring, and the reader takes them from there. It costs nothing while nobody has an
//! [`Exits`] open.
//!
//! A process has its record when it has left `/proc`: when its parent has waited for it and the kernel has let go of
//! it, some milliseconds later. Until then it is a zombie that a snapshot shows. So the sum over a snapshot and the
//! exits before it leaves nothing out but what is on its way.
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
mod handout;
mod layout;
mod pending;
mod programs;
mod ring;
mod served;

use std::{os::fd::BorrowedFd, time::Duration};

pub use self::programs::Programs;
pub(crate) use self::{
    backlog::Backlog,
    served::{Answer, Served},
};
#[cfg(test)]
pub(crate) use self::{layout::STRUCTURES, ring::OBJECT};
use self::{layout::Settings, pending::Pending, ring::Rings};
use crate::{
    Cmdline, Error, Fields,
    record::{Cgroup, Cpu, Identity, Io, Record, State},
    source::bpf::support,
    timing::{Part, Timing},
};

/// A process, or a thread, that is gone: its final values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exit {
    /// Process id that it had.
    pub pid: u32,
    /// Thread id: [`pid`](Self::pid) of a process.
    pub tid: u32,
    /// Parent's process id when its last thread ended (`real_parent->tgid`). `None`: that was before the exits were
    /// opened, or it is a thread.
    pub ppid: Option<u32>,
    /// When it started, in nanoseconds after boot (`task->start_boottime`).
    pub start_ns: u64,
    /// When its last thread ended, in nanoseconds after boot. `None`: as for [`ppid`](Self::ppid).
    pub end_ns: Option<u64>,
    /// Whether the values are those with which it left `/proc`. If not, then the kernel's last record of it was lost, and
    /// they are those with which its last thread began to end: what it took to take down its memory is missing, and what
    /// threads that ended with it did after that.
    pub is_final: bool,
    /// Command name, NUL padded (`task->comm`).
    pub comm: [u8; 16],
    /// Real user id.
    pub uid: u32,
    /// Effective user id.
    pub euid: u32,
    /// Real group id.
    pub gid: u32,
    /// Effective group id.
    pub egid: u32,
    /// Id of its cgroup in the default hierarchy; 0 if the kernel has none.
    pub cgroup_id: u64,
    /// Exit status as waitpid(2) shows it. `None`: the kernel would not have shown it to this reader.
    pub status: Option<i32>,
    /// Kernel flags, `PF_*` (`task->flags`).
    pub flags: u32,
    /// Time in user mode, as the kernel shows it, in nanoseconds.
    pub utime_ns: u64,
    /// Time in kernel mode, in nanoseconds.
    pub stime_ns: u64,
    /// Time in a guest's code, in nanoseconds; part of [`utime_ns`](Self::utime_ns).
    pub gtime_ns: u64,
    /// The precise run time, in nanoseconds (`sum_exec_runtime`).
    pub sum_exec_ns: u64,
    /// User time of children that it waited for, in nanoseconds; 0 of a thread, as the next four.
    pub cutime_ns: u64,
    /// System time of those, in nanoseconds.
    pub cstime_ns: u64,
    /// Guest time of those, in nanoseconds.
    pub cgtime_ns: u64,
    /// Page faults without I/O of those.
    pub cminflt: u64,
    /// Page faults with I/O of those.
    pub cmajflt: u64,
    /// Page faults without I/O.
    pub minflt: u64,
    /// Page faults with I/O.
    pub majflt: u64,
    /// Context switches that it asked for, of all its threads.
    pub nvcsw: u64,
    /// Context switches that it was made to do, of all its threads.
    pub nivcsw: u64,
    /// The most memory it ever had resident, in bytes (`signal->maxrss`); 0 of a thread.
    pub peak_rss: u64,
    /// Bytes and calls of its I/O, of all its threads. `None`: the kernel would not have shown it to this reader.
    pub io: Option<Io>,
    pub(crate) owner: Owner,
    pub(crate) line: Line,
}

/// What decides who might see all of a process, beside its ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) suid: u32,
    pub(crate) sgid: u32,
    pub(crate) user_ns: u32,
    pub(crate) cap_permitted: u64,
    /// Whether its memory might be dumped by its user. `None`: not known.
    pub(crate) dumpable: Option<bool>,
}

/// Where the command line of an exit stands among those of all exits of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    at: u32,
    len: u32,
    cut: bool,
}

impl Exit {
    fn put_line(&mut self, line: Cmdline<'_>, lines: &mut Vec<u8>) {
        self.line = Line {
            at: lines.len() as u32,
            len: line.bytes.len() as u32,
            cut: line.cut,
        };
        lines.extend_from_slice(line.bytes);
    }

    /// Its command line, among those of the same snapshot.
    pub(crate) fn line<'a>(&self, lines: &'a [u8]) -> Option<Cmdline<'a>> {
        let Line { at, len, cut } = self.line;
        let bytes = lines.get(at as usize..)?.get(..len as usize)?;
        (!bytes.is_empty()).then_some(Cmdline { bytes, cut })
    }

    /// Command name, without the padding.
    pub fn comm(&self) -> &[u8] {
        crate::name::until_nul(&self.comm)
    }

    /// What it returned, if it ended by itself.
    pub fn code(&self) -> Option<i32> {
        let status = self.status?;
        self.signal().is_none().then_some(status >> 8 & 0xff)
    }

    /// The signal that ended it.
    pub fn signal(&self) -> Option<i32> {
        let signal = self.status? & 0x7f;
        (signal != 0).then_some(signal)
    }

    /// As a record, for what shows processes: dead, with its ids, its name, [`Fields::CPU`], [`Fields::IO`] and
    /// [`Fields::CGROUP`]. Of who it was it has what is here and no more: not its group, its session or its terminal. Its
    /// context switches are those of all its threads, not of the leading one alone.
    pub fn to_record(&self) -> Record {
        let mut groups = Fields::CPU | Fields::CGROUP;
        groups.set(Fields::IO, self.io.is_some());
        Record {
            identity: Identity {
                start_ns: self.start_ns,
                tgid: self.pid,
                ppid: self.ppid.unwrap_or(0),
                tpgid: -1,
                flags: self.flags,
                exit_code: self.status.unwrap_or(0),
                masked: self.status.is_none().into(),
                state_bits: State::Dead.bits(),
                groups: groups.bits(),
                comm: self.comm,
                ..Identity::default()
            },
            cpu: Cpu {
                utime_ns: self.utime_ns,
                stime_ns: self.stime_ns,
                gtime_ns: self.gtime_ns,
                sum_exec_ns: self.sum_exec_ns,
                minflt: self.minflt,
                majflt: self.majflt,
                nvcsw: self.nvcsw,
                nivcsw: self.nivcsw,
                cutime_ns: self.cutime_ns,
                cstime_ns: self.cstime_ns,
                cgtime_ns: self.cgtime_ns,
                cminflt: self.cminflt,
                cmajflt: self.cmajflt,
                sampled_utime_ns: self.utime_ns,
                sampled_stime_ns: self.stime_ns,
                prev_utime_ns: self.utime_ns,
                prev_stime_ns: self.stime_ns,
            },
            io: self.io.unwrap_or_default(),
            cgroup: Cgroup { id: self.cgroup_id },
            ..Record::default()
        }
    }

    /// How long it lived, if it is known when it ended.
    pub fn lifetime(&self) -> Option<Duration> {
        let end_ns = self.end_ns?;
        Some(Duration::from_nanos(end_ns.saturating_sub(self.start_ns)))
    }
}

/// A process that began to run another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exec<'a> {
    /// Process id.
    pub pid: u32,
    /// Parent's process id.
    pub ppid: u32,
    /// When it started, in nanoseconds after boot (`task->start_boottime`).
    pub start_ns: u64,
    /// When it began to run the program, in nanoseconds after boot.
    pub at_ns: u64,
    /// Real user id.
    pub uid: u32,
    /// Effective user id.
    pub euid: u32,
    /// Kernel flags, `PF_*` (`task->flags`).
    pub flags: u32,
    /// Id of its cgroup in the default hierarchy; 0 if the kernel has none.
    pub cgroup_id: u64,
    /// Command name now.
    pub comm: &'a [u8],
    /// The path that execve(2) was given, cut after 127 bytes.
    pub path: &'a [u8],
    /// Its arguments, cut after 1 KiB. `None`: they could not be read.
    pub cmdline: Option<Cmdline<'a>>,
}

impl Exec<'_> {
    /// As a record, for what shows processes: running, with its ids and its name, and [`Fields::CGROUP`].
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

/// What happened to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A process is gone.
    Exit(Exit),
    /// A thread is gone, if [`Builder::threads`] asked for them; of its process later.
    ThreadExit(Exit),
    /// A process runs another program, if [`Builder::execs`] asked for them.
    Exec(Exec<'a>),
}

/// What to record.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    threads: bool,
    execs: bool,
    ring_bytes: u32,
    at_once: bool,
}

impl Builder {
    /// Whether to record every thread as well. Not if not set.
    pub fn threads(mut self, threads: bool) -> Self {
        self.threads = threads;
        self
    }

    /// Whether to record every exec as well. Not if not set.
    pub fn execs(mut self, execs: bool) -> Self {
        self.execs = execs;
        self
    }

    /// Room for events that wait to be read, in bytes, in a power of two of pages; an exit takes about 300. 2 MiB if not
    /// set. It grows, up to 64 MiB, when a reader finds it more than half full.
    pub fn ring_bytes(mut self, bytes: u32) -> Self {
        self.ring_bytes = bytes;
        self
    }

    /// Whether [`Exits::wait`] ends with the first event, rather than when there are many. Not if not set, for to wake
    /// the reader is most of what an event costs.
    pub fn at_once(mut self, at_once: bool) -> Self {
        self.at_once = at_once;
        self
    }

    /// Begins to record. Needs `CAP_BPF` and `CAP_PERFMON`, and Linux 5.8.
    ///
    /// # Errors
    /// The kernel refuses, or would hide some processes from this reader: in a pid or user namespace of its own, with
    /// `hidepid`, under lockdown.
    pub fn open(self) -> Result<Exits, Error> {
        let timing = Timing::start();
        support::permitted()?;
        let settings = Settings {
            page_shift: rustix::param::page_size().trailing_zeros(),
            threads: self.threads.into(),
            at_once: self.at_once.into(),
            reserved: 0,
        };
        Ok(Exits {
            rings: Rings::open(&settings, self.execs, self.ring_bytes)?,
            pending: Pending::default(),
            opening: timing.parts(),
        })
    }
}

/// Records every process that ends, until it is dropped.
#[derive(Debug)]
pub struct Exits {
    rings: Rings,
    pending: Pending,
    opening: Vec<Part>,
}

impl Exits {
    /// Starts to say what to record.
    pub fn builder() -> Builder {
        Builder {
            threads: false,
            execs: false,
            ring_bytes: 2 << 20,
            at_once: false,
        }
    }

    /// Hands over what happened since the last time, in the order in which the kernel recorded it.
    ///
    /// # Errors
    /// [`Error::Forked`]: this process was forked from the one that opened it.
    pub fn read(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<(), Error> {
        let pending = &mut self.pending;
        self.rings.read(|bytes| {
            // A record that this library does not know is none.
            let _ = pending.take(bytes, &mut each);
        })?;
        pending.give_up(&mut each);
        Ok(())
    }

    /// Waits until there is much to read, or anything at all with [`Builder::at_once`]; at most so long. Returns whether
    /// there is.
    ///
    /// # Errors
    /// poll(2) failed.
    pub fn wait(&self, timeout: Duration) -> Result<bool, Error> {
        self.rings.wait(timeout)
    }

    /// Becomes readable when [`wait`](Self::wait) would end; for an event loop. It is another one after the ring has
    /// grown, in [`read`](Self::read).
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
