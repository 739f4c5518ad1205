//! `/proc/loadavg`: how many threads ran or waited for a disk, on average. See `loadavg_proc_show()` in
//! `fs/proc/loadavg.c`.

use super::lines::{Source, digits};
use crate::base::error::parse::ParseError;

const FILE: &str = "/proc/loadavg";

/// The values of `/proc/loadavg`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadAvg {
    /// Over 1, 5 and 15 minutes, in hundredths.
    pub hundredths: [u64; 3],
    /// Threads running or ready to.
    pub running: u32,
    /// Threads that exist.
    pub threads: u32,
    /// The youngest process id in the reader's PID namespace.
    pub last_pid: i32,
}

impl LoadAvg {
    /// The averages as people write them.
    pub fn averages(&self) -> [f64; 3] {
        self.hundredths.map(|load| load as f64 / 100.0)
    }

    /// Reads a text of `/proc/loadavg`.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let unknown =
            || Source { file: FILE, text }.wrong(text, "load averages, threads and a process id");
        let line = text.strip_suffix(b"\n").ok_or_else(unknown)?;
        let mut words = line.split(|&byte| byte == b' ');
        let mut load = Self::default();
        for hundredths in &mut load.hundredths {
            *hundredths = words
                .next()
                .and_then(super::uptime::hundredths)
                .ok_or_else(unknown)?;
        }
        let mut threads = words.next().unwrap_or_default().split(|&byte| byte == b'/');
        let mut number = || {
            threads
                .next()
                .and_then(digits)
                .and_then(|n| u32::try_from(n).ok())
        };
        load.running = number().ok_or_else(unknown)?;
        load.threads = number().ok_or_else(unknown)?;
        load.last_pid = words
            .next()
            .and_then(digits)
            .and_then(|n| i32::try_from(n).ok())
            .ok_or_else(unknown)?;
        match words.next() {
            None => Ok(load),
            Some(_) => Err(unknown()),
        }
    }
}
