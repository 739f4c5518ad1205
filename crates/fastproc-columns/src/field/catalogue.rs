//! The catalogue of fields: names, source and description of each.

use fastproc::{Fields, record::Delays};

use super::{
    Field, Processes, containers, groups, limits,
    values::{
        command_line, command_line_cut, command_line_or_name, elapsed, flags, label, lifetime,
        lifetime_share, listening, name, namespace_id, nested, nice, number_in, numbers, of_gpus,
        opened, policy, rolled_up, scheduling_class, started, state_as_in_ps, status, terminal,
        waiting_in,
    },
};
use crate::{
    row::Event,
    value::{
        Unit,
        Value::{self, Real, Signed, Truth, Unknown, Unsigned},
    },
};

/// A value of one group of fields: `of!(memory, m => Unsigned(m.rss()))`.
macro_rules! of {
    ($group:ident, $part:ident => $value:expr) => {
        |row, _| Value::known(row.process.$group(), |$part| $value)
    };
}

/// The value of the thread in a row of a thread, else that of the process: `either!(cpu.minflt)`.
macro_rules! either {
    ($group:ident . $member:ident) => {
        |row, _| match row.thread {
            Some(thread) => thread.$member.into(),
            None => Value::known(row.process.$group(), |group| group.$member.into()),
        }
    };
}

/// A rate since the last snapshot.
macro_rules! rate {
    ($member:ident) => {
        |row, _| Value::known(row.change.and_then(|change| change.$member), Real)
    };
}

/// All fields, in the order of the help.
#[rustfmt::skip]
pub static FIELDS: &[Field] = &[
    // Identity
    identity("pid", Unit::Number, "process id", |s, _| s.process.pid().into()).also(&["tgid"]).id().of_record(Fields::empty()),
    identity("tid", Unit::Number, "thread id", |s, _| s.tid().into()).also(&["lwp", "spid"]).id().of_thread(),
    identity("ppid", Unit::Number, "process id of the parent", |s, _| match s.exit() {
        Some(exit) => Value::known(exit.ppid, Into::into),
        None => s.process.identity().ppid.into(),
    })
    .id(),
    identity("pgrp", Unit::Number, "process group", |s, _| s.process.identity().pgrp.into()).also(&["pgid"]).of_living(),
    identity("session", Unit::Number, "session", |s, _| s.process.identity().session.into()).also(&["sid", "sess"]).of_living(),
    identity("tracer_pid", Unit::Number, "process that traces this one, or 0", |s, _| s.process.identity().tracer_pid.into())
        .also(&["tracerpid"])
        .heading("TRACER").of_living(),
    identity("tty", Unit::Text, "controlling terminal, by its file in /dev, or ?", terminal).also(&["tt", "tname"]).of_living(),
    identity("tty_nr", Unit::Number, "controlling terminal as a device number, or 0", |s, _| s.process.identity().tty_nr.into()).signed().of_living(),
    identity("tpgid", Unit::Number, "foreground process group of the terminal, or -1", |s, _| s.process.identity().tpgid.into()).signed().of_living(),
    identity("comm", Unit::Text, "name; for a kernel worker, also what it works on", name).also(&["name", "ucmd", "ucomm"]).name().of_record(Fields::empty()).of_thread(),
    identity("cmdline", Unit::Text, "command line, at most 128 KiB, of an exited process at most 4 KiB; if there is none, a table shows the name in brackets", command_line)
        .in_table(command_line_or_name)
        .arguments()
        .also(&["args", "cmd", "command"])
        .name(),
    identity("cmdline_cut", Unit::Truth, "whether the command line is longer than what cmdline has of it", command_line_cut),
    identity("exe", Unit::Text, "path of the program; ends with (deleted) if the file was deleted or replaced", |s, lookup| lookup.details.exe(s.process).map_or(Unknown, Value::Text)).guarded(),
    // State
    identity("state", Unit::Text, "state, a letter as in proc(5)", |s, _| Value::Text(&s.state().name().as_bytes()[..1]))
        .also(&["s"])
        .heading("S")
        .of_record(Fields::empty())
        .of_thread(),
    identity("stat", Unit::Text, "state with the flags of ps(1): < N L s l +", state_as_in_ps)
        .needs(Fields::SCHEDULING.union(Fields::MEMORY))
        .of_thread(),
    identity("flags", Unit::Flags, "kernel flags PF_*", |s, _| {
        flags(s).into()
    })
    .of_thread(),
    identity("f", Unit::Number, "flags as in ps(1): 1 forked and not yet executed, 4 used the privileges of root", |s, _| {
        (flags(s) >> 6 & 7).into()
    })
    .also(&["flag"])
    .of_thread(),
    identity("kthread", Unit::Truth, "whether it is a kernel thread", |s, _| Truth(s.process.identity().is_kernel_thread())).of_record(Fields::empty()),
    identity("num_threads", Unit::Number, "threads", |s, _| s.process.identity().num_threads.into())
        .also(&["threads", "nlwp", "thcount"])
        .heading("THR").of_record(Fields::empty()).of_living(),
    identity("exit_signal", Unit::Number, "signal sent to the parent on exit", |s, _| s.process.identity().exit_signal.into()).signed().of_living(),
    identity("exit_code", Unit::Number, "exit status as waitpid(2) shows it", |s, _| Value::known(s.process.exit_code(), Into::into))
        .signed()
        .guarded(),
    identity("event", Unit::Text, "the event of fastproc exits: exit or exec", |s, _| match s.event {
        Some(Event::Exit(..)) => Value::Text(b"exit"),
        Some(Event::Exec(_)) => Value::Text(b"exec"),
        None => Unknown,
    }),
    identity("ended", Unit::Start, "when it exited; a table shows the time of day, or the day if that is more than 24 hours ago", |s, lookup| {
        let end_ns = s.exit().and_then(|exit| exit.end_ns);
        Value::known(end_ns, |end_ns| Signed(lookup.calendar_ns(end_ns).div_euclid(1_000_000_000)))
    }),
    identity("status", Unit::Text, "exit status, or the name of the signal that killed it", status).guarded(),
    identity("final", Unit::Truth, "whether the values of an exited process are final: the kernel's last record of it was not lost", |s, _| {
        Value::known(s.exit(), |exit| Truth(exit.is_final))
    }),
    identity("wchan", Unit::Text, "kernel function in which it waits, or -", waiting_in).guarded().of_thread(),
    identity("coredumping", Unit::Truth, "whether it writes a core dump", |s, _| Truth(s.process.identity().core_dumping != 0)).of_living(),
    identity("starttime", Unit::Time, "when it started, since boot", |s, lookup| {
        s.start_ns().saturating_add_signed(lookup.host.boot_offset_ns).into()
    })
    .of_thread(),
    identity("lstart", Unit::Date, "when it started: date and time of day", started).heading("STARTED").of_thread(),
    identity("start", Unit::Start, "when it started; a table shows the time of day, or the day if that is more than 24 hours ago", started)
        .also(&["start_time", "bsdstart"])
        .of_thread(),
    identity("etime", Unit::Time, "time since it started; the lifetime of an exited process", lifetime)
        .in_table(elapsed)
        .also(&["etimes", "elapsed"])
        .heading("ELAPSED")
        .of_thread(),
    // CPU time and faults
    cpu("pcpu", Unit::Percent, "CPU time used, in % of one CPU, over its lifetime or the interval", |s, lookup| match s.change {
        Some(change) => Value::known(change.cpu_share, |share| Real(share * 100.0)),
        None => Value::known(s.cpu_times(), |(user, system)| lifetime_share(s, lookup, user.saturating_add(system))),
    })
    .also(&["%cpu", "cpu"])
    .heading("%CPU")
    .of_change()
    .of_thread(),
    cpu("c", Unit::Number, "pcpu as a whole number, at most 99, as in ps(1)", |s, lookup| match s.change {
        Some(change) => Value::known(change.cpu_share, |share| Unsigned((share * 100.0).min(99.0) as u64)),
        None => Value::known(s.cpu_times(), |(user, system)| {
            Unsigned((lookup.share_since(s.start_ns(), user.saturating_add(system)) * 100.0).min(99.0) as u64)
        }),
    })
    .of_change()
    .of_thread(),
    cpu("pcpu_user", Unit::Percent, "the part of pcpu in user mode", |s, lookup| match s.change {
        Some(change) => Value::known(change.user_share, |share| Real(share * 100.0)),
        None => Value::known(s.cpu_times(), |(user, _)| lifetime_share(s, lookup, user)),
    })
    .heading("%USER")
    .of_change()
    .of_thread(),
    cpu("pcpu_system", Unit::Percent, "the part of pcpu in kernel mode", |s, lookup| match s.change {
        Some(change) => Value::known(change.system_share, |share| Real(share * 100.0)),
        None => Value::known(s.cpu_times(), |(_, system)| lifetime_share(s, lookup, system)),
    })
    .heading("%SYS")
    .of_change()
    .of_thread(),
    cpu("wait", Unit::Percent, "time of waiting for a CPU, in % of one thread's time, over its lifetime or the interval; of all threads, so it may exceed 100; a wait counts when it ends", |s, lookup| match s.change {
        Some(change) => Value::known(change.wait_share, |share| Real(share * 100.0)),
        None => Value::known(s.run_delay_ns(), |waited| lifetime_share(s, lookup, waited)),
    })
    .also(&["%wait", "pwait"])
    .heading("%WAIT")
    .of_change()
    .of_thread(),
    cpu("time", Unit::Time, "CPU time in user and kernel mode", |s, _| {
        Value::known(s.cpu_times(), |(user, system)| Unsigned(user.saturating_add(system)))
    })
    .also(&["cputime", "cputimes", "times"])
    .of_thread(),
    cpu("utime", Unit::Time, "CPU time in user mode", |s, _| Value::known(s.cpu_times(), |(user, _)| Unsigned(user))).of_thread(),
    cpu("stime", Unit::Time, "CPU time in kernel mode", |s, _| Value::known(s.cpu_times(), |(_, system)| Unsigned(system))).of_thread(),
    cpu("guest_time", Unit::Time, "time spent running a virtual CPU; also part of utime", either!(cpu.gtime_ns))
        .also(&["gtime"])
        .of_thread(),
    cpu("run_delay", Unit::Time, "time of waiting for a CPU while it could run, as in schedstat; of all threads, of exited ones too if the kernel keeps that (it has delay accounting) and a walk reads it", |s, _| {
        Value::known(s.run_delay_ns(), Unsigned)
    })
    .heading("WAITED")
    .of_thread(),
    cpu("timeslices", Unit::Number, "how often a thread got a CPU, as in schedstat; of the same threads as run_delay", |s, _| {
        Value::known(s.timeslices(), Unsigned)
    })
    .heading("SLICES")
    .of_thread(),
    cpu("cutime", Unit::Time, "user time of children that were waited for", of!(cpu, c => Unsigned(c.cutime_ns))),
    cpu("cstime", Unit::Time, "system time of children that were waited for", of!(cpu, c => Unsigned(c.cstime_ns))),
    cpu("cguest_time", Unit::Time, "guest time of children that were waited for", of!(cpu, c => Unsigned(c.cgtime_ns))).also(&["cgtime"]),
    cpu("minflt", Unit::Number, "page faults that needed no I/O", either!(cpu.minflt)).also(&["min_flt"]).of_thread(),
    cpu("majflt", Unit::Number, "page faults that needed I/O", either!(cpu.majflt)).also(&["maj_flt", "pagein"]).of_thread(),
    cpu("cminflt", Unit::Number, "minor faults of children that were waited for", of!(cpu, c => c.cminflt.into())),
    cpu("cmajflt", Unit::Number, "major faults of children that were waited for", of!(cpu, c => c.cmajflt.into())),
    cpu("minflt_per_second", Unit::PerSecond, "with --interval: the rate of minflt", rate!(minflt_per_second))
        .also(&["minflt/s"])
        .rate()
        .heading("MINFLT/S")
        .of_thread(),
    cpu("majflt_per_second", Unit::PerSecond, "with --interval: the rate of majflt", rate!(majflt_per_second))
        .also(&["majflt/s"])
        .rate()
        .heading("MAJFLT/S")
        .of_thread(),
    cpu("nvcsw", Unit::Number, "voluntary context switches of the leading thread; of all threads of an exited process", either!(cpu.nvcsw))
        .also(&["voluntary_ctxt_switches"])
        .of_thread(),
    cpu("nivcsw", Unit::Number, "involuntary context switches, of the same threads as nvcsw", either!(cpu.nivcsw))
        .also(&["nonvoluntary_ctxt_switches"])
        .of_thread(),
    // Memory
    memory("rss", Unit::Bytes, "resident memory", of!(memory, m => Unsigned(m.rss()))).also(&["memory", "ram", "vmrss", "rssize", "rsz"]),
    memory("pmem", Unit::Percent, "resident memory, in % of MemTotal in /proc/meminfo", |s, lookup| {
        let total = lookup.total_memory;
        let memory = s.process.memory().filter(|_| total > 0);
        Value::known(memory, |memory| Real(memory.rss() as f64 / total as f64 * 100.0))
    })
    .also(&["%mem", "mem"])
    .heading("%MEM"),
    memory("vsize", Unit::Bytes, "virtual size", of!(memory, m => Unsigned(m.vsize))).also(&["vsz", "vmsize"]),
    memory("sz", Unit::Number, "virtual size in pages", |s, lookup| {
        let page = lookup.host.page_size.max(1);
        Value::known(s.process.memory(), |memory| Unsigned(memory.vsize / page))
    }),
    memory("size", Unit::Bytes, "memory that might have to be swapped out: data and stack", of!(memory, m => Unsigned(m.data + m.stack))),
    identity("pss", Unit::Bytes, "resident memory, counting each shared page in proportion", |s, lookup| rolled_up(s, lookup, &["Pss"])),
    identity("uss", Unit::Bytes, "resident memory that no other process shares", |s, lookup| {
        rolled_up(s, lookup, &["Private_Clean", "Private_Dirty", "Private_Hugetlb"])
    }),
    memory("shr", Unit::Bytes, "resident file mappings and shared memory", of!(memory, m => Unsigned(m.shared()))).also(&["shared"]),
    memory("rssanon", Unit::Bytes, "resident anonymous memory", of!(memory, m => Unsigned(m.rss_anon))),
    memory("rssfile", Unit::Bytes, "resident file mappings", of!(memory, m => Unsigned(m.rss_file))),
    memory("rssshmem", Unit::Bytes, "resident shared memory", of!(memory, m => Unsigned(m.rss_shmem))),
    memory("vmswap", Unit::Bytes, "memory swapped out", of!(memory, m => Unsigned(m.swap))).also(&["swap"]),
    memory("vmpeak", Unit::Bytes, "largest virtual size so far", of!(memory, m => Unsigned(m.peak_vsize))),
    memory("vmhwm", Unit::Bytes, "largest resident memory so far", |s, _| match s.exit() {
        Some(exit) => exit.peak_rss.into(),
        None => Value::known(s.process.memory(), |memory| Unsigned(memory.peak_rss)),
    }).also(&["maxrss"]),
    memory("vmlck", Unit::Bytes, "memory locked by mlock(2)", of!(memory, m => Unsigned(m.locked))),
    memory("vmpin", Unit::Bytes, "memory pinned, so that it cannot be moved", of!(memory, m => Unsigned(m.pinned))),
    memory("vmdata", Unit::Bytes, "data", of!(memory, m => Unsigned(m.data))),
    memory("vmstk", Unit::Bytes, "stack", of!(memory, m => Unsigned(m.stack))),
    memory("vmexe", Unit::Bytes, "text", of!(memory, m => Unsigned(m.exe))),
    memory("vmlib", Unit::Bytes, "executable memory that is not text", of!(memory, m => Unsigned(m.lib))),
    memory("trs", Unit::Bytes, "text, from its first page to its last", of!(memory, m => Unsigned(m.text))),
    memory_details("vmpte", Unit::Bytes, "page tables", of!(memory_details, m => Unsigned(m.page_tables))),
    memory_details("hugetlbpages", Unit::Bytes, "huge pages of hugetlbfs", of!(memory_details, m => Unsigned(m.hugetlb))).heading("HUGETLB"),
    identity("oom_score", Unit::Number, "how likely it is to be killed when memory runs out, 0 to 2000", |s, lookup| number_in(s, lookup, c"oom_score"))
        .signed()
        .also(&["oom"])
        .heading("OOM"),
    identity("oom_score_adj", Unit::Number, "adjustment of oom_score, -1000 to 1000", |s, lookup| number_in(s, lookup, c"oom_score_adj"))
        .signed()
        .also(&["oomadj"])
        .heading("OOMADJ"),
    // Input and output
    io("read_bytes", Unit::Bytes, "bytes fetched from storage", |s, _| Value::known(s.io(), |io| Unsigned(io.read_bytes)))
        .also(&["rbytes"])
        .heading("READ"),
    io("write_bytes", Unit::Bytes, "bytes sent to storage", |s, _| Value::known(s.io(), |io| Unsigned(io.write_bytes)))
        .also(&["wbytes"])
        .heading("WRITTEN"),
    io("cancelled_write_bytes", Unit::Bytes, "bytes that were not written because the file was truncated", |s, _| {
        Value::known(s.io(), |io| Unsigned(io.cancelled_write_bytes))
    })
    .also(&["wcbytes"])
    .heading("CANCELLED"),
    io("read_bytes_per_second", Unit::BytesPerSecond, "with --interval: the rate of read_bytes", rate!(read_bytes_per_second))
        .also(&["read/s"])
        .rate()
        .heading("READ/S"),
    io("write_bytes_per_second", Unit::BytesPerSecond, "with --interval: the rate of write_bytes", rate!(write_bytes_per_second))
        .also(&["write/s"])
        .rate()
        .heading("WRITE/S"),
    io("rchar", Unit::Bytes, "bytes that read(2) and the like returned", |s, _| Value::known(s.io(), |io| Unsigned(io.rchar))).also(&["rchars"]),
    io("wchar", Unit::Bytes, "bytes that write(2) and the like took", |s, _| Value::known(s.io(), |io| Unsigned(io.wchar))).also(&["wchars"]),
    io("syscr", Unit::Number, "read calls", |s, _| Value::known(s.io(), |io| io.syscr.into())).also(&["rops"]),
    io("syscw", Unit::Number, "write calls", |s, _| Value::known(s.io(), |io| io.syscw.into())).also(&["wops"]),
    // Delay accounting
    delays("delay_blkio", Unit::Time, "time of waiting for block I/O, of all threads; as the next, known only of processes that began while delay accounting was switched on (sysctl kernel.task_delayacct=1)", |s, _| {
        Value::known(s.delays().and_then(Delays::blkio_delay_ns), Unsigned)
    })
    .heading("D-BLKIO"),
    delays("delay_swapin", Unit::Time, "time of waiting for pages to be swapped in", |s, _| {
        Value::known(s.delays().and_then(Delays::swapin_delay_ns), Unsigned)
    })
    .heading("D-SWAPIN"),
    delays("delay_reclaim", Unit::Time, "time of reclaiming memory for itself", |s, _| {
        Value::known(s.delays().and_then(Delays::reclaim_delay_ns), Unsigned)
    })
    .heading("D-RECLAIM"),
    delays("delay_thrashing", Unit::Time, "time of waiting for pages of files that had been dropped shortly before", |s, _| {
        Value::known(s.delays().and_then(Delays::thrashing_delay_ns), Unsigned)
    })
    .heading("D-THRASH"),
    delays("delay_compaction", Unit::Time, "time of compacting memory for itself", |s, _| {
        Value::known(s.delays().and_then(Delays::compaction_delay_ns), Unsigned)
    })
    .heading("D-COMPACT"),
    // Users and privileges
    users("user", Unit::Text, "name of the effective user", |s, lookup| {
        Value::known(s.users(), |(_, euid)| Value::Text(lookup.users.name(euid)))
    })
    .also(&["euser", "uname"]),
    users("ruser", Unit::Text, "name of the real user", |s, lookup| {
        Value::known(s.users(), |(uid, _)| Value::Text(lookup.users.name(uid)))
    }),
    users("group", Unit::Text, "name of the effective group", |s, lookup| {
        Value::known(s.groups(), |(_, egid)| Value::Text(lookup.groups.name(egid)))
    })
    .also(&["egroup"]),
    users("rgroup", Unit::Text, "name of the real group", |s, lookup| {
        Value::known(s.groups(), |(gid, _)| Value::Text(lookup.groups.name(gid)))
    }),
    users("euid", Unit::Number, "effective user id; uid in ps(1)", |s, _| Value::known(s.users(), |(_, euid)| euid.into())).also(&["uid"]).of_record(Fields::USERS),
    users("ruid", Unit::Number, "real user id", |s, _| Value::known(s.users(), |(uid, _)| uid.into())).of_record(Fields::USERS),
    users("suid", Unit::Number, "saved user id", of!(users, u => u.suid.into())).also(&["svuid"]).of_record(Fields::USERS),
    users("fsuid", Unit::Number, "user id for access to files", of!(users, u => u.fsuid.into())).also(&["fuid"]).of_record(Fields::USERS),
    users("egid", Unit::Number, "effective group id; gid in ps(1)", |s, _| Value::known(s.groups(), |(_, egid)| egid.into())).also(&["gid"]).of_record(Fields::USERS),
    users("rgid", Unit::Number, "real group id", |s, _| Value::known(s.groups(), |(gid, _)| gid.into())).of_record(Fields::USERS),
    users("sgid", Unit::Number, "saved group id", of!(users, u => u.sgid.into())).also(&["svgid"]).of_record(Fields::USERS),
    users("fsgid", Unit::Number, "group id for access to files", of!(users, u => u.fsgid.into())).also(&["fgid"]).of_record(Fields::USERS),
    credentials("groups", Unit::List, "supplementary groups", |s, lookup| {
        if s.process.credentials().is_none() {
            return Unknown;
        }
        numbers(lookup, s.process.supplementary_groups())
    })
    .also(&["supgid"]),
    credentials("umask", Unit::Octal, "file mode creation mask", |s, _| {
        // A zombie has lost its umask.
        let umask = s.process.credentials().and_then(|c| u64::try_from(c.umask()?).ok());
        Value::known(umask, Unsigned)
    }),
    credentials("capinh", Unit::Set, "inheritable capabilities", of!(credentials, c => Unsigned(c.cap_inheritable))),
    credentials("capprm", Unit::Set, "permitted capabilities", of!(credentials, c => Unsigned(c.cap_permitted))),
    credentials("capeff", Unit::Set, "effective capabilities", of!(credentials, c => Unsigned(c.cap_effective))),
    credentials("capbnd", Unit::Set, "bounding set of capabilities", of!(credentials, c => Unsigned(c.cap_bounding))),
    credentials("capamb", Unit::Set, "ambient capabilities", of!(credentials, c => Unsigned(c.cap_ambient))),
    credentials("nonewprivs", Unit::Truth, "whether execve(2) can no longer grant privileges", of!(credentials, c => Truth(c.no_new_privs())))
        .also(&["no_new_privs", "nnp"]),
    credentials("seccomp", Unit::Number, "0 off, 1 strict, 2 filter", of!(credentials, c => c.seccomp_mode.into())),
    credentials("seccomp_filters", Unit::Number, "seccomp filters", of!(credentials, c => c.seccomp_filters.into())),
    // Scheduling
    scheduling("priority", Unit::Number, "kernel priority as in proc(5)", either!(scheduling.priority))
        .signed()
        .heading("PRIO")
        .of_thread(),
    scheduling("pri", Unit::Number, "priority as in ps(1), the higher the sooner it runs: 39 - priority", |s, _| {
        let of_process = s.process.scheduling().map(|scheduling| scheduling.priority);
        let priority = s.thread.map(|thread| thread.priority).or(of_process);
        Value::known(priority, |priority| Signed(39 - i64::from(priority)))
    })
    .signed()
    .of_thread(),
    scheduling("nice", Unit::Number, "nice value, -20 to 19; a table shows - if the policy has none", either!(scheduling.nice))
        .signed()
        .also(&["ni"])
        .heading("NI")
        .in_table(|s, _| match policy(s) {
            // SCHED_NORMAL, SCHED_BATCH
            Some(0 | 3) => Value::known(nice(s), Into::into),
            _ => Unknown,
        })
        .of_thread(),
    scheduling("rt_priority", Unit::Number, "real-time priority, 1 to 99, or 0; a table shows - for the policy TS", either!(scheduling.rt_priority))
        .also(&["rtprio"])
        .heading("RTPRIO")
        .in_table(|s, _| {
            let of_process = s.process.scheduling().map(|scheduling| scheduling.rt_priority);
            let priority = s.thread.map(|thread| thread.rt_priority).or(of_process);
            // SCHED_NORMAL
            Value::known(priority.filter(|_| policy(s) != Some(0)), Into::into)
        })
        .of_thread(),
    scheduling("policy", Unit::Policy, "number of the scheduling policy SCHED_*; a table shows its name, as cls", either!(scheduling.policy))
        .heading("POL")
        .of_thread(),
    scheduling("cls", Unit::Text, "scheduling policy as in ps(1): TS FF RR B ISO IDL DLN EXT", scheduling_class)
        .also(&["class"])
        .of_thread(),
    scheduling("processor", Unit::Number, "CPU that it last ran on", either!(scheduling.processor))
        .also(&["psr", "cpuid"])
        .heading("PSR")
        .of_thread(),
    scheduling_details("cpus_allowed_list", Unit::List, "CPUs that the leading thread may run on", |s, lookup| {
        let words = lookup.host.possible_cpus.div_ceil(64) as usize;
        Value::known(s.process.scheduling_details(), |_| Value::Bitmap(s.process.cpus_allowed(words)))
    })
    .also(&["cpus_allowed", "cpus"])
    .heading("CPUS"),
    scheduling_details("mems_allowed_list", Unit::List, "memory nodes that it may use", |s, lookup| {
        let words = lookup.host.possible_nodes.div_ceil(64) as usize;
        Value::known(s.process.scheduling_details(), |_| Value::Bitmap(s.process.mems_allowed(words)))
    })
    .also(&["mems_allowed", "mems"])
    .heading("MEMS"),
    scheduling_details("ngid", Unit::Number, "NUMA group, or 0", of!(scheduling_details, s => s.ngid.into())),
    scheduling_details("delayacct_blkio", Unit::Time, "time waited for block I/O, if the kernel accounts delays", of!(scheduling_details, s => Unsigned(s.blkio_ns)))
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
    signals("sigq_limit", Unit::Number, "limit of queued signals", of!(signals, s => s.queue_limit.into())),
    // Namespaces, cgroup, limits
    namespaces("nspid", Unit::List, "process id in each nested pid namespace, outermost first", |s, lookup| {
        nested(s.process, lookup, s.process.pid(), s.process.nested_ids().map(|ids| ids.pid))
    })
    .also(&["nstgid"]),
    namespaces("nspgid", Unit::List, "process group in each nested pid namespace", |s, lookup| {
        nested(s.process, lookup, s.process.identity().pgrp, s.process.nested_ids().map(|ids| ids.pgrp))
    }),
    namespaces("nssid", Unit::List, "session in each nested pid namespace", |s, lookup| {
        nested(s.process, lookup, s.process.identity().session, s.process.nested_ids().map(|ids| ids.session))
    }),
    cgroup("cgroup", Unit::Text, "path of the cgroup (version 2)", |s, lookup| {
        lookup.details.cgroup(s.process).map_or(Unknown, Value::Text)
    })
    .also(&["cgroup_path"]),
    cgroup("cgroup_id", Unit::Number, "id of the cgroup", |s, _| Value::known(s.process.cgroup_id(), Unsigned)),
    cgroup("unit", Unit::Text, "systemd unit", containers::unit),
    cgroup("slice", Unit::Text, "systemd slice", containers::slice),
    cgroup("container", Unit::Text, "id of the container, or its name for LXC and systemd-nspawn; a table shows 12 digits", containers::id)
        .also(&["container_id"])
        .in_table(containers::short_id),
    cgroup("container_name", Unit::Text, "name of the container; root only", |s, lookup| containers::label(s, lookup, |of| &of.name)).root_only(),
    cgroup("pod", Unit::Text, "name of the pod; root only", |s, lookup| containers::label(s, lookup, |of| &of.pod)).root_only().also(&["pod_name"]),
    cgroup("pod_uid", Unit::Text, "UID of the pod", containers::pod_uid),
    cgroup("namespace", Unit::Text, "Kubernetes namespace of the pod; root only", |s, lookup| {
        containers::label(s, lookup, |of| &of.namespace)
    })
    .root_only()
    .also(&["pod_namespace"]),
    cgroup("image", Unit::Text, "image of the container; root only", |s, lookup| containers::label(s, lookup, |of| &of.image)).root_only(),
    cgroup("runtime", Unit::Text, "what made the container: docker, containerd, cri-o, podman, lxc or nspawn, if its cgroup says it", containers::runtime),
    cgroup("machine", Unit::Text, "machine of systemd-machined: a container of systemd-nspawn, or a virtual machine of libvirt", containers::machine),
    cgroup("cgroup_memory_max", Unit::Bytes, "smallest limit of memory of its cgroup and of those above it", limits::memory).heading("MEMMAX"),
    cgroup("cgroup_memory_used", Unit::Percent, "memory in use, in percent of the closest of these limits", limits::memory_used).heading("%MEMMAX"),
    cgroup("cgroup_cpu_max", Unit::Percent, "smallest limit of CPU time, in percent of one CPU", limits::cpu).heading("CPUMAX"),
    cgroup("cgroup_tasks_max", Unit::Number, "smallest limit of processes and threads", limits::tasks).heading("TASKMAX"),
    cgroup("cgroup_tasks_used", Unit::Percent, "processes and threads, in percent of the closest of these limits", limits::tasks_used).heading("%TASKMAX"),
    identity("label", Unit::Text, "label of the security module (SELinux, AppArmor)", label),
    namespace("cgroupns", Unit::Number, "cgroup namespace, as the number of its inode", |s, lookup| namespace_id(s, lookup, c"ns/cgroup")),
    namespace("ipcns", Unit::Number, "IPC namespace", |s, lookup| namespace_id(s, lookup, c"ns/ipc")),
    namespace("mntns", Unit::Number, "mount namespace", |s, lookup| namespace_id(s, lookup, c"ns/mnt")),
    namespace("netns", Unit::Number, "network namespace", |s, lookup| namespace_id(s, lookup, c"ns/net")),
    namespace("pidns", Unit::Number, "pid namespace", |s, lookup| namespace_id(s, lookup, c"ns/pid")),
    namespace("timens", Unit::Number, "time namespace", |s, lookup| namespace_id(s, lookup, c"ns/time")),
    namespace("userns", Unit::Number, "user namespace", |s, lookup| namespace_id(s, lookup, c"ns/user")),
    namespace("utsns", Unit::Number, "UTS namespace", |s, lookup| namespace_id(s, lookup, c"ns/uts")),
    identity("fds", Unit::Number, "open descriptors", |s, lookup| opened(s, lookup, |open| open.descriptors)).of_living(),
    identity("sockets", Unit::Number, "open descriptors that are sockets", |s, lookup| opened(s, lookup, |open| open.sockets)).guarded().of_living(),
    identity("listen", Unit::List, "ports at which it listens: of TCP, and of UDP sockets that are not connected", listening).guarded().of_living(),
    identity("gpu", Unit::Percent, "with --interval: work of engines of GPUs, in percent of one engine", |s, lookup| of_gpus(s, lookup, |open| open.gpu.map(Real))).rate().heading("%GPU").guarded().of_living(),
    identity("gpu_memory", Unit::Bytes, "memory of its buffers of GPUs, as far as it is not swapped out", |s, lookup| of_gpus(s, lookup, |open| open.gpu_memory.map(Unsigned))).heading("GPUMEM").guarded().of_living(),
    identity("gpu_time", Unit::Time, "how long engines of GPUs have worked for the devices that it has open", |s, lookup| of_gpus(s, lookup, |open| open.gpu_time.map(Unsigned))).heading("GPUTIME").guarded().of_living(),
    limits("fdsize", Unit::Number, "descriptor slots allocated", of!(limits, l => l.fd_size.into())),
    limits("rsslim", Unit::Bytes, "limit of resident memory", of!(limits, l => Unsigned(l.rss_limit))),
    // Addresses
    layout("startcode", Unit::Address, "where the text starts", of!(layout, l => l.start_code.into())),
    layout("endcode", Unit::Address, "where the text ends", of!(layout, l => l.end_code.into())),
    layout("startstack", Unit::Address, "where the stack starts", of!(layout, l => l.start_stack.into())).also(&["stackp"]),
    layout("kstkesp", Unit::Address, "stack pointer of a dying or dumping process, else 0", of!(layout, l => l.kstkesp.into()))
        .also(&["esp"]),
    layout("kstkeip", Unit::Address, "instruction pointer of a dying or dumping process, else 0", of!(layout, l => l.kstkeip.into())).also(&["eip"]),
    layout("start_data", Unit::Address, "where the data starts", of!(layout, l => l.start_data.into())),
    layout("end_data", Unit::Address, "where the data ends", of!(layout, l => l.end_data.into())),
    layout("start_brk", Unit::Address, "where the heap starts", of!(layout, l => l.start_brk.into())),
    layout("arg_start", Unit::Address, "where the arguments start", of!(layout, l => l.arg_start.into())),
    layout("arg_end", Unit::Address, "where the arguments end", of!(layout, l => l.arg_end.into())),
    layout("env_start", Unit::Address, "where the environment starts", of!(layout, l => l.env_start.into())),
    layout("env_end", Unit::Address, "where the environment ends", of!(layout, l => l.env_end.into())),
];

groups! {
    Processes;
    identity: ;
    namespace: guarded();
    cpu: of_record(Fields::CPU);
    memory: of_record(Fields::MEMORY);
    memory_details: of_record(Fields::MEMORY_DETAILS);
    io: of_record(Fields::IO).guarded().of_thread();
    delays: of_record(Fields::DELAYS).guarded().of_thread();
    users: needs(Fields::USERS);
    credentials: of_record(Fields::CREDENTIALS);
    scheduling: of_record(Fields::SCHEDULING);
    scheduling_details: of_record(Fields::SCHEDULING_DETAILS);
    signals: of_record(Fields::SIGNALS);
    namespaces: of_record(Fields::NAMESPACES);
    cgroup: needs(Fields::CGROUP);
    limits: of_record(Fields::LIMITS);
    layout: of_record(Fields::LAYOUT).guarded();
}
