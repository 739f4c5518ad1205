//! Overlays of the table: lists, questions, the help; and the last line.

use std::fmt::Write as _;

use ratatui_core::layout::Rect;

use super::theme::Theme;
use crate::{
    canvas::{Canvas, width},
    keys::{BARS, BINDINGS, Key, MOUSE, PICKER_BAR, Place},
    overlay::{Choice, List, Overlay, ProcessAction},
    state::{Message, State},
    target::Target,
    window::Window,
};

/// Draws the last line: the prompt or question, the message, or the keys.
pub fn last_line(canvas: &mut Canvas<'_>, state: &State, theme: Theme) {
    match &state.overlay {
        Some(Overlay::Prompt { prompt, text, .. }) => {
            let at = canvas.text(0, 0, prompt.label(), theme.bold());
            // The user writes at the end.
            let room = i32::from(canvas.area.width) - at - 1;
            let skipped = (width(text) as i32 - room).max(0);
            let mut part = canvas.part(Rect {
                x: canvas.area.x + at.max(0) as u16,
                width: canvas.area.width.saturating_sub(at.max(0) as u16),
                ..canvas.area
            });
            let end = part.text(0, -skipped, text, theme.plain());
            let cursor = if state.is_ascii { "_" } else { "█" };
            part.text(0, end, cursor, theme.plain());
        }
        Some(Overlay::Question { action }) => {
            let text = question(*action, state, canvas.area.width.into());
            canvas.text(0, 0, &text, theme.error());
        }
        _ => {
            if let Some(Message { text, is_error, .. }) = &state.message {
                let style = if *is_error {
                    theme.error()
                } else {
                    theme.bold()
                };
                canvas.text(0, 0, text, style);
            } else {
                bar(canvas, state, theme);
            }
        }
    }
}

/// Draws the keys of what is shown, as far as they fit.
fn bar(canvas: &mut Canvas<'_>, state: &State, theme: Theme) {
    let place = state.place();
    let bar = match &state.overlay {
        Some(Overlay::List(list)) if list.is_of_columns() => &PICKER_BAR[..],
        _ => BARS
            .iter()
            .find(|(of, _)| *of == place)
            .map_or(&[][..], |(_, bar)| *bar),
    };
    let gap = i32::from(canvas.area.width >= 100);
    let mut at = 0;
    for (key, word) in bar {
        if at + (key.len() + word.len()) as i32 > canvas.area.width.into() {
            break;
        }
        at = canvas.text(0, at, key, theme.bold());
        at = canvas.text(0, at, word, theme.heading()) + gap;
    }
}

/// The question before processes are changed, in a form in which all but their names fits.
fn question(action: ProcessAction, state: &State, room: usize) -> String {
    let what = action.describe();
    match state.targets.as_slice() {
        [one] => {
            let room = room.saturating_sub(width(&what) + width(" ? (y/n)"));
            format!("{what} {}? (y/n)", one.describe_in(room))
        }
        many => {
            let few = match &state.message {
                Some(message) if message.is_error => format!("; {}", message.text),
                _ => String::new(),
            };
            format!("{what} these {} processes? (y/n{few})", many.len())
        }
    }
}

/// Draws an overlay. `below`: what is under it.
pub fn draw(
    canvas: &mut Canvas<'_>,
    overlay: &mut Overlay,
    targets: &[Target],
    below: Place,
    theme: Theme,
) {
    match overlay {
        Overlay::List(list) => draw_list(canvas, list, targets, theme),
        Overlay::Help(window) => draw_help(canvas, window, below, theme),
        Overlay::Question { .. } if targets.len() > 1 => draw_targets(canvas, targets, theme),
        Overlay::Prompt {
            error: Some(error), ..
        } => {
            let mut part = canvas.lines(canvas.area.height.saturating_sub(1), 1);
            part.clear();
            part.text(0, 0, error, theme.error());
        }
        Overlay::Prompt { .. } | Overlay::Question { .. } => {}
    }
}

/// Draws the targets above the question.
fn draw_targets(canvas: &mut Canvas<'_>, targets: &[Target], theme: Theme) {
    let height = usize::from(canvas.area.height);
    let shown = if targets.len() > height {
        height.saturating_sub(1)
    } else {
        targets.len()
    };
    let more = usize::from(shown < targets.len());
    let mut part = canvas.lines((height - shown - more) as u16, u16::MAX);
    part.clear();
    let room = usize::from(part.area.width);
    for (line, target) in targets.iter().take(shown).enumerate() {
        part.text(line as u16, 0, &target.describe_in(room), theme.plain());
    }
    if more > 0 {
        let text = format!("and {} more", targets.len() - shown);
        part.text(shown as u16, 0, &text, theme.error());
    }
}

/// Draws a list in a box.
fn draw_list(canvas: &mut Canvas<'_>, list: &mut List, targets: &[Target], theme: Theme) {
    let mut title = format!(" {}", list.title);
    if let (Some((_, Choice::Signal(_))), Some(target)) = (list.items.first(), targets.first()) {
        let _ = match targets.len() {
            1 => write!(title, " to {}", target.describe(20)),
            many => write!(title, " to {many} processes"),
        };
    }
    if !list.typed.is_empty() {
        let _ = write!(title, ": {}", list.typed);
    }
    title.push(' ');
    let mark = if list.is_of_columns() { 4 } else { 0 };
    let widest = list.items.iter().map(|(line, _)| width(line) + mark).max();
    let wide = widest.unwrap_or(0).max(width(&title) + 1).clamp(24, 76) as u16 + 4;
    let area = Rect {
        width: wide.min(canvas.area.width),
        height: (list.items.len() as u16)
            .saturating_add(2)
            .min(canvas.area.height),
        ..canvas.area
    };
    let mut part = framed(canvas, area, &title, theme);
    let height = part.area.height;
    list.window.settle(list.items.len(), height.into());
    let shown = list.items.iter().enumerate().skip(list.window.top);
    for (line, (at, (text, choice))) in shown.take(height.into()).enumerate() {
        let line = line as u16;
        let style = if at == list.window.cursor {
            theme.cursor()
        } else {
            theme.plain()
        };
        part.style_line(line, style);
        let at = match choice {
            Choice::Column(_, true) => part.text(line, 1, "[x] ", style),
            Choice::Column(_, false) => part.text(line, 1, "[ ] ", style),
            _ => 1,
        };
        part.text(line, at, text, style);
    }
}

/// Draws an empty box with a title, and returns what is inside of it.
pub fn framed<'c>(canvas: &'c mut Canvas<'_>, area: Rect, title: &str, theme: Theme) -> Canvas<'c> {
    let mut part = canvas.part(area);
    part.clear();
    let last = part.area.height.saturating_sub(1);
    let right = i32::from(part.area.width) - 1;
    let across = "─".repeat(part.area.width.saturating_sub(2).into());
    for (line, begin, end) in [(0, "┌", "┐"), (last, "└", "┘")] {
        let at = part.text(line, 0, begin, theme.line());
        let at = part.text(line, at, &across, theme.line());
        part.text(line, at, end, theme.line());
    }
    for line in 1..last {
        part.text(line, 0, "│", theme.line());
        part.text(line, right, "│", theme.line());
    }
    part.text(0, 1, title, theme.bold());
    let inside = part.area;
    canvas.part(Rect {
        x: inside.x + 1,
        y: inside.y + 1,
        width: inside.width.saturating_sub(2),
        height: inside.height.saturating_sub(2),
    })
}

/// The columns of a screen that a column of help takes.
const HELP_COLUMN: u16 = 70;

/// Draws the help, in two columns if they fit. That of `below` comes first.
fn draw_help(canvas: &mut Canvas<'_>, window: &mut Window, below: Place, theme: Theme) {
    canvas.clear();
    let mut lines = Vec::new();
    let others = Place::ALL.into_iter().filter(|place| *place != below);
    for place in [below].into_iter().chain(others) {
        lines.push((place.heading().to_owned(), ""));
        let bindings = BINDINGS.iter();
        for binding in bindings.filter(|binding| binding.places.contains(&place)) {
            let keys: Vec<_> = binding.keys.iter().map(|key: &Key| key.name()).collect();
            lines.push((format!("  {:>12}", keys.join(" ")), binding.help));
        }
        lines.push((String::new(), ""));
        if place == below {
            lines.push(("Mouse".into(), ""));
            lines.extend(MOUSE.map(|(what, help)| (format!("  {what:>12}"), help)));
            lines.push((String::new(), ""));
        }
    }
    lines.push(("Filters".into(), ""));
    for line in [
        "compare fields: rss > 100M && user != root,",
        "comm =~ '^kworker', pcpu > 5; with &&, ||, !, ( and ).",
        "fastproc ps --help lists the fields.",
    ] {
        lines.push((format!("{:14}", ""), line));
    }
    let area = canvas.area;
    let columns = (area.width / HELP_COLUMN).clamp(1, 2);
    let in_column = lines.len().div_ceil(columns.into());
    window.height = area.height.into();
    window.top = window.top.min(in_column.saturating_sub(window.height));
    for (column, lines) in lines.chunks(in_column).enumerate() {
        let mut part = canvas.part(Rect {
            x: area.x + column as u16 * (area.width / columns),
            width: area.width / columns,
            ..area
        });
        let shown = lines.iter().skip(window.top).take(window.height);
        for (line, (keys, help)) in shown.enumerate() {
            let style = if keys.starts_with(' ') {
                theme.line()
            } else {
                theme.bold()
            };
            let at = part.text(line as u16, 0, keys, style);
            part.text(line as u16, at.max(15) + 1, help, theme.plain());
        }
    }
}
