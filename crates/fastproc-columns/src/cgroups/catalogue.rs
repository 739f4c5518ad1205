//! The catalogue of the fields of cgroups.

use fastproc::cgroups::Fields;

use super::{Cgroups, Row};
use crate::{
    field::{Field, groups},
    limits::{finite, share},
    value::{
        Unit,
        Value::{self, Real, Text, Truth},
    },
};

/// A value of one group of fields: `of!(cpu, c => c.usage_ns)`.
macro_rules! of {
    ($group:ident, $part:ident => $value:expr) => {
        |row, _| Value::known(row.cgroup.$group().map(|$part| $value), Into::into)
    };
}

/// The same for a value that the kernel may lack.
macro_rules! some_of {
    ($group:ident, $part:ident => $value:expr) => {
        |row, _| Value::known(row.cgroup.$group().and_then(|$part| $value), Into::into)
    };
}

/// The same for what is known of the row.
macro_rules! known {
    ($row:ident => $value:expr) => {
        |$row, _| Value::known($value, Into::into)
    };
}

/// A change since the last snapshot.
macro_rules! change {
    ($member:ident * $factor:literal) => {
        |row, _| Value::known(row.changes.$member, |value| Real(value * $factor))
    };
}

/// A share of time that tasks waited, over the interval; without one over the last ten seconds.
macro_rules! pressure {
    ($resource:literal, $kind:literal) => {
        |row, _| {
            let over_interval = row
                .changes
                .pressure
                .map(|all| all[$resource][$kind] * 100.0);
            let last_ten = || {
                let averages = row.cgroup.pressure_averages()?.averages;
                Some(f64::from(averages[$resource * 6 + $kind * 3]) / 100.0)
            };
            Value::known(over_interval.or_else(last_ten), Real)
        }
    };
}

/// A truth; a table shows yes or no.
macro_rules! truth {
    ($name:literal, $help:literal, $member:ident) => {
        general($name, Unit::Truth, $help, |row, _| {
            Truth(row.cgroup.record().identity.$member != 0)
        })
        .in_table(|row, _| {
            Text(if row.cgroup.record().identity.$member != 0 {
                b"yes"
            } else {
                b"no"
            })
        })
    };
}

/// All fields of cgroups, in the order of the help.
#[rustfmt::skip]
pub static COLUMNS: &[Field<Cgroups>] = &[
    // CPU time
    cpu("cpu", Unit::Percent, "CPU time, in percent of one CPU", change!(cpu * 100.0)).also(&["pcpu"]).heading("%CPU").rate(),
    cpu("throttled", Unit::Percent, "periods in which it was throttled, in percent", change!(throttled * 100.0)).heading("%THROT").rate(),
    cpu("wait", Unit::Percent, "time that its processes waited for a CPU, in percent of one thread's time; of all threads, so it may exceed 100", |row, _| {
        Value::known(row.wait, |wait| Real(wait * 100.0))
    })
    .also(&["%wait", "pwait"])
    .heading("%WAIT")
    .rate()
    .counting(),
    cpu("cpu_time", Unit::Time, "CPU time so far", of!(cpu, c => c.usage_ns)).heading("TIME"),
    cpu("user_time", Unit::Time, "CPU time in user mode", of!(cpu, c => c.user_ns)).heading("UTIME"),
    cpu("system_time", Unit::Time, "CPU time in kernel mode", of!(cpu, c => c.system_ns)).heading("STIME"),
    cpu("throttled_time", Unit::Time, "time that it was throttled, of all CPUs together", some_of!(cpu, c => c.throttled_ns()))
        .heading("THROTTIME"),
    cpu("nr_throttled", Unit::Number, "periods in which it was throttled", some_of!(cpu, c => c.throttled())).heading("NTHROT"),
    cpu("cpu_weight", Unit::Number, "weight for its share of CPU time among siblings", some_of!(cpu, c => c.weight())).heading("WEIGHT"),
    cpu("cpu_limit", Unit::Percent, "limit of CPU time, in percent of one CPU", |row, _| Value::known(cpu_limit(row), Real)).heading("CPULIM"),
    // Memory
    memory("memory", Unit::Bytes, "memory in use: memory.current", some_of!(memory, m => m.current())).also(&["rss", "ram", "mem"]),
    memory("working_set", Unit::Bytes, "memory without inactive file pages", known!(row => row.working_set()))
        .needs(Fields::MEMORY.union(Fields::MEMORY_STAT))
        .heading("WORKING"),
    memory_stat("anon", Unit::Bytes, "anonymous memory", known!(row => row.stat(row.lines.anon))),
    memory_stat("file", Unit::Bytes, "file pages", known!(row => row.stat(row.lines.file))),
    memory_stat("kernel", Unit::Bytes, "memory of the kernel", known!(row => row.stat(row.lines.kernel))),
    memory("swap", Unit::Bytes, "swap in use", some_of!(memory, m => m.swap_current())),
    memory("memory_peak", Unit::Bytes, "the most memory that was ever in use", some_of!(memory, m => m.peak())).heading("PEAK"),
    memory("memory_max", Unit::Bytes, "limit of memory", some_of!(memory, m => finite(m.max()))).heading("MAX"),
    memory("memory_high", Unit::Bytes, "memory above which allocations are slowed down", some_of!(memory, m => finite(m.high()))).heading("HIGH"),
    memory("memory_used", Unit::Percent, "memory in use, in percent of its limit", |row, _| {
        let used = row.cgroup.memory().and_then(|memory| share(memory.current(), finite(memory.max())));
        Value::known(used, |used| Real(used * 100.0))
    })
    .heading("%MAX"),
    memory("oom_kills", Unit::Number, "processes killed because memory ran out, so far", some_of!(memory, m => m.oom_kills())).heading("OOM"),
    // Input and output
    io("read_bytes_per_second", Unit::BytesPerSecond, "bytes read from disks, per second", change!(read * 1.0))
        .also(&["read/s"])
        .heading("READ/S")
        .rate(),
    io("write_bytes_per_second", Unit::BytesPerSecond, "bytes written to disks, per second", change!(write * 1.0))
        .also(&["write/s"])
        .heading("WRITE/S")
        .rate(),
    io("read", Unit::Bytes, "bytes read from disks, so far", of!(io, i => i.rbytes)),
    io("write", Unit::Bytes, "bytes written to disks, so far", of!(io, i => i.wbytes)),
    // Pressure
    pressure("cpu_some", Unit::Percent, "share of time that some task waited for a CPU, over the interval or the last 10 s", pressure!(0, 0)).heading("CPU-S"),
    pressure("cpu_full", Unit::Percent, "the same, for all tasks at once", pressure!(0, 1)).heading("CPU-F"),
    pressure("memory_some", Unit::Percent, "share of time that some task waited for memory, over the interval or the last 10 s", pressure!(1, 0)).heading("MEM-S"),
    pressure("memory_full", Unit::Percent, "the same, for all tasks at once", pressure!(1, 1)).heading("MEM-F"),
    pressure("io_some", Unit::Percent, "share of time that some task waited for I/O, over the interval or the last 10 s", pressure!(2, 0)).heading("IO-S"),
    pressure("io_full", Unit::Percent, "the same, for all tasks at once", pressure!(2, 1)).heading("IO-F"),
    // Processes
    general("processes", Unit::Number, "processes", known!(row => row.processes)).heading("PROCS").counting(),
    general("own_processes", Unit::Number, "processes, own", known!(row => row.own_processes)).heading("OWN").counting(),
    general("tasks", Unit::Number, "processes and threads: pids.current", of!(pids, p => p.current)).needs(Fields::PIDS),
    general("tasks_max", Unit::Number, "limit of processes and threads", some_of!(pids, p => finite(Some(p.max))))
        .needs(Fields::PIDS)
        .heading("TASKMAX"),
    // The cgroup itself
    general("descendants", Unit::Number, "living descendants", |row, _| row.cgroup.record().identity.descendants.into()).heading("BELOW"),
    general("dying", Unit::Number, "removed descendants that the kernel still keeps", |row, _| row.cgroup.record().identity.dying_descendants.into()),
    truth!("populated", "whether it or a descendant has a process", populated),
    truth!("frozen", "whether it is frozen", frozen),
    general("id", Unit::Number, "the inode number of its directory", |row, _| row.cgroup.id().into()).id(),
    general("depth", Unit::Number, "levels below the mount", |row, _| (row.cgroup.depth() as u64).into()),
    general("name", Unit::Text, "the last part of its path", |row, _| Text(row.cgroup.name())),
    general("path", Unit::Text, "its path below the mount", |row, _| Text(row.cgroup.path())).name().in_table(|row, _| Text(row.path_below())),
];

fn cpu_limit(row: &Row<'_>) -> Option<f64> {
    let cpu = row.cgroup.cpu()?;
    let (quota, period) = (finite(cpu.quota_ns())?, cpu.period_ns()?);
    (period > 0).then(|| quota as f64 / period as f64 * 100.0)
}

groups! {
    Cgroups;
    general: ;
    cpu: needs(Fields::CPU);
    memory: needs(Fields::MEMORY);
    memory_stat: needs(Fields::MEMORY_STAT);
    io: needs(Fields::IO);
    pressure: needs(Fields::PRESSURE);
}
