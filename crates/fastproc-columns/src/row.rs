//! The rows of a process table, and the lookup of values that are not in a record.

use std::collections::HashSet;

use fastproc::{
    Baseline, Cmdline, Details, Host, Process, Snapshot, Terminals,
    container::Names as ContainerNames,
    difference::Change,
    exits::{Exec, Exit},
    frozen,
    record::{Delays, Io, Record, State, ThreadRecord},
};

use crate::{limits::Limits, names::Names, open_files::OpenFiles};

/// An event of a process, for rows that show one instead of a state.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The process exited. With the arguments of its program, if they are known.
    Exit(&'a Exit, Option<Cmdline<'a>>),
    /// The process started another program.
    Exec(&'a Exec<'a>),
}

/// A process, or one of its threads.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The process.
    pub process: Process<'a>,
    /// The thread, if this is the row of one.
    pub thread: Option<&'a ThreadRecord>,
    /// The changes since the previous snapshot, if there was one.
    pub change: Option<Change<'a>>,
    /// The branches of a tree before its name or command line; see [`forest`](crate::forest).
    pub branch: &'a [u8],
    /// The event, if the row shows one.
    pub event: Option<Event<'a>>,
}

impl<'a> Row<'a> {
    /// A row of a process, without changes.
    pub const fn new(process: Process<'a>) -> Self {
        Self {
            process,
            thread: None,
            change: None,
            branch: &[],
            event: None,
        }
    }

    /// A row of a process or a thread with its change.
    #[inline]
    pub fn changed(change: Change<'a>) -> Self {
        Self {
            process: change.process,
            thread: change.thread,
            change: Some(change),
            branch: &[],
            event: change.exit.map(|exit| Event::Exit(exit, None)),
        }
    }

    /// Rows of all processes of a snapshot, or of all threads, in the order of their ids; with changes since `before`.
    pub fn all<'b>(
        snapshot: &Snapshot<'a>,
        before: Option<&'b Baseline>,
        threads: bool,
    ) -> Box<dyn Iterator<Item = Self> + 'b>
    where
        'a: 'b,
    {
        let of_thread = |(process, thread)| Self {
            thread: Some(thread),
            ..Self::new(process)
        };
        match (before, threads) {
            (None, false) => Box::new(snapshot.iter().map(Self::new)),
            (None, true) => Box::new(snapshot.threads_with_processes().map(of_thread)),
            (Some(before), false) => Box::new(before.changes(snapshot).map(Self::changed)),
            (Some(before), true) => Box::new(before.thread_changes(snapshot).map(Self::changed)),
        }
    }

    /// A row of an exited process; see [`Ended::change`](fastproc::difference::Ended::change).
    pub fn ended(change: Change<'a>, cmdline: Option<Cmdline<'a>>) -> Self {
        Self {
            event: change.exit.map(|exit| Event::Exit(exit, cmdline)),
            ..Self::changed(change)
        }
    }

    /// Rows of all processes that exited since `before`. `records` are those of all exits of the snapshot, in the same
    /// order ([`Exit::to_record`]). A process that exited before it could be counted has no row.
    pub fn all_ended<'b>(
        snapshot: Snapshot<'a>,
        before: &'b Baseline,
        records: &'a [Record],
    ) -> impl Iterator<Item = Self> + use<'a, 'b> {
        let mut records = records.iter();
        before.ended(&snapshot).filter_map(move |ended| {
            let is_of = |record: &&Record| {
                record.identity.start_ns == ended.exit.start_ns
                    && record.identity.tgid == ended.exit.pid
            };
            let record = records.find(is_of)?;
            Some(Self::ended(
                ended.change(record),
                snapshot.exit_cmdline(ended.exit),
            ))
        })
    }

    /// The exit, if the row shows one.
    pub fn exit(&self) -> Option<&'a Exit> {
        match self.event {
            Some(Event::Exit(exit, _)) => Some(exit),
            _ => None,
        }
    }

    /// Real and effective user. For an event they are known even without their group of fields.
    pub fn users(&self) -> Option<(u32, u32)> {
        match self.event {
            Some(Event::Exit(exit, _)) => Some((exit.uid, exit.euid)),
            Some(Event::Exec(exec)) => Some((exec.uid, exec.euid)),
            None => self.process.users().map(|of| (of.uid, of.euid)),
        }
    }

    /// Real and effective group. For an exit they are known even without their group of fields.
    pub fn groups(&self) -> Option<(u32, u32)> {
        match self.event {
            Some(Event::Exit(exit, _)) => Some((exit.gid, exit.egid)),
            _ => self.process.users().map(|of| (of.gid, of.egid)),
        }
    }

    /// Process id and thread id: they order rows that are otherwise equal.
    pub fn ids(&self) -> (u32, u32) {
        (self.process.pid(), self.tid())
    }

    /// Thread id; for a process that of its leading thread, which equals the process id.
    pub fn tid(&self) -> u32 {
        self.thread.map_or(self.process.pid(), |thread| thread.tid)
    }

    /// Start time after boot.
    pub fn start_ns(&self) -> u64 {
        self.thread
            .map_or(self.process.identity().start_ns, |thread| thread.start_ns)
    }

    /// User and system time, in nanoseconds.
    pub fn cpu_times(&self) -> Option<(u64, u64)> {
        match self.thread {
            Some(thread) => Some((thread.utime_ns, thread.stime_ns)),
            None => self.process.cpu().map(|cpu| (cpu.utime_ns, cpu.stime_ns)),
        }
    }

    /// Time of waiting for a CPU, in nanoseconds, if known.
    pub fn run_delay_ns(&self) -> Option<u64> {
        match self.thread {
            Some(thread) => thread.run_delay_ns(),
            None => self.process.cpu()?.run_delay_ns(),
        }
    }

    /// How often it got a CPU, if known.
    pub fn timeslices(&self) -> Option<u64> {
        match self.thread {
            Some(thread) => thread.timeslices(),
            None => self.process.cpu()?.timeslices(),
        }
    }

    /// The state.
    pub fn state(&self) -> State {
        self.thread.map_or(self.process.state(), |thread| {
            State::from_bits(thread.state_bits)
        })
    }

    /// The I/O counters. Those of a thread are known if those of its process are.
    pub fn io(&self) -> Option<&'a Io> {
        let of_process = self.process.io()?;
        Some(self.thread.map_or(of_process, |thread| &thread.io))
    }

    /// Its delay accounting, if the reader may see it.
    pub fn delays(&self) -> Option<&'a Delays> {
        let of_process = self.process.delays()?;
        Some(self.thread.map_or(of_process, |thread| &thread.delays))
    }

    /// The thread, unless it is the leading one, which has the name of the process.
    pub fn other_thread(&self) -> Option<&'a ThreadRecord> {
        self.thread.filter(|thread| thread.tid != thread.tgid)
    }
}

/// Values that are not in the record.
#[derive(Debug)]
pub struct Lookup {
    /// The machine.
    pub host: Host,
    /// Memory of the machine, or what lxcfs shows as that in a container, in bytes; 0 if it is unknown.
    pub total_memory: u64,
    /// Command lines, programs, cgroups.
    pub details: Details,
    /// Names of terminals.
    pub(crate) terminals: Terminals,
    /// Names of containers and pods.
    pub containers: ContainerNames,
    /// Names of users.
    pub users: Names,
    /// Names of groups.
    pub groups: Names,
    /// The limits of cgroups.
    pub(crate) limits: Limits,
    /// What processes have open.
    pub open_files: OpenFiles,
    /// Buffer for a text.
    pub(crate) text: Vec<u8>,
    /// Buffer for numbers.
    pub(crate) numbers: Vec<u32>,
    /// Buffer for values that a filter compares.
    pub(crate) scratch: Vec<u8>,
    /// Time of the snapshot, since boot of the machine instead of the start of this time namespace. No process can have
    /// run for longer.
    pub now_ns: u64,
    /// Seconds of the calendar at boot, rounded down as `btime` of `/proc/stat` is.
    pub(crate) boot_seconds: i64,
    /// Time of boot, in nanoseconds of the calendar.
    boot_ns: i128,
    /// Whether the kernel would show this reader everything, so that nothing must be hidden.
    pub sees_all: bool,
    /// The fields whose values are not known, because a history does not keep them.
    pub lacks: Option<&'static HashSet<&'static str>>,
    /// Whether its values are recorded ones, which this machine's clock does not change.
    is_recorded: bool,
    /// Whether the kernel shows this reader the guarded values, or the I/O counters, of this process. Cached, because a
    /// row has several of them.
    shown: Option<((u32, u64, bool), bool)>,
}

impl Lookup {
    /// Creates a lookup for snapshots of this machine.
    pub fn new(host: &Host, sees_all: bool) -> Result<Self, fastproc::Error> {
        Ok(Self {
            host: host.clone(),
            total_memory: fastproc::host::total_memory().unwrap_or(0),
            terminals: Terminals::default(),
            details: Details::open(host)?,
            containers: ContainerNames::default(),
            users: Names::users(),
            groups: Names::groups(),
            limits: Limits::default(),
            open_files: OpenFiles::default(),
            text: Vec::new(),
            numbers: Vec::new(),
            scratch: Vec::new(),
            now_ns: 0,
            boot_seconds: 0,
            boot_ns: 0,
            sees_all,
            lacks: None,
            is_recorded: false,
            shown: None,
        })
    }

    /// Creates a lookup for recorded snapshots: it does not query this machine, and shows everything that was recorded.
    pub fn recorded(host: Host, total_memory: u64) -> Self {
        Self {
            host,
            total_memory,
            terminals: Terminals::recorded(),
            details: Details::recorded(),
            containers: ContainerNames::recorded(),
            users: Names::recorded(),
            groups: Names::recorded(),
            limits: Limits::recorded(),
            open_files: OpenFiles::recorded(),
            text: Vec::new(),
            numbers: Vec::new(),
            scratch: Vec::new(),
            now_ns: 0,
            boot_seconds: 0,
            boot_ns: 0,
            sees_all: true,
            lacks: None,
            is_recorded: true,
            shown: None,
        }
    }

    /// Whether the kernel shows this reader the values of a process that it hides from others: its I/O counters if
    /// `io`, else the other guarded ones.
    pub(crate) fn shows(&mut self, row: &Row<'_>, io: bool) -> bool {
        let process = row.process;
        let asked = (process.pid(), process.identity().start_ns, io);
        match self.shown {
            // Events of one process may be far apart.
            Some((of, shown)) if of == asked && row.event.is_none() => shown,
            _ => {
                let shown = if io {
                    self.details.may_read_io(process)
                } else {
                    self.details.may_trace(process)
                };
                self.shown = Some((asked, shown));
                shown
            }
        }
    }

    /// Uses this snapshot: sets the clock to its time, and discards cached details. A lookup of recorded values keeps both.
    pub fn set_clock(&mut self, snapshot: &Snapshot<'_>) {
        if self.is_recorded {
            return;
        }
        self.details.renew();
        if snapshot.stats().lost_exits > 0 {
            self.details.forget_earlier_cmdlines();
        }
        self.terminals.renew();
        self.set_time(snapshot.stats().kernel_end_ns());
    }

    /// Sets the clock to this time after boot.
    pub fn set_time(&mut self, now_ns: u64) {
        use rustix::time::ClockId;
        // A screen may be drawn several times from one snapshot.
        if self.now_ns != now_ns {
            self.limits.renew();
            self.open_files.renew();
        }
        self.now_ns = now_ns;
        self.shown = None;
        let ns = |id| {
            let time = frozen::clock(id);
            i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
        };
        // This thread may be preempted between two readings, so take the best of several tries.
        let tries = (0..8).map(|_| {
            let before = ns(ClockId::Boottime);
            let calendar = ns(ClockId::Realtime);
            let took = ns(ClockId::Boottime) - before;
            (took, calendar - (before + took / 2))
        });
        let mut best = (i128::MAX, 0);
        for one in tries {
            best = best.min(one);
            if best.0 < 2_000 {
                break;
            }
        }
        self.set_boot_ns(best.1 + i128::from(self.host.boot_offset_ns));
    }

    /// Sets when a recorded machine was booted, in microseconds since 1970.
    pub fn set_boot_time(&mut self, time: i64) {
        self.set_boot_ns(i128::from(time) * 1_000);
    }

    fn set_boot_ns(&mut self, boot_ns: i128) {
        self.boot_ns = boot_ns;
        self.boot_seconds = boot_ns.div_euclid(1_000_000_000) as i64;
    }

    /// Converts a time after boot, which counts as start times do, to nanoseconds of the calendar.
    pub fn calendar_ns(&self, since_boot_ns: u64) -> i64 {
        (self.boot_ns + i128::from(since_boot_ns)) as i64
    }

    /// CPU time divided by the time since `start_ns`.
    pub fn share_since(&self, start_ns: u64, cpu_ns: u64) -> f64 {
        // As in ps: a process that has just started has used nothing yet.
        let lifetime = self.now_ns.saturating_sub(start_ns);
        if lifetime == 0 {
            0.0
        } else {
            cpu_ns as f64 / lifetime as f64
        }
    }
}
