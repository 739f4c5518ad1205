//! Machines with many CPUs or interrupts: checks that the emulator provides them, and uses them.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::{reporter::Reporter, survey::read};

/// Checks the number of CPUs, of interrupt numbers, and of those in use.
pub fn check(
    reporter: &mut Reporter,
    cpus: usize,
    numbers: usize,
    in_use: usize,
) -> io::Result<()> {
    let stat = read("/proc/stat");
    let found = stat
        .lines()
        .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
        .count();
    reporter.check(
        "cpus",
        found == cpus,
        format!("{found} are online, of {cpus} meant"),
    )?;

    let line = stat
        .lines()
        .find_map(|line| line.strip_prefix("intr "))
        .unwrap_or_default();
    let counts: Vec<_> = line.split(' ').skip(1).collect();
    let active = counts.iter().filter(|count| **count != "0").count();
    let detail = format!("{} numbers, of at least {numbers} meant", counts.len());
    reporter.check("interrupt numbers", counts.len() >= numbers, detail)?;
    let detail = format!("{active} were raised, of at least {in_use} meant");
    reporter.check("interrupts in use", active >= in_use, detail)
}

/// Makes every queue of every disk raise its interrupt: a controller has a queue for each CPU, so every CPU reads from
/// every disk.
pub fn use_every_queue() -> io::Result<()> {
    let mut disks = Vec::new();
    for entry in fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        if name.to_string_lossy().starts_with("nvme") {
            disks.push(File::open(format!("/dev/{}", name.display()))?);
        }
    }
    let all = rustix::thread::sched_getaffinity(None)?;
    for cpu in (0..CpuSet::MAX_CPU).filter(|&cpu| all.is_set(cpu)) {
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(None, &one)?;
        for disk in &disks {
            // Far enough from the last position that it was not read ahead.
            disk.read_exact_at(&mut [0; 512], (cpu as u64 + 1) << 22)?;
        }
    }
    sched_setaffinity(None, &all)?;
    Ok(())
}
