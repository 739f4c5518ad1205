//! The table of processes, of threads, or of groups.

use fastproc_columns::{Lookup, Row, field, number};
use ratatui_core::style::Style;

use super::{
    grid::{Form, GAP, Grid, Head, plain_cell},
    header::size,
    theme::Theme,
};
use crate::{canvas::Canvas, group::Groups, id::Id, rows::Picked, state::State};

/// Draws tables of processes, of threads and of groups.
#[derive(Debug, Default)]
pub struct Table {
    /// The cells, and where each column is on the screen.
    pub grid: Grid,
}

/// The columns of groups: heading, width, field to sort by.
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
        self.write(picked, state, lookup);
        let form = Form {
            left: state.window.left,
            sorted: state.sort_key(),
            may_drop: state.may_drop.then_some("pid"),
            theme,
        };
        self.grid.draw(
            canvas,
            &form,
            |row| row_style(&picked.rows[row], row, state, theme),
            |name, text| cell_style(name, text, theme),
        );
    }

    /// Writes only the visible cells.
    fn write(&mut self, picked: &Picked<'_>, state: &State, lookup: &mut Lookup) {
        self.grid.begin(state.columns.iter().map(|field| Head {
            name: field.name,
            heading: field.column_heading(),
            is_right_aligned: field.unit.is_right_aligned(),
        }));
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
            for field in &state.columns {
                // The kernel no longer has its command line.
                let is_gone = field.name == "cmdline" && has_ended(&row);
                let field = name.filter(|_| is_gone).unwrap_or(field);
                self.grid
                    .push(|text| field.write_for_table(&row, lookup, text));
            }
        }
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
        self.grid.places.clear();
        let mut x = left;
        for (heading, cell, sort) in GROUP_COLUMNS {
            let style = if sort == sorted {
                theme.sorted_heading()
            } else {
                theme.heading()
            };
            canvas.text_before(0, x + cell, heading, style);
            let place = |x: i32| x.clamp(0, canvas.area.width.into()) as u16;
            self.grid
                .places
                .push((place(x)..place(x + cell + GAP), sort));
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

fn cell_style(name: &str, text: &str, theme: Theme) -> Style {
    match (name, text) {
        ("state", "R") => theme.user(),
        ("state", "D") => theme.error(),
        ("state", "Z") => theme.system(),
        _ => plain_cell(text, theme),
    }
}
