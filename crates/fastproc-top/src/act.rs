//! Applies actions to the state, and returns as an [`Effect`] what must happen outside of it.

mod cgroups;
mod prompts;

use crate::{
    details::{Details, Page},
    group::GroupBy,
    id::Id,
    keys::{self, Action, Key, Place},
    overlay::{List, Overlay, ProcessAction, Prompt},
    state::State,
    target::Target,
    window::Window,
};

/// An effect outside of the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Quit the program.
    Quit,
    /// Quit unless more keys follow: the rest of pasted text must not reach the shell.
    QuitIfLast,
    /// Suspend the program.
    Suspend,
    /// Redraw the screen.
    Redraw,
    /// Refresh now.
    Refresh,
    /// Change processes.
    Do(ProcessAction, Vec<Target>),
    /// Write the settings.
    Save,
    /// Move by this many walks.
    Step(i32),
    /// Move by this many minutes.
    Minutes(i32),
    /// Go to the next spike of the load, or the one before.
    Spike(i32),
    /// Go to where this process begins, or ends.
    Life(Id, i32),
    /// Go to this time.
    GoTo(String),
    /// Mark the process at the cursor and its descendants.
    MarkTree,
    /// Show a list of the users.
    Users,
    /// Show a list of what to group by.
    Groups,
    /// Report whether exited processes can be shown.
    Exited,
}

impl State {
    /// Handles a key.
    pub fn key(&mut self, key: Key) -> Option<Effect> {
        // A user who types on has seen why something was refused; pasted text goes on by itself.
        if !self.is_burst {
            self.message.take_if(|message| message.is_error);
        }
        let place = self.place();
        if let Some(action) = keys::action(place, key) {
            if action == Action::Quit && self.is_burst && key.character().is_some() {
                return Some(Effect::QuitIfLast);
            }
            return self.act(place, action);
        }
        if let (Some(Overlay::Prompt { text, error, .. }), Some(character)) =
            (&mut self.overlay, key.character())
            && !character.is_control()
            && text.len() < 4096
        {
            text.push(character);
            *error = None;
            self.search_while_typing();
        } else if let (Some(Overlay::List(list)), Some(character)) =
            (&mut self.overlay, key.character())
            && list.typed.len() < 64
        {
            list.typed.push(character);
            list.find();
        }
        None
    }

    /// Moves to the first match of what was typed so far.
    fn search_while_typing(&mut self) {
        if let Some(Overlay::Prompt {
            prompt: Prompt::Search,
            text,
            ..
        }) = &self.overlay
        {
            self.search.clone_from(text);
            self.seek = (!text.is_empty()).then_some(0);
        }
    }

    /// Performs an action, as if a key of the current place had it.
    #[cfg(test)]
    pub fn do_there(&mut self, action: Action) {
        self.act(self.place(), action);
    }

    /// Handles pasted text.
    pub fn paste(&mut self, pasted: &str) {
        if let Some(Overlay::Prompt { text, error, .. }) = &mut self.overlay {
            let room = 4096_usize.saturating_sub(text.len());
            text.extend(pasted.chars().filter(|c| !c.is_control()).take(room));
            *error = None;
            self.search_while_typing();
        }
    }

    fn act(&mut self, place: Place, action: Action) -> Option<Effect> {
        match action {
            Action::Quit => return Some(Effect::Quit),
            Action::Suspend => return Some(Effect::Suspend),
            Action::Redraw => return Some(Effect::Redraw),
            Action::Help => self.overlay = Some(Overlay::Help(Window::default())),
            Action::Kill => self.ask_signal(),
            Action::Renice => self.ask(Prompt::Nice, String::new()),
            Action::Pause => self.paused = !self.paused,
            Action::Step(by) => {
                self.paused |= self.is_past;
                return Some(Effect::Step(by));
            }
            Action::Minutes(by) => return Some(Effect::Minutes(by)),
            Action::Spike(by) => return Some(Effect::Spike(by)),
            Action::Life(by) => match self.selected_ids().first() {
                Some(id) => return Some(Effect::Life(*id, by)),
                None => self.fail("no process is selected"),
            },
            Action::GoTo => self.ask(Prompt::Time, String::new()),
            Action::Cgroups => self.switch(),
            Action::Search => self.ask(Prompt::Search, String::new()),
            Action::Found(direction) if !self.search.is_empty() => self.seek = Some(direction),
            Action::Cpus => self.settings.each_cpu = !self.settings.each_cpu,
            Action::Header => self.settings.header = !self.settings.header,
            Action::Colour => self.settings.colour = !self.settings.colour,
            Action::Interval => self.ask(Prompt::Interval, String::new()),
            Action::Save if self.is_burst => self.fail(prompts::TOO_FAST),
            Action::Save => return Some(Effect::Save),
            _ => {
                return match place {
                    Place::Table => self.act_on_table(action),
                    Place::Details => self.act_on_details(action),
                    Place::Cgroups => self.act_on_cgroups(action),
                    Place::Cgroup => {
                        self.act_on_cgroup(action);
                        None
                    }
                    _ => self.act_on_overlay(action),
                };
            }
        }
        None
    }

    fn act_on_table(&mut self, action: Action) -> Option<Effect> {
        let settings = &mut self.settings;
        match action {
            Action::Move(_) | Action::Page(_) | Action::First | Action::Last => {
                self.follow = None;
                scroll(&mut self.chosen.window, action);
            }
            Action::Tree => {
                settings.tree = !settings.tree;
                (settings.threads, settings.group) = (false, None);
                self.renew_columns();
            }
            Action::Threads if self.is_past => self.fail("threads are not recorded"),
            Action::Threads => {
                settings.threads = !settings.threads;
                (settings.tree, settings.group) = (false, None);
                self.renew_columns();
            }
            Action::Group => return Some(Effect::Groups),
            Action::Fold => self.fold(),
            Action::KernelThreads => {
                settings.kernel_threads = !settings.kernel_threads;
                let text = shown(settings.kernel_threads);
                self.say(format!("kernel threads are {text}"));
            }
            Action::Idle => {
                settings.idle = !settings.idle;
                let text = shown(settings.idle);
                self.say(format!("processes that used no CPU are {text}"));
            }
            Action::Exited => {
                settings.exited = !settings.exited;
                if settings.exited {
                    return Some(Effect::Exited);
                }
                self.say(
                    "processes that exited are only counted, in the second line; x shows them",
                );
            }
            Action::CommandLines => self.toggle_command_lines(),
            Action::Paths => {
                let shows = !self.shows_paths();
                self.settings.paths = Some(shows);
                self.say(format!("folders of programs are {}", shown(shows)));
            }
            Action::Follow => self.follow = self.selected.filter(|_| self.follow.is_none()),
            Action::FollowPid => self.ask(Prompt::Pid, String::new()),
            Action::Mark => {
                if let Some(id) = self.selected {
                    if !self.marked.remove(&id) {
                        self.marked.insert(id);
                    }
                    self.follow = None;
                    self.chosen.window.step(1);
                }
            }
            Action::MarkTree => return Some(Effect::MarkTree),
            Action::Unmark => self.marked.clear(),
            Action::Details => self.open(Page::Overview),
            Action::Files => self.open(Page::Files),
            Action::Environment => self.open(Page::Environment),
            Action::NiceBy(by) => self.confirm(ProcessAction::NiceBy(by)),
            Action::Refresh => return Some(Effect::Refresh),
            Action::User => return Some(Effect::Users),
            Action::Back => self.step_back(),
            Action::Filter => self.ask(Prompt::Filter, self.typed_filter()),
            _ => {
                let asked = self.chosen.act(action, self.settings.words());
                self.overlay = asked.or(self.overlay.take());
            }
        }
        None
    }

    /// Undoes the last of the choices that hide rows or move the cursor.
    fn step_back(&mut self) {
        if self.follow.is_some() || !self.search.is_empty() {
            (self.follow, self.search) = (None, String::new());
        } else if let Some((by, filter)) = self.opened.take() {
            // It was valid before.
            let _ = self.set_filter(&filter);
            self.settings.group = Some(by);
        } else if self.settings.group.is_some() {
            self.group_by(None);
        } else if self.settings.filter.is_empty() {
            self.say("there is nothing to go back from; q quits");
        } else {
            let _ = self.set_filter("");
        }
    }

    pub(super) fn group_by(&mut self, by: Option<GroupBy>) {
        let settings = &mut self.settings;
        settings.group = by;
        (settings.tree, settings.threads) = (false, false);
        self.chosen.window = Window::default();
        self.renew_columns();
    }

    fn act_on_details(&mut self, action: Action) -> Option<Effect> {
        let details = self.details.as_mut()?;
        match action {
            Action::Tab(by) => {
                let pages = Page::ALL;
                let at = pages.iter().position(|&page| page == details.page)?;
                let next = (at as i32 + by).rem_euclid(pages.len() as i32);
                details.turn(pages[next as usize]);
            }
            Action::Files => details.turn(Page::Files),
            Action::Environment => details.turn(Page::Environment),
            Action::Fields => details.turn(Page::Fields),
            Action::Refresh => details.lines = None,
            Action::Back => self.details = None,
            _ => move_page(&mut details.window, action),
        }
        None
    }

    fn act_on_overlay(&mut self, action: Action) -> Option<Effect> {
        match (self.overlay.as_mut()?, action) {
            (overlay, Action::Back | Action::Refuse) => {
                if matches!(
                    overlay,
                    Overlay::Prompt {
                        prompt: Prompt::Search,
                        ..
                    }
                ) {
                    (self.follow, self.search, self.seek) = (None, String::new(), None);
                    self.cgroups.follow = None;
                }
                let goes_back =
                    matches!(overlay, Overlay::Question { .. }) && action == Action::Back;
                self.overlay = self.before.take().filter(|_| goes_back);
            }
            (_, Action::Accept) => return self.accept(),
            (Overlay::List(list), Action::Mark) => list.toggle(),
            (Overlay::List(list), Action::Side(by)) => list.shift(by),
            (Overlay::List(list), Action::Delete) => {
                list.typed.pop();
                list.find();
            }
            (Overlay::List(List { window, .. }), action) => scroll(window, action),
            (Overlay::Help(window), action) => move_page(window, action),
            (Overlay::Prompt { text, error, .. }, Action::Delete) => {
                text.pop();
                *error = None;
                self.search_while_typing();
            }
            (Overlay::Prompt { text, error, .. }, Action::DeleteLine) => {
                text.clear();
                *error = None;
                self.search_while_typing();
            }
            _ => {}
        }
        None
    }

    fn open(&mut self, page: Page) {
        if let (Some(by), Some(key)) = (self.settings.group, self.selected_group.as_deref()) {
            let Some(filter) = by.filter(key) else {
                self.fail("no filter matches exactly these processes");
                return;
            };
            let before = self.settings.filter.clone();
            let filter = match before.as_str() {
                "" => filter,
                before => format!("({before}) && {filter}"),
            };
            match self.set_filter(&filter) {
                Ok(()) => {
                    self.opened = Some((by, before));
                    self.settings.group = None;
                    self.chosen.window = Window::default();
                }
                Err(error) => self.fail(error.to_string()),
            }
        } else if let Some(id) = self.selected {
            self.details = Some(Details::new(id, page));
        }
    }

    fn fold(&mut self) {
        if !self.settings.tree {
            self.fail("only a tree can be folded (F5)");
        } else if let Some(id) = self.selected
            && !self.chosen.folded.remove(&id.pid)
        {
            self.chosen.folded.insert(id.pid);
        }
    }

    fn renew_columns(&mut self) {
        let names = self.settings.columns.join(",");
        // They were valid before.
        let _ = self.set_columns(&names);
        self.follow = self.follow.filter(|_| self.settings.group.is_none());
    }

    fn toggle_command_lines(&mut self) {
        let names = self.chosen.columns.iter().map(|field| match field.name {
            "cmdline" => "comm",
            "comm" => "cmdline",
            name => name,
        });
        let names: Vec<_> = names.collect();
        let may_drop = self.chosen.may_drop;
        let names = names.join(",");
        if self.set_columns(&names).is_ok() {
            self.chosen.may_drop = may_drop;
        }
    }
}

/// Moves the cursor of a list.
fn scroll(window: &mut Window, action: Action) {
    match action {
        Action::Move(by) => window.step(by),
        Action::Page(by) => window.page(by),
        Action::First => window.cursor = 0,
        Action::Last => window.cursor = window.rows.saturating_sub(1),
        _ => {}
    }
}

/// Scrolls a page, which has no cursor.
fn move_page(window: &mut Window, action: Action) {
    let mut by = |lines: isize| window.top = window.top.saturating_add_signed(lines);
    match action {
        Action::Move(lines) => by(lines as isize),
        Action::Page(pages) => {
            let page = window.height.saturating_sub(1).max(1) as isize;
            by(pages as isize * page);
        }
        Action::First => window.top = 0,
        // It is drawn as far down as there are lines.
        Action::Last => window.top = usize::MAX,
        _ => {}
    }
}

fn shown(is: bool) -> &'static str {
    if is { "shown" } else { "hidden" }
}

#[cfg(test)]
mod tests;
