//! One process in detail.

use fastproc::{Process, Snapshot};
use fastproc_columns::{FIELDS, Lookup, Row, field};

use super::{
    graphs::{Plot, graph},
    grid::{Form, Grid, Head},
    header::size,
    theme::Theme,
};
use crate::{
    canvas::Canvas,
    details::{self, Details, Histories, Page, Watched},
    history::History,
    observation::View,
    window::Window,
};

/// Fields that are not shown: what is read for each costs more than all others.
const COSTLY: [&str; 5] = ["pss", "uss", "fds", "sockets", "listen"];
/// Where the histories begin, to the right of their labels and last values.
const SPARK_AT: i32 = 26;
/// Fields of a line, each between two texts.
type Parts = &'static [(&'static str, &'static str, &'static str)];
/// What a person wants to know first: the label of a line, and its fields.
#[rustfmt::skip]
const FACTS: [(&str, Parts); 9] = [
    ("program", &[("", "exe", "")]),
    ("user", &[("", "user", ""), (", group ", "group", "")]),
    ("started", &[("", "lstart", ""), (", it runs for ", "etime", ""), (", by process ", "ppid", "")]),
    ("state", &[("", "state", ""), (", threads ", "num_threads", ""), (", nice ", "nice", ""), (", last on CPU ", "processor", ""),
                (", waits in ", "wchan", "")]),
    ("cgroup", &[("", "cgroup", ""), (", container ", "container", ""), (" ", "container_name", ""), (", pod ", "pod", "")]),
    ("CPU", &[("", "pcpu", "%"), (", time ", "time", ""), (", user ", "utime", ""), (", system ", "stime", ""), (", waited for one ", "run_delay", ""),
             (" ", "wait", "%")]),
    ("memory", &[("resident ", "rss", ""), (", ", "pmem", "%"), (", largest ", "vmhwm", ""), (", swapped ", "vmswap", ""),
                 (", virtual ", "vsize", "")]),
    ("I/O", &[("read ", "read_bytes", ""), (", written ", "write_bytes", "")]),
    ("limits", &[("memory ", "cgroup_memory_max", ""), (", of it used ", "cgroup_memory_used", "%"), (", CPU ", "cgroup_cpu_max", "%"),
                 (", tasks ", "cgroup_tasks_max", ""), (", OOM score ", "oom_score", "")]),
];
/// Lines of a command line.
const COMMAND_LINES: usize = 3;
/// Fields of a thread.
const THREAD_FIELDS: [&str; 9] = [
    "tid",
    "state",
    "pcpu",
    "wait",
    "time",
    "ni",
    "processor",
    "nvcsw",
    "comm",
];

/// Draws the process.
pub fn draw(
    canvas: &mut Canvas<'_>,
    details: &mut Details,
    view: &View<'_>,
    lookup: &mut Lookup,
    watched: &Watched,
    theme: Theme,
) {
    canvas.clear();
    let process = find(&view.snapshot, details);
    let mut title = format!("Process {}: ", details.id.pid).into_bytes();
    if let Some(process) = process {
        write_field("cmdline", &row(process, view), lookup, &mut title);
    } else {
        title.extend_from_slice(b"has ended");
    }
    canvas.style_line(0, theme.heading());
    canvas.text(0, 0, text(&title), theme.heading());
    let titles = Page::ALL.map(|page| (page.title(), page == details.page));
    tabs(canvas, &titles, theme);
    let mut body = canvas.lines(2, u16::MAX);
    match (details.page, process) {
        (Page::Overview, process) => {
            let nothing = Histories::default();
            let history = watched.get(details.id).unwrap_or(&nothing);
            let used = process.map_or(0, |process| {
                1 + facts(&mut body, &row(process, view), lookup, theme)
            });
            histories(&mut body.lines(used, u16::MAX), history, theme);
        }
        (Page::Fields, Some(process)) => {
            let row = row(process, view);
            fields(&mut body, &mut details.window, &row, lookup, theme);
        }
        (Page::Threads, Some(process)) => threads(&mut body, details, process, view, lookup, theme),
        (Page::Limits | Page::Files | Page::Environment, process) => {
            let page = details.page;
            let mut read = || {
                let process = process.ok_or("the process has ended")?;
                if view.line.is_some() {
                    let what = match page {
                        Page::Environment => "the environment is",
                        Page::Files => "files are",
                        _ => "limits are",
                    };
                    return Err(format!("{what} not recorded"));
                }
                let mut lines = details::read(page, process, lookup)?;
                if page == Page::Files {
                    details::name_sockets(process.pid(), &mut lines);
                    details::count_files(&mut lines);
                }
                Ok(lines)
            };
            match details.lines.get_or_insert_with(&mut read) {
                Ok(lines) => {
                    let lines: Vec<&str> = lines.iter().map(|line| text(line)).collect();
                    scrolled(&mut body, &mut details.window, &lines, theme);
                }
                Err(error) => {
                    body.text(0, 0, error, theme.error());
                }
            }
        }
        (Page::Threads | Page::Fields, None) => {}
    }
}

/// Draws the titles of the pages, with the current one highlighted.
pub fn tabs(canvas: &mut Canvas<'_>, pages: &[(&str, bool)], theme: Theme) {
    let mut at = 0;
    for (title, is_shown) in pages {
        let style = if *is_shown {
            theme.cursor()
        } else {
            theme.plain()
        };
        at = canvas.text(1, at, &format!(" {title} "), style);
    }
}

/// The process, if it still exists.
pub fn find<'a>(snapshot: &Snapshot<'a>, details: &Details) -> Option<Process<'a>> {
    details.id.find(snapshot)
}

/// The process, with its changes since the last snapshot.
fn row<'a>(process: Process<'a>, view: &View<'a>) -> Row<'a> {
    let change = view.before.and_then(|before| {
        let mut changes = before.changes(&view.snapshot);
        changes.find(|change| change.process.pid() == process.pid())
    });
    Row {
        change,
        ..Row::new(process)
    }
}

/// Draws what a person wants to know first. Returns the number of lines.
fn facts(canvas: &mut Canvas<'_>, row: &Row<'_>, lookup: &mut Lookup, theme: Theme) -> u16 {
    const TEXT_AT: i32 = 10;
    let room = usize::from(canvas.area.width)
        .saturating_sub(TEXT_AT as usize)
        .max(1);
    let mut draw = |line: u16, label: &str, words: &str| {
        canvas.text(line, 0, label, theme.dim());
        canvas.text(line, TEXT_AT, words, theme.plain());
    };
    let mut line = 0;
    let mut words = Vec::new();
    write_field("cmdline", row, lookup, &mut words);
    let mut rest: Vec<char> = text(&words).chars().collect();
    for _ in 0..COMMAND_LINES {
        let after = rest.split_off(room.min(rest.len()));
        draw(
            line,
            if line == 0 { "command" } else { "" },
            &rest.iter().collect::<String>(),
        );
        line += 1;
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    for (label, parts) in FACTS {
        words.clear();
        for (before, field, after) in parts {
            let start = words.len();
            words.extend_from_slice(before.as_bytes());
            let known = words.len();
            write_field(field, row, lookup, &mut words);
            if matches!(&words[known..], b"" | b"-") {
                words.truncate(start);
            } else {
                words.extend_from_slice(after.as_bytes());
            }
        }
        let shown = text(&words).trim_start_matches(", ");
        if !shown.is_empty() {
            draw(line, label, shown);
            line += 1;
        }
    }
    line
}

/// Draws the histories of the process.
fn histories(canvas: &mut Canvas<'_>, history: &Histories, theme: Theme) {
    let per_second = |rate: f64| format!("{}/s", size(rate.round() as u64));
    let number = |rate: f64| format!("{}/s", super::header::count(rate));
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let bytes = |bytes: f64| size(bytes as u64);
    let lines: [(&str, &History, String); 6] = [
        ("CPU", &history.cpu, last(&history.cpu, percent)),
        ("memory", &history.rss, last(&history.rss, bytes)),
        ("read", &history.read, last(&history.read, per_second)),
        (
            "written",
            &history.written,
            last(&history.written, per_second),
        ),
        ("faults", &history.faults, last(&history.faults, number)),
        (
            "switches (main)",
            &history.switches,
            last(&history.switches, number),
        ),
    ];
    graphs(canvas, &lines, canvas.area.height, theme);
}

/// Draws histories in at most this many lines, each with its label and its last value. Returns how many it took.
pub fn graphs(
    canvas: &mut Canvas<'_>,
    all: &[(&str, &History, String)],
    room: u16,
    theme: Theme,
) -> u16 {
    let lines = match room / all.len() as u16 {
        lines @ 3.. => lines.min(4),
        _ => 1,
    };
    for (i, (label, history, now)) in all.iter().enumerate() {
        let line = i as u16 * lines;
        canvas.text(line, 0, label, theme.dim());
        canvas.text_before(line, SPARK_AT - 2, now, theme.bold());
        let plot = Plot {
            line,
            column: SPARK_AT,
            // A line between two of them.
            lines: (lines - 1).max(1),
            width: usize::from(canvas.area.width).saturating_sub(SPARK_AT as usize),
        };
        graph(canvas, plot, history, None, theme);
    }
    lines * all.len() as u16
}

/// Draws the fields.
fn fields(
    body: &mut Canvas<'_>,
    window: &mut Window,
    row: &Row<'_>,
    lookup: &mut Lookup,
    theme: Theme,
) {
    let process = row.process;
    let fields = FIELDS
        .iter()
        .filter(|field| !COSTLY.contains(&field.name) && process.fields().contains(field.needs));
    let cells: Vec<String> = fields
        .map(|field| {
            let mut cell = format!("{:<22} ", field.name).into_bytes();
            field.write_for_table(row, lookup, &mut cell);
            String::from_utf8(cell).unwrap_or_default()
        })
        .collect();
    in_columns(body, window, &cells, theme);
}

/// Draws cells in as many columns as fit.
pub fn in_columns(body: &mut Canvas<'_>, window: &mut Window, cells: &[String], theme: Theme) {
    let columns = (body.area.width / 40).max(1);
    let in_column = cells.len().div_ceil(columns.into());
    window.height = body.area.height.into();
    window.top = window.top.min(in_column.saturating_sub(window.height));
    let each = body.area.width / columns;
    for column in 0..columns {
        let mut part = body.part(ratatui_core::layout::Rect {
            x: body.area.x + column * each,
            width: each.saturating_sub(1),
            ..body.area
        });
        let cells = cells
            .iter()
            .skip(usize::from(column) * in_column)
            .take(in_column);
        for (line, cell) in cells.skip(window.top).take(window.height).enumerate() {
            part.text(line as u16, 0, cell, theme.plain());
        }
    }
}

fn last(history: &History, write: impl Fn(f64) -> String) -> String {
    let value = history.last(1).next().flatten();
    value.map_or_else(|| "-".into(), write)
}

fn threads(
    canvas: &mut Canvas<'_>,
    details: &mut Details,
    process: Process<'_>,
    view: &View<'_>,
    lookup: &mut Lookup,
    theme: Theme,
) {
    let all = Row::all(&view.snapshot, view.before, true);
    let mut rows: Vec<_> = all
        .filter(|row| row.process.pid() == process.pid())
        .collect();
    if rows.is_empty() {
        let text = match view.line {
            Some(_) => "threads are not recorded",
            None => "its threads were not read yet",
        };
        canvas.text(0, 0, text, theme.dim());
        return;
    }
    rows.sort_unstable_by_key(Row::tid);
    list(
        canvas,
        &mut details.window,
        &rows,
        &THREAD_FIELDS,
        lookup,
        theme,
    );
}

/// Draws rows of these fields, below a line of headings.
pub fn list(
    canvas: &mut Canvas<'_>,
    window: &mut Window,
    rows: &[Row<'_>],
    fields: &[&str],
    lookup: &mut Lookup,
    theme: Theme,
) {
    window.height = usize::from(canvas.area.height).saturating_sub(1);
    window.top = window.top.min(rows.len().saturating_sub(window.height));
    let fields: Vec<_> = fields.iter().flat_map(|name| field::find(name)).collect();
    let mut grid = Grid::default();
    grid.begin(fields.iter().map(|field| Head::of(field)));
    for row in rows.iter().skip(window.top).take(window.height) {
        for field in &fields {
            grid.push(|to| field.write_for_table(row, lookup, to));
        }
    }
    let form = Form {
        left: 0,
        sorted: ("", false),
        may_drop: None,
        theme,
    };
    grid.draw(canvas, &form, |_| theme.plain(), |_, _, _| theme.plain());
}

fn scrolled(canvas: &mut Canvas<'_>, window: &mut Window, lines: &[&str], theme: Theme) {
    window.height = canvas.area.height.into();
    window.top = window.top.min(lines.len().saturating_sub(window.height));
    for (line, text) in lines
        .iter()
        .skip(window.top)
        .take(window.height)
        .enumerate()
    {
        canvas.text(line as u16, 0, text, theme.plain());
    }
}

fn write_field(name: &str, row: &Row<'_>, lookup: &mut Lookup, to: &mut Vec<u8>) {
    if let Ok(field) = field::find(name) {
        field.write_for_table(row, lookup, to);
    }
}

fn text(bytes: &[u8]) -> &str {
    // The text of a table is escaped, so it is UTF-8.
    std::str::from_utf8(bytes).unwrap_or_default()
}
