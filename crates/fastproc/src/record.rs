//! The records: plain data that the kernel side writes and readers borrow.
//!
//! These structures mirror `bpf/record.h`, member by member. Their sizes and offsets are asserted here at compile
//! time, and against the BPF object's own type information when it is loaded, so the two sides cannot drift apart.
//!
//! Sizes are in bytes and times in nanoseconds, whatever unit the kernel counts in. A record holds values as the
//! kernel's own `/proc` files show them, at the kernel's own precision; a record that was parsed from those files has
//! the files' precision (a clock tick for CPU times, a KiB or a page for sizes).

use core::fmt;

/// Highest number of bytes in a process name (`proc_task_name()` formats into 64 bytes, the last of them a NUL).
pub const NAME_LEN: usize = 64;

/// Who a process is and what it is doing. Always present.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Start time after boot, in nanoseconds (`task->start_boottime`); `starttime` of `/proc/PID/stat`.
    pub start_ns: u64,
    /// Process id, in the initial pid namespace (`task->tgid`).
    pub tgid: u32,
    /// Parent's process id (`real_parent->tgid`).
    pub ppid: u32,
    /// Process group.
    pub pgrp: u32,
    /// Session.
    pub session: u32,
    /// Process that traces this one by ptrace(2), or 0.
    pub tracer_pid: u32,
    /// Kernel flags, `PF_*` (`task->flags`).
    pub flags: u32,
    /// Controlling terminal as a device number (`new_encode_dev()`), or 0.
    pub tty_nr: i32,
    /// Foreground process group of that terminal, or -1.
    pub tpgid: i32,
    /// Threads (`signal->nr_threads`).
    pub num_threads: u32,
    /// Signal sent to the parent on exit (`task->exit_signal`).
    pub exit_signal: i32,
    /// Exit status as waitpid(2) shows it. See [`Process::exit_code`](crate::Process::exit_code) for whether the
    /// reader may know.
    pub exit_code: i32,
    /// Report bits of the state; only the highest counts. See [`Identity::state`].
    pub state_bits: u32,
    /// The groups that this record holds, as the bits of [`Fields`](crate::Fields).
    pub groups: u32,
    /// What was replaced while it was being read; such a record is never shown, but read again from `/proc`.
    pub torn: u32,
    /// Threads whose times are folded in, the leader included.
    pub seen_threads: u32,
    /// 1 if the process has one thread and that is not running: the kernel's answer to "is there a wait channel".
    pub wchan: u8,
    /// 1 if the process has memory of its own; kernel threads and zombies have none.
    pub has_mm: u8,
    /// 1 while the process writes a core dump.
    pub core_dumping: u8,
    /// 1 if the kernel hid from this reader what only ptrace access shows (a record parsed from `/proc`).
    pub masked: u8,
    /// Command name, NUL padded (`task->comm`).
    pub comm: [u8; 16],
}

/// State of a process or thread, as `/proc` prints it (`task_state_array[]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// `R`: running or ready to run.
    Running,
    /// `S`: in an interruptible sleep.
    Sleeping,
    /// `D`: in an uninterruptible sleep.
    DiskSleep,
    /// `T`: stopped by a signal.
    Stopped,
    /// `t`: stopped by a tracer.
    TracingStop,
    /// `X`: dead.
    Dead,
    /// `Z`: a zombie, not yet waited for.
    Zombie,
    /// `P`: parked.
    Parked,
    /// `I`: an idle kernel thread.
    Idle,
}

impl State {
    const ALL: [Self; 9] = [
        Self::Running,
        Self::Sleeping,
        Self::DiskSleep,
        Self::Stopped,
        Self::TracingStop,
        Self::Dead,
        Self::Zombie,
        Self::Parked,
        Self::Idle,
    ];

    /// The state for these report bits: the highest of them counts.
    pub const fn from_bits(bits: u32) -> Self {
        let index = (u32::BITS - (bits & 0xff).leading_zeros()) as usize;
        Self::ALL[index]
    }

    /// The report bit of this state.
    pub const fn bits(self) -> u32 {
        (1 << self as u32) >> 1
    }

    /// The state for this letter of `/proc/PID/stat`.
    pub const fn from_letter(letter: u8) -> Option<Self> {
        Some(match letter {
            b'R' => Self::Running,
            b'S' => Self::Sleeping,
            b'D' => Self::DiskSleep,
            b'T' => Self::Stopped,
            b't' => Self::TracingStop,
            b'X' => Self::Dead,
            b'Z' => Self::Zombie,
            b'P' => Self::Parked,
            b'I' => Self::Idle,
            _ => return None,
        })
    }

    /// The letter that `/proc/PID/stat` and `ps` show.
    pub const fn letter(self) -> u8 {
        self.name().as_bytes()[0]
    }

    /// The words of the `State:` line of `/proc/PID/status`, as in `S (sleeping)`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "R (running)",
            Self::Sleeping => "S (sleeping)",
            Self::DiskSleep => "D (disk sleep)",
            Self::Stopped => "T (stopped)",
            Self::TracingStop => "t (tracing stop)",
            Self::Dead => "X (dead)",
            Self::Zombie => "Z (zombie)",
            Self::Parked => "P (parked)",
            Self::Idle => "I (idle)",
        }
    }
}

impl Identity {
    /// State of the process, that is of its leading thread.
    pub const fn state(&self) -> State {
        State::from_bits(self.state_bits)
    }

    /// Whether this is a kernel thread (`PF_KTHREAD`).
    pub const fn is_kernel_thread(&self) -> bool {
        self.flags & 0x0020_0000 != 0
    }
}

/// CPU time and faults, of all threads together, dead ones included, as the kernel folds them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Time in user mode, scaled to the precise run time as the kernel does (`cputime_adjust()`).
    pub utime_ns: u64,
    /// Time in kernel mode, scaled likewise.
    pub stime_ns: u64,
    /// Guest time: time spent running a virtual CPU; also part of `utime_ns`.
    pub gtime_ns: u64,
    /// User time of children that were waited for.
    pub cutime_ns: u64,
    /// System time of children that were waited for.
    pub cstime_ns: u64,
    /// Guest time of children that were waited for.
    pub cgtime_ns: u64,
    /// Page faults that needed no I/O.
    pub minflt: u64,
    /// Page faults that needed I/O.
    pub majflt: u64,
    /// Minor faults of children that were waited for.
    pub cminflt: u64,
    /// Major faults of children that were waited for.
    pub cmajflt: u64,
    /// Voluntary context switches of the leading thread, as in `/proc/PID/status`.
    pub nvcsw: u64,
    /// Involuntary context switches of the leading thread.
    pub nivcsw: u64,
    /// Precise run time (`se.sum_exec_runtime`); 0 in a record parsed from `/proc`.
    pub sum_exec_ns: u64,
    /// User time as sampled by ticks, before scaling.
    pub sampled_utime_ns: u64,
    /// System time as sampled by ticks, before scaling.
    pub sampled_stime_ns: u64,
    /// User time that the kernel last showed to anybody (`signal->prev_cputime`).
    pub prev_utime_ns: u64,
    /// System time that the kernel last showed to anybody.
    pub prev_stime_ns: u64,
}

/// Memory, as in `/proc/PID/statm` and the `Vm` lines of `/proc/PID/status`. All in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Virtual size (`mm->total_vm`): `VmSize`, `vsize` of stat, `size` of statm.
    pub vsize: u64,
    /// Resident set as stat shows it: without what the CPUs have not yet folded in, so up to some MiB off.
    pub rss_approx: u64,
    /// Resident anonymous memory: `RssAnon`.
    pub rss_anon: u64,
    /// Resident file mappings: `RssFile`.
    pub rss_file: u64,
    /// Resident shared memory (tmpfs, System V, shared anonymous): `RssShmem`.
    pub rss_shmem: u64,
    /// Swapped out: `VmSwap`.
    pub swap: u64,
    /// Largest virtual size so far: `VmPeak`.
    pub peak_vsize: u64,
    /// Largest resident set so far: `VmHWM`.
    pub peak_rss: u64,
    /// Locked by mlock(2): `VmLck`.
    pub locked: u64,
    /// Pinned, so that it cannot be moved: `VmPin`.
    pub pinned: u64,
    /// Data: `VmData`.
    pub data: u64,
    /// Stack: `VmStk`.
    pub stack: u64,
    /// Text, no more than there is executable memory: `VmExe`.
    pub exe: u64,
    /// The rest of the executable memory: `VmLib`.
    pub lib: u64,
    /// Text, from first to last page: `trs` of statm.
    pub text: u64,
}

impl Memory {
    /// Resident set, exact where the kernel's own statm is: `VmRSS`, `resident` of statm.
    pub const fn rss(&self) -> u64 {
        self.rss_anon + self.rss_file + self.rss_shmem
    }

    /// Resident memory that is not private by nature: `shared` of statm.
    pub const fn shared(&self) -> u64 {
        self.rss_file + self.rss_shmem
    }
}

/// What else is known of the memory of a process, and a `top` does not show.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryDetails {
    /// Page tables: `VmPTE`.
    pub page_tables: u64,
    /// Huge pages of hugetlbfs: `HugetlbPages`.
    pub hugetlb: u64,
    /// `mm->flags`.
    pub mm_flags: u64,
    /// Mask that removes an address's tag (`mm->context.untag_mask`, x86): `untag_mask`.
    pub untag_mask: u64,
}

/// Where things lie in the address space. The kernel shows these only to readers with ptrace access.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the names are those of proc(5), each an address"
)]
pub struct Layout {
    pub start_code: u64,
    pub end_code: u64,
    pub start_stack: u64,
    /// Stack pointer of a dying or dumping process, else 0.
    pub kstkesp: u64,
    /// Instruction pointer of a dying or dumping process, else 0.
    pub kstkeip: u64,
    pub start_data: u64,
    pub end_data: u64,
    pub start_brk: u64,
    pub arg_start: u64,
    pub arg_end: u64,
    pub env_start: u64,
    pub env_end: u64,
}

/// Credentials, the objective ones (`task->real_cred`), and what else bounds what the process may do.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of credentials(7)")]
pub struct Credentials {
    pub uid: u32,
    pub euid: u32,
    pub suid: u32,
    pub fsuid: u32,
    pub gid: u32,
    pub egid: u32,
    pub sgid: u32,
    pub fsgid: u32,
    pub cap_inheritable: u64,
    pub cap_permitted: u64,
    pub cap_effective: u64,
    pub cap_bounding: u64,
    pub cap_ambient: u64,
    /// `task->atomic_flags`: bit 0 `no_new_privs`, bits 3 to 7 speculation control.
    pub atomic_flags: u64,
    /// Inode number of the user namespace; 0 if not known.
    pub user_ns: u32,
    /// 0 off, 1 strict, 2 filter.
    pub seccomp_mode: u32,
    pub seccomp_filters: u32,
    /// File mode creation mask; -1 if the process has none any more.
    pub umask: i32,
    /// Number of supplementary groups. See [`Process::supplementary_groups`](crate::Process::supplementary_groups).
    pub ngroups: u32,
    /// Where they stand in the pool.
    pub groups_at: u32,
    /// `ARCH_SHSTK_*` bits of the leading thread (`task->thread.features`, x86): bit 0 it has a shadow stack, bit 1 it may
    /// write to it. `x86_Thread_features`.
    pub thread_features: u64,
    /// Those that are locked: `x86_Thread_features_locked`.
    pub thread_features_locked: u64,
}

impl Credentials {
    /// `NoNewPrivs`: execve(2) grants nothing any more.
    pub const fn no_new_privs(&self) -> bool {
        self.atomic_flags & 1 != 0
    }
}

/// Signal sets; bit n-1 stands for signal n.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Pending for the leading thread: `SigPnd`.
    pub pending: u64,
    /// Pending for the process: `ShdPnd`.
    pub shared_pending: u64,
    /// Blocked by the leading thread: `SigBlk`.
    pub blocked: u64,
    /// Ignored: `SigIgn`.
    pub ignored: u64,
    /// Caught: `SigCgt`.
    pub caught: u64,
    /// Signals queued by the process's user, over all its processes: `SigQ`, the first number.
    pub queued: u64,
    /// Their limit (`RLIMIT_SIGPENDING`): `SigQ`, the second number.
    pub queue_limit: u64,
    /// Context switches of the process when `ignored` and `caught` were read, or `u64::MAX`.
    pub switches: u64,
}

/// Pid namespaces.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Namespaces {
    /// How many pid namespaces below the initial one the process is.
    pub level: u32,
    /// Where its ids in them stand in the pool. See [`Process::nested_ids`](crate::Process::nested_ids).
    pub ids_at: u32,
}

/// Scheduling, of the leading thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Kernel priority as stat shows it: 20 plus nice, or minus one minus the real-time priority.
    pub priority: i32,
    /// Nice value, -20 to 19.
    pub nice: i32,
    /// Real-time priority, 1 to 99, or 0.
    pub rt_priority: u32,
    /// `SCHED_*`.
    pub policy: u32,
    /// CPU that it last ran on.
    pub processor: u32,
    /// NUMA group, or 0.
    pub ngid: u32,
    /// CPUs 0 to 63 of the allowed ones. See [`Process::cpus_allowed`](crate::Process::cpus_allowed) for all.
    pub cpus_allowed: u64,
    /// Memory nodes 0 to 63 of the allowed ones. See [`Process::mems_allowed`](crate::Process::mems_allowed).
    pub mems_allowed: u64,
    /// Time waited for block I/O (`delays->blkio_delay`; counts only with delay accounting on).
    pub blkio_ns: u64,
    /// Where all of the first stand in the pool, on a machine with more than 64.
    pub cpus_at: u32,
    /// Where all of the second stand in the pool, on a machine with more than 64.
    pub mems_at: u32,
}

/// Limits that `/proc/PID/stat` and `status` show.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// `RLIMIT_RSS` in bytes, `u64::MAX` for none: `rsslim`.
    pub rss_limit: u64,
    /// Descriptor slots allocated: `FDSize`.
    pub fd_size: u32,
    /// Not used.
    pub reserved: u32,
}

/// I/O counters, of all threads together, as in `/proc/PID/io`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes that read(2) and the like returned.
    pub rchar: u64,
    /// Bytes that write(2) and the like took.
    pub wchar: u64,
    /// Read calls.
    pub syscr: u64,
    /// Write calls.
    pub syscw: u64,
    /// Bytes fetched from storage.
    pub read_bytes: u64,
    /// Bytes sent to storage.
    pub write_bytes: u64,
    /// Bytes that were not written after all, because the file was truncated.
    pub cancelled_write_bytes: u64,
}

/// How the name of a process is known. Not meant to be read as it is: see [`Process::name`](crate::Process::name).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct NameParts {
    /// 0: `comm` is the name; 1: `text` is; 2: a workqueue worker, put together from the parts.
    pub kind: u32,
    /// `FP_WORKER_*`.
    pub worker_flags: u32,
    /// `worker->id`.
    pub worker_id: i32,
    /// `worker_pool->id`.
    pub pool_id: i32,
    /// `worker_pool->cpu`, -1 for an unbound pool.
    pub pool_cpu: i32,
    /// Not used.
    pub reserved: u32,
    /// The full name, NUL terminated; or for a worker its description, and from byte 32 the queue it rescues.
    pub text: [u8; NAME_LEN],
}

impl Default for NameParts {
    fn default() -> Self {
        Self {
            kind: 0,
            worker_flags: 0,
            worker_id: 0,
            pool_id: 0,
            pool_cpu: 0,
            reserved: 0,
            text: [0; NAME_LEN],
        }
    }
}

impl fmt::Debug for NameParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NameParts")
            .field("kind", &self.kind)
            .field("worker_flags", &self.worker_flags)
            .field("text", &self.text.escape_ascii().to_string())
            .finish_non_exhaustive()
    }
}

/// One process. Only the groups that `identity.groups` names hold anything.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each member's type says what it is")]
pub struct Record {
    pub identity: Identity,
    pub cpu: Cpu,
    pub memory: Memory,
    pub memory_details: MemoryDetails,
    pub layout: Layout,
    pub credentials: Credentials,
    pub signals: Signals,
    pub namespaces: Namespaces,
    pub scheduling: Scheduling,
    pub limits: Limits,
    pub io: Io,
    /// Id of the cgroup in the default hierarchy (`kernfs_node.id`, which is the inode number of its folder).
    pub cgroup_id: u64,
    pub name: NameParts,
}

/// One thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadRecord {
    /// Start time after boot, in nanoseconds.
    pub start_ns: u64,
    /// Time in user mode, scaled as the kernel does.
    pub utime_ns: u64,
    /// Time in kernel mode, scaled as the kernel does.
    pub stime_ns: u64,
    /// Guest time.
    pub gtime_ns: u64,
    /// Page faults that needed no I/O.
    pub minflt: u64,
    /// Page faults that needed I/O.
    pub majflt: u64,
    /// Voluntary context switches.
    pub nvcsw: u64,
    /// Involuntary context switches.
    pub nivcsw: u64,
    /// Precise run time; 0 in a record parsed from `/proc`.
    pub sum_exec_ns: u64,
    /// User time as sampled by ticks.
    pub sampled_utime_ns: u64,
    /// System time as sampled by ticks.
    pub sampled_stime_ns: u64,
    /// User time that the kernel last showed.
    pub prev_utime_ns: u64,
    /// System time that the kernel last showed.
    pub prev_stime_ns: u64,
    /// I/O counters of this thread.
    pub io: Io,
    /// Thread id.
    pub tid: u32,
    /// Process that the thread belongs to.
    pub tgid: u32,
    /// Report bits of the state. See [`State::from_bits`].
    pub state_bits: u32,
    /// Kernel flags, `PF_*`.
    pub flags: u32,
    /// Kernel priority.
    pub priority: i32,
    /// Nice value.
    pub nice: i32,
    /// Real-time priority.
    pub rt_priority: u32,
    /// `SCHED_*`.
    pub policy: u32,
    /// CPU that it last ran on.
    pub processor: u32,
    /// Not used.
    pub reserved: u32,
    /// Name of the thread, NUL padded.
    pub comm: [u8; 16],
}

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<Identity>() == 88);
    assert!(size_of::<Cpu>() == 136);
    assert!(size_of::<Memory>() == 120);
    assert!(size_of::<MemoryDetails>() == 32);
    assert!(size_of::<Layout>() == 96);
    assert!(size_of::<Credentials>() == 120);
    assert!(size_of::<Signals>() == 64);
    assert!(size_of::<Namespaces>() == 8);
    assert!(size_of::<Scheduling>() == 56);
    assert!(size_of::<Limits>() == 16);
    assert!(size_of::<Io>() == 56);
    assert!(size_of::<NameParts>() == 88);
    assert!(offset_of!(Record, cpu) == 88);
    assert!(offset_of!(Record, io) == 736);
    assert!(size_of::<Record>() == 888);
    assert!(size_of::<ThreadRecord>() == 216);
};
