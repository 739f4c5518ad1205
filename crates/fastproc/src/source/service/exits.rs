//! Exits from the service, without snapshots.

use std::{path::Path, time::Duration};

use super::{
    connection::Connection,
    wire::{MALFORMED, Op, Reply, Request, part},
};
use crate::{
    base::error::service::{Error, Status},
    records::{layout, record::ExitRecord},
    snapshot::{cmdline::Cmdline, exit::Exit},
};

/// How long to wait for an answer, if `FASTPROC_SERVICE_TIMEOUT_MS` is not set.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Exited processes, as the service shows them to this process. Like [`exits::Exits`](crate::exits::Exits), but for
/// unprivileged users.
#[derive(Debug)]
pub struct Exits {
    connection: Connection,
    /// Number of the last exit that arrived.
    last: u64,
    lost: u64,
}

impl Exits {
    /// Asks the service at this socket to record exits until this value is dropped.
    ///
    /// # Errors
    /// There is no service, or it cannot record exits, or it does not serve this process.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut exits = Self {
            connection: Connection::open(path, super::timeout().unwrap_or(TIMEOUT))?,
            last: 0,
            lost: 0,
        };
        let reply = exits.ask()?;
        if reply.layout != layout::id() {
            return Err(Error::Layout);
        }
        exits.last = reply.exits_last;
        Ok(exits)
    }

    fn ask(&mut self) -> Result<Reply, Error> {
        let reply = self.connection.ask(Request {
            holds: self.connection.holds(),
            exits: true,
            exits_after: self.last,
            ..Request::new(Op::Exits)
        })?;
        match reply.status {
            Status::Ok if reply.exits_last == 0 => Err(Error::NoExits),
            Status::Ok => Ok(reply),
            status => Err(Error::Refused(status)),
        }
    }

    /// Calls `each` with every exit since the last call, and its command line, if it is known.
    ///
    /// # Errors
    /// The service has ended, or its answer is not valid.
    pub fn read(&mut self, mut each: impl FnMut(&Exit, Option<Cmdline<'_>>)) -> Result<(), Error> {
        let reply = self.ask()?;
        if reply.exits_after != self.last || reply.exits_last < self.last {
            return Err(Error::Protocol("exits of another time"));
        }
        let mut read = 0;
        if reply.parts[part::EXITS].count > 0 {
            let records = self.connection.part::<ExitRecord>(&reply, part::EXITS);
            let lines = self.connection.part::<u8>(&reply, part::EXIT_LINES);
            let (records, lines) = records.zip(lines).ok_or(MALFORMED)?;
            for record in records {
                let exit = record.to_exit();
                each(&exit, exit.line(lines));
            }
            read = records.len() as u64;
        }
        self.lost += (reply.exits_last - self.last).saturating_sub(read);
        self.last = reply.exits_last;
        Ok(())
    }

    /// Exits that were lost since this was opened, because there was no room for them.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}
