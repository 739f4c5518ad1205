//! The metrics of process-exporter.

use crate::{
    costly::{self, CostlySums, Known, Wchans},
    exposition::{Exposition, Family, Value},
    groups::{Count, Counts, Group, GroupState, ThreadName, Tracker},
};

/// The states by which threads are counted.
const STATE_LABELS: [&str; 5] = [
    ",state=\"Running\"",
    ",state=\"Sleeping\"",
    ",state=\"Waiting\"",
    ",state=\"Zombie\"",
    ",state=\"Other\"",
];

const GROUP: &[&str] = &["groupname"];
const THREAD: &[&str] = &["groupname", "threadname"];

super::families! {
    NUM_PROCS = "namedprocess_namegroup_num_procs" Gauge GROUP,
        "Processes in this group.";
    CPU = "namedprocess_namegroup_cpu_seconds_total" Counter &["groupname", "mode"],
        "CPU time, in user mode and in the kernel (mode: user, system).";
    WAIT = "namedprocess_namegroup_cpu_wait_seconds_total" Counter GROUP,
        "Time of waiting for a CPU, of all threads (run_delay of schedstat). Absent for a group of whose processes it is not known.";
    READ = "namedprocess_namegroup_read_bytes_total" Counter GROUP,
        "Bytes fetched from storage (read_bytes of /proc/PID/io).";
    WRITE = "namedprocess_namegroup_write_bytes_total" Counter GROUP,
        "Bytes sent to storage (write_bytes of /proc/PID/io).";
    MAJOR = "namedprocess_namegroup_major_page_faults_total" Counter GROUP,
        "Page faults that needed I/O.";
    MINOR = "namedprocess_namegroup_minor_page_faults_total" Counter GROUP,
        "Page faults that needed no I/O.";
    SWITCHES = "namedprocess_namegroup_context_switches_total" Counter &["groupname", "ctxswitchtype"],
        "Context switches of all threads (ctxswitchtype: voluntary, nonvoluntary).";
    MEMORY = "namedprocess_namegroup_memory_bytes" Gauge &["groupname", "memtype"],
        "Memory (memtype: resident, virtual, swapped; with --gather-smaps proportionalResident, proportionalSwapped).";
    OPEN = "namedprocess_namegroup_open_filedesc" Gauge GROUP,
        "Open descriptors. Absent while a process is still to be read, or all are hidden.";
    RATIO = "namedprocess_namegroup_worst_fd_ratio" Gauge GROUP,
        "Open descriptors by their limit, of the process that is closest to it. Absent while a process is still to be read, or all are hidden.";
    WCHAN = "namedprocess_namegroup_threads_wchan" Gauge &["groupname", "wchan"],
        "Threads by the kernel's function that they wait in.";
    OLDEST = "namedprocess_namegroup_oldest_start_time_seconds" Gauge GROUP,
        "Start of the oldest process in this group, since 1970; 0 without processes.";
    NUM_THREADS = "namedprocess_namegroup_num_threads" Gauge GROUP,
        "Threads.";
    STATES = "namedprocess_namegroup_states" Gauge &["groupname", "state"],
        "Threads by state (state: Running, Sleeping, Waiting, Zombie, Other).";
    THREAD_COUNT = "namedprocess_namegroup_thread_count" Gauge THREAD,
        "Threads of this name, in processes that have more than one. With --threads, as the next.";
    THREAD_CPU = "namedprocess_namegroup_thread_cpu_seconds_total" Counter &["groupname", "threadname", "mode"],
        "CPU time of these threads (mode: user, system).";
    THREAD_IO = "namedprocess_namegroup_thread_io_bytes_total" Counter &["groupname", "threadname", "iomode"],
        "Bytes that these threads fetched from storage and sent there (iomode: read, write).";
    THREAD_MAJOR = "namedprocess_namegroup_thread_major_page_faults_total" Counter THREAD,
        "Page faults of these threads that needed I/O.";
    THREAD_MINOR = "namedprocess_namegroup_thread_minor_page_faults_total" Counter THREAD,
        "Page faults of these threads that needed no I/O.";
    THREAD_SWITCHES = "namedprocess_namegroup_thread_context_switches_total" Counter &["groupname", "threadname", "ctxswitchtype"],
        "Context switches of these threads (ctxswitchtype: voluntary, nonvoluntary).";
    SCRAPE_ERRORS = "namedprocess_scrape_errors" Counter &[],
        "Scrapes for which there was no snapshot.";
    PROCREAD_ERRORS = "namedprocess_scrape_procread_errors" Counter &[],
        "Processes that could not be described: they are grouped at a later scrape, or are gone.";
    PARTIAL_ERRORS = "namedprocess_scrape_partial_errors" Counter &[],
        "Processes whose I/O counters the kernel hid, each time.";
    AGE = "fastproc_namegroup_value_age_seconds" Gauge &["groupname", "value"],
        "Age of the oldest of a group's costly values (value: smaps, fds, wchan).";
    UNKNOWN = "fastproc_namegroup_value_unknown_processes" Gauge &["groupname", "value"],
        "Processes whose costly values are not in the sums: not read yet, or hidden (value: smaps, fds, wchan).";
}

/// What is written in addition to the groups themselves.
#[derive(Clone, Copy, Debug)]
pub struct Extras<'a> {
    /// When the machine was booted, in seconds since 1970.
    pub btime: u64,
    /// Scrapes that failed.
    pub scrape_errors: u64,
    /// Costly values by the index of the group.
    pub costly: &'a [CostlySums],
    /// Where threads wait.
    pub wchans: &'a Wchans,
    /// Which costly values are read.
    pub wanted: costly::Settings,
}

/// The number of series of every group, whatever its processes do.
pub const fn series_of_a_group(wanted: costly::Settings) -> u64 {
    // Two kinds of memory, or two families of descriptors; and for each kind of value its age and the processes that
    // lack it.
    20 + if wanted.smaps { 4 } else { 0 }
        + if wanted.fds { 4 } else { 0 }
        + if wanted.wchan { 2 } else { 0 }
}

/// Writes all groups. If the snapshot failed (`current` is false), writes only the counts of errors.
pub fn write_groups(text: &mut Exposition, tracker: &Tracker, current: bool, extras: Extras<'_>) {
    if current {
        processes(text, tracker, extras);
        threads(text, tracker);
        costly_values(text, tracker, extras);
    }
    let errors = tracker.errors();
    for (family, value) in [
        (SCRAPE_ERRORS, extras.scrape_errors),
        (PROCREAD_ERRORS, errors.read),
        (PARTIAL_ERRORS, errors.partial),
    ] {
        text.one(&family, Value::Whole(value));
    }
}

/// Writes one family: for each group, or name of threads, the labels that are added to its own, and the values.
fn each<'a, T: 'a, const N: usize>(
    text: &mut Exposition,
    all: &(impl Iterator<Item = (&'a str, &'a T)> + Clone),
    family: &Family,
    more: [&str; N],
    values: impl Fn(&T) -> [Value; N],
) {
    text.family(family);
    for (labels, one) in all.clone() {
        for (more, value) in more.iter().zip(values(one)) {
            text.series(family.name, labels, more, value);
        }
    }
}

fn processes(text: &mut Exposition, tracker: &Tracker, extras: Extras<'_>) {
    let all = tracker.groups().map(|group| (&*group.labels, group));
    let one = |value| [Value::Whole(value)];
    let total = |count: Count| move |group: &Group| [Value::Whole(group.total.get(count))];
    each(text, &all, &NUM_PROCS, [""], |group| one(group.now.procs));
    each(text, &all, &CPU, MODES, |group| cpu(&group.total));
    waits(text, tracker);
    each(text, &all, &READ, [""], total(Count::Read));
    each(text, &all, &WRITE, [""], total(Count::Write));
    each(text, &all, &MAJOR, [""], total(Count::MajorFaults));
    each(text, &all, &MINOR, [""], total(Count::MinorFaults));
    each(text, &all, &SWITCHES, SWITCH_TYPES, |group| {
        switches(&group.total)
    });
    memory(text, tracker, extras);
    each(text, &all, &OLDEST, [""], |group| {
        one(group
            .now
            .oldest_start_ns
            .map_or(0, |start_ns| extras.btime + start_ns / 1_000_000_000))
    });
    each(text, &all, &NUM_THREADS, [""], |group| {
        one(group.now.threads)
    });
    each(text, &all, &STATES, STATE_LABELS, |group| {
        GroupState::ALL.map(|state| Value::Whole(group.now.states[state as usize]))
    });
}

fn waits(text: &mut Exposition, tracker: &Tracker) {
    let waits = tracker
        .groups()
        .filter_map(|group| Some((group, group.total.wait_ns()?)));
    let mut waits = waits.peekable();
    if waits.peek().is_none() {
        return;
    }
    text.family(&WAIT);
    for (group, wait_ns) in waits {
        text.series(WAIT.name, &group.labels, "", Value::Nano(wait_ns));
    }
}

fn memory(text: &mut Exposition, tracker: &Tracker, extras: Extras<'_>) {
    text.family(&MEMORY);
    for (at, group) in tracker.indexed_groups() {
        let mut write = |kind, bytes| {
            text.series(MEMORY.name, &group.labels, kind, Value::Whole(bytes));
        };
        write(",memtype=\"resident\"", group.now.resident);
        write(",memtype=\"virtual\"", group.now.virt);
        write(",memtype=\"swapped\"", group.now.swapped);
        let costly = extras.costly.get(at as usize).copied().unwrap_or_default();
        if extras.wanted.smaps && costly.smaps.is_complete() {
            write(",memtype=\"proportionalResident\"", costly.pss_bytes);
            write(",memtype=\"proportionalSwapped\"", costly.swap_pss_bytes);
        }
    }
}

fn costly_values(text: &mut Exposition, tracker: &Tracker, extras: Extras<'_>) {
    type Of = fn(&CostlySums) -> Known;
    type Get = fn(CostlySums) -> Value;
    let value = |at: u32| extras.costly.get(at as usize).copied().unwrap_or_default();
    // Omit a sum until all processes of its group were read.
    let groups = |known: Of| {
        let groups = tracker.indexed_groups();
        groups.filter(move |(at, _)| known(&value(*at)).is_complete())
    };
    if extras.wanted.fds {
        let values: [(_, Get); 2] = [
            (OPEN, |sums| Value::Whole(sums.open)),
            (RATIO, |sums| Value::Nano(sums.worst_ratio_nano)),
        ];
        for (family, of) in values {
            text.family(&family);
            for (at, group) in groups(|sums| sums.fds) {
                text.series(family.name, &group.labels, "", of(value(at)));
            }
        }
    }
    if extras.wanted.wchan {
        text.family(&WCHAN);
        for (at, group) in groups(|sums| sums.wchan) {
            for (label, count) in extras.wchans.of(at) {
                text.series(WCHAN.name, &group.labels, label, Value::Whole(count));
            }
        }
    }
    let kinds: [(bool, &str, Of); 3] = [
        (extras.wanted.smaps, ",value=\"smaps\"", |sum| sum.smaps),
        (extras.wanted.fds, ",value=\"fds\"", |sum| sum.fds),
        (extras.wanted.wchan, ",value=\"wchan\"", |sum| sum.wchan),
    ];
    let kinds = kinds.iter().filter(|(wanted, ..)| *wanted);
    if kinds.clone().next().is_none() {
        return;
    }
    for family in [AGE, UNKNOWN] {
        text.family(&family);
        for (at, group) in tracker.indexed_groups() {
            for (_, label, of) in kinds.clone() {
                let known = of(&value(at));
                let value = if family == AGE {
                    Value::Nano(known.age_ns)
                } else {
                    Value::Whole(known.unknown())
                };
                text.series(family.name, &group.labels, label, value);
            }
        }
    }
}

fn threads(text: &mut Exposition, tracker: &Tracker) {
    if tracker.thread_names().next().is_none() {
        return;
    }
    let all = tracker.thread_names().map(|name| (&*name.labels, name));
    let total = |count: Count| move |name: &ThreadName| [Value::Whole(name.total.get(count))];
    each(text, &all, &THREAD_COUNT, [""], |name| {
        [Value::Whole(name.count)]
    });
    each(text, &all, &THREAD_CPU, MODES, |name| cpu(&name.total));
    each(
        text,
        &all,
        &THREAD_IO,
        [",iomode=\"read\"", ",iomode=\"write\""],
        |name| [Count::Read, Count::Write].map(|count| Value::Whole(name.total.get(count))),
    );
    for (family, count) in [
        (THREAD_MAJOR, Count::MajorFaults),
        (THREAD_MINOR, Count::MinorFaults),
    ] {
        each(text, &all, &family, [""], total(count));
    }
    each(text, &all, &THREAD_SWITCHES, SWITCH_TYPES, |name| {
        switches(&name.total)
    });
}

const MODES: [&str; 2] = [",mode=\"user\"", ",mode=\"system\""];
const SWITCH_TYPES: [&str; 2] = [
    ",ctxswitchtype=\"voluntary\"",
    ",ctxswitchtype=\"nonvoluntary\"",
];

fn cpu(counts: &Counts) -> [Value; 2] {
    [Count::User, Count::System].map(|count| Value::Nano(counts.get(count)))
}

fn switches(counts: &Counts) -> [Value; 2] {
    [Count::Voluntary, Count::Nonvoluntary].map(|count| Value::Whole(counts.get(count)))
}
