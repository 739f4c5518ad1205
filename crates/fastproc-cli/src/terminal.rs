//! Properties of standard output.

use std::{
    env,
    io::{IsTerminal, stderr, stdout},
    sync::OnceLock,
};

use clap::ColorChoice;

use unicode_width::UnicodeWidthChar;

/// A column is padded to the widest of its cells, but not beyond this: a process can have a command line of 128 KiB, and all
/// rows would be as long. A longer cell moves the rest of its row.
pub const MOST_PADDED: usize = 256;

/// The width of a line, in columns. `None`: unlimited, because the output is not a terminal.
pub fn width() -> Option<usize> {
    let wanted = env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    wanted
        .filter(|&columns| columns > 0)
        .or_else(|| size().map(|(_, columns)| columns))
}

/// Lines and columns of a terminal on which the cursor can be moved.
pub fn screen() -> Option<(usize, usize)> {
    size().filter(|_| knows_escapes())
}

fn size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
    let size = (usize::from(size.ws_row), usize::from(size.ws_col));
    (size.0 > 0 && size.1 > 0).then_some(size)
}

/// What `--color` says.
static COLOUR: OnceLock<ColorChoice> = OnceLock::new();

/// Sets what `--color` says. A second call changes nothing.
pub fn set_colour(choice: ColorChoice) {
    COLOUR.get_or_init(|| choice);
}

/// Whether to use colour. By default: on a terminal that supports it, unless `NO_COLOR` is set (<https://no-color.org>).
pub fn colour() -> bool {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    match COLOUR.get() {
        Some(ColorChoice::Always) => true,
        Some(ColorChoice::Never) => false,
        _ => stdout().is_terminal() && !set("NO_COLOR") && knows_escapes(),
    }
}

/// Whether the output is a terminal.
pub fn is_standard_output() -> bool {
    stdout().is_terminal()
}

/// Whether errors go to a terminal.
pub fn shows_errors() -> bool {
    stderr().is_terminal()
}

/// Whether the cursor can be moved where errors go.
pub fn draws_errors() -> bool {
    shows_errors() && knows_escapes()
}

fn knows_escapes() -> bool {
    env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The longest prefix that is at most `width` columns wide. Colours take none; the caller ends one that is cut.
pub fn cut(text: &str, width: usize) -> &str {
    let mut taken = 0;
    let mut in_colour = false;
    for (at, character) in text.char_indices() {
        if in_colour || character == '\x1b' {
            in_colour = character != 'm';
            continue;
        }
        taken += character.width().unwrap_or(0);
        if taken > width {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!(cut("abc", 2), "ab");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("進程表", 3), "進");
        assert_eq!(cut("進程表", 4), "進程");
        assert_eq!(cut("é", 0), "");
        assert_eq!(cut("\x1b[31mab\x1b[0mc", 2), "\x1b[31mab\x1b[0m");
    }
}
