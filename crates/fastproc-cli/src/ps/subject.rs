//! What a row is about, and what its values are looked up in.

use fastproc::{
    Change, Details, Host, Process, Snapshot,
    record::{Io, State, ThreadRecord},
};

use super::names::Names;

/// A process, or one of its threads.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The process.
    pub process: Process<'a>,
    /// The thread, if the row is about one.
    pub thread: Option<&'a ThreadRecord>,
    /// What it did since the last snapshot, if there was one.
    pub change: Option<Change<'a>>,
}

impl<'a> Subject<'a> {
    /// Process id and thread id: the order of rows that are equal otherwise.
    pub fn ids(&self) -> (u32, u32) {
        (self.process.pid(), self.tid())
    }

    /// Thread id; of a process that of its leading thread, which is the same as the process id.
    pub fn tid(&self) -> u32 {
        self.thread.map_or(self.process.pid(), |thread| thread.tid)
    }

    /// Start time after boot.
    pub fn start_ns(&self) -> u64 {
        self.thread
            .map_or(self.process.identity().start_ns, |thread| thread.start_ns)
    }

    /// User and system time.
    pub fn cpu_times(&self) -> Option<(u64, u64)> {
        match self.thread {
            Some(thread) => Some((thread.utime_ns, thread.stime_ns)),
            None => self.process.cpu().map(|cpu| (cpu.utime_ns, cpu.stime_ns)),
        }
    }

    /// The state.
    pub fn state(&self) -> State {
        self.thread.map_or(self.process.state(), |thread| {
            State::from_bits(thread.state_bits)
        })
    }

    /// The I/O counters. A thread's are known where its process's are.
    pub fn io(&self) -> Option<&'a Io> {
        let of_process = self.process.io()?;
        Some(self.thread.map_or(of_process, |thread| &thread.io))
    }

    /// The thread, unless it is the leading one, whose name is the process's.
    pub fn other_thread(&self) -> Option<&'a ThreadRecord> {
        self.thread.filter(|thread| thread.tid != thread.tgid)
    }
}

/// What is not in the record.
#[derive(Debug)]
pub struct Lookup {
    /// The machine.
    pub host: Host,
    /// Memory of the machine, in bytes.
    pub total_memory: u64,
    /// Command lines, programs, cgroups.
    pub details: Details,
    /// Names of users.
    pub users: Names,
    /// Names of groups.
    pub groups: Names,
    /// Room for a text.
    pub text: Vec<u8>,
    /// Room for numbers.
    pub numbers: Vec<u32>,
    /// Time since boot when the snapshot was complete, of the machine itself rather than of this time namespace. No
    /// process can have run for longer.
    pub now_ns: u64,
    /// Seconds of the calendar at boot.
    pub boot_seconds: f64,
    /// Whether the kernel would show this reader everything, so that nothing has to be hidden.
    pub sees_all: bool,
}

impl Lookup {
    /// For snapshots of this machine.
    pub fn new(host: &Host, sees_all: bool) -> Result<Self, fastproc::Error> {
        let memory = rustix::system::sysinfo();
        Ok(Self {
            host: host.clone(),
            total_memory: (memory.totalram as u64).saturating_mul(memory.mem_unit.into()),
            details: Details::open(host)?,
            users: Names::users(),
            groups: Names::groups(),
            text: Vec::new(),
            numbers: Vec::new(),
            now_ns: 0,
            boot_seconds: 0.0,
            sees_all,
        })
    }

    /// Sets the clock to that of this snapshot.
    pub fn set_clock(&mut self, snapshot: &Snapshot<'_>) {
        use rustix::time::{ClockId, clock_gettime};
        let stats = snapshot.stats();
        self.now_ns = stats
            .kernel_boottime_ns()
            .saturating_add(stats.took.as_nanos() as u64);
        let seconds = |id| {
            let time = clock_gettime(id);
            time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
        };
        self.boot_seconds = seconds(ClockId::Realtime) - seconds(ClockId::Boottime)
            + self.host.boot_offset_ns as f64 / 1e9;
    }

    /// Share of a CPU that `cpu_ns` is of the time since `start_ns`.
    pub fn share_since(&self, start_ns: u64, cpu_ns: u64) -> f64 {
        // As in ps: a process of this very moment has used nothing yet.
        let lifetime = self.now_ns.saturating_sub(start_ns);
        if lifetime == 0 {
            0.0
        } else {
            cpu_ns as f64 / lifetime as f64
        }
    }
}
