//! Facts about this machine that stay the same while it runs, or change only when a CPU comes or goes.

use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, MetadataExt},
    time::Duration,
};

use crate::base::{error::Error, frozen, mounts, namespaces::Numbering, proc_root, time_namespace};

/// What the sources and renderers need to know about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Host {
    /// Bytes of a page.
    pub page_size: u64,
    /// `USER_HZ`: the ticks per second that `/proc` counts CPU times in.
    pub ticks_per_second: u64,
    /// CPUs that can exist (`nr_cpu_ids`). Without `/sys`, the next multiple of four.
    pub possible_cpus: u32,
    /// Numbers of the CPUs that are online. Empty if not known.
    pub online_cpus: Vec<u32>,
    /// Memory nodes that can exist.
    pub possible_nodes: u32,
    /// What to add to a time since boot for the time namespace of this process, in nanoseconds.
    pub boot_offset_ns: i64,
}

impl Host {
    /// Asks the running kernel. Without `/sys`, uses what `/proc` has.
    pub fn read() -> Result<Self, Error> {
        Ok(Self {
            page_size: rustix::param::page_size() as u64,
            ticks_per_second: rustix::param::clock_ticks_per_second(),
            possible_cpus: possible_cpus()?,
            online_cpus: online_cpus().unwrap_or_default(),
            // A kernel without NUMA has no such folder, and only one node.
            possible_nodes: cpu_list("/sys/devices/system/node/possible")
                .ok()
                .and_then(|nodes| nodes.last().map(|last| last + 1))
                .unwrap_or(1),
            boot_offset_ns: time_namespace::boot_offset_ns(&proc_root::own_path("/proc"))?,
        })
    }
}

/// CPUs that can exist: [`Host::possible_cpus`].
pub(crate) fn possible_cpus() -> Result<u32, Error> {
    let possible = cpu_list("/sys/devices/system/cpu/possible");
    let possible = possible.map(|cpus| cpus.last().map_or(1, |last| last + 1));
    possible.or_else(|error| {
        // It has the name of this process, which may be any bytes.
        let status = fs::read(proc_root::own_path("/proc/self/status")).unwrap_or_default();
        bits_of_mask(&String::from_utf8_lossy(&status)).ok_or(error)
    })
}

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The list of online CPUs. Its file stays open, for repeated reading.
#[derive(Debug)]
pub(crate) struct OnlineCpus {
    /// Without `/sys` there is none.
    file: Option<File>,
    /// What it said last.
    text: [u8; 256],
    len: usize,
}

impl OnlineCpus {
    pub(crate) fn open() -> Self {
        Self {
            file: File::open(proc_root::own_path(ONLINE)).ok(),
            text: [0; 256],
            len: 0,
        }
    }

    /// The CPUs that are online now, if the list may be another than the last time.
    pub(crate) fn changed(&mut self) -> Result<Option<Vec<u32>>, Error> {
        let mut text = [0; 256];
        let file = self.file.as_ref();
        let len = file.and_then(|file| file.read_at(&mut text, 0).ok());
        // A list that is longer is read whole, each time.
        let len = len.filter(|&len| len > 0 && len < text.len());
        if len.is_some_and(|len| text[..len] == self.text[..self.len]) {
            return Ok(None);
        }
        (self.text, self.len) = (text, len.unwrap_or(0));
        online_cpus().map(Some)
    }

    /// Has the next list count as another one.
    pub(crate) fn forget(&mut self) {
        self.len = 0;
    }
}

/// The CPUs that are online now.
pub(crate) fn online_cpus() -> Result<Vec<u32>, Error> {
    cpu_list(ONLINE).or_else(|error| {
        let stat = fs::read_to_string(proc_root::path("/proc/stat")).unwrap_or_default();
        Some(cpus_of_stat(&stat))
            .filter(|cpus| !cpus.is_empty())
            .ok_or(error)
    })
}

/// The end of `/proc/loadavg`. If neither number has changed, no task has started or ended meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskCount {
    /// All tasks of the machine, with threads.
    pub(crate) tasks: u32,
    /// The last pid that was given to a task in the pid namespace of `/proc`.
    pub(crate) last_pid: u32,
}

impl TaskCount {
    pub(crate) fn now() -> Option<Self> {
        let text = fs::read_to_string(proc_root::path("/proc/loadavg")).ok()?;
        let mut numbers = text.trim_end().split(['/', ' ']).skip(4);
        Some(Self {
            tasks: numbers.next()?.parse().ok()?,
            last_pid: numbers.next()?.parse().ok()?,
        })
    }
}

/// All tasks of the machine, with threads.
pub(crate) fn running_tasks() -> Option<u32> {
    TaskCount::now().map(|count| count.tasks)
}

/// The time since boot in this time namespace, in nanoseconds. For the crates of this workspace.
#[must_use]
pub fn boottime_ns() -> u64 {
    let now = frozen::clock(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// `MemTotal` of `/proc/meminfo`, in bytes, as procps reads it: lxcfs shows a container its own limit there. `None` if it
/// cannot be read. For the crates of this workspace.
#[must_use]
pub fn total_memory() -> Option<u64> {
    total_memory_in(&fs::read(proc_root::path("/proc/meminfo")).ok()?)
}

fn total_memory_in(text: &[u8]) -> Option<u64> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"MemTotal:"))?;
    let kibibytes = std::str::from_utf8(line).ok()?.trim().strip_suffix(" kB")?;
    kibibytes.parse::<u64>().ok()?.checked_mul(1024)
}

/// A jiffy: what the coarse clocks advance by.
pub(crate) fn jiffy() -> Duration {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    Duration::from_nanos((resolution.tv_nsec as u64).clamp(100_000, 100_000_000))
}

/// About how many processes there are: `/proc` has a link for each, and for a few other folders
/// (`proc_root_getattr()`). Listing it would take as long as a walk.
pub(crate) fn running_processes() -> Option<u32> {
    let links = fs::metadata(proc_root::path("/proc")).ok()?.nlink();
    u32::try_from(links).ok()
}

/// Whether `/proc` shows the processes of a pid namespace of this process's own, as in a container that is not given the host's.
/// For the crates of this workspace.
#[must_use]
pub fn proc_is_of_own_namespace() -> bool {
    Numbering::of_proc().is_ok_and(|numbering| numbering == Numbering::Own)
}

/// Whether `/proc` is mounted with `hidepid`, so that it shows others' processes only to those who may trace them.
pub fn proc_hides_processes() -> Result<bool, Error> {
    let root = proc_root::path("/proc");
    let device = fs::metadata(&root).map(|root| root.dev());
    let device = device.map_err(|source| Error::unreadable(root.display().to_string(), source))?;
    let path = "/proc/self/mountinfo";
    let mounts =
        fs::read(proc_root::own_path(path)).map_err(|source| Error::unreadable(path, source))?;
    Ok(hides_processes(&mounts, device))
}

/// Whether this device, the proc file system, has the option in one of its mounts, which all have the same ones.
fn hides_processes(mountinfo: &[u8], device: u64) -> bool {
    let mut mounts = mounts::parse(mountinfo).filter(|mount| mount.device == device);
    mounts.any(|mount| {
        mount.options.split(|&byte| byte == b',').any(|option| {
            option
                .strip_prefix(b"hidepid=")
                .is_some_and(|level| !matches!(level, b"0" | b"off"))
        })
    })
}

/// The width of `Cpus_allowed` in status: the kernel prints a digit for every four CPUs that it has room for.
fn bits_of_mask(status: &str) -> Option<u32> {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed:"))?;
    let digits = mask.bytes().filter(u8::is_ascii_hexdigit).count() as u32;
    (digits > 0).then_some(4 * digits)
}

/// The CPUs that have a line in `/proc/stat`: those that are online.
fn cpus_of_stat(stat: &str) -> Vec<u32> {
    let names = stat.lines().filter_map(|line| line.split(' ').next());
    names
        .filter_map(|name| name.strip_prefix("cpu")?.parse().ok())
        .collect()
}

fn cpu_list(path: &str) -> Result<Vec<u32>, Error> {
    let text = fs::read_to_string(proc_root::own_path(path))
        .map_err(|source| Error::unreadable(path, source))?;
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
    use std::path::Path;

    use super::*;

    #[test]
    fn the_memory_is_that_of_the_text() {
        let text = b"MemTotal:        4194304 kB\nMemFree:  1 kB\n";
        assert_eq!(total_memory_in(text), Some(4 << 30));
        assert_eq!(total_memory_in(b"MemFree: 1 kB\n"), None);
        assert!(total_memory() > Some(0));
    }

    /// There is a link for each process, and for each of some folders: as many more whenever nothing begins or ends.
    #[test]
    fn proc_has_a_link_for_each_process() {
        let proc = Path::new("/proc");
        let is_pid =
            |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        let listed = || -> Vec<_> {
            let listed = fs::read_dir(proc).expect("it can be listed");
            let names = listed.flatten().map(|entry| entry.file_name());
            names.filter(|name| is_pid(name)).collect()
        };
        let mut folders = u32::MAX;
        let mut judged = 0;
        fastproc_testbed::wait_until("looks at processes that stay", || {
            let before = listed();
            let running = running_processes().expect("/proc/loadavg can be read");
            if before == listed() {
                let rest = running.checked_sub(before.len() as u32);
                folders = folders.min(rest.expect("there is a link for each"));
                judged += 1;
            }
            judged == 20
        });
        // What came and went meanwhile has a link, too.
        assert!((2..30).contains(&folders), "{folders}");
    }

    #[test]
    fn proc_tells_the_cpus_where_there_is_no_sys() {
        let status = "Name:\tsh\nCpus_allowed:\tff,ffffffff\nCpus_allowed_list:\t0-39\n";
        assert_eq!(bits_of_mask(status), Some(40));
        assert_eq!(bits_of_mask("Cpus_allowed:\t3\n"), Some(4));
        assert_eq!(bits_of_mask("Name:\tsh\n"), None);
        assert_eq!(
            cpus_of_stat("cpu  1 2\ncpu0 1 2\ncpu3 1 2\nintr 5\n"),
            [0, 3]
        );
        assert!(cpus_of_stat("").is_empty());
    }

    #[test]
    fn mounts_tell_whether_processes_are_hidden() {
        let mounts = b"30 29 0:30 / /tmp/u\xff rw - fuse.f \xff rw\n\
            23 29 0:22 / /proc rw,nosuid shared:12 - proc proc rw\n\
            40 29 0:45 / /host/proc rw,nosuid - proc proc rw,gid=5,hidepid=invisible\n\
            41 29 0:46 / /a rw - tmpfs hidepid=1 rw\n";
        let hides = |minor| hides_processes(mounts, rustix::fs::makedev(0, minor));
        assert!(hides(45) && !hides(22) && !hides(46) && !hides(4));
        assert!(!hides_processes(
            b"1 1 0:5 / /proc rw - proc proc rw,hidepid=off\n",
            5
        ));
    }

    #[test]
    fn lists_are_read_as_the_kernel_prints_them() {
        assert_eq!(parse_list("0-1"), Some(vec![0, 1]));
        assert_eq!(parse_list("0"), Some(vec![0]));
        assert_eq!(parse_list("0,2-4,7"), Some(vec![0, 2, 3, 4, 7]));
        assert_eq!(parse_list(""), Some(vec![]));
        assert_eq!(parse_list("3-1"), None);
        assert_eq!(parse_list("a"), None);
        assert_eq!(parse_list("0-4294967295"), None);
    }
}
