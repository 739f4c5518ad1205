//! The user's choices: all state of the screen except the machine's data.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use fastproc::Fields;
use fastproc_columns::{Field, FilterError, Processes, field};

use crate::{
    cgroups,
    chosen::Chosen,
    details::Details,
    error::Error,
    group::GroupBy,
    id::Id,
    keys::Place,
    overlay::Overlay,
    settings::{self, Settings},
    target::Target,
};

/// A terminal with this many columns shows more: parents, input and output.
const WIDE: u16 = 130;
/// A terminal with this many columns shows the folders of programs.
const VERY_WIDE: u16 = 160;

/// The default columns. A narrow terminal leaves out columns from the right, except the last.
const COLUMNS: &str = "pid,user,ni,vsize,rss,state,pcpu,pmem,time,num_threads,processor,cmdline";
/// The default columns of a wide terminal.
const WIDE_COLUMNS: &str =
    "pid,ppid,user,ni,vsize,rss,state,pcpu,pmem,time,num_threads,processor,read/s,write/s,cmdline";

/// The default columns of threads.
const THREAD_COLUMNS: &str = "pid,tid,user,ni,state,pcpu,time,processor,comm";

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
    /// What is chosen of the table of processes.
    pub chosen: Chosen<Processes>,
    /// The grouping of the group that was opened, and the filter before, to which Esc returns.
    pub opened: Option<(GroupBy, String)>,
    /// The word that was typed as a filter, and the filter for it.
    pub word: (String, String),
    /// The text to search for.
    pub search: String,
    /// The columns of the terminal.
    pub width: u16,
    /// The direction in which to search when rows are drawn next.
    pub seek: Option<i32>,
    /// The process that the cursor follows.
    pub follow: Option<Id>,
    /// The marked rows.
    pub marked: HashSet<Id>,
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
    /// The list or prompt before a question, to which Esc returns.
    pub before: Option<Overlay>,
    /// The message to show.
    pub message: Option<Message>,
    /// Whether refreshing is paused.
    pub paused: bool,
    /// Whether what was is shown.
    pub is_past: bool,
    /// Whether the environment disables colour.
    pub no_colour: bool,
    /// Whether tables are written as text, which shows no messages, and in which an empty line ends a table.
    pub is_text: bool,
    /// Whether to draw only ASCII characters.
    pub is_ascii: bool,
}

impl State {
    /// Creates the state from settings.
    pub fn new(mut settings: Settings) -> Result<Self, Error> {
        let defaults = default_columns(settings.threads, 0);
        let chosen = Chosen::new(settings.words(), defaults).map_err(Error::Choice)?;
        let cgroups = cgroups::Table::new(&mut settings.cgroups).map_err(Error::Choice)?;
        Ok(Self {
            chosen,
            opened: None,
            word: Default::default(),
            search: String::new(),
            width: 0,
            seek: None,
            follow: None,
            marked: HashSet::new(),
            selected: None,
            selected_group: None,
            targets: Vec::new(),
            is_burst: false,
            details: None,
            cgroups,
            overlay: None,
            before: None,
            message: None,
            paused: false,
            is_past: false,
            no_colour: false,
            is_text: false,
            is_ascii: false,
            settings,
        })
    }

    /// Shows what was, which has no threads.
    pub fn look_back(&mut self) {
        (self.is_past, self.paused) = (true, true);
        if std::mem::take(&mut self.settings.threads) {
            // They were valid before.
            let _ = self.set_columns(&self.settings.columns.join(","));
            self.say("threads are not recorded; these are processes");
        }
    }

    /// Shows this machine again, with threads or cgroups if it did before.
    pub fn look_ahead(&mut self, threads: bool, cgroups: bool) {
        (self.is_past, self.paused) = (false, false);
        self.settings.cgroups.shown |= cgroups;
        if threads {
            self.settings.threads = true;
            let _ = self.set_columns(&self.settings.columns.join(","));
        }
    }

    /// The refresh interval.
    pub fn interval(&self) -> Duration {
        settings::interval(self.settings.interval).unwrap_or(Duration::from_secs(1))
    }

    /// Sets the columns by name; an empty list selects the defaults that fit.
    pub fn set_columns(&mut self, names: &str) -> Result<(), field::UnknownField> {
        let defaults = default_columns(self.settings.threads, self.width);
        let words = self.settings.words().columns;
        self.chosen.set_columns(names, defaults, words)
    }

    /// Has the default columns fit a terminal of this width.
    pub fn fit(&mut self, width: u16) {
        let was = std::mem::replace(&mut self.width, width);
        if self.chosen.may_drop
            && self.settings.columns.is_empty()
            && (was < WIDE) != (width < WIDE)
        {
            // They are known.
            let _ = self.set_columns("");
        }
    }

    /// Whether the folders of programs are shown.
    pub fn shows_paths(&self) -> bool {
        self.settings.paths.unwrap_or(self.width >= VERY_WIDE)
    }

    /// Sets the filter; an empty one shows everything.
    pub fn set_filter(&mut self, text: &str) -> Result<(), FilterError> {
        self.chosen.set_filter(text, self.settings.words().filter)?;
        self.opened = None;
        Ok(())
    }

    /// The filter as it was typed.
    pub fn typed_filter(&self) -> String {
        let (word, filter) = &self.word;
        self.settings.filter.replace(filter, word)
    }

    /// Sorts what is shown by this field, by default with the largest first if it is a number.
    pub fn sort_by(&mut self, name: &str, descending: Option<bool>) {
        if self.settings.cgroups.shown {
            let words = self.settings.cgroups.words().sort;
            self.cgroups.chosen.sort_by(name, descending, words);
        } else {
            let words = self.settings.words().sort;
            self.chosen.sort_by(name, descending, words);
        }
    }

    /// The name of the field by which the rows that are shown are sorted, and whether its largest value comes first.
    pub fn sorted(&self) -> (&'static str, bool) {
        if self.settings.cgroups.shown {
            self.cgroups.chosen.sorted()
        } else {
            self.chosen.sorted()
        }
    }

    /// The groups of fields that columns, order, filter and details need.
    pub fn needs(&self) -> Fields {
        let mut needs = self.chosen.needs().fold(Fields::TOP, Fields::union);
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

    /// Says that a search found nothing, where the user looks.
    pub fn say_not_found(&mut self) {
        let text = format!("nothing has '{}' in it", self.search.escape_debug());
        match &mut self.overlay {
            Some(Overlay::Prompt { error, .. }) => *error = Some(text),
            _ => self.fail(text),
        }
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

fn default_columns(threads: bool, width: u16) -> Vec<&'static Field> {
    let names = match (threads, width) {
        (true, _) => THREAD_COLUMNS,
        (false, ..WIDE) => COLUMNS,
        _ => WIDE_COLUMNS,
    };
    names.split(',').flat_map(field::find).collect()
}
