//! Where snapshots and the machine's numbers come from.

pub mod exited;
mod live;
mod replay;

use fastproc::{Baseline, Fields, Host, Snapshot};

use self::exited::Exited;

pub use self::{live::Live, replay::Replay};
use crate::{details::Page, error::Error, id::Id, machine::Machine};

/// What there is to be shown: the last snapshot and the one before.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Every process.
    pub snapshot: Snapshot<'a>,
    /// What it is compared with; `None` of the first.
    pub before: Option<&'a Baseline>,
    /// The machine.
    pub machine: &'a Machine,
    /// What that is compared with.
    pub earlier: Option<&'a Machine>,
    /// Processes that exited between the two.
    pub exited: &'a Exited,
    /// Limits and open files, of a recording; else they are read.
    pub pages: Option<&'a Pages>,
}

/// Limits and open files that were recorded.
#[derive(Debug, Default)]
pub struct Pages(std::collections::HashMap<(u32, u64), [Option<Vec<u8>>; 2]>);

impl Pages {
    fn keep(&mut self, page: Page, pid: u32, start_ns: u64, text: Vec<u8>) {
        let of = self.0.entry((pid, start_ns)).or_default();
        of[usize::from(page == Page::Files)] = Some(text);
    }

    /// The lines of a page, or why there are none.
    pub fn read(&self, page: Page, id: Id) -> Result<Vec<Vec<u8>>, String> {
        if page == Page::Environment {
            return Err("environments are not recorded".into());
        }
        let of = self.0.get(&(id.pid, id.start_ns));
        let text = of.and_then(|of| of[usize::from(page == Page::Files)].as_deref());
        let text = text.ok_or("not recorded of this process, or only later in the recording")?;
        Ok(text.split(|&byte| byte == b'\n').map(Into::into).collect())
    }
}

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
