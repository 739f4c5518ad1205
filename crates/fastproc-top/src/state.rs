//! What a person has chosen: everything about the screen that is not of the machine.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use fastproc::Fields;
use fastproc_columns::{Field, Filter, Sort, field};

use crate::{
    details::Details,
    error::Error,
    group::GroupBy,
    id::Id,
    keys::Place,
    settings::{self, Settings},
    target::Target,
    window::Window,
};

/// Columns of those who name none. On a narrow terminal those further to the right are left out, but for the last.
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

/// Columns of threads.
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

/// Something to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A field to sort by.
    Sort(&'static str),
    /// A signal to send.
    Signal(i32),
    /// A user whose processes to show; `None`: all.
    User(Option<String>),
}

/// A list to choose from.
#[derive(Clone, Debug)]
pub struct List {
    /// What it is about.
    pub title: &'static str,
    /// The lines, and what each stands for.
    pub items: Vec<(String, Choice)>,
    /// The line that is chosen.
    pub window: Window,
}

/// What a line of text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A filter.
    Filter,
    /// What to search.
    Search,
    /// Columns.
    Columns,
    /// Seconds between two looks.
    Interval,
    /// A process to follow.
    Pid,
    /// A nice value.
    Nice,
    /// A time of the recording.
    Time,
}

impl Asked {
    /// What stands before the text.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Filter => "Filter: ",
            Self::Search => "Search: ",
            Self::Columns => "Columns: ",
            Self::Interval => "Seconds between two looks: ",
            Self::Pid => "Process id: ",
            Self::Nice => "Nice value (-20 to 19): ",
            Self::Time => "Time (HH:MM[:SS], or YYYY-MM-DD HH:MM[:SS]): ",
        }
    }
}

/// What is to be done to processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Send a signal.
    Signal(i32),
    /// Set the nice value.
    Nice(i32),
    /// Change the nice value by so much.
    NiceBy(i32),
}

/// What lies over the table.
#[derive(Clone, Debug)]
pub enum Over {
    /// A list.
    List(List),
    /// A line of text.
    Prompt {
        /// What it is for.
        asked: Asked,
        /// What was written so far.
        text: String,
        /// Why it cannot be taken.
        error: Option<String>,
    },
    /// Whether to do something to these.
    Question {
        /// What. [`State::aim`] says to whom.
        deed: Deed,
    },
    /// The keys.
    Help(Window),
}

/// A word to the person, for a while.
#[derive(Clone, Debug)]
pub struct Message {
    /// What it says.
    pub text: String,
    /// Whether something went wrong.
    pub is_error: bool,
    /// Until when.
    pub until: Instant,
}

/// How long it stays.
const MESSAGE_TIME: Duration = Duration::from_secs(4);

/// Everything that was chosen.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct State {
    /// What can be kept in the settings file.
    pub settings: Settings,
    /// The columns, in their order.
    pub columns: Vec<&'static Field>,
    /// Whether they may be left out where there is no room.
    pub may_drop: bool,
    /// The order.
    pub sort: Sort,
    /// Which rows to show.
    pub filter: Option<Filter>,
    /// What is searched for.
    pub search: String,
    /// In which direction the next of it is looked for, when rows are drawn next.
    pub seek: Option<i32>,
    /// What the cursor stays with.
    pub follow: Option<Id>,
    /// What was marked.
    pub marked: HashSet<Id>,
    /// Processes whose children are not shown.
    pub folded: HashSet<u32>,
    /// The rows that can be seen.
    pub window: Window,
    /// What the cursor was on when rows were last drawn.
    pub selected: Option<Id>,
    /// The key of the group that it was on.
    pub selected_group: Option<Vec<u8>>,
    /// What the list, the line of text or the question that is open is about: fixed when its key was pressed.
    pub aim: Vec<Target>,
    /// Whether keys come faster than a person types.
    pub is_burst: bool,
    /// The process that is shown in detail.
    pub details: Option<Details>,
    /// What lies over it all.
    pub over: Option<Over>,
    /// What there is to say.
    pub message: Option<Message>,
    /// Whether nothing is read.
    pub paused: bool,
    /// Whether it is a recording that is shown.
    pub is_replay: bool,
    /// Whether to draw without colour, whatever is chosen.
    pub no_colour: bool,
    /// Whether to draw with no other characters than those of ASCII.
    pub is_ascii: bool,
}

impl State {
    /// As these settings say.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let mut state = Self {
            columns: Vec::new(),
            may_drop: false,
            sort: settings.sort.parse().map_err(boxed)?,
            filter: None,
            search: String::new(),
            seek: None,
            follow: None,
            marked: HashSet::new(),
            folded: HashSet::new(),
            window: Window::default(),
            selected: None,
            selected_group: None,
            aim: Vec::new(),
            is_burst: false,
            details: None,
            over: None,
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

    /// The time between two looks.
    pub fn interval(&self) -> Duration {
        settings::interval(self.settings.interval).unwrap_or(Duration::from_secs(1))
    }

    /// Takes columns by their names; none of them are those that fit.
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

    /// Takes a filter; an empty one admits all.
    pub fn set_filter(&mut self, text: &str) -> Result<(), fastproc_columns::FilterError> {
        let text = text.trim();
        self.filter = match text {
            "" => None,
            text => Some(text.parse()?),
        };
        self.settings.filter = text.into();
        Ok(())
    }

    /// The name of the field that decides first, and whether its largest value comes first.
    pub fn sort_key(&self) -> (&'static str, bool) {
        let first = self.settings.sort.split(',').next().unwrap_or_default();
        let field = self.sort.fields().next();
        (
            field.map_or("pid", |field| field.name),
            first.starts_with('-'),
        )
    }

    /// Sorts by this field, the larger first where that is what people look for.
    pub fn sort_by(&mut self, name: &'static str, descending: bool) {
        let sign = if descending { "-" } else { "" };
        let text = format!("{sign}{name}");
        if let Ok(sort) = text.parse() {
            self.sort = sort;
            self.settings.sort = text;
        }
    }

    /// The groups of fields that all of this looks at.
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
        needs.set(
            Fields::THREADS,
            needs.contains(Fields::THREADS) || self.settings.threads,
        );
        needs
    }

    /// Where keys have their meaning from.
    pub fn place(&self) -> Place {
        match (&self.over, &self.details) {
            (Some(Over::List(_)), _) => Place::List,
            (Some(Over::Prompt { .. }), _) => Place::Prompt,
            (Some(Over::Question { .. }), _) => Place::Question,
            (Some(Over::Help(_)), _) => Place::Help,
            (None, Some(_)) => Place::Details,
            (None, None) => Place::Table,
        }
    }

    /// Says something for a while.
    pub fn say(&mut self, text: impl Into<String>) {
        self.message = Some(Message {
            text: text.into(),
            is_error: false,
            until: Instant::now() + MESSAGE_TIME,
        });
    }

    /// Says what went wrong.
    pub fn fail(&mut self, text: impl Into<String>) {
        self.say(text);
        if let Some(message) = &mut self.message {
            message.is_error = true;
        }
    }

    /// What a deed is done to: the process in detail, those that are marked, or the one under the cursor.
    pub fn targets(&self) -> Vec<Id> {
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
