//! Snapshots of the cgroups and of open files from the service, as parts of a buffer, which their collectors understand.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{
    connection::Connection,
    nanoseconds,
    wire::{MALFORMED, Op, Reply, Request},
};
use crate::base::{
    error::service::{Error, Status},
    plain::Plain,
};

/// How long to wait for an answer if there is another source, and if there is none.
const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(30);
/// How long another source is used after the service has failed.
const PAUSE: Duration = Duration::from_secs(10);

/// A connection for snapshots of one kind, which is opened when it is needed.
#[derive(Debug)]
pub(crate) struct PartsClient {
    op: Op,
    /// That of this version.
    layout: u64,
    path: PathBuf,
    timeout: Duration,
    /// Whether there is no other source.
    only: bool,
    failed: Option<Instant>,
    connection: Option<Connection>,
    reply: Reply,
}

impl PartsClient {
    /// Connects to a service that this process trusts, at this socket. `only`: there is no other source. `timeout`: how long to
    /// wait for an answer, if that was chosen.
    pub(crate) fn open(
        (op, layout): (Op, u64),
        path: Option<PathBuf>,
        only: bool,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let path = path.ok_or(Error::NotWanted)?;
        let timeout = timeout.unwrap_or(if only { LONG } else { SHORT });
        let connection = Connection::open(&path, timeout)?;
        Ok(Self {
            op,
            layout,
            path,
            timeout,
            only,
            failed: None,
            connection: Some(connection),
            reply: Reply::empty(Status::Ok),
        })
    }

    /// Whether the last snapshot came from the service.
    pub(crate) fn is_used(&self) -> bool {
        self.failed.is_none()
    }

    /// Requests a snapshot with these groups, maps it and takes what it contains. `None`: another source must be read, and the
    /// service is asked again later.
    pub(crate) fn read<T>(
        &mut self,
        groups: u32,
        max_age: Duration,
        take: impl FnOnce(&Self) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        if !self.only && self.failed.is_some_and(|at| at.elapsed() < PAUSE) {
            return Ok(None);
        }
        let asked = self.ask(groups, max_age);
        let read = asked.and_then(|()| take(self).ok_or(MALFORMED));
        self.failed = read.is_err().then(Instant::now);
        match read {
            Ok(taken) => Ok(Some(taken)),
            Err(error) if self.only => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// After an error the next call connects again.
    fn ask(&mut self, groups: u32, max_age: Duration) -> Result<(), Error> {
        let had_connection = self.connection.is_some();
        let mut asked = self.try_once(groups, max_age);
        // The service was restarted since the last time.
        if had_connection && matches!(asked, Err(Error::Broken(_))) {
            asked = self.try_once(groups, max_age);
        }
        self.reply = asked?;
        if self.reply.layout == self.layout {
            Ok(())
        } else {
            self.connection = None;
            Err(Error::Layout)
        }
    }

    fn try_once(&mut self, groups: u32, max_age: Duration) -> Result<Reply, Error> {
        let known = self.connection.take().filter(Connection::is_ours);
        let mut connection = match known {
            Some(connection) => connection,
            None => Connection::open(&self.path, self.timeout)?,
        };
        let reply = connection.ask(Request {
            groups,
            max_age_ns: nanoseconds(max_age),
            generation: self.reply.generation,
            holds: connection.holds(),
            ..Request::new(self.op)
        })?;
        super::check(&reply)?;
        self.connection = Some(connection);
        Ok(reply)
    }

    /// A part of the last snapshot. `None`: its elements have another size, or are not within the buffer.
    pub(crate) fn part<T: Plain>(&self, at: usize) -> Option<&[T]> {
        self.connection.as_ref()?.part(&self.reply, at)
    }

    /// The number of cgroups that the last snapshot lacks because of their long paths.
    pub(crate) fn left_out(&self) -> usize {
        self.reply.missed as usize
    }

    /// When the last snapshot began, in nanoseconds since boot, without the offset of a time namespace.
    pub(crate) fn began_ns(&self) -> u64 {
        self.reply.kernel_boottime_ns
    }
}
