//! The screen that `fastproc ps` leaves on a terminal.

use std::process::Command;

use crate::{common::output, top::terminal::Terminal};

/// Runs the command on a terminal of this size, with this value of `NO_COLOR`.
///
/// The source is `/proc`: loading programs takes longer.
#[track_caller]
fn on_terminal(size: (u16, u16), arguments: &str, no_colour: Option<&str>) -> Terminal {
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_fastproc"), "ps"]);
    command.args(["--source", "procfs"]);
    command.args(arguments.split(' ')).env_remove("COLUMNS");
    match no_colour {
        Some(value) => command.env("NO_COLOR", value),
        None => command.env_remove("NO_COLOR"),
    };
    let mut terminal = Terminal::run(size.0, size.1, command);
    let status = terminal.wait();
    assert!(status.success(), "{arguments}: {}", terminal.text());
    terminal
}

/// The lines up to the last one with text.
fn lines(terminal: &Terminal) -> Vec<String> {
    let text = terminal.text();
    text.trim_end().lines().map(str::to_owned).collect()
}

/// Lines that were longer than the width.
fn wrapped(terminal: &Terminal) -> usize {
    let screen = terminal.screen();
    let rows = 0..screen.size().0;
    rows.filter(|&row| screen.row_wrapped(row)).count()
}

#[test]
fn an_interval_is_drawn_in_place() {
    let terminal = on_terminal((16, 80), "--interval 0.05 --count 4", None);
    let text = lines(&terminal);
    let headings = text.iter().filter(|line| line.contains("%CPU")).count();
    assert_eq!(headings, 1, "{text:#?}");
    // The table, an empty line, the summary, and the line of the cursor: no more than fit on the terminal.
    let summary = text
        .iter()
        .position(|line| line.starts_with("fastproc: read "));
    let summary = summary.expect("there is a summary");
    assert_eq!(text[summary - 1], "");
    assert_eq!(summary, text.len() - 1, "{text:#?}");
    assert!(summary < 15, "{text:#?}");
    assert_eq!(wrapped(&terminal), 0);
    let arguments = "--interval 0.05 --count 2 --quiet --top 3";
    let quiet = lines(&on_terminal((16, 80), arguments, None));
    assert_eq!(quiet.len(), 4, "{quiet:#?}");
}

#[test]
fn a_table_never_wraps() {
    for columns in [200, 100, 80, 60, 44, 30, 16, 8, 1] {
        // With an interval, no more rows are drawn than fit.
        for (rows, arguments) in [
            (1000, "--quiet"),
            (1000, "--quiet --tree"),
            (1000, "--quiet --threads"),
            (10, "--quiet --interval 0.02 --count 2"),
            (
                10,
                "--quiet --interval 0.02 --count 2 --fields user,lstart,cmdline,pid",
            ),
        ] {
            let terminal = on_terminal((rows, columns), arguments, None);
            let text = terminal.text();
            assert_eq!(wrapped(&terminal), 0, "{columns}, {arguments}: {text}");
        }
    }
    let heading = |columns| {
        let text = on_terminal((1000, columns), "--quiet", None).text();
        let heading = text.lines().next().expect("a heading").split_whitespace();
        heading.map(str::to_owned).collect::<Vec<_>>()
    };
    let narrow = heading(44);
    assert_eq!(narrow[0], "PID", "{narrow:?}");
    assert_eq!(narrow[narrow.len() - 1], "COMM", "{narrow:?}");
    let has = |name: &str| narrow.iter().any(|heading| heading == name);
    assert!(has("%CPU") && !has("TIME"), "{narrow:?}");
    assert_eq!(heading(200).len(), 11);
}

#[test]
fn a_terminal_gets_as_many_rows_as_fit_unless_more_are_asked_for() {
    let last = |arguments| lines(&on_terminal((5, 80), arguments, None)).pop();
    let says = |arguments| last(arguments).is_some_and(|line| line.ends_with("; -e shows all"));
    assert!(says("--fields pid") && says("--sort -rss"));
    assert!(!says("-e") && !says("--top 1") && !says("--tree --fields pid"));
    let cut = lines(&on_terminal((5, 80), "--fields pid --quiet", None));
    assert_eq!(cut.len(), 2, "{cut:#?}");
}

/// This program's name begins with "all-".
#[test]
fn found_words_are_highlighted() {
    let own = std::process::id();
    let arguments = format!("--quiet --fields pid,comm --filter pid=={own} --search ALL-");
    let terminal = on_terminal((10, 80), &arguments, None);
    let text = lines(&terminal);
    let at = text[1].find("all-").expect("the text");
    let is_bold = |at: usize| {
        let cell = terminal.screen().cell(1, at as u16);
        cell.expect("it is on the screen").bold()
    };
    let bold = [at - 1, at, at + 3, at + 4].map(is_bold);
    assert_eq!(bold, [false, true, true, false], "{text:#?}");
}

#[test]
fn headings_are_bold_on_terminals_of_those_who_want_it() {
    for (no_colour, expected) in [(None, true), (Some("1"), false), (Some(""), true)] {
        let terminal = on_terminal((10, 80), "--top 1 --quiet", no_colour);
        let cell = terminal.screen().cell(0, 4).expect("it is on the screen");
        assert_eq!(cell.bold(), expected, "{no_colour:?}: {}", terminal.text());
    }
    assert!(!output(&["ps", "--top", "1"]).contains('\x1b'));
}
