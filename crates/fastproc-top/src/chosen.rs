//! What is chosen of a table, of processes or of cgroups: its columns, its order and its rows.

use std::{collections::HashSet, error::Error};

use fastproc_columns::{Field, Filter, FilterError, Sort, Subject, UnknownField};

use crate::{
    keys::Action,
    overlay::{Choice, List, Overlay, Prompt},
    window::Window,
};

/// The same in words, which the settings file keeps.
#[derive(Debug)]
pub struct Words<'a> {
    /// The columns; empty: the defaults that fit.
    pub columns: &'a mut Vec<String>,
    /// The order.
    pub sort: &'a mut String,
    /// Which rows to show; empty: all.
    pub filter: &'a mut String,
}

/// What is chosen.
#[derive(Debug)]
pub struct Chosen<S: Subject> {
    /// The columns, in their order.
    pub columns: Vec<&'static Field<S>>,
    /// Whether they may be left out where there is no room.
    pub may_drop: bool,
    /// The order.
    pub sort: Sort<S>,
    /// Which rows to show.
    pub filter: Option<Filter<S>>,
    /// Rows whose descendants are not shown.
    pub folded: HashSet<S::Id>,
    /// The rows that can be seen.
    pub window: Window,
}

impl<S: Subject> Chosen<S> {
    /// Creates it from the words of the settings.
    pub fn new(
        words: Words<'_>,
        defaults: Vec<&'static Field<S>>,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut chosen = Self {
            columns: Vec::new(),
            may_drop: false,
            sort: words.sort.parse()?,
            filter: None,
            folded: HashSet::new(),
            window: Window::default(),
        };
        let Words {
            columns, filter, ..
        } = words;
        chosen.set_columns(&columns.join(","), defaults, columns)?;
        chosen.set_filter(&filter.clone(), filter)?;
        Ok(chosen)
    }

    /// Sets the columns by name; an empty list selects the defaults.
    pub fn set_columns(
        &mut self,
        names: &str,
        defaults: Vec<&'static Field<S>>,
        words: &mut Vec<String>,
    ) -> Result<(), UnknownField> {
        let names = names.split(',').map(str::trim);
        let own: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        self.columns = if own.is_empty() {
            defaults
        } else {
            let found: Result<_, _> = own.iter().map(|name| Field::find(name)).collect();
            found?
        };
        self.may_drop = own.is_empty();
        *words = own.into_iter().map(Into::into).collect();
        Ok(())
    }

    /// Sets the filter; an empty one shows everything.
    pub fn set_filter(&mut self, text: &str, words: &mut String) -> Result<(), FilterError> {
        let text = text.trim();
        self.filter = match text {
            "" => None,
            text => Some(text.parse()?),
        };
        *words = text.into();
        Ok(())
    }

    /// Sorts by this field; by default with the largest value first if it is a number.
    pub fn sort_by(&mut self, name: &str, descending: Option<bool>, words: &mut String) {
        let Ok(field) = Field::<S>::find(name) else {
            return;
        };
        let descending = descending.unwrap_or(field.is_largest_first());
        let sign = if descending { "-" } else { "" };
        let text = format!("{sign}{}", field.name);
        if let Ok(sort) = text.parse() {
            (self.sort, *words) = (sort, text);
            // A process that is followed stays in view.
            (self.window.cursor, self.window.top) = (0, 0);
        }
    }

    /// The name of the first field of the order, and whether its largest value comes first.
    pub fn sorted(&self) -> (&'static str, bool) {
        let (field, descending) = self.sort.first();
        (field.name, descending)
    }

    /// A line for each field, with its choice; those of the columns come first.
    fn fields(&self, choice: impl Fn(&'static Field<S>, bool) -> Choice) -> Vec<(String, Choice)> {
        let is_shown = |field: &Field<S>| self.columns.iter().any(|shown| shown.name == field.name);
        let others = S::fields().iter().filter(|field| !is_shown(field));
        let all = self.columns.iter().copied().chain(others);
        let line = |field: &'static Field<S>| {
            let line = format!("{:<18} {}", field.name, field.help);
            (line, choice(field, is_shown(field)))
        };
        all.map(line).collect()
    }

    /// The groups of fields that columns, order and filter need.
    pub fn needs(&self) -> impl Iterator<Item = S::Fields> {
        let columns = self.columns.iter().map(|field| field.needs);
        let filter = self.filter.iter().map(Filter::needs);
        columns.chain(filter).chain([self.sort.needs()])
    }

    /// Does what keys do to every table. Returns what is asked.
    pub fn act(&mut self, action: Action, words: Words<'_>) -> Option<Overlay> {
        let Words { sort, filter, .. } = words;
        match action {
            Action::Side(by) => {
                let left = self.window.left.saturating_add_signed(by as i16);
                self.window.left = left.min(2000);
            }
            Action::LeftEdge => self.window.left = 0,
            Action::SortBy(name) => self.sort_by(name, None, sort),
            Action::SortColumn(by) => {
                let (now, _) = self.sorted();
                let at = self.columns.iter().position(|field| field.name == now);
                let last = self.columns.len().saturating_sub(1);
                let next = at.map_or(0, |at| at.saturating_add_signed(by as isize).min(last));
                if let Some(field) = self.columns.get(next).copied() {
                    self.sort_by(field.name, None, sort);
                }
            }
            Action::Reverse => {
                let (name, descending) = self.sorted();
                self.sort_by(name, Some(!descending), sort);
            }
            Action::ChooseSort => {
                let (now, _) = self.sorted();
                let items = self.fields(|field, _| Choice::Sort(field.name));
                let at = items
                    .iter()
                    .position(|(_, choice)| *choice == Choice::Sort(now));
                return Some(List::new("Sort by", items, at.unwrap_or(0)).into());
            }
            Action::Columns => {
                let items = self.fields(|field, is_shown| Choice::Column(field.name, is_shown));
                return Some(List::new("Columns", items, 0).into());
            }
            Action::Filter => return Some(Prompt::Filter.with(filter.clone())),
            _ => {}
        }
        None
    }
}
