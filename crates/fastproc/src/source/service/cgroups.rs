//! Snapshots of the cgroups from the service, as parts of a buffer. The reader of cgroups knows what they contain.

use std::{path::PathBuf, time::Duration};

use super::{
    connection::Connection,
    nanoseconds,
    wire::{Op, Reply, Request},
};
use crate::base::{
    error::service::{Error, Status},
    plain::Plain,
};

/// A connection for snapshots of the cgroups, which is opened when it is needed.
#[derive(Debug)]
pub(crate) struct CgroupClient {
    path: PathBuf,
    timeout: Duration,
    connection: Option<Connection>,
    reply: Reply,
}

impl CgroupClient {
    /// Connects to a service that this process trusts.
    pub(crate) fn open(path: PathBuf, timeout: Duration) -> Result<Self, Error> {
        let connection = Connection::open(&path, timeout)?;
        Ok(Self {
            path,
            timeout,
            connection: Some(connection),
            reply: Reply::empty(Status::Ok),
        })
    }

    /// Requests a snapshot with these groups, and maps it. `layout`: that of this version. After an error the next call
    /// connects again.
    pub(crate) fn ask(&mut self, groups: u32, max_age: Duration, layout: u64) -> Result<(), Error> {
        let had_connection = self.connection.is_some();
        let mut asked = self.try_once(groups, max_age);
        // The service was restarted since the last time.
        if had_connection && matches!(asked, Err(Error::Broken(_))) {
            asked = self.try_once(groups, max_age);
        }
        self.reply = asked?;
        if self.reply.layout == layout {
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
            ..Request::new(Op::Cgroups)
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
