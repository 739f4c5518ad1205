//! The cells of a table, as they are shown, before their columns have widths.

use unicode_width::UnicodeWidthStr;

/// Cells, row after row, in one text.
#[derive(Debug, Default)]
pub struct Cells {
    text: Vec<u8>,
    /// Where each ends, and the columns that it takes on a terminal.
    ends: Vec<(usize, usize)>,
}

impl Cells {
    /// Removes all cells.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// The number of cells.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a cell, and returns its width. `write` appends its text, which is escaped, and so UTF-8.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.text.len();
        write(&mut self.text);
        let text = &self.text[start..];
        let width = if text.is_ascii() {
            text.len()
        } else {
            std::str::from_utf8(text).map_or(text.len(), UnicodeWidthStr::width)
        };
        self.ends.push((self.text.len(), width));
        width
    }

    /// The text and the width of the cell at this index, which must exist.
    pub fn at(&self, at: usize) -> (&str, usize) {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, width) = self.ends[at];
        let text = std::str::from_utf8(&self.text[start..end]);
        (text.unwrap_or_default(), width)
    }
}
