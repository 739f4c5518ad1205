//! Text on lines: cut to its area, and aware of wide characters.

use std::borrow::Cow;

use ratatui_core::{buffer::Buffer, layout::Rect, style::Style};
use unicode_width::UnicodeWidthChar;

/// The screen, line by line: the pieces of each in their order. A line with the same pieces looks the same, and need
/// not be painted again.
#[derive(Debug, Default)]
pub struct Sheet {
    /// Whether to use only ASCII characters.
    pub is_ascii: bool,
    area: Rect,
    lines: Vec<Line>,
}

#[derive(Debug, Default, PartialEq)]
struct Line {
    pieces: Vec<Piece>,
    /// Their texts, one after the other.
    text: String,
}

/// A piece of a line, within the columns of a canvas.
#[derive(Debug, PartialEq)]
struct Piece {
    first: u16,
    width: u16,
    what: What,
    style: Style,
}

#[derive(Debug, PartialEq)]
enum What {
    /// This many bytes of text, from this column of the canvas on.
    Text(i32, usize),
    /// A style for the whole piece.
    Style,
    /// Empty cells.
    Clear,
}

impl Sheet {
    /// Empties it, and sets the numbers of columns and lines.
    pub fn reset(&mut self, width: u16, height: u16) {
        self.area = Rect::new(0, 0, width, height);
        self.lines.resize_with(height.into(), Line::default);
        for line in &mut self.lines {
            line.pieces.clear();
            line.text.clear();
        }
    }

    /// Whether a line looks the same on another sheet of this size.
    pub fn is_same_line(&self, line: u16, other: &Self) -> bool {
        self.lines.get(usize::from(line)) == other.lines.get(usize::from(line))
    }

    /// All lines except the last, as text.
    pub fn to_text(&self) -> String {
        let Rect { width, height, .. } = self.area;
        let mut text = String::new();
        for line in 0..height.saturating_sub(1) {
            let mut buffer = Buffer::empty(Rect::new(0, line, width, 1));
            self.paint(line, &mut buffer);
            let start = text.len();
            let mut covered = 0;
            for cell in buffer.content() {
                // A wide character covers the cell after it.
                if covered > 0 {
                    covered -= 1;
                    continue;
                }
                covered = self::width(cell.symbol()).saturating_sub(1);
                text.push_str(cell.symbol());
            }
            text.truncate(start + text[start..].trim_end().len());
            text.push('\n');
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
        text
    }

    /// Paints a line on empty cells.
    pub fn paint(&self, line: u16, buffer: &mut Buffer) {
        let Line { pieces, text } = &self.lines[usize::from(line)];
        let mut from = 0;
        for piece in pieces {
            let area = Rect::new(piece.first, line, piece.width, 1);
            match piece.what {
                What::Text(column, bytes) => {
                    paint_text(buffer, area, column, &text[from..][..bytes], piece.style);
                    from += bytes;
                }
                What::Style => buffer.set_style(area, piece.style),
                What::Clear => {
                    for x in area.left()..area.right() {
                        buffer[(x, line)].reset();
                    }
                }
            }
        }
    }
}

fn paint_text(buffer: &mut Buffer, area: Rect, column: i32, text: &str, style: Style) {
    let width = i32::from(area.width);
    let mut at = column;
    for character in text.chars() {
        let (character, wide) = placed(character);
        // Combining characters were escaped; a character without width has no cell.
        if wide == 0 {
            continue;
        }
        if at >= 0 && at + wide <= width {
            let x = area.x + at as u16;
            let cell = &mut buffer[(x, area.y)];
            cell.set_char(character).set_style(style);
            for after in 1..wide as u16 {
                let cell = &mut buffer[(x + after, area.y)];
                cell.reset();
                cell.set_style(style);
            }
        }
        at += wide;
    }
}

/// The character to show, and its number of columns.
fn placed(character: char) -> (char, i32) {
    if character.is_control() {
        // A message may have several lines, but is shown on one.
        (' ', 1)
    } else if character.is_ascii() {
        (character, 1)
    } else {
        (character, character.width().unwrap_or(0) as i32)
    }
}

/// A part of the screen.
#[derive(Debug)]
pub struct Canvas<'s> {
    sheet: &'s mut Sheet,
    /// Its place.
    pub area: Rect,
}

impl<'s> Canvas<'s> {
    /// The whole of a sheet.
    pub fn new(sheet: &'s mut Sheet) -> Self {
        let area = sheet.area;
        Self { sheet, area }
    }

    /// Some of its lines.
    pub fn lines(&mut self, first: u16, count: u16) -> Canvas<'_> {
        let first = first.min(self.area.height);
        let area = Rect {
            y: self.area.y + first,
            height: count.min(self.area.height - first),
            ..self.area
        };
        Canvas {
            sheet: self.sheet,
            area,
        }
    }

    /// A rectangle of it.
    pub fn part(&mut self, area: Rect) -> Canvas<'_> {
        Canvas {
            area: area.intersection(self.area),
            sheet: self.sheet,
        }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        for line in 0..self.area.height {
            self.put(line, What::Clear, Style::new());
        }
    }

    /// Gives a line a style.
    pub fn style_line(&mut self, line: u16, style: Style) {
        if line < self.area.height {
            self.put(line, What::Style, style);
        }
    }

    fn put(&mut self, line: u16, what: What, style: Style) -> &mut String {
        let line = &mut self.sheet.lines[usize::from(self.area.y + line)];
        line.pieces.push(Piece {
            first: self.area.x,
            width: self.area.width,
            what,
            style,
        });
        &mut line.text
    }

    /// Writes text from this column on, which may be outside. Returns the column after it.
    pub fn text(&mut self, line: u16, column: i32, text: &str, style: Style) -> i32 {
        let ascii;
        let text = if self.sheet.is_ascii && !text.is_ascii() {
            ascii = in_ascii(text);
            &ascii
        } else {
            text
        };
        let width = i32::from(self.area.width);
        if line >= self.area.height || column >= width {
            return column;
        }
        let room = (width - column) as usize;
        let (text, after) = if text.is_ascii() {
            let text = &text[..text.len().min(room)];
            (text, column + text.len() as i32)
        } else {
            let (mut at, mut end) = (column, 0);
            for (start, character) in text.char_indices() {
                if at >= width {
                    break;
                }
                at += placed(character).1;
                end = start + character.len_utf8();
            }
            (&text[..end], at)
        };
        if !text.is_empty() {
            self.put(line, What::Text(column, text.len()), style)
                .push_str(text);
        }
        after
    }

    /// Writes text so that it ends before this column.
    pub fn text_before(&mut self, line: u16, column: i32, text: &str, style: Style) {
        self.text(line, column - width(text) as i32, text, style);
    }
}

/// The text, shortened to this many columns; a shortened text ends in dots.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if width(text) <= most {
        return text.into();
    }
    let mut taken = 1;
    let kept = text.chars().take_while(|&character| {
        taken += placed(character).1 as usize;
        taken <= most
    });
    format!("{}…", kept.collect::<String>()).into()
}

/// Where the name of the program begins and ends in a command line: after the folders of its first word.
pub fn name_in(line: &str) -> (usize, usize) {
    let end = line.find(' ').unwrap_or(line.len());
    // Threads of the kernel have names in brackets, which may have a slash.
    let folder = line[..end].rfind('/').filter(|_| !line.starts_with('['));
    let begin = folder.map_or(0, |at| at + 1);
    // A path that ends in a slash is a name.
    (if begin < end { begin } else { 0 }, end)
}

/// The number of columns of a text.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars()
        .map(|character| character.width().unwrap_or(0))
        .sum()
}

/// Empty, and eight heights.
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The same in ASCII.
const ASCII_HEIGHTS: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '#', '@'];

/// The text in ASCII, with the same number of columns.
fn in_ascii(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            ascii.push(character);
            continue;
        }
        let height = HEIGHTS.iter().position(|&height| height == character);
        let other = match character {
            '·' => '.',
            '…' => '~',
            '▼' => 'v',
            '▲' => '^',
            '│' | '├' => '|',
            '└' => '`',
            '─' => '-',
            '●' => 'o',
            '°' => ' ',
            '┌' | '┐' | '┘' => '+',
            _ => height.map_or('?', |height| ASCII_HEIGHTS[height]),
        };
        let (_, wide) = placed(character);
        ascii.extend((0..wide).map(|_| other));
    }
    ascii
}

/// A block of this height, as a share of a whole. A share above zero is visible.
pub fn block(share: f64) -> char {
    let eighths = (share.clamp(0.0, 1.0) * 8.0).round() as usize;
    if share > 0.0 {
        HEIGHTS[eighths.max(1)]
    } else {
        HEIGHTS[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: u16, column: i32, text: &str) -> String {
        let mut sheet = Sheet::default();
        sheet.reset(width, 1);
        Canvas::new(&mut sheet).text(0, column, text, Style::new());
        let mut buffer = Buffer::empty(sheet.area);
        sheet.paint(0, &mut buffer);
        let cells = buffer
            .content()
            .iter()
            .map(ratatui_core::buffer::Cell::symbol);
        cells.collect()
    }

    #[test]
    fn text_is_cut_at_both_edges() {
        assert_eq!(drawn(4, 0, "abcdef"), "abcd");
        assert_eq!(drawn(4, -2, "abcdef"), "cdef");
        assert_eq!(drawn(4, -9, "abc"), "    ");
        assert_eq!(drawn(4, 9, "abc"), "    ");
    }

    #[test]
    fn no_wide_character_is_cut_in_half() {
        assert_eq!(drawn(5, 0, "進程表"), "進 程  ");
        assert_eq!(drawn(4, -1, "進程表"), " 程  ");
        assert_eq!(width("a進"), 3);
    }

    #[test]
    fn text_that_is_too_long_ends_in_an_ellipsis() {
        for (text, most, short) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("進程表", 5, "進程…"),
            ("進程表", 4, "進…"),
            ("abc", 0, "…"),
        ] {
            assert_eq!(shortened(text, most), short);
        }
    }

    #[test]
    fn the_name_of_a_program_is_after_its_folders() {
        for (line, name) in [
            ("/usr/bin/sh -c /bin/true", "sh"),
            ("../a/b", "b"),
            ("sshd: /usr/sbin/sshd -D", "sshd:"),
            ("[kworker/0:1]", "[kworker/0:1]"),
            ("/", "/"),
            ("", ""),
        ] {
            let (begin, end) = name_in(line);
            assert_eq!(&line[begin..end], name);
        }
    }

    #[test]
    fn controls_that_move_the_cursor_are_drawn_as_spaces() {
        assert_eq!(drawn(5, 0, "a\nb\x1bc"), "a b c");
    }

    #[test]
    fn text_takes_as_many_columns_in_ascii() {
        let text = "a▁█·…▼進\u{301}é";
        let ascii = in_ascii(text);
        assert_eq!(ascii, "a.@.~v???");
        assert_eq!(width(text), ascii.len());
    }

    #[test]
    fn lines_are_the_same_if_all_that_is_drawn_is() {
        let sheet = |text: &str, column, style| {
            let mut sheet = Sheet::default();
            sheet.reset(9, 1);
            let mut canvas = Canvas::new(&mut sheet);
            canvas.text(0, 0, "a", Style::new());
            canvas.text(0, column, text, style);
            sheet
        };
        let plain = Style::new();
        let before = sheet("bc", 2, plain);
        assert!(before.is_same_line(0, &sheet("bc", 2, plain)));
        assert!(!before.is_same_line(0, &sheet("bd", 2, plain)));
        assert!(!before.is_same_line(0, &sheet("bc", 3, plain)));
        assert!(!before.is_same_line(0, &sheet("bc", 2, plain.bold())));
        let mut cleared = sheet("bc", 2, plain);
        Canvas::new(&mut cleared).clear();
        assert!(!before.is_same_line(0, &cleared));
    }

    #[test]
    fn the_least_can_be_seen() {
        assert_eq!(
            [block(0.0), block(1e-6), block(0.5), block(2.0)],
            [' ', '▁', '▄', '█']
        );
    }
}
