//! The table of processes, of threads, or of groups.

use fastproc_columns::{Field, Lookup, Row, field, number};
use ratatui_core::style::Style;

use super::{header::size, theme::Theme};
use crate::{
    canvas::{Canvas, width},
    group::Groups,
    id::Id,
    rows::Picked,
    state::State,
};

/// Columns between two columns of the table.
const GAP: i32 = 1;
/// What is left for the last column by leaving out others.
const ROOM_FOR_LAST: i32 = 16;

/// Draws tables. Columns only ever grow wider, so that nothing jumps.
#[derive(Debug, Default)]
pub struct Table {
    /// The columns that the widths are of.
    columns: Vec<&'static str>,
    widths: Vec<u16>,
    text: Vec<u8>,
    /// Where each cell of the text ends.
    ends: Vec<usize>,
    /// Where the column of each field begins and ends on the screen, for the mouse.
    pub places: Vec<(std::ops::Range<u16>, &'static str)>,
}

/// The columns of groups: heading, width, what to sort by.
const GROUP_COLUMNS: [(&str, i32, &str); 7] = [
    ("COUNT", 6, "pid"),
    ("THR", 6, "num_threads"),
    ("%CPU", 7, "pcpu"),
    ("RSS", 7, "rss"),
    ("TIME", 11, "time"),
    ("READ/S", 7, "read_bytes_per_second"),
    ("WRITE/S", 8, "write_bytes_per_second"),
];

impl Table {
    /// Draws rows, below a line of headings.
    pub fn draw(
        &mut self,
        canvas: &mut Canvas<'_>,
        picked: &Picked<'_>,
        state: &State,
        lookup: &mut Lookup,
        theme: Theme,
    ) {
        self.measure(picked, state, lookup);
        let left = -i32::from(state.window.left);
        let shown = self.visible(state, i32::from(canvas.area.width));
        let (sorted, descending) = state.sort_key();
        canvas.style_line(0, theme.heading());
        self.places.clear();
        let mut x = left;
        let last = self.widths.len().saturating_sub(1);
        for (column, field) in state.columns.iter().enumerate() {
            if !shown[column] {
                continue;
            }
            let is_sorted = field.name == sorted;
            let style = if is_sorted {
                theme.sorted_heading()
            } else {
                theme.heading()
            };
            let mut heading = field.column_heading();
            if is_sorted && column == last {
                heading.push(if descending { '▽' } else { '△' });
            }
            let cell = i32::from(self.widths[column]);
            let at = if field.unit.is_right_aligned() {
                x + cell - width(&heading) as i32
            } else {
                x
            };
            canvas.text(0, at, &heading, style);
            let place = |x: i32| x.clamp(0, canvas.area.width.into()) as u16;
            let until = if column == last {
                i32::MAX
            } else {
                x + cell + GAP
            };
            self.places.push((place(x)..place(until), field.name));
            x += cell + GAP;
        }
        let count = state.columns.len();
        for (i, row) in picked.rows.iter().enumerate() {
            let line = 1 + i as u16;
            let style = row_style(row, i, state, theme);
            if style != theme.plain() {
                canvas.style_line(line, style);
            }
            let mut x = left;
            for (column, field) in state.columns.iter().enumerate() {
                let text = self.cell(i * count + column);
                if !shown[column] {
                    continue;
                }
                let cell = i32::from(self.widths[column]);
                let at = if field.unit.is_right_aligned() {
                    x + cell - width(text) as i32
                } else {
                    x
                };
                let style = if style == theme.plain() {
                    cell_style(field, text, theme)
                } else {
                    style
                };
                canvas.text(line, at, text, style);
                x += cell + GAP;
            }
        }
    }

    fn cell(&self, at: usize) -> &str {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        // Cells are escaped, and so UTF-8.
        std::str::from_utf8(&self.text[start..self.ends[at]]).unwrap_or_default()
    }

    /// Writes the cells that can be seen, and nothing else.
    fn measure(&mut self, picked: &Picked<'_>, state: &State, lookup: &mut Lookup) {
        let names = state.columns.iter().map(|field| field.name);
        if !self.columns.iter().copied().eq(names.clone()) {
            self.columns = names.collect();
            let heading = |field: &&Field| width(&field.column_heading()) as u16;
            self.widths = state.columns.iter().map(heading).collect();
        }
        self.text.clear();
        self.ends.clear();
        let mut branch = Vec::new();
        let name = field::find("comm").ok();
        for (i, row) in picked.rows.iter().enumerate() {
            branch.clear();
            if let Some(place) = picked.branches.get(i) {
                place.write(&mut branch);
                if place.is_parent && state.folded.contains(&row.process.pid()) {
                    branch.extend_from_slice(b"+ ");
                }
            }
            let row = Row {
                branch: &branch,
                ..*row
            };
            for (column, field) in state.columns.iter().enumerate() {
                let start = self.text.len();
                // The kernel has no command line of it any more.
                let is_gone = field.name == "cmdline" && has_ended(&row);
                let field = name.filter(|_| is_gone).unwrap_or(field);
                field.write_for_table(&row, lookup, &mut self.text);
                self.ends.push(self.text.len());
                let text = std::str::from_utf8(&self.text[start..]).unwrap_or_default();
                let cell = width(text).min(usize::from(u16::MAX)) as u16;
                self.widths[column] = self.widths[column].max(cell);
            }
        }
    }

    /// Which columns there is room for: all, if they were asked for by name.
    fn visible(&self, state: &State, room: i32) -> Vec<bool> {
        let mut visible = vec![true; self.widths.len()];
        let last = self.widths.len().saturating_sub(1);
        if !state.may_drop || last == 0 {
            return visible;
        }
        let of = |column: usize| i32::from(self.widths[column]) + GAP;
        let mut taken = ROOM_FOR_LAST + (0..last).map(of).sum::<i32>();
        let (sorted, _) = state.sort_key();
        for column in (0..last).rev() {
            let name = state.columns[column].name;
            if taken > room && name != "pid" && name != sorted {
                visible[column] = false;
                taken -= of(column);
            }
        }
        visible
    }

    /// Draws groups.
    pub fn draw_groups(
        &mut self,
        canvas: &mut Canvas<'_>,
        groups: &Groups,
        state: &State,
        theme: Theme,
    ) {
        canvas.style_line(0, theme.heading());
        let (sorted, _) = state.sort_key();
        let left = -i32::from(state.window.left);
        self.places.clear();
        let mut x = left;
        for (heading, cell, sort) in GROUP_COLUMNS {
            let style = if sort == sorted {
                theme.sorted_heading()
            } else {
                theme.heading()
            };
            canvas.text_before(0, x + cell, heading, style);
            let place = |x: i32| x.clamp(0, canvas.area.width.into()) as u16;
            self.places.push((place(x)..place(x + cell + GAP), sort));
            x += cell + GAP;
        }
        let by = state.settings.group.map_or("", |by| by.name());
        canvas.text(0, x, &by.to_uppercase(), theme.heading());
        for line in 1..canvas.area.height {
            let place = state.window.top + usize::from(line) - 1;
            let Some((key, sums)) = groups.get(place) else {
                break;
            };
            let style = if place == state.window.cursor {
                theme.cursor()
            } else {
                theme.plain()
            };
            canvas.style_line(line, style);
            let mut time = Vec::new();
            number::write_time(sums.cpu_ns, &mut time);
            let rate =
                |rate: Option<f64>| rate.map_or("-".into(), |rate| size(rate.round() as u64));
            let cells = [
                sums.processes.to_string(),
                sums.threads.to_string(),
                format!("{:.1}", sums.cpu_share * 100.0),
                size(sums.rss),
                String::from_utf8(time).unwrap_or_default(),
                rate(sums.read),
                rate(sums.written),
            ];
            let mut x = left;
            for (text, (_, cell, _)) in cells.iter().zip(GROUP_COLUMNS) {
                canvas.text_before(line, x + cell, text, style);
                x += cell + GAP;
            }
            let mut text = Vec::new();
            let key = state.settings.group.map_or(key, |by| by.shown(key));
            fastproc_columns::escape::escape(key, &mut text);
            canvas.text(
                line,
                x,
                std::str::from_utf8(&text).unwrap_or_default(),
                style,
            );
        }
    }
}

fn row_style(row: &Row<'_>, place: usize, state: &State, theme: Theme) -> Style {
    let id = Id::from_row(row);
    if state.follow.is_some_and(|followed| followed.is_of(row)) {
        theme.followed()
    } else if state.window.top + place == state.window.cursor {
        theme.cursor()
    } else if !state.marked.is_empty() && state.marked.contains(&id) {
        theme.marked()
    } else if has_ended(row) {
        theme.ended()
    } else if row.process.identity().is_kernel_thread() {
        theme.dim()
    } else {
        theme.plain()
    }
}

fn has_ended(row: &Row<'_>) -> bool {
    row.change.is_some_and(|change| change.exit.is_some())
}

fn cell_style(field: &Field, text: &str, theme: Theme) -> Style {
    match (field.name, text) {
        ("state", "R") => theme.user(),
        ("state", "D") => theme.error(),
        ("state", "Z") => theme.system(),
        // Zeros say little.
        (_, "0" | "0.0" | "-" | "0:00.00") => theme.dim(),
        _ => theme.plain(),
    }
}
