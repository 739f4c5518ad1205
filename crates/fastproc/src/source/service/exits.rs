//! What ended, by the service, for who wants no snapshots.

use std::{path::Path, time::Duration};

use super::{
    connection::Connection,
    layout,
    wire::{Op, Reply, Request, part},
};
use crate::{
    base::error::service::{Error, Status},
    records::record::ExitRecord,
    snapshot::{cmdline::Cmdline, exit::Exit, texts::Texts},
};

/// How long it is waited for.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Processes that end, as the service shows them to this process: [`exits::Exits`](crate::exits::Exits) without privileges.
#[derive(Debug)]
pub struct Exits {
    connection: Connection,
    /// Number of the last one that came.
    last: u64,
    lost: u64,
}

impl Exits {
    /// Has the service that listens there record them, from now on until this is dropped.
    ///
    /// # Errors
    /// There is none, or it cannot record exits, or serves this process not at all.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut exits = Self {
            connection: Connection::open(path, TIMEOUT)?,
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
            op: Op::Exits,
            groups: 0,
            max_age_ns: 0,
            generation: 0,
            holds: self.connection.holds(),
            texts: Texts::empty(),
            texts_max_age_ns: 0,
            exits: true,
            exits_after: self.last,
        })?;
        match reply.status {
            Status::Ok if reply.exits_last == 0 => Err(Error::NoExits),
            Status::Ok => Ok(reply),
            status => Err(Error::Refused(status)),
        }
    }

    /// Hands over what ended since the last time, each with its command line, if that is known.
    ///
    /// # Errors
    /// The service has ended, or does not keep to the protocol.
    pub fn read(&mut self, mut each: impl FnMut(&Exit, Option<Cmdline<'_>>)) -> Result<(), Error> {
        let reply = self.ask()?;
        if reply.exits_after != self.last || reply.exits_last < self.last {
            return Err(Error::Protocol("exits of another time"));
        }
        let (exits, lines) = (reply.parts[part::EXITS], reply.parts[part::EXIT_LINES]);
        let mut read = 0;
        if exits.count > 0 {
            if exits.stride != size_of::<ExitRecord>() as u64 {
                return Err(Error::Protocol("elements of another size"));
            }
            let buffer = self.connection.buffer(reply.buffer);
            let parts = buffer.and_then(|buffer| {
                let records = buffer.elements::<ExitRecord>(exits.offset, exits.count)?;
                Some((records, buffer.elements::<u8>(lines.offset, lines.count)?))
            });
            let Some((records, lines)) = parts else {
                return Err(Error::Protocol("a part that is not within the buffer"));
            };
            for record in records {
                let exit = Exit::of_exit_record(record);
                each(&exit, exit.line(lines));
            }
            read = records.len() as u64;
        }
        self.lost += (reply.exits_last - self.last).saturating_sub(read);
        self.last = reply.exits_last;
        Ok(())
    }

    /// Exits that there was no room for, since it was opened. They are gone.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}
