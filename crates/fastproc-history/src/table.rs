//! The tables of a history and their columns. A column's name, type, unit and meaning never change: another meaning gets
//! another name, and readers join by name.

use std::sync::LazyLock;

use fastproc::{
    cgroups,
    schema::{self, Field, Structure, Unit},
};

use self::Kind::{Number, Text, Time};

/// The type of a column: one that the weakest engine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A signed 64-bit integer.
    Number,
    /// Microseconds since 1970, UTC.
    Time,
    /// UTF-8, as [`crate::escape`] writes names that are not.
    Text,
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The unit of its number: `ns`, `bytes` or nothing.
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// The member of the record that it holds, if it is one.
    pub member: Option<Field>,
    /// The group of fields of the member, as its bit; 0 if records always have it.
    pub group: u32,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub meaning: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    /// The columns by which rows of a sealed file are sorted.
    pub order: &'static [&'static str],
}

impl Table {
    /// The index of a column.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// Columns of one table: its own, and members of a structure as name of the column and path of the member.
fn columns(own: &[Own], structure: &Structure, members: &[(&'static str, &str)]) -> Vec<Column> {
    let fields = structure.fields();
    let own = EVERYWHERE.iter().chain(own).map(|own| Column {
        name: own.0,
        kind: own.1,
        unit: own_unit(own.0),
        meaning: own.2,
        member: None,
        group: 0,
    });
    let members = members.iter().map(|(name, path)| {
        let field = fields.iter().find(|field| field.path == *path);
        let field = field.unwrap_or_else(|| panic!("{path} is no member of {}", structure.name));
        let kind = match field.type_of {
            schema::Type::Chars(_) => Text,
            _ => Number,
        };
        let unit = match field.unit {
            Unit::Nanoseconds => "ns",
            Unit::Bytes => "bytes",
            _ => "",
        };
        let mut member = field.clone();
        if field.path == "pids.max" {
            // As the limits that may be unknown.
            member.unknown = Some(cgroups::record::UNLIMITED);
        }
        Column {
            name,
            kind,
            unit,
            meaning: field.doc,
            group: group_of(structure, field),
            member: Some(member),
        }
    });
    own.chain(members).collect()
}

fn group_of(structure: &Structure, field: &Field) -> u32 {
    if !std::ptr::eq(structure, cgroups::record::SCHEMA) {
        return field.group.map_or(0, |group| group.bits());
    }
    let name = field.path.split('.').next().unwrap_or_default();
    let group = cgroups::Fields::from_name(&name.to_uppercase());
    group.map_or(0, |group| group.bits())
}

/// The unit in which the name of a column ends.
fn own_unit(name: &str) -> &'static str {
    if name.ends_with("_ns") {
        "ns"
    } else if name.ends_with("_bytes") {
        "bytes"
    } else {
        ""
    }
}

/// A column that is no member of a record: name, type, meaning.
type Own = (&'static str, Kind, &'static str);

#[rustfmt::skip]
const EVERYWHERE: &[Own] = &[
    ("time", Time, "The second of the walk, or when it happened."),
    ("boot_id", Text, "`/proc/sys/kernel/random/boot_id`: another after each boot."),
    ("boot_time", Time, "When the machine was booted: add `start_ns` for the start of a process."),
];

/// A row for each process that changed in a second.
#[rustfmt::skip]
pub static PROCESSES: LazyLock<Table> = LazyLock::new(|| Table {
    name: "processes",
    meaning: "A process that changed in this second: counters since its start, and what it was then.",
    columns: columns(
        &[
            ("gone", Number, "1 in the first second without the process; all values are null."),
            ("name", Text, "The whole name, if `comm` is only a part: that of a kernel worker, with its work."),
        ],
        schema::RECORD,
        &[
            ("pid", "identity.tgid"), ("start_ns", "identity.start_ns"), ("comm", "identity.comm"),
            ("state_bits", "identity.state_bits"), ("threads", "identity.num_threads"),
            ("utime_ns", "cpu.utime_ns"), ("stime_ns", "cpu.stime_ns"), ("children_utime_ns", "cpu.cutime_ns"),
            ("children_stime_ns", "cpu.cstime_ns"), ("run_ns", "cpu.sum_exec_ns"), ("run_delay_ns", "cpu.run_delay_ns"),
            ("timeslices", "cpu.timeslices"), ("minor_faults", "cpu.minflt"), ("major_faults", "cpu.majflt"),
            ("voluntary_switches", "cpu.nvcsw"), ("involuntary_switches", "cpu.nivcsw"),
            ("vsize", "memory.vsize"), ("rss_anon", "memory.rss_anon"), ("rss_file", "memory.rss_file"),
            ("rss_shmem", "memory.rss_shmem"), ("swap", "memory.swap"), ("locked", "memory.locked"),
            ("priority", "scheduling.priority"), ("nice", "scheduling.nice"), ("realtime_priority", "scheduling.rt_priority"),
            ("policy", "scheduling.policy"), ("processor", "scheduling.processor"),
            ("read_calls_bytes", "io.rchar"), ("write_calls_bytes", "io.wchar"), ("read_bytes", "io.read_bytes"),
            ("write_bytes", "io.write_bytes"),
        ],
    ),
    order: &["pid", "start_ns", "time"],
});

/// Gauges, and the columns of their greatest values in thinned files.
pub const GREATEST: &[(&str, &str)] = &[
    ("threads", "max_threads"),
    ("rss_anon", "max_rss_anon"),
    ("rss_file", "max_rss_file"),
    ("rss_shmem", "max_rss_shmem"),
    ("swap", "max_swap"),
];

/// [`PROCESSES`] with a row for each process that changed in an interval of 10 or 60 seconds.
pub static THINNED: LazyLock<Table> = LazyLock::new(|| {
    let mut columns = PROCESSES.columns.clone();
    for (of, name) in GREATEST {
        let gauge = PROCESSES.columns.iter().find(|column| column.name == *of);
        columns.extend(gauge.map(|gauge| Column {
            name,
            meaning: "The greatest value of the interval.",
            member: None,
            ..gauge.clone()
        }));
    }
    Table {
        name: PROCESSES.name,
        meaning: "A process that changed in this interval, as it was at its end.",
        columns,
        order: PROCESSES.order,
    }
});

/// Who a process is. Written when it is first seen, when that changed, and at the head of each row group.
#[rustfmt::skip]
pub static IDENTITIES: LazyLock<Table> = LazyLock::new(|| Table {
    name: "identities",
    meaning: "Who a process is, from this time on.",
    columns: columns(
        &[
            ("user", Text, "Name of the effective user."),
            ("real_user", Text, "Name of the real user."),
            ("group", Text, "Name of the effective group."),
            ("real_group", Text, "Name of the real group."),
            ("command_line", Text, "Arguments, joined by blanks, as read at this time; a blank within one is `\\x20`. Null if not kept."),
            ("command_line_cut", Number, "1 if the arguments were longer, and this is their beginning."),
            ("cgroup", Text, "Path of its cgroup."),
            ("container", Text, "Id of its container."),
            ("container_name", Text, "Name of its container."),
            ("pod", Text, "Name of its pod."),
            ("namespace", Text, "Kubernetes namespace of its pod."),
            ("image", Text, "Image of its container."),
        ],
        schema::RECORD,
        &[
            ("pid", "identity.tgid"), ("start_ns", "identity.start_ns"), ("comm", "identity.comm"), ("ppid", "identity.ppid"),
            ("process_group", "identity.pgrp"), ("session", "identity.session"), ("terminal", "identity.tty_nr"),
            ("foreground_group", "identity.tpgid"), ("flags", "identity.flags"),
            ("uid", "users.uid"), ("euid", "users.euid"), ("gid", "users.gid"), ("egid", "users.egid"),
            ("cgroup_id", "cgroup.id"),
        ],
    ),
    order: &["pid", "start_ns", "time"],
});

/// A row for each exit.
#[rustfmt::skip]
pub static EXITS: LazyLock<Table> = LazyLock::new(|| Table {
    name: "exits",
    meaning: "A process that ended, with its last values.",
    columns: columns(
        &[
            ("user", Text, "Name of the effective user."),
            ("real_user", Text, "Name of the real user."),
            ("group", Text, "Name of the effective group."),
            ("real_group", Text, "Name of the real group."),
            ("command_line", Text, "Arguments as known at the end, as in `identities`; null if not kept."),
            ("command_line_cut", Number, "1 if the arguments were longer, and this is their beginning."),
            ("cgroup", Text, "Path of its cgroup."),
        ],
        schema::EXIT,
        &[
            ("number", "number"), ("known", "known"), ("pid", "pid"), ("start_ns", "start_ns"), ("end_ns", "end_ns"),
            ("comm", "comm"), ("ppid", "ppid"), ("status", "status"), ("flags", "flags"), ("uid", "uid"), ("euid", "euid"),
            ("gid", "gid"), ("egid", "egid"), ("utime_ns", "utime_ns"), ("stime_ns", "stime_ns"), ("run_ns", "sum_exec_ns"),
            ("run_delay_ns", "run_delay_ns"), ("timeslices", "timeslices"), ("minor_faults", "minflt"),
            ("major_faults", "majflt"), ("voluntary_switches", "nvcsw"), ("involuntary_switches", "nivcsw"),
            ("peak_rss", "peak_rss"), ("cgroup_id", "cgroup_id"),
            ("read_calls_bytes", "io.rchar"), ("write_calls_bytes", "io.wchar"), ("read_bytes", "io.read_bytes"),
            ("write_bytes", "io.write_bytes"),
        ],
    ),
    order: &["time", "pid"],
});

/// A row for each walk: a second without one was not recorded. Its time is that of the rows of `processes`.
#[rustfmt::skip]
pub static MACHINE: LazyLock<Table> = LazyLock::new(|| Table {
    name: "machine",
    meaning: "The machine at a walk of its processes.",
    columns: columns(
        &[
            ("began_ns", Number, "When the walk began, since boot, on the clock of `start_ns`."),
            ("read_for_ns", Number, "How long it took."),
            ("interval_ns", Number, "The time to the next walk, if none is missed."),
            ("whole", Number, "1 if `processes` and `identities` have a row for each process in this second: at the head of a row group."),
            ("processes", Number, "How many processes there were."),
            ("lost_exits", Number, "Exits since the walk before that `exits` lacks; null if exits are not recorded."),
            ("cpus", Number, "CPUs that are online."),
            ("memory_bytes", Number, "`MemTotal` of `/proc/meminfo`."),
            ("page_bytes", Number, "The size of a page."),
            ("user_ns", Number, "CPU time of all CPUs since boot in user mode: `/proc/stat`."),
            ("nice_ns", Number, "The same of processes with a positive nice value."),
            ("system_ns", Number, "The same in kernel mode."),
            ("idle_ns", Number, "Time that CPUs were idle."),
            ("iowait_ns", Number, "Time that CPUs were idle while a task waited for I/O."),
            ("irq_ns", Number, "Time in interrupts."),
            ("softirq_ns", Number, "Time in soft interrupts."),
            ("steal_ns", Number, "Time that the hypervisor took."),
            ("guest_ns", Number, "Time in guests, also in `user_ns`."),
            ("guest_nice_ns", Number, "Time in guests with a positive nice value, also in `nice_ns`."),
            ("context_switches", Number, "Context switches since boot."),
            ("interrupts", Number, "Interrupts since boot."),
            ("forks", Number, "Processes and threads that were started since boot."),
            ("running", Number, "Threads that run or could."),
            ("blocked", Number, "Threads in an uninterruptible sleep that wait for I/O."),
            ("load_1", Number, "Load of the last minute, in hundredths."),
            ("load_5", Number, "Load of the last five minutes, in hundredths."),
            ("load_15", Number, "Load of the last fifteen minutes, in hundredths."),
            ("memory_free_bytes", Number, "`MemFree` of `/proc/meminfo`."),
            ("memory_available_bytes", Number, "`MemAvailable`."),
            ("buffers_bytes", Number, "`Buffers`."),
            ("cached_bytes", Number, "`Cached`."),
            ("shared_bytes", Number, "`Shmem`."),
            ("reclaimable_bytes", Number, "`SReclaimable`."),
            ("dirty_bytes", Number, "`Dirty`."),
            ("swap_total_bytes", Number, "`SwapTotal`."),
            ("swap_free_bytes", Number, "`SwapFree`."),
            ("cpu_some_ns", Number, "Time since boot in which some task waited for a CPU: `/proc/pressure/cpu`."),
            ("memory_some_ns", Number, "Time in which some task waited for memory."),
            ("memory_full_ns", Number, "Time in which all tasks waited for memory."),
            ("io_some_ns", Number, "Time in which some task waited for I/O."),
            ("io_full_ns", Number, "Time in which all tasks waited for I/O."),
        ],
        schema::RECORD,
        &[],
    ),
    order: &["time"],
});

/// A row for each cgroup that changed in a second. `whole` in [`MACHINE`] says when all have one.
#[rustfmt::skip]
pub static CGROUPS: LazyLock<Table> = LazyLock::new(|| Table {
    name: "cgroups",
    meaning: "A cgroup that changed in this second, with all below it. A limit that is not set is null.",
    columns: columns(
        &[
            ("path", Text, "Its path below the mount."),
            ("gone", Number, "1 at the first walk without it; all values are null."),
        ],
        cgroups::record::SCHEMA,
        &[
            ("id", "identity.id"), ("populated", "identity.populated"), ("frozen", "identity.frozen"),
            ("descendants", "identity.descendants"), ("dying_descendants", "identity.dying_descendants"),
            ("usage_ns", "cpu.usage_ns"), ("user_ns", "cpu.user_ns"), ("system_ns", "cpu.system_ns"),
            ("periods", "cpu.periods"), ("throttled", "cpu.throttled"), ("throttled_ns", "cpu.throttled_ns"),
            ("quota_ns", "cpu.quota_ns"), ("period_ns", "cpu.period_ns"), ("weight", "cpu.weight"),
            ("memory_bytes", "memory.current"), ("memory_peak_bytes", "memory.peak"), ("memory_high_bytes", "memory.high"),
            ("memory_max_bytes", "memory.max"), ("swap_bytes", "memory.swap_current"), ("oom_kills", "memory.oom_kills"),
            ("processes", "pids.current"), ("processes_max", "pids.max"),
            ("read_bytes", "io.rbytes"), ("write_bytes", "io.wbytes"), ("reads", "io.rios"), ("writes", "io.wios"),
            ("cpu_some_ns", "pressure.cpu_some_ns"), ("cpu_full_ns", "pressure.cpu_full_ns"),
            ("memory_some_ns", "pressure.memory_some_ns"), ("memory_full_ns", "pressure.memory_full_ns"),
            ("io_some_ns", "pressure.io_some_ns"), ("io_full_ns", "pressure.io_full_ns"),
        ],
    ),
    order: &["id", "time"],
});

/// A row for each thread that waits for a CPU or in state D, if that is recorded.
#[rustfmt::skip]
pub static WAITS: LazyLock<Table> = LazyLock::new(|| Table {
    name: "waits",
    meaning: "A thread in state R or D in this second, but the recorder's; at most 1,000, first those in state D.",
    columns: columns(
        &[
            ("state", Text, "`R`: it runs, or waits for a CPU. `D`: it waits in the kernel, mostly for a disk."),
            ("wait_channel", Text, "The kernel function in which it waits: `/proc/PID/task/TID/wchan`. Null if none is known."),
            ("system_call", Number, "The number of the system call that it is in, as this machine counts them. Null if none is known."),
            ("start_ns", Number, "When its process started, since boot."),
        ],
        schema::THREAD,
        &[("pid", "tgid"), ("tid", "tid"), ("comm", "comm")],
    ),
    order: &["pid", "tid", "time"],
});

/// What the recorder itself has to say.
#[rustfmt::skip]
pub static EVENTS: LazyLock<Table> = LazyLock::new(|| Table {
    name: "events",
    meaning: "Something that a reader of the other tables has to know.",
    columns: columns(
        &[
            ("event", Text, "`started`, `stopped`, `cut_off` (the run before wrote no end), `blind` (nothing was recorded), `clock` (it \
                 jumped), `slept`, `damaged`, `dropped` (the oldest, to make room), `failed` (to write), `left_out` (of a user who had \
                 too much)."),
            ("since", Time, "Its beginning, if it lasted."),
            ("until", Time, "Its end, if it lasted."),
            ("detail", Text, "In words."),
        ],
        schema::RECORD,
        &[],
    ),
    order: &["time"],
});

/// All tables.
pub fn all() -> [&'static Table; 7] {
    [
        &PROCESSES,
        &IDENTITIES,
        &EXITS,
        &MACHINE,
        &CGROUPS,
        &WAITS,
        &EVENTS,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_the_order_names_columns() {
        for table in all() {
            let mut names: Vec<_> = table.columns.iter().map(|column| column.name).collect();
            names.sort_unstable();
            assert!(
                names.windows(2).all(|pair| pair[0] != pair[1]),
                "{}",
                table.name
            );
            assert!(table.order.iter().all(|name| table.index(name).is_some()));
        }
    }
}
