//! `fastproc ps --at`, and `--from` with `--to`: processes of a history.

use fastproc::{Fields, Host};
use fastproc_columns::{Field, Lookup};
use fastproc_history::read::{Moment, Window};

use super::{args::Args, plan::UsageError, screen::Screen};
use crate::{
    failure::Failure,
    history::{
        fields::{self, Of},
        when::{tell_damage, tell_gaps, tell_lost},
    },
};

/// What is shown of a history.
pub enum Past {
    /// The processes at a time.
    At(Box<Moment>),
    /// What processes did between two times.
    Between(Box<Window>),
}

impl Args {
    /// What the arguments choose of a history.
    pub(super) fn looks_back(&self) -> Result<Option<Of>, Failure> {
        match (self.at, self.when.from) {
            (Some(_), _) => Ok(Some(Of::Moment)),
            (None, Some(_)) => Ok(Some(Of::Window)),
            (None, None) => Ok(self.when.folder.check("--at").map(|()| None)?),
        }
    }
}

impl Past {
    /// Reads these groups of fields.
    pub fn read(args: &Args, fields: Fields) -> Result<Self, Failure> {
        let mut history = args.when.folder.open()?;
        let past = match (args.at, args.when.times()) {
            (Some(at), _) => history.at(at, fields).map(|at| Self::At(at.into())),
            (None, times) => {
                let (from, to) = times.unwrap_or_default();
                history
                    .between(from, to, fields)
                    .map(|window| Self::Between(window.into()))
            }
        };
        tell_damage(&history);
        let past = past?;
        if let (Self::Between(window), false) = (&past, args.quiet) {
            tell_lacks(window, args.when.from.unwrap_or_default());
        }
        Ok(past)
    }

    pub fn lookup(&self) -> Result<Lookup, Failure> {
        let host = Host::read()?;
        Ok(match self {
            Self::At(moment) => moment.lookup(host),
            Self::Between(window) => window.lookup(host),
        })
    }

    /// Shows it. Returns whether it had a row.
    pub fn show(&self, screen: &mut Screen) -> Result<bool, Failure> {
        match self {
            Self::At(moment) => screen.show(&moment.snapshot(), None, None),
            Self::Between(window) => screen.show_rows(&window.snapshot(), window.rows()),
        }
    }

    /// Of when it is, in microseconds since 1970.
    pub fn time(&self) -> (Option<i64>, i64) {
        match self {
            Self::At(moment) => (None, moment.walk.time),
            Self::Between(window) => (Some(window.first.time), window.last.time),
        }
    }
}

/// Checks that a history keeps these fields, and that it has what is asked.
pub fn check(
    of: Of,
    threads: bool,
    asked: impl Iterator<Item = &'static Field>,
) -> Result<(), Failure> {
    if threads {
        return Err(UsageError::PastThreads.into());
    }
    fields::check(asked, of)
}

/// Says what the sums of a window lack.
fn tell_lacks(window: &Window, from: i64) {
    tell_gaps(from, window.first.time, &window.gaps);
    let means = [
        ": their processes are as they were last seen",
        "processes that lived shortly are missing",
    ];
    tell_lost(window.lost_exits, means);
}
