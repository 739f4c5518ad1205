//! Values that cost much to read: proportional memory, open descriptors, and where threads wait. Each is read within a
//! share of one CPU, a process at a time, and kept with its age.

mod wchan;

use std::{
    io::{self, Read},
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
    path::DecInt,
    time::{ClockId, clock_gettime},
};

use self::wchan::Waiting;
pub use self::wchan::Wchans;
use crate::{
    groups::{Member, Tracker},
    metrics::Proportional,
};

/// A tick of `/proc`, which start times are rounded down to.
const TICK_NS: u64 = 10_000_000;
/// What is not used of the share is kept for so long.
const SAVED: Duration = Duration::from_secs(60);
/// No file that is read here is longer.
const LONGEST: u64 = 64 * 1024;

/// Which are read, and how much may go into it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Proportional memory, from `/proc/PID/smaps_rollup`.
    pub smaps: bool,
    /// Open descriptors and their limit.
    pub fds: bool,
    /// Where in the kernel threads wait.
    pub wchan: bool,
    /// The part of the time of one CPU.
    pub share: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            smaps: false,
            fds: false,
            wchan: false,
            share: 0.01,
        }
    }
}

/// A process, and what is known of it.
#[derive(Debug)]
struct Entry {
    pid: u32,
    start_ns: u64,
    smaps: Option<Smaps>,
    fds: Option<Descriptors>,
    /// With the moment at which it was read.
    waiting: Option<(Waiting, u64)>,
}

impl Entry {
    fn new(pid: u32, start_ns: u64) -> Self {
        Self {
            pid,
            start_ns,
            smaps: None,
            fds: None,
            waiting: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Smaps {
    pss: u64,
    swap_pss: u64,
    read_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Descriptors {
    open: u64,
    limit: u64,
    read_ns: u64,
}

/// What is known, and what may still be spent.
#[derive(Debug)]
pub struct Costly {
    settings: Settings,
    entries: Vec<Entry>,
    before: Vec<Entry>,
    sums: Vec<Proportional>,
    wchans: Wchans,
    /// The process that was read last.
    cursor: u32,
    balance_ns: i64,
    earned_until: Instant,
    spent_ns: u64,
    /// The size of the folder `fd` is the number of descriptors (Linux 6.2).
    size_is_count: bool,
    text: Vec<u8>,
}

impl Costly {
    /// Nothing is known yet.
    pub fn new(settings: Settings) -> Self {
        let own = rustix::fs::stat("/proc/self/fd");
        Self {
            settings,
            entries: Vec::new(),
            before: Vec::new(),
            sums: Vec::new(),
            wchans: Wchans::default(),
            cursor: 0,
            balance_ns: 0,
            earned_until: Instant::now(),
            spent_ns: 0,
            size_is_count: own.is_ok_and(|own| own.st_size > 0),
            text: Vec::new(),
        }
    }

    /// Whether anything is to be read at all.
    pub fn is_wanted(&self) -> bool {
        self.settings.smaps || self.settings.fds || self.settings.wchan
    }

    /// What is to be read.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// CPU time that went into it, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    /// Takes over the members of groups, in the order of their pids, and sums up what is known of them.
    pub fn follow(&mut self, tracker: &Tracker, boottime_ns: u64) {
        if !self.is_wanted() {
            return;
        }
        std::mem::swap(&mut self.entries, &mut self.before);
        self.entries.clear();
        self.sums.clear();
        self.wchans.clear();
        let mut before = self.before.drain(..).peekable();
        for Member {
            pid,
            start_ns,
            group,
        } in tracker.members()
        {
            while before.next_if(|entry| entry.pid < pid).is_some() {}
            let known = before.next_if(|entry| entry.pid == pid && entry.start_ns == start_ns);
            let entry = known.unwrap_or_else(|| Entry::new(pid, start_ns));
            if let Some(shown) = tracker.shown_group(group) {
                let shown = shown as usize;
                if self.sums.len() <= shown {
                    self.sums.resize(shown + 1, Proportional::default());
                }
                add(&mut self.sums[shown], &entry, boottime_ns);
                if let Some((waiting, _)) = &entry.waiting {
                    self.wchans.add(shown as u32, waiting);
                }
            }
            self.entries.push(entry);
        }
    }

    /// The sums, by the index of the group.
    pub fn sums(&self) -> &[Proportional] {
        &self.sums
    }

    /// Where threads wait, by the index of the group.
    pub fn wchans(&self) -> &Wchans {
        &self.wchans
    }

    /// Reads on where the last call ended, until the share of the time is used up, every process has been read once, or
    /// `stop` says so.
    pub fn refresh(&mut self, mut stop: impl FnMut() -> bool) {
        if !self.is_wanted() {
            return;
        }
        let elapsed = self.earned_until.elapsed();
        self.earned_until += elapsed;
        let earned = elapsed.min(SAVED).as_nanos() as f64 * self.settings.share;
        let most = SAVED.as_nanos() as f64 * self.settings.share;
        self.balance_ns = (self.balance_ns + earned as i64).min(most as i64);
        for _ in 0..self.entries.len() {
            if self.balance_ns <= 0 || stop() {
                return;
            }
            let next = self
                .entries
                .partition_point(|entry| entry.pid <= self.cursor);
            let at = if next < self.entries.len() { next } else { 0 };
            self.cursor = self.entries[at].pid;
            let before = thread_cpu_ns();
            self.read(at);
            let spent = thread_cpu_ns().saturating_sub(before);
            self.spent_ns += spent;
            // What was spent beyond the share is owed: there is less the next time.
            self.balance_ns -= spent as i64;
        }
    }

    fn read(&mut self, at: usize) {
        let &Entry { pid, start_ns, .. } = &self.entries[at];
        let Ok(folder) = rustix::fs::open(
            "/proc",
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .and_then(|proc| open_folder(&proc, pid)) else {
            return;
        };
        // What is read through this folder is of one process; whether of this one, its start time tells.
        if !self.is_of(&folder, start_ns) {
            return;
        }
        let now = clock_gettime(ClockId::Boottime);
        let read_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        if self.settings.smaps
            && let Some((pss, swap_pss)) = self.smaps(&folder)
        {
            self.entries[at].smaps = Some(Smaps {
                pss,
                swap_pss,
                read_ns,
            });
        }
        if self.settings.fds
            && let Some((open, limit)) = self.fds(&folder)
        {
            self.entries[at].fds = Some(Descriptors {
                open,
                limit,
                read_ns,
            });
        }
        if self.settings.wchan
            && let Some(waiting) = self.wchans.read(&folder)
        {
            self.entries[at].waiting = Some((waiting, read_ns));
        }
    }

    fn is_of(&mut self, folder: &OwnedFd, start_ns: u64) -> bool {
        if self.text(folder, "stat").is_err() {
            return false;
        }
        // The second field, the name, ends at the last parenthesis.
        let end = self.text.iter().rposition(|&byte| byte == b')');
        let ticks = end.and_then(|end| {
            let field = self
                .text
                .get(end + 2..)?
                .split(|&byte| byte == b' ')
                .nth(19)?;
            std::str::from_utf8(field).ok()?.parse::<u64>().ok()
        });
        ticks.is_some_and(|ticks| (ticks * TICK_NS).abs_diff(start_ns) < TICK_NS)
    }

    /// Proportional resident and swapped memory. `None`: hidden, or gone.
    fn smaps(&mut self, folder: &OwnedFd) -> Option<(u64, u64)> {
        match self.text(folder, "smaps_rollup") {
            Ok(()) => Some((self.kib("Pss:"), self.kib("SwapPss:"))),
            // A kernel thread or a zombie: it has no memory.
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Some((0, 0)),
            Err(_) => None,
        }
    }

    /// A line of the text, in bytes.
    fn kib(&self, name: &str) -> u64 {
        let mut lines = self.text.split(|&byte| byte == b'\n');
        let line = lines.find_map(|line| line.strip_prefix(name.as_bytes()));
        let words = line.and_then(|line| std::str::from_utf8(line).ok());
        let number = words.and_then(|words| words.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or(0) * 1024
    }

    /// Open descriptors, and their limit. `None`: hidden, or gone.
    fn fds(&mut self, folder: &OwnedFd) -> Option<(u64, u64)> {
        let open = if self.size_is_count {
            let fd = rustix::fs::statat(folder, "fd", AtFlags::empty()).ok()?;
            fd.st_size as u64
        } else {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let fd = rustix::fs::openat(folder, "fd", flags, Mode::empty()).ok()?;
            let entries = rustix::fs::Dir::read_from(&fd).ok()?;
            let entries = entries.filter_map(Result::ok);
            entries
                .filter(|entry| !entry.file_name().to_bytes().starts_with(b"."))
                .count() as u64
        };
        self.text(folder, "limits").ok()?;
        let mut lines = self.text.split(|&byte| byte == b'\n');
        let line = lines.find_map(|line| line.strip_prefix(b"Max open files"))?;
        let soft = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
        let limit = if soft == "unlimited" {
            u64::MAX
        } else {
            soft.parse().ok()?
        };
        Some((open, limit))
    }

    fn text(&mut self, folder: &OwnedFd, name: &str) -> io::Result<()> {
        self.text.clear();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
        std::fs::File::from(file)
            .take(LONGEST)
            .read_to_end(&mut self.text)?;
        Ok(())
    }
}

fn open_folder(proc: &impl AsFd, pid: u32) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(
        proc,
        DecInt::new(pid),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

fn add(sums: &mut Proportional, entry: &Entry, boottime_ns: u64) {
    let age = |read_ns: u64| boottime_ns.saturating_sub(read_ns);
    if let Some(smaps) = &entry.smaps {
        sums.pss += smaps.pss;
        sums.swap_pss += smaps.swap_pss;
    }
    if let Some(fds) = &entry.fds {
        sums.open += fds.open;
        let ratio = u128::from(fds.open) * 1_000_000_000 / u128::from(fds.limit.max(1));
        sums.worst_ratio_nano = sums.worst_ratio_nano.max(ratio as u64);
    }
    sums.smaps.add(entry.smaps.map(|smaps| age(smaps.read_ns)));
    sums.fds.add(entry.fds.map(|fds| age(fds.read_ns)));
    let waiting = entry.waiting.as_ref();
    sums.wchan.add(waiting.map(|(_, read_ns)| age(*read_ns)));
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use super::*;

    fn own_start_ns() -> u64 {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let rest = stat.rsplit_once(") ").unwrap().1;
        rest.split(' ').nth(19).unwrap().parse::<u64>().unwrap() * TICK_NS
    }

    fn costly(share: f64, start_ns: u64) -> Costly {
        let mut costly = Costly::new(Settings {
            smaps: true,
            fds: true,
            wchan: true,
            share,
        });
        costly.earned_until = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        costly
            .entries
            .push(Entry::new(std::process::id(), start_ns));
        costly
    }

    #[test]
    fn values_are_what_proc_says() {
        let held: Vec<File> = (0..10)
            .map(|_| File::open("/proc/self/stat").unwrap())
            .collect();
        let mut costly = costly(1.0, own_start_ns());
        costly.refresh(|| false);
        let entry = &costly.entries[0];
        assert!(entry.waiting.is_some(), "its own are never hidden");
        let fds = entry.fds.expect("its own are never hidden");
        assert!(fds.open >= 10, "{fds:?}");
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        assert_eq!(fds.limit, limit.current.unwrap_or(u64::MAX));
        let smaps = entry.smaps.expect("its own are never hidden");
        assert!(smaps.pss > 0);
        let mut sums = Proportional::default();
        add(&mut sums, entry, smaps.read_ns + 5);
        assert_eq!(
            (sums.pss, sums.smaps.age_ns, sums.smaps.unknown),
            (smaps.pss, 5, 0)
        );
        assert!(sums.worst_ratio_nano > 0);
        drop(held);
    }

    #[test]
    fn descriptors_are_counted_where_the_size_does_not_tell() {
        let mut costly = costly(1.0, own_start_ns());
        costly.size_is_count = false;
        costly.refresh(|| false);
        assert!(costly.entries[0].fds.expect("known").open >= 3);
    }

    #[test]
    fn another_process_with_this_pid_is_not_read() {
        let mut costly = costly(1.0, own_start_ns() + 5 * TICK_NS);
        costly.refresh(|| false);
        assert_eq!(
            (costly.entries[0].smaps, costly.entries[0].fds),
            (None, None)
        );
    }

    #[test]
    fn no_more_is_spent_than_the_share() {
        let mut costly = costly(0.0, own_start_ns());
        costly.refresh(|| false);
        assert_eq!(costly.entries[0].smaps, None);
        assert_eq!(costly.spent_ns, 0);
        // What is owed is paid back first.
        costly.settings.share = 0.5;
        costly.balance_ns = -60_000_000_000;
        costly.earned_until = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        costly.refresh(|| false);
        assert_eq!(costly.entries[0].smaps, None);
    }

    #[test]
    fn it_stops_when_somebody_waits() {
        let mut costly = costly(1.0, own_start_ns());
        costly.refresh(|| true);
        assert_eq!(costly.entries[0].smaps, None);
    }
}
