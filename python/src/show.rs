//! Formats a table as text, and as HTML for notebooks.

use fastproc::Cmdline;
use fastproc_columns::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::{
    columns::{ColumnData, Resolution, TableData},
    data::Values,
};

/// With more rows than this, only the first and the last ones are shown.
const ROWS: usize = 20;
/// The longest text of a value, in columns of a terminal.
const LONGEST: usize = 60;

/// The value as in `fastproc ps`.
fn cell(column: &ColumnData, at: usize) -> String {
    let mut bytes = Vec::new();
    let unit = column.subject.unit();
    let mut write = |value: Value<'_>| value.write_for_table(unit, &mut bytes);
    match &column.data.values {
        _ if !column.data.is_known(at) => write(Value::Unknown),
        Values::Unsigned(numbers) => write(Value::Unsigned(numbers[at])),
        Values::Signed(numbers) => {
            let whole = match column.subject.resolution() {
                Some(Resolution::Microseconds) => 1_000_000,
                _ => 1,
            };
            write(Value::Signed(numbers[at].div_euclid(whole)));
        }
        Values::Real(numbers) => write(Value::Real(numbers[at])),
        Values::Truth(bits) => write(Value::Truth(bits.get(at))),
        Values::Text(texts) => write(Value::Text(texts.get(at))),
        Values::Numbers(lists) => write(Value::Numbers(&lists.items[lists.range(at)])),
        Values::Arguments(lists) => {
            let mut line = Vec::new();
            for item in lists.range(at) {
                line.extend_from_slice(lists.items.get(item));
                line.push(0);
            }
            write(Value::Arguments(Cmdline {
                bytes: &line,
                cut: false,
            }));
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut taken = 0;
    let does_not_fit = |character: char| {
        taken += character.width().unwrap_or(0);
        taken > LONGEST
    };
    match text.find(does_not_fit) {
        Some(end) => format!("{}…", &text[..end]),
        None => text.into_owned(),
    }
}

/// The indexes of the rows that are shown; `None` for those between.
fn shown(len: usize) -> Vec<Option<usize>> {
    if len <= ROWS {
        return (0..len).map(Some).collect();
    }
    let first = (0..ROWS / 2).map(Some);
    let last = (len - ROWS / 2..len).map(Some);
    first.chain([None]).chain(last).collect()
}

/// Headings and cells of the rows that are shown.
fn cells(table: &TableData) -> (Vec<String>, Vec<Vec<String>>) {
    let columns = &table.columns;
    let heads = columns.iter().map(|column| column.subject.heading());
    let rows = shown(table.len).into_iter().map(|at| {
        let cells = columns.iter().map(|column| match at {
            Some(at) => cell(column, at),
            None => "…".into(),
        });
        cells.collect()
    });
    (heads.collect(), rows.collect())
}

fn summary(table: &TableData) -> String {
    format!("{} rows, read by {}", table.len, table.origin.source)
}

/// Formats as text, one line per row.
pub fn text(table: &TableData) -> String {
    let (heads, rows) = cells(table);
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].width());
        cells.max().unwrap_or(0).max(heads[at].width())
    };
    let widths: Vec<_> = (0..heads.len()).map(width).collect();
    let mut text = String::new();
    for row in std::iter::once(&heads).chain(&rows) {
        let mut line = String::new();
        for ((cell, &width), column) in row.iter().zip(&widths).zip(&table.columns) {
            let padding = " ".repeat(width - cell.width());
            let (before, after) = if column.subject.unit().is_right_aligned() {
                (padding.as_str(), "")
            } else {
                ("", padding.as_str())
            };
            line.extend([before, cell, after, "  "]);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text + &summary(table)
}

/// Formats as HTML.
pub fn html(table: &TableData) -> String {
    let (heads, rows) = cells(table);
    let mut html = String::from("<table><thead><tr>");
    for head in &heads {
        html.extend(["<th>", &escape(head), "</th>"]);
    }
    html.push_str("</tr></thead><tbody>");
    for row in &rows {
        html.push_str("<tr>");
        for (cell, column) in row.iter().zip(&table.columns) {
            let align = if column.subject.unit().is_right_aligned() {
                "right"
            } else {
                "left"
            };
            html.extend([
                "<td style=\"text-align:",
                align,
                "\">",
                &escape(cell),
                "</td>",
            ]);
        }
        html.push_str("</tr>");
    }
    html.extend(["</tbody></table><p>", &summary(table), "</p>"]);
    html
}

/// Any user can choose the names of processes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
