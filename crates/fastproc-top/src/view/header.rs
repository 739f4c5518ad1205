//! The header: an overview of the machine.

use std::fmt::Write as _;

use fastproc_columns::number;
use ratatui_core::style::Style;

use super::{graphs, theme::Theme};
use crate::{
    canvas::{Canvas, block, width},
    clock,
    history::History,
    machine::{Gauge, Machine, Shares},
    observation::{Line, View},
    rows::Tally,
};

/// The history of the machine, one value for each snapshot.
#[derive(Clone, Debug, Default)]
pub struct Histories {
    /// Share of all CPUs' time in which they were busy.
    pub cpu: History,
    /// Share of memory in use.
    pub memory: History,
    /// Share of the time in which some task waited for a CPU.
    pub cpu_pressure: History,
    /// The same for I/O.
    pub io_pressure: History,
    /// Context switches per second.
    pub switches: History,
    /// Bytes per second of all disks.
    pub disk: History,
    /// Bytes per second of the network.
    pub network: History,
}

impl Histories {
    /// Adds a snapshot.
    pub fn push(&mut self, now: &Machine, earlier: Option<&Machine>) {
        self.cpu
            .push(earlier.and_then(|_| Some(now.total_shares(earlier)?.busy())));
        self.memory.push(used_part(now));
        let share = |gauge| now.share(earlier?, gauge);
        self.cpu_pressure.push(share(Gauge::CpuSome));
        self.io_pressure.push(share(Gauge::IoSome));
        let switches = earlier.and_then(|earlier| now.per_second(earlier, Gauge::ContextSwitches));
        self.switches.push(switches);
        self.disk.push(now.sum(Gauge::DiskRead, Gauge::DiskWritten));
        self.network.push(now.sum(Gauge::Received, Gauge::Sent));
    }
}

fn used_part(machine: &Machine) -> Option<f64> {
    let total = machine.get(Gauge::MemTotal)?.max(1);
    Some(machine.memory_used()? as f64 / total as f64)
}

/// The data of the header.
#[derive(Debug)]
pub struct Header<'a> {
    /// The machine.
    pub view: View<'a>,
    /// The counts of its processes.
    pub tally: Tally,
    /// The history of the machine.
    pub histories: &'a Histories,
    /// The clock, and the source.
    pub title: &'a str,
    /// Whether every CPU has its own bar.
    pub each_cpu: bool,
    /// Whether graphs have several lines where there is room.
    pub has_high_graphs: bool,
    /// Colours.
    pub theme: Theme,
}

/// Words for the counts of processes.
struct TallyForm {
    processes: &'static str,
    kernel: &'static str,
    threads: &'static str,
    interval: &'static str,
    /// In the order of [`Tally::states`].
    states: [&'static str; 6],
}

const SHORT_STATES: [&str; 6] = ["run", "sleep", "disk", "stop", "zomb", "other"];

/// From long to short.
const TALLY_FORMS: [TallyForm; 3] = [
    TallyForm {
        processes: "processes",
        kernel: "kernel",
        threads: "threads",
        interval: " in this interval (x shows them)",
        states: [
            "running", "sleeping", "on disk", "stopped", "zombie", "other",
        ],
    },
    TallyForm {
        processes: "processes",
        kernel: "k",
        threads: "threads",
        interval: " in this interval",
        states: SHORT_STATES,
    },
    TallyForm {
        processes: "proc",
        kernel: "k",
        threads: "thr",
        interval: "",
        states: SHORT_STATES,
    },
];

/// The narrowest bar.
const BAR: u16 = 36;

/// How the CPUs are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cpus {
    /// One bar for all.
    Together,
    /// A bar for each, in this many columns.
    Bars(u16),
    /// A cell for each, with this many in a line.
    Heat(u16),
}

impl Cpus {
    fn choose(cpus: usize, each: bool, width: u16, height: u16) -> Self {
        let columns = (width / BAR).clamp(1, 8);
        let most = (height / 5).clamp(2, 16);
        if !each || cpus <= 1 {
            Self::Together
        } else if cpus.div_ceil(columns.into()) <= most.into() {
            Self::Bars(columns.min(cpus as u16))
        } else {
            Self::Heat(width.saturating_sub(5).max(1))
        }
    }

    fn lines(self, cpus: usize) -> u16 {
        match self {
            Self::Together => 1,
            Self::Bars(columns) => cpus.div_ceil(columns.into()) as u16,
            // The bar of all CPUs is above the map.
            Self::Heat(width) => 1 + cpus.div_ceil(width.into()) as u16,
        }
    }
}

impl Header<'_> {
    fn cpus(&self, width: u16, height: u16) -> Cpus {
        Cpus::choose(self.view.machine.cpus.len(), self.each_cpu, width, height)
    }

    /// The number of its lines on a screen of this size.
    pub fn height(&self, width: u16, height: u16) -> u16 {
        let cpus = self.cpus(width, height);
        let more = self.graph_lines(height) + u16::from(self.view.line.is_some());
        let all = 4 + more + cpus.lines(self.view.machine.cpus.len());
        // A part of the table is always visible.
        all.min(height.saturating_sub(6))
    }

    /// Draws it.
    pub fn draw(&self, canvas: &mut Canvas<'_>, screen_height: u16) {
        let width = canvas.area.width;
        canvas.text(0, 0, self.title, self.theme.bold());
        let mut below = canvas.lines(1, u16::MAX);
        let canvas = if let Some(line) = self.view.line {
            self.time_line(&mut below, line);
            &mut below.lines(1, u16::MAX)
        } else {
            &mut below
        };
        self.tasks(canvas, 0);
        let cpus = self.cpus(width, screen_height);
        let count = self.view.machine.cpus.len();
        let lines = cpus.lines(count);
        let mut part = canvas.lines(1, lines);
        match cpus {
            Cpus::Together => self.all_cpus(&mut part, width),
            Cpus::Bars(columns) => self.bars(&mut part, columns),
            Cpus::Heat(in_line) => {
                self.all_cpus(&mut part, width);
                self.heat(&mut part, in_line);
            }
        }
        self.memory(canvas, 1 + lines);
        self.rates(canvas, 2 + lines);
        let mut part = canvas.lines(3 + lines, self.graph_lines(screen_height));
        graphs::draw(&mut part, self.histories, self.view.machine, self.theme);
    }

    /// The load over the hour, and where this is in it.
    fn time_line(&self, canvas: &mut Canvas<'_>, of: &Line) {
        let (from, to) = of.time;
        let time = |at: i64| clock::time_of_day(u64::try_from(at).unwrap_or(0) * 1000, true);
        let begin = canvas.text(0, 0, &time(from), self.theme.dim()) + 1;
        let end = time(to);
        let room = i32::from(canvas.area.width) - begin - width(&end) as i32 - 1;
        let Some(cells) = usize::try_from(room).ok().filter(|cells| *cells > 0) else {
            return;
        };
        let place = |at: i64| {
            let share = (at - from) as f64 / (to - from).max(1) as f64;
            ((share * cells as f64) as usize).min(cells - 1)
        };
        let mut loads = vec![None::<f64>; cells];
        for (at, busy) in &of.busy {
            let load = &mut loads[place(*at)];
            *load = Some(load.unwrap_or(0.0).max(*busy));
        }
        let now = self.view.machine.get(Gauge::Calendar).unwrap_or(0) / 1000;
        let now = place(i64::try_from(now).unwrap_or(from));
        for (at, load) in loads.into_iter().enumerate() {
            let (cell, style) = match load {
                _ if at == now => ('●', self.theme.bold()),
                // Nothing was recorded.
                None => (' ', self.theme.dim()),
                Some(load) => (block(load.max(0.001)), self.theme.level(load)),
            };
            let text = cell.encode_utf8(&mut [0; 4]).to_owned();
            canvas.text(0, begin + at as i32, &text, style);
        }
        canvas.text(0, begin + room + 1, &end, self.theme.dim());
    }

    fn tasks(&self, canvas: &mut Canvas<'_>, line: u16) {
        let (tally, exited) = (self.tally, self.view.exited);
        let write = |form: &TallyForm| {
            let mut text = format!(
                "{} {} ({} {}), {} {}; ",
                tally.processes,
                form.processes,
                tally.kernel_threads,
                form.kernel,
                tally.threads,
                form.threads
            );
            // Before the states, which may be cut off.
            if let Some(count) = exited.count {
                let _ = write!(text, "{count} exited");
                if exited.lost > 0 {
                    let _ = write!(text, ", {} lost", exited.lost);
                }
                text.push_str(form.interval);
                text.push_str("; ");
            }
            for (i, (count, word)) in tally.states.iter().zip(form.states).enumerate() {
                if i < 2 || *count > 0 {
                    let comma = if i == 0 { "" } else { ", " };
                    let _ = write!(text, "{comma}{count} {word}");
                }
            }
            text
        };
        self.first_that_fits(canvas, line, &TALLY_FORMS.each_ref().map(write));
    }

    /// Draws the first of these texts that fits, else the last.
    fn first_that_fits(&self, canvas: &mut Canvas<'_>, line: u16, texts: &[String]) {
        let fits = |text: &&String| text.len() <= canvas.area.width.into();
        if let Some(text) = texts.iter().find(fits).or(texts.last()) {
            canvas.text(line, 0, text, self.theme.plain());
        }
    }

    fn all_cpus(&self, canvas: &mut Canvas<'_>, width: u16) {
        let shares = self.view.machine.total_shares(self.view.earlier);
        self.cpu_bar(canvas, 0, 0, width, "CPU", shares);
    }

    fn bars(&self, canvas: &mut Canvas<'_>, columns: u16) {
        let width = canvas.area.width / columns;
        let machine = self.view.machine;
        let lines = machine.cpus.len().div_ceil(columns.into());
        for (i, (id, shares)) in machine.cpu_shares(self.view.earlier).enumerate() {
            let (column, line) = (i / lines, i % lines);
            let label = format!("{id:>3}");
            let x = column as u16 * width;
            self.cpu_bar(canvas, line as u16, x, width, &label, Some(shares));
        }
    }

    fn cpu_bar(
        &self,
        canvas: &mut Canvas<'_>,
        line: u16,
        x: u16,
        width: u16,
        label: &str,
        shares: Option<Shares>,
    ) {
        let theme = self.theme;
        let text = shares.map_or_else(
            || "-".into(),
            |known| format!("{:.1}%", known.busy() * 100.0),
        );
        let shares = shares.unwrap_or_default();
        let parts = [
            (shares.nice, theme.nice(), "|"),
            (shares.user, theme.user(), "|"),
            (shares.system, theme.system(), "|"),
            (shares.interrupts, theme.interrupts(), "|"),
            (shares.steal, theme.steal(), "|"),
            (shares.iowait, theme.waiting(), "."),
        ];
        bar(canvas, line, x, width, label, &parts, &text, theme);
    }

    fn heat(&self, canvas: &mut Canvas<'_>, in_line: u16) {
        let machine = self.view.machine;
        for (i, (id, shares)) in machine.cpu_shares(self.view.earlier).enumerate() {
            let (line, column) = (i / usize::from(in_line), i % usize::from(in_line));
            let line = 1 + line as u16;
            if column == 0 {
                let label = format!("{id:>4}");
                canvas.text(line, 0, &label, self.theme.dim());
            }
            let busy = shares.busy();
            // An idle CPU is visible, too.
            let cell = if busy < 0.005 { '·' } else { block(busy) };
            let text = cell.encode_utf8(&mut [0; 4]).to_owned();
            let style = self.theme.level(busy);
            canvas.text(line, 5 + column as i32, &text, style);
        }
    }

    fn memory(&self, canvas: &mut Canvas<'_>, line: u16) {
        let (machine, theme) = (self.view.machine, self.theme);
        let get = |gauge| machine.get(gauge);
        let half = canvas.area.width / 2;
        let text = |used: Option<u64>, total: Option<u64>| match (used, total) {
            (Some(used), Some(total)) => format!("{}/{}", size(used), size(total)),
            _ => "-".into(),
        };
        let (used, total) = (machine.memory_used(), get(Gauge::MemTotal));
        let part = |bytes: Option<u64>, of: Option<u64>| {
            bytes.unwrap_or(0) as f64 / of.unwrap_or(1).max(1) as f64
        };
        let parts = [
            (part(used, total), theme.user(), "|"),
            (part(get(Gauge::Buffers), total), theme.nice(), "|"),
            (part(get(Gauge::Cached), total), theme.interrupts(), "."),
        ];
        bar(
            canvas,
            line,
            0,
            half,
            "Mem",
            &parts,
            &text(used, total),
            theme,
        );
        let total = get(Gauge::SwapTotal);
        let free = get(Gauge::SwapFree);
        let used = total.and_then(|total| Some(total.saturating_sub(free?)));
        let parts = [(part(used, total), theme.system(), "|")];
        bar(
            canvas,
            line,
            half,
            half,
            "Swp",
            &parts,
            &text(used, total),
            theme,
        );
    }

    fn rates(&self, canvas: &mut Canvas<'_>, line: u16) {
        let machine = self.view.machine;
        let rate = |gauge| {
            let rate = self
                .view
                .earlier
                .and_then(|earlier| machine.per_second(earlier, gauge));
            rate.map_or_else(|| "-".into(), count)
        };
        let share = |gauge| {
            let share = self
                .view
                .earlier
                .and_then(|earlier| machine.share(earlier, gauge));
            share.map_or_else(|| "-".into(), |share| format!("{:.1}%", share * 100.0))
        };
        let write = |long: bool| {
            let [cpu, memory, all_memory, io, all_io] = [
                Gauge::CpuSome,
                Gauge::MemorySome,
                Gauge::MemoryFull,
                Gauge::IoSome,
                Gauge::IoFull,
            ]
            .map(share);
            let [switches, interrupts, forks] =
                [Gauge::ContextSwitches, Gauge::Interrupts, Gauge::Forks].map(rate);
            if long {
                format!(
                    "{switches} switches/s, {interrupts} interrupts/s, {forks} forks/s; waiting for CPU {cpu}, memory {memory} \
                     (all {all_memory}), I/O {io} (all {all_io})"
                )
            } else {
                format!(
                    "{switches} cs/s {interrupts} irq/s {forks} fork/s; wait CPU {cpu} mem {memory}/{all_memory} I/O {io}/{all_io}"
                )
            }
        };
        self.first_that_fits(canvas, line, &[true, false].map(write));
    }

    /// The lines of the graphs on a screen of this height.
    const fn graph_lines(&self, height: u16) -> u16 {
        match height {
            32..46 if self.has_high_graphs => 4,
            46.. if self.has_high_graphs => 6,
            _ => 1,
        }
    }
}

/// Draws `label[||||    text]`.
#[allow(clippy::too_many_arguments, reason = "where, what and how")]
fn bar(
    canvas: &mut Canvas<'_>,
    line: u16,
    x: u16,
    width: u16,
    label: &str,
    parts: &[(f64, Style, &str)],
    text: &str,
    theme: Theme,
) {
    let x = i32::from(x);
    let from = canvas.text(line, x, label, theme.line());
    let from = canvas.text(line, from, "[", theme.bold());
    let end = x + i32::from(width) - 1;
    let room = (end - from - 1).max(0);
    let (mut sum, mut at) = (0.0, from);
    for &(part, style, mark) in parts {
        sum += part;
        let until = from + ((sum.min(1.0) * f64::from(room)).round() as i32);
        if at < until {
            let marks = mark.repeat((until - at) as usize);
            at = canvas.text(line, at, &marks, style);
        }
    }
    canvas.text_before(line, end - 1, text, theme.plain());
    canvas.text(line, end - 1, "]", theme.bold());
}

/// A number of bytes, for people.
pub fn size(bytes: u64) -> String {
    let mut text = Vec::new();
    number::write_size(bytes, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// A number of items, for people.
pub fn count(number: f64) -> String {
    match number {
        ..1000.0 => format!("{number:.0}"),
        ..100_000.0 => format!("{:.1}k", number / 1e3),
        ..1e6 => format!("{:.0}k", number / 1e3),
        _ => format!("{:.1}M", number / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cpus_are_a_map() {
        assert_eq!(Cpus::choose(2, true, 80, 24), Cpus::Bars(2));
        assert_eq!(Cpus::choose(8, true, 80, 24), Cpus::Bars(2));
        assert_eq!(Cpus::choose(9, true, 80, 24), Cpus::Heat(75));
        assert_eq!(Cpus::choose(9, false, 80, 24), Cpus::Together);
        assert_eq!(Cpus::choose(128, true, 300, 100), Cpus::Bars(8));
        let map = Cpus::choose(512, true, 300, 100);
        assert_eq!((map, map.lines(512)), (Cpus::Heat(295), 3));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.4, 999.0, 12_345.0, 123_456.0, 1.25e7].map(count),
            ["0", "999", "12.3k", "123k", "12.5M"]
        );
    }
}
