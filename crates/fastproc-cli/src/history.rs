//! `fastproc history`: what is there of the past, and options of commands that look back.

pub mod fields;
mod report;
#[cfg(test)]
mod tests;
mod waits;
pub mod when;

use std::{io::Write, process::ExitCode};

use clap::Subcommand;
use fastproc_columns::parse_instant;
use fastproc_history::read::History;

use self::{
    report::Report,
    when::{Folder, tell, tell_damage},
};
use crate::{
    NO,
    failure::{Failure, chain},
    output::{Output, TextOrJson},
    privileges,
};

const AFTER_HELP: &str = "\
Examples:
  fastproc history
      Show what is there
  fastproc ps --at 'yesterday 03:12' --sort -rss
      Show the processes of that time
  fastproc top --at 03:12
      Show the screen of that time, and go back and forward
  fastproc ps --from 03:00 --to 03:20 --sort -time
      Show what used CPU time between the two, the processes that ended too
  fastproc exits --from 03:00 --to 03:20 --filter 'status != 0'
      Show what failed
  fastproc history waits --from 03:00 --to 03:20
      Count what threads waited for in the kernel, or for a CPU
  fastproc history save --from 03:00 --to 04:00 incident
      Keep these hours when the recorder removes the others
  fastproc ps --at 03:12 --history /var/lib/fastproc/history/saved/incident
      Look at them later, or on another machine

A history is a folder of Parquet files, which fastproc record writes. DuckDB, Polars, pandas, Spark and others read them
as they are: host=NAME/date=…/hour=…/TABLE.parquet, in UTC.

Exit status:
  0  success
  1  check found damage, or nothing is there
  2  the command line is invalid, or the history could not be read";

/// Show what a history has: times, gaps, and the size of each table.
///
/// fastproc record writes a history: all processes each second, and each exit. fastproc ps --at, ps --from and exits --from
/// look back.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    folder: Folder,

    #[command(flatten)]
    written: TextOrJson,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Read every file, and say what is damaged.
    Check {
        #[command(flatten)]
        folder: Folder,
    },
    /// Count what threads waited for, if fastproc record --waits has recorded that.
    Waits {
        /// From this time on; the default is the beginning.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_instant)]
        from: Option<i64>,

        /// To before this time; the default is the end.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_instant)]
        to: Option<i64>,

        #[command(flatten)]
        folder: Folder,

        #[command(flatten)]
        written: TextOrJson,
    },
    /// Keep the hours of a time for good, as a history in saved/NAME of the folder.
    Save {
        /// From this time on.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_instant)]
        from: i64,

        /// Up to this time.
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_instant)]
        to: i64,

        /// The name of the folder.
        name: String,

        #[command(flatten)]
        folder: Folder,
    },
}

/// Shows what is there, or does what the subcommand says.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    privileges::drop()?;
    match &args.command {
        None => show(args),
        Some(Command::Check { folder }) => check(&args.folder.or(folder)),
        Some(Command::Waits {
            from,
            to,
            folder,
            written,
        }) => {
            let mut history = args.folder.or(folder).open()?;
            let time = (from.unwrap_or(0), to.unwrap_or(i64::MAX / 2));
            let is_json = written.is_json() || args.written.is_json();
            let mut output = Output::default();
            let any = waits::write(&mut history, time, is_json, &mut output)?;
            output.finish()?;
            tell_damage(&history);
            if !any {
                tell("no waits were recorded then; fastproc record --waits does");
            }
            Ok(ExitCode::from(if any { 0 } else { NO }))
        }
        Some(Command::Save {
            from,
            to,
            name,
            folder,
        }) => {
            let mut history = args.folder.or(folder).open()?;
            let path = history.save((*from, *to), name)?;
            let mut output = Output::default();
            let (checked, _) = write_damage([History::open(&path, None)?], &mut output)?;
            let path = path.display();
            writeln!(output, "{path}: {checked}")?;
            output.finish()?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn show(args: &Args) -> Result<ExitCode, Failure> {
    let mut reports = Vec::new();
    for mut history in histories(&args.folder)? {
        reports.push(Report::new(&mut history)?);
        tell_damage(&history);
    }
    let mut output = Output::default();
    report::write(&reports, args.written.is_json(), &mut output)?;
    output.finish()?;
    let is_empty = reports.iter().all(Report::is_empty);
    Ok(if is_empty {
        ExitCode::from(NO)
    } else {
        ExitCode::SUCCESS
    })
}

/// That of each host of a folder, or of the one that is named.
fn histories(args: &Folder) -> Result<Vec<History>, Failure> {
    let hosts = match &args.host {
        Some(_) => Vec::new(),
        None => History::hosts(args.path())?,
    };
    if hosts.is_empty() {
        return Ok(vec![args.open()?]);
    }
    let opened = hosts
        .iter()
        .map(|host| History::open(args.path(), Some(host)));
    Ok(opened.collect::<Result<_, _>>()?)
}

fn check(args: &Folder) -> Result<ExitCode, Failure> {
    let mut output = Output::default();
    let (checked, is_damaged) = write_damage(histories(args)?, &mut output)?;
    writeln!(output, "{checked}")?;
    output.finish()?;
    Ok(ExitCode::from(if is_damaged { NO } else { 0 }))
}

/// Reads all files, and writes what is damaged. Returns how many they are, and whether something is.
fn write_damage(
    histories: impl IntoIterator<Item = History>,
    output: &mut impl Write,
) -> Result<(String, bool), Failure> {
    let (mut files, mut bytes, mut damaged) = (0, 0, 0);
    for history in histories {
        for entry in history.entries()? {
            let path = entry.path.display();
            match history.check(&entry) {
                Ok(found) => {
                    damaged += usize::from(!found.is_empty());
                    for error in found {
                        writeln!(output, "{path}: {}", chain(&error))?;
                    }
                }
                // The recorder removes files meanwhile.
                Err(error) => tell(&format!("{path}: {}", chain(&error))),
            }
            files += 1;
            bytes += entry.bytes;
        }
    }
    let checked = format!("{files} files of {bytes} bytes checked, {damaged} of them damaged");
    Ok((checked, damaged > 0))
}
