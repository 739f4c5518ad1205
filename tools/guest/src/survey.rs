//! Reports what this kernel offers to a program that reads it, without judging it.

use std::{fs, io, path::Path, thread};

use crate::reporter::Reporter;

/// Symbols of the counters, and of the structures through which they are found.
const SYMBOLS: [&str; 10] = [
    "kernel_cpustat",
    "kstat",
    "runqueues",
    "irq_stat",
    "tick_cpu_sched",
    "total_forks",
    "vm_zone_stat",
    "vm_node_stat",
    "vm_event_states",
    "sparse_irqs",
];

pub fn survey(reporter: &mut Reporter) -> io::Result<()> {
    let uptime = read("/proc/uptime");
    reporter.fact(
        "uptime_at_init_seconds",
        uptime.split(' ').next().unwrap_or_default(),
    )?;
    reporter.fact(
        "cpus",
        thread::available_parallelism().map_or(0, usize::from),
    )?;
    reporter.fact("cpus_possible", read("/sys/devices/system/cpu/possible"))?;
    let btf = fs::metadata("/sys/kernel/btf/vmlinux").map_or(0, |file| file.len());
    reporter.fact("btf_bytes", btf)?;
    symbols(reporter)?;
    for name in [
        "net/core/bpf_jit_enable",
        "kernel/unprivileged_bpf_disabled",
        "kernel/kptr_restrict",
    ] {
        let value = read(&format!("/proc/sys/{name}"));
        reporter.fact(name, value)?;
    }
    reporter.fact("lsm", read("/sys/kernel/security/lsm"))?;
    reporter.fact("lockdown", read("/sys/kernel/security/lockdown"))?;
    reporter.fact(
        "clocksource",
        read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    )?;

    let stat = read("/proc/stat");
    let intr = stat
        .lines()
        .find_map(|line| line.strip_prefix("intr "))
        .unwrap_or_default();
    let counts: Vec<_> = intr.split(' ').skip(1).collect();
    reporter.fact("interrupts", counts.len())?;
    reporter.fact(
        "interrupts_active",
        counts.iter().filter(|count| **count != "0").count(),
    )?;
    reporter.fact("stat_bytes", stat.len() + 1)?;
    reporter.fact("vmstat_lines", read("/proc/vmstat").lines().count())?;
    let status = read("/proc/self/status");
    let labels: Vec<_> = status
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0))
        .collect();
    reporter.fact("status_labels", labels.join(" "))?;
    reporter.fact("zram", Path::new("/sys/block/zram0").exists())?;
    reporter.fact("nvme", Path::new("/sys/bus/pci/drivers/nvme").exists())
}

fn symbols(reporter: &mut Reporter) -> io::Result<()> {
    let text = read("/proc/kallsyms");
    let mut data = 0;
    let mut shown = Vec::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(kind), Some(name), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        data += usize::from(matches!(kind, "A" | "a" | "B" | "b" | "D" | "d"));
        if SYMBOLS.contains(&name) && address.bytes().any(|digit| digit != b'0') {
            shown.push(format!("{name}:{kind}"));
        }
    }
    shown.sort();
    reporter.fact("kallsyms", text.lines().count())?;
    reporter.fact("kallsyms_data", data)?;
    reporter.fact("kallsyms_shown", shown.join(" "))
}

/// A file's text, or the kernel's error.
pub fn read(path: &str) -> String {
    match fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim_end().to_owned(),
        Err(error) => error.to_string(),
    }
}
