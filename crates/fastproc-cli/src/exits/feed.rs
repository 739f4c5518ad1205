//! Where exits come from, and waiting for them.

use std::{
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    time::Duration,
};

use fastproc::{
    exits::{Exits, Programs},
    source::service,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::{Stream, refused::Refused};
use crate::failure::Failure;

/// The source of exits.
pub enum Feed {
    /// This process records them, with known command lines if they are requested.
    Own(Box<Exits>, Option<Programs>),
    Service(service::Exits),
}

/// How often to query the service.
const EVERY: Duration = Duration::from_millis(100);

/// How often to look for processes whose record was lost.
const SECOND: Duration = Duration::from_secs(1);

impl Feed {
    pub fn open(execs: bool, cmdlines: bool) -> Result<Self, Failure> {
        let exits = Exits::builder();
        let refused = match exits.execs(execs || cmdlines).at_once(true).open() {
            Ok(exits) => {
                return Ok(Self::Own(exits.into(), cmdlines.then(Programs::default)));
            }
            Err(error) => error,
        };
        let path = service::socket_path().filter(|_| !execs);
        match path.map(|path| service::Exits::open(&path)) {
            Some(Ok(exits)) => Ok(Self::Service(exits)),
            _ if execs => Err(Refused::Execs(refused).into()),
            None | Some(Err(service::Error::NotThere { .. })) => {
                Err(Refused::Exits(refused).into())
            }
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Shows the events since the last call.
    pub fn read(&mut self, stream: &mut Stream) -> Result<(), Failure> {
        let mut result = Ok(());
        match self {
            Self::Own(exits, programs) => {
                let viewer = exits.viewer();
                exits.read(|event| {
                    if result.is_ok() {
                        result = stream.take(&event, &viewer, programs.as_mut());
                    }
                })?;
            }
            Self::Service(exits) => exits.read(|exit, cmdline| {
                if result.is_ok() {
                    result = stream.show_exit(exit, cmdline);
                }
            })?,
        }
        Ok(result?)
    }

    /// A descriptor that becomes readable when there are events.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Own(exits, _) => Some(exits.fd()),
            Self::Service(_) => None,
        }
    }

    /// How long to wait for an event. A process whose record was lost causes none, so the command must look for it.
    pub const fn patience(&self) -> Duration {
        match self {
            Self::Own(..) => SECOND,
            Self::Service(_) => EVERY,
        }
    }

    pub fn lost(&self) -> u64 {
        match self {
            Self::Own(exits, _) => exits.lost(),
            Self::Service(exits) => exits.lost(),
        }
    }
}

/// Events that end the command.
pub struct Stops {
    signalled: UnixStream,
}

impl Stops {
    pub fn new() -> Result<Self, Failure> {
        let (signalled, told) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, told.try_clone()?)?;
        }
        Ok(Self { signalled })
    }

    /// Waits for an event, at most for `patience`. Returns whether to stop.
    pub fn wait(
        &self,
        events: Option<BorrowedFd<'_>>,
        patience: Duration,
    ) -> Result<bool, Failure> {
        let patience = Timespec::try_from(patience)?;
        let output = io::stdout();
        // The reader of the pipe has closed it.
        let output: BorrowedFd<'_> = output.as_fd();
        let mut fds = vec![
            PollFd::new(&self.signalled, PollFlags::IN),
            PollFd::from_borrowed_fd(output, PollFlags::empty()),
        ];
        fds.extend(events.map(|events| PollFd::from_borrowed_fd(events, PollFlags::IN)));
        match poll(&mut fds, Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Box::new(error)),
        }
        Ok(fds[..2].iter().any(|fd| !fd.revents().is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a quiet machine no event ends the wait.
    #[test]
    fn nothing_is_waited_for_without_end() {
        let stops = Stops::new().expect("a pipe");
        let (quiet, _writer) = UnixStream::pair().expect("a pair");
        let exits = Exits::builder().at_once(true).open().ok();
        let own = exits.map(|exits| Feed::Own(exits.into(), None));
        let patience = own.as_ref().map_or(EVERY, Feed::patience);
        let ends = stops.wait(Some(quiet.as_fd()), patience);
        assert!(!ends.expect("it can be waited for"));
    }
}
