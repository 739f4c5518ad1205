//! The table of cgroups and one cgroup in detail: what is chosen of them, and what they did.

use std::error::Error;

use fastproc::cgroups::Fields;
use fastproc_columns::cgroups::{self, Cgroups, Lookup, Row, Rows};

use crate::{chosen::Chosen, history::History, settings::CgroupSettings, window::Window};

/// The table.
#[derive(Debug)]
pub struct Table {
    /// What is chosen of it.
    pub chosen: Chosen<Cgroups>,
    /// The id of the cgroup that the cursor was on when rows were last drawn.
    pub selected: Option<u64>,
    /// The id of the cgroup that a search found, which the cursor follows until it is moved.
    pub follow: Option<u64>,
    /// The cgroup that is shown in detail.
    pub details: Option<Details>,
}

impl Table {
    /// Creates it from settings.
    pub fn new(settings: &mut CgroupSettings) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self {
            chosen: Chosen::new(settings.words(), cgroups::defaults(true))?,
            selected: None,
            follow: None,
            details: None,
        })
    }

    /// The groups of fields that columns, order, filter and details need.
    pub fn needs(&self) -> Fields {
        let begin = if self.details.is_some() {
            Fields::ALL_BUT_AVERAGES
        } else {
            Fields::empty()
        };
        self.chosen.needs().fold(begin, Fields::union)
    }

    /// Brings rows in order, and leaves out those that are not to be shown.
    pub fn pick(&self, rows: &mut Rows<'_>, tree: bool) {
        let tree = tree.then_some(&self.chosen.folded);
        rows.arrange(Some(&self.chosen.sort), tree, self.chosen.filter.as_ref());
    }

    /// Moves the cursor to the cgroup that it follows.
    pub fn find_followed(&mut self, rows: &Rows<'_>) {
        let Some(id) = self.follow else {
            return;
        };
        match rows.iter().position(|row| row.cgroup.id() == id) {
            Some(place) => self.chosen.window.cursor = place,
            None => self.follow = None,
        }
    }

    /// Moves the cursor to the next cgroup whose path contains a text, in letters of either case. Returns whether there is one.
    pub fn seek(&mut self, rows: &Rows<'_>, text: &str, direction: i32) -> bool {
        let needle = text.to_lowercase();
        let has = |place: usize| {
            let path = rows.get(place).map(|row| row.cgroup.path());
            let path = String::from_utf8_lossy(path.unwrap_or_default());
            path.to_lowercase().contains(&needle)
        };
        let found = self.chosen.window.find(rows.len(), direction, has);
        self.chosen.window.cursor = found.unwrap_or(self.chosen.window.cursor);
        if let Some(row) = found.and_then(|place| rows.get(place)) {
            self.follow = Some(row.cgroup.id());
        }
        found.is_some()
    }
}

/// A page of one cgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Its history and its values.
    Overview,
    /// Its processes, and those of its descendants.
    Processes,
}

impl Page {
    /// All, from left to right.
    pub const ALL: [Self; 2] = [Self::Overview, Self::Processes];

    /// Its title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Processes => "Processes",
        }
    }
}

/// The cgroup that is shown, and how.
#[derive(Clone, Debug)]
pub struct Details {
    /// Its id.
    pub id: u64,
    /// Its path, as long as it is known: for when it is removed.
    pub path: Vec<u8>,
    /// The page that is shown.
    pub page: Page,
    /// What of it can be seen.
    pub window: Window,
}

impl Details {
    /// Of this cgroup.
    pub fn new(id: u64) -> Self {
        Self {
            id,
            path: Vec::new(),
            page: Page::Overview,
            window: Window::default(),
        }
    }

    /// Turns to another page.
    pub fn turn(&mut self) {
        self.page = match self.page {
            Page::Overview => Page::Processes,
            Page::Processes => Page::Overview,
        };
        self.window = Window::default();
    }
}

/// The columns that have histories, with what they are called there.
pub const HISTORIES: [(&str, &str); 8] = [
    ("cpu", "CPU"),
    ("throttled", "throttled"),
    ("memory", "memory"),
    ("working_set", "working set"),
    ("read_bytes_per_second", "read"),
    ("write_bytes_per_second", "written"),
    ("memory_some", "memory pressure"),
    ("io_some", "I/O pressure"),
];

/// What a cgroup did, look by look, in the order of [`HISTORIES`].
#[derive(Clone, Debug, Default)]
pub struct Histories(pub [History; HISTORIES.len()]);

impl Histories {
    /// Adds a look, after some that were missed.
    pub fn push(&mut self, row: &Row<'_>, missed: u64) {
        for (history, (name, _)) in self.0.iter_mut().zip(HISTORIES) {
            history.skip(missed);
            let column = cgroups::find(name).ok();
            let value =
                column.and_then(|column| column.value(row, &mut Lookup::default()).number());
            history.push(value);
        }
    }
}
