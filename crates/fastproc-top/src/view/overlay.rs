//! Overlays of the table: lists, questions, the help; and the last line.

use ratatui_core::layout::Rect;

use super::theme::Theme;
use crate::{
    canvas::{Canvas, width},
    keys::{BINDINGS, Key, Place},
    overlay::{List, Overlay, ProcessAction},
    state::{Message, State},
    target::Target,
    window::Window,
};

/// The keys of the last line, like those of htop.
const BAR: [(&str, &str); 10] = [
    ("F1", "Help"),
    ("F2", "Columns"),
    ("F3", "Search"),
    ("F4", "Filter"),
    ("F5", "Tree"),
    ("F6", "Sort"),
    ("F7", "Nice-"),
    ("F8", "Nice+"),
    ("F9", "Kill"),
    ("F10", "Quit"),
];

/// The same for cgroups.
const CGROUP_BAR: [(&str, &str); 8] = [
    ("F1", "Help"),
    ("F2", "Columns"),
    ("F3", "Search"),
    ("F4", "Filter"),
    ("F5", "Tree"),
    ("F6", "Sort"),
    ("v", "Processes"),
    ("F10", "Quit"),
];

/// Draws the last line: the prompt or question, the message, or the keys.
pub fn last_line(canvas: &mut Canvas<'_>, state: &State, theme: Theme) {
    match &state.overlay {
        Some(Overlay::Prompt {
            prompt,
            text,
            error,
        }) => {
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
            let end = part.text(0, end, cursor, theme.plain());
            if let Some(error) = error {
                part.text(0, end + 1, error, theme.error());
            }
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
                let mut at = 0;
                let bar: &[_] = if state.settings.cgroups.shown {
                    &CGROUP_BAR
                } else {
                    &BAR
                };
                for (key, word) in bar {
                    at = canvas.text(0, at, key, theme.bold());
                    at = canvas.text(0, at, word, theme.heading());
                }
            }
        }
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
        Overlay::List(list) => draw_list(canvas, list, theme),
        Overlay::Help(window) => draw_help(canvas, window, below, theme),
        Overlay::Question { .. } if targets.len() > 1 => draw_targets(canvas, targets, theme),
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

fn draw_list(canvas: &mut Canvas<'_>, list: &mut List, theme: Theme) {
    let widest = list.items.iter().map(|(line, _)| width(line)).max();
    let wide = (widest.unwrap_or(0) + 2).clamp(24, 76) as u16;
    let area = Rect {
        width: wide.min(canvas.area.width),
        ..canvas.area
    };
    let mut part = canvas.part(area);
    part.clear();
    part.style_line(0, theme.heading());
    part.text(0, 1, list.title, theme.heading());
    let height = part.area.height.saturating_sub(1);
    list.window.settle(list.items.len(), height.into());
    let shown = list.items.iter().enumerate().skip(list.window.top);
    for (line, (at, (text, _))) in shown.take(height.into()).enumerate() {
        let style = if at == list.window.cursor {
            theme.cursor()
        } else {
            theme.plain()
        };
        part.style_line(1 + line as u16, style);
        part.text(1 + line as u16, 1, text, style);
    }
}

/// Draws the help. That of `below` comes first.
fn draw_help(canvas: &mut Canvas<'_>, window: &mut Window, below: Place, theme: Theme) {
    canvas.clear();
    let mut lines = Vec::new();
    let others = Place::ALL.into_iter().filter(|place| *place != below);
    for place in [below].into_iter().chain(others) {
        lines.push((place.heading().to_owned(), String::new()));
        for binding in BINDINGS.iter().filter(|binding| binding.place == place) {
            let keys: Vec<_> = binding.keys.iter().map(|key: &Key| key.name()).collect();
            lines.push((format!("  {:>12}", keys.join(" ")), binding.help.to_owned()));
        }
        lines.push((String::new(), String::new()));
    }
    lines.push(("Filters".into(), String::new()));
    for line in [
        "compare fields: rss > 100M && user != root, comm =~ '^kworker',",
        "pcpu > 5; with &&, ||, ! and parentheses.",
        "fastproc ps --help lists the fields.",
    ] {
        lines.push(("  ".into(), line.into()));
    }
    window.height = canvas.area.height.into();
    window.top = window.top.min(lines.len().saturating_sub(window.height));
    let shown = lines.iter().skip(window.top).take(window.height);
    for (line, (keys, help)) in shown.enumerate() {
        let style = if help.is_empty() {
            theme.bold()
        } else {
            theme.line()
        };
        let at = canvas.text(line as u16, 0, keys, style);
        canvas.text(line as u16, at.max(15) + 1, help, theme.plain());
    }
}
