//! A table on the screen: headings, cells, and the columns that fit.

use fastproc_columns::{Cells, Field, Needle, Subject};
use ratatui_core::style::Style;

use super::theme::Theme;
use crate::canvas::{Canvas, name_in, width};

/// Blanks between two columns of the table.
const GAP: i32 = 1;
/// Columns are left out until the last one has this much room.
const ROOM_FOR_LAST: i32 = 24;
/// Columns that end in the name of a program or a group, which stands out.
const NAMES: [&str; 3] = ["cmdline", "comm", "path"];

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its name.
    pub name: &'static str,
    /// Its heading.
    pub heading: String,
    /// The least width.
    pub narrowest: usize,
    /// Whether its cells are aligned to the right.
    pub is_right_aligned: bool,
}

/// How a table is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Columns of text that are scrolled away on the left.
    pub left: u16,
    /// The column of the order, and whether its largest value comes first.
    pub sorted: (&'static str, bool),
    /// Whether columns may be left out if there is no room. The column of the order and this one stay.
    pub may_drop: Option<&'static str>,
    /// Colours.
    pub theme: Theme,
}

/// Cells of text. Columns only become wider, so that they do not move back and forth.
#[derive(Debug, Default)]
pub struct Grid {
    heads: Vec<Head>,
    widths: Vec<u16>,
    cells: Cells,
    /// What is highlighted in names.
    pub needle: Option<Needle>,
    /// Where each column begins and ends on the screen, for the mouse.
    pub places: Vec<(std::ops::Range<u16>, &'static str)>,
}

impl Grid {
    /// Starts again, with these columns.
    pub fn begin(&mut self, heads: impl Iterator<Item = Head> + Clone) {
        if !self.heads.iter().cloned().eq(heads.clone()) {
            self.heads = heads.collect();
            let wide = |head: &Head| width(&head.heading).max(head.narrowest) as u16;
            self.widths = self.heads.iter().map(wide).collect();
        }
        self.cells.clear();
    }

    /// Adds a cell: `write` appends its text, escaped. Rows follow each other from left to right.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let column = self.cells.len() % self.heads.len();
        let cell = self.cells.push(write).min(usize::from(u16::MAX)) as u16;
        self.widths[column] = self.widths[column].max(cell);
    }

    /// Draws the cells, below a line of headings. A row has a style; if that is the plain one, each cell has its own, which
    /// depends on its row, column and text.
    pub fn draw(
        &mut self,
        canvas: &mut Canvas<'_>,
        form: &Form,
        row_style: impl Fn(usize) -> Style,
        cell_style: impl Fn(usize, &'static str, &str) -> Style,
    ) {
        let theme = form.theme;
        let left = -i32::from(form.left);
        let (sorted, descending) = form.sorted;
        if let Some(at) = self.heads.iter().position(|head| head.name == sorted) {
            let with_arrow = width(&self.heads[at].heading) as u16 + 1;
            self.widths[at] = self.widths[at].max(with_arrow);
        }
        let shown = self.visible(form, i32::from(canvas.area.width));
        canvas.style_line(0, theme.heading());
        self.places.clear();
        let mut x = left;
        let last = self.heads.len().saturating_sub(1);
        for (column, head) in self.heads.iter().enumerate() {
            if !shown[column] {
                continue;
            }
            let is_sorted = head.name == sorted;
            let style = if is_sorted {
                theme.sorted_heading()
            } else {
                theme.heading()
            };
            let cell = i32::from(self.widths[column]);
            let beside = cell - i32::from(is_sorted);
            let at = head.start(x, beside, &head.heading);
            let at = canvas.text(0, at, &head.heading, style);
            if is_sorted {
                canvas.text(0, at, if descending { "▼" } else { "▲" }, style);
            }
            let place = |x: i32| x.clamp(0, canvas.area.width.into()) as u16;
            let until = if column == last {
                i32::MAX
            } else {
                x + cell + GAP
            };
            self.places.push((place(x)..place(until), head.name));
            x += cell + GAP;
        }
        let count = self.heads.len().max(1);
        for row in 0..self.cells.len() / count {
            let line = 1 + row as u16;
            let style = row_style(row);
            if style != theme.plain() {
                canvas.style_line(line, style);
            }
            let mut x = left;
            for (column, head) in self.heads.iter().enumerate() {
                if !shown[column] {
                    continue;
                }
                let (text, _) = self.cells.at(row * count + column);
                let cell = i32::from(self.widths[column]);
                let at = head.start(x, cell, text);
                if style != theme.plain() {
                    canvas.text(line, at, text, style);
                } else if head.has_names() {
                    let style = cell_style(row, head.name, text);
                    command(canvas, line, at, text, style, theme);
                } else {
                    canvas.text(line, at, text, cell_style(row, head.name, text));
                }
                let needle = self.needle.as_ref();
                if let Some(needle) = needle.filter(|_| head.has_names()) {
                    for place in needle.places(text) {
                        let at = at + width(&text[..place.start]) as i32;
                        canvas.text(line, at, &text[place], style.patch(theme.error()));
                    }
                }
                x += cell + GAP;
            }
        }
    }

    /// The columns that fit; all, if the user named them.
    fn visible(&self, form: &Form, room: i32) -> Vec<bool> {
        let mut visible = vec![true; self.widths.len()];
        let last = self.widths.len().saturating_sub(1);
        let Some(kept) = form.may_drop.filter(|_| last > 0) else {
            return visible;
        };
        let of = |column: usize| i32::from(self.widths[column]) + GAP;
        let mut taken = ROOM_FOR_LAST + (0..last).map(of).sum::<i32>();
        for column in (0..last).rev() {
            let name = self.heads[column].name;
            if taken > room && name != kept && name != form.sorted.0 {
                visible[column] = false;
                taken -= of(column);
            }
        }
        visible
    }
}

impl Head {
    /// The column of a field.
    pub fn of<S: Subject>(field: &Field<S>) -> Self {
        Self {
            name: field.name,
            heading: field.column_heading(),
            narrowest: 0,
            is_right_aligned: field.unit.is_right_aligned(),
        }
    }

    /// Whether the name of a program or a group stands out in its cells.
    fn has_names(&self) -> bool {
        NAMES.contains(&self.name)
    }

    /// The column where a text begins in a cell of this column.
    fn start(&self, x: i32, cell: i32, text: &str) -> i32 {
        if self.is_right_aligned {
            x + cell - width(text) as i32
        } else {
            x
        }
    }
}

/// Draws a command line or a path: the name in its first word stands out and has the style, and what is before it is dim.
fn command(canvas: &mut Canvas<'_>, line: u16, x: i32, text: &str, style: Style, theme: Theme) {
    let first = text.find(|c| !" │├└─+".contains(c)).unwrap_or(0);
    let (name, end) = name_in(&text[first..]);
    let x = canvas.text(line, x, &text[..first + name], theme.dim());
    let name = &text[first + name..first + end];
    let x = canvas.text(line, x, name, style.patch(theme.program()));
    canvas.text(line, x, &text[first + end..], theme.plain());
}

/// The style of a cell, regardless of its column: zeros are dim.
pub fn plain_cell(text: &str, theme: Theme) -> Style {
    match text {
        "0" | "0.0" | "-" | "0:00.00" => theme.dim(),
        _ => theme.plain(),
    }
}
