//! `--interval` on a terminal: each table is drawn over the previous one.
//!
//! The terminal's modes do not change, so nothing must be restored at the end: the cursor moves up by the number of lines that
//! were drawn, and every line is written again. The last table stays.

use std::io::{self, Write};

use crate::{colour::Colours, terminal};

/// The line of the cursor, below the table.
const CURSOR_LINES: usize = 1;
/// The heading of the table.
const HEADING_LINES: usize = 1;
/// The summary, and the empty line before it.
const SUMMARY_LINES: usize = 2;

/// The number of rows of a table for which a terminal with this many lines has room.
pub fn rows_of(lines: usize) -> usize {
    lines
        .saturating_sub(CURSOR_LINES + HEADING_LINES + SUMMARY_LINES)
        .max(1)
}

/// The part of the screen with the table.
#[derive(Debug)]
pub struct Redraw {
    /// Lines and columns of the terminal.
    size: (usize, usize),
    /// Lines that were drawn.
    drawn: usize,
    colours: Colours,
}

impl Redraw {
    /// `None`: there are not several tables, or standard output is not a terminal whose cursor can be moved.
    pub fn new(has_tables: bool) -> Option<Self> {
        if !has_tables {
            return None;
        }
        Some(Self {
            size: terminal::screen()?,
            drawn: 0,
            colours: Colours::new(),
        })
    }

    /// The number of rows for which the terminal has room.
    pub fn rows(&self) -> usize {
        let (lines, _) = terminal::screen().unwrap_or(self.size);
        rows_of(lines)
    }

    /// Draws a table, whose lines must not be wider than the terminal, and the summary below it.
    pub fn draw(
        &mut self,
        table: &[u8],
        summary: Option<&str>,
        to: &mut impl Write,
    ) -> io::Result<()> {
        let size = terminal::screen().unwrap_or(self.size);
        // Terminals that support this show the update at once.
        to.write_all(b"\x1b[?2026h")?;
        if self.drawn > 0 {
            if size == self.size {
                write!(to, "\r\x1b[{}A", self.drawn)?;
            } else {
                // The new width may have wrapped lines.
                to.write_all(b"\x1b[H\x1b[2J")?;
            }
        }
        self.size = size;
        self.drawn = 0;
        for line in table
            .strip_suffix(b"\n")
            .unwrap_or(table)
            .split(|&byte| byte == b'\n')
        {
            self.line(line, to)?;
        }
        if let Some(summary) = summary {
            self.line(b"", to)?;
            let summary = terminal::cut(summary, size.1);
            let summary = self.colours.aside(summary);
            self.line(summary.as_bytes(), to)?;
        }
        to.write_all(b"\x1b[J\x1b[?2026l")
    }

    fn line(&mut self, line: &[u8], to: &mut impl Write) -> io::Result<()> {
        self.drawn += 1;
        to.write_all(line)?;
        // Erase the rest of the previous line.
        to.write_all(b"\x1b[K\n")
    }
}
