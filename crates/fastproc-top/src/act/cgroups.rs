//! What keys do to the table of cgroups, and to one cgroup in detail.

use super::{Effect, move_page, scroll};
use crate::{
    cgroups::Details,
    keys::Action,
    state::{Choice, Prompt, State},
};

impl State {
    /// From processes to cgroups, or back.
    pub(super) fn switch(&mut self) {
        if self.is_replay {
            return self.fail("a recording has no cgroups");
        }
        let shown = &mut self.settings.cgroups.shown;
        *shown = !*shown;
        (self.search, self.seek) = (String::new(), None);
    }

    pub(super) fn act_on_cgroups(&mut self, action: Action) -> Option<Effect> {
        let table = &mut self.cgroups;
        match action {
            Action::Move(_) | Action::Page(_) | Action::First | Action::Last => {
                table.follow = None;
                scroll(&mut table.window, action);
            }
            Action::Side(by) => {
                let left = table.window.left.saturating_add_signed(by as i16);
                table.window.left = left.min(2000);
            }
            Action::LeftEdge => table.window.left = 0,
            Action::SortBy(name) => self.sort_cgroups_by(name, None),
            Action::ChooseSort => self.ask_sort_of_cgroups(),
            Action::SortColumn(by) => {
                let sorted = table.sort.first().0.name;
                let mut columns = table.columns.iter();
                let now = columns.position(|column| column.name == sorted);
                let last = table.columns.len().saturating_sub(1);
                let next = now.map_or(0, |at| at.saturating_add_signed(by as isize).min(last));
                if let Some(column) = table.columns.get(next).copied() {
                    self.sort_cgroups_by(column.name, None);
                }
            }
            Action::Reverse => {
                let (column, descending) = table.sort.first();
                self.sort_cgroups_by(column.name, Some(!descending));
            }
            Action::Tree => self.settings.cgroups.tree = !self.settings.cgroups.tree,
            Action::Fold if !self.settings.cgroups.tree => {
                self.fail("only a tree can be folded (F5)");
            }
            Action::Fold => {
                if let Some(id) = table.selected
                    && !table.folded.remove(&id)
                {
                    table.folded.insert(id);
                }
            }
            Action::Columns => {
                let names: Vec<_> = table.columns.iter().map(|column| column.name).collect();
                let names = names.join(",");
                self.ask(Prompt::Columns, names);
            }
            Action::Filter => self.ask(Prompt::Filter, self.settings.cgroups.filter.clone()),
            Action::Details => table.details = table.selected.map(Details::new),
            Action::Refresh => return Some(Effect::Refresh),
            Action::Back => {
                (table.follow, self.search) = (None, String::new());
                let _ = self.set_cgroup_filter("");
            }
            _ => {}
        }
        None
    }

    pub(super) fn act_on_cgroup(&mut self, action: Action) {
        let Some(details) = &mut self.cgroups.details else {
            return;
        };
        match action {
            Action::Tab(_) => details.turn(),
            Action::Back => self.cgroups.details = None,
            _ => move_page(&mut details.window, action),
        }
    }

    /// Sorts cgroups by this column, by default with the largest first if it is a number.
    pub fn sort_cgroups_by(&mut self, name: &str, descending: Option<bool>) {
        let Ok(column) = fastproc_columns::cgroups::find(name) else {
            return;
        };
        let descending = descending.unwrap_or(column.is_largest_first());
        let sign = if descending { "-" } else { "" };
        let text = format!("{sign}{name}");
        if let Ok(sort) = text.parse() {
            self.cgroups.sort = sort;
            self.settings.cgroups.sort = text;
        }
    }

    pub(super) fn set_cgroup_filter(&mut self, text: &str) -> Result<(), String> {
        let set = self.cgroups.set_filter(text);
        set.map_err(|error| error.to_string())?;
        self.settings.cgroups.filter = text.trim().into();
        Ok(())
    }

    pub(super) fn set_cgroup_columns(&mut self, names: &str) -> Result<(), String> {
        let own = self.cgroups.set_columns(names);
        self.settings.cgroups.columns = own.map_err(|error| error.to_string())?;
        Ok(())
    }

    fn ask_sort_of_cgroups(&mut self) {
        let columns = fastproc_columns::cgroups::COLUMNS.iter();
        let now = self.cgroups.sort.first().0.name;
        let at = columns.clone().position(|column| column.name == now);
        let items = columns.map(|column| {
            let line = format!("{:<20} {}", column.name, column.help);
            (line, Choice::Sort(column.name))
        });
        self.list("Sort by", items.collect(), at.unwrap_or(0));
    }
}
