//! Reads cgroups from the service, for users without the right to load BPF programs.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{
    Cgroups, Reader,
    error::Error,
    fields::Fields,
    lists::Lists,
    record::{self, Device, Record},
    stat::Lines,
    tree::Tree,
};
use crate::{
    base::{cgroup_root, error, error::service::Error as ServiceError, proc_root},
    source::service::{
        CgroupClient,
        wire::{MALFORMED, part},
    },
};

/// How long to wait for an answer if there is another source, and if there is none.
const SHORT: Duration = Duration::from_millis(500);
const LONG: Duration = Duration::from_secs(30);
/// How long the files are read after the service has failed.
const PAUSE: Duration = Duration::from_secs(10);

/// A reader of the service's snapshots.
#[derive(Debug)]
pub(super) struct Served {
    client: CgroupClient,
    /// Whether there is no other source.
    only: bool,
    failed: Option<Instant>,
    pub(super) records: Vec<Record>,
}

/// Where a snapshot is written.
struct Target<'a> {
    tree: &'a mut Tree,
    shown: &'a mut Vec<u32>,
    lists: &'a mut Lists,
    lines: &'a mut Lines,
}

impl Served {
    /// Connects to the service at this socket. `only`: there is no other source. `timeout`: how long to wait for an answer,
    /// if that was chosen.
    pub(super) fn open(
        path: Option<PathBuf>,
        only: bool,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let failed = |error: ServiceError| Error::from(error::Error::from(error));
        // The service reads its own hierarchy.
        if cgroup_root::is_set() || proc_root::is_elsewhere() {
            return Err(Error::OtherHierarchy);
        }
        let path = path.ok_or_else(|| failed(ServiceError::NotWanted))?;
        let wait = timeout.unwrap_or(if only { LONG } else { SHORT });
        Ok(Self {
            client: CgroupClient::open(path, wait).map_err(failed)?,
            only,
            failed: None,
            records: Vec::new(),
        })
    }

    /// Whether the last snapshot came from the service.
    pub(super) fn is_used(&self) -> bool {
        self.failed.is_none()
    }

    /// Reads a snapshot. Returns when it began; `None`: the files must be read, and the service is asked again later.
    fn read(
        &mut self,
        fields: Fields,
        max_age: Duration,
        target: Target<'_>,
    ) -> Result<Option<u64>, Error> {
        if !self.only && self.failed.is_some_and(|at| at.elapsed() < PAUSE) {
            return Ok(None);
        }
        let layout = record::LAYOUT;
        let asked = self.client.ask(fields.bits(), max_age, layout);
        let read = asked.and_then(|()| self.take(target).ok_or(MALFORMED));
        self.failed = read.is_err().then(Instant::now);
        match read {
            Ok(()) => Ok(Some(self.client.began_ns())),
            Err(error) if self.only => Err(error::Error::from(error).into()),
            Err(_) => Ok(None),
        }
    }

    /// Copies the answer. `None`: it is malformed.
    fn take(&mut self, target: Target<'_>) -> Option<()> {
        let Target {
            tree,
            shown,
            lists,
            lines,
        } = target;
        let records = self.client.part::<Record>(part::CGROUPS)?;
        let places = self.client.part::<u64>(part::PATHS)?;
        let bytes = self.client.part::<u8>(part::PATH_BYTES)?;
        let names = self.client.part::<u8>(part::STAT_NAMES)?;
        if records.len() != places.len() {
            return None;
        }
        lines.set_names(std::str::from_utf8(names).ok()?);
        let devices = &mut lists.devices;
        devices.extend_from_slice(self.client.part::<Device>(part::DEVICES)?);
        self.records.clear();
        self.records.extend_from_slice(records);
        shown.clear();
        tree.begin();
        for (at, (record, place)) in self.records.iter().zip(places).enumerate() {
            let [start, len] = [*place as u32, (place >> 32) as u32].map(|half| half as usize);
            let path = bytes.get(start..)?.get(..len)?;
            tree.learn(record.identity.id, path);
            shown.push(at as u32);
        }
        tree.end();
        tree.left_out = self.client.left_out();
        Some(())
    }
}

impl Cgroups {
    /// Reads the service's snapshot. False: it has none, so the files must be read.
    pub(super) fn read_served(&mut self) -> Result<bool, Error> {
        let Self {
            reader: Reader::Service(served),
            tree,
            files,
            shown,
            lists,
            lines,
            fields,
            ..
        } = self
        else {
            return Ok(false);
        };
        let target = Target {
            tree,
            shown,
            lists,
            lines,
        };
        let asked = *fields - Fields::PRESSURE_AVERAGES;
        let Some(began_ns) = served.read(asked, self.max_age, target)? else {
            self.met.began_ns = 0;
            return Ok(false);
        };
        self.met.began_ns = began_ns;
        // These are only in files, which this process can read as well as the service.
        let missing = *fields & Fields::PRESSURE_AVERAGES;
        if !missing.is_empty() {
            for record in &mut served.records {
                files.fill(tree, record, missing, lines, lists);
            }
        }
        Ok(true)
    }
}
