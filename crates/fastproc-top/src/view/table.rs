//! The table of processes, of threads, or of groups.

use fastproc_columns::{Lookup, Row, escape::escape, field, number};
use ratatui_core::style::Style;
use rustix::process::geteuid;

use super::{
    grid::{Form, Grid, Head, plain_cell},
    header::size,
    theme::Theme,
};
use crate::{
    canvas::{Canvas, name_in},
    group::Groups,
    id::Id,
    rows::Picked,
    state::State,
};

/// Draws tables of processes, of threads and of groups.
#[derive(Debug, Default)]
pub struct Table {
    /// The cells, and where each column is on the screen.
    pub grid: Grid,
    /// The text for which the grid has a needle.
    searched: String,
}

/// A process is new for this long.
const YOUNG_NS: u64 = 3_000_000_000;

/// The columns of groups: heading, least width, field to sort by.
const GROUP_COLUMNS: [(&str, usize, &str); 7] = [
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
        if self.searched != state.search {
            self.searched.clone_from(&state.search);
            let search = Some(&state.search).filter(|text| !text.is_empty());
            self.grid.needle = search.and_then(|text| text.parse().ok());
        }
        let own = lookup.users.name(geteuid().as_raw()).to_vec();
        let young = |row: &Row<'_>| lookup.now_ns.saturating_sub(row.start_ns()) < YOUNG_NS;
        let form = Form {
            left: state.chosen.window.left,
            sorted: state.chosen.sorted(),
            may_drop: state.chosen.may_drop.then_some("pid"),
            theme,
        };
        self.grid.draw(
            canvas,
            &form,
            |row| row_style(&picked.rows[row], row, state, theme),
            |at, name, text| {
                let row = &picked.rows[at];
                match name {
                    "user" if text.as_bytes() != own => theme.other(),
                    "cmdline" | "comm" if young(row) => theme.user(),
                    "cmdline" | "comm" if row.other_thread().is_some() => theme.other(),
                    _ => cell_style(name, text, theme),
                }
            },
        );
    }

    /// Writes only the visible cells.
    fn write(&mut self, picked: &Picked<'_>, state: &State, lookup: &mut Lookup) {
        self.grid
            .begin(state.chosen.columns.iter().map(|field| Head::of(field)));
        let mut branch = Vec::new();
        let name = field::find("comm").ok();
        for (i, row) in picked.rows.iter().enumerate() {
            branch.clear();
            if let Some(place) = picked.branches.get(i) {
                place.write_lines(&mut branch);
                if place.is_parent && state.chosen.folded.contains(&row.process.pid()) {
                    branch.extend_from_slice(b"+ ");
                }
            }
            let row = Row {
                branch: &branch,
                ..*row
            };
            for field in &state.chosen.columns {
                // The kernel no longer has its command line.
                let is_gone = field.name == "cmdline" && has_ended(&row);
                let field = name.filter(|_| is_gone).unwrap_or(field);
                self.grid.push(|text| {
                    let start = text.len();
                    field.write_for_table(&row, lookup, text);
                    if field.name == "cmdline" && !state.shows_paths() {
                        let start = start + branch.len();
                        let line = str::from_utf8(&text[start..]).unwrap_or_default();
                        let (name, _) = name_in(line);
                        text.drain(start..start + name);
                    }
                });
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
        let by = state.settings.group;
        let heads = GROUP_COLUMNS.map(|(heading, narrowest, name)| Head {
            name,
            heading: heading.into(),
            narrowest,
            is_right_aligned: true,
        });
        let last = Head {
            name: "",
            heading: by.map_or("", |by| by.name()).to_uppercase(),
            narrowest: 0,
            is_right_aligned: false,
        };
        self.grid.begin(heads.into_iter().chain([last]));
        let (top, cursor) = (state.chosen.window.top, state.chosen.window.cursor);
        let rows = top..top + usize::from(canvas.area.height.saturating_sub(1));
        for (key, sums) in rows.map_while(|place| groups.get(place)) {
            let rate =
                |rate: Option<f64>| rate.map_or("-".into(), |rate| size(rate.round() as u64));
            for cell in [
                sums.processes.to_string(),
                sums.threads.to_string(),
                format!("{:.1}", sums.cpu_share * 100.0),
                size(sums.rss),
                time(sums.cpu_ns),
                rate(sums.read),
                rate(sums.written),
            ] {
                self.grid.push(|to| to.extend(cell.bytes()));
            }
            let key = by.map_or(key, |by| by.shown(key));
            self.grid.push(|to| escape(key, to));
        }
        let form = Form {
            left: state.chosen.window.left,
            sorted: state.chosen.sorted(),
            may_drop: None,
            theme,
        };
        let row_style = |row: usize| {
            if top + row == cursor {
                theme.cursor()
            } else {
                theme.plain()
            }
        };
        let cell_style = |_, _, _: &str| theme.plain();
        self.grid.draw(canvas, &form, row_style, cell_style);
    }
}

fn time(ns: u64) -> String {
    let mut text = Vec::new();
    number::write_time(ns, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

fn row_style(row: &Row<'_>, place: usize, state: &State, theme: Theme) -> Style {
    let id = Id::from_row(row);
    if state.follow.is_some_and(|followed| followed.is_of(row)) {
        theme.followed()
    } else if state.chosen.window.top + place == state.chosen.window.cursor {
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
        ("state", "D" | "Z") => theme.error(),
        ("state", "T" | "t") => theme.interrupts(),
        ("pcpu" | "pmem", text) => match text.parse::<f64>() {
            Ok(share) if share >= 10.0 => theme.level(share / 100.0),
            _ => plain_cell(text, theme),
        },
        _ => plain_cell(text, theme),
    }
}
