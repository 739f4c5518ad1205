//! Values of records in procps's units.

use std::sync::LazyLock;

use fastproc::{
    Host, Process,
    record::{Layout, Record},
};

use crate::{history::Sums, items::Item};

/// Units of the machine, and the time of a fetch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    tick_ns: u64,
    ticks_per_second: u64,
    page_shift: u32,
    boot_offset_ns: i64,
    /// Since boot, in ticks.
    now_ticks: u64,
}

impl Clock {
    /// Made at the beginning of a fetch.
    pub(crate) fn new(host: &Host) -> Self {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: writes to the structure.
        unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
        let seconds = now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9;
        Self {
            tick_ns: 1_000_000_000 / host.ticks_per_second.max(1),
            ticks_per_second: host.ticks_per_second.max(1),
            page_shift: host.page_size.trailing_zeros(),
            boot_offset_ns: host.boot_offset_ns,
            now_ticks: (seconds * host.ticks_per_second as f64) as u64,
        }
    }

    fn ticks(&self, ns: u64) -> u64 {
        ns / self.tick_ns
    }

    fn began(&self, process: Process<'_>) -> u64 {
        let start_ns = process.identity().start_ns;
        self.ticks(start_ns.wrapping_add_signed(self.boot_offset_ns))
    }

    fn seconds(&self, ticks: u64) -> u64 {
        (ticks as f64 / self.ticks_per_second as f64).to_bits()
    }

    /// Ticks since the process began, if any. The difference wraps around as in procps.
    fn age(&self, process: Process<'_>) -> Option<u64> {
        let age = self.now_ticks.wrapping_sub(self.began(process));
        (age > 0).then_some(age)
    }

    /// Percent of its lifetime; in single precision first, as in procps.
    fn share(&self, ticks: u64, process: Process<'_>) -> Option<u64> {
        let age = self.age(process)?;
        Some((f64::from(ticks as f32 * 100.0) / age as f64).to_bits())
    }

    /// The number of pages in this number of bytes.
    fn pages(&self, bytes: u64) -> u64 {
        bytes >> self.page_shift
    }

    /// The counters for differences.
    pub(crate) fn sums(&self, process: Process<'_>) -> Sums {
        process.cpu().map_or_else(Sums::default, |cpu| Sums {
            ticks: self.ticks(cpu.utime_ns) + self.ticks(cpu.stime_ns),
            majflt: cpu.majflt,
            minflt: cpu.minflt,
        })
    }
}

/// The number as the bits of the union's member. `None`: the result keeps its value, or is a string.
///
/// What a record lacks, the kernel does not show, and procps then has zero.
#[allow(clippy::enum_glob_use)]
pub(crate) fn number(item: Item, process: Process<'_>, clock: &Clock, delta: Sums) -> Option<u64> {
    use Item::*;
    static NOTHING: LazyLock<Record> = LazyLock::new(Record::default);
    macro_rules! of {
        ($group:ident.$member:ident) => {
            process.$group().unwrap_or(&NOTHING.$group).$member
        };
    }
    let who = process.identity();
    let ticks = |ns| clock.ticks(ns);
    let kib = |bytes: u64| bytes >> 10;
    let kib_of_pages = |bytes: u64| clock.pages(bytes) << (clock.page_shift - 10);
    let memory = || process.memory().unwrap_or(&NOTHING.memory);
    // For a process whose memory the kernel hides; without memory all addresses are zero.
    let hidden_code = u64::from(who.has_mm);
    let code = |address: fn(&Layout) -> u64, hidden| {
        if who.has_mm == 0 {
            0
        } else {
            process.layout().map_or(hidden, address)
        }
    };
    let times = || process.cpu().unwrap_or(&NOTHING.cpu);
    let own = || ticks(times().utime_ns) + ticks(times().stime_ns);
    let with_children = || own() + ticks(times().cutime_ns) + ticks(times().cstime_ns);
    let signed = |number: i32| u64::from(number as u32);
    Some(match item {
        EXTRA => 0,

        ADDR_CODE_START => code(|layout| layout.start_code, hidden_code),
        ADDR_CODE_END => code(|layout| layout.end_code, hidden_code),
        ADDR_CURR_EIP => code(|layout| layout.kstkeip, 0),
        ADDR_CURR_ESP => code(|layout| layout.kstkesp, 0),
        ADDR_STACK_START => code(|layout| layout.start_stack, 0),

        EXIT_SIGNAL => signed(who.exit_signal),
        FLAGS => who.flags.into(),
        NLWP => who.num_threads.max(1).into(),
        STATE => who.state().letter().into(),
        TTY => signed(who.tty_nr),
        ID_PGRP => who.pgrp.into(),
        ID_PID | ID_TGID | ID_TID => who.tgid.into(),
        ID_PPID => who.ppid.into(),
        ID_SESSION => who.session.into(),
        ID_TPGID => signed(who.tpgid),

        ID_EGID => of!(users.egid).into(),
        ID_EUID => of!(users.euid).into(),
        ID_FGID => of!(users.fsgid).into(),
        ID_FUID => of!(users.fsuid).into(),
        ID_RGID => of!(users.gid).into(),
        ID_RUID => of!(users.uid).into(),
        ID_SGID => of!(users.sgid).into(),
        ID_SUID => of!(users.suid).into(),

        FLT_MAJ => of!(cpu.majflt),
        FLT_MAJ_C => of!(cpu.majflt) + of!(cpu.cmajflt),
        FLT_MAJ_DELTA => signed(delta.majflt as i32),
        FLT_MIN => of!(cpu.minflt),
        FLT_MIN_C => of!(cpu.minflt) + of!(cpu.cminflt),
        FLT_MIN_DELTA => signed(delta.minflt as i32),
        TICS_ALL => own(),
        TICS_ALL_C => with_children(),
        TICS_ALL_DELTA => u64::from(delta.ticks as u32),
        TICS_BEGAN => clock.began(process),
        TICS_BLKIO => ticks(of!(scheduling_details.blkio_ns)),
        TICS_GUEST => ticks(of!(cpu.gtime_ns)),
        TICS_GUEST_C => ticks(of!(cpu.gtime_ns)) + ticks(of!(cpu.cgtime_ns)),
        TICS_SYSTEM => ticks(of!(cpu.stime_ns)),
        TICS_SYSTEM_C => ticks(of!(cpu.stime_ns)) + ticks(of!(cpu.cstime_ns)),
        TICS_USER => ticks(of!(cpu.utime_ns)),
        TICS_USER_C => ticks(of!(cpu.utime_ns)) + ticks(of!(cpu.cutime_ns)),
        TIME_ALL => clock.seconds(own()),
        TIME_ALL_C => clock.seconds(with_children()),
        TIME_START => clock.seconds(clock.began(process)),
        // Before the first tick no time can have been used, and the last value stays.
        TIME_ELAPSED => clock.seconds(clock.age(process)?),
        UTILIZATION => clock.share(own(), process)?,
        UTILIZATION_C => clock.share(with_children(), process)?,

        IO_READ_BYTES => of!(io.read_bytes),
        IO_READ_CHARS => of!(io.rchar),
        IO_READ_OPS => of!(io.syscr),
        IO_WRITE_BYTES => of!(io.write_bytes),
        IO_WRITE_CBYTES => of!(io.cancelled_write_bytes),
        IO_WRITE_CHARS => of!(io.wchar),
        IO_WRITE_OPS => of!(io.syscw),

        MEM_CODE => kib_of_pages(memory().text),
        MEM_CODE_PGS => clock.pages(memory().text),
        MEM_DATA => kib_of_pages(memory().data + memory().stack),
        MEM_DATA_PGS => clock.pages(memory().data + memory().stack),
        MEM_RES => kib_of_pages(memory().rss()),
        MEM_RES_PGS => clock.pages(memory().rss()),
        MEM_SHR => kib_of_pages(memory().shared()),
        MEM_SHR_PGS => clock.pages(memory().shared()),
        MEM_VIRT => kib_of_pages(memory().vsize),
        MEM_VIRT_PGS => clock.pages(memory().vsize),
        RSS => clock.pages(memory().rss_approx),
        RSS_RLIM => of!(limits.rss_limit),
        VM_DATA => kib(memory().data),
        VM_EXE => kib(memory().exe),
        VM_LIB => kib(memory().lib),
        VM_RSS => kib(memory().rss()),
        VM_RSS_ANON => kib(memory().rss_anon),
        VM_RSS_FILE => kib(memory().rss_file),
        VM_RSS_LOCKED => kib(memory().locked),
        VM_RSS_SHARED => kib(memory().rss_shmem),
        VM_SIZE => kib(memory().vsize),
        VM_STACK => kib(memory().stack),
        VM_SWAP => kib(memory().swap),
        VM_USED => kib(memory().swap) + kib(memory().rss()),
        VSIZE_BYTES => memory().vsize,

        NICE => signed(of!(scheduling.nice)),
        PRIORITY => signed(of!(scheduling.priority)),
        PRIORITY_RT => of!(scheduling.rt_priority).into(),
        PROCESSOR => of!(scheduling.processor).into(),
        SCHED_CLASS => of!(scheduling.policy).into(),
        _ => return None,
    })
}

/// The set of signals that an item shows.
pub(crate) fn signals(item: Item, process: Process<'_>) -> Option<u64> {
    let signals = process.signals().copied().unwrap_or_default();
    Some(match item {
        Item::SIGBLOCKED => signals.blocked,
        Item::SIGCATCH => signals.caught,
        Item::SIGIGNORE => signals.ignored,
        Item::SIGNALS => signals.shared_pending,
        Item::SIGPENDING => signals.pending,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use fastproc::Fields;

    use super::*;

    /// Each counter is a different number, so that none is mistaken for its neighbour.
    #[test]
    fn counts_of_waited_children_are_added() {
        let host = Host::read().expect("the host can be asked");
        let clock = Clock::new(&host);
        let mut record = Record::default();
        record.identity.groups = Fields::CPU.bits();
        let cpu = &mut record.cpu;
        (cpu.minflt, cpu.cminflt, cpu.majflt, cpu.cmajflt) = (1, 20, 300, 4000);
        let ticks = |count: u64| count * clock.tick_ns;
        (cpu.utime_ns, cpu.stime_ns) = (ticks(1), ticks(20));
        (cpu.cutime_ns, cpu.cstime_ns) = (ticks(300), ticks(4000));
        (cpu.gtime_ns, cpu.cgtime_ns) = (ticks(5), ticks(60));
        let process = Process::new(&record, &[]);
        for (item, expected) in [
            (Item::FLT_MIN, 1),
            (Item::FLT_MIN_C, 21),
            (Item::FLT_MAJ, 300),
            (Item::FLT_MAJ_C, 4300),
            (Item::TICS_USER, 1),
            (Item::TICS_USER_C, 301),
            (Item::TICS_SYSTEM, 20),
            (Item::TICS_SYSTEM_C, 4020),
            (Item::TICS_ALL, 21),
            (Item::TICS_ALL_C, 4321),
            (Item::TICS_GUEST, 5),
            (Item::TICS_GUEST_C, 65),
        ] {
            let shown = number(item, process, &clock, Sums::default());
            assert_eq!(shown, Some(expected), "{item:?}");
        }
    }
}
