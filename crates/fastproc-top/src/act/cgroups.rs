//! What keys do to the table of cgroups, and to one cgroup in detail.

use fastproc_columns::cgroups::defaults;

use super::{Effect, move_page, scroll};
use crate::{cgroups::Details, keys::Action, state::State};

impl State {
    /// From processes to cgroups, or back.
    pub(super) fn switch(&mut self) {
        let shown = &mut self.settings.cgroups.shown;
        *shown = !*shown;
        (self.search, self.seek) = (String::new(), None);
    }

    pub(super) fn act_on_cgroups(&mut self, action: Action) -> Option<Effect> {
        let table = &mut self.cgroups;
        match action {
            Action::Move(_) | Action::Page(_) | Action::First | Action::Last => {
                table.follow = None;
                scroll(&mut table.chosen.window, action);
            }
            Action::Tree => self.settings.cgroups.tree = !self.settings.cgroups.tree,
            Action::Fold if !self.settings.cgroups.tree => {
                self.fail("only a tree can be folded (F5)");
            }
            Action::Fold => {
                if let Some(id) = table.selected
                    && !table.chosen.folded.remove(&id)
                {
                    table.chosen.folded.insert(id);
                }
            }
            Action::Details => table.details = table.selected.map(Details::new),
            Action::Refresh => return Some(Effect::Refresh),
            Action::Back if table.follow.is_some() || !self.search.is_empty() => {
                (table.follow, self.search) = (None, String::new());
            }
            Action::Back => {
                let _ = self.set_cgroup_filter("");
            }
            _ => {
                let asked = table.chosen.act(action, self.settings.cgroups.words());
                self.overlay = asked.or(self.overlay.take());
            }
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

    pub(super) fn set_cgroup_filter(&mut self, text: &str) -> Result<(), String> {
        let words = self.settings.cgroups.words().filter;
        let set = self.cgroups.chosen.set_filter(text, words);
        set.map_err(|error| error.to_string())
    }

    pub(super) fn set_cgroup_columns(&mut self, names: &str) -> Result<(), String> {
        let words = self.settings.cgroups.words().columns;
        let set = self
            .cgroups
            .chosen
            .set_columns(names, defaults(true), words);
        set.map_err(|error| error.to_string())
    }
}
