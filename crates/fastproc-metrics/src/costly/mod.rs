//! Values that are costly to read: proportional memory, open descriptors, and where threads wait. They are read within
//! a share of one CPU, one process at a time, and kept with their age.

mod files;
mod sums;
mod wchan;

use std::time::{Duration, Instant};

use fastproc::frozen;
use rustix::time::ClockId;

use self::{
    files::{Descriptors, Missing, ProcessFiles, Smaps},
    wchan::Waiting,
};
pub use self::{
    sums::{CostlySums, Known},
    wchan::Wchans,
};
use crate::groups::{Member, Tracker};

/// Unused time accrues for this long.
const SAVED: Duration = Duration::from_secs(60);
/// CPU time for the processes that exist at the start.
const FIRST_LOOK: Duration = Duration::from_secs(2);
/// Time that is reserved for new processes, and that they may use in advance.
const RESERVE: Duration = Duration::from_millis(10);
/// One in this many processes that have not run is read again as well: others may set their limits or share their
/// descriptors.
const TURNS: usize = 64;

/// The values to read, and the CPU time for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Proportional memory, from `/proc/PID/smaps_rollup`.
    pub smaps: bool,
    /// Open descriptors and their limit.
    pub fds: bool,
    /// Where in the kernel threads wait.
    pub wchan: bool,
    /// Share of the time of one CPU.
    pub share: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            smaps: false,
            fds: true,
            wchan: true,
            share: 0.01,
        }
    }
}

/// A value of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reading<T> {
    /// It has not been read yet.
    #[default]
    Unread,
    /// The kernel does not show it.
    Hidden,
    /// The value, and when it was read, after boot.
    Read { value: T, at_ns: u64 },
}

impl<T> Reading<T> {
    fn update(&mut self, now_ns: u64, result: Result<T, Missing>) {
        match result {
            Ok(value) => {
                *self = Self::Read {
                    value,
                    at_ns: now_ns,
                };
            }
            Err(Missing::Hidden) => *self = Self::Hidden,
            // The next snapshot will not have it.
            Err(Missing::Gone) => {}
        }
    }

    /// Extends the value's validity to this moment, since nothing has changed it.
    fn holds(&mut self, now_ns: u64) {
        if let Self::Read { at_ns, .. } = self {
            *at_ns = now_ns;
        }
    }
}

/// A process, and its values.
#[derive(Debug)]
struct Entry {
    pid: u32,
    start_ns: u64,
    one_thread: bool,
    /// The group that shows its values.
    group: Option<u32>,
    /// Nothing of it has been read.
    is_new: bool,
    /// Its run time at the last snapshot.
    run_ns: Option<u64>,
    /// It may have run since it was read. Only then it may have other descriptors, or wait elsewhere.
    has_run: bool,
    smaps: Reading<Smaps>,
    fds: Reading<Descriptors>,
    waiting: Reading<Waiting>,
}

impl Entry {
    fn new(pid: u32, start_ns: u64) -> Self {
        Self {
            pid,
            start_ns,
            one_thread: false,
            group: None,
            is_new: true,
            run_ns: None,
            has_run: true,
            smaps: Reading::Unread,
            fds: Reading::Unread,
            waiting: Reading::Unread,
        }
    }
}

/// All values, and the remaining CPU time.
#[derive(Debug)]
pub struct Costly {
    settings: Settings,
    files: ProcessFiles,
    entries: Vec<Entry>,
    before: Vec<Entry>,
    sums: Vec<CostlySums>,
    wchans: Wchans,
    /// The pids that were read last: among those that have run, and among all in turn.
    cursors: [u32; 2],
    balance_ns: i64,
    earned_until: Instant,
    spent_ns: u64,
}

impl Costly {
    /// No value is known yet.
    pub fn new(settings: Settings) -> Self {
        let first = if settings.share > 0.0 {
            FIRST_LOOK
        } else {
            Duration::ZERO
        };
        Self {
            settings,
            files: ProcessFiles::new(),
            entries: Vec::new(),
            before: Vec::new(),
            sums: Vec::new(),
            wchans: Wchans::default(),
            cursors: [0; 2],
            balance_ns: first.as_nanos() as i64,
            earned_until: Instant::now(),
            spent_ns: 0,
        }
    }

    /// Whether any value is to be read.
    pub fn is_wanted(&self) -> bool {
        self.settings.smaps || self.settings.fds || self.settings.wchan
    }

    /// The values to read, and the CPU time for them.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// CPU time that was spent, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.spent_ns
    }

    /// Takes the members of groups in the order of their pids, reads new ones, and sums up what is known.
    pub fn follow(&mut self, tracker: &Tracker, boottime_ns: u64) {
        if !self.is_wanted() {
            return;
        }
        std::mem::swap(&mut self.entries, &mut self.before);
        self.entries.clear();
        let mut before = self.before.drain(..).peekable();
        for Member {
            pid,
            start_ns,
            group,
            one_thread,
            run_ns,
        } in tracker.members()
        {
            while before.next_if(|entry| entry.pid < pid).is_some() {}
            // A value that was read by pid belongs to this process only if it had the pid before and after.
            let known = before.next_if(|entry| entry.pid == pid && entry.start_ns == start_ns);
            let mut entry = known.unwrap_or_else(|| Entry::new(pid, start_ns));
            entry.group = tracker.shown_group(group);
            entry.one_thread = one_thread;
            entry.has_run |= run_ns.is_none() || entry.run_ns != run_ns;
            entry.run_ns = run_ns;
            if !entry.has_run {
                entry.fds.holds(boottime_ns);
                entry.waiting.holds(boottime_ns);
            }
            self.entries.push(entry);
        }
        drop(before);
        self.read_new();
        self.sums.clear();
        self.wchans.clear();
        for entry in &self.entries {
            let Some(group) = entry.group else { continue };
            let at = group as usize;
            if self.sums.len() <= at {
                self.sums.resize(at + 1, CostlySums::default());
            }
            self.sums[at].add(entry, boottime_ns);
            if let Reading::Read { value, .. } = &entry.waiting {
                self.wchans.add(group, value);
            }
        }
    }

    /// The sums, by the index of the group.
    pub fn sums(&self) -> &[CostlySums] {
        &self.sums
    }

    /// Where threads wait, by the index of the group.
    pub fn wchans(&self) -> &Wchans {
        &self.wchans
    }

    /// Reads new processes at once, so that no sum lacks them, if necessary in advance of the share.
    fn read_new(&mut self) {
        self.earn();
        let least = if self.settings.share > 0.0 {
            -(RESERVE.as_nanos() as i64)
        } else {
            0
        };
        for at in 0..self.entries.len() {
            if self.balance_ns <= least {
                return;
            }
            if self.entries[at].is_new {
                self.read(at);
            }
        }
    }

    /// Reads processes that have run, and some of the others, from where the last call ended, until the share is used
    /// up or `stop` returns true.
    pub fn refresh(&mut self, mut stop: impl FnMut() -> bool) {
        if !self.is_wanted() {
            return;
        }
        self.earn();
        let all = self.entries.len();
        // Proportional memory changes when sharers change, so all are read in turn.
        let (have_run, turns) = if self.settings.smaps {
            (0, all)
        } else {
            (all, all.div_ceil(TURNS))
        };
        for (which, most) in [(0, have_run), (1, turns)] {
            let last = self.cursors[which];
            let first = self.entries.partition_point(|entry| entry.pid <= last);
            let wanted = (first..all).chain(0..first);
            let wanted: Vec<usize> = wanted
                .filter(|&at| which == 1 || self.entries[at].has_run)
                .take(most)
                .collect();
            for at in wanted {
                if self.balance_ns <= RESERVE.as_nanos() as i64 || stop() {
                    return;
                }
                self.cursors[which] = self.entries[at].pid;
                self.read(at);
            }
        }
    }

    fn earn(&mut self) {
        let elapsed = self.earned_until.elapsed();
        self.earned_until += elapsed;
        let earned = elapsed.min(SAVED).as_nanos() as f64 * self.settings.share;
        let most = (SAVED.as_nanos() as f64 * self.settings.share) as i64;
        // The time for the first processes is not taken back.
        self.balance_ns = (self.balance_ns + earned as i64).min(most.max(self.balance_ns));
    }

    fn read(&mut self, at: usize) {
        let before_ns = nanoseconds(ClockId::ThreadCPUTime);
        let now_ns = nanoseconds(ClockId::Boottime);
        let entry = &mut self.entries[at];
        (entry.is_new, entry.has_run) = (false, false);
        if self.settings.fds {
            let result = self.files.descriptors(entry.pid);
            entry.fds.update(now_ns, result);
        }
        if self.settings.wchan {
            let result = self.wchans.read(&self.files, entry.pid, entry.one_thread);
            entry.waiting.update(now_ns, result);
        }
        if self.settings.smaps {
            let result = self.files.smaps(entry.pid);
            entry.smaps.update(now_ns, result);
        }
        let spent = nanoseconds(ClockId::ThreadCPUTime).saturating_sub(before_ns);
        self.spent_ns += spent;
        // Time beyond the share is owed, and reduces the next reading.
        self.balance_ns -= spent as i64;
    }
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = frozen::clock(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costly(share: f64) -> Costly {
        let mut costly = Costly::new(Settings {
            smaps: true,
            fds: true,
            wchan: true,
            share,
        });
        costly.balance_ns = 0;
        costly.earned_until = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        costly.entries.push(Entry::new(std::process::id(), 1));
        costly
    }

    #[test]
    fn readings_have_an_age() {
        let mut costly = costly(1.0);
        costly.refresh(|| false);
        let entry = &costly.entries[0];
        let Reading::Read { value, at_ns } = entry.smaps else {
            panic!("its own are never hidden: {entry:?}");
        };
        let mut sums = CostlySums::default();
        sums.add(entry, at_ns + 5);
        assert_eq!(
            (sums.pss_bytes, sums.smaps.age_ns, sums.smaps.unknown()),
            (value.pss_bytes, 5, 0)
        );
        assert!(sums.worst_ratio_nano > 0);
        assert!(sums.fds.is_complete() && sums.wchan.is_complete());
    }

    /// A sum that lacks a process is not reported.
    #[test]
    fn unread_values_are_not_zero() {
        let mut sums = CostlySums::default();
        assert!(sums.fds.is_complete(), "no process has no descriptors");
        sums.add(&Entry::new(1, 1), 0);
        assert!(!sums.fds.is_complete());
        let mut hidden = Entry::new(2, 1);
        hidden.fds = Reading::Hidden;
        let mut sums = CostlySums::default();
        sums.add(&hidden, 0);
        assert!(!sums.fds.is_complete(), "nothing is known");
        let mut known = Entry::new(3, 1);
        let value = Descriptors { open: 5, limit: 10 };
        known.fds = Reading::Read { value, at_ns: 0 };
        sums.add(&known, 0);
        assert!(sums.fds.is_complete());
        assert_eq!(
            (sums.open, sums.worst_ratio_nano, sums.fds.unknown()),
            (5, 500_000_000, 1)
        );
    }

    #[test]
    fn a_new_process_is_read_at_once_and_an_old_one_in_its_turn() {
        let mut costly = costly(0.01);
        costly.earned_until = Instant::now();
        costly.read_new();
        let first = costly.entries[0].fds;
        assert!(matches!(first, Reading::Read { .. }));
        let spent = costly.spent_ns;
        costly.read_new();
        assert_eq!(costly.spent_ns, spent, "it is not new any more");
    }

    #[test]
    fn processes_that_ran_are_read_first_and_the_others_in_turn() {
        let mut costly = costly(1.0);
        costly.settings.smaps = false;
        // No process has these pids.
        let others = u32::MAX - 2 * TURNS as u32;
        for pid in others..others + 2 * TURNS as u32 - 1 {
            costly.entries.push(Entry::new(pid, 1));
            costly.entries.last_mut().unwrap().has_run = false;
        }
        costly.refresh(|| false);
        let own = &costly.entries[0];
        assert!(!own.has_run && matches!(own.fds, Reading::Read { .. }));
        assert_eq!(costly.cursors, [own.pid, others]);
        costly.entries[3].has_run = true;
        costly.refresh(|| false);
        assert_eq!(costly.cursors, [others + 2, others + 2]);
        for _ in 2..TURNS {
            costly.refresh(|| false);
        }
        assert_eq!(costly.cursors[1], costly.entries.last().unwrap().pid);
    }

    #[test]
    fn no_more_is_spent_than_the_share() {
        let mut costly = costly(0.0);
        costly.read_new();
        costly.refresh(|| false);
        assert_eq!(costly.entries[0].smaps, Reading::Unread);
        assert_eq!(costly.spent_ns, 0);
        // A debt is paid back first.
        costly.settings.share = 0.5;
        costly.balance_ns = -60_000_000_000;
        costly.earned_until = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        costly.refresh(|| false);
        assert_eq!(costly.entries[0].smaps, Reading::Unread);
    }

    #[test]
    fn reading_stops_when_a_scrape_waits() {
        let mut costly = costly(1.0);
        costly.refresh(|| true);
        assert_eq!(costly.entries[0].smaps, Reading::Unread);
    }
}
