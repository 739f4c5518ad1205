//! The table of keys: it binds them, and the help screen shows it.

mod key;

use ratatui_crossterm::crossterm::event::KeyCode;

pub use self::key::Key;

/// A part of the program with its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The table of processes.
    Table,
    /// One process, in detail.
    Details,
    /// The table of cgroups.
    Cgroups,
    /// One cgroup, in detail.
    Cgroup,
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
    /// All places, in the order of the help.
    pub const ALL: [Self; 8] = [
        Self::Table,
        Self::Details,
        Self::Cgroups,
        Self::Cgroup,
        Self::List,
        Self::Prompt,
        Self::Question,
        Self::Help,
    ];

    /// Its heading in the help.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Table => "Table",
            Self::Details => "Details of a process",
            Self::Cgroups => "Cgroups",
            Self::Cgroup => "Details of a cgroup",
            Self::List => "Lists",
            Self::Prompt => "Text",
            Self::Question => "Questions",
            Self::Help => "This help",
        }
    }
}

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Quit the program.
    Quit,
    /// Leave this place.
    Back,
    /// Accept the choice or the text.
    Accept,
    /// Answer no.
    Refuse,
    /// Stop this program, as other programs stop at Ctrl-Z.
    Suspend,
    /// Redraw the screen.
    Redraw,
    /// Refresh now.
    Refresh,
    /// Show the keys.
    Help,
    /// Move by this many rows.
    Move(i32),
    /// Move by this many pages.
    Page(i32),
    /// Go to the first row.
    First,
    /// Go to the last row.
    Last,
    /// Scroll to the side, by columns of text.
    Side(i32),
    /// Scroll back to the left edge.
    LeftEdge,
    /// Sort by this field.
    SortBy(&'static str),
    /// Choose a key to sort by.
    ChooseSort,
    /// Sort by the column to the left or right.
    SortColumn(i32),
    /// Reverse the order.
    Reverse,
    /// Show children below their parents.
    Tree,
    /// Hide or show the descendants of the process.
    Fold,
    /// Show threads.
    Threads,
    /// Hide kernel threads.
    KernelThreads,
    /// Hide processes that used no CPU.
    Idle,
    /// Show command lines, or names.
    CommandLines,
    /// Show the folders of programs, or not.
    Paths,
    /// Choose columns.
    Columns,
    /// Choose what to group by.
    Group,
    /// Edit the filter.
    Filter,
    /// Choose a user.
    User,
    /// Search.
    Search,
    /// Go to the next or previous match.
    Found(i32),
    /// Keep the cursor on the process.
    Follow,
    /// Enter the id of a process to follow.
    FollowPid,
    /// Mark the process.
    Mark,
    /// Mark the process and its descendants.
    MarkTree,
    /// Remove all marks.
    Unmark,
    /// Show a process or a cgroup in detail.
    Details,
    /// Show cgroups instead of processes, or processes again.
    Cgroups,
    /// Show its open files.
    Files,
    /// Show its environment.
    Environment,
    /// Show all its fields.
    Fields,
    /// Show the next or previous page of details.
    Tab(i32),
    /// Send a signal.
    Kill,
    /// Enter a nice value.
    Renice,
    /// Change the nice value by this amount.
    NiceBy(i32),
    /// Enter the refresh interval.
    Interval,
    /// Pause or continue.
    Pause,
    /// Show each CPU, or all together.
    Cpus,
    /// Hide or show the header.
    Header,
    /// Use colour or not.
    Colour,
    /// Show exited processes or not.
    Exited,
    /// Write the settings file.
    Save,
    /// Move by this many walks into what was.
    Step(i32),
    /// Move by this many minutes.
    Minutes(i32),
    /// Go to the next spike of the load, or the one before.
    Spike(i32),
    /// Go to the first walk that saw this process, or to the last one.
    Life(i32),
    /// Enter a time to go to.
    GoTo,
    /// Delete the character before the cursor.
    Delete,
    /// Delete the line.
    DeleteLine,
}

/// A line of the table.
#[derive(Debug)]
pub struct Binding {
    /// The places where it applies.
    pub places: &'static [Place],
    /// The keys.
    pub keys: &'static [Key],
    /// What they do.
    pub action: Action,
    /// A line of help.
    pub help: &'static str,
}

use Action as A;
use KeyCode as C;
use Place::{Cgroup, Cgroups, Details, Help, List, Prompt, Question, Table};

const fn bind(
    places: &'static [Place],
    keys: &'static [Key],
    action: Action,
    help: &'static str,
) -> Binding {
    Binding {
        places,
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

const TABLES: &[Place] = &[Table, Cgroups];
const ONE: &[Place] = &[Details, Cgroup];
const PAGES: &[Place] = &[Details, Cgroup, Help];
const PROCESSES: &[Place] = &[Table, Details];
const SCREENS: &[Place] = &[Table, Details, Cgroups, Cgroup];

/// All bindings. Functions that htop or top has too have the same keys here.
#[rustfmt::skip]
pub static BINDINGS: &[Binding] = &[
    bind(TABLES, &[k(C::Up), ctrl('p')], A::Move(-1), "up; the cursor keeps its row, F follows a process"),
    bind(TABLES, &[k(C::Down), ctrl('n')], A::Move(1), "down"),
    bind(TABLES, &[k(C::PageUp), ctrl('b')], A::Page(-1), "a page up"),
    bind(TABLES, &[k(C::PageDown), ctrl('f')], A::Page(1), "a page down"),
    bind(&[Table, Cgroups, List], &[k(C::Home)], A::First, "to the first row"),
    bind(TABLES, &[k(C::End), c('G')], A::Last, "to the last row"),
    bind(TABLES, &[k(C::Left)], A::Side(-8), "scroll to the left"),
    bind(TABLES, &[k(C::Right)], A::Side(8), "scroll to the right"),
    bind(TABLES, &[c('0')], A::LeftEdge, "back to the left edge"),
    bind(&[Table], &[k(C::Enter)], A::Details, "show details; in a group, its processes"),
    bind(&[Cgroups], &[k(C::Enter)], A::Details, "show its history, its values and its processes"),
    bind(&[Table], &[c('P')], A::SortBy("pcpu"), "sort by CPU"),
    bind(&[Table], &[c('M')], A::SortBy("pmem"), "sort by memory"),
    bind(&[Table], &[c('T')], A::SortBy("time"), "sort by CPU time"),
    bind(TABLES, &[c('Q')], A::SortBy("wait"), "sort by waiting for a CPU, in its queue"),
    bind(&[Table], &[c('N')], A::SortBy("pid"), "sort by process id"),
    bind(&[Cgroups], &[c('P')], A::SortBy("cpu"), "sort by CPU"),
    bind(&[Cgroups], &[c('M')], A::SortBy("memory"), "sort by memory"),
    bind(&[Cgroups], &[c('T')], A::SortBy("cpu_time"), "sort by CPU time"),
    bind(&[Cgroups], &[c('N')], A::SortBy("path"), "sort by path"),
    bind(TABLES, &[f(6), c('S')], A::ChooseSort, "choose what to sort by"),
    bind(TABLES, &[c('<')], A::SortColumn(-1), "sort by the column to the left"),
    bind(TABLES, &[c('>')], A::SortColumn(1), "sort by the column to the right"),
    bind(TABLES, &[c('I'), c('R')], A::Reverse, "sort the other way round"),
    bind(TABLES, &[f(5), c('t'), c('V')], A::Tree, "show descendants below their parents"),
    bind(TABLES, &[c('+'), c('-')], A::Fold, "in a tree: fold or unfold the descendants"),
    bind(&[Table], &[c('H')], A::Threads, "show each thread on its own row"),
    bind(&[Table], &[c('K')], A::KernelThreads, "hide or show kernel threads"),
    bind(&[Table], &[c('i')], A::Idle, "hide or show processes that used no CPU"),
    bind(&[Table], &[c('c')], A::CommandLines, "show command lines or names"),
    bind(&[Table], &[c('p')], A::Paths, "show or hide the folders of programs"),
    bind(TABLES, &[f(2), c('f')], A::Columns, "choose the columns"),
    bind(&[Table, Cgroups], &[c('v')], A::Cgroups, "show cgroups, or processes again"),
    bind(&[Table], &[c('g')], A::Group, "add up by name, user, container, pod …"),
    bind(&[Table], &[c('x')], A::Exited, "show or hide those that exited in the interval"),
    bind(&[Table], &[f(4), c('\\'), c('o')], A::Filter, "filter: rss > 100M && user != root"),
    bind(&[Cgroups], &[f(4), c('\\'), c('o')], A::Filter, "filter: memory > 100M && path =~ system"),
    bind(&[Table], &[c('u')], A::User, "choose a user"),
    bind(TABLES, &[f(3), c('/'), c('L')], A::Search, "search, and follow what is found"),
    bind(TABLES, &[c('n'), c('&')], A::Found(1), "go to the next match"),
    bind(TABLES, &[ctrl('r')], A::Found(-1), "go to the previous match"),
    bind(&[Table], &[c('F')], A::Follow, "follow this process when it moves, or no longer"),
    bind(&[Table], &[c('#')], A::FollowPid, "enter the id of a process to follow"),
    bind(&[Table], &[c(' ')], A::Mark, "mark or unmark; marked processes are added up"),
    bind(&[Table], &[c('C')], A::MarkTree, "mark with all its descendants"),
    bind(&[Table], &[c('U')], A::Unmark, "unmark all"),

    bind(ONE, &[k(C::Tab), k(C::Right)], A::Tab(1), "next page"),
    bind(ONE, &[k(C::BackTab), k(C::Left)], A::Tab(-1), "previous page"),
    bind(PAGES, &[k(C::Up)], A::Move(-1), "up"),
    bind(PAGES, &[k(C::Down)], A::Move(1), "down"),
    bind(PAGES, &[k(C::PageUp)], A::Page(-1), "a page up"),
    bind(PAGES, &[k(C::PageDown), c(' ')], A::Page(1), "a page down"),
    bind(PAGES, &[k(C::Home)], A::First, "to the first line"),
    bind(PAGES, &[k(C::End), c('G')], A::Last, "to the last line"),
    bind(PROCESSES, &[c('l')], A::Files, "show its open files"),
    bind(PROCESSES, &[c('e')], A::Environment, "show its environment"),
    bind(&[Details], &[c('f')], A::Fields, "show all its fields"),
    bind(&[Details], &[f(5), c('R')], A::Refresh, "read files, limits and environment again"),
    bind(PROCESSES, &[f(9), c('k')], A::Kill, "send a signal to the marked ones, or to this one"),
    bind(PROCESSES, &[c('r')], A::Renice, "enter a nice value"),
    bind(&[Table], &[f(7), c(']')], A::NiceBy(-1), "raise its priority (nice - 1)"),
    bind(&[Table], &[f(8), c('[')], A::NiceBy(1), "lower its priority (nice + 1)"),
    bind(TABLES, &[c('d'), c('s')], A::Interval, "enter the refresh interval"),
    bind(SCREENS, &[c('Z')], A::Pause, "pause or continue"),
    bind(TABLES, &[c('1')], A::Cpus, "show each CPU, or all together"),
    bind(TABLES, &[c('m')], A::Header, "hide or show the header"),
    bind(TABLES, &[c('z')], A::Colour, "turn colour on or off"),
    bind(TABLES, &[c('W')], A::Save, "write these settings to top.toml"),
    bind(SCREENS, &[c(',')], A::Step(-1), "what was: one walk back"),
    bind(SCREENS, &[c('.')], A::Step(1), "what was: one walk forward"),
    bind(SCREENS, &[c('{')], A::Minutes(-1), "what was: a minute back"),
    bind(SCREENS, &[c('}')], A::Minutes(1), "what was: a minute forward"),
    bind(SCREENS, &[c('(')], A::Spike(-1), "what was: to the last spike of the load"),
    bind(SCREENS, &[c(')')], A::Spike(1), "what was: to the next spike of the load"),
    bind(PROCESSES, &[c('B')], A::Life(-1), "what was: to where this process begins"),
    bind(PROCESSES, &[c('E')], A::Life(1), "what was: to where this process ends"),
    bind(SCREENS, &[c('b')], A::GoTo, "what was: enter a time to go to"),
    bind(TABLES, &[ctrl('l')], A::Redraw, "redraw the screen"),
    bind(TABLES, &[k(C::Tab)], A::Refresh, "refresh now"),
    bind(&[Table, Details, Cgroups, Cgroup, Help], &[ctrl('z')], A::Suspend, "suspend this program; fg continues"),
    bind(SCREENS, &[f(1), c('h'), c('?')], A::Help, "this help"),
    bind(&[Table], &[k(C::Esc)], A::Back, "a step back: from a match, a group, a filter"),
    bind(&[Cgroups], &[k(C::Esc)], A::Back, "a step back: from a match, a filter"),
    bind(ONE, &[k(C::Esc), c('q'), k(C::Enter)], A::Back, "back to the table"),
    bind(TABLES, &[f(10), c('q'), ctrl('c')], A::Quit, "quit"),
    bind(&[Details, Cgroup, List, Prompt, Question, Help], &[f(10), ctrl('c')], A::Quit, "quit"),

    bind(&[List], &[k(C::Up)], A::Move(-1), "up; letters search"),
    bind(&[List], &[k(C::Down)], A::Move(1), "down"),
    bind(&[List], &[k(C::PageUp)], A::Page(-1), "a page up"),
    bind(&[List], &[k(C::PageDown)], A::Page(1), "a page down"),
    bind(&[List], &[k(C::End)], A::Last, "to the last row"),
    bind(&[List], &[c(' ')], A::Mark, "of columns: show or hide"),
    bind(&[List], &[k(C::Left)], A::Side(-1), "of columns: move to the left"),
    bind(&[List], &[k(C::Right)], A::Side(1), "of columns: move to the right"),
    bind(&[List, Prompt], &[k(C::Enter)], A::Accept, "accept"),
    bind(&[List, Prompt], &[k(C::Esc), ctrl('g')], A::Back, "cancel"),
    bind(&[List, Prompt], &[k(C::Backspace), ctrl('h')], A::Delete, "delete a character"),
    bind(&[Prompt], &[ctrl('u')], A::DeleteLine, "delete the line"),

    bind(&[Question], &[c('y'), c('Y')], A::Accept, "yes"),
    bind(&[Question], &[c('n'), c('N'), c('q')], A::Refuse, "no"),
    bind(&[Question], &[k(C::Esc)], A::Back, "a step back"),

    bind(&[Help], &[k(C::Esc), c('q'), c('h'), c('?'), k(C::Enter), f(1)], A::Back, "back"),
];

/// What the mouse does, for the help.
pub const MOUSE: [(&str, &str); 4] = [
    ("row", "a click moves the cursor to it"),
    ("heading", "a click sorts by it; another one reverses"),
    ("wheel", "moves the cursor, or scrolls"),
    ("Shift", "while it is held, the terminal selects text"),
];

/// The keys of the last line, by place; in a list of columns, those of the last entry.
#[rustfmt::skip]
pub const BARS: [(Place, &[(&str, &str)]); 6] = [
    (Table, &[("F1", "Help"), ("F2", "Columns"), ("F3", "Search"), ("F4", "Filter"), ("F5", "Tree"), ("F6", "Sort"),
              ("F7", "Nice-"), ("F8", "Nice+"), ("F9", "Kill"), ("F10", "Quit"), ("g", "Groups"), ("u", "User"), ("v", "Cgroups"),
              ("x", "Exited"), ("H", "Threads"), ("Enter", "Details")]),
    (Cgroups, &[("F1", "Help"), ("F2", "Columns"), ("F3", "Search"), ("F4", "Filter"), ("F5", "Tree"), ("F6", "Sort"), ("v", "Processes"),
                ("F10", "Quit"), ("Enter", "Details")]),
    (Details, &[("Esc", "Back"), ("Tab", "Next page"), ("l", "Files"), ("e", "Environment"), ("f", "Fields"), ("F9", "Kill"), ("r", "Nice"),
                ("F1", "Keys")]),
    (Cgroup, &[("Esc", "Back"), ("Tab", "Next page"), ("F1", "Keys"), ("F10", "Quit")]),
    (List, &[("Enter", "Choose"), ("Esc", "Cancel"), ("Down", "Move"), ("a-z", "Search")]),
    (Help, &[("Esc", "Back"), ("Down", "Scroll"), ("PgDn", "Page"), ("End", "Last line")]),
];
/// The same in a list of columns.
pub const PICKER_BAR: [(&str, &str); 5] = [
    ("Space", "Show or hide"),
    ("Right", "Move it"),
    ("Enter", "Done"),
    ("Esc", "Cancel"),
    ("a-z", "Search"),
];

/// The action of a key at this place.
pub fn action(place: Place, key: Key) -> Option<Action> {
    let binding = BINDINGS
        .iter()
        .find(|binding| binding.places.contains(&place) && binding.keys.contains(&key));
    binding.map(|binding| binding.action)
}

#[cfg(test)]
mod tests {
    use ratatui_crossterm::crossterm::event::{KeyEvent, KeyModifiers};

    use super::*;

    #[test]
    fn no_key_is_bound_twice_in_a_place() {
        for place in Place::ALL {
            let keys = || {
                BINDINGS
                    .iter()
                    .filter(|binding| binding.places.contains(&place))
            };
            let keys: Vec<_> = keys().flat_map(|binding| binding.keys).collect();
            for (i, key) in keys.iter().enumerate() {
                assert!(!keys[..i].contains(key), "{place:?}: {}", key.name());
            }
        }
    }

    /// The help is beside a column of keys, twice on 140 columns.
    #[test]
    fn every_line_of_help_can_be_read_whole() {
        for Binding { help, .. } in BINDINGS {
            assert!(help.len() <= 53, "{help}");
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
