//! What is shown on top of the table: a list, a prompt, a question, or the help.

use crate::{group::GroupBy, window::Window};

/// What an entry of a list does when it is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A field or, of cgroups, a column to sort by.
    Sort(&'static str),
    /// A signal to send.
    Signal(i32),
    /// A user whose processes to show; `None`: all.
    User(Option<String>),
    /// What to group by; `None`: nothing.
    Group(Option<GroupBy>),
    /// A column, and whether it is shown.
    Column(&'static str, bool),
}

/// A list to choose from.
#[derive(Clone, Debug)]
pub struct List {
    /// The heading.
    pub title: &'static str,
    /// The lines, each with what choosing it does.
    pub items: Vec<(String, Choice)>,
    /// The visible lines and the cursor.
    pub window: Window,
    /// What was typed to search for a line.
    pub typed: String,
}

impl List {
    /// Whether it is one of columns.
    pub fn is_of_columns(&self) -> bool {
        matches!(self.items.first(), Some((_, Choice::Column(..))))
    }

    /// The chosen columns, if it is a list of them.
    pub fn columns(&self) -> Option<Vec<&'static str>> {
        let shown = self.items.iter().filter_map(|(_, choice)| match choice {
            Choice::Column(name, true) => Some(*name),
            _ => None,
        });
        self.is_of_columns().then(|| shown.collect())
    }

    /// Shows or hides the column at the cursor.
    pub fn toggle(&mut self) {
        if let Some((_, Choice::Column(_, shown))) = self.items.get_mut(self.window.cursor) {
            *shown = !*shown;
            self.window.step(1);
        }
    }

    /// Moves the column at the cursor by one place.
    pub fn shift(&mut self, by: i32) {
        let from = self.window.cursor;
        self.window.step(by.signum());
        if self.is_of_columns() {
            self.items.swap(from, self.window.cursor);
        } else {
            self.window.cursor = from;
        }
    }

    /// Moves the cursor to the line that the typed text fits best: at its beginning, or anywhere.
    pub fn find(&mut self) {
        let typed = self.typed.to_lowercase();
        let lines = || {
            self.items
                .iter()
                .map(|(line, _)| line.trim_start().to_lowercase())
        };
        let found = lines().position(|line| line.starts_with(&typed));
        let found = found.or_else(|| lines().position(|line| line.contains(&typed)));
        self.window.cursor = found.unwrap_or(self.window.cursor);
    }

    /// A list with the cursor at this line.
    pub fn new(title: &'static str, items: Vec<(String, Choice)>, cursor: usize) -> Self {
        let window = Window {
            cursor,
            rows: items.len(),
            ..Window::default()
        };
        Self {
            title,
            items,
            window,
            typed: String::new(),
        }
    }
}

/// What the user is asked to type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A filter.
    Filter,
    /// A text to search for.
    Search,
    /// The refresh interval.
    Interval,
    /// A process to follow.
    Pid,
    /// A nice value.
    Nice,
    /// A time of the recording.
    Time,
}

impl Prompt {
    /// Asks, with this text so far.
    pub const fn with(self, text: String) -> Overlay {
        Overlay::Prompt {
            prompt: self,
            text,
            error: None,
        }
    }

    /// The label before the text.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Filter => "Filter: ",
            Self::Search => "Search: ",
            Self::Interval => "Refresh interval (2, 0.5, 500ms): ",
            Self::Pid => "Process id: ",
            Self::Nice => "Nice value (-20 to 19): ",
            Self::Time => "Time (03:12, yesterday 03:12, -10min, now): ",
        }
    }
}

/// A change of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessAction {
    /// Send a signal.
    Signal(i32),
    /// Set the nice value.
    Nice(i32),
    /// Change the nice value by this amount.
    NiceBy(i32),
}

/// What is shown on top of the table.
#[derive(Clone, Debug)]
pub enum Overlay {
    /// A list to choose from.
    List(List),
    /// A line of text to type.
    Prompt {
        /// What it is for.
        prompt: Prompt,
        /// The text so far.
        text: String,
        /// Why it is invalid.
        error: Option<String>,
    },
    /// A question before processes are changed.
    Question {
        /// The change; [`State::targets`](crate::state::State::targets) are the processes.
        action: ProcessAction,
    },
    /// The keys.
    Help(Window),
}

impl From<List> for Overlay {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}
