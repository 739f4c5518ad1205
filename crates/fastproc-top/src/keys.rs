//! The one table of keys: it binds them, and the help screen shows it.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Where a key has a meaning of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The table of processes.
    Table,
    /// One process, in detail.
    Details,
    /// A list to choose from.
    List,
    /// A line of text.
    Prompt,
    /// A question that is answered by yes or no.
    Question,
    /// This help.
    Help,
}

impl Place {
    /// All, in the order of the help.
    pub const ALL: [Self; 6] = [
        Self::Table,
        Self::Details,
        Self::List,
        Self::Prompt,
        Self::Question,
        Self::Help,
    ];

    /// What the help calls it.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Table => "Table",
            Self::Details => "Details of a process",
            Self::List => "Lists",
            Self::Prompt => "Text",
            Self::Question => "Questions",
            Self::Help => "This help",
        }
    }
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Leave the program.
    Quit,
    /// Leave this place.
    Back,
    /// Take what is chosen or written.
    Accept,
    /// Answer no.
    Refuse,
    /// Stop this program, as other programs stop at Ctrl-Z.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Read now.
    Refresh,
    /// Show the keys.
    Help,
    /// Move by so many rows.
    Move(i32),
    /// Move by so many pages.
    Page(i32),
    /// To the first row.
    First,
    /// To the last row.
    Last,
    /// Scroll to the side, by columns of text.
    Side(i32),
    /// Back to the left edge.
    LeftEdge,
    /// Sort by this field.
    SortBy(&'static str),
    /// Choose what to sort by.
    ChooseSort,
    /// Sort by the column to the left or right.
    SortColumn(i32),
    /// The other way round.
    Reverse,
    /// Show children below their parents.
    Tree,
    /// Hide or show what is below the process.
    Fold,
    /// Show threads.
    Threads,
    /// Hide kernel threads.
    KernelThreads,
    /// Hide what used no CPU.
    Idle,
    /// Show command lines, or names.
    CommandLines,
    /// Choose columns.
    Columns,
    /// Add up by something.
    Group,
    /// Write a filter.
    Filter,
    /// Choose a user.
    User,
    /// Search.
    Search,
    /// The next, or the one before, that was searched for.
    Found(i32),
    /// Stay with the process, wherever it moves.
    Follow,
    /// Write the id of a process to follow.
    FollowPid,
    /// Mark the process.
    Mark,
    /// Mark it and all below it.
    MarkTree,
    /// Unmark all.
    Unmark,
    /// Show a process in detail.
    Details,
    /// Its open files.
    Files,
    /// Its environment.
    Environment,
    /// The next or last page of details.
    Tab(i32),
    /// Send a signal.
    Kill,
    /// Change the nice value, by writing it.
    Renice,
    /// Change the nice value by so much.
    NiceBy(i32),
    /// Write the seconds between two looks.
    Interval,
    /// Stop or go on.
    Pause,
    /// Every CPU on its own, or all together.
    Cpus,
    /// Hide or show the header.
    Header,
    /// Colour or none.
    Colour,
    /// Processes that exited.
    Exited,
    /// Write the settings file.
    Save,
    /// So many snapshots further in a recording.
    Step(i32),
    /// So many minutes further in a recording.
    Minutes(i32),
    /// Write a time of the recording to go to.
    GoTo,
    /// Delete the character before the cursor.
    Delete,
    /// Delete the line.
    DeleteLine,
}

/// A key, as terminals tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    code: KeyCode,
    control: bool,
}

impl Key {
    const fn code(code: KeyCode) -> Self {
        Self {
            code,
            control: false,
        }
    }

    const fn char(character: char) -> Self {
        Self::code(KeyCode::Char(character))
    }

    const fn function(number: u8) -> Self {
        Self::code(KeyCode::F(number))
    }

    const fn control(character: char) -> Self {
        Self {
            code: KeyCode::Char(character),
            control: true,
        }
    }

    /// Leaves a place.
    pub const ESCAPE: Self = Self::code(KeyCode::Esc);

    /// The keys of an event. Alt and a key are Esc and that key, which a terminal tells in the same way.
    pub fn all_of(event: &KeyEvent) -> impl Iterator<Item = Self> {
        let escape = event.modifiers.contains(KeyModifiers::ALT);
        let escape = escape.then_some(Self::ESCAPE);
        escape.into_iter().chain([Self::of(event)])
    }

    /// The key of an event. Shift is in the character already.
    fn of(event: &KeyEvent) -> Self {
        Self {
            code: match event.code {
                KeyCode::BackTab => KeyCode::BackTab,
                code => code,
            },
            control: event.modifiers.contains(KeyModifiers::CONTROL),
        }
    }

    /// The character that it writes, if it writes one.
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

/// A line of the table.
#[derive(Debug)]
pub struct Binding {
    /// Where it holds.
    pub place: Place,
    /// The keys.
    pub keys: &'static [Key],
    /// What they do.
    pub action: Action,
    /// A line of help.
    pub help: &'static str,
}

use Action as A;
use KeyCode as C;
use Place::{Details, Help, List, Prompt, Question, Table};

const fn bind(place: Place, keys: &'static [Key], action: Action, help: &'static str) -> Binding {
    Binding {
        place,
        keys,
        action,
        help,
    }
}

const fn c(character: char) -> Key {
    Key::char(character)
}

const fn k(code: KeyCode) -> Key {
    Key::code(code)
}

const fn f(number: u8) -> Key {
    Key::function(number)
}

const fn ctrl(character: char) -> Key {
    Key::control(character)
}

/// All of them. Where htop and top have a key for something, it is the same here.
#[rustfmt::skip]
pub static BINDINGS: &[Binding] = &[
    bind(Table, &[k(C::Up), ctrl('p')], A::Move(-1), "up; the cursor keeps its row (F: it stays with its process)"),
    bind(Table, &[k(C::Down), ctrl('n')], A::Move(1), "down"),
    bind(Table, &[k(C::PageUp), ctrl('b')], A::Page(-1), "a page up"),
    bind(Table, &[k(C::PageDown), ctrl('f')], A::Page(1), "a page down"),
    bind(Table, &[k(C::Home)], A::First, "to the first row"),
    bind(Table, &[k(C::End), c('G')], A::Last, "to the last row"),
    bind(Table, &[k(C::Left)], A::Side(-8), "scroll to the left"),
    bind(Table, &[k(C::Right)], A::Side(8), "scroll to the right"),
    bind(Table, &[c('0')], A::LeftEdge, "back to the left edge"),
    bind(Table, &[k(C::Enter)], A::Details, "the process in detail, with threads and files; a group's members"),
    bind(Table, &[c('P')], A::SortBy("pcpu"), "sort by CPU"),
    bind(Table, &[c('M')], A::SortBy("pmem"), "sort by memory"),
    bind(Table, &[c('T')], A::SortBy("time"), "sort by CPU time"),
    bind(Table, &[c('N')], A::SortBy("pid"), "sort by process id"),
    bind(Table, &[f(6), c('S')], A::ChooseSort, "choose what to sort by"),
    bind(Table, &[c('<')], A::SortColumn(-1), "sort by the column to the left"),
    bind(Table, &[c('>')], A::SortColumn(1), "sort by the column to the right"),
    bind(Table, &[c('I'), c('R')], A::Reverse, "sort the other way round"),
    bind(Table, &[f(5), c('t'), c('V')], A::Tree, "children below their parents"),
    bind(Table, &[c('+'), c('-')], A::Fold, "in a tree: fold what is below, or unfold it"),
    bind(Table, &[c('H')], A::Threads, "every thread on a row of its own"),
    bind(Table, &[c('K')], A::KernelThreads, "hide kernel threads, or show them"),
    bind(Table, &[c('i')], A::Idle, "hide what used no CPU, or show it"),
    bind(Table, &[c('c'), c('p')], A::CommandLines, "command lines, or names"),
    bind(Table, &[f(2), c('f')], A::Columns, "write the columns"),
    bind(Table, &[c('g')], A::Group, "add up by name, user, cgroup, container; then not"),
    bind(Table, &[c('x')], A::Exited, "show processes that exited in this interval, or hide them"),
    bind(Table, &[f(4), c('\\'), c('o')], A::Filter, "filter: rss > 100M && user != root"),
    bind(Table, &[c('u')], A::User, "choose a user"),
    bind(Table, &[f(3), c('/'), c('L')], A::Search, "search in names and command lines"),
    bind(Table, &[c('n'), c('&')], A::Found(1), "the next that was searched for"),
    bind(Table, &[ctrl('r')], A::Found(-1), "the one before"),
    bind(Table, &[c('F')], A::Follow, "stay with this process wherever it moves, or with the row again"),
    bind(Table, &[c('#')], A::FollowPid, "write the id of a process to stay with"),
    bind(Table, &[c(' ')], A::Mark, "mark or unmark; marked ones are added up"),
    bind(Table, &[c('C')], A::MarkTree, "mark with all that is below it"),
    bind(Table, &[c('U')], A::Unmark, "unmark all"),
    bind(Table, &[c('l')], A::Files, "its open files"),
    bind(Table, &[c('e')], A::Environment, "its environment"),
    bind(Table, &[f(9), c('k')], A::Kill, "send a signal to the process of the cursor, or to marked ones"),
    bind(Table, &[c('r')], A::Renice, "write its nice value"),
    bind(Table, &[f(7), c(']')], A::NiceBy(-1), "more CPU for it (nice - 1)"),
    bind(Table, &[f(8), c('[')], A::NiceBy(1), "less CPU for it (nice + 1)"),
    bind(Table, &[c('d'), c('s')], A::Interval, "write the seconds between two looks"),
    bind(Table, &[c('Z')], A::Pause, "stop, or go on"),
    bind(Table, &[c('1')], A::Cpus, "every CPU on its own, or all together"),
    bind(Table, &[c('m')], A::Header, "hide the header, or show it"),
    bind(Table, &[c('z')], A::Colour, "colour, or none"),
    bind(Table, &[c('W')], A::Save, "write these settings to top.toml"),
    bind(Table, &[c(',')], A::Step(-1), "in a recording: one snapshot back"),
    bind(Table, &[c('.')], A::Step(1), "in a recording: one snapshot on"),
    bind(Table, &[c('{')], A::Minutes(-1), "in a recording: a minute back"),
    bind(Table, &[c('}')], A::Minutes(1), "in a recording: a minute on"),
    bind(Table, &[c('b')], A::GoTo, "in a recording: write a time to go to"),
    bind(Table, &[ctrl('l')], A::Redraw, "draw everything anew"),
    bind(Table, &[k(C::Tab)], A::Refresh, "read now"),
    bind(Table, &[ctrl('z')], A::Suspend, "stop this program; fg goes on"),
    bind(Table, &[f(1), c('h'), c('?')], A::Help, "this help"),
    bind(Table, &[k(C::Esc)], A::Back, "drop the filter, the search, what is followed"),
    bind(Table, &[f(10), c('q'), ctrl('c')], A::Quit, "leave"),

    bind(Details, &[k(C::Tab), k(C::Right)], A::Tab(1), "the next page"),
    bind(Details, &[k(C::BackTab), k(C::Left)], A::Tab(-1), "the page before"),
    bind(Details, &[k(C::Up)], A::Move(-1), "up"),
    bind(Details, &[k(C::Down)], A::Move(1), "down"),
    bind(Details, &[k(C::PageUp)], A::Page(-1), "a page up"),
    bind(Details, &[k(C::PageDown), c(' ')], A::Page(1), "a page down"),
    bind(Details, &[k(C::Home)], A::First, "to the first line"),
    bind(Details, &[c('l')], A::Files, "its open files"),
    bind(Details, &[c('e')], A::Environment, "its environment"),
    bind(Details, &[f(5), c('R')], A::Refresh, "read files, limits and environment again"),
    bind(Details, &[f(9), c('k')], A::Kill, "send a signal to it"),
    bind(Details, &[c('r')], A::Renice, "write its nice value"),
    bind(Details, &[c('Z')], A::Pause, "stop, or go on"),
    bind(Details, &[c(',')], A::Step(-1), "in a recording: one snapshot back"),
    bind(Details, &[c('.')], A::Step(1), "in a recording: one snapshot on"),
    bind(Details, &[c('{')], A::Minutes(-1), "in a recording: a minute back"),
    bind(Details, &[c('}')], A::Minutes(1), "in a recording: a minute on"),
    bind(Details, &[c('b')], A::GoTo, "in a recording: write a time to go to"),
    bind(Details, &[f(1), c('h'), c('?')], A::Help, "help"),
    bind(Details, &[k(C::Esc), c('q'), k(C::Enter)], A::Back, "back to the table"),
    bind(Details, &[ctrl('z')], A::Suspend, "stop this program"),
    bind(Details, &[f(10), ctrl('c')], A::Quit, "leave"),

    bind(List, &[k(C::Up)], A::Move(-1), "up"),
    bind(List, &[k(C::Down)], A::Move(1), "down"),
    bind(List, &[k(C::PageUp)], A::Page(-1), "a page up"),
    bind(List, &[k(C::PageDown)], A::Page(1), "a page down"),
    bind(List, &[k(C::Home)], A::First, "to the first"),
    bind(List, &[k(C::End)], A::Last, "to the last"),
    bind(List, &[k(C::Enter)], A::Accept, "take it"),
    bind(List, &[k(C::Esc), c('q')], A::Back, "take none"),
    bind(List, &[f(10), ctrl('c')], A::Quit, "leave"),

    bind(Prompt, &[k(C::Enter)], A::Accept, "take it"),
    bind(Prompt, &[k(C::Esc), ctrl('g')], A::Back, "leave all as it was"),
    bind(Prompt, &[k(C::Backspace), ctrl('h')], A::Delete, "delete a character"),
    bind(Prompt, &[ctrl('u')], A::DeleteLine, "delete the line"),
    bind(Prompt, &[f(10), ctrl('c')], A::Quit, "leave"),

    bind(Question, &[c('y'), c('Y')], A::Accept, "yes"),
    bind(Question, &[c('n'), c('N'), k(C::Esc), c('q')], A::Refuse, "no"),
    bind(Question, &[f(10), ctrl('c')], A::Quit, "leave"),

    bind(Help, &[k(C::Up)], A::Move(-1), "up"),
    bind(Help, &[k(C::Down)], A::Move(1), "down"),
    bind(Help, &[k(C::PageUp)], A::Page(-1), "a page up"),
    bind(Help, &[k(C::PageDown), c(' ')], A::Page(1), "a page down"),
    bind(Help, &[k(C::Home)], A::First, "to the top"),
    bind(Help, &[k(C::Esc), c('q'), c('h'), c('?'), k(C::Enter), f(1)], A::Back, "back"),
    bind(Help, &[ctrl('z')], A::Suspend, "stop this program"),
    bind(Help, &[f(10), ctrl('c')], A::Quit, "leave"),
];

/// What a key does here.
pub fn action(place: Place, key: Key) -> Option<Action> {
    let binding = BINDINGS
        .iter()
        .find(|binding| binding.place == place && binding.keys.contains(&key));
    binding.map(|binding| binding.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_bound_twice_in_a_place() {
        for place in Place::ALL {
            let keys = || BINDINGS.iter().filter(|binding| binding.place == place);
            let keys: Vec<_> = keys().flat_map(|binding| binding.keys).collect();
            for (i, key) in keys.iter().enumerate() {
                assert!(!keys[..i].contains(key), "{place:?}: {}", key.name());
            }
        }
    }

    /// The help stands beside a column of keys, on 80 columns.
    #[test]
    fn every_line_of_help_can_be_read_whole() {
        for Binding { help, .. } in BINDINGS {
            assert!(help.len() <= 64, "{help}");
        }
    }

    #[test]
    fn every_place_can_be_left() {
        for place in Place::ALL {
            assert_eq!(action(place, ctrl('c')), Some(Action::Quit), "{place:?}");
        }
    }

    #[test]
    fn alt_is_an_escape_before_the_key() {
        let event = |modifiers| KeyEvent::new(C::Char('q'), modifiers);
        let keys = |modifiers| Key::all_of(&event(modifiers)).collect::<Vec<_>>();
        assert_eq!(keys(KeyModifiers::ALT), [Key::ESCAPE, c('q')]);
        assert_eq!(keys(KeyModifiers::NONE), [c('q')]);
        assert_eq!(keys(KeyModifiers::CONTROL), [ctrl('q')]);
    }

    #[test]
    fn keys_have_names() {
        let name = |key: Key| key.name();
        assert_eq!(
            [name(c('q')), name(c(' ')), name(f(10)), name(ctrl('c'))],
            ["q", "Space", "F10", "^C"]
        );
        assert_eq!(name(k(C::PageUp)), "PgUp");
    }
}
