//! A key, and its name.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key, as terminals report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    control: bool,
}

impl Key {
    pub(super) const fn code(code: KeyCode) -> Self {
        Self {
            code,
            control: false,
        }
    }

    pub(super) const fn char(character: char) -> Self {
        Self::code(KeyCode::Char(character))
    }

    pub(super) const fn function(number: u8) -> Self {
        Self::code(KeyCode::F(number))
    }

    pub(super) const fn control(character: char) -> Self {
        Self {
            code: KeyCode::Char(character),
            control: true,
        }
    }

    /// Leaves a place.
    pub const ESCAPE: Self = Self::code(KeyCode::Esc);

    /// The keys of an event. Alt and a key are Esc and that key, because terminals report both in the same way.
    pub fn all_of(event: &KeyEvent) -> impl Iterator<Item = Self> {
        let escape = event.modifiers.contains(KeyModifiers::ALT);
        let escape = escape.then_some(Self::ESCAPE);
        escape.into_iter().chain([Self::from_event(event)])
    }

    /// The key of an event. The character already includes Shift.
    fn from_event(event: &KeyEvent) -> Self {
        Self {
            code: match event.code {
                KeyCode::BackTab => KeyCode::BackTab,
                code => code,
            },
            control: event.modifiers.contains(KeyModifiers::CONTROL),
        }
    }

    /// The character that it writes, if any.
    pub const fn character(self) -> Option<char> {
        match self.code {
            KeyCode::Char(character) if !self.control => Some(character),
            _ => None,
        }
    }

    /// Its name in the help.
    pub fn name(self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "Space".into(),
            KeyCode::Char(character) if self.control => format!("^{}", character.to_uppercase()),
            KeyCode::Char(character) => character.into(),
            KeyCode::F(number) => format!("F{number}"),
            KeyCode::PageUp => "PgUp".into(),
            KeyCode::PageDown => "PgDn".into(),
            KeyCode::BackTab => "Shift-Tab".into(),
            code => format!("{code:?}"),
        };
        if self.control && self.character().is_none() && !name.starts_with('^') {
            format!("^{name}")
        } else {
            name
        }
    }
}
