//! The user's choices: all state of the screen except the machine's data.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use fastproc::Fields;
use fastproc_columns::{Field, Filter, Sort, field};

use crate::{
    cgroups,
    details::Details,
    error::Error,
    group::GroupBy,
    id::Id,
    keys::Place,
    settings::{self, Settings},
    target::Target,
    window::Window,
};

/// The default columns. A narrow terminal leaves out columns from the right, except the last.
const COLUMNS: [&str; 12] = [
    "pid",
    "user",
    "ni",
    "vsize",
    "rss",
    "state",
    "pcpu",
    "pmem",
    "time",
    "num_threads",
    "processor",
    "cmdline",
];

/// The default columns of threads.
const THREAD_COLUMNS: [&str; 9] = [
    "pid",
    "tid",
    "user",
    "ni",
    "state",
    "pcpu",
    "time",
    "processor",
    "comm",
];

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
        /// The change; [`State::targets`] are the processes.
        action: ProcessAction,
    },
    /// The keys.
    Help(Window),
}

/// A message that disappears after a while.
#[derive(Clone, Debug)]
pub struct Message {
    /// What it says.
    pub text: String,
    /// Whether it reports an error.
    pub is_error: bool,
    /// When it disappears.
    pub until: Instant,
}

/// How long a message stays.
const MESSAGE_TIME: Duration = Duration::from_secs(4);

/// All choices.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct State {
    /// The choices that the settings file can keep.
    pub settings: Settings,
    /// The columns, in their order.
    pub columns: Vec<&'static Field>,
    /// Whether columns may be left out if there is no room.
    pub may_drop: bool,
    /// The order.
    pub sort: Sort,
    /// Which rows to show.
    pub filter: Option<Filter>,
    /// The filter before a group was opened, to which Esc returns.
    pub filter_before: Option<String>,
    /// The text to search for.
    pub search: String,
    /// The direction in which to search when rows are drawn next.
    pub seek: Option<i32>,
    /// The process that the cursor follows.
    pub follow: Option<Id>,
    /// The marked rows.
    pub marked: HashSet<Id>,
    /// Processes whose children are not shown.
    pub folded: HashSet<u32>,
    /// The visible rows.
    pub window: Window,
    /// The row of the cursor when rows were last drawn.
    pub selected: Option<Id>,
    /// The key of the group at the cursor.
    pub selected_group: Option<Vec<u8>>,
    /// The processes that the open list, prompt or question applies to, fixed when its key was pressed.
    pub targets: Vec<Target>,
    /// Whether keys come faster than a person types.
    pub is_burst: bool,
    /// The process that is shown in detail.
    pub details: Option<Details>,
    /// The table of cgroups.
    pub cgroups: cgroups::Table,
    /// What is shown on top of the table or the details.
    pub overlay: Option<Overlay>,
    /// The message to show.
    pub message: Option<Message>,
    /// Whether refreshing is paused.
    pub paused: bool,
    /// Whether a recording is shown.
    pub is_replay: bool,
    /// Whether the environment disables colour.
    pub no_colour: bool,
    /// Whether to draw only ASCII characters.
    pub is_ascii: bool,
}

impl State {
    /// Creates the state from settings.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let mut state = Self {
            columns: Vec::new(),
            may_drop: false,
            sort: settings.sort.parse().map_err(boxed)?,
            filter: None,
            filter_before: None,
            search: String::new(),
            seek: None,
            follow: None,
            marked: HashSet::new(),
            folded: HashSet::new(),
            window: Window::default(),
            selected: None,
            selected_group: None,
            targets: Vec::new(),
            is_burst: false,
            details: None,
            cgroups: cgroups::Table::new(&settings.cgroups).map_err(Error::Choice)?,
            overlay: None,
            message: None,
            paused: false,
            is_replay: false,
            no_colour: false,
            is_ascii: false,
            settings,
        };
        let names = state.settings.columns.join(",");
        state.set_columns(&names).map_err(boxed)?;
        let filter = state.settings.filter.clone();
        state.set_filter(&filter).map_err(boxed)?;
        Ok(state)
    }

    /// The refresh interval.
    pub fn interval(&self) -> Duration {
        settings::interval(self.settings.interval).unwrap_or(Duration::from_secs(1))
    }

    /// Sets the columns by name; an empty list selects the defaults that fit.
    pub fn set_columns(&mut self, names: &str) -> Result<(), field::UnknownField> {
        let names = names.split(',').map(str::trim);
        let own: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        let fallback: &[&str] = if self.settings.threads {
            &THREAD_COLUMNS
        } else {
            &COLUMNS
        };
        let names = if own.is_empty() { fallback } else { &own };
        let columns: Result<_, _> = names.iter().map(|name| field::find(name)).collect();
        self.columns = columns?;
        self.may_drop = own.is_empty();
        self.settings.columns = own.into_iter().map(Into::into).collect();
        Ok(())
    }

    /// Sets the filter; an empty one shows everything.
    pub fn set_filter(&mut self, text: &str) -> Result<(), fastproc_columns::FilterError> {
        let text = text.trim();
        self.filter = match text {
            "" => None,
            text => Some(text.parse()?),
        };
        self.settings.filter = text.into();
        self.filter_before = None;
        Ok(())
    }

    /// The name of the first field of the order, and whether its largest value comes first.
    pub fn sort_key(&self) -> (&'static str, bool) {
        let first = self.settings.sort.split(',').next().unwrap_or_default();
        let field = self.sort.fields().next();
        (
            field.map_or("pid", |field| field.name),
            first.starts_with('-'),
        )
    }

    /// Sorts by this field.
    pub fn sort_by(&mut self, name: &'static str, descending: bool) {
        let sign = if descending { "-" } else { "" };
        let text = format!("{sign}{name}");
        if let Ok(sort) = text.parse() {
            self.sort = sort;
            self.settings.sort = text;
        }
    }

    /// The groups of fields that columns, order, filter and details need.
    pub fn needs(&self) -> Fields {
        let columns = self.columns.iter();
        let mut needs = columns.fold(self.sort.needs() | Fields::TOP, |needs, field| {
            needs | field.needs
        });
        needs |= self.filter.as_ref().map_or(Fields::empty(), Filter::needs);
        needs |= self.settings.group.map_or(Fields::empty(), GroupBy::needs);
        needs |= self
            .details
            .as_ref()
            .map_or(Fields::empty(), Details::needs);
        if self.settings.cgroups.shown {
            needs |= Fields::CGROUP;
        }
        needs.set(
            Fields::THREADS,
            needs.contains(Fields::THREADS) || self.settings.threads,
        );
        needs
    }

    /// The values of cgroups that are shown; `None`: no cgroups are shown.
    pub fn needs_of_cgroups(&self) -> Option<fastproc::cgroups::Fields> {
        let is_shown = self.settings.cgroups.shown;
        is_shown.then(|| self.cgroups.needs())
    }

    /// The part of the screen that decides what keys do.
    pub fn place(&self) -> Place {
        match &self.overlay {
            Some(Overlay::List(_)) => Place::List,
            Some(Overlay::Prompt { .. }) => Place::Prompt,
            Some(Overlay::Question { .. }) => Place::Question,
            Some(Overlay::Help(_)) => Place::Help,
            None => self.place_below(),
        }
    }

    /// The same without what is shown over it.
    pub fn place_below(&self) -> Place {
        match (
            self.settings.cgroups.shown,
            &self.cgroups.details,
            &self.details,
        ) {
            (true, Some(_), _) => Place::Cgroup,
            (true, None, _) => Place::Cgroups,
            (false, _, Some(_)) => Place::Details,
            (false, _, None) => Place::Table,
        }
    }

    /// Shows a message for a while.
    pub fn say(&mut self, text: impl Into<String>) {
        self.message = Some(Message {
            text: text.into(),
            is_error: false,
            until: Instant::now() + MESSAGE_TIME,
        });
    }

    /// Shows an error for a while.
    pub fn fail(&mut self, text: impl Into<String>) {
        self.say(text);
        if let Some(message) = &mut self.message {
            message.is_error = true;
        }
    }

    /// The processes that an action applies to: the one in detail, the marked ones, or the one at the cursor.
    pub fn selected_ids(&self) -> Vec<Id> {
        if let Some(details) = &self.details {
            return vec![details.id];
        }
        if self.marked.is_empty() {
            return self.selected.into_iter().collect();
        }
        let mut marked: Vec<_> = self.marked.iter().copied().collect();
        marked.sort_unstable_by_key(|id| (id.pid, id.tid));
        marked
    }
}

fn boxed<E: std::error::Error + Send + Sync + 'static>(error: E) -> Error {
    Error::Choice(Box::new(error))
}
