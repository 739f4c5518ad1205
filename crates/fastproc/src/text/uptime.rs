//! `/proc/uptime`: how long the machine has run, and how long its CPUs have been idle. See `uptime_proc_show()` in
//! `fs/proc/uptime.c`.

use std::time::Duration;

use super::lines::{Source, digits};
use crate::base::error::parse::ParseError;

const FILE: &str = "/proc/uptime";

/// The values of `/proc/uptime`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uptime {
    /// Since boot, suspension included; in the reader's time namespace.
    pub up: Duration,
    /// All CPUs' idle time together.
    pub idle: Duration,
}

impl Uptime {
    /// Reads a text of `/proc/uptime`.
    pub fn parse(text: &[u8]) -> Result<Self, ParseError> {
        let unknown = || Source { file: FILE, text }.wrong(text, "two times in seconds");
        let line = text.strip_suffix(b"\n").ok_or_else(unknown)?;
        let mut words = line.split(|&byte| byte == b' ');
        let mut time = || {
            let hundredths = words.next().and_then(hundredths)?;
            Some(Duration::new(
                hundredths / 100,
                (hundredths % 100) as u32 * 10_000_000,
            ))
        };
        let uptime = Self {
            up: time().ok_or_else(unknown)?,
            idle: time().ok_or_else(unknown)?,
        };
        match words.next() {
            None => Ok(uptime),
            Some(_) => Err(unknown()),
        }
    }
}

pub(super) fn hundredths(word: &[u8]) -> Option<u64> {
    let (whole, fraction) = word.split_at_checked(word.len().checked_sub(3)?)?;
    let fraction = fraction.strip_prefix(b".").and_then(digits)?;
    digits(whole)?.checked_mul(100)?.checked_add(fraction)
}
