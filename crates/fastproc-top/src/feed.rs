//! Sources of snapshots and of the machine's numbers.

mod cgroups;
mod live;
mod replay;

use fastproc::{Fields, Host, cgroups as library};

pub use self::{live::Live, replay::Replay};
use crate::{error::Error, observation::View};

/// A sequence of snapshots.
#[derive(Debug)]
pub enum Feed {
    /// Snapshots of this machine, now.
    Live(Box<Live>),
    /// Snapshots of a recording.
    Replay(Box<Replay>),
}

impl Feed {
    /// Continues with the next snapshot. Returns whether there was one.
    pub fn step(&mut self) -> Result<bool, Error> {
        match self {
            Self::Live(live) => live.step().map(|()| true),
            Self::Replay(replay) => Ok(replay.step()?),
        }
    }

    /// Continues with the next snapshot of cgroups, if they are needed. After an error they are no longer read.
    pub fn step_cgroups(&mut self) -> Result<(), library::Error> {
        match self {
            Self::Live(live) => live.step_cgroups(),
            Self::Replay(_) => Ok(()),
        }
    }

    /// Sets the groups of fields to collect from now on. Returns whether that made another snapshot.
    pub fn need(&mut self, needs: Fields) -> Result<bool, Error> {
        match self {
            Self::Live(live) => live.need(needs),
            Self::Replay(_) => Ok(false),
        }
    }

    /// Has these values of cgroups collected from now on, or none. Returns whether there is a snapshot for that.
    pub fn need_cgroups(&mut self, needs: Option<library::Fields>) -> Result<bool, library::Error> {
        match self {
            Self::Live(live) => live.need_cgroups(needs),
            Self::Replay(_) => Ok(false),
        }
    }

    /// The last snapshot; `None` if there is none yet.
    pub fn view(&self) -> Option<View<'_>> {
        match self {
            Self::Live(live) => live.view(),
            Self::Replay(replay) => replay.view(),
        }
    }

    /// The machine.
    pub fn host(&self) -> &Host {
        match self {
            Self::Live(live) => live.host(),
            Self::Replay(replay) => replay.host(),
        }
    }

    /// Why exits are unknown.
    pub fn exits_refused(&self) -> Option<String> {
        match self {
            Self::Live(live) => live.exits_refused(),
            Self::Replay(_) => None,
        }
    }

    /// The name of the source.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Live(live) => live.name(),
            Self::Replay(_) => "recording",
        }
    }

    /// Whether processes can be read in detail, and sent signals.
    pub const fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }
}
