//! The role of this process: the opener, or, executed again by the opener, one of the testbed's roles.

use std::{
    env,
    fs::File,
    io::{self, PipeReader, PipeWriter},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, OwnedFd},
    process::{PidfdFlags, getppid, pidfd_open},
};

use crate::{sys, wait::GUARD};

const ROLE: &str = "FASTPROC_TESTBED_ROLE";

/// The roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Keeps test processes. Its argument names them, see [`supervisor::main`].
    Supervisor,
    /// Makes storms.
    Storm,
    /// A test process that had to execute a program. Its argument is its label, and the descriptors of its context.
    TestProcess,
    /// Changes one of its properties. Its argument names it, see [`change::main`].
    Change,
    /// Serves a file system, see [`hung_fuse::main`](crate::hung_fuse::main).
    Fuse,
    /// Ends at once: a storm executes it.
    ShortLived,
}

const ROLES: [(Role, &str); 6] = [
    (Role::Supervisor, "supervisor"),
    (Role::Storm, "storm"),
    (Role::TestProcess, "process"),
    (Role::Change, "change"),
    (Role::Fuse, "fuse"),
    (Role::ShortLived, "short-lived"),
];

/// The role for which this process was executed, and its argument. `None`: it is the opener.
pub fn of_this_process() -> Option<(Option<Role>, String)> {
    let value = env::var_os(ROLE)?;
    let value = value.to_string_lossy();
    let (name, argument) = value.split_once(' ').unwrap_or((&value, ""));
    let role = ROLES.iter().find(|role| role.1 == name);
    Some((role.map(|role| role.0), argument.to_owned()))
}

/// The command that executes this program again in another role.
pub fn command(role: Role, argument: &str) -> Command {
    let name = ROLES
        .iter()
        .find(|entry| entry.0 == role)
        .map_or("", |entry| entry.1);
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0(format!("fastproc-testbed {name}"))
        .env(ROLE, format!("{name} {argument}"));
    command
}

/// A child process in another role, which ends when this is dropped or its opener dies.
pub struct Servant {
    child: Child,
    lifeline: Option<PipeWriter>,
    /// The servant's output.
    pub report: PipeReader,
}

impl Servant {
    /// Executes this program again.
    pub fn call(role: Role, argument: &str) -> io::Result<Self> {
        if env::var_os(ROLE).is_some() {
            // The constructor did not run, or a role opens a testbed: executing this program again would never end.
            return Err(io::Error::other(format!(
                "{ROLE} is set, which the testbed keeps to itself"
            )));
        }
        // Both ends are closed on exec, so no other program that is started meanwhile holds a lifeline.
        let (held, lifeline) = io::pipe()?;
        let (report, output) = io::pipe()?;
        let child = command(role, argument).stdin(held).stdout(output).spawn()?;
        Ok(Self {
            child,
            lifeline: Some(lifeline),
            report,
        })
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Makes it end; it ends its own processes first.
    pub fn dismiss(&mut self) {
        self.lifeline = None;
    }
}

impl Drop for Servant {
    fn drop(&mut self) {
        self.dismiss();
        // It only needs to kill and to reap. If it hangs, its processes die with it.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32)
            && let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty())
            && !ready(&pidfd, GUARD)
        {
            eprintln!(
                "fastproc-testbed: process {} does not end by itself and is killed",
                self.child.id()
            );
            // This fails only if it has ended, as intended.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Whether `fd` becomes readable or is hung up, within `limit`.
pub fn ready(fd: impl AsFd, limit: Duration) -> bool {
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: limit.subsec_nanos().into(),
    };
    loop {
        match poll(&mut fds, Some(&limit)) {
            Err(rustix::io::Errno::INTR) => {}
            result => return result.is_ok_and(|count| count > 0),
        }
    }
}

/// What a servant does first: it leaves the opener's session and descriptors, and returns its lifeline.
///
/// In its own session it does not get the terminal's signals: after Ctrl-C, it ends in order when the opener has ended.
pub fn serve() -> Lifeline {
    // This fails only for the leader of a process group, which a new child is not.
    let _ = rustix::process::setsid();
    // Everything else that the opener left open across exec.
    sys::close_range(3, u32::MAX);
    let parent = getppid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    Lifeline { parent }
}

/// The servant's end of the lifeline: standard input, and the opener's process.
pub struct Lifeline {
    parent: Option<OwnedFd>,
}

impl Lifeline {
    /// Waits until the opener closes the lifeline or dies.
    pub fn wait(&self) {
        while matches!(self.poll(None), Err(rustix::io::Errno::INTR)) {}
    }

    /// Whether the opener has closed the lifeline or died.
    pub fn is_closed(&self) -> bool {
        self.poll(Some(&Timespec::default()))
            .is_ok_and(|count| count > 0)
    }

    fn poll(&self, limit: Option<&Timespec>) -> rustix::io::Result<usize> {
        let stdin = rustix::stdio::stdin();
        let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
        fds.extend(
            self.parent
                .as_ref()
                .map(|parent| PollFd::new(parent, PollFlags::IN)),
        );
        poll(&mut fds, limit)
    }
}

/// Detaches standard input and output in a process that must not hold the servant's pipes.
pub fn leave_pipes() {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        // Both fail only without a descriptor table.
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    } else {
        sys::close_range(0, 1);
    }
}

/// Sets the standard streams of a program without output.
pub fn silent(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null())
}
