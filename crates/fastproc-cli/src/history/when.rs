//! The options of commands that look back.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use fastproc_columns::{number, parse_instant};
use fastproc_history::{
    folder::USUAL,
    read::{Error, History, shown},
};

use crate::failure;

/// Which history, and which part of it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Looking back")]
pub struct When {
    /// Show what a history has from this time on.
    ///
    /// A time is 03:12 or 03:12:05, which is the last one that has passed, 'yesterday 03:12', '2026-11-30 03:12',
    /// 2026-11-30T03:12:05Z, or -10min; 03:12:05.2 has a part of a second. It is in the time zone TZ, unless it has an offset.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_instant)]
    pub from: Option<i64>,

    /// Up to this time; the default is the last that was recorded.
    #[arg(long, value_name = "TIME", requires = "from", allow_hyphen_values = true, value_parser = parse_instant)]
    pub to: Option<i64>,

    #[command(flatten)]
    pub folder: Folder,
}

/// Which history.
#[derive(Clone, Debug, clap::Args)]
pub struct Folder {
    /// Read the history in this folder; the default is /var/lib/fastproc/history.
    #[arg(long = "history", value_name = "FOLDER")]
    pub path: Option<PathBuf>,

    /// Read that of this host, if the folder has several.
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
}

/// Options of a history without a time.
#[derive(Debug, thiserror::Error)]
#[error("{0} needs a time; give {1}, as in {1} 03:12")]
pub struct NoTime(&'static str, &'static str);

impl Folder {
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(USUAL))
    }

    /// What is given here or, if it is not, there.
    pub fn or(&self, other: &Self) -> Self {
        Self {
            path: self.path.clone().or_else(|| other.path.clone()),
            host: self.host.clone().or_else(|| other.host.clone()),
        }
    }

    pub fn open(&self) -> Result<History, Error> {
        History::open(self.path(), self.host.as_deref())
    }

    /// Checks that the folder is asked for something: `time` names the option that does.
    pub fn check(&self, time: &'static str) -> Result<(), NoTime> {
        match (&self.path, &self.host) {
            (None, None) => Ok(()),
            (Some(_), _) => Err(NoTime("--history", time)),
            (None, Some(_)) => Err(NoTime("--host", time)),
        }
    }
}

impl When {
    /// The times in microseconds since 1970, if there is a first one.
    pub fn times(&self) -> Option<(i64, i64)> {
        Some((self.from?, self.to.unwrap_or(i64::MAX / 2)))
    }
}

/// Of when something is, as members of JSON: `,"from":"…","time":"…"`. Times are in microseconds since 1970.
pub fn dated(from: Option<i64>, time: i64) -> String {
    let mut text = Vec::new();
    for (name, time) in [("from", from), ("time", Some(time))] {
        if let Some(time) = time {
            text.extend_from_slice(format!(r#","{name}":""#).as_bytes());
            number::write_instant(time, &mut text);
            text.push(b'"');
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Says which parts of a window were not recorded or cannot be read. It was to begin at `from`, and begins at `first`.
pub fn tell_gaps(from: i64, first: i64, gaps: &[(i64, i64)]) {
    if first > from {
        let (from, first) = (shown(from), shown(first));
        tell(&format!(
            "nothing is known at {from}; this begins at {first}"
        ));
    }
    for (before, after) in gaps {
        let (before, after) = (shown(*before), shown(*after));
        tell(&format!("nothing is known between {before} and {after}"));
    }
}

/// Says whether exits are missing, with what that means if some were lost, and if they were not recorded.
pub fn tell_lost(exits: Option<u64>, means: [&str; 2]) {
    match exits {
        Some(0) => {}
        Some(lost) => tell(&format!("{lost} exits were lost{}", means[0])),
        None => tell(&format!(
            "exits were not recorded all the time: {}",
            means[1]
        )),
    }
}

/// Says on standard error what of the history is damaged.
pub fn tell_damage(history: &History) {
    for damage in history.damaged() {
        let path = damage.path.display();
        tell(&format!("{path}: {}", failure::chain(&damage.error)));
    }
}

/// Writes a line to standard error. If that is closed, the line is lost.
pub fn tell(line: &str) {
    let _ = io::stderr().write_all(format!("fastproc: {line}\n").as_bytes());
}
