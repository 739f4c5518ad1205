//! Reads open files from the service, for users without the right to load BPF programs.

use std::{path::PathBuf, time::Duration};

use super::{
    Files,
    complete::complete,
    error::Error,
    groups::Fields,
    object::layout::{Process, UNSURE},
    procfs::Procfs,
    tables::{Names, Owned, Tables},
};
use crate::{
    base::{error, proc_root},
    source::service::{
        PartsClient,
        wire::{Op, part},
    },
};

/// A reader of the service's snapshots.
#[derive(Debug)]
pub(super) struct Served {
    client: PartsClient,
    /// Reads what the service leaves to this process, and everything while it does not answer.
    procfs: Procfs,
    owned: Owned,
}

impl Served {
    /// Connects to the service at this socket. `only`: there is no other source. `timeout`: how long to wait for an answer,
    /// if that was chosen.
    pub(super) fn open(
        fields: Fields,
        path: Option<PathBuf>,
        only: bool,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        if proc_root::is_elsewhere() {
            return Err(Error::OtherProc);
        }
        let what = (Op::Files, Files::LAYOUT);
        let client = PartsClient::open(what, path, only, timeout);
        Ok(Self {
            client: client.map_err(error::Error::from)?,
            procfs: Procfs::open(fields)?,
            owned: Owned::default(),
        })
    }

    /// Whether the last snapshot came from the service.
    pub(super) fn is_used(&self) -> bool {
        self.client.is_used()
    }

    pub(super) fn tables(&self) -> Tables<'_> {
        if self.is_used() {
            self.owned.tables()
        } else {
            self.procfs.tables()
        }
    }

    pub(super) fn began_ns(&self) -> u64 {
        if self.is_used() {
            self.client.began_ns()
        } else {
            self.procfs.began_ns()
        }
    }

    /// Reads a snapshot, from `/proc` if the service has none.
    pub(super) fn read(
        &mut self,
        fields: Fields,
        pids: Option<&[u32]>,
        names: &mut Names,
    ) -> Result<(), Error> {
        let Self {
            client,
            procfs,
            owned,
        } = self;
        owned.clear();
        // The service calls no function of a file system: the files of a user may be on one of its own.
        let asked = (fields - Fields::STAT).bits();
        let taken = client.read(asked, Duration::ZERO, |client| take(client, procfs, owned));
        match taken.map_err(error::Error::from)? {
            Some(Ok(())) => (),
            Some(Err(error)) => return Err(error),
            None => return procfs.read(pids),
        }
        for (at, record) in complete(owned.tables(), fields, names) {
            owned.records[at] = record;
        }
        Ok(())
    }
}

/// Copies the answer, and reads the processes of which the service does not know what the kernel shows. `None`: it is malformed.
fn take(client: &PartsClient, procfs: &mut Procfs, to: &mut Owned) -> Option<Result<(), Error>> {
    let served = Tables {
        processes: client.part::<Process>(part::PROCESSES)?,
        records: client.part(part::FILES)?,
        sockets: client.part(part::SOCKETS)?,
        texts: client.part(part::NAMES)?,
    };
    let is_unsure = |process: &&Process| process.state & UNSURE != 0;
    let unsure = served.processes.iter().filter(is_unsure);
    let unsure: Vec<u32> = unsure.map(|process| process.tgid).collect();
    if let Err(error) = procfs.read(Some(&unsure)) {
        return Some(Err(error));
    }
    let mut read = procfs.tables().processes.iter().peekable();
    for process in served.processes {
        if !is_unsure(&process) {
            to.add(process, served);
        } else if let Some(own) = read.next_if(|own| own.tgid == process.tgid) {
            to.add(own, procfs.tables());
        }
    }
    Some(Ok(()))
}
