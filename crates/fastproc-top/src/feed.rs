//! Sources of snapshots and of the machine's numbers.

mod cgroups;
mod live;
mod past;
mod stored;

use fastproc::{Fields, Host, cgroups as library};

pub use self::{
    live::Live,
    past::{Goal, Past, minutes},
    stored::Stored,
};
use crate::{error::Error, observation::View};

/// A sequence of snapshots.
#[derive(Debug)]
pub struct Feed {
    /// This machine, unless only a history is shown.
    live: Option<Box<Live>>,
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
            past: None,
        }
    }

    /// Shows only what was.
    pub fn past(past: Past, host: Host) -> Self {
        Self {
            live: None,
            past: Some(Box::new(past)),
            host,
        }
    }

    /// Continues with the next snapshot. Returns whether there was one.
    pub fn step(&mut self) -> Result<bool, Error> {
        match (&mut self.past, &mut self.live) {
            (Some(past), _) => past.go(Goal::Step(1)),
            (None, Some(live)) => live.step().map(|()| true),
            (None, None) => Ok(false),
        }
    }

    /// Continues with the next snapshot of cgroups, if they are needed. After an error they are no longer read.
    pub fn step_cgroups(&mut self) -> Result<(), library::Error> {
        self.now().map_or(Ok(()), Live::step_cgroups)
    }

    /// Sets the groups of fields to collect from now on. Returns whether that made another snapshot.
    pub fn need(&mut self, needs: Fields) -> Result<bool, Error> {
        match &mut self.past {
            Some(past) => past.need(needs),
            None => self.now().map_or(Ok(false), |live| live.need(needs)),
        }
    }

    /// Has these values of cgroups collected from now on, or none. Returns whether there is a snapshot for that.
    pub fn need_cgroups(&mut self, needs: Option<library::Fields>) -> Result<bool, library::Error> {
        self.now()
            .map_or(Ok(false), |live| live.need_cgroups(needs))
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
            (None, Some(live)) => live.name(),
            _ => "history",
        }
    }

    /// Whether processes can be read in detail, and sent signals.
    pub const fn is_live(&self) -> bool {
        self.past.is_none()
    }

    /// What was, if that is shown.
    pub fn looks_back(&mut self) -> Option<&mut Past> {
        self.past.as_deref_mut()
    }

    /// This machine, if that is shown.
    fn now(&mut self) -> Option<&mut Live> {
        self.live.as_deref_mut().filter(|_| self.past.is_none())
    }
}
