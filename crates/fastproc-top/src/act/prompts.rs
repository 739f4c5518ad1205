//! Questions, lists and lines of text: what a person answers.

use fastproc_columns::field;

use super::Effect;
use crate::{
    group::GroupBy,
    id::Id,
    settings,
    signals::SIGNALS,
    state::{Asked, Choice, Deed, List, Over, State},
    target::Target,
    window::Window,
};

/// What is pasted must not be taken for commands that change processes or files.
pub(super) const TOO_FAST: &str = "that came faster than keys are typed; press the key again";

impl State {
    pub(super) fn accept(&mut self) -> Option<Effect> {
        if self.is_pasted_answer() {
            if let Some(Over::Prompt { error, .. }) = &mut self.over {
                *error = Some(TOO_FAST.into());
            }
            self.fail(TOO_FAST);
            return None;
        }
        match self.over.take()? {
            Over::List(list) => {
                let (_, choice) = list.items.into_iter().nth(list.window.cursor)?;
                match choice {
                    Choice::Sort(name) => {
                        let descending = field::find(name).is_ok_and(|field| {
                            field.unit.is_right_aligned() && !matches!(name, "pid" | "tid" | "ppid")
                        });
                        self.sort_by(name, descending);
                    }
                    Choice::Signal(signal) => self.question(Deed::Signal(signal)),
                    Choice::User(user) => {
                        let filter = user.and_then(|user| GroupBy::User.filter(user.as_bytes()));
                        if let Err(error) = self.set_filter(&filter.unwrap_or_default()) {
                            self.fail(error.to_string());
                        }
                    }
                }
                None
            }
            Over::Question { deed } => Some(Effect::Do(deed, std::mem::take(&mut self.aim))),
            Over::Help(_) => None,
            Over::Prompt { asked, text, .. } => match self.take(asked, &text) {
                Ok(effect) => effect,
                Err(error) => {
                    let error = Some(error);
                    self.over = Some(Over::Prompt { asked, text, error });
                    None
                }
            },
        }
    }

    /// Takes a line of text. An error says why it is none of what was asked.
    pub(super) fn take(&mut self, asked: Asked, text: &str) -> Result<Option<Effect>, String> {
        let trimmed = text.trim();
        match asked {
            Asked::Filter => self
                .set_filter(trimmed)
                .map_err(|error| error.to_string())?,
            Asked::Columns => self
                .set_columns(trimmed)
                .map_err(|error| error.to_string())?,
            Asked::Search => {
                self.search = text.into();
                self.seek = (!text.is_empty()).then_some(1);
            }
            Asked::Interval => {
                let seconds = trimmed
                    .parse()
                    .ok()
                    .filter(|&s| settings::interval(s).is_some());
                self.settings.interval = seconds.ok_or("give seconds, at least 0.01")?;
                return Ok(Some(Effect::Refresh));
            }
            Asked::Pid => {
                let pid = trimmed.parse().map_err(|_| "that is no process id")?;
                self.follow = Some(Id {
                    pid,
                    tid: pid,
                    start_ns: 0,
                    process_start_ns: 0,
                });
            }
            Asked::Nice => {
                let nice = trimmed
                    .parse()
                    .ok()
                    .filter(|nice| (-20..=19).contains(nice));
                let nice = nice.ok_or("give a number from -20 to 19")?;
                self.question(Deed::Nice(nice));
            }
            Asked::Time => return Ok(Some(Effect::GoTo(trimmed.into()))),
        }
        Ok(None)
    }

    pub(super) fn ask(&mut self, asked: Asked, text: String) {
        if asked == Asked::Nice && !self.take_aim() {
            return;
        }
        let error = None;
        self.over = Some(Over::Prompt { asked, text, error });
    }

    pub(super) fn ask_signal(&mut self) {
        if !self.take_aim() {
            return;
        }
        // Whichever of its threads was chosen, it is for the process, and once.
        for target in &mut self.aim {
            *target = Target::of(target.id.process());
        }
        self.aim.dedup();
        let items: Vec<_> = SIGNALS
            .iter()
            .map(|&(number, name)| (format!("{number:>2} SIG{name}"), Choice::Signal(number)))
            .collect();
        let terminate = SIGNALS.iter().position(|&(_, name)| name == "TERM");
        self.list("Signal", items, terminate.unwrap_or(0));
    }

    pub(super) fn ask_sort(&mut self) {
        let (now, _) = self.sort_key();
        let fields = fastproc_columns::FIELDS.iter();
        let items: Vec<_> = fields
            .map(|field| {
                let line = format!("{:<20} {}", field.name, field.help);
                (line, Choice::Sort(field.name))
            })
            .collect();
        let at = items
            .iter()
            .position(|(_, choice)| *choice == Choice::Sort(now));
        self.list("Sort by", items, at.unwrap_or(0));
    }

    /// Shows a list.
    pub fn list(&mut self, title: &'static str, items: Vec<(String, Choice)>, cursor: usize) {
        let window = Window {
            cursor,
            rows: items.len(),
            ..Window::default()
        };
        self.over = Some(Over::List(List {
            title,
            items,
            window,
        }));
    }

    /// Asks before anything is done to the processes that the key meant.
    pub(super) fn deed(&mut self, deed: Deed) {
        if self.take_aim() {
            self.question(deed);
        }
    }

    /// Asks whether to do it to those that were chosen when the key was pressed.
    fn question(&mut self, deed: Deed) {
        self.over = Some(Over::Question { deed });
    }

    /// Fixes what something is to be done to, now that a key asks for it: the table moves on while the person answers.
    fn take_aim(&mut self) -> bool {
        let targets = self.targets();
        if self.is_replay {
            self.fail("these processes are of a recording");
        } else if targets.is_empty() {
            self.fail("there is no process to do it to");
        } else if self.is_burst {
            self.fail(TOO_FAST);
        } else {
            self.aim = targets.into_iter().map(Target::of).collect();
            return true;
        }
        false
    }

    /// Whether an answer that leads to a change of processes came as no person types.
    fn is_pasted_answer(&self) -> bool {
        let changes = match &self.over {
            Some(Over::Question { .. }) => true,
            Some(Over::Prompt { asked, .. }) => *asked == Asked::Nice,
            Some(Over::List(list)) => {
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
