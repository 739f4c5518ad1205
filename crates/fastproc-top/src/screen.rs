//! The screen as a whole: reads, draws, and reacts to keys.

mod effects;
mod pace;
mod past;
mod text;

use std::{
    env,
    time::{Duration, Instant},
};

use fastproc::Host;
use fastproc_columns::{Lookup, Row};
use fastproc_history::read::History;
use ratatui_crossterm::crossterm::event::{
    Event, KeyEventKind, MouseButton, MouseEvent, MouseEventKind,
};
use signal_hook::consts::SIGHUP;

use crate::{
    act::Effect,
    draw::Painter,
    error::Error,
    feed::{Feed, Live},
    keys::{Key, Place},
    locale,
    options::Options,
    overlay::Overlay,
    settings::Settings,
    state::State,
    terminal::{Input, Terminal},
};

use self::pace::{Pace, QUIET};

/// The time after which command lines and cgroups are read again.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// The delay of a first comparison, before the first interval is over.
const FIRST_LOOK: Duration = Duration::from_millis(250);

/// The longest time by which keys can delay a refresh.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// How the screen ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The user quit.
    ByChoice,
    /// A signal, whose usual effect the program must produce.
    BySignal(i32),
}

/// The screen.
#[derive(Debug)]
pub struct Screen {
    options: Options,
    state: State,
    feed: Feed,
    lookup: Lookup,
    painter: Painter,
    pace: Pace,
    /// When to exit, unless a key comes before.
    leaves_at: Option<Instant>,
    read_again: Instant,
    looks: u64,
    /// This machine's, while the screen looks back.
    now: Option<past::Now>,
}

impl Screen {
    /// Opens the machine or the history.
    pub fn open(options: Options) -> Result<Self, Error> {
        let mut state = State::new(Settings::load(&options)?)?;
        state.word.clone_from(&options.search);
        state.search.clone_from(&options.search.0);
        state.no_colour = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if let Some(path) = &options.settings
            && !options.settings_by_default
            && !path.exists()
        {
            state.say(format!(
                "there is no {}: these are the defaults; W writes it",
                path.display()
            ));
        }
        state.is_ascii = !locale::has_unicode(|name| env::var_os(name));
        let (feed, lookup) = if let Some(place) = &options.past {
            let history = History::open(&place.folder, place.host.as_deref())?;
            let host = Host::read()?;
            let feed = Feed::history(history, place.time, state.needs(), host.clone())?;
            state.look_back();
            (feed, Lookup::recorded(host, 0))
        } else {
            let live = Live::open(options.source, state.needs(), options.shows_first)?;
            let feed = Feed::live(live);
            let mut lookup = Lookup::new(feed.host(), false)?;
            lookup.open_files.read_from(options.source);
            (feed, lookup)
        };
        Ok(Self {
            options,
            state,
            feed,
            lookup,
            painter: Painter::default(),
            pace: Pace::default(),
            leaves_at: None,
            read_again: Instant::now(),
            looks: 0,
            now: None,
        })
    }

    /// Sets whether the kernel would show this process everything, so that nothing must be hidden.
    pub fn set_sees_all(&mut self, sees_all: bool) {
        // A history shows what was recorded.
        self.lookup.sees_all = sees_all || self.state.is_past;
    }

    /// Shows the screen until the user quits.
    pub fn run(&mut self) -> Result<Left, Error> {
        let mut terminal = Terminal::open()?;
        self.fit(terminal.size().0)?;
        let left = match self.watch(&mut terminal) {
            // The terminal disappeared during a write.
            Err(Error::Terminal(_)) if terminal.is_gone() => Ok(Left::BySignal(SIGHUP)),
            left => left,
        };
        drop(terminal);
        left
    }

    fn watch(&mut self, terminal: &mut Terminal) -> Result<Left, Error> {
        self.begin()?;
        self.show(terminal)?;
        let mut due = Instant::now() + self.state.interval().min(FIRST_LOOK);
        // Whether there is a snapshot that has not been drawn yet.
        let mut is_behind = false;
        loop {
            let now = Instant::now();
            let message = self.state.message.as_ref().map(|message| message.until);
            let look = (!self.state.paused).then_some(due);
            let wake = [message, look, self.leaves_at].into_iter().flatten().min();
            let wake = wake.unwrap_or(now + Duration::from_secs(3600));
            let input = terminal
                .wait(wake.saturating_duration_since(now))
                .map_err(Error::Terminal)?;
            let now = Instant::now();
            // A terminal reports a size twice, and each size during a change.
            let is_input = match input {
                Some(Input::Resized) => terminal.is_resized(),
                _ => input.is_some(),
            };
            if self
                .state
                .message
                .take_if(|message| message.until <= now)
                .is_some()
                && !is_input
            {
                self.show(terminal)?;
            }
            if !is_input && self.leaves_at.is_some_and(|at| at <= now) {
                return Ok(Left::ByChoice);
            }
            let is_event = matches!(input, Some(Input::Event(_)));
            let has_more = is_event && terminal.has_more().map_err(Error::Terminal)?;
            match input {
                Some(Input::End(signal)) => return Ok(Left::BySignal(signal)),
                Some(Input::Stop) => terminal.suspend().map_err(Error::Terminal)?,
                Some(Input::Continued) => terminal.resume().map_err(Error::Terminal)?,
                Some(Input::Resized) | None => {}
                Some(Input::Event(event)) => match self.react(&event, has_more) {
                    Some(Effect::Quit) => return Ok(Left::ByChoice),
                    Some(Effect::QuitIfLast) => self.leaves_at = Some(now + QUIET),
                    Some(Effect::Suspend) => terminal.suspend().map_err(Error::Terminal)?,
                    Some(Effect::Redraw) => terminal.forget(),
                    Some(Effect::Refresh) => due = now,
                    Some(effect) => self.perform(effect),
                    None => {}
                },
            }
            // While text arrives quickly, not every character needs a screen.
            let writes = is_input && self.state.place() == Place::Prompt;
            if writes && terminal.has_more().map_err(Error::Terminal)? {
                continue;
            }
            if is_input || is_behind {
                is_behind = false;
                if self.need_cgroups() {
                    due = due.min(Instant::now() + FIRST_LOOK);
                }
                self.show(terminal)?;
                if self.feed.need(self.state.needs())? {
                    self.take_in_past();
                    self.show(terminal)?;
                }
            }
            if is_event {
                self.pace.done(Instant::now());
            }
            // Keys come first, because a snapshot takes longer than their effects. But keys cannot delay it for ever.
            let late = now.saturating_duration_since(due);
            let waits =
                is_input && late < LONGEST_WAIT && terminal.has_more().map_err(Error::Terminal)?;
            if due <= now && !self.state.paused && !waits {
                self.look()?;
                // A key that was pressed meanwhile refers to the screen that is still shown.
                is_behind = terminal.has_more().map_err(Error::Terminal)?;
                if !is_behind {
                    self.show(terminal)?;
                }
                if self.options.count.is_some_and(|count| self.looks > count) {
                    return Ok(Left::ByChoice);
                }
                due = next_due(due, self.state.interval(), Instant::now());
            }
        }
    }

    /// Collects what the columns of a terminal of this width need.
    fn fit(&mut self, width: u16) -> Result<(), Error> {
        self.state.fit(width);
        self.feed.need(self.state.needs()).map(drop)
    }

    /// Takes the first snapshot.
    fn begin(&mut self) -> Result<(), Error> {
        if self.state.is_past {
            self.looks += 1;
        } else {
            self.look()?;
        }
        if self.options.cgroups {
            self.feed.need_cgroups(self.state.needs_of_cgroups())?;
        } else {
            self.need_cgroups();
        }
        if self.state.is_past {
            self.arrive();
        }
        Ok(())
    }

    /// Has the cgroups collected that are shown from now on, or none. Returns whether they are new.
    fn need_cgroups(&mut self) -> bool {
        let needs = self.state.needs_of_cgroups();
        if needs.is_none() {
            self.painter.watched_cgroups.clear();
        }
        match self.feed.need_cgroups(needs) {
            Ok(is_new) => is_new,
            Err(error) => {
                self.leave_cgroups(&error);
                false
            }
        }
    }

    /// Shows processes, because cgroups cannot be read.
    fn leave_cgroups(&mut self, error: &impl ToString) {
        self.state.settings.cgroups.shown = false;
        self.state.fail(error.to_string());
        self.painter.watched_cgroups.clear();
    }

    /// Takes a snapshot.
    fn look(&mut self) -> Result<(), Error> {
        self.looks += 1;
        match self.feed.step() {
            Ok(true) => {
                match self.feed.step_cgroups() {
                    Err(error) if self.state.is_text => return Err(error.into()),
                    Err(error) => self.leave_cgroups(&error),
                    Ok(()) => {}
                }
                self.take_in();
                return Ok(());
            }
            Ok(false) if self.look_ahead() => return self.look(),
            Ok(false) => self.state.say("nothing was recorded after this"),
            Err(error @ Error::Past(_)) if !self.state.is_text => self.fail_there(&error),
            Err(error) => return Err(error),
        }
        self.state.paused = true;
        Ok(())
    }

    /// Updates everything that is derived from the snapshot.
    fn take_in(&mut self) {
        let now = Instant::now();
        if self.state.is_past {
            self.take_in_past();
        } else if now >= self.read_again {
            self.lookup.details.renew();
            self.read_again = now + READ_AGAIN;
        }
        if !self.state.is_past && !self.state.is_text {
            self.feed.keep(self.state.interval(), &self.lookup);
        }
        if let Some(view) = self.feed.view() {
            if let Some(cgroups) = &view.cgroups {
                self.painter.look_at_cgroups(cgroups, &self.state);
            }
            let Painter {
                histories, watched, ..
            } = &mut self.painter;
            histories.push(view.machine, view.earlier);
            watched.look(view.snapshot.stats().kernel_end_ns());
            let shown = self.state.details.as_ref().map(|details| details.id);
            if shown.is_some() || self.state.settings.cgroups.shown {
                let rows = Row::all(&view.snapshot, view.before, false);
                watched.keep_up(rows, shown);
            }
        }
    }

    fn show(&mut self, terminal: &mut Terminal) -> Result<(), Error> {
        let Self {
            state,
            feed,
            lookup,
            painter,
            ..
        } = self;
        let title = text::title(state, feed);
        let Some(view) = feed.view() else {
            return Ok(());
        };
        if feed.is_live() {
            lookup.set_time(view.snapshot.stats().kernel_end_ns());
        }
        let sees_all = lookup.sees_all;
        lookup.sees_all |= view.snapshot.stats().source.is_guarded();
        let shown = terminal.show(|sheet| painter.paint(sheet, &view, state, lookup, &title));
        lookup.sees_all = sees_all;
        shown.map_err(Error::Terminal)
    }

    fn react(&mut self, event: &Event, has_more: bool) -> Option<Effect> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.leaves_at = None;
                self.state.is_burst = self.pace.take(Instant::now(), has_more);
                let keys = Key::all_of(key);
                let effect = keys.filter_map(|key| self.state.key(key)).last();
                self.settle_targets();
                effect
            }
            Event::Paste(text) => {
                self.state.paste(text);
                None
            }
            Event::Mouse(mouse) => {
                self.mouse(*mouse);
                None
            }
            _ => None,
        }
    }

    fn mouse(&mut self, mouse: MouseEvent) {
        let place = self.state.place();
        let by = match mouse.kind {
            MouseEventKind::ScrollUp => -3,
            MouseEventKind::ScrollDown => 3,
            MouseEventKind::Down(MouseButton::Left)
                if matches!(place, Place::Table | Place::Cgroups) =>
            {
                return self.click(mouse.column, mouse.row);
            }
            _ => return,
        };
        self.state.scroll_by(by);
    }

    fn click(&mut self, column: u16, line: u16) {
        let (state, painter) = (&mut self.state, &self.painter);
        let is_of_cgroups = state.settings.cgroups.shown;
        let places = if is_of_cgroups {
            &painter.cgroup_grid.places
        } else {
            &painter.table.grid.places
        };
        if line == painter.table_line {
            let mut places = places.iter();
            let Some((_, name)) = places.find(|(place, _)| place.contains(&column)) else {
                return;
            };
            let (now, descending) = state.sorted();
            state.sort_by(name, (now == *name).then_some(!descending));
        } else if line > painter.table_line {
            let window = if is_of_cgroups {
                state.cgroups.follow = None;
                &mut state.cgroups.chosen.window
            } else {
                state.follow = None;
                &mut state.chosen.window
            };
            let row = window.top + usize::from(line - painter.table_line) - 1;
            if row < window.rows && row < window.top + window.height {
                window.cursor = row;
            }
        }
    }
}

impl State {
    /// Handles the wheel.
    fn scroll_by(&mut self, by: i32) {
        match (&mut self.overlay, &mut self.details) {
            (Some(Overlay::List(list)), _) => list.window.step(by),
            (Some(Overlay::Help(window)), _) => {
                window.top = window.top.saturating_add_signed(by as isize);
            }
            (Some(_), _) => {}
            (None, _) if self.settings.cgroups.shown => {
                if let Some(shown) = &mut self.cgroups.details {
                    shown.window.top = shown.window.top.saturating_add_signed(by as isize);
                } else {
                    self.cgroups.follow = None;
                    self.cgroups.chosen.window.step(by);
                }
            }
            (None, Some(shown)) => {
                shown.window.top = shown.window.top.saturating_add_signed(by as isize);
            }
            (None, None) => {
                self.follow = None;
                self.chosen.window.step(by);
            }
        }
    }
}

/// The time of the next refresh: a whole number of intervals after the last one. Missed intervals are skipped.
fn next_due(due: Instant, interval: Duration, now: Instant) -> Instant {
    let late = now.saturating_duration_since(due).as_secs_f64();
    let intervals = (late / interval.as_secs_f64() + 0.5).floor() + 1.0;
    due + interval.mul_f64(intervals)
}
