//! The process `fastproc-exporter`, which serves metrics to the network. It has no privileges and opens no files; this
//! process collects, and parses nothing from the network.

use std::{
    ffi::{OsStr, OsString},
    io,
    net::TcpListener,
    os::fd::{AsFd, OwnedFd},
    path::Path,
    process::{Child, ExitCode, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use fastproc_metrics::{
    descriptors,
    link::{self, Link, Question, take},
    naming::{Item, Rules},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::retry_on_intr,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::{
    Args,
    configuration::Files,
    signals::{self, Signals},
};
use crate::{Failure, program};

const PROGRAM: &str = "fastproc-exporter";

#[derive(Debug, thiserror::Error)]
enum ExporterError {
    #[error(
        "{PROGRAM} is not installed, neither beside this program nor in PATH: fastproc's archive and packages have it, and \
         cargo install {PROGRAM} builds it; in fastproc's sources cargo build --release -p {PROGRAM} does"
    )]
    NotInstalled,
    #[error("cannot run {PROGRAM}")]
    Failed(#[source] io::Error),
    #[error("{PROGRAM} has ended unexpectedly")]
    EndedByItself,
    #[error("{PROGRAM} has failed: {0}")]
    Ended(ExitStatus),
}

/// The exporter, from its start.
#[derive(Debug)]
pub struct Exporter {
    process: Process,
    link: Link,
    files: Files,
}

/// The result of its configuration.
#[derive(Debug, Default)]
pub struct Configured {
    /// The rules of its file.
    pub rules: Option<Rules>,
    pub has_tls: bool,
}

fn argument(name: &str, value: impl AsRef<OsStr>) -> OsString {
    let mut argument = OsString::from(format!("--{name}="));
    argument.push(value);
    argument
}

impl Exporter {
    /// Starts it. It drops its privileges by itself.
    pub fn start(args: &Args) -> Result<Self, Failure> {
        let (link, other) = Link::pair()?;
        let files = args.files();
        let path = |path: &Option<_>| path.as_deref().map(Path::as_os_str).map(OsStr::to_owned);
        let given = [
            ("user", args.user.clone().map(OsString::from)),
            ("config", path(&files.groups)),
            ("web.config.file", path(&files.web)),
        ];
        let mut command = program::command(PROGRAM);
        command
            .arg(argument("collected", link::VERSION))
            .args(
                given
                    .into_iter()
                    .filter_map(|(name, value)| Some(argument(name, value?))),
            )
            .arg(argument("web.telemetry-path", &args.telemetry_path))
            .arg(argument(
                "min-interval-ns",
                args.min_interval.as_nanos().to_string(),
            ))
            .arg(argument(
                "max-connections",
                args.max_connections.to_string(),
            ))
            .args(args.enable_lifecycle.then_some("--web.enable-lifecycle"))
            .stdin(Stdio::from(OwnedFd::from(other)))
            .stdout(Stdio::null());
        descriptors::keep_from_programs()?;
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ExporterError::NotInstalled,
            _ => ExporterError::Failed(error),
        })?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let process = Process {
            child,
            pidfd,
            patience: args.end_within,
        };
        Ok(Self {
            process,
            link,
            files,
        })
    }

    /// Opens the configuration files for it, until it has parsed them. `None`: it has exited, and reported why.
    pub fn configure(&mut self) -> Result<Option<Configured>, Failure> {
        while let Some(message) = self.link.receive()? {
            if Question::of(&message) != Some(Question::Configured) {
                self.files.answer(&self.link, message)?;
                continue;
            }
            let has_tls = message.words[1] != 0;
            if message.descriptor.is_some() && self.files.groups.is_none() {
                return Err("rules of groups came, and there is no --config".into());
            }
            let rules = message.descriptor.map(take).transpose()?;
            let rules = rules.map(|text| Rules::of_items(&Item::from_bytes(&text)?));
            return Ok(Some(Configured {
                rules: rules.transpose()?,
                has_tls,
            }));
        }
        Ok(None)
    }

    /// Its exit status, whether it exits by itself or because it is no longer needed.
    pub fn end(self) -> Result<ExitCode, Failure> {
        let Self { process, link, .. } = self;
        drop(link);
        let status = process.end()?;
        match status.code() {
            Some(code) => Ok(ExitCode::from(code as u8)),
            None => Err(ExporterError::Ended(status).into()),
        }
    }

    /// Makes it serve: it accepts connections at these sockets, and requests metrics through the returned link. From now
    /// on this process passes signals on to it, and opens files when it reloads its configuration.
    pub fn begin(self, listeners: &[TcpListener]) -> Result<(Link, Serving), Failure> {
        let Self {
            process,
            link,
            mut files,
        } = self;
        let (scrapes, other) = Link::pair()?;
        for (at, listener) in listeners.iter().enumerate() {
            let remaining = (listeners.len() - at) as u64;
            link.send([remaining, 0, 0, 0], Some(listener.as_fd()))?;
        }
        link.send([0; link::WORDS], Some(other.as_fd()))?;
        let pidfd = process.pidfd.try_clone()?;
        signals::on(&[SIGHUP], move || send(&pidfd, Signal::HUP))?;
        let (pidfd, patience) = (process.pidfd.try_clone()?, process.patience);
        signals::on(&[SIGTERM, SIGINT], move || {
            send(&pidfd, Signal::TERM);
            end_within(&pidfd, patience);
            // This process exits with it, unless collecting hangs, for example because of a dead file system.
            thread::sleep(patience);
            signal_hook::low_level::exit(0);
        })?;
        thread::Builder::new().name("files".into()).spawn(move || {
            while let Ok(Some(message)) = link.receive() {
                if files.answer(&link, message).is_err() {
                    break;
                }
            }
        })?;
        Ok((scrapes, Serving(process)))
    }
}

/// Sends a signal to a process, which may have exited.
fn send(pidfd: &OwnedFd, signal: Signal) {
    let _ = pidfd_send_signal(pidfd, signal);
}

/// Waits until a process has exited. Kills it if that takes longer than this.
fn end_within(pidfd: &OwnedFd, patience: Duration) {
    let patience = Timespec::try_from(patience).ok();
    // A signal to this thread would interrupt the wait.
    let ended = retry_on_intr(|| poll(&mut [PollFd::new(pidfd, PollFlags::IN)], patience.as_ref()));
    if ended != Ok(1) {
        send(pidfd, Signal::KILL);
    }
}

/// The exporter's process.
#[derive(Debug)]
struct Process {
    child: Child,
    pidfd: OwnedFd,
    /// How long it may take to exit when it should.
    patience: Duration,
}

impl Process {
    /// Its exit status. It should exit now.
    fn end(mut self) -> io::Result<ExitStatus> {
        end_within(&self.pidfd, self.patience);
        self.child.wait()
    }
}

/// The exporter while it serves.
#[derive(Debug)]
pub struct Serving(Process);

impl Serving {
    pub fn pid(&self) -> u32 {
        self.0.child.id()
    }

    /// Makes it reload its configuration.
    pub fn hang_up(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0.pidfd, Signal::HUP)?)
    }

    /// Waits until it has exited, which only a signal to this process should cause. Kills it if it does not exit.
    pub fn end(self, signals: &Signals) -> Result<(), Failure> {
        let status = self.0.end()?;
        if signals.told_to_end() {
            return Ok(());
        }
        let error = if status.success() {
            ExporterError::EndedByItself
        } else {
            ExporterError::Ended(status)
        };
        Err(error.into())
    }

    /// Kills it without waiting.
    pub fn kill(&self) {
        send(&self.0.pidfd, Signal::KILL);
    }
}
