//! Sources of snapshots and of the machine's numbers.

mod cgroups;
mod live;
mod memory;
mod past;
mod recorded;
mod stored;

use std::time::Duration;

use fastproc::{Fields, Host, cgroups as library};
use fastproc_columns::Lookup;
use fastproc_history::read::History;

pub use self::{
    live::Live,
    past::{Goal, Past, minutes},
};
use self::{memory::Memory, stored::Stored};
use crate::{error::Error, machine::Gauge, observation::View};

/// A history whose last walk is older, in microseconds, is not one of the last minutes.
const RECENT: i64 = 120_000_000;

/// A sequence of snapshots.
#[derive(Debug)]
pub struct Feed {
    /// This machine, unless only a history is shown.
    live: Option<Box<Live>>,
    /// The last minutes of this machine.
    memory: Box<Memory>,
    /// What was, while that is shown.
    past: Option<Box<Past>>,
    /// This machine, or the one on which a history is read.
    host: Host,
}

impl Feed {
    /// Shows this machine.
    pub fn live(live: Live) -> Self {
        Self {
            host: live.host().clone(),
            live: Some(Box::new(live)),
            memory: Box::default(),
            past: None,
        }
    }

    /// Shows what a history has of a time in microseconds since 1970; by default its last walk.
    pub fn history(
        history: History,
        time: Option<i64>,
        fields: Fields,
        host: Host,
    ) -> Result<Self, Error> {
        let stored = Stored::History(Box::new(history));
        let mut past = Past::new(stored, None, fields, host.clone());
        past.go(time.map_or(Goal::Step(-1), Goal::At))?;
        Ok(Self {
            live: None,
            memory: Box::default(),
            past: Some(Box::new(past)),
            host,
        })
    }

    /// Shows what was before now: of this history, if it has the last minutes, or what is in memory. Returns whether there is
    /// something.
    pub fn look_back(
        &mut self,
        goal: Goal,
        history: Option<History>,
        fields: Fields,
        lookup: &mut Lookup,
    ) -> Result<bool, Error> {
        let Some(view) = self.live.as_ref().and_then(|live| live.view()) else {
            return Ok(false);
        };
        let now = view.machine.get(Gauge::Calendar).unwrap_or(0) / 1000;
        let now = i64::try_from(now).unwrap_or(0);
        let recent = history.and_then(|mut history| {
            let (last, _) = history.around(now).ok()?;
            (now - last? < RECENT).then_some(history)
        });
        let stored = if let Some(history) = recent {
            Stored::History(Box::new(history))
        } else {
            self.memory.look_up(&view, lookup);
            Stored::Memory(std::mem::take(&mut self.memory))
        };
        let mut past = Past::new(stored, Some(now), fields, self.host.clone());
        let went = past.go(goal);
        self.past = Some(Box::new(past));
        if !matches!(went, Ok(true)) {
            self.look_ahead();
        }
        went
    }

    /// Shows this machine again. Returns false if only a history is shown.
    pub fn look_ahead(&mut self) -> bool {
        let is_live = self.live.is_some();
        if let Some(past) = self.past.take_if(|_| is_live)
            && let Stored::Memory(memory) = past.into_source()
        {
            self.memory = memory;
        }
        is_live
    }

    /// Continues with the next snapshot. Returns whether there was one.
    pub fn step(&mut self) -> Result<bool, Error> {
        match (&mut self.past, &mut self.live) {
            (Some(past), _) => past.go(Goal::Step(1)),
            (None, Some(live)) => live.step().map(|()| true),
            (None, None) => Ok(false),
        }
    }

    /// Keeps the last snapshot in memory. `interval`: the time to the next one.
    pub fn keep(&mut self, interval: Duration, lookup: &Lookup) {
        let view = self.live.as_ref().and_then(|live| live.view());
        if let Some(view) = view.filter(|_| self.past.is_none()) {
            let hides = !lookup.sees_all && !view.snapshot.stats().source.is_guarded();
            let interval = interval.as_micros() as i64;
            self.memory.push(&view, interval, lookup, hides);
        }
    }

    /// Continues with the next snapshot of cgroups, if they are needed. After an error they are no longer read.
    pub fn step_cgroups(&mut self) -> Result<(), library::Error> {
        self.now().map_or(Ok(()), Live::step_cgroups)
    }

    /// Sets the groups of fields to collect from now on. Returns whether that made another snapshot.
    pub fn need(&mut self, needs: Fields) -> Result<bool, Error> {
        if let Some(past) = &mut self.past {
            return past.need(needs);
        }
        let is_new = self.now().map_or(Ok(false), |live| live.need(needs))?;
        if is_new {
            self.memory.skip();
        }
        Ok(is_new)
    }

    /// Has these values of cgroups collected from now on, or none. Returns whether there is a snapshot of this machine for that.
    pub fn need_cgroups(&mut self, needs: Option<library::Fields>) -> Result<bool, Error> {
        match (&mut self.past, &mut self.live) {
            (Some(past), _) => past.need_cgroups(needs.is_some()).map(|()| false),
            (None, Some(live)) => Ok(live.need_cgroups(needs)?),
            (None, None) => Ok(false),
        }
    }

    /// The last snapshot; `None` if there is none yet.
    pub fn view(&self) -> Option<View<'_>> {
        match (&self.past, &self.live) {
            (Some(past), _) => past.view(),
            (None, live) => live.as_ref()?.view(),
        }
    }

    /// The machine.
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Why exits are unknown.
    pub fn exits_refused(&self) -> Option<String> {
        let live = self.live.as_ref().filter(|_| self.is_live());
        live.and_then(|live| live.exits_refused())
    }

    /// The name of the source.
    pub fn name(&self) -> &'static str {
        match (&self.past, &self.live) {
            (Some(past), _) => past.source().name(),
            (None, live) => live.as_ref().map_or("", |live| live.name()),
        }
    }

    /// Whether processes can be read in detail, and sent signals.
    pub const fn is_live(&self) -> bool {
        self.past.is_none()
    }

    /// What was, if that is shown.
    pub fn past(&mut self) -> Option<&mut Past> {
        self.past.as_deref_mut()
    }

    /// This machine, if that is shown.
    fn now(&mut self) -> Option<&mut Live> {
        self.live.as_deref_mut().filter(|_| self.past.is_none())
    }
}
