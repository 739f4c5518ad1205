//! `/proc/softirqs`: softirqs by kind and CPU. See `show_softirqs()` in `fs/proc/softirqs.c`.

use super::lines::{Source, words};
use crate::base::error::parse::ParseError;

/// Reads the names of the kinds, as in `NET_RX`, from a text of `/proc/softirqs`.
pub fn names(text: &[u8]) -> Result<Vec<Box<str>>, ParseError> {
    let file = "/proc/softirqs";
    let source = Source { file, text };
    let rows = source.lines().skip(1).map(|line| {
        let name = words(line).next().and_then(|word| word.strip_suffix(b":"));
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let name = name.ok_or_else(|| source.wrong(line, "a name and a colon"))?;
        Ok(name.into())
    });
    rows.collect()
}
