//! Every key of the table, as a terminal sends it.

use fastproc_top::keys::{Action, BINDINGS, Place};

use super::{recording::made_up, screens::at_its_end};

/// The bytes of a key, by its name in the help.
fn bytes(name: &str) -> String {
    let sequence = match name {
        "Up" => "\x1b[A",
        "Down" => "\x1b[B",
        "Right" => "\x1b[C",
        "Left" => "\x1b[D",
        "PgUp" => "\x1b[5~",
        "PgDn" => "\x1b[6~",
        "Home" => "\x1b[H",
        "End" => "\x1b[F",
        "Tab" => "\t",
        "Shift-Tab" => "\x1b[Z",
        "Enter" => "\r",
        "Esc" => "\x1b",
        "Backspace" => "\x7f",
        "Space" => " ",
        "F1" => "\x1bOP",
        "F2" => "\x1bOQ",
        "F3" => "\x1bOR",
        "F4" => "\x1bOS",
        "F5" => "\x1b[15~",
        "F6" => "\x1b[17~",
        "F7" => "\x1b[18~",
        "F8" => "\x1b[19~",
        "F9" => "\x1b[20~",
        "F10" => "\x1b[21~",
        _ => {
            return match name.strip_prefix('^') {
                Some(letter) if letter.len() == 1 => char::from(letter.as_bytes()[0] & 0x1f).into(),
                _ => name.into(),
            };
        }
    };
    sequence.into()
}

/// Text on the screen that shows that a key has been handled.
fn sign(action: Action) -> Option<&'static str> {
    Some(match action {
        Action::Help => "to the first row",
        Action::ChooseSort => "Sort by",
        Action::Columns => "Columns: ",
        Action::Filter => "Filter: ",
        Action::User => "Processes of",
        Action::Search => "Search: ",
        Action::FollowPid => "Process id: ",
        Action::Interval => "Refresh interval (2, 0.5, 500ms): ",
        Action::GoTo => "Time (",
        Action::Kill | Action::Renice | Action::NiceBy(_) => {
            "the processes of a recording cannot be changed"
        }
        Action::Mark | Action::MarkTree => "marked ",
        Action::Group => "COUNT",
        Action::Tree => r"\_",
        Action::Details | Action::Files | Action::Environment => "Overview",
        Action::Exited => "exited processes",
        Action::Save => "cannot write /proc/nowhere/top.toml",
        _ => return None,
    })
}

#[test]
fn every_key_of_the_table_is_understood() {
    let recording = made_up("keys", 3, 40, 2);
    let start = || at_its_end(&recording, 24, 100);
    let mut top = start();
    for binding in BINDINGS
        .iter()
        .filter(|binding| binding.place == Place::Table)
    {
        for key in binding.keys {
            match binding.action {
                Action::Suspend | Action::Back => continue,
                Action::Quit => {
                    let mut top = start();
                    top.press(&bytes(&key.name()));
                    assert_eq!(top.wait().code(), Some(0), "{}", key.name());
                    continue;
                }
                // Not after others: keys in a burst do not write settings.
                Action::Save => top = start(),
                _ => {}
            }
            top.press(&bytes(&key.name()));
            let Some(sign) = sign(binding.action) else {
                continue;
            };
            top.until(&format!("{} taken ({sign})", key.name()), |text| {
                text.contains(sign)
            });
            // Leave or undo the result.
            match binding.action {
                Action::Mark | Action::MarkTree => top.press("U"),
                Action::Tree
                | Action::Group
                | Action::Kill
                | Action::Renice
                | Action::NiceBy(_)
                | Action::Exited
                | Action::Save => {
                    top = start();
                }
                _ => top.press("\x1b"),
            }
            top.until(&format!("left after {}", key.name()), |text| {
                !text.contains(sign) && text.contains("F10Quit")
            });
        }
    }
    top.press("q");
    assert_eq!(top.wait().code(), Some(0));
}
