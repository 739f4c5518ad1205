//! The table of cgroups and one cgroup in detail: what is chosen of them, and what they did.

use std::{collections::HashSet, error::Error};

use fastproc::cgroups::Fields;
use fastproc_columns::{
    FilterError, UnknownField,
    cgroups::{self, Column, Filter, Lookup, Row, Rows, Sort},
};

use crate::{history::History, settings::CgroupSettings, window::Window};

/// The table.
#[derive(Debug)]
pub struct Table {
    /// The columns, in their order.
    pub columns: Vec<&'static Column>,
    /// Whether they may be left out where there is no room.
    pub may_drop: bool,
    /// The order.
    pub sort: Sort,
    /// Which rows to show.
    pub filter: Option<Filter>,
    /// Cgroups whose descendants are not shown.
    pub folded: HashSet<u64>,
    /// The rows that can be seen.
    pub window: Window,
    /// The id of the cgroup that the cursor was on when rows were last drawn.
    pub selected: Option<u64>,
    /// The id of the cgroup that a search found, which the cursor follows until it is moved.
    pub follow: Option<u64>,
    /// The cgroup that is shown in detail.
    pub details: Option<Details>,
}

impl Table {
    /// Creates it from settings.
    pub fn new(settings: &CgroupSettings) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut table = Self {
            columns: Vec::new(),
            may_drop: false,
            sort: settings.sort.parse()?,
            filter: None,
            folded: HashSet::new(),
            window: Window::default(),
            selected: None,
            follow: None,
            details: None,
        };
        table.set_columns(&settings.columns.join(","))?;
        table.set_filter(&settings.filter)?;
        Ok(table)
    }

    /// Sets the columns by name; an empty list selects the defaults that fit. Returns the names that were given.
    pub fn set_columns(&mut self, names: &str) -> Result<Vec<String>, UnknownField> {
        let names = names.split(',').map(str::trim);
        let own: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        self.columns = if own.is_empty() {
            cgroups::defaults(true)
        } else {
            let found: Result<_, _> = own.iter().map(|name| cgroups::find(name)).collect();
            found?
        };
        self.may_drop = own.is_empty();
        Ok(own.into_iter().map(Into::into).collect())
    }

    /// Sets the filter; an empty one shows everything.
    pub fn set_filter(&mut self, text: &str) -> Result<(), FilterError> {
        self.filter = match text.trim() {
            "" => None,
            text => Some(text.parse()?),
        };
        Ok(())
    }

    /// The groups of fields that columns, order, filter and details need.
    pub fn needs(&self) -> Fields {
        let begin = if self.details.is_some() {
            Fields::ALL_BUT_AVERAGES
        } else {
            Fields::empty()
        };
        let columns = self.columns.iter().map(|column| column.needs);
        let filter = self.filter.iter().map(Filter::needs);
        columns
            .chain(filter)
            .fold(begin | self.sort.needs(), Fields::union)
    }

    /// Brings rows in order, and leaves out those that are not to be shown.
    pub fn pick(&self, rows: &mut Rows<'_>, tree: bool) {
        let tree = tree.then_some(&self.folded);
        rows.arrange(Some(&self.sort), tree, self.filter.as_ref());
    }

    /// Moves the cursor to the cgroup that it follows.
    pub fn find_followed(&mut self, rows: &Rows<'_>) {
        let Some(id) = self.follow else {
            return;
        };
        match rows.iter().position(|row| row.cgroup.id() == id) {
            Some(place) => self.window.cursor = place,
            None => self.follow = None,
        }
    }

    /// Moves the cursor to the next cgroup whose path contains a text, in letters of either case. Returns whether there is one.
    pub fn seek(&mut self, rows: &Rows<'_>, text: &str, direction: i32) -> bool {
        let needle = text.to_lowercase();
        let count = rows.len();
        // Round about, and itself last.
        let place = |step: usize| match direction {
            ..0 => (self.window.cursor + count - step) % count,
            _ => (self.window.cursor + step) % count,
        };
        let has = |&place: &usize| {
            let path = rows.get(place).map(|row| row.cgroup.path());
            let path = String::from_utf8_lossy(path.unwrap_or_default());
            path.to_lowercase().contains(&needle)
        };
        let found = (1..=count).map(place).find(has);
        self.window.cursor = found.unwrap_or(self.window.cursor);
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
