//! `/proc/stat`: CPU times, interrupts, context switches, forks, softirqs. See `show_stat()` in `fs/proc/stat.c`.

use std::time::Duration;

use super::{
    lines::{Source, digits, words},
    numbers::{Numbers, Writer},
};
use crate::base::error::parse::ParseError;

const FILE: &str = "/proc/stat";

/// The unit of the CPU times in the text.
pub use crate::records::record::TICK_NS;

/// The time of a CPU in each state since boot, in nanoseconds, in the order of the text. Values parsed from a text are
/// whole ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// `user nice system idle iowait irq softirq steal guest guest_nice`, in nanoseconds.
    pub ns: [u64; 10],
}

macro_rules! times {
    ($($(#[$doc:meta])* $name:ident = $index:literal),* $(,)?) => {
        impl CpuTimes {
            $($(#[$doc])* pub fn $name(&self) -> Duration { Duration::from_nanos(self.ns[$index]) })*
        }
    };
}

times! {
    /// In user mode, guests included.
    user = 0,
    /// In user mode at low priority, guests included.
    nice = 1,
    /// In the kernel.
    system = 2,
    /// Idle.
    idle = 3,
    /// Idle while a task that last ran here waited for I/O.
    iowait = 4,
    /// Serving interrupts.
    irq = 5,
    /// Serving softirqs.
    softirq = 6,
    /// Taken by the hypervisor for others.
    steal = 7,
    /// Running a guest.
    guest = 8,
    /// Running a guest at low priority.
    guest_nice = 9,
}

impl CpuTimes {
    /// The total: the guests' time is part of `user` and `nice`.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.ns[..8].iter().fold(0, |sum, &ns| sum.wrapping_add(ns)))
    }

    /// The time that was neither idle nor waiting.
    pub fn busy(&self) -> Duration {
        self.total()
            .saturating_sub(self.idle())
            .saturating_sub(self.iowait())
    }
}

/// One online CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Its number: offline CPUs are left out.
    pub id: u32,
    /// Its times.
    pub times: CpuTimes,
}

/// The values of `/proc/stat`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineStat {
    /// The times of all possible CPUs, including offline ones.
    pub total: CpuTimes,
    /// The online CPUs.
    pub cpus: Vec<Cpu>,
    /// Interrupts of every kind.
    pub intr: u64,
    /// Interrupts by number; a number without an interrupt reads 0. 32 bits, as in the kernel: they wrap.
    pub irqs: Vec<u32>,
    /// Context switches.
    pub ctxt: u64,
    /// When the machine was booted, in seconds since the epoch.
    pub btime: u64,
    /// Forks, threads included.
    pub processes: u64,
    /// Threads running or ready to.
    pub procs_running: u64,
    /// Threads waiting for I/O.
    pub procs_blocked: u64,
    /// Softirqs of every kind.
    pub softirq: u64,
    /// Softirqs by kind, in the order of `/proc/softirqs`. 32 bits, as in the kernel: they wrap.
    pub softirqs: Vec<u32>,
}

impl MachineStat {
    /// Reads a text of `/proc/stat`.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let mut stat = Self::default();
        stat.parse_into(text)?;
        Ok(stat)
    }

    /// Parses a text of `/proc/stat` into `self`, reusing its memory.
    pub fn parse_into(&mut self, text: &[u8]) -> Result<(), ParseError> {
        self.cpus.clear();
        self.irqs.clear();
        self.softirqs.clear();
        let source = Source { file: FILE, text };
        let mut seen = 0_u32;
        for line in source.lines() {
            let mut words = words(line);
            let key = words.next().unwrap_or_default();
            let mut number = || source.number(words.next(), line);
            let known = KEYS.iter().position(|(name, _)| name.as_bytes() == key);
            match known {
                Some(0) => self.total = times(source, line)?,
                Some(1) => {
                    self.intr = number()?;
                    counts(source, line, &mut self.irqs)?;
                }
                Some(2) => self.ctxt = number()?,
                Some(3) => self.btime = number()?,
                Some(4) => self.processes = number()?,
                Some(5) => self.procs_running = number()?,
                Some(6) => self.procs_blocked = number()?,
                Some(_) => {
                    self.softirq = number()?;
                    counts(source, line, &mut self.softirqs)?;
                }
                None => {
                    let id = key
                        .strip_prefix(b"cpu")
                        .and_then(digits)
                        .and_then(|id| u32::try_from(id).ok());
                    let id = id.ok_or_else(|| source.wrong(line, "a line of /proc/stat"))?;
                    self.cpus.push(Cpu {
                        id,
                        times: times(source, line)?,
                    });
                }
            }
            seen |= known.map_or(0, |bit| 1 << bit);
        }
        for (bit, (_, expected)) in KEYS.into_iter().enumerate() {
            if seen & 1 << bit == 0 {
                return Err(source.wrong(b"", expected));
            }
        }
        Ok(())
    }
}

/// The lines that every kernel prints, and the error if one is missing.
const KEYS: [(&str, &str); 8] = [
    ("cpu", "the line cpu"),
    ("intr", "the line intr"),
    ("ctxt", "the line ctxt"),
    ("btime", "the line btime"),
    ("processes", "the line processes"),
    ("procs_running", "the line procs_running"),
    ("procs_blocked", "the line procs_blocked"),
    ("softirq", "the line softirq"),
];

fn times(source: Source<'_>, line: &[u8]) -> Result<CpuTimes, ParseError> {
    let mut times = CpuTimes::default();
    let mut words = words(line).skip(1);
    for ns in &mut times.ns {
        let ticks: u64 = source.number(words.next(), line)?;
        *ns = ticks
            .checked_mul(TICK_NS)
            .ok_or_else(|| source.wrong(line, "smaller CPU times"))?;
    }
    match words.next() {
        None => Ok(times),
        Some(word) => Err(source.wrong(word, "ten CPU times")),
    }
}

fn counts(source: Source<'_>, line: &[u8], to: &mut Vec<u32>) -> Result<(), ParseError> {
    for word in words(line).skip(2) {
        to.push(source.number(Some(word), line)?);
    }
    Ok(())
}

/// The interrupt counts that may have changed since the last rendering.
#[derive(Clone, Copy, Debug)]
pub enum Moved<'a> {
    /// Any of them.
    Any,
    /// Only these numbers.
    Only(&'a [u32]),
}

/// The text of `/proc/stat`, kept from one rendering to the next.
#[derive(Clone, Debug, Default)]
pub struct Renderer {
    numbers: Numbers,
    cpus: Vec<u32>,
    irqs: usize,
    softirqs: usize,
}

impl Renderer {
    /// The text that was rendered last.
    pub fn text(&self) -> &[u8] {
        self.numbers.text()
    }

    /// Renders the text. With [`Moved::Only`], the row of interrupts keeps its bytes except for these numbers, and
    /// costs no formatting, however long it is.
    pub fn render(&mut self, stat: &MachineStat, moved: Moved<'_>) -> &[u8] {
        let same_shape = !self.numbers.is_empty()
            && self.irqs == stat.irqs.len()
            && self.softirqs == stat.softirqs.len()
            && self.cpus.len() == stat.cpus.len()
            && self
                .cpus
                .iter()
                .zip(&stat.cpus)
                .all(|(&id, cpu)| id == cpu.id);
        if same_shape {
            self.rewrite(stat, moved);
        } else {
            self.cpus.clear();
            self.cpus.extend(stat.cpus.iter().map(|cpu| cpu.id));
            self.irqs = stat.irqs.len();
            self.softirqs = stat.softirqs.len();
            self.numbers.write(|to| write(stat, to));
        }
        self.numbers.text()
    }

    fn rewrite(&mut self, stat: &MachineStat, moved: Moved<'_>) {
        let numbers = &mut self.numbers;
        let mut at = 0;
        for times in std::iter::once(&stat.total).chain(stat.cpus.iter().map(|cpu| &cpu.times)) {
            for ns in times.ns {
                numbers.set(at, ns / TICK_NS);
                at += 1;
            }
        }
        numbers.set(at, stat.intr);
        at += 1;
        match moved {
            Moved::Any => {
                for (column, &count) in stat.irqs.iter().enumerate() {
                    numbers.set(at + column, u64::from(count));
                }
            }
            Moved::Only(columns) => {
                for &column in columns {
                    if let Some(&count) = stat.irqs.get(column as usize) {
                        numbers.set(at + column as usize, u64::from(count));
                    }
                }
            }
        }
        at += stat.irqs.len();
        for n in [
            stat.ctxt,
            stat.btime,
            stat.processes,
            stat.procs_running,
            stat.procs_blocked,
            stat.softirq,
        ] {
            numbers.set(at, n);
            at += 1;
        }
        for (kind, &count) in stat.softirqs.iter().enumerate() {
            numbers.set(at + kind, u64::from(count));
        }
    }
}

fn write(stat: &MachineStat, to: &mut Writer<'_>) {
    write_times("cpu  ", &stat.total, to);
    for cpu in &stat.cpus {
        to.puts("cpu");
        to.fixed(u64::from(cpu.id));
        write_times(" ", &cpu.times, to);
    }
    to.number("intr ", stat.intr);
    for &count in &stat.irqs {
        to.number(" ", u64::from(count));
    }
    to.number("\nctxt ", stat.ctxt);
    to.number("\nbtime ", stat.btime);
    to.number("\nprocesses ", stat.processes);
    to.number("\nprocs_running ", stat.procs_running);
    to.number("\nprocs_blocked ", stat.procs_blocked);
    to.number("\nsoftirq ", stat.softirq);
    for &count in &stat.softirqs {
        to.number(" ", u64::from(count));
    }
    to.puts("\n");
}

fn write_times(label: &str, times: &CpuTimes, to: &mut Writer<'_>) {
    let mut delimiter = label;
    for ns in times.ns {
        to.number(delimiter, ns / TICK_NS);
        delimiter = " ";
    }
    to.puts("\n");
}
