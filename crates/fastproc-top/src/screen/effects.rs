//! Effects of keys outside of the state: on processes, on the settings file, in what was.

use fastproc::Fields;
use fastproc_columns::{Names, Row};

use super::Screen;
use crate::{
    act::Effect,
    feed::{Goal, minutes},
    group::{GroupBy, Groups},
    id::Id,
    overlay::{Choice, Overlay, ProcessAction},
    signals,
    target::Target,
};

impl Screen {
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Do(action, targets) => self.change_processes(action, &targets),
            Effect::Save => self.save(),
            Effect::Users => self.list_users(),
            Effect::Groups => self.list_groups(),
            Effect::Exited => self.say_of_exited(),
            Effect::MarkTree => self.mark_tree(),
            Effect::Step(by) => self.travel(Goal::Step(by)),
            Effect::Minutes(by) => self.travel(Goal::By(minutes(by))),
            Effect::Spike(by) => self.travel(Goal::Spike { forward: by > 0 }),
            Effect::Life(id, by) => {
                self.travel(if by > 0 {
                    Goal::End(id)
                } else {
                    Goal::Begin(id)
                });
                if self.state.is_past && self.state.details.is_none() {
                    self.state.follow = Some(id);
                }
            }
            Effect::GoTo(text) => self.go_to(&text),
            _ => {}
        }
    }

    /// Looks up the names of a key's targets, and before a question drops those that have exited since the key was
    /// pressed.
    pub(super) fn settle_targets(&mut self) {
        let Some(view) = self.feed.view() else {
            return;
        };
        let targets = &mut self.state.targets;
        for target in targets.iter_mut() {
            target.look_up(&view, &mut self.lookup);
        }
        if !matches!(self.state.overlay, Some(Overlay::Question { .. })) {
            return;
        }
        let before = targets.len();
        let mut ended = String::new();
        targets.retain(|target| {
            let is_gone = matches!(
                signals::look_for(target.id, &view, &mut self.lookup),
                Err(signals::Error::Gone(_))
            );
            if is_gone {
                ended = format!("{} has ended", target.describe(40));
            }
            !is_gone
        });
        let dropped = before - targets.len();
        if dropped > 1 {
            ended = format!("{dropped} of the {before} processes have ended");
        }
        if targets.is_empty() {
            self.state.overlay = None;
        }
        if dropped > 0 {
            self.state.fail(ended);
        }
    }

    fn change_processes(&mut self, action: ProcessAction, targets: &[Target]) {
        let Some(view) = self.feed.view() else {
            return;
        };
        let mut done = 0;
        for target in targets {
            match action.apply(target.id, &view, &mut self.lookup) {
                Ok(()) => done += 1,
                Err(signals::Error::Gone(_)) => {
                    let text = format!("{} has ended", target.describe(40));
                    self.state.fail(text);
                }
                Err(error @ signals::Error::Refused(_)) => {
                    let text = format!("{} {error}", target.describe(24));
                    self.state.fail(text);
                }
                Err(error) => self.state.fail(error.to_string()),
            }
        }
        if done == targets.len() {
            let whom = if done == 1 { "process" } else { "processes" };
            self.state.say(format!("changed {done} {whom}"));
        }
    }

    fn save(&mut self) {
        let Some(path) = &self.options.settings else {
            return self.state.fail(
                "no folder for a settings file: set HOME or XDG_CONFIG_HOME, or give --settings",
            );
        };
        match self.state.settings.write(path) {
            Ok(()) => {
                let text = format!("settings written to {}", path.display());
                self.state.say(text);
            }
            Err(error) => {
                let text = format!("cannot write {}: {error}", path.display());
                self.state.fail(text);
            }
        }
    }

    /// Lists the users that have processes.
    fn list_users(&mut self) {
        let Some(view) = self.feed.view() else {
            return;
        };
        let users = view.snapshot.iter().filter_map(fastproc::Process::users);
        let mut ids: Vec<u32> = users.map(|of| of.euid).collect();
        ids.sort_unstable();
        ids.dedup();
        let names: &mut Names = &mut self.lookup.users;
        let mut items = vec![("all users".to_owned(), Choice::User(None))];
        items.extend(ids.into_iter().map(|id| {
            let name = String::from_utf8_lossy(names.name(id)).into_owned();
            (name.clone(), Choice::User(Some(name)))
        }));
        if items.len() == 1 {
            return self.state.fail("users were not read; add the column user");
        }
        self.state.list("Processes of", items, 0);
    }

    /// Lists the groupings that have groups here, each with their number.
    fn list_groups(&mut self) {
        let needs = GroupBy::ALL.map(GroupBy::needs);
        let needs = needs.into_iter().fold(self.state.needs(), Fields::union);
        // Without them there are fewer groups.
        let _ = self.feed.need(needs);
        let Some(view) = self.feed.view() else {
            return;
        };
        let now = self.state.settings.group;
        let mut items: Vec<_> = now
            .map(|_| ("no groups".into(), Choice::Group(None)))
            .into_iter()
            .collect();
        let rows: Vec<_> = Row::all(&view.snapshot, view.before, false).collect();
        let mut groups = Groups::default();
        for by in GroupBy::ALL {
            groups.add_up(by, "", false, &rows, &mut self.lookup);
            if groups.known() > 0 {
                let line = format!("{:<16} {:>6}", by.name(), groups.known());
                items.push((line, Choice::Group(Some(by))));
            }
        }
        let at = items
            .iter()
            .position(|(_, choice)| *choice == Choice::Group(now));
        self.state.list("Groups by", items, at.unwrap_or(0));
    }

    /// Reports whether exited processes can be shown.
    fn say_of_exited(&mut self) {
        let state = &mut self.state;
        let lacking = self.feed.past().map_or("", |past| past.lacks_exits());
        if let Some(reason) = self.feed.exits_refused() {
            state.fail(format!("exits are not recorded: {reason}"));
        } else if state.settings.threads {
            state.fail("exited threads are not shown; press H to show processes");
        } else if lacking.is_empty() {
            state.say("processes that exited in the interval are shown, in red; x hides them");
        } else {
            state.fail(lacking);
        }
    }

    fn mark_tree(&mut self) {
        let (Some(view), Some(id)) = (self.feed.view(), self.state.selected) else {
            return;
        };
        if id.find(&view.snapshot).is_none() {
            return self.state.fail(format!("process {} has ended", id.pid));
        }
        let mut marked = vec![id.pid];
        // A parent may have a higher pid than its child, so repeat while there are more.
        let mut before = 0;
        while before < marked.len() {
            before = marked.len();
            for process in view.snapshot.iter() {
                if marked.contains(&process.identity().ppid) && !marked.contains(&process.pid()) {
                    marked.push(process.pid());
                }
            }
        }
        for pid in marked {
            if let Some(process) = view.snapshot.get(pid) {
                self.state.marked.insert(Id::from_row(&Row::new(process)));
            }
        }
    }
}
