//! Lists of CPUs and nodes, as the kernel writes them in sysfs.

use std::{fs, io};

/// `/sys/devices/system/cpu/possible`
pub(super) fn possible() -> io::Result<Vec<u32>> {
    read("/sys/devices/system/cpu/possible")
}

/// `/sys/devices/system/cpu/online`
pub(super) fn online() -> io::Result<Vec<u32>> {
    read("/sys/devices/system/cpu/online")
}

/// CPUs booted with `nohz_full=`: none where the file is absent.
pub(super) fn nohz_full() -> Vec<u32> {
    read("/sys/devices/system/cpu/nohz_full").unwrap_or_default()
}

/// Possible memory nodes: one where there is no such file.
pub(super) fn nodes() -> Vec<u32> {
    read("/sys/devices/system/node/possible").unwrap_or_else(|_| vec![0])
}

fn read(path: &str) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(path)?;
    parse(text.trim())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{path} holds {text:?}")))
}

/// `0-3,8,10-11`
fn parse(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    if text.is_empty() || text == "(null)" {
        return Some(cpus);
    }
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > 1 << 20 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ranges_and_single_cpus() {
        assert_eq!(parse("0"), Some(vec![0]));
        assert_eq!(parse("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(parse(""), Some(vec![]));
        assert_eq!(parse("(null)"), Some(vec![]));
        assert_eq!(parse("2-1"), None);
        assert_eq!(parse("x"), None);
        assert_eq!(parse("0-4294967295"), None);
    }
}
