//! The table of cgroups.

use fastproc_columns::cgroups::{Lookup, Rows};

use super::{
    grid::{Form, Grid, Head, plain_cell},
    theme::Theme,
};
use crate::{canvas::Canvas, observation::Cgroups, state::State};

/// Draws the rows that can be seen, with the window settled over them, and below them a line about all that there are.
pub fn draw(
    canvas: &mut Canvas<'_>,
    grid: &mut Grid,
    view: &Cgroups<'_>,
    rows: &Rows<'_>,
    state: &mut State,
    theme: Theme,
) {
    let height = canvas.area.height;
    let room = usize::from(height.saturating_sub(2));
    state.cgroups.find_followed(rows);
    if let Some(direction) = state.seek.take()
        && !state.cgroups.seek(rows, &state.search, direction)
    {
        state.say_not_found();
    }
    let table = &mut state.cgroups;
    table.chosen.window.settle(rows.len(), room);
    let selected = rows.get(table.chosen.window.cursor);
    table.selected = selected.map(|row| row.cgroup.id());
    grid.begin(table.chosen.columns.iter().map(|column| Head::of(column)));
    let shown = rows.iter().skip(table.chosen.window.top).take(room);
    for row in shown {
        for column in &table.chosen.columns {
            grid.push(|text| column.write_for_table(row, &mut Lookup::default(), text));
        }
    }
    let form = Form {
        left: table.chosen.window.left,
        sorted: table.chosen.sorted(),
        may_drop: table.chosen.may_drop.then_some("path"),
        theme,
    };
    let (top, cursor) = (table.chosen.window.top, table.chosen.window.cursor);
    let row_style = |row: usize| {
        let is_populated = |place: usize| {
            let row = rows.get(place);
            row.is_none_or(|row| row.cgroup.record().identity.populated != 0)
        };
        match top + row {
            place if place == cursor => theme.cursor(),
            place if is_populated(place) => theme.plain(),
            _ => theme.dim(),
        }
    };
    let cell_style = |_, _, text: &str| plain_cell(text, theme);
    grid.draw(canvas, &form, row_style, cell_style);
    let line = 1 + rows.len().min(room) as u16;
    let at = canvas.text(line, 0, &rows.total(), theme.bold());
    if !view.absent.is_empty() {
        let text = format!("; not known: {} (not on version 2)", view.absent.join(", "));
        canvas.text(line, at, &text, theme.error());
    }
}
