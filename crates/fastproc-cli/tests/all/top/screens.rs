//! A synthetic recording shows the same screens on every machine.

use std::{fs, path::Path};

use super::{
    recording::{Recording, made_up},
    terminal::Terminal,
};

/// Shows a synthetic recording of three snapshots in this locale, and stays at the last of them.
fn at_its_end(locale: &str, recording: &Recording, lines: u16, columns: u16) -> Terminal {
    let arguments = ["--replay", recording.path(), "--interval", "1000"];
    let mut command = Terminal::command(&arguments);
    command.env("LC_ALL", locale);
    let mut top = Terminal::run(lines, columns, command);
    top.until_shown("F10Quit");
    // Without the message about the end of the recording, which would cover the keys for some seconds.
    top.press("Z");
    top.until_shown("[PAUSED]");
    top.press("}");
    top.until("the last look", |text| {
        text.contains("[PAUSED]") && text.contains("2026-03-01 09:30:02")
    });
    top
}

/// Compares with the stored screens; `FASTPROC_BLESS=1` stores the present ones.
#[test]
fn the_same_recording_shows_the_same_screen() {
    let few = made_up("few", 3, 40, 4);
    let many = made_up("many", 3, 200, 96);
    for (name, recording, lines, columns, keys) in [
        ("table-80x24", &few, 24, 80, ""),
        ("table-120x40", &few, 40, 120, ""),
        ("table-140x40", &few, 40, 140, ""),
        ("table-300x100", &many, 100, 300, ""),
        ("heat-80x24", &many, 24, 80, ""),
        ("tree-100x30", &few, 30, 100, "t"),
        ("groups-80x24", &few, 24, 80, "g"),
        ("group-80x24", &few, 24, 80, "g\r"),
        ("columns-80x24", &few, 24, 80, "\x1b[12~"),
        ("marked-80x24", &few, 24, 80, "  "),
        ("help-140x40", &few, 40, 140, "?"),
        ("details-100x30", &few, 30, 100, "N\r"),
        ("fields-80x24", &few, 24, 80, "N\rf"),
        ("limits-80x24", &few, 24, 80, "N\r\t\t"),
        ("files-80x24", &few, 24, 80, "Nl"),
        ("hidden-80x24", &few, 24, 80, "N\x1b[Bl"),
        ("exited-100x60", &few, 60, 100, "x"),
        ("ascii-table-80x24", &few, 24, 80, ""),
        ("ascii-heat-80x24", &many, 24, 80, ""),
        ("ascii-tree-100x30", &few, 30, 100, "t"),
        ("ascii-details-100x30", &few, 30, 100, "N\r"),
        ("ascii-help-80x24", &few, 24, 80, "?"),
        ("ascii-filter-80x24", &few, 24, 80, "\\comm == '\u{9032}'"),
    ] {
        let ascii = name.strip_prefix("ascii-");
        let locale = if ascii.is_some() { "C" } else { "C.UTF-8" };
        let mut top = at_its_end(locale, recording, lines, columns);
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
        Some("limits") => "Max open files",
        Some("files") => "/dev/null",
        Some("exited") => "5002",
        Some("filter") => "comm ==",
        Some("hidden") => "not recorded of this process",
        _ => "[PAUSED]",
    }
}
