//! Looking back: from one walk to another.

use fastproc_columns::{parse_date, parse_instant};

use super::Screen;
use crate::{feed::Goal, history::LENGTH, machine::Gauge, view::header::Histories};

const SECOND: i64 = 1_000_000;

impl Screen {
    /// Goes there, or says why that is impossible.
    pub(super) fn travel(&mut self, goal: Goal) {
        let Some(past) = self.feed.looks_back() else {
            return;
        };
        let went = past.go(goal);
        match went {
            Ok(true) if goal == Goal::Step(1) => self.take_in(),
            Ok(true) => self.arrive(),
            Ok(false) => self.state.say("nothing was recorded in that direction"),
            Err(error) => self.state.fail(format!("cannot go there: {error}")),
        }
    }

    /// Takes in a walk that does not follow the one before: what is drawn over time begins again.
    pub(super) fn arrive(&mut self) {
        self.painter.watched.clear();
        self.painter.histories = Histories::default();
        if let Some(past) = self.feed.looks_back() {
            for (machine, earlier) in past.earlier(LENGTH) {
                self.painter.histories.push(machine, earlier);
            }
        }
        self.take_in();
    }

    /// Uses the texts of the walk that is shown.
    pub(super) fn take_in_past(&mut self) {
        let Some(past) = self.feed.looks_back() else {
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
        let calendar = |gauge: Option<u64>| gauge.map_or(0, |ns| (ns / 1_000_000_000) as i64);
        let shown = self
            .feed
            .view()
            .map(|view| view.machine.get(Gauge::Calendar));
        let near = calendar(shown.flatten()) + 12 * 3600;
        let day = parse_date(text, near).map(|(first, _)| first);
        match day.map_or_else(|| parse_instant(text), Ok) {
            Ok(seconds) => self.travel(Goal::At(seconds.saturating_mul(SECOND))),
            Err(error) => self.state.fail(error.to_string()),
        }
    }
}
