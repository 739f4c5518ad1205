//! Converts records to values: what `show_stat()` and `vmstat_start()` do with the same numbers.

use super::{
    kinds::{Group, Groups, Scalar, int_of},
    layout::{Cpu, Run},
    object::Object,
    routes::Routes,
};
use crate::text::machine_stat::{self, CpuTimes, MachineStat};

/// Inputs besides the records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// Error interrupts from the text, if no symbol leads to them.
    pub(super) irq_errors: u64,
    /// Whether idle times come from `tick_sched`; otherwise from `kernel_cpustat`, as on a kernel run with `nohz=off`.
    pub(super) idle_from_tick: bool,
    /// Base pages in a huge one: five counters are kept in base pages and printed in huge ones.
    pub(super) huge_pages: u64,
    pub(super) page_size: u64,
}

/// `/proc/stat` except for the counts by interrupt and `btime`. Returns whether the number of forks is certain.
pub(super) fn stat(
    to: &mut MachineStat,
    object: &mut Object,
    run: &Run,
    routes: &Routes,
    known: &Known,
) -> bool {
    cpu_times(to, object, routes, known);
    let possible = routes.possible.iter();
    let records = possible.filter_map(|&id| object.cpus().get(id as usize));
    to.softirqs.clear();
    to.softirqs.resize(super::layout::SOFTIRQS, 0);
    to.softirq = 0;
    let (mut intr, mut ctxt, mut blocked) = (0_u64, 0_u64, 0_u32);
    for record in records {
        for (sum, &count) in to.softirqs.iter_mut().zip(&record.softirqs) {
            *sum = sum.wrapping_add(count);
            to.softirq = to.softirq.wrapping_add(u64::from(count));
        }
        intr = intr
            .wrapping_add(record.irqs_sum)
            .wrapping_add(u64::from(record.mce_exception))
            .wrapping_add(u64::from(record.mce_poll));
        for &word in &routes.arch {
            intr = intr.wrapping_add(u64::from(record.arch[word]));
        }
        ctxt = ctxt.wrapping_add(record.nr_switches);
        blocked = blocked.wrapping_add(record.nr_iowait);
    }
    let online = routes.online.iter();
    let running = online.filter_map(|&id| object.cpus().get(id as usize));
    to.procs_running = running.map(|record| u64::from(record.nr_running)).sum();
    to.procs_blocked = u64::from(blocked);
    let errors = if routes.scalars & Scalar::IrqErrCount.bit() != 0 {
        u64::from(int_of(run.scalars[Scalar::IrqErrCount as usize]))
    } else {
        known.irq_errors
    };
    to.intr = intr.wrapping_add(errors);
    to.ctxt = ctxt;
    let processes = if routes.scalars & Scalar::TotalForks.bit() != 0 {
        Some(run.scalars[Scalar::TotalForks as usize])
    } else {
        object.forks().total()
    };
    to.processes = processes.unwrap_or_default();
    processes.is_some()
}

fn cpu_times(to: &mut MachineStat, object: &Object, routes: &Routes, known: &Known) {
    let records = object.cpus();
    let mut total = CpuTimes::default();
    to.cpus
        .resize(routes.online.len(), machine_stat::Cpu::default());
    let mut online = routes.online.iter().copied().zip(&mut to.cpus).peekable();
    for &id in &routes.possible {
        let Some(record) = records.get(id as usize) else {
            continue;
        };
        let entry = online.next_if(|(cpu, _)| *cpu == id);
        let times = times(record, routes, known, entry.is_some());
        for (sum, ns) in total.ns.iter_mut().zip(times.ns) {
            *sum = sum.wrapping_add(ns);
        }
        if let Some((_, cpu)) = entry {
            *cpu = machine_stat::Cpu { id, times };
        }
    }
    to.total = total;
}

/// `get_idle_time()` and similar: the kernel keeps idle times of online CPUs elsewhere, in whole microseconds.
fn times(record: &Cpu, routes: &Routes, known: &Known, online: bool) -> CpuTimes {
    let mut times = CpuTimes::default();
    let Some(places) = routes.times else {
        return times;
    };
    for (ns, place) in times.ns.iter_mut().zip(places) {
        *ns = record.cpustat[place];
    }
    if routes.idle_in_cpustat {
        (times.ns[3], times.ns[4]) = (record.idle_ns, record.iowait_ns);
    } else if online && known.idle_from_tick {
        times.ns[3] = record.idle_ns / 1000 * 1000;
        times.ns[4] = record.iowait_ns / 1000 * 1000;
    }
    times
}

/// The groups of `/proc/vmstat`, in the order of the text. `huge`: lines that are printed in huge pages.
pub(super) fn vmstat(
    to: &mut Vec<u64>,
    object: &Object,
    routes: &Routes,
    groups: Groups,
    lines: usize,
    huge: &[usize],
    known: &Known,
) {
    to.clear();
    to.resize(lines.max(groups.end()), 0);
    let cpus = object.shape.cpus;
    for (block, group) in (0..).zip(&routes.blocks) {
        let row = object.row(cpus + block);
        let (first, count) = match group {
            Group::Zone => (0, groups.zone),
            Group::Numa => (groups.zone, groups.numa),
            Group::ZoneAndNuma => (0, groups.first_node()),
            Group::Node => (groups.first_node(), groups.node),
        };
        add(&mut to[first..first + count], row);
    }
    let events = groups.first_event()..groups.end();
    for &cpu in &routes.online {
        let row = object.row(cpu);
        // The kernel adds each CPU's pending numa events whenever it prints them.
        if routes.zones > 0 {
            add(&mut to[groups.zone..groups.first_node()], row);
        }
        add(
            &mut to[events.clone()],
            &row[super::layout::NUMA_EVENTS as usize..],
        );
    }
    // Sums of signed differences may be below zero.
    for value in &mut to[..groups.zone] {
        *value = (*value as i64).max(0) as u64;
    }
    for value in &mut to[groups.first_node()..groups.first_computed()] {
        *value = (*value as i64).max(0) as u64;
    }
    for &line in huge {
        if known.huge_pages > 1
            && let Some(value) = to.get_mut(line)
        {
            *value /= known.huge_pages;
        }
    }
    // The counters are in sectors, the text in KiB.
    for value in to[events].iter_mut().take(2) {
        *value /= 2;
    }
    to.truncate(lines);
}

fn add(to: &mut [u64], row: &[u64]) {
    for (sum, value) in to.iter_mut().zip(row) {
        *sum = sum.wrapping_add(*value);
    }
}

/// Inputs of `global_dirty_limits()` and of the page structures' accounting.
pub(super) const DIRTY: u32 = Scalar::TotalreservePages.bit()
    | Scalar::DirtyRatio.bit()
    | Scalar::DirtyBytes.bit()
    | Scalar::DirtyBackgroundRatio.bit()
    | Scalar::DirtyBackgroundBytes.bit();

/// The lines that the formula needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirtyLines {
    pub(super) free: usize,
    pub(super) inactive_file: usize,
    pub(super) active_file: usize,
}

/// `nr_dirty_threshold` and `nr_dirty_background_threshold`, as `domain_dirty_limits()` computes them for a reader
/// without real-time priority.
pub(super) fn dirty_limits(
    values: &[u64],
    lines: DirtyLines,
    run: &Run,
    known: &Known,
) -> (u64, u64) {
    let scalar = |scalar: Scalar| run.scalars[scalar as usize];
    let ratio =
        |scalar: Scalar| u64::from(int_of(run.scalars[scalar as usize])) * known.page_size / 100;
    let free = values[lines.free];
    let available = (free - free.min(scalar(Scalar::TotalreservePages)))
        .wrapping_add(values[lines.inactive_file])
        .wrapping_add(values[lines.active_file])
        .wrapping_add(1);
    let share = |bytes: u64, ratio: u64| match bytes {
        0 => ratio.wrapping_mul(available) / known.page_size,
        bytes => bytes.div_ceil(known.page_size),
    };
    let threshold =
        share(scalar(Scalar::DirtyBytes), ratio(Scalar::DirtyRatio)).min(u64::from(u32::MAX));
    let mut background = share(
        scalar(Scalar::DirtyBackgroundBytes),
        ratio(Scalar::DirtyBackgroundRatio),
    );
    if background >= threshold {
        background = threshold / 2;
    }
    (threshold, background)
}
