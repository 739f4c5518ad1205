//! What is shown on top of the table: a list, a prompt, a question, or the help.

use crate::window::Window;

/// What an entry of a list does when it is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A field or, of cgroups, a column to sort by.
    Sort(&'static str),
    /// A signal to send.
    Signal(i32),
    /// A user whose processes to show; `None`: all.
    User(Option<String>),
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
}

impl List {
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
    /// Columns.
    Columns,
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
            Self::Columns => "Columns: ",
            Self::Interval => "Refresh interval (2, 0.5, 500ms): ",
            Self::Pid => "Process id: ",
            Self::Nice => "Nice value (-20 to 19): ",
            Self::Time => "Time (HH:MM[:SS], or YYYY-MM-DD HH:MM[:SS]): ",
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
