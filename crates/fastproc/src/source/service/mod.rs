//! The service: it makes snapshots, and readers map them.
//!
//! A snapshot takes one message each way. The answer names a buffer, and the first answer that names it carries
//! its descriptor. The buffer is lent to the reader until its next request.

mod client;
mod connection;
mod environment;
mod exits;
mod mapping;
mod parts;
mod trust;
#[doc(hidden)]
pub mod wire;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

pub(crate) use client::PartsClient;
pub(crate) use environment::has_more_rights_than_its_caller;
pub use exits::Exits;

use self::{
    connection::Connection,
    wire::{MALFORMED, Op, Reply, Request},
};
#[doc(hidden)]
pub use self::{
    connection::status,
    environment::{DEFAULT_SOCKET, SOCKET_VARIABLE, TIMEOUT_VARIABLE, socket_path, timeout},
};
pub use crate::base::error::service::{Error, Status};
use crate::{
    base::{error, host::Host, proc_root, source_kind::SourceKind},
    exits::Served,
    records::{
        fields::Fields,
        layout,
        record::{Record, ThreadRecord},
    },
    snapshot::{
        Places, Slot, Snapshot, SnapshotStats,
        calibration::Calibration,
        kept::{Kept, Mark, Number},
        table::Table,
        texts::Texts,
    },
    source::procfs::Procfs,
};

/// The requests of a reader.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) path: PathBuf,
    pub(crate) fields: Fields,
    pub(crate) max_age: Duration,
    pub(crate) texts: Texts,
    pub(crate) texts_max_age: Duration,
    pub(crate) exits: bool,
    pub(crate) timeout: Duration,
    /// Whether there is no other source. Then this process waits for the service even if it has failed
    /// before.
    pub(crate) only: bool,
}

/// A snapshot of the service, by its numbers here and there.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    number: Number,
    generation: u64,
}

/// A source that another process fills.
#[derive(Debug)]
pub(crate) struct Service {
    settings: Settings,
    host: Host,
    connection: Option<Connection>,
    /// A connection on which the service was asked whether it serves this process, and has not answered yet.
    greeting: Option<Connection>,
    /// Whether the last try failed.
    failed: bool,
    /// The last answer. Its buffer is lent to this process.
    reply: Reply,
    /// The snapshot of that answer, and the one before it if it came by the same connection.
    taken: Taken,
    before: Taken,
    took: Duration,
    /// Reads the processes that the service left to this process, because it does not know whether the kernel would
    /// show everything about them.
    own: Option<Procfs>,
    records: Vec<Record>,
    threads: Vec<ThreadRecord>,
    pool: Vec<u64>,
    /// The order of all processes, if some of them were read here.
    slots: Vec<Slot>,
    exits: Served,
}

impl Service {
    /// Makes a source that is not connected yet.
    pub(crate) fn new(settings: Settings, host: &Host) -> Self {
        Self {
            settings,
            host: host.clone(),
            connection: None,
            greeting: None,
            failed: false,
            reply: Reply::empty(Status::Ok),
            taken: Taken::default(),
            before: Taken::default(),
            took: Duration::ZERO,
            own: None,
            records: Vec::new(),
            threads: Vec::new(),
            pool: Vec::new(),
            slots: Vec::new(),
            exits: Served::default(),
        }
    }

    /// Whether the service records exits for this reader.
    pub(crate) fn records_exits(&self) -> bool {
        self.exits.last != 0
    }

    /// Stops using the service's exits: they are recorded elsewhere.
    pub(crate) fn forget_exits(&mut self) {
        self.settings.exits = false;
        self.exits = Served::default();
    }

    /// No reader has seen the last snapshot, so none keeps records of it.
    pub(crate) fn forget_last(&mut self) {
        self.taken = Taken::default();
    }

    /// Connects, and asks whether the service serves these fields to this process.
    pub(crate) fn open(&mut self) -> Result<(), error::Error> {
        let opened = self.reconnect();
        self.failed = opened.is_err();
        Ok(opened?)
    }

    /// Connects. Does not wait for a service that has failed; its answer may arrive by the next snapshot.
    fn reconnect(&mut self) -> Result<(), Error> {
        let greeted = self.greeting.take().filter(Connection::is_ours);
        let mut connection = if let Some(connection) = greeted {
            connection
        } else {
            let connection = Connection::open(&self.settings.path, self.settings.timeout)?;
            connection.send(self.request(Op::Hello, &connection))?;
            connection
        };
        if self.failed && !self.settings.only && !connection.has_answer() {
            self.greeting = Some(connection);
            return Err(Error::Waiting);
        }
        let reply = connection.answer()?;
        check(&reply)?;
        if reply.layout != layout::id() {
            return Err(Error::Layout);
        }
        if self.exits.last == 0 && self.settings.exits {
            self.exits.last = reply.exits_last;
        }
        self.reply = reply;
        self.before = Taken::default();
        self.connection = Some(connection);
        Ok(())
    }

    fn request(&self, op: Op, connection: &Connection) -> Request {
        Request {
            op,
            groups: self.settings.fields.bits(),
            max_age_ns: nanoseconds(self.settings.max_age),
            generation: self.reply.generation,
            holds: connection.holds(),
            texts: self.settings.texts,
            texts_max_age_ns: nanoseconds(self.settings.texts_max_age),
            exits: self.settings.exits,
            exits_after: self.exits.last,
        }
    }

    /// The service's calibration.
    pub(crate) fn calibration(&self) -> Calibration {
        self.reply.calibration
    }

    /// Requests a snapshot that began no earlier than `not_before_ns`, and maps it. After an error the next call
    /// connects again.
    pub(crate) fn collect(&mut self, not_before_ns: u64) -> Result<(), error::Error> {
        let started = Instant::now();
        let had_connection = self.connection.is_some();
        self.before = std::mem::take(&mut self.taken);
        let max_age = self.settings.max_age;
        let mut made = self.ask(max_age);
        // The service was restarted since the last time; this process notices only now.
        if had_connection && matches!(made, Err(Error::Broken(_))) {
            self.connection = None;
            made = self.ask(max_age);
        }
        // While another source was in use, the service may have kept a snapshot that it made for other readers.
        if made.is_ok() && self.began_ns() < not_before_ns {
            // Records are compared with those of the answer before, which no reader has seen.
            self.before = Taken::default();
            made = self.ask(Duration::ZERO).and_then(|()| {
                if self.began_ns() < not_before_ns {
                    return Err(Error::Protocol(
                        "a snapshot that is older than the last one",
                    ));
                }
                Ok(())
            });
        }
        let made = made
            .map_err(error::Error::from)
            .and_then(|()| self.read_own());
        if made.is_ok() {
            self.take_exits();
            self.taken = Taken {
                number: Number::next(),
                generation: self.reply.generation,
            };
        }
        self.failed = made.is_err();
        if self.failed {
            self.connection = None;
        }
        self.took = started.elapsed();
        made
    }

    /// When the walk of the last answer began, on the clock of this process.
    fn began_ns(&self) -> u64 {
        self.reply
            .kernel_boottime_ns
            .saturating_add_signed(self.host.boot_offset_ns)
    }

    fn ask(&mut self, max_age: Duration) -> Result<(), Error> {
        if self
            .connection
            .as_ref()
            .is_none_or(|connection| !connection.is_ours())
        {
            self.connection = None;
            self.reconnect()?;
        }
        // Without a connection there would have been an error.
        let Some(mut connection) = self.connection.take() else {
            return Err(Error::Protocol("no connection"));
        };
        let request = Request {
            max_age_ns: nanoseconds(max_age),
            ..self.request(Op::Snapshot, &connection)
        };
        let reply = connection.ask(request)?;
        self.connection = Some(connection);
        check(&reply)?;
        if reply.layout != layout::id() {
            return Err(Error::Layout);
        }
        if reply.groups & request.groups != request.groups {
            return Err(Error::Protocol("fewer fields than asked for"));
        }
        self.reply = reply;
        // Every part must have elements of the right size, and lie within the buffer.
        let parts = [
            self.table().is_some(),
            self.unsure().is_some(),
            self.texts().is_some(),
            self.ended().is_some(),
            self.changed().is_some(),
        ];
        if parts.contains(&false) {
            return Err(MALFORMED);
        }
        Ok(())
    }

    /// Reads the processes that the service left to this process, and sorts them into the snapshot.
    fn read_own(&mut self) -> Result<(), error::Error> {
        self.records.clear();
        self.threads.clear();
        self.pool.clear();
        self.pool.push(0);
        self.slots.clear();
        if let Some(own) = &mut self.own {
            own.forget_left_out();
        }
        let unsure = self.unsure().unwrap_or_default().to_vec();
        if unsure.is_empty() {
            return Ok(());
        }
        let mut own = match self.own.take() {
            Some(own) => own,
            None => Procfs::open(&proc_root::path("/proc"), self.settings.fields, &self.host)?,
        };
        own.set_thp_disable_bit(self.reply.calibration.thp_disable_bit);
        for &pid in &unsure {
            let mut record = Record::default();
            if own.read_one(pid, &mut record, &mut self.threads, &mut self.pool)? {
                self.slots
                    .push(Slot::patched(pid, self.records.len() as u32));
                self.records.push(record);
            }
        }
        self.own = Some(own);
        let served = self.table().unwrap_or_default().records;
        let served = served.iter().enumerate();
        let served: Vec<Slot> = served
            .map(|(at, record)| Slot::walked(record.identity.tgid, at as u32))
            .collect();
        self.slots.extend(served);
        self.slots.sort_unstable();
        Ok(())
    }

    /// The records that are those of the snapshot before.
    fn kept(&self) -> Kept<'_> {
        match self.before.number {
            Number::NONE => Kept::NONE,
            of => Kept {
                by: Mark::Changed {
                    numbers: self.changed().unwrap_or_default(),
                    last: self.before.generation,
                },
                of,
            },
        }
    }

    fn take_exits(&mut self) {
        let mut exits = std::mem::take(&mut self.exits);
        if !self.settings.exits {
            return;
        }
        if let Some(answer) = self.ended() {
            exits.take(answer, &self.snapshot());
        }
        self.exits = exits;
    }

    /// Whether a snapshot is mapped.
    pub(crate) fn has_snapshot(&self) -> bool {
        self.connection.is_some() && self.reply.buffer != 0
    }

    /// The snapshot that was mapped last.
    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        let boot_offset_ns = self.host.boot_offset_ns;
        let (exits, lost_exits) = self.exits.exits().unzip();
        // The service does not tell how many it left out.
        let own_left_out = self.own.as_ref().map_or(0, Procfs::left_out);
        let stats = SnapshotStats {
            source: SourceKind::Service,
            boottime_ns: self.began_ns(),
            read_for: Duration::from_nanos(self.reply.read_for_ns),
            boot_offset_ns,
            took: self.took,
            torn: self.reply.torn,
            missed: self.reply.missed,
            left_out: own_left_out,
            grown: 0,
            reused_actions: 0,
            kept: 0,
            disproven: 0,
            lost_exits: lost_exits.unwrap_or(0),
        };
        Snapshot {
            walked: self.table().unwrap_or_default(),
            patched: Table {
                records: &self.records,
                threads: &self.threads,
                pool: &self.pool,
            },
            texts: self.texts().unwrap_or_default(),
            places: if self.slots.is_empty() {
                Places::AsTheyLie
            } else {
                Places::Slots(&self.slots)
            },
            stats,
            exits,
            number: self.taken.number,
            kept: self.kept(),
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn check(reply: &Reply) -> Result<(), Error> {
    match reply.status {
        Status::Ok => Ok(()),
        status => Err(Error::Refused(status)),
    }
}
