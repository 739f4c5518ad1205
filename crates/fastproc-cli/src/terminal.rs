//! What standard output is.

use std::{
    env,
    io::{IsTerminal, stdout},
};

/// Columns that a line may have. `None`: as long as it likes, since it does not go to a terminal.
pub fn width() -> Option<usize> {
    let wanted = env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    wanted.filter(|&columns| columns > 0).or_else(|| {
        let size = rustix::termios::tcgetwinsize(stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|&columns| columns > 0)
    })
}

/// Whether to use colour: on a terminal that knows it, unless told not to (<https://no-color.org>).
pub fn colour() -> bool {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    stdout().is_terminal()
        && !set("NO_COLOR")
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}
