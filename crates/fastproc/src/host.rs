//! Facts about this machine that do not change while it runs, or only when a CPU comes or goes.

use std::{fs, path::Path};

use crate::{Error, time_namespace};

/// What the sources and renderers need to know about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Bytes of a page.
    pub page_size: u64,
    /// `USER_HZ`: the ticks per second that `/proc` counts CPU times in.
    pub ticks_per_second: u64,
    /// CPUs that could ever be there (`nr_cpu_ids`).
    pub possible_cpus: u32,
    /// CPUs that are there now, as numbers.
    pub online_cpus: Vec<u32>,
    /// Memory nodes that could ever be there.
    pub possible_nodes: u32,
    /// What to add to a time since boot for the time namespace of this process, in nanoseconds.
    pub boot_offset_ns: i64,
}

impl Host {
    /// Asks the running kernel.
    pub fn read() -> Result<Self, Error> {
        let possible = cpu_list("/sys/devices/system/cpu/possible")?;
        Ok(Self {
            page_size: rustix::param::page_size() as u64,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            possible_cpus: possible.last().map_or(1, |last| last + 1),
            online_cpus: online_cpus()?,
            // A kernel without NUMA has no such folder, and one node.
            possible_nodes: cpu_list("/sys/devices/system/node/possible")
                .ok()
                .and_then(|nodes| nodes.last().map(|last| last + 1))
                .unwrap_or(1),
            boot_offset_ns: time_namespace::boot_offset_ns(Path::new("/proc"))?,
        })
    }
}

/// The CPUs that are online now.
pub(crate) fn online_cpus() -> Result<Vec<u32>, Error> {
    cpu_list("/sys/devices/system/cpu/online")
}

fn read(path: &str) -> Result<String, Error> {
    fs::read_to_string(Path::new(path)).map_err(|source| Error::Host {
        path: path.into(),
        source,
    })
}

fn cpu_list(path: &str) -> Result<Vec<u32>, Error> {
    let text = read(path)?;
    parse_list(text.trim()).ok_or_else(|| Error::Host {
        path: path.into(),
        source: std::io::Error::other(format!("not a list of numbers: {text:?}")),
    })
}

/// Parses a list as the kernel prints bitmaps: `0-3,8`.
pub(crate) fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for range in text.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        // The kernel's largest CPU and node counts are far below this.
        if last < first || last >= 1 << 20 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::parse_list;

    #[test]
    fn lists_are_read_as_the_kernel_prints_them() {
        assert_eq!(parse_list("0-1"), Some(vec![0, 1]));
        assert_eq!(parse_list("0,2-4,7"), Some(vec![0, 2, 3, 4, 7]));
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!(parse_list("3-1"), None);
        assert_eq!(parse_list("a"), None);
        assert_eq!(parse_list("0-4294967295"), None);
    }
}
