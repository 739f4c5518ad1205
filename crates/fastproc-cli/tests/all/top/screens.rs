//! A made history shows the same screens on every machine.

use std::{fs, path::Path};

use super::{
    past::{History, made_up},
    terminal::Terminal,
};

/// Shows the last of a history in this locale.
fn at_its_end(locale: &str, history: &History, lines: u16, columns: u16) -> Terminal {
    let mut command = Terminal::command(&["--history", history.path()]);
    command.env("LC_ALL", locale);
    let mut top = Terminal::run(lines, columns, command);
    top.until("the last walk", |text| {
        text.contains("[PAUSED]") && text.contains("2026-03-01 09:30:02")
    });
    top
}

/// Compares with the stored screens; `FASTPROC_BLESS=1` stores the present ones.
#[test]
fn the_same_history_shows_the_same_screen() {
    let few = made_up("few", 3, 40);
    let many = made_up("many", 3, 200);
    for (name, history, lines, columns, keys) in [
        ("table-80x24", &few, 24, 80, ""),
        ("table-120x40", &few, 40, 120, ""),
        ("table-140x40", &few, 40, 140, ""),
        ("table-300x100", &many, 100, 300, ""),
        ("tree-100x30", &few, 30, 100, "t"),
        ("groups-80x24", &few, 24, 80, "g"),
        ("group-80x24", &few, 24, 80, "g\r"),
        ("columns-80x24", &few, 24, 80, "\x1b[12~"),
        ("marked-80x24", &few, 24, 80, "  "),
        ("help-140x40", &few, 40, 140, "?"),
        ("details-100x30", &few, 30, 100, "N\r"),
        ("fields-80x24", &few, 24, 80, "N\rf"),
        ("files-80x24", &few, 24, 80, "Nl"),
        ("exited-100x60", &few, 60, 100, "x"),
        ("ascii-table-80x24", &few, 24, 80, ""),
        ("ascii-tree-100x30", &few, 30, 100, "t"),
        ("ascii-details-100x30", &few, 30, 100, "N\r"),
        ("ascii-help-80x24", &few, 24, 80, "?"),
        ("ascii-filter-80x24", &few, 24, 80, "\\comm == '\u{9032}'"),
    ] {
        let ascii = name.strip_prefix("ascii-");
        let locale = if ascii.is_some() { "C" } else { "C.UTF-8" };
        let mut top = at_its_end(locale, history, lines, columns);
        top.press(keys);
        let sign = sign(ascii.unwrap_or(name));
        top.until(sign, |text| text.contains(sign));
        let path = format!("tests/all/top/screens/{name}.txt");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let blesses = std::env::var_os("FASTPROC_BLESS").is_some();
        let kept = fs::read_to_string(&path).unwrap_or_default();
        if !blesses {
            let what = format!("the same as in {}", path.display());
            top.until(&what, |text| text.trim_end() == kept.trim_end());
        }
        // It stays the last screen until top ends.
        top.end();
        let last = top.screens().pop().expect("there were some");
        let last = format!("{}\n", last.trim_end());
        assert!(ascii.is_none() || last.is_ascii(), "{last}");
        if blesses {
            fs::write(&path, last).expect("the sources can be written");
        } else {
            assert_eq!(last, kept, "{name}");
        }
    }
}

/// Text on the screen after the keys were handled.
fn sign(name: &str) -> &'static str {
    match name.split('-').next() {
        Some("tree") => " cat --number",
        Some("groups") => "Groups by",
        Some("columns") => "[x] pid",
        Some("fields") => "tracer_pid",
        Some("group") => "COUNT",
        Some("marked") => "marked 2",
        Some("help") => "Table",
        Some("details") => "switches (main)",
        Some("files") => "files are not recorded",
        Some("exited") => "5002",
        Some("filter") => "comm ==",
        _ => "[PAUSED]",
    }
}
