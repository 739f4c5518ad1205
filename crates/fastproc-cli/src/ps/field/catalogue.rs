//! Every field: its names, what it is taken from, what it means.

use fastproc::{Fields, Process};

use super::{Field, Get};
use crate::ps::{
    number,
    subject::{Lookup, Subject},
    value::{
        Unit,
        Value::{self, Real, Signed, Truth, Unknown, Unsigned},
    },
};

/// A value of one group of the process: `of!(memory, m => Unsigned(m.rss()))`.
macro_rules! of {
    ($group:ident, $part:ident => $value:expr) => {
        |subject, _| Value::known(subject.process.$group(), |$part| $value)
    };
}

/// A value of the thread if the row is about one, else of the process: `either!(cpu.minflt)`.
macro_rules! either {
    ($group:ident . $member:ident) => {
        |subject, _| match subject.thread {
            Some(thread) => thread.$member.into(),
            None => Value::known(subject.process.$group(), |group| group.$member.into()),
        }
    };
}

/// A rate since the last snapshot.
macro_rules! rate {
    ($member:ident) => {
        |subject, _| Value::known(subject.change.and_then(|change| change.$member), Real)
    };
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Unsigned(number)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Unsigned(number.into())
    }
}

impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Signed(number.into())
    }
}

/// All fields, in the order of the help.
#[rustfmt::skip]
pub static FIELDS: &[Field] = &[
    // Who it is
    identity("pid", Unit::Number, "process id", |s, _| s.process.pid().into()).also(&["tgid"]),
    identity("tid", Unit::Number, "thread id", |s, _| s.tid().into()).also(&["lwp", "spid"]).of_thread(),
    identity("ppid", Unit::Number, "process id of the parent", |s, _| s.process.identity().ppid.into()),
    identity("pgrp", Unit::Number, "process group", |s, _| s.process.identity().pgrp.into()).also(&["pgid"]),
    identity("session", Unit::Number, "session", |s, _| s.process.identity().session.into()).also(&["sid", "sess"]),
    identity("tracer_pid", Unit::Number, "process that traces this one, or 0", |s, _| s.process.identity().tracer_pid.into())
        .also(&["tracerpid"])
        .heading("TRACER"),
    identity("tty", Unit::Text, "controlling terminal, or ?", terminal).also(&["tt", "tname"]),
    identity("tty_nr", Unit::Number, "controlling terminal as a device number, or 0", |s, _| s.process.identity().tty_nr.into()),
    identity("tpgid", Unit::Number, "foreground process group of the terminal, or -1", |s, _| s.process.identity().tpgid.into()),
    identity("comm", Unit::Text, "name; of a kernel worker also what it works on", name).also(&["name", "ucmd", "ucomm"]).of_thread(),
    identity("cmdline", Unit::Text, "command line, 128 KiB at most; without one, a table has the name in brackets", command_line)
        .also(&["args", "cmd", "command"]),
    identity("exe", Unit::Text, "path of the program", |s, lookup| lookup.details.exe(s.process).map_or(Unknown, Value::Text)).guarded(),
    // What it is doing
    identity("state", Unit::Text, "state, a letter as in proc(5)", |s, _| Value::Text(&s.state().name().as_bytes()[..1]))
        .also(&["s"])
        .heading("S")
        .of_thread(),
    identity("stat", Unit::Text, "state, and as in ps(1): < N L s l +", state_as_in_ps)
        .needs(Fields::SCHEDULING.union(Fields::MEMORY))
        .of_thread(),
    identity("flags", Unit::Flags, "kernel flags PF_*", |s, _| {
        s.thread.map_or(s.process.identity().flags, |thread| thread.flags).into()
    })
    .also(&["f", "flag"])
    .heading("F")
    .of_thread(),
    identity("kthread", Unit::Truth, "whether it is a kernel thread", |s, _| Truth(s.process.identity().is_kernel_thread())),
    identity("num_threads", Unit::Number, "threads", |s, _| s.process.identity().num_threads.into())
        .also(&["threads", "nlwp", "thcount"])
        .heading("THR"),
    identity("exit_signal", Unit::Number, "signal sent to the parent on exit", |s, _| s.process.identity().exit_signal.into()),
    identity("exit_code", Unit::Number, "exit status as waitpid(2) shows it", |s, _| Value::known(s.process.exit_code(), Into::into))
        .guarded(),
    identity("wchan", Unit::Number, "1 if it waits in the kernel and has one thread", |s, _| {
        let identity = s.process.identity();
        if identity.masked == 0 { u32::from(identity.wchan).into() } else { Unknown }
    })
    .guarded(),
    identity("coredumping", Unit::Truth, "whether it writes a core dump", |s, _| Truth(s.process.identity().core_dumping != 0)),
    identity("starttime", Unit::Time, "when it started, since boot", |s, lookup| {
        s.start_ns().saturating_add_signed(lookup.host.boot_offset_ns).into()
    })
    .also(&["start", "start_time"])
    .of_thread(),
    identity("lstart", Unit::Date, "when it started, by the calendar", |s, lookup| {
        Signed((lookup.boot_seconds + s.start_ns() as f64 / 1e9).floor() as i64)
    })
    .heading("STARTED")
    .of_thread(),
    identity("etime", Unit::Time, "time since it started", |s, lookup| lookup.now_ns.saturating_sub(s.start_ns()).into())
        .also(&["etimes", "elapsed"])
        .heading("ELAPSED")
        .of_thread(),
    // CPU time and faults
    cpu("pcpu", Unit::Percent, "CPU time used, in % of one CPU: over its lifetime, or the interval", |s, lookup| match s.change {
        Some(change) => Value::known(change.cpu_share, |share| Real(share * 100.0)),
        None => Value::known(s.cpu_times(), |(user, system)| lifetime_share(s, lookup, user.saturating_add(system))),
    })
    .also(&["%cpu", "cpu"])
    .heading("%CPU")
    .of_thread(),
    cpu("pcpu_user", Unit::Percent, "the part of it in user mode", |s, lookup| match s.change {
        Some(change) => Value::known(change.user_share, |share| Real(share * 100.0)),
        None => Value::known(s.cpu_times(), |(user, _)| lifetime_share(s, lookup, user)),
    })
    .heading("%USER")
    .of_thread(),
    cpu("pcpu_system", Unit::Percent, "the part of it in kernel mode", |s, lookup| match s.change {
        Some(change) => Value::known(change.system_share, |share| Real(share * 100.0)),
        None => Value::known(s.cpu_times(), |(_, system)| lifetime_share(s, lookup, system)),
    })
    .heading("%SYS")
    .of_thread(),
    cpu("time", Unit::Time, "CPU time in user and kernel mode", |s, _| {
        Value::known(s.cpu_times(), |(user, system)| Unsigned(user.saturating_add(system)))
    })
    .also(&["cputime", "times"])
    .of_thread(),
    cpu("utime", Unit::Time, "CPU time in user mode", |s, _| Value::known(s.cpu_times(), |(user, _)| Unsigned(user))).of_thread(),
    cpu("stime", Unit::Time, "CPU time in kernel mode", |s, _| Value::known(s.cpu_times(), |(_, system)| Unsigned(system))).of_thread(),
    cpu("guest_time", Unit::Time, "time spent running a virtual CPU; also part of utime", either!(cpu.gtime_ns))
        .also(&["gtime"])
        .of_thread(),
    cpu("cutime", Unit::Time, "user time of children that were waited for", of!(cpu, c => Unsigned(c.cutime_ns))),
    cpu("cstime", Unit::Time, "system time of children that were waited for", of!(cpu, c => Unsigned(c.cstime_ns))),
    cpu("cguest_time", Unit::Time, "guest time of children that were waited for", of!(cpu, c => Unsigned(c.cgtime_ns))).also(&["cgtime"]),
    cpu("minflt", Unit::Number, "page faults that needed no I/O", either!(cpu.minflt)).also(&["min_flt"]).of_thread(),
    cpu("majflt", Unit::Number, "page faults that needed I/O", either!(cpu.majflt)).also(&["maj_flt"]).of_thread(),
    cpu("cminflt", Unit::Number, "minor faults of children that were waited for", of!(cpu, c => c.cminflt.into())),
    cpu("cmajflt", Unit::Number, "major faults of children that were waited for", of!(cpu, c => c.cmajflt.into())),
    cpu("minflt_per_second", Unit::PerSecond, "with --interval: the rate of minflt", rate!(minflt_per_second))
        .also(&["minflt/s"])
        .heading("MINFLT/S")
        .of_thread(),
    cpu("majflt_per_second", Unit::PerSecond, "with --interval: the rate of majflt", rate!(majflt_per_second))
        .also(&["majflt/s"])
        .heading("MAJFLT/S")
        .of_thread(),
    cpu("nvcsw", Unit::Number, "voluntary context switches of the leading thread", either!(cpu.nvcsw))
        .also(&["voluntary_ctxt_switches"])
        .of_thread(),
    cpu("nivcsw", Unit::Number, "involuntary context switches of the leading thread", either!(cpu.nivcsw))
        .also(&["nonvoluntary_ctxt_switches"])
        .of_thread(),
    // Memory
    memory("rss", Unit::Bytes, "resident memory", of!(memory, m => Unsigned(m.rss()))).also(&["vmrss", "rssize", "rsz"]),
    memory("pmem", Unit::Percent, "resident memory, in % of the machine's", |s, lookup| {
        let total = lookup.total_memory.max(1) as f64;
        Value::known(s.process.memory(), |memory| Real(memory.rss() as f64 / total * 100.0))
    })
    .also(&["%mem", "mem"])
    .heading("%MEM"),
    memory("vsize", Unit::Bytes, "virtual size", of!(memory, m => Unsigned(m.vsize))).also(&["vsz", "vmsize", "size"]),
    memory("shr", Unit::Bytes, "resident file mappings and shared memory", of!(memory, m => Unsigned(m.shared()))).also(&["shared"]),
    memory("rssanon", Unit::Bytes, "resident anonymous memory", of!(memory, m => Unsigned(m.rss_anon))),
    memory("rssfile", Unit::Bytes, "resident file mappings", of!(memory, m => Unsigned(m.rss_file))),
    memory("rssshmem", Unit::Bytes, "resident shared memory", of!(memory, m => Unsigned(m.rss_shmem))),
    memory("vmswap", Unit::Bytes, "memory swapped out", of!(memory, m => Unsigned(m.swap))).also(&["swap"]),
    memory("vmpeak", Unit::Bytes, "largest virtual size so far", of!(memory, m => Unsigned(m.peak_vsize))),
    memory("vmhwm", Unit::Bytes, "largest resident memory so far", of!(memory, m => Unsigned(m.peak_rss))).also(&["maxrss"]),
    memory("vmlck", Unit::Bytes, "memory locked by mlock(2)", of!(memory, m => Unsigned(m.locked))),
    memory("vmpin", Unit::Bytes, "memory pinned, so that it cannot be moved", of!(memory, m => Unsigned(m.pinned))),
    memory("vmdata", Unit::Bytes, "data", of!(memory, m => Unsigned(m.data))).also(&["drs"]),
    memory("vmstk", Unit::Bytes, "stack", of!(memory, m => Unsigned(m.stack))),
    memory("vmexe", Unit::Bytes, "text", of!(memory, m => Unsigned(m.exe))),
    memory("vmlib", Unit::Bytes, "executable memory that is not text", of!(memory, m => Unsigned(m.lib))),
    memory("trs", Unit::Bytes, "text, from its first page to its last", of!(memory, m => Unsigned(m.text))),
    memory_details("vmpte", Unit::Bytes, "page tables", of!(memory_details, m => Unsigned(m.page_tables))),
    memory_details("hugetlbpages", Unit::Bytes, "huge pages of hugetlbfs", of!(memory_details, m => Unsigned(m.hugetlb))).heading("HUGETLB"),
    // Input and output
    io("read_bytes", Unit::Bytes, "bytes fetched from storage", |s, _| Value::known(s.io(), |io| Unsigned(io.read_bytes))).heading("READ"),
    io("write_bytes", Unit::Bytes, "bytes sent to storage", |s, _| Value::known(s.io(), |io| Unsigned(io.write_bytes))).heading("WRITTEN"),
    io("cancelled_write_bytes", Unit::Bytes, "bytes not written after all, the file being truncated", |s, _| {
        Value::known(s.io(), |io| Unsigned(io.cancelled_write_bytes))
    })
    .heading("CANCELLED"),
    io("read_bytes_per_second", Unit::BytesPerSecond, "with --interval: the rate of read_bytes", rate!(read_bytes_per_second))
        .also(&["read/s"])
        .heading("READ/S"),
    io("write_bytes_per_second", Unit::BytesPerSecond, "with --interval: the rate of write_bytes", rate!(write_bytes_per_second))
        .also(&["write/s"])
        .heading("WRITE/S"),
    io("rchar", Unit::Bytes, "bytes that read(2) and the like returned", |s, _| Value::known(s.io(), |io| Unsigned(io.rchar))),
    io("wchar", Unit::Bytes, "bytes that write(2) and the like took", |s, _| Value::known(s.io(), |io| Unsigned(io.wchar))),
    io("syscr", Unit::Number, "read calls", |s, _| Value::known(s.io(), |io| io.syscr.into())),
    io("syscw", Unit::Number, "write calls", |s, _| Value::known(s.io(), |io| io.syscw.into())),
    // Users and what they may
    credentials("user", Unit::Text, "name of the effective user", |s, lookup| {
        Value::known(s.process.credentials(), |c| Value::Text(lookup.users.of(c.euid)))
    })
    .also(&["euser", "uname"]),
    credentials("ruser", Unit::Text, "name of the real user", |s, lookup| {
        Value::known(s.process.credentials(), |c| Value::Text(lookup.users.of(c.uid)))
    }),
    credentials("group", Unit::Text, "name of the effective group", |s, lookup| {
        Value::known(s.process.credentials(), |c| Value::Text(lookup.groups.of(c.egid)))
    })
    .also(&["egroup"]),
    credentials("rgroup", Unit::Text, "name of the real group", |s, lookup| {
        Value::known(s.process.credentials(), |c| Value::Text(lookup.groups.of(c.gid)))
    }),
    credentials("euid", Unit::Number, "effective user, as uid is in ps(1)", of!(credentials, c => c.euid.into())).also(&["uid"]),
    credentials("ruid", Unit::Number, "real user", of!(credentials, c => c.uid.into())),
    credentials("suid", Unit::Number, "saved user", of!(credentials, c => c.suid.into())).also(&["svuid"]),
    credentials("fsuid", Unit::Number, "user for access to files", of!(credentials, c => c.fsuid.into())).also(&["fuid"]),
    credentials("egid", Unit::Number, "effective group, as gid is in ps(1)", of!(credentials, c => c.egid.into())).also(&["gid"]),
    credentials("rgid", Unit::Number, "real group", of!(credentials, c => c.gid.into())),
    credentials("sgid", Unit::Number, "saved group", of!(credentials, c => c.sgid.into())).also(&["svgid"]),
    credentials("fsgid", Unit::Number, "group for access to files", of!(credentials, c => c.fsgid.into())).also(&["fgid"]),
    credentials("groups", Unit::List, "supplementary groups", |s, lookup| {
        if s.process.credentials().is_none() {
            return Unknown;
        }
        numbers(lookup, s.process.supplementary_groups())
    })
    .also(&["supgid"]),
    credentials("umask", Unit::Octal, "file mode creation mask", |s, _| {
        // A zombie has none any more.
        let umask = s.process.credentials().and_then(|c| u64::try_from(c.umask).ok());
        Value::known(umask, Unsigned)
    }),
    credentials("capinh", Unit::Set, "inheritable capabilities", of!(credentials, c => Unsigned(c.cap_inheritable))),
    credentials("capprm", Unit::Set, "permitted capabilities", of!(credentials, c => Unsigned(c.cap_permitted))),
    credentials("capeff", Unit::Set, "effective capabilities", of!(credentials, c => Unsigned(c.cap_effective))),
    credentials("capbnd", Unit::Set, "bounding set of capabilities", of!(credentials, c => Unsigned(c.cap_bounding))),
    credentials("capamb", Unit::Set, "ambient capabilities", of!(credentials, c => Unsigned(c.cap_ambient))),
    credentials("nonewprivs", Unit::Truth, "whether execve(2) grants nothing any more", of!(credentials, c => Truth(c.no_new_privs())))
        .also(&["no_new_privs", "nnp"]),
    credentials("seccomp", Unit::Number, "0 off, 1 strict, 2 filter", of!(credentials, c => c.seccomp_mode.into())),
    credentials("seccomp_filters", Unit::Number, "seccomp filters", of!(credentials, c => c.seccomp_filters.into())),
    // Scheduling
    scheduling("priority", Unit::Number, "kernel priority as in proc(5)", either!(scheduling.priority))
        .also(&["pri"])
        .heading("PRI")
        .of_thread(),
    scheduling("nice", Unit::Number, "nice value, -20 to 19", either!(scheduling.nice)).also(&["ni"]).heading("NI").of_thread(),
    scheduling("rt_priority", Unit::Number, "real-time priority, 1 to 99, or 0", either!(scheduling.rt_priority))
        .also(&["rtprio"])
        .heading("RTPRIO")
        .of_thread(),
    scheduling("policy", Unit::Number, "scheduling policy SCHED_*", either!(scheduling.policy)).of_thread(),
    scheduling("cls", Unit::Text, "scheduling policy as in ps(1): TS FF RR B ISO IDL DLN EXT", scheduling_class)
        .also(&["class"])
        .of_thread(),
    scheduling("processor", Unit::Number, "CPU that it last ran on", either!(scheduling.processor))
        .also(&["psr", "cpuid"])
        .heading("PSR")
        .of_thread(),
    scheduling("cpus_allowed_list", Unit::List, "CPUs that the leading thread may run on", |s, lookup| {
        let words = lookup.host.possible_cpus.div_ceil(64) as usize;
        Value::known(s.process.scheduling(), |_| Value::Bitmap(s.process.cpus_allowed(words)))
    })
    .also(&["cpus_allowed", "cpus"])
    .heading("CPUS"),
    scheduling("mems_allowed_list", Unit::List, "memory nodes that it may use", |s, lookup| {
        let words = lookup.host.possible_nodes.div_ceil(64) as usize;
        Value::known(s.process.scheduling(), |_| Value::Bitmap(s.process.mems_allowed(words)))
    })
    .also(&["mems_allowed", "mems"])
    .heading("MEMS"),
    scheduling("ngid", Unit::Number, "NUMA group, or 0", of!(scheduling, s => s.ngid.into())),
    scheduling("delayacct_blkio", Unit::Time, "time waited for block I/O, if the kernel accounts delays", of!(scheduling, s => Unsigned(s.blkio_ns)))
        .also(&["delayacct_blkio_ticks", "blkio"])
        .heading("BLKIO"),
    // Signals
    signals("sigpnd", Unit::Set, "signals pending for the leading thread", of!(signals, s => Unsigned(s.pending))),
    signals("shdpnd", Unit::Set, "signals pending for the process", of!(signals, s => Unsigned(s.shared_pending))).also(&["pending"]),
    signals("sigblk", Unit::Set, "signals that the leading thread blocks", of!(signals, s => Unsigned(s.blocked)))
        .also(&["blocked", "sigmask"]),
    signals("sigign", Unit::Set, "signals that are ignored", of!(signals, s => Unsigned(s.ignored))).also(&["ignored", "sigignore"]),
    signals("sigcgt", Unit::Set, "signals that are caught", of!(signals, s => Unsigned(s.caught))).also(&["caught", "sigcatch"]),
    signals("sigq", Unit::Number, "signals queued for its user, over all processes", of!(signals, s => s.queued.into())),
    signals("sigq_limit", Unit::Number, "limit of those", of!(signals, s => s.queue_limit.into())),
    // Namespaces, cgroup, limits
    namespaces("nspid", Unit::List, "process id in each nested pid namespace, outermost first", |s, lookup| {
        nested(s.process, lookup, s.process.pid(), s.process.nested_ids().map(|ids| ids.pid))
    })
    .also(&["nstgid"]),
    namespaces("nspgid", Unit::List, "process group, likewise", |s, lookup| {
        nested(s.process, lookup, s.process.identity().pgrp, s.process.nested_ids().map(|ids| ids.pgrp))
    }),
    namespaces("nssid", Unit::List, "session, likewise", |s, lookup| {
        nested(s.process, lookup, s.process.identity().session, s.process.nested_ids().map(|ids| ids.session))
    }),
    cgroup("cgroup", Unit::Text, "path of the cgroup (version 2)", |s, lookup| {
        lookup.details.cgroup(s.process).map_or(Unknown, Value::Text)
    })
    .also(&["cgroup_path"]),
    cgroup("cgroup_id", Unit::Number, "id of that cgroup", |s, _| Value::known(s.process.cgroup_id(), Unsigned)),
    limits("fdsize", Unit::Number, "descriptor slots allocated", of!(limits, l => l.fd_size.into())),
    limits("rsslim", Unit::Bytes, "limit of resident memory", of!(limits, l => Unsigned(l.rss_limit))),
    // Addresses
    layout("startcode", Unit::Address, "where the text starts", of!(layout, l => l.start_code.into())),
    layout("endcode", Unit::Address, "where the text ends", of!(layout, l => l.end_code.into())),
    layout("startstack", Unit::Address, "where the stack starts", of!(layout, l => l.start_stack.into())).also(&["stackp"]),
    layout("kstkesp", Unit::Address, "stack pointer of a dying or dumping process, else 0", of!(layout, l => l.kstkesp.into()))
        .also(&["esp"]),
    layout("kstkeip", Unit::Address, "instruction pointer, likewise", of!(layout, l => l.kstkeip.into())).also(&["eip"]),
    layout("start_data", Unit::Address, "where the data starts", of!(layout, l => l.start_data.into())),
    layout("end_data", Unit::Address, "where the data ends", of!(layout, l => l.end_data.into())),
    layout("start_brk", Unit::Address, "where the heap starts", of!(layout, l => l.start_brk.into())),
    layout("arg_start", Unit::Address, "where the arguments start", of!(layout, l => l.arg_start.into())),
    layout("arg_end", Unit::Address, "where the arguments end", of!(layout, l => l.arg_end.into())),
    layout("env_start", Unit::Address, "where the environment starts", of!(layout, l => l.env_start.into())),
    layout("env_end", Unit::Address, "where the environment ends", of!(layout, l => l.env_end.into())),
];

const fn identity(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get)
}

const fn cpu(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get).needs(Fields::CPU)
}

const fn memory(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get).needs(Fields::MEMORY)
}

const fn memory_details(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get).needs(Fields::MEMORY_DETAILS)
}

const fn io(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get)
        .needs(Fields::IO)
        .guarded()
        .of_thread()
}

const fn credentials(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get).needs(Fields::CREDENTIALS)
}

const fn scheduling(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get).needs(Fields::SCHEDULING)
}

const fn signals(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get).needs(Fields::SIGNALS)
}

const fn namespaces(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get).needs(Fields::NAMESPACES)
}

const fn cgroup(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get).needs(Fields::CGROUP)
}

const fn limits(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get).needs(Fields::LIMITS)
}

const fn layout(name: &'static str, unit: Unit, help: &'static str, get: Get) -> Field {
    Field::new(name, unit, help, get)
        .needs(Fields::LAYOUT)
        .guarded()
}

fn lifetime_share<'x>(subject: &Subject<'_>, lookup: &Lookup, cpu_ns: u64) -> Value<'x> {
    Real(lookup.share_since(subject.start_ns(), cpu_ns) * 100.0)
}

fn name<'x>(subject: &Subject<'x>, lookup: &'x mut Lookup) -> Value<'x> {
    if let Some(thread) = subject.other_thread() {
        let end = thread.comm.iter().position(|&byte| byte == 0);
        return Value::Text(&thread.comm[..end.unwrap_or(thread.comm.len())]);
    }
    lookup.text.clear();
    lookup.text.extend_from_slice(&subject.process.name());
    Value::Text(&lookup.text)
}

fn command_line<'x>(subject: &Subject<'x>, lookup: &'x mut Lookup) -> Value<'x> {
    let Lookup { details, text, .. } = lookup;
    match details.cmdline(subject.process) {
        Ok(line) if line.bytes.is_empty() => {
            text.clear();
            text.extend_from_slice(&subject.process.name());
            Value::NoArguments(text)
        }
        Ok(line) => Value::Arguments(line),
        Err(_) => Unknown,
    }
}

/// By the numbers of Documentation/admin-guide/devices.txt; others as `major:minor`.
fn terminal<'x>(subject: &Subject<'x>, lookup: &'x mut Lookup) -> Value<'x> {
    let device = subject.process.identity().tty_nr as u32;
    // new_encode_dev() of the kernel
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xf_ff00);
    let text = &mut lookup.text;
    text.clear();
    let (prefix, number): (&[u8], _) = match (major, minor) {
        (0, 0) => return Value::Text(b"?"),
        (4, 0..64) => (b"tty", minor),
        (4, _) => (b"ttyS", minor - 64),
        (136..144, _) => (b"pts/", (major - 136) * 256 + minor),
        _ => {
            number::write(major.into(), text);
            (b":", minor)
        }
    };
    text.extend_from_slice(prefix);
    number::write(number.into(), text);
    Value::Text(text)
}

/// The letters of ps(1), in its order.
fn state_as_in_ps<'x>(subject: &Subject<'x>, lookup: &'x mut Lookup) -> Value<'x> {
    let process = subject.process;
    let (Some(scheduling), Some(memory)) = (process.scheduling(), process.memory()) else {
        return Unknown;
    };
    let nice = subject.thread.map_or(scheduling.nice, |thread| thread.nice);
    let identity = process.identity();
    let marks = [
        (nice < 0, b'<'),
        (nice > 0, b'N'),
        (memory.locked > 0, b'L'),
        (identity.session == identity.tgid, b's'),
        (identity.num_threads > 1, b'l'),
        (
            identity.tpgid > 0 && identity.tpgid as u32 == identity.pgrp,
            b'+',
        ),
    ];
    lookup.text.clear();
    lookup.text.push(subject.state().letter());
    lookup.text.extend(
        marks
            .iter()
            .filter(|(holds, _)| *holds)
            .map(|&(_, mark)| mark),
    );
    Value::Text(&lookup.text)
}

/// The words of ps(1) for `SCHED_*` of include/uapi/linux/sched.h.
fn scheduling_class<'x>(subject: &Subject<'x>, _: &'x mut Lookup) -> Value<'x> {
    let of_process = subject
        .process
        .scheduling()
        .map(|scheduling| scheduling.policy);
    let policy = subject.thread.map(|thread| thread.policy).or(of_process);
    Value::known(policy, |policy| {
        Value::Text(match policy {
            0 => b"TS",
            1 => b"FF",
            2 => b"RR",
            3 => b"B",
            4 => b"ISO",
            5 => b"IDL",
            6 => b"DLN",
            7 => b"EXT",
            _ => b"?",
        })
    })
}

fn numbers(lookup: &mut Lookup, numbers: impl Iterator<Item = u32>) -> Value<'_> {
    lookup.numbers.clear();
    lookup.numbers.extend(numbers);
    Value::Numbers(&lookup.numbers)
}

/// The id in the initial pid namespace, and those in the ones below.
fn nested<'x>(
    process: Process<'_>,
    lookup: &'x mut Lookup,
    outermost: u32,
    inner: impl Iterator<Item = u32>,
) -> Value<'x> {
    if process.namespaces().is_none() {
        return Unknown;
    }
    numbers(lookup, std::iter::once(outermost).chain(inner))
}
