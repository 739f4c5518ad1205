//! Every metric of a cgroup: its name, type and meaning, and where its values are.

use fastproc::cgroups::record::{Cpu, Device, Memory, Pressure, UNLIMITED};

use super::{FileSystem, Row};
use crate::exposition::{Family, Value};

/// A metric of cgroups. All have the labels of the cgroup, which `family` does not list.
pub(super) struct Metric {
    pub family: Family,
    /// The series of a cgroup: the labels that each has in addition, and its value.
    pub series: &'static [(&'static str, Get)],
}

/// Where a value is.
#[derive(Clone, Copy)]
pub(super) enum Get {
    /// In the record of a cgroup.
    Row(fn(&Row<'_>) -> Option<Value>),
    /// Of the processes of the cgroup without those of its descendants.
    Own(fn(&Row<'_>) -> Option<u64>),
    /// In a line of memory.stat.
    Stat(&'static str),
    /// A value of each device.
    Device(fn(&Device) -> u64),
    /// The same, with the numbers of the device as labels, too.
    NumberedDevice(fn(&Device) -> u64),
    /// A number of each interface: its place in `Interface::numbers`.
    Interface(usize),
    /// A value of each file system of the machine.
    FileSystem(fn(&FileSystem) -> u64),
}

macro_rules! metrics {
    ($($name:literal $kind:ident $labels:expr, $help:literal, $($more:literal => $get:expr),+;)*) => {
        /// All of them, in the order of the text.
        pub(super) const METRICS: &[Metric] = &[$(Metric {
            family: Family {
                name: $name,
                kind: $crate::exposition::Kind::$kind,
                help: $help,
                labels: $labels,
            },
            series: &[$(($more, $get)),+],
        }),*];
    };
}

metrics! {
    "container_last_seen" Gauge &[],
        "When the cgroup was read, in seconds since 1970.",
        "" => Get::Row(|row| whole(Some(row.seen)));
    "container_start_time_seconds" Gauge &[],
        "When the first living process of the container was started, in seconds since 1970. Of other cgroups, as the next.",
        "" => Get::Row(|row| whole(row.started));
    "container_creation_time_seconds" Gauge &[],
        "When the cgroup was made, in seconds since 1970: the earlier of the times of its folder and of cgroup.events.",
        "" => Get::Row(|row| whole(row.created));
    "container_cpu_usage_seconds_total" Counter &["cpu"],
        "CPU time. The label cpu is always total.",
        ",cpu=\"total\"" => Get::Row(|row| cpu_time(row, |cpu| cpu.usage_ns));
    "container_cpu_user_seconds_total" Counter &[],
        "CPU time in user mode.",
        "" => Get::Row(|row| cpu_time(row, |cpu| cpu.user_ns));
    "container_cpu_system_seconds_total" Counter &[],
        "CPU time in kernel mode.",
        "" => Get::Row(|row| cpu_time(row, |cpu| cpu.system_ns));
    "container_cpu_schedstat_run_seconds_total" Counter &[],
        "Time that the threads of its processes ran, of those that lived since the exporter was started. This and the next two: as schedstat of each thread.",
        "" => Get::Row(|row| row.scheduled[0].map(Value::Nano));
    "container_cpu_schedstat_runqueue_seconds_total" Counter &[],
        "Time that they waited for a CPU while they could run.",
        "" => Get::Row(|row| row.scheduled[1].map(Value::Nano));
    "container_cpu_schedstat_run_periods_total" Counter &[],
        "How often one of them got a CPU.",
        "" => Get::Row(|row| whole(row.scheduled[2]));
    "container_cpu_cfs_periods_total" Counter &[],
        "Periods in which the quota of CPU time was enforced. This and the next four are absent without a quota.",
        "" => Get::Row(|row| whole(row.limited()?.periods()));
    "container_cpu_cfs_throttled_periods_total" Counter &[],
        "Periods in which it was throttled.",
        "" => Get::Row(|row| whole(row.limited()?.throttled()));
    "container_cpu_cfs_throttled_seconds_total" Counter &[],
        "Time that it was throttled, of all CPUs together.",
        "" => Get::Row(|row| row.limited()?.throttled_ns().map(Value::Nano));
    "container_cpu_cfs_burst_periods_total" Counter &[],
        "Periods with a burst.",
        "" => Get::Row(|row| whole(row.limited()?.bursts()));
    "container_cpu_cfs_burst_seconds_total" Counter &[],
        "CPU time above the quota in bursts.",
        "" => Get::Row(|row| row.limited()?.burst_ns().map(Value::Nano));
    "container_spec_cpu_period" Gauge &[],
        "The period of the quota, in microseconds.",
        "" => Get::Row(|row| Some(Value::Whole(row.cgroup.cpu()?.period_ns()? / 1000)));
    "container_spec_cpu_quota" Gauge &[],
        "CPU time that is allowed in a period, in microseconds. Absent without a quota.",
        "" => Get::Row(|row| whole(row.quota()));
    "container_spec_cpu_shares" Gauge &[],
        "cpu.weight in the unit of cgroup version 1, as cAdvisor converts it.",
        "" => Get::Row(|row| Some(Value::Whole(shares(row.cgroup.cpu()?.weight()?))));
    "container_memory_usage_bytes" Gauge &[],
        "Memory in use: memory.current. Of the root, anon and file of memory.stat together.",
        "" => Get::Row(|row| whole(row.usage()));
    "container_memory_working_set_bytes" Gauge &[],
        "Memory in use without inactive file pages.",
        "" => Get::Row(|row| whole(row.working_set()));
    "container_memory_max_usage_bytes" Gauge &[],
        "The most memory that was ever in use: memory.peak.",
        "" => Get::Row(|row| memory(row, Memory::peak));
    "container_memory_rss" Gauge &[],
        "Anonymous memory: anon of memory.stat.",
        "" => Get::Stat("anon");
    "container_memory_cache" Gauge &[],
        "Memory of files: file of memory.stat.",
        "" => Get::Stat("file");
    "container_memory_mapped_file" Gauge &[],
        "Memory of files that is mapped: file_mapped of memory.stat.",
        "" => Get::Stat("file_mapped");
    "container_memory_kernel_usage" Gauge &[],
        "Memory of the kernel: kernel of memory.stat.",
        "" => Get::Stat("kernel");
    "container_memory_swap" Gauge &[],
        "Swap in use: memory.swap.current.",
        "" => Get::Row(|row| memory(row, Memory::swap_current));
    "container_memory_total_active_file_bytes" Gauge &[],
        "active_file of memory.stat.",
        "" => Get::Stat("active_file");
    "container_memory_total_inactive_file_bytes" Gauge &[],
        "inactive_file of memory.stat.",
        "" => Get::Stat("inactive_file");
    "container_memory_file_dirty_bytes" Gauge &[],
        "Memory of files that is to be written: file_dirty of memory.stat.",
        "" => Get::Stat("file_dirty");
    "container_memory_file_writeback_bytes" Gauge &[],
        "Memory of files that is being written: file_writeback of memory.stat.",
        "" => Get::Stat("file_writeback");
    "container_memory_failures_total" Counter &["failure_type", "scope"],
        "Page faults (failure_type: pgfault, pgmajfault). Both scopes, container and hierarchy, have the same value.",
        ",failure_type=\"pgfault\",scope=\"container\"" => Get::Stat("pgfault"),
        ",failure_type=\"pgmajfault\",scope=\"container\"" => Get::Stat("pgmajfault"),
        ",failure_type=\"pgfault\",scope=\"hierarchy\"" => Get::Stat("pgfault"),
        ",failure_type=\"pgmajfault\",scope=\"hierarchy\"" => Get::Stat("pgmajfault");
    "container_memory_events_high_total" Counter &[],
        "Times that memory.high was exceeded.",
        "" => Get::Row(|row| memory(row, Memory::events_high));
    "container_memory_events_max_total" Counter &[],
        "Times that use was about to exceed memory.max.",
        "" => Get::Row(|row| memory(row, Memory::events_max));
    "container_memory_pgscan_total" Counter &[],
        "Pages that reclaim looked at: pgscan of memory.stat.",
        "" => Get::Stat("pgscan");
    "container_memory_pgsteal_total" Counter &[],
        "Pages that were reclaimed: pgsteal of memory.stat.",
        "" => Get::Stat("pgsteal");
    "container_memory_workingset_refault_file_total" Counter &[],
        "Pages of files that were read again after they were reclaimed: workingset_refault_file of memory.stat.",
        "" => Get::Stat("workingset_refault_file");
    "container_memory_workingset_refault_anon_total" Counter &[],
        "Anonymous pages likewise: workingset_refault_anon of memory.stat.",
        "" => Get::Stat("workingset_refault_anon");
    "container_spec_memory_limit_bytes" Gauge &[],
        "Limit of memory: memory.max; 0 without one.",
        "" => Get::Row(|row| memory_limit(row, Memory::max));
    "container_spec_memory_reservation_limit_bytes" Gauge &[],
        "Memory that is kept for it: memory.min, which cAdvisor reads; if that is 0, memory.low, where runtimes put a reservation.",
        "" => Get::Row(|row| Some(limit(reservation(row.memory()?)?)));
    "container_spec_memory_swap_limit_bytes" Gauge &[],
        "Limit of swap: memory.swap.max; 0 without one.",
        "" => Get::Row(|row| memory_limit(row, Memory::swap_max));
    "container_oom_events_total" Counter &[],
        "Processes that an OOM killer killed, in the cgroup and its descendants: oom_kill of memory.events.",
        "" => Get::Row(|row| memory(row, Memory::oom_kills));
    "container_fs_reads_bytes_total" Counter &["device"],
        "Bytes read from a block device. This and the next three: io.stat.",
        "" => Get::Device(|device| device.rbytes);
    "container_fs_reads_total" Counter &["device"],
        "Reads from a block device.",
        "" => Get::Device(|device| device.rios);
    "container_fs_writes_bytes_total" Counter &["device"],
        "Bytes written to a block device.",
        "" => Get::Device(|device| device.wbytes);
    "container_fs_writes_total" Counter &["device"],
        "Writes to a block device.",
        "" => Get::Device(|device| device.wios);
    "container_blkio_device_usage_total" Counter &["device", "major", "minor", "operation"],
        "Bytes read from and written to a block device, by its numbers (operation: Read, Write).",
        ",operation=\"Read\"" => Get::NumberedDevice(|device| device.rbytes),
        ",operation=\"Write\"" => Get::NumberedDevice(|device| device.wbytes);
    "container_fs_limit_bytes" Gauge &["device"],
        "Size of a file system of the machine. This and the next three: of the root only.",
        "" => Get::FileSystem(FileSystem::size);
    "container_fs_usage_bytes" Gauge &["device"],
        "What is not free of it.",
        "" => Get::FileSystem(FileSystem::used);
    "container_fs_inodes_total" Gauge &["device"],
        "Its inodes.",
        "" => Get::FileSystem(|file_system| file_system.stat.f_files);
    "container_fs_inodes_free" Gauge &["device"],
        "Its free inodes.",
        "" => Get::FileSystem(|file_system| file_system.stat.f_ffree);
    "container_network_receive_bytes_total" Counter &["interface"],
        "Bytes that an interface received. This and the next seven: /proc/PID/net/dev, once for each network namespace.",
        "" => Get::Interface(0);
    "container_network_receive_packets_total" Counter &["interface"],
        "Packets that it received.",
        "" => Get::Interface(1);
    "container_network_receive_errors_total" Counter &["interface"],
        "Errors when it received.",
        "" => Get::Interface(2);
    "container_network_receive_packets_dropped_total" Counter &["interface"],
        "Packets that it received and that were dropped.",
        "" => Get::Interface(3);
    "container_network_transmit_bytes_total" Counter &["interface"],
        "Bytes that it sent.",
        "" => Get::Interface(4);
    "container_network_transmit_packets_total" Counter &["interface"],
        "Packets that it sent.",
        "" => Get::Interface(5);
    "container_network_transmit_errors_total" Counter &["interface"],
        "Errors when it sent.",
        "" => Get::Interface(6);
    "container_network_transmit_packets_dropped_total" Counter &["interface"],
        "Packets that were dropped and not sent.",
        "" => Get::Interface(7);
    "container_processes" Gauge &[],
        "Processes in the cgroup itself, without its descendants.",
        "" => Get::Own(|row| Some(row.own?.processes));
    "container_tasks_state" Gauge &["state"],
        "Processes and threads in the cgroup itself that are sleeping, running, stopped or uninterruptible (state).",
        ",state=\"sleeping\"" => Get::Own(|row| Some(row.own?.tasks[0])),
        ",state=\"running\"" => Get::Own(|row| Some(row.own?.tasks[1])),
        ",state=\"stopped\"" => Get::Own(|row| Some(row.own?.tasks[2])),
        ",state=\"uninterruptible\"" => Get::Own(|row| Some(row.own?.tasks[3]));
    "container_file_descriptors" Gauge &[],
        "Open descriptors of the processes in the cgroup itself.",
        "" => Get::Own(|row| row.files[0]);
    "container_sockets" Gauge &[],
        "Those of them that are sockets.",
        "" => Get::Own(|row| row.files[1]);
    "container_ulimits_soft" Gauge &["ulimit"],
        "Soft limit of open files (ulimit: max_open_files) of the first process of a container, and of the root, of process 1; -1 without one.",
        ",ulimit=\"max_open_files\"" => Get::Row(|row| row.open_files.map(Value::Signed));
    "container_threads" Gauge &[],
        "Processes and threads in the cgroup and its descendants: pids.current.",
        "" => Get::Row(|row| Some(Value::Whole(row.cgroup.pids()?.current)));
    "container_threads_max" Gauge &[],
        "Their limit: pids.max; 0 without one.",
        "" => Get::Row(|row| Some(limit(row.cgroup.pids()?.max)));
    "container_pressure_cpu_waiting_seconds_total" Counter &[],
        "Time in which some task waited for a CPU. This and the next five: the files *.pressure.",
        "" => Get::Row(|row| pressure(row, |pressure| pressure.cpu_some_ns));
    "container_pressure_cpu_stalled_seconds_total" Counter &[],
        "Time in which all tasks waited for a CPU.",
        "" => Get::Row(|row| pressure(row, |pressure| pressure.cpu_full_ns));
    "container_pressure_memory_waiting_seconds_total" Counter &[],
        "Time in which some task waited for memory.",
        "" => Get::Row(|row| pressure(row, |pressure| pressure.memory_some_ns));
    "container_pressure_memory_stalled_seconds_total" Counter &[],
        "Time in which all tasks waited for memory.",
        "" => Get::Row(|row| pressure(row, |pressure| pressure.memory_full_ns));
    "container_pressure_io_waiting_seconds_total" Counter &[],
        "Time in which some task waited for I/O.",
        "" => Get::Row(|row| pressure(row, |pressure| pressure.io_some_ns));
    "container_pressure_io_stalled_seconds_total" Counter &[],
        "Time in which all tasks waited for I/O.",
        "" => Get::Row(|row| pressure(row, |pressure| pressure.io_full_ns));
}

fn whole(value: Option<u64>) -> Option<Value> {
    value.map(Value::Whole)
}

fn cpu_time(row: &Row<'_>, of: fn(&Cpu) -> u64) -> Option<Value> {
    Some(Value::Nano(of(row.cgroup.cpu()?)))
}

fn memory(row: &Row<'_>, of: fn(&Memory) -> Option<u64>) -> Option<Value> {
    whole(of(row.memory()?))
}

fn memory_limit(row: &Row<'_>, of: fn(&Memory) -> Option<u64>) -> Option<Value> {
    of(row.memory()?).map(limit)
}

fn pressure(row: &Row<'_>, of: fn(&Pressure) -> u64) -> Option<Value> {
    Some(Value::Nano(of(row.cgroup.pressure()?)))
}

fn reservation(memory: &Memory) -> Option<u64> {
    memory
        .min()
        .filter(|&min| min != 0)
        .or_else(|| memory.low())
}

/// As cAdvisor has it: 0 stands for none.
fn limit(value: u64) -> Value {
    Value::Whole(if value == UNLIMITED { 0 } else { value })
}

/// From a weight of 1 to 10,000 to shares of 2 to 262,144.
fn shares(weight: u64) -> u64 {
    2 + weight.saturating_sub(1).saturating_mul(262_142) / 9999
}
