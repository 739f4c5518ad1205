//! `fastproc cgroups --at`, and `--from` with `--to`: cgroups of a history.

use fastproc::Fields;
use fastproc_columns::{
    cgroups::{Column, Members, Rows},
    parse_instant,
};
use fastproc_history::read::{Cgroups, Error};

use crate::{
    failure::{Failure, chain},
    history::{
        fields::{check_in, kept_of_cgroups},
        when::{When, dated, tell, tell_damage, tell_gaps},
    },
};

/// Of when cgroups are shown.
#[derive(Debug, clap::Args)]
pub struct Times {
    /// Show the cgroups as they were at this time, as fastproc record has kept them.
    ///
    /// They are as the last walk before it saw them. --from has the forms of a time. Fields that the history does not keep
    /// are refused.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_instant, help_heading = "Looking back",
          conflicts_with_all = ["from", "to"])]
    at: Option<i64>,

    #[command(flatten)]
    when: When,
}

/// Cgroups of a history.
pub struct Past {
    cgroups: Cgroups,
    members: Option<Members>,
}

impl Times {
    /// Whether a history is asked, and if so whether for a window.
    pub fn asks_for_window(&self) -> Result<Option<bool>, Failure> {
        match (self.at, self.when.from) {
            (None, None) => Ok(self.when.folder.check("--at").map(|()| None)?),
            (at, _) => Ok(Some(at.is_none())),
        }
    }

    /// Reads what these columns show.
    pub fn read(&self, columns: &[&Column], quiet: bool) -> Result<Past, Failure> {
        let mut history = self.when.folder.open()?;
        let cgroups = match (self.at, self.when.times()) {
            (Some(at), _) => history.cgroups_at(at),
            (None, times) => {
                let (from, to) = times.unwrap_or_default();
                history.cgroups_between(from, to)
            }
        };
        let counts = columns.iter().any(|column| column.counts_processes);
        let moment = match &cgroups {
            Ok(cgroups) if counts => Some(history.at(cgroups.walk.time, Fields::CGROUP)),
            _ => None,
        };
        let members = match moment.transpose() {
            Err(error @ Error::Damaged { .. }) => {
                tell(&format!("processes are not counted: {}", chain(&error)));
                None
            }
            moment => moment?.and_then(|moment| Members::new(&moment.snapshot(), None)),
        };
        tell_damage(&history);
        let cgroups = cgroups?;
        if !quiet {
            let from = self.when.from.unwrap_or_default();
            if let Some(first) = &cgroups.first {
                tell_gaps(from, first.time, &cgroups.gaps);
            }
            if cgroups.snapshot().is_empty() {
                tell("cgroups were not recorded then");
            }
        }
        Ok(Past { cgroups, members })
    }
}

impl Past {
    pub fn rows(&self) -> Rows<'_> {
        let Self { cgroups, members } = self;
        Rows::new(cgroups.snapshot(), cgroups.before(), members.as_ref())
    }

    /// How a JSON document begins.
    pub fn document(&self) -> String {
        let first = self.cgroups.first.as_ref().map(|walk| walk.time);
        format!(
            r#"{{"source":"history","boottime_ns":{}{},"cgroups":["#,
            self.cgroups.snapshot().began_ns(),
            dated(first, self.cgroups.walk.time),
        )
    }
}

/// Checks that a history keeps these columns, at a time or over a window.
pub fn check(window: bool, columns: impl Iterator<Item = &'static Column>) -> Result<(), Failure> {
    check_in(&kept_of_cgroups(window), columns)
}
