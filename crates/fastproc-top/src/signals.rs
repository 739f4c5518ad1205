//! Signals, and what is done to processes.

use fastproc_columns::Lookup;
use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, getpriority_process, pidfd_open, pidfd_send_signal,
        setpriority_process,
    },
};

use crate::{feed::View, id::Id, state::Deed};

/// The signals of signal(7), those first that people send.
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

impl Deed {
    /// What it is, in words.
    pub fn describe(self) -> String {
        match self {
            Self::Signal(number) => format!("Send SIG{} to", name(number)),
            Self::Nice(nice) => format!("Set the nice value {nice} of"),
            Self::NiceBy(by) => format!("Change the nice value by {by:+} of"),
        }
    }

    /// Does it to a process, or to a thread's. It must be the very process that was shown: a pid may have been given
    /// away since.
    pub fn apply(self, id: Id, view: &View<'_>, lookup: &mut Lookup) -> Result<(), String> {
        let gone = || format!("process {} is no more", id.pid);
        let process = view.snapshot.get(id.pid).ok_or_else(gone)?;
        let same = fastproc::difference::is_same_start(id.start_ns, process.identity().start_ns);
        if id.tid == id.pid && !same {
            return Err(gone());
        }
        let pid = Pid::from_raw(id.pid as i32).ok_or_else(gone)?;
        // From here on the descriptor stands for whoever has the pid; the start time tells whether that is the one.
        let descriptor = pidfd_open(pid, PidfdFlags::empty());
        lookup
            .details
            .file(process, c"stat")
            .map_err(|error| error.to_string())?;
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
        done.map_err(|error| format!("process {}: {}", id.pid, std::io::Error::from(error)))
    }
}

fn set_nice(id: Id, nice: i32) -> Result<(), Errno> {
    let tid = Pid::from_raw(id.tid as i32).ok_or(Errno::SRCH)?;
    setpriority_process(Some(tid), nice.clamp(-20, 19))
}
