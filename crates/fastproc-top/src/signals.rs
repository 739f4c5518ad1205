//! Signals and nice values: changes of processes.

use std::{ffi::CString, io};

use fastproc::{DetailError, record::TICK_NS};
use fastproc_columns::Lookup;
use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, getpriority_process, pidfd_open, pidfd_send_signal,
        setpriority_process,
    },
};

use crate::{id::Id, observation::View, overlay::ProcessAction};

/// The signals of signal(7), the most common ones first.
pub const SIGNALS: [(i32, &str); 31] = [
    (15, "TERM"),
    (9, "KILL"),
    (1, "HUP"),
    (2, "INT"),
    (3, "QUIT"),
    (10, "USR1"),
    (12, "USR2"),
    (19, "STOP"),
    (18, "CONT"),
    (20, "TSTP"),
    (4, "ILL"),
    (5, "TRAP"),
    (6, "ABRT"),
    (7, "BUS"),
    (8, "FPE"),
    (11, "SEGV"),
    (13, "PIPE"),
    (14, "ALRM"),
    (16, "STKFLT"),
    (17, "CHLD"),
    (21, "TTIN"),
    (22, "TTOU"),
    (23, "URG"),
    (24, "XCPU"),
    (25, "XFSZ"),
    (26, "VTALRM"),
    (27, "PROF"),
    (28, "WINCH"),
    (29, "IO"),
    (30, "PWR"),
    (31, "SYS"),
];

/// The name of a signal.
pub fn name(number: i32) -> &'static str {
    let signal = SIGNALS.iter().find(|(known, _)| *known == number);
    signal.map_or("?", |(_, name)| name)
}

/// Why a process was not changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has exited.
    #[error("process {0} has ended")]
    Gone(u32),
    /// The pid belongs to another process in the namespace of this one.
    #[error(
        "/proc shows the pids of another namespace; mount the one of this namespace (mount -t proc proc /proc)"
    )]
    OtherPids,
    /// It may not be the process that was shown.
    #[error(transparent)]
    Detail(#[from] DetailError),
    /// The system refused.
    #[error("{}", reason(*.0))]
    Refused(Errno),
}

/// Why the system refused, said of the process.
fn reason(error: Errno) -> String {
    match error {
        Errno::PERM => "is not yours; run fastproc top as root".into(),
        Errno::ACCESS => "may only be given a higher priority by root".into(),
        error => format!("was not changed: {}", io::Error::from(error)),
    }
}

/// Whether a `/proc` has the pids of this process's own namespace, the only ones that system calls accept. `status` is
/// that of this process there.
fn has_our_pids(status: &str) -> bool {
    let line = |name| status.lines().find_map(|line| line.strip_prefix(name));
    // One for each namespace, from that of the /proc to our own. Before Linux 4.1 there is only the first one.
    let pids = line("NSpid:").or_else(|| line("Pid:"));
    pids.is_some_and(|pids| pids.split_whitespace().eq([std::process::id().to_string()]))
}

impl ProcessAction {
    /// The beginning of the question about it.
    pub fn describe(self) -> String {
        match self {
            Self::Signal(number) => format!("SIG{} to", name(number)),
            Self::Nice(nice) => format!("Set the nice value {nice} of"),
            Self::NiceBy(by) => format!("Change the nice value by {by:+} of"),
        }
    }

    /// Applies the change to a process or thread, which must be the one that was shown.
    pub fn apply(self, id: Id, view: &View<'_>, lookup: &mut Lookup) -> Result<(), Error> {
        let gone = || Error::Gone(id.pid);
        let process = id.find(&view.snapshot).ok_or_else(gone)?;
        // Use the /proc that is read: another one may be mounted over it.
        let status = lookup.details.file(process, c"../self/status")?;
        if !has_our_pids(&String::from_utf8_lossy(status)) {
            return Err(Error::OtherPids);
        }
        let pid = Pid::from_raw(id.pid as i32).ok_or_else(gone)?;
        // The descriptor refers to the process that has the pid now; its start time shows whether it is the same.
        let descriptor = pidfd_open(pid, PidfdFlags::empty());
        look_for(id, view, lookup)?;
        let done = match self {
            Self::Signal(number) => match (Signal::from_named_raw(number), descriptor) {
                (Some(signal), Ok(descriptor)) => pidfd_send_signal(descriptor, signal),
                (Some(signal), Err(Errno::NOSYS)) => rustix::process::kill_process(pid, signal),
                (_, Err(error)) => Err(error),
                (None, _) => Err(Errno::INVAL),
            },
            Self::Nice(nice) => set_nice(id, nice),
            Self::NiceBy(by) => Pid::from_raw(id.tid as i32)
                .ok_or(Errno::SRCH)
                .and_then(|tid| getpriority_process(Some(tid)))
                .and_then(|nice| set_nice(id, nice + by)),
        };
        done.map_err(Error::Refused)
    }
}

/// Whether the same process, and for a thread the same thread, still exists.
pub fn look_for(id: Id, view: &View<'_>, lookup: &mut Lookup) -> Result<(), Error> {
    let process = id.find(&view.snapshot).ok_or(Error::Gone(id.pid))?;
    let path = CString::new(format!("task/{}/stat", id.tid)).unwrap_or_default();
    let gone = |error| match error {
        // The directory of the process is the one that was shown.
        DetailError::Gone { pid } | DetailError::Absent { pid, .. } => Error::Gone(pid),
        error => error.into(),
    };
    let stat = lookup.details.file(process, &path).map_err(gone)?;
    let stat = Stat::parse(stat).ok_or(Error::Gone(id.pid))?;
    let is_same = fastproc::difference::is_same_start(id.start_ns, stat.start_ns);
    // A leader that has exited is a zombie while other threads of its process live.
    let has_ended = stat.is_dead && (id.tid != id.pid || stat.num_threads <= 1);
    if is_same && !has_ended {
        Ok(())
    } else {
        Err(Error::Gone(id.pid))
    }
}

/// The needed values of a `stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    is_dead: bool,
    num_threads: u32,
    start_ns: u64,
}

impl Stat {
    /// The name may contain spaces and parentheses.
    fn parse(stat: &[u8]) -> Option<Self> {
        let end = stat.iter().rposition(|&byte| byte == b')')?;
        let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
        let fields: Vec<_> = rest.split_ascii_whitespace().collect();
        let ticks: u64 = fields.get(19)?.parse().ok()?;
        Some(Self {
            is_dead: matches!(*fields.first()?, "Z" | "X"),
            num_threads: fields.get(17)?.parse().ok()?,
            start_ns: ticks * TICK_NS,
        })
    }
}

fn set_nice(id: Id, nice: i32) -> Result<(), Errno> {
    let tid = Pid::from_raw(id.tid as i32).ok_or(Errno::SRCH)?;
    setpriority_process(Some(tid), nice.clamp(-20, 19))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_is_read_behind_the_name() {
        let stat = b"7 (a) Z 1 (b)) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 5 3 0 1234 0 0";
        let stat = Stat::parse(stat).expect("it is one");
        let expected = Stat {
            is_dead: false,
            num_threads: 3,
            start_ns: 1234 * TICK_NS,
        };
        assert_eq!(stat, expected);
        assert_eq!(Stat::parse(b"7 (a) S 1"), None);
    }

    #[test]
    fn pids_are_ours_where_there_is_one_and_it_is_that_of_this_process() {
        let own = std::process::id();
        for (status, ours) in [
            (format!("Name:\tx\nPid:\t{own}\nNSpid:\t{own}\n"), true),
            (format!("Pid:\t{own}\nNSpid:\t{own}\t{own}\n"), false),
            (format!("Pid:\t{0}\nNSpid:\t{0}\t{own}\n", own + 1), false),
            (format!("Pid:\t{own}\n"), true),
            (format!("Pid:\t{}\n", own + 1), false),
            (String::new(), false),
        ] {
            assert_eq!(has_our_pids(&status), ours, "{status}");
        }
        let status = std::fs::read_to_string("/proc/self/status").expect("/proc is there");
        assert!(has_our_pids(&status));
    }
}
