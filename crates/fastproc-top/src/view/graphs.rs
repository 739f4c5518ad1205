//! Histories as graphs, with numbers.

use super::{
    header::{Histories, count, size},
    theme::Theme,
};
use crate::{
    canvas::{Canvas, block},
    history::{History, LENGTH},
    machine::{Gauge, Machine},
};

/// Draws as many graphs of the machine as fit.
pub fn draw(canvas: &mut Canvas<'_>, all: &Histories, machine: &Machine, theme: Theme) {
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let bytes = |rate: f64| format!("{}/s", size(rate as u64));
    let both = |names: [&str; 2], gauges: [Gauge; 2]| {
        let known = gauges.map(|gauge| machine.get(gauge).map(size));
        let [Some(one), Some(other)] = known else {
            return String::new();
        };
        format!("{} {one}/s, {} {other}/s", names[0], names[1])
    };
    let panels: [(&str, &History, Form<'_>, String); 7] = [
        ("CPU", &all.cpu, &percent, String::new()),
        ("memory", &all.memory, &percent, String::new()),
        (
            "disk",
            &all.disk,
            &bytes,
            both(["read", "written"], [Gauge::DiskRead, Gauge::DiskWritten]),
        ),
        (
            "net",
            &all.network,
            &bytes,
            both(["in", "out"], [Gauge::Received, Gauge::Sent]),
        ),
        ("CPU wait", &all.cpu_pressure, &percent, String::new()),
        ("I/O wait", &all.io_pressure, &percent, String::new()),
        ("switches", &all.switches, &count, String::new()),
    ];
    let lines = canvas.area.height;
    let narrowest = if lines > 1 { 28 } else { 20 };
    // A machine, or an old recording, may not have all.
    let is_there =
        |(_, history, ..): &&(_, &History, _, _)| history.last(LENGTH).any(|value| value.is_some());
    let room = (canvas.area.width / narrowest).max(1);
    let shown: Vec<_> = panels.iter().filter(is_there).take(room.into()).collect();
    let width = canvas.area.width / (shown.len() as u16).max(1);
    for (i, (label, history, form, parts)) in shown.into_iter().enumerate() {
        let x = i32::from(width) * i as i32;
        let end = x + i32::from(width) - 1;
        let now = history.last(1).next().flatten();
        let now = now.map_or_else(|| "-".into(), form);
        let at = canvas.text(0, x, label, theme.dim()) + 1;
        let at = canvas.text(0, at, &now, theme.bold()) + 1;
        if lines > 1 && at + (parts.len() as i32) < end {
            canvas.text(0, at, parts, theme.dim());
        }
        let is_share = now.ends_with('%');
        let plot = Plot {
            line: u16::from(lines > 1),
            column: if lines > 1 { x } else { at },
            lines: lines.saturating_sub(1).max(1),
            width: (end - if lines > 1 { x } else { at }).max(0) as usize,
        };
        graph(canvas, plot, history, is_share.then_some(1.0), theme);
    }
}

/// Writes a number for people.
type Form<'f> = &'f dyn Fn(f64) -> String;

/// Where a graph is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Plot {
    /// Its first line.
    pub line: u16,
    /// Its first column.
    pub column: i32,
    /// The number of its lines.
    pub lines: u16,
    /// The number of its columns.
    pub width: usize,
}

/// Draws the last values of a history, the newest at the right edge. Without `largest`, the greatest value is full height;
/// with it, high values have other colours.
pub fn graph(
    canvas: &mut Canvas<'_>,
    plot: Plot,
    history: &History,
    largest: Option<f64>,
    theme: Theme,
) {
    let top = largest
        .unwrap_or_else(|| history.largest(plot.width))
        .max(f64::MIN_POSITIVE);
    let lines = f64::from(plot.lines);
    let values = history.last(plot.width);
    let at = plot.column + (plot.width - values.len()) as i32;
    let mut text = String::with_capacity(3 * plot.width);
    for line in 0..plot.lines {
        let below = f64::from(plot.lines - 1 - line);
        text.clear();
        let values = history.last(plot.width);
        text.extend(
            values.map(|value| value.map_or(' ', |value| block(value / top * lines - below))),
        );
        let style = match largest {
            Some(_) if plot.lines > 1 => theme.level((below + 0.5) / lines),
            _ => theme.line(),
        };
        canvas.text(plot.line + line, at, &text, style);
    }
}
