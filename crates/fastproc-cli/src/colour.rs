//! The colours of tables and reports: no other file of the command has any.

use fastproc_columns::{Field, Names, Subject, Unit};

use crate::terminal;

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const YELLOW: &str = "33";
const CYAN: &str = "36";
/// Begins what a search found.
pub const MATCH: &str = "\x1b[1;31m";
/// Ends a colour.
pub const PLAIN: &str = "\x1b[0m";

/// From this share on, in percent, a cell is yellow, and from the next one on red.
const MUCH: f64 = 20.0;
const VERY_MUCH: f64 = 80.0;

/// The colours of standard output.
#[derive(Clone, Debug)]
pub struct Colours {
    pub is_used: bool,
    /// The name of this user.
    own: Vec<u8>,
}

impl Colours {
    /// For standard output as it is now.
    pub fn new() -> Self {
        let is_used = terminal::colour();
        let own = is_used.then(|| {
            Names::users()
                .name(rustix::process::geteuid().as_raw())
                .to_vec()
        });
        Self {
            is_used,
            own: own.unwrap_or_default(),
        }
    }

    /// A heading, or the name of a line.
    pub fn heading(&self, text: &str) -> String {
        self.painted(BOLD, text)
    }

    /// What is beside the rows.
    pub fn aside(&self, text: &str) -> String {
        self.painted(DIM, text)
    }

    /// What somebody should do.
    pub fn advice(&self, text: &str) -> String {
        self.painted(YELLOW, text)
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        if self.is_used {
            format!("\x1b[{colour}m{text}{PLAIN}")
        } else {
            text.into()
        }
    }

    /// Appends a cell.
    pub fn write_cell<S: Subject>(&self, field: &Field<S>, text: &str, to: &mut String) {
        let colour = self.is_used.then(|| self.colour_of(field, text)).flatten();
        match colour {
            Some(colour) => to.extend(["\x1b[", colour, "m", text, PLAIN]),
            None => to.push_str(text),
        }
    }

    fn colour_of<S: Subject>(&self, field: &Field<S>, text: &str) -> Option<&'static str> {
        match (field.name, field.unit) {
            _ if matches!(text, "-" | "0" | "0.0") => Some(DIM),
            ("user" | "ruser" | "suser" | "fsuser", _) if text.as_bytes() != self.own => Some(CYAN),
            ("status" | "failed", _) => Some(RED),
            ("exe", _) if text.ends_with(" (deleted)") => Some(RED),
            (_, Unit::Percent) => match text.parse() {
                Ok(VERY_MUCH..) => Some(RED),
                Ok(MUCH..) => Some(YELLOW),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use fastproc_columns::field::find;

    use super::*;

    #[test]
    fn a_cell_is_coloured_by_what_it_means() {
        let colours = Colours {
            is_used: true,
            own: b"me".into(),
        };
        let of = |name: &str, text| colours.colour_of(find(name).expect("a field"), text);
        assert_eq!(
            ["0.0", "19.9", "20.0", "80.0"].map(|text| of("pcpu", text)),
            [Some(DIM), None, Some(YELLOW), Some(RED)]
        );
        assert_eq!(
            ["me", "root"].map(|text| of("user", text)),
            [None, Some(CYAN)]
        );
        assert_eq!(
            ["0", "KILL", "-"].map(|text| of("status", text)),
            [Some(DIM), Some(RED), Some(DIM)]
        );
        assert_eq!(
            ["/bin/sh", "/bin/sh (deleted)"].map(|text| of("exe", text)),
            [None, Some(RED)]
        );
    }
}
