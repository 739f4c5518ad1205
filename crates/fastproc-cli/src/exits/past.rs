//! `fastproc exits --from`: exits of a history.

use fastproc_columns::Field;
use fastproc_history::read::{Exited, Line};

use super::Stream;
use crate::{
    failure::Failure,
    history::{
        fields::{self, Of},
        when::{Folder, tell_damage, tell_gaps, tell_lost},
    },
    output::OutputError,
};

/// The table of several boots has no common time since boot.
#[derive(Debug, thiserror::Error)]
#[error(
    "the machine was booted in that time, and one table cannot count from two boots; leave out --sort and --top, or give \
     the time of one boot"
)]
struct Booted;

/// Checks that the history keeps these fields.
pub fn check(fields: impl Iterator<Item = &'static Field>) -> Result<(), Failure> {
    fields::check(fields, Of::Exits)
}

/// Shows the exits of a time in microseconds since 1970.
pub fn show(
    stream: &mut Stream,
    folder: &Folder,
    time: (i64, i64),
    heading: bool,
    quiet: bool,
) -> Result<(), Failure> {
    let mut history = folder.open()?;
    let lacks = history.lacks_of_exits(time.0, time.1);
    let lacks = lacks.inspect_err(|_| tell_damage(&history))?;
    if !quiet {
        tell_gaps(time.0, lacks.first, &lacks.gaps);
        tell_lost(lacks.lost_exits, ["", "these are not all"]);
    }
    if stream.gathered.is_none() && heading {
        stream.head()?;
    }
    let (mut result, mut boot) = (Ok(()), None);
    history.exits_of(time, |exited| {
        if result.is_ok() {
            result = take(stream, &exited, &mut boot);
        }
    })?;
    tell_damage(&history);
    result
}

fn take(stream: &mut Stream, exited: &Exited, boot: &mut Option<Box<str>>) -> Result<(), Failure> {
    if *boot != exited.boot_id {
        let before = std::mem::replace(boot, exited.boot_id.clone());
        if before.is_some() && stream.gathered.is_some() {
            return Err(Booted.into());
        }
    }
    if let Some(time) = exited.boot_time {
        stream.lookup.set_boot_time(time);
    }
    exited.texts.keep(&mut stream.lookup);
    let line = exited.line.as_ref().map(Line::get);
    let line = line.filter(|line| !line.bytes.is_empty());
    stream
        .show_dated_or_not(&exited.exit, line)
        .map_err(|error: OutputError| error.into())
}
