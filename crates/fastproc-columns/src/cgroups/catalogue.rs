//! The columns of cgroups.

use fastproc::cgroups::Fields;

use super::Column;
use crate::{
    limits::{finite, share},
    value::{Unit, Value},
};

fn real(value: Option<f64>, factor: f64) -> Option<Value<'static>> {
    value.map(|value| Value::Real(value * factor))
}

/// A limit; unknown if it is not set.
fn limit(value: Option<u64>) -> Option<Value<'static>> {
    finite(value).map(Value::Unsigned)
}

const CPU: Fields = Fields::CPU;
const MEMORY: Fields = Fields::MEMORY;
const STAT: Fields = Fields::MEMORY_STAT;
const IO: Fields = Fields::IO;
const PRESSURE: Fields = Fields::PRESSURE;
const NONE: Fields = Fields::empty();

macro_rules! pressure {
    ($name:literal, $heading:literal, $resource:literal, $kind:literal, $help:literal) => {
        Column::new($name, $heading, Unit::Percent, PRESSURE, $help, |row| {
            let over_interval = row
                .changes
                .pressure
                .map(|all| all[$resource][$kind] * 100.0);
            let last_ten = || {
                let averages = row.cgroup.pressure_averages()?.averages;
                Some(f64::from(averages[$resource * 6 + $kind * 3]) / 100.0)
            };
            real(over_interval.or_else(last_ten), 1.0)
        })
    };
}

/// All columns.
pub static COLUMNS: &[Column] = &[
    Column::new(
        "cpu",
        "%CPU",
        Unit::Percent,
        CPU,
        "CPU time, in percent of one CPU",
        |row| real(row.changes.cpu, 100.0),
    )
    .rate()
    .usual(),
    Column::new(
        "throttled",
        "%THROT",
        Unit::Percent,
        CPU,
        "periods in which it was throttled, in percent",
        |row| real(row.changes.throttled, 100.0),
    )
    .rate()
    .usual(),
    Column::new(
        "cpu_time",
        "TIME",
        Unit::Time,
        CPU,
        "CPU time so far",
        |row| Some(row.cgroup.cpu()?.usage_ns.into()),
    )
    .usual(),
    Column::new(
        "user_time",
        "UTIME",
        Unit::Time,
        CPU,
        "CPU time in user mode",
        |row| Some(row.cgroup.cpu()?.user_ns.into()),
    ),
    Column::new(
        "system_time",
        "STIME",
        Unit::Time,
        CPU,
        "CPU time in kernel mode",
        |row| Some(row.cgroup.cpu()?.system_ns.into()),
    ),
    Column::new(
        "throttled_time",
        "THROTTLED",
        Unit::Time,
        CPU,
        "time that it was throttled, of all CPUs together",
        |row| Some(row.cgroup.cpu()?.throttled_ns()?.into()),
    ),
    Column::new(
        "nr_throttled",
        "NTHROT",
        Unit::Number,
        CPU,
        "periods in which it was throttled",
        |row| Some(row.cgroup.cpu()?.throttled()?.into()),
    ),
    Column::new(
        "cpu_weight",
        "WEIGHT",
        Unit::Number,
        CPU,
        "weight for its share of CPU time among siblings",
        |row| Some(row.cgroup.cpu()?.weight()?.into()),
    ),
    Column::new(
        "cpu_limit",
        "CPULIM",
        Unit::Percent,
        CPU,
        "limit of CPU time, in percent of one CPU",
        |row| {
            let cpu = row.cgroup.cpu()?;
            let (quota, period) = (finite(cpu.quota_ns())?, cpu.period_ns()?);
            (period > 0).then(|| Value::Real(quota as f64 / period as f64 * 100.0))
        },
    ),
    Column::new(
        "memory",
        "MEMORY",
        Unit::Bytes,
        MEMORY,
        "memory in use: memory.current",
        |row| Some(row.cgroup.memory()?.current()?.into()),
    )
    .usual(),
    Column::new(
        "working_set",
        "WORKING",
        Unit::Bytes,
        MEMORY.union(STAT),
        "memory without inactive file pages",
        |row| Some(row.working_set()?.into()),
    )
    .usual(),
    Column::new(
        "anon",
        "ANON",
        Unit::Bytes,
        STAT,
        "anonymous memory",
        |row| Some(row.stat(row.lines.anon)?.into()),
    )
    .usual(),
    Column::new("file", "FILE", Unit::Bytes, STAT, "file pages", |row| {
        Some(row.stat(row.lines.file)?.into())
    })
    .usual(),
    Column::new(
        "kernel",
        "KERNEL",
        Unit::Bytes,
        STAT,
        "memory of the kernel",
        |row| Some(row.stat(row.lines.kernel)?.into()),
    ),
    Column::new("swap", "SWAP", Unit::Bytes, MEMORY, "swap in use", |row| {
        Some(row.cgroup.memory()?.swap_current()?.into())
    })
    .usual(),
    Column::new(
        "memory_peak",
        "PEAK",
        Unit::Bytes,
        MEMORY,
        "the most memory that was ever in use",
        |row| Some(row.cgroup.memory()?.peak()?.into()),
    ),
    Column::new(
        "memory_max",
        "MAX",
        Unit::Bytes,
        MEMORY,
        "limit of memory",
        |row| limit(row.cgroup.memory()?.max()),
    ),
    Column::new(
        "memory_high",
        "HIGH",
        Unit::Bytes,
        MEMORY,
        "memory above which allocations are slowed down",
        |row| limit(row.cgroup.memory()?.high()),
    ),
    Column::new(
        "memory_used",
        "%MAX",
        Unit::Percent,
        MEMORY,
        "memory in use, in percent of its limit",
        |row| {
            let memory = row.cgroup.memory()?;
            real(share(memory.current(), finite(memory.max())), 100.0)
        },
    ),
    Column::new(
        "oom_kills",
        "OOM",
        Unit::Number,
        MEMORY,
        "processes killed because memory ran out, so far",
        |row| Some(row.cgroup.memory()?.oom_kills()?.into()),
    )
    .usual(),
    Column::new(
        "read_bytes_per_second",
        "READ/S",
        Unit::BytesPerSecond,
        IO,
        "bytes read from disks, per second",
        |row| real(row.changes.read, 1.0),
    )
    .also("read/s")
    .rate()
    .usual(),
    Column::new(
        "write_bytes_per_second",
        "WRITE/S",
        Unit::BytesPerSecond,
        IO,
        "bytes written to disks, per second",
        |row| real(row.changes.write, 1.0),
    )
    .also("write/s")
    .rate()
    .usual(),
    Column::new(
        "read",
        "READ",
        Unit::Bytes,
        IO,
        "bytes read from disks, so far",
        |row| Some(row.cgroup.io()?.rbytes.into()),
    )
    .usual(),
    Column::new(
        "write",
        "WRITE",
        Unit::Bytes,
        IO,
        "bytes written to disks, so far",
        |row| Some(row.cgroup.io()?.wbytes.into()),
    )
    .usual(),
    pressure!(
        "cpu_some",
        "CPU-S",
        0,
        0,
        "share of time that some task waited for a CPU, over the interval or the last 10 s"
    )
    .usual(),
    pressure!("cpu_full", "CPU-F", 0, 1, "the same, for all tasks at once"),
    pressure!(
        "memory_some",
        "MEM-S",
        1,
        0,
        "share of time that some task waited for memory, over the interval or the last 10 s"
    )
    .usual(),
    pressure!(
        "memory_full",
        "MEM-F",
        1,
        1,
        "the same, for all tasks at once"
    )
    .usual(),
    pressure!(
        "io_some",
        "IO-S",
        2,
        0,
        "share of time that some task waited for I/O, over the interval or the last 10 s"
    )
    .usual(),
    pressure!("io_full", "IO-F", 2, 1, "the same, for all tasks at once").usual(),
    Column::new(
        "processes",
        "PROCS",
        Unit::Number,
        NONE,
        "processes",
        |row| Some(row.processes?.into()),
    )
    .counting()
    .usual(),
    Column::new(
        "own_processes",
        "OWN",
        Unit::Number,
        NONE,
        "processes, own",
        |row| Some(row.own_processes?.into()),
    )
    .counting(),
    Column::new(
        "tasks",
        "TASKS",
        Unit::Number,
        Fields::PIDS,
        "processes and threads: pids.current",
        |row| Some(row.cgroup.pids()?.current.into()),
    ),
    Column::new(
        "tasks_max",
        "TASKMAX",
        Unit::Number,
        Fields::PIDS,
        "limit of processes and threads",
        |row| limit(Some(row.cgroup.pids()?.max)),
    ),
    Column::new(
        "descendants",
        "BELOW",
        Unit::Number,
        NONE,
        "living descendants",
        |row| Some(row.cgroup.record().identity.descendants.into()),
    ),
    Column::new(
        "dying",
        "DYING",
        Unit::Number,
        NONE,
        "removed descendants that the kernel still keeps",
        |row| Some(row.cgroup.record().identity.dying_descendants.into()),
    ),
    Column::new(
        "populated",
        "POPULATED",
        Unit::Truth,
        NONE,
        "whether it or a descendant has a process",
        |row| Some(Value::Truth(row.cgroup.record().identity.populated != 0)),
    ),
    Column::new(
        "frozen",
        "FROZEN",
        Unit::Truth,
        NONE,
        "whether it is frozen",
        |row| Some(Value::Truth(row.cgroup.record().identity.frozen != 0)),
    ),
    Column::new(
        "id",
        "ID",
        Unit::Number,
        NONE,
        "the inode number of its directory",
        |row| Some(row.cgroup.id().into()),
    ),
    Column::new(
        "depth",
        "DEPTH",
        Unit::Number,
        NONE,
        "levels below the mount",
        |row| Some((row.cgroup.depth() as u64).into()),
    ),
    Column::new(
        "name",
        "NAME",
        Unit::Text,
        NONE,
        "the last part of its path",
        |row| Some(Value::Text(row.cgroup.name())),
    ),
    Column::new(
        "path",
        "PATH",
        Unit::Text,
        NONE,
        "its path below the mount",
        |row| Some(Value::Text(row.cgroup.path())),
    )
    .usual(),
];
