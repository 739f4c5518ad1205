//! One cgroup in detail.

use std::cmp::Reverse;

use fastproc_columns::{
    Lookup, Row,
    cgroups::{COLUMNS, Column, find, with_descendants},
    escape::escape,
};

use super::{details, theme::Theme};
use crate::{
    canvas::Canvas,
    cgroups::{Details, HISTORIES, Histories, Page},
    observation::{Cgroups, View},
};

/// Fields of its processes.
const PROCESS_FIELDS: [&str; 8] = [
    "pid",
    "user",
    "state",
    "pcpu",
    "rss",
    "time",
    "num_threads",
    "cmdline",
];

/// Draws the cgroup.
pub fn draw(
    canvas: &mut Canvas<'_>,
    shown: &mut Details,
    cgroups: &Cgroups<'_>,
    view: &View<'_>,
    lookup: &mut Lookup,
    histories: &Histories,
    theme: Theme,
) {
    canvas.clear();
    let row = cgroups.row(shown.id);
    let row = row.as_ref();
    if let Some(row) = row {
        shown.path = row.cgroup.path().to_vec();
    }
    let mut title = b"Cgroup ".to_vec();
    escape(&shown.path, &mut title);
    if row.is_none() {
        title.extend_from_slice(b" was removed");
    }
    canvas.style_line(0, theme.heading());
    canvas.text(0, 0, &String::from_utf8_lossy(&title), theme.heading());
    let titles = Page::ALL.map(|page| (page.title(), page == shown.page));
    details::tabs(canvas, &titles, theme);
    let mut body = canvas.lines(2, u16::MAX);
    match (shown.page, row) {
        (Page::Overview, row) => {
            let lines: Vec<_> = HISTORIES
                .iter()
                .zip(&histories.0)
                .map(|((name, label), history)| {
                    let value = row.zip(find(name).ok());
                    let value = value.map_or_else(|| "-".into(), |(row, column)| now(row, column));
                    (*label, history, value)
                })
                .collect();
            let room = body.area.height / 2;
            let used = details::graphs(&mut body, &lines, room, theme);
            let mut body = body.lines(used + 1, u16::MAX);
            if let Some(row) = row {
                let cells: Vec<_> = COLUMNS
                    .iter()
                    .map(|column| format!("{:<18} {}", column.name, now(row, column)))
                    .collect();
                details::in_columns(&mut body, &mut shown.window, &cells, theme);
            }
        }
        (Page::Processes, Some(_)) if cgroups.members.is_none() => {
            let text = "which processes it has is not known with this source of processes";
            body.text(0, 0, text, theme.dim());
        }
        (Page::Processes, Some(_)) => {
            let processes = processes(shown.id, cgroups, view);
            let window = &mut shown.window;
            details::list(
                &mut body,
                window,
                &processes,
                &PROCESS_FIELDS,
                lookup,
                theme,
            );
        }
        (Page::Processes, None) => {}
    }
}

/// The value of a column, for people.
fn now(row: &fastproc_columns::cgroups::Row<'_>, column: &Column) -> String {
    let mut text = Vec::new();
    column.write_for_table(
        row,
        &mut fastproc_columns::cgroups::Lookup::default(),
        &mut text,
    );
    String::from_utf8_lossy(&text).into_owned()
}

/// The processes of a cgroup and of its descendants, the busiest first.
fn processes<'a>(id: u64, cgroups: &Cgroups<'_>, view: &View<'a>) -> Vec<Row<'a>> {
    let within = with_descendants(cgroups.snapshot, id);
    let is_within = |row: &Row<'_>| {
        let id = row.process.cgroup().and_then(fastproc::record::Cgroup::id);
        id.is_some_and(|id| within.contains(&id))
    };
    let rows = Row::all(&view.snapshot, view.before, false);
    let mut rows: Vec<_> = rows.filter(is_within).collect();
    let share = |row: &Row<'_>| {
        row.change
            .and_then(|change| change.cpu_share)
            .unwrap_or(0.0)
    };
    rows.sort_by_key(|row| (Reverse(share(row).to_bits()), row.process.pid()));
    rows
}
