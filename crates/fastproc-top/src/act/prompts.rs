//! Lists, prompts and questions, and the effects of the user's answers.

use fastproc_columns::{Needle, parse_interval};

use super::Effect;
use crate::{
    group::GroupBy,
    id::Id,
    overlay::{Choice, List, Overlay, ProcessAction, Prompt},
    signals::SIGNALS,
    state::State,
    target::Target,
};

/// Pasted text must not be taken for commands that change processes or files.
pub(super) const TOO_FAST: &str =
    "ignored: keys came faster than a person types; press the key again";

impl State {
    pub(super) fn accept(&mut self) -> Option<Effect> {
        if self.is_pasted_answer() {
            if let Some(Overlay::Prompt { error, .. }) = &mut self.overlay {
                *error = Some(TOO_FAST.into());
            }
            self.fail(TOO_FAST);
            return None;
        }
        let answered = self.overlay.take()?;
        self.before = Some(answered.clone());
        match answered {
            Overlay::List(list) => {
                if let Some(names) = list.columns() {
                    return self.show_columns(&names);
                }
                let (_, choice) = list.items.into_iter().nth(list.window.cursor)?;
                match choice {
                    Choice::Sort(name) => self.sort_by(name, None),
                    Choice::Signal(signal) => self.question(ProcessAction::Signal(signal)),
                    Choice::Group(by) => self.group_by(by),
                    Choice::Column(..) => {}
                    Choice::User(user) => {
                        let filter = user.and_then(|user| GroupBy::User.filter(user.as_bytes()));
                        if let Err(error) = self.set_filter(&filter.unwrap_or_default()) {
                            self.fail(error.to_string());
                        }
                    }
                }
                None
            }
            Overlay::Question { action } => {
                Some(Effect::Do(action, std::mem::take(&mut self.targets)))
            }
            Overlay::Help(_) => None,
            Overlay::Prompt { prompt, text, .. } => match self.take(prompt, &text) {
                Ok(effect) => effect,
                Err(error) => {
                    let error = Some(error);
                    self.overlay = Some(Overlay::Prompt {
                        prompt,
                        text,
                        error,
                    });
                    None
                }
            },
        }
    }

    /// Applies a line of text. An error says why the text is invalid.
    pub(super) fn take(&mut self, prompt: Prompt, text: &str) -> Result<Option<Effect>, String> {
        let trimmed = text.trim();
        match prompt {
            Prompt::Filter if self.settings.cgroups.shown => self.set_cgroup_filter(trimmed)?,
            Prompt::Filter => self.filter_as_typed(trimmed)?,
            Prompt::Search => {
                self.search = text.into();
                self.seek = (!text.is_empty()).then_some(0);
            }
            Prompt::Interval => {
                let interval = parse_interval(trimmed).map_err(|error| error.to_string())?;
                self.settings.interval = interval.as_secs_f64();
                return Ok(Some(Effect::Refresh));
            }
            Prompt::Pid => {
                let pid = trimmed.parse().map_err(|_| "give a process id, a number")?;
                self.follow = Some(Id {
                    pid,
                    tid: pid,
                    start_ns: 0,
                    process_start_ns: 0,
                });
            }
            Prompt::Nice => {
                let nice = trimmed
                    .parse()
                    .ok()
                    .filter(|nice| (-20..=19).contains(nice));
                let nice = nice.ok_or("give a number from -20 to 19")?;
                self.question(ProcessAction::Nice(nice));
            }
            Prompt::Time => return Ok(Some(Effect::GoTo(trimmed.into()))),
        }
        Ok(None)
    }

    /// Filters by an expression or, as htop does, by a word.
    fn filter_as_typed(&mut self, text: &str) -> Result<(), String> {
        let (word, filter) = &self.word;
        let whole = if text == word {
            filter.clone()
        } else {
            text.replace(&format!("({word})"), &format!("({filter})"))
        };
        let Err(error) = self.set_filter(&whole) else {
            return Ok(());
        };
        let needle = text.parse::<Needle>().ok();
        let is_word = !text.contains([' ', '<', '=', '>', '~']);
        let Some(needle) = needle.filter(|_| is_word) else {
            return Err(error.to_string());
        };
        let filter = needle.filter(0);
        (self.word, self.search) = ((text.into(), filter.clone()), text.into());
        self.set_filter(&filter).map_err(|error| error.to_string())
    }

    /// Shows these columns, unless they are shown already.
    fn show_columns(&mut self, names: &[&str]) -> Option<Effect> {
        let text = names.join(",");
        let is_new = |mut shown: Vec<&str>| {
            shown.dedup();
            shown != names
        };
        // Their names are known.
        if self.settings.cgroups.shown {
            if is_new(
                self.cgroups
                    .chosen
                    .columns
                    .iter()
                    .map(|column| column.name)
                    .collect(),
            ) {
                let _ = self.set_cgroup_columns(&text);
            }
        } else if is_new(self.chosen.columns.iter().map(|field| field.name).collect()) {
            let _ = self.set_columns(&text);
        }
        None
    }

    pub(super) fn ask(&mut self, prompt: Prompt, text: String) {
        if prompt == Prompt::Nice && !self.take_targets() {
            return;
        }
        self.overlay = Some(prompt.with(text));
    }

    pub(super) fn ask_signal(&mut self) {
        if !self.take_targets() {
            return;
        }
        // A signal goes to the process, once, even if several of its threads were selected.
        for target in &mut self.targets {
            *target = Target::new(target.id.process());
        }
        self.targets.dedup();
        let items: Vec<_> = SIGNALS
            .iter()
            .map(|&(number, name)| (format!("{number:>2} SIG{name}"), Choice::Signal(number)))
            .collect();
        let terminate = SIGNALS.iter().position(|&(_, name)| name == "TERM");
        self.list("Signal", items, terminate.unwrap_or(0));
    }

    /// Shows a list.
    pub fn list(&mut self, title: &'static str, items: Vec<(String, Choice)>, cursor: usize) {
        self.overlay = Some(List::new(title, items, cursor).into());
    }

    /// Asks before the selected processes are changed.
    pub(super) fn confirm(&mut self, action: ProcessAction) {
        if self.take_targets() {
            self.before = None;
            self.question(action);
        }
    }

    /// Opens the question.
    fn question(&mut self, action: ProcessAction) {
        self.overlay = Some(Overlay::Question { action });
    }

    /// Fixes the targets when the key is pressed: the table changes while the user answers. Returns whether there are
    /// targets.
    fn take_targets(&mut self) -> bool {
        let targets = self.selected_ids();
        if self.is_past {
            self.fail("what was cannot be changed");
        } else if targets.is_empty() {
            self.fail("no process is selected");
        } else if self.is_burst {
            self.fail(TOO_FAST);
        } else {
            self.targets = targets.into_iter().map(Target::new).collect();
            return true;
        }
        false
    }

    /// Whether an answer that changes processes was pasted.
    fn is_pasted_answer(&self) -> bool {
        let changes = match &self.overlay {
            Some(Overlay::Question { .. }) => true,
            Some(Overlay::Prompt { prompt, .. }) => *prompt == Prompt::Nice,
            Some(Overlay::List(list)) => {
                matches!(
                    list.items.get(list.window.cursor),
                    Some((_, Choice::Signal(_)))
                )
            }
            _ => false,
        };
        changes && self.is_burst
    }
}
