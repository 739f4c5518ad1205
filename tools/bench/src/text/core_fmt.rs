//! The same texts by `write!`: as the kernel did by `seq_printf()` before it had anything faster, a call for each line.

use std::fmt::{self, Write};

use fastproc::{Process, record::Record, text::Units};

use super::input::Input;

/// Renders by `write!` into one buffer.
pub struct CoreFmt {
    units: Units,
    /// The lines of this kernel's status, in its order.
    lines: Vec<Source>,
    machine: Machine,
    out: Out,
}

/// What the lines of this kernel depend on besides the record.
#[derive(Clone, Debug)]
struct Machine {
    cpus: usize,
    cpu_words: usize,
    node_bits: usize,
    node_words: usize,
    thp_disable_bit: u32,
    store_bypass: String,
    indirect_branch: String,
}

/// Bytes: a name need not be UTF-8.
#[derive(Debug, Default)]
struct Out(Vec<u8>);

impl Write for Out {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

type Put = fn(&Process<'_>, &Machine, &mut Out) -> fmt::Result;

#[derive(Clone, Debug)]
enum Source {
    Put {
        put: Put,
        needs_memory: bool,
    },
    /// A label with a colon: the line is the kernel's.
    Kernel(String),
}

impl CoreFmt {
    /// Learns the lines from this process's own.
    pub fn new(input: &Input) -> Self {
        let own = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kernel: Vec<&str> = input.format.kernel_lines().collect();
        let value = |label: &str| {
            own.lines()
                .find_map(|line| line.strip_prefix(label))
                .unwrap_or_default()
                .to_owned()
        };
        let digits = value("Mems_allowed:\t")
            .bytes()
            .filter(|&byte| byte != b',')
            .count();
        let lines = own.lines().filter_map(|line| line.split_once(':'));
        let lines = lines.map(|(label, _)| {
            let known = SIMPLE
                .iter()
                .chain(OTHER)
                .find(|(known, _, _)| *known == label && !kernel.contains(&label));
            match known {
                Some(&(_, needs_memory, put)) => Source::Put { put, needs_memory },
                None => Source::Kernel(format!("{label}:")),
            }
        });
        Self {
            units: input.units,
            lines: lines.collect(),
            machine: Machine {
                cpus: input.cpus,
                cpu_words: input.format.cpu_words(),
                node_bits: 4 * digits,
                node_words: input.format.node_words(),
                thp_disable_bit: input.format.thp_disable_bit().unwrap_or(0),
                store_bypass: value("Speculation_Store_Bypass:\t"),
                indirect_branch: value("SpeculationIndirectBranch:\t"),
            },
            out: Out::default(),
        }
    }

    /// Empties the buffer.
    pub fn clear(&mut self) {
        self.out.0.clear();
    }

    /// What was rendered since.
    pub fn text(&self) -> &[u8] {
        &self.out.0
    }

    /// Appends `/proc/PID/stat`, for a reader who may see all of it.
    pub fn stat(&mut self, process: Process<'_>) -> fmt::Result {
        let (units, out) = (&self.units, &mut self.out);
        let Record {
            identity,
            cpu,
            memory,
            layout,
            signals,
            scheduling,
            scheduling_details,
            limits,
            ..
        } = process.record();
        let ticks = |ns: u64| ns / units.tick_ns;
        let shown = identity.masked == 0;
        let mm = identity.has_mm != 0;
        write!(out, "{} (", identity.tgid)?;
        out.0.extend_from_slice(&process.name());
        write!(
            out,
            ") {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} 0 {} {} {} {}",
            char::from(identity.state().letter()),
            identity.ppid,
            identity.pgrp as i32,
            identity.session as i32,
            identity.tty_nr,
            identity.tpgid,
            identity.flags,
            cpu.minflt,
            cpu.cminflt,
            cpu.majflt,
            cpu.cmajflt,
            ticks(cpu.utime_ns),
            ticks(cpu.stime_ns),
            ticks(cpu.cutime_ns),
            ticks(cpu.cstime_ns),
            scheduling.priority,
            scheduling.nice,
            identity.num_threads,
            ticks(identity.start_ns.wrapping_add_signed(units.boot_offset_ns)),
            if mm { memory.vsize } else { 0 },
            if mm {
                memory.rss_approx >> units.page_shift
            } else {
                0
            },
            limits.rss_limit,
        )?;
        match (mm, shown) {
            (true, true) => write!(
                out,
                " {} {} {} {} {}",
                layout.start_code,
                layout.end_code,
                layout.start_stack,
                layout.kstkesp,
                layout.kstkeip
            )?,
            (true, false) => write!(out, " 1 1 0 0 0")?,
            (false, _) => write!(out, " 0 0 0 0 0")?,
        }
        write!(
            out,
            " {} {} {} {} {} 0 0 {} {} {} {} {} {} {}",
            signals.pending & 0x7fff_ffff,
            signals.blocked & 0x7fff_ffff,
            signals.ignored & 0x7fff_ffff,
            signals.caught & 0x7fff_ffff,
            u8::from(shown && identity.wchan != 0),
            identity.exit_signal,
            scheduling.processor as i32,
            scheduling.rt_priority,
            scheduling.policy,
            ticks(scheduling_details.blkio_ns),
            ticks(cpu.gtime_ns),
            ticks(cpu.cgtime_ns),
        )?;
        if mm && shown {
            write!(
                out,
                " {} {} {} {} {} {} {}",
                layout.start_data,
                layout.end_data,
                layout.start_brk,
                layout.arg_start,
                layout.arg_end,
                layout.env_start,
                layout.env_end
            )?;
        } else {
            write!(out, " 0 0 0 0 0 0 0")?;
        }
        writeln!(out, " {}", if shown { identity.exit_code } else { 0 })
    }

    /// Appends `/proc/PID/statm`.
    pub fn statm(&mut self, process: Process<'_>) -> fmt::Result {
        let record = process.record();
        if record.identity.has_mm == 0 {
            return writeln!(self.out, "0 0 0 0 0 0 0");
        }
        let m = &record.memory;
        let pages = |bytes: u64| bytes >> self.units.page_shift;
        writeln!(
            self.out,
            "{} {} {} {} 0 {} 0",
            pages(m.vsize),
            pages(m.rss()),
            pages(m.shared()),
            pages(m.text),
            pages(m.data + m.stack),
        )
    }

    /// Appends `/proc/PID/status`.
    pub fn status(&mut self, process: Process<'_>, kernel_text: Option<&[u8]>) -> fmt::Result {
        let has_memory = process.identity().has_mm != 0;
        for line in &self.lines {
            match line {
                Source::Put { put, needs_memory } => {
                    if has_memory || !needs_memory {
                        put(&process, &self.machine, &mut self.out)?;
                    }
                }
                Source::Kernel(label) => {
                    let mut lines = kernel_text
                        .unwrap_or_default()
                        .split_inclusive(|&byte| byte == b'\n');
                    let line = lines.find(|line| line.starts_with(label.as_bytes()));
                    self.out.0.extend_from_slice(line.unwrap_or_default());
                }
            }
        }
        Ok(())
    }
}

/// A line for each `label => format, values`, and those that need more than one call.
macro_rules! lines {
    ($(($label:literal $($memory:ident)?) |$p:pat_param, $m:pat_param| $format:literal, $($value:expr),*;)*) => {
        &[$(($label, lines!(@$($memory)?), |$p: &Process<'_>, $m, out| {
            writeln!(out, concat!($label, ":\t", $format), $($value),*)
        }),)*]
    };
    (@memory) => { true };
    (@) => { false };
}

fn record<'a>(process: &Process<'a>) -> &'a Record {
    process.record()
}

const SIMPLE: &[(&str, bool, Put)] = lines! {
    ("State") |p, _| "{}", p.state().name();
    ("Tgid") |p, _| "{}", p.pid();
    ("Ngid") |p, _| "{}", record(p).scheduling_details.ngid;
    ("Pid") |p, _| "{}", p.pid();
    ("PPid") |p, _| "{}", record(p).identity.ppid;
    ("TracerPid") |p, _| "{}", record(p).identity.tracer_pid;
    ("Uid") |p, _| "{}\t{}\t{}\t{}", record(p).users.uid, record(p).users.euid,
        record(p).users.suid, record(p).users.fsuid;
    ("Gid") |p, _| "{}\t{}\t{}\t{}", record(p).users.gid, record(p).users.egid,
        record(p).users.sgid, record(p).users.fsgid;
    ("FDSize") |p, _| "{}", record(p).limits.fd_size;
    ("Kthread") |p, _| "{}", u8::from(record(p).identity.is_kernel_thread());
    ("VmPeak" memory) |p, _| "{:8} kB", record(p).memory.peak_vsize >> 10;
    ("VmSize" memory) |p, _| "{:8} kB", record(p).memory.vsize >> 10;
    ("VmLck" memory) |p, _| "{:8} kB", record(p).memory.locked >> 10;
    ("VmPin" memory) |p, _| "{:8} kB", record(p).memory.pinned >> 10;
    ("VmHWM" memory) |p, _| "{:8} kB", record(p).memory.peak_rss >> 10;
    ("VmRSS" memory) |p, _| "{:8} kB", record(p).memory.rss() >> 10;
    ("RssAnon" memory) |p, _| "{:8} kB", record(p).memory.rss_anon >> 10;
    ("RssFile" memory) |p, _| "{:8} kB", record(p).memory.rss_file >> 10;
    ("RssShmem" memory) |p, _| "{:8} kB", record(p).memory.rss_shmem >> 10;
    ("VmData" memory) |p, _| "{:8} kB", record(p).memory.data >> 10;
    ("VmStk" memory) |p, _| "{:8} kB", record(p).memory.stack >> 10;
    ("VmExe" memory) |p, _| "{:8} kB", record(p).memory.exe >> 10;
    ("VmLib" memory) |p, _| "{:8} kB", record(p).memory.lib >> 10;
    ("VmPTE" memory) |p, _| "{:8} kB", record(p).memory_details.page_tables >> 10;
    ("VmSwap" memory) |p, _| "{:8} kB", record(p).memory.swap >> 10;
    ("HugetlbPages" memory) |p, _| "{:8} kB", record(p).memory_details.hugetlb >> 10;
    ("CoreDumping" memory) |p, _| "{}", record(p).identity.core_dumping;
    ("THP_enabled" memory) |p, m| "{}", u8::from(record(p).memory_details.mm_flags >> m.thp_disable_bit & 1 == 0);
    ("untag_mask" memory) |p, _| "{:#x}", record(p).memory_details.untag_mask;
    ("Threads") |p, _| "{}", record(p).identity.num_threads;
    ("SigQ") |p, _| "{}/{}", record(p).signals.queued, record(p).signals.queue_limit;
    ("SigPnd") |p, _| "{:016x}", record(p).signals.pending;
    ("ShdPnd") |p, _| "{:016x}", record(p).signals.shared_pending;
    ("SigBlk") |p, _| "{:016x}", record(p).signals.blocked;
    ("SigIgn") |p, _| "{:016x}", record(p).signals.ignored;
    ("SigCgt") |p, _| "{:016x}", record(p).signals.caught;
    ("CapInh") |p, _| "{:016x}", record(p).credentials.cap_inheritable;
    ("CapPrm") |p, _| "{:016x}", record(p).credentials.cap_permitted;
    ("CapEff") |p, _| "{:016x}", record(p).credentials.cap_effective;
    ("CapBnd") |p, _| "{:016x}", record(p).credentials.cap_bounding;
    ("CapAmb") |p, _| "{:016x}", record(p).credentials.cap_ambient;
    ("NoNewPrivs") |p, _| "{}", u8::from(record(p).credentials.no_new_privs());
    ("Seccomp") |p, _| "{}", record(p).credentials.seccomp_mode;
    ("Seccomp_filters") |p, _| "{}", record(p).credentials.seccomp_filters;
    ("Speculation_Store_Bypass") |p, m| "{}", store_bypass(p, m);
    ("SpeculationIndirectBranch") |p, m| "{}", indirect_branch(p, m);
    ("voluntary_ctxt_switches") |p, _| "{}", record(p).cpu.nvcsw;
    ("nonvoluntary_ctxt_switches") |p, _| "{}", record(p).cpu.nivcsw;
    ("x86_Thread_features") |p, _| "{}", features(record(p).credentials.thread_features);
    ("x86_Thread_features_locked") |p, _| "{}", features(record(p).credentials.thread_features_locked);
};

const OTHER: &[(&str, bool, Put)] = &[
    ("Name", false, |p, _, out| {
        out.write_str("Name:\t")?;
        for &byte in p.name().iter() {
            match byte {
                b'\n' => out.write_str("\\n")?,
                b'\\' => out.write_str("\\\\")?,
                _ => out.0.push(byte),
            }
        }
        out.write_char('\n')
    }),
    ("Umask", false, |p, _, out| {
        match record(p).credentials.umask() {
            // It is past exit_fs().
            None => Ok(()),
            Some(umask) => writeln!(out, "Umask:\t0{umask:03o}"),
        }
    }),
    ("Groups", false, |p, _, out| {
        out.write_str("Groups:\t")?;
        for group in p.supplementary_groups() {
            write!(out, "{group} ")?;
        }
        out.write_str(if record(p).credentials.ngroups == 0 {
            " \n"
        } else {
            "\n"
        })
    }),
    ("NStgid", false, |p, _, out| {
        write!(out, "NStgid:\t{}", p.pid())?;
        nested(out, p.nested_ids().map(|ids| ids.tgid))
    }),
    ("NSpid", false, |p, _, out| {
        write!(out, "NSpid:\t{}", p.pid())?;
        nested(out, p.nested_ids().map(|ids| ids.pid))
    }),
    ("NSpgid", false, |p, _, out| {
        write!(out, "NSpgid:\t{}", record(p).identity.pgrp as i32)?;
        nested(out, p.nested_ids().map(|ids| ids.pgrp))
    }),
    ("NSsid", false, |p, _, out| {
        write!(out, "NSsid:\t{}", record(p).identity.session as i32)?;
        nested(out, p.nested_ids().map(|ids| ids.session))
    }),
    ("Cpus_allowed", false, |p, m, out| {
        out.write_str("Cpus_allowed:\t")?;
        bitmap(out, p.cpus_allowed(m.cpu_words), m.cpus)
    }),
    ("Cpus_allowed_list", false, |p, m, out| {
        out.write_str("Cpus_allowed_list:\t")?;
        bitmap_list(out, p.cpus_allowed(m.cpu_words), m.cpus)
    }),
    ("Mems_allowed", false, |p, m, out| {
        out.write_str("Mems_allowed:\t")?;
        bitmap(out, p.mems_allowed(m.node_words), m.node_bits)
    }),
    ("Mems_allowed_list", false, |p, m, out| {
        out.write_str("Mems_allowed_list:\t")?;
        bitmap_list(out, p.mems_allowed(m.node_words), m.node_bits)
    }),
];

fn nested(out: &mut Out, ids: impl Iterator<Item = u32>) -> fmt::Result {
    for id in ids {
        write!(out, "\t{id}")?;
    }
    out.write_char('\n')
}

/// `%*pb`: groups of 32 bits, of which the first is as long as the bits need.
fn bitmap(out: &mut Out, words: &[u64], bits: usize) -> fmt::Result {
    let groups = bits.div_ceil(32);
    for group in (0..groups).rev() {
        let word = words.get(group / 2).copied().unwrap_or(0);
        let mut value = (word >> (32 * (group % 2))) as u32;
        let mut digits = 8;
        if group == groups - 1 && !bits.is_multiple_of(32) {
            value &= (1 << (bits % 32)) - 1;
            digits = (bits % 32).div_ceil(4);
        }
        write!(out, "{value:0digits$x}")?;
        out.write_char(if group == 0 { '\n' } else { ',' })?;
    }
    Ok(())
}

/// `%*pbl`: ranges.
fn bitmap_list(out: &mut Out, words: &[u64], bits: usize) -> fmt::Result {
    let is_set = |bit: usize| {
        bit < bits
            && words
                .get(bit / 64)
                .is_some_and(|word| word >> (bit % 64) & 1 != 0)
    };
    let (mut bit, mut separator) = (0, "");
    while bit < bits {
        if !is_set(bit) {
            bit += 1;
            continue;
        }
        let first = bit;
        while is_set(bit) {
            bit += 1;
        }
        write!(out, "{separator}{first}")?;
        if bit - first > 1 {
            write!(out, "-{}", bit - 1)?;
        }
        separator = ",";
    }
    out.write_char('\n')
}

/// One answer for the machine, or one for each process.
fn store_bypass<'a>(process: &Process<'_>, machine: &'a Machine) -> &'a str {
    let flags = record(process).credentials.atomic_flags;
    let is = |bit: u32| flags >> bit & 1 != 0;
    match &*machine.store_bypass {
        own if !own.starts_with("thread ") => own,
        _ if is(4) => "thread force mitigated",
        _ if is(7) => "vulnerable",
        _ if is(3) => "thread mitigated",
        _ => "thread vulnerable",
    }
}

fn indirect_branch<'a>(process: &Process<'_>, machine: &'a Machine) -> &'a str {
    let flags = record(process).credentials.atomic_flags;
    let is = |bit: u32| flags >> bit & 1 != 0;
    match &*machine.indirect_branch {
        own if !own.starts_with("conditional ") => own,
        _ if is(6) => "conditional force disabled",
        _ if is(5) => "conditional disabled",
        _ => "conditional enabled",
    }
}

const fn features(bits: u64) -> &'static str {
    match bits & 3 {
        0 => "",
        1 => "shstk ",
        2 => "wrss ",
        _ => "shstk wrss ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(put: impl FnOnce(&mut Out) -> fmt::Result) -> String {
        let mut out = Out::default();
        put(&mut out).expect("it writes to memory");
        String::from_utf8(out.0).expect("it is text")
    }

    #[test]
    fn bitmaps_are_those_of_the_kernel() {
        assert_eq!(written(|out| bitmap(out, &[3], 2)), "3\n");
        assert_eq!(written(|out| bitmap(out, &[u64::MAX], 40)), "ff,ffffffff\n");
        assert_eq!(
            written(|out| bitmap(out, &[1], 128)),
            "00000000,00000000,00000000,00000001\n"
        );
        assert_eq!(written(|out| bitmap_list(out, &[3], 2)), "0-1\n");
        assert_eq!(
            written(|out| bitmap_list(out, &[0b1101 | 1 << 63, 1], 128)),
            "0,2-3,63-64\n"
        );
        assert_eq!(written(|out| bitmap_list(out, &[0], 64)), "\n");
    }
}
