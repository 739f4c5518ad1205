//! The names of cAdvisor 0.60.5, as `lib/metrics/prometheus.go` has them: which of them the exporter has, how they differ, and
//! what to use in place of the others.

use super::cgroups;

/// Names that it lacks, and why.
const ABSENT: &[(&[&str], &str)] = &[
    (
        &["cadvisor_version_info"],
        "the version of another program: `fastproc_build_info`, and `node_uname_info` for the kernel",
    ),
    (
        &[
            "container_cpu_load_average_10s",
            "container_cpu_load_d_average_10s",
        ],
        "the kernel tells it only of version 1: `container_tasks_state`, `container_pressure_cpu_waiting_seconds_total`",
    ),
    (
        &[
            "container_fs_io_cost_indebt_seconds_total",
            "container_fs_io_cost_indelay_seconds_total",
            "container_fs_io_cost_usage_seconds_total",
            "container_fs_io_cost_wait_seconds_total",
        ],
        "only a machine that uses io.cost has them: `cost.*` in the files io.stat",
    ),
    (
        &[
            "container_fs_io_current",
            "container_fs_io_time_seconds_total",
            "container_fs_io_time_weighted_seconds_total",
            "container_fs_read_seconds_total",
            "container_fs_reads_merged_total",
            "container_fs_sector_reads_total",
            "container_fs_sector_writes_total",
            "container_fs_write_seconds_total",
            "container_fs_writes_merged_total",
        ],
        "io.stat of version 2 has bytes and operations only: `node_disk_*` for the disk, `container_pressure_io_waiting_seconds_total` \
         for the container",
    ),
    (
        &["container_health_state"],
        "only Docker's daemon knows it, which nothing asks: `kube_pod_container_status_ready`, or a probe",
    ),
    (
        &[
            "container_hugetlb_failcnt",
            "container_hugetlb_max_usage_bytes",
            "container_hugetlb_usage_bytes",
        ],
        "the controller is rarely on: the files `hugetlb.SIZE.*`, and `node_memory_HugePages_*` for the machine",
    ),
    (
        &[
            "container_llc_occupancy_bytes",
            "container_memory_bandwidth_bytes",
            "container_memory_bandwidth_local_bytes",
        ],
        "they need a group of resctrl for each container, which would be a change of the machine: the files below /sys/fs/resctrl",
    ),
    (
        &["container_memory_failcnt"],
        "version 2 has no such counter, and cAdvisor says 0: `container_memory_events_max_total`",
    ),
    (
        &["container_memory_migrate"],
        "version 2 has no such switch, and cAdvisor says 0",
    ),
    (
        &["container_memory_numa_pages"],
        "memory.numa_stat is a long text, and few ask for it: the file",
    ),
    (
        &[
            "container_network_advance_tcp_stats_total",
            "container_network_tcp6_usage_total",
            "container_network_tcp_usage_total",
            "container_network_udp6_usage_total",
            "container_network_udp_usage_total",
        ],
        "the list of all sockets of each network would be read at each scrape: `node_netstat_*` and `node_sockstat_*` for the machine",
    ),
    (
        &[
            "container_perf_events_scaling_ratio",
            "container_perf_events_total",
            "container_perf_uncore_events_scaling_ratio",
            "container_perf_uncore_events_total",
        ],
        "they take counters of the CPU for each cgroup: `perf stat --for-each-cgroup`",
    ),
    (
        &["container_referenced_bytes"],
        "reading it again means to clear marks that reclaim uses: `container_memory_working_set_bytes`",
    ),
];

/// How those that it has differ.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "container_blkio_device_usage_total",
        "Read and Write; a device that was used by nothing yet is absent",
    ),
    (
        "container_cpu_schedstat_run_periods_total",
        "as `container_cpu_schedstat_runqueue_seconds_total`",
    ),
    (
        "container_cpu_schedstat_run_seconds_total",
        "of all threads; there, of the leading thread of each process. A process that moves to another cgroup counts there from then \
         on, what it did before stays. What came and went between two scrapes in a cgroup that did so, too, is not counted. The \
         source `procfs` does not know it",
    ),
    (
        "container_cpu_schedstat_runqueue_seconds_total",
        "as `container_cpu_schedstat_run_seconds_total`; the source `procfs` knows it of living threads: when one \
         exits, the number stays until the others have more",
    ),
    (
        "container_cpu_usage_seconds_total",
        "0 for a cgroup that has used no CPU time; there, no series. By `bpf` times have nanoseconds, there microseconds. None by CPU, \
         as there on version 2",
    ),
    (
        "container_creation_time_seconds",
        "taken once for each cgroup; there again and again, and so later when the kernel has made its inodes again. For containers of \
         some runtimes, there what the runtime says",
    ),
    (
        "container_file_descriptors",
        "as `container_processes`; of a process whose first thread has ended, those of another one; there, 0. Absent if some are \
         not known",
    ),
    ("container_fs_inodes_free", "as `container_fs_usage_bytes`"),
    ("container_fs_inodes_total", "as `container_fs_usage_bytes`"),
    ("container_fs_limit_bytes", "as `container_fs_usage_bytes`"),
    (
        "container_fs_usage_bytes",
        "only the root's, and without what is mounted for pods and containers; a container has no source that is right and cheap \
         ([below](#file-systems))",
    ),
    (
        "container_memory_kernel_usage",
        "the line `kernel` of memory.stat; there, 0 on version 2",
    ),
    ("container_memory_swap", "absent for the root"),
    (
        "container_network_receive_bytes_total",
        "once for each network, and none for a pod in the network of the machine ([below](#networks)); so the next seven",
    ),
    (
        "container_oom_events_total",
        "processes killed in the cgroup and its descendants; there, those that the kernel's log names since cAdvisor started",
    ),
    (
        "container_processes",
        "below the cgroup of a container, too, it has the names of the container",
    ),
    ("container_sockets", "as `container_file_descriptors`"),
    (
        "container_spec_memory_reservation_limit_bytes",
        "memory.low if memory.min is 0; there, memory.min only, and so 0 with `docker run --memory-reservation`",
    ),
    (
        "container_start_time_seconds",
        "of a container, when the first of its living processes was started; there, as `container_creation_time_seconds`, or what \
         the runtime says",
    ),
    (
        "container_tasks_state",
        "by threads, with the names of the container below its cgroup, too, and without the state `iowaiting`, which the records lack; \
         there, 0 on version 2",
    ),
    (
        "container_ulimits_soft",
        "read again after five seconds at the earliest",
    ),
];

/// A table of all names in alphabetical order for the documentation.
pub fn cadvisor_names() -> String {
    let families = cgroups::families();
    let of_cadvisor = families
        .iter()
        .map(|family| family.name)
        .filter(|name| name.starts_with("container_"));
    let has = of_cadvisor.map(|name| {
        let found = DIFFERENT.iter().find(|(of, _)| *of == name);
        (name, "yes", found.map_or("", |(_, how)| how))
    });
    let absent = ABSENT
        .iter()
        .flat_map(|(names, why)| names.iter().map(|&name| (name, "no", *why)));
    let mut rows: Vec<_> = has.chain(absent).collect();
    rows.sort_unstable();
    let yes = rows.iter().filter(|(_, has, _)| *has == "yes").count();
    let mut table = format!(
        "It has {yes} of the {} names of cAdvisor 0.60.5.\n\n| name | has | how it differs, or why not and what to use |\n|---|---|---|\n",
        rows.len()
    );
    for (name, has, text) in rows {
        table += &format!("| `{name}` | {has} | {text} |\n");
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_of_the_107_names_is_there_once() {
        let table = cadvisor_names();
        let names: Vec<_> = table
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        assert_eq!(names.len(), 107);
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 107);
        let notes = DIFFERENT.iter().map(|(name, _)| name);
        assert!(notes.clone().all(|name| names.contains(name)));
        let absent = ABSENT.iter().flat_map(|(names, _)| *names);
        let absent: HashSet<_> = absent.collect();
        assert!(notes.into_iter().all(|name| !absent.contains(name)));
    }
}
