//! Where snapshots and the machine's numbers come from.

mod cgroups;
mod live;
mod replay;

use fastproc::{Fields, Host, cgroups as library};

pub use self::{live::Live, replay::Replay};
use crate::{error::Error, observation::View};

/// Snapshots, one after the other.
#[derive(Debug)]
pub enum Feed {
    /// Of this machine, now.
    Live(Box<Live>),
    /// Of a recording.
    Replay(Box<Replay>),
}

impl Feed {
    /// Goes on to the next snapshot. Returns whether there was one.
    pub fn step(&mut self) -> Result<bool, Error> {
        match self {
            Self::Live(live) => live.step().map(|()| true),
            Self::Replay(replay) => Ok(replay.step()?),
        }
    }

    /// Has these groups of fields collected from now on. Returns whether there is another snapshot for that.
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

    /// Why it is not known what exited.
    pub fn exits_refused(&self) -> Option<String> {
        match self {
            Self::Live(live) => live.exits_refused(),
            Self::Replay(_) => None,
        }
    }

    /// A word on where it comes from.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Live(live) => live.name(),
            Self::Replay(_) => "recording",
        }
    }

    /// Whether processes can be asked, and sent signals.
    pub const fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }
}
