//! The visible part of a list.

/// The place of the visible rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// The row that keys act on.
    pub cursor: usize,
    /// The first visible row.
    pub top: usize,
    /// Columns of text that are scrolled away on the left.
    pub left: u16,
    /// The number of rows that fit.
    pub height: usize,
    /// The number of rows.
    pub rows: usize,
}

impl Window {
    /// Moves by this many rows.
    pub fn step(&mut self, by: i32) {
        let last = self.rows.saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(by as isize).min(last);
    }

    /// Moves by this many pages.
    pub fn page(&mut self, by: i32) {
        let page = self.height.saturating_sub(1).max(1) as i32;
        self.step(by.saturating_mul(page));
    }

    /// The next row in a direction, round about, for which this holds. The row of the cursor is the last one; with no
    /// direction, while a text is typed, the first.
    pub fn find(
        &self,
        rows: usize,
        direction: i32,
        mut is: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let place = |step: usize| match direction {
            ..0 => (self.cursor + rows - step) % rows,
            0 => (self.cursor + step - 1) % rows,
            _ => (self.cursor + step) % rows,
        };
        (1..=rows).map(place).find(|&place| is(place))
    }

    /// Moves the window so that the row of the cursor is visible, given the number of rows and of lines.
    pub fn settle(&mut self, rows: usize, height: usize) {
        self.rows = rows;
        self.height = height;
        self.cursor = self.cursor.min(rows.saturating_sub(1));
        let room = height.max(1);
        self.top = self.top.min(rows.saturating_sub(room));
        if self.cursor < self.top {
            self.top = self.cursor;
        } else if self.cursor >= self.top + room {
            self.top = self.cursor + 1 - room;
        }
    }
}
