//! Looking back: from one walk to another.

use std::path::Path;

use fastproc_columns::{InstantError, Lookup, parse_date, parse_instant};
use fastproc_history::{
    folder::{USUAL, host_name},
    read::{self, History},
};

use super::Screen;
use crate::{
    details::Watched, error::Error, feed::Goal, history::LENGTH, machine::Gauge,
    view::header::Histories,
};

const SECOND: i64 = 1_000_000;

/// What the screen of this machine needs again when it no longer looks back.
#[derive(Debug)]
pub(super) struct Now {
    lookup: Lookup,
    histories: Histories,
    watched: Watched,
    threads: bool,
    cgroups: bool,
}

impl Screen {
    /// Goes there, or says why that is impossible.
    pub(super) fn travel(&mut self, goal: Goal) {
        let Some(past) = self.feed.past() else {
            return self.look_back(goal);
        };
        let went = past.go(goal);
        match went {
            Ok(true) if goal == Goal::Step(1) => self.take_in(),
            Ok(true) => self.arrive(),
            Ok(false) if matches!(goal, Goal::Spike { .. }) => {
                self.state.say("the load has no spike in that direction");
            }
            Ok(false) if goal.is_forward() && self.look_ahead() => {
                if let Err(error) = self.look() {
                    self.state.fail(error.to_string());
                }
            }
            Ok(false) => self.state.say("nothing was recorded in that direction"),
            Err(error) => self.fail_there(&error),
        }
    }

    /// Says why something cannot be shown. The user can still go past it.
    pub(super) fn fail_there(&mut self, error: &Error) {
        self.state.fail(match error {
            // Its path may be too long for a line.
            Error::Past(read::Error::Damaged { .. }) => {
                "what was recorded there is damaged; fastproc history check lists it".into()
            }
            // In a line of 80 columns.
            Error::Past(read::Error::Gap { before, after, .. }) => {
                let nearest = [before, after]
                    .into_iter()
                    .flatten()
                    .map(|&time| read::shown(time));
                let nearest = nearest.collect::<Vec<_>>().join(" and ");
                format!("nothing was recorded then; nearest: {nearest}")
            }
            error => format!("cannot go there: {error}"),
        });
    }

    /// Shows what was, instead of this machine now.
    fn look_back(&mut self, goal: Goal) {
        if goal.is_forward() {
            return self.state.say("this is now; , goes back");
        }
        let host = host_name(rustix::system::uname().nodename().to_bytes());
        let history = History::open(Path::new(USUAL), Some(&host)).ok();
        let needs = self.state.needs();
        let went = self.feed.look_back(goal, history, needs, &mut self.lookup);
        match went {
            Ok(true) => {
                let recorded = Lookup::recorded(self.feed.host().clone(), 0);
                let (settings, painter) = (&self.state.settings, &mut self.painter);
                self.now = Some(Now {
                    lookup: std::mem::replace(&mut self.lookup, recorded),
                    histories: std::mem::take(&mut painter.histories),
                    watched: std::mem::take(&mut painter.watched),
                    threads: settings.threads,
                    cgroups: settings.cgroups.shown,
                });
                self.state.look_back();
                self.arrive();
            }
            Ok(false) => self.state.say("nothing is kept of what was before"),
            Err(error) => self.fail_there(&error),
        }
    }

    /// Shows this machine now again, unless only a history is shown.
    pub(super) fn look_ahead(&mut self) -> bool {
        if !self.feed.look_ahead() {
            return false;
        }
        if let Some(now) = self.now.take() {
            self.lookup = now.lookup;
            (self.painter.histories, self.painter.watched) = (now.histories, now.watched);
            self.state.look_ahead(now.threads, now.cgroups);
        }
        true
    }

    /// Takes in a walk that does not follow the one before: what is drawn over time begins again.
    pub(super) fn arrive(&mut self) {
        self.painter.watched.clear();
        self.painter.watched_cgroups.clear();
        self.painter.histories = Histories::default();
        if let Some(past) = self.feed.past() {
            for (machine, earlier) in past.earlier(LENGTH) {
                self.painter.histories.push(machine, earlier);
            }
        }
        self.take_in();
    }

    /// Uses the texts of the walk that is shown.
    pub(super) fn take_in_past(&mut self) {
        let Some(past) = self.feed.past() else {
            return;
        };
        if let Some(text) = past.take_told() {
            self.state.say(text);
        }
        if let Some(lookup) = past.lookup() {
            self.lookup = lookup;
        }
    }

    /// Goes to a time that was typed: the nearest one of the day that it names.
    pub(super) fn go_to(&mut self, text: &str) {
        if text == "now" {
            if !self.look_ahead() {
                // The end of a history.
                self.travel(Goal::By(i64::MAX));
            }
            return;
        }
        let calendar = |gauge: Option<u64>| gauge.map_or(0, |ns| (ns / 1_000) as i64);
        let shown = self
            .feed
            .view()
            .map(|view| view.machine.get(Gauge::Calendar));
        let now = parse_instant("now").unwrap_or(i64::MAX);
        match instant(text, calendar(shown.flatten()), now) {
            Ok(time) => self.travel(Goal::At(time)),
            Err(error) => self.state.fail(error.to_string()),
        }
    }
}

/// A time that was typed, in microseconds since 1970: without a day the nearest one to what is shown that is not after now.
fn instant(text: &str, shown: i64, now: i64) -> Result<i64, InstantError> {
    let near = shown.saturating_add(12 * 3600 * SECOND).min(now);
    let day = parse_date(text, near.div_euclid(SECOND)).map(|(first, _)| first * SECOND);
    day.map_or_else(|| parse_instant(text), Ok)
}

#[cfg(test)]
mod tests {
    use fastproc_columns::number::write_local;

    use super::*;

    #[test]
    fn a_time_of_day_is_the_nearest_that_is_not_in_the_future() {
        const HOUR: i64 = 3600 * SECOND;
        // Noon of a day in January, in which no clock is set.
        let shown = 1_768_305_600 * SECOND;
        for (later, now, expected) in [
            (4 * HOUR, shown + 100 * HOUR, 4 * HOUR),
            (-4 * HOUR, shown + 100 * HOUR, -4 * HOUR),
            (4 * HOUR, shown + HOUR, -20 * HOUR),
            (0, shown, 0),
        ] {
            let mut text = Vec::new();
            write_local((shown + later) / SECOND, "%H:%M:%S", &mut text);
            let text = String::from_utf8(text).expect("text");
            assert_eq!(instant(&text, shown, now), Ok(shown + expected), "{text}");
        }
    }
}
