//! Reads cgroups from the service, for users without the right to load BPF programs.

use std::{path::PathBuf, time::Duration};

use super::{
    Cgroups, Reader,
    error::Error,
    fields::Fields,
    lists::Lists,
    record::{Device, Record},
    stat::Lines,
    tree::Tree,
};
use crate::{
    base::{cgroup_root, error, proc_root},
    source::service::{
        PartsClient,
        wire::{Op, part},
    },
};

/// A reader of the service's snapshots.
#[derive(Debug)]
pub(super) struct Served {
    client: PartsClient,
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
        // The service reads its own hierarchy.
        if cgroup_root::is_set() || proc_root::is_elsewhere() {
            return Err(Error::OtherHierarchy);
        }
        let what = (Op::Cgroups, Record::LAYOUT);
        let client = PartsClient::open(what, path, only, timeout);
        Ok(Self {
            client: client.map_err(error::Error::from)?,
            records: Vec::new(),
        })
    }

    /// Whether the last snapshot came from the service.
    pub(super) fn is_used(&self) -> bool {
        self.client.is_used()
    }

    /// Reads a snapshot. Returns when it began; `None`: the files must be read, and the service is asked again later.
    fn read(
        &mut self,
        fields: Fields,
        max_age: Duration,
        target: Target<'_>,
    ) -> Result<Option<u64>, Error> {
        let Self { client, records } = self;
        let read = client.read(fields.bits(), max_age, |client| {
            take(client, records, target)
        });
        let read = read.map_err(error::Error::from)?;
        Ok(read.map(|()| client.began_ns()))
    }
}

/// Copies the answer. `None`: it is malformed.
fn take(client: &PartsClient, kept: &mut Vec<Record>, target: Target<'_>) -> Option<()> {
    let Target {
        tree,
        shown,
        lists,
        lines,
    } = target;
    let records = client.part::<Record>(part::CGROUPS)?;
    let places = client.part::<u64>(part::PATHS)?;
    let bytes = client.part::<u8>(part::PATH_BYTES)?;
    let names = client.part::<u8>(part::STAT_NAMES)?;
    if records.len() != places.len() {
        return None;
    }
    lines.set_names(std::str::from_utf8(names).ok()?);
    let devices = &mut lists.devices;
    devices.extend_from_slice(client.part::<Device>(part::DEVICES)?);
    kept.clear();
    kept.extend_from_slice(records);
    shown.clear();
    tree.begin();
    for (at, (record, place)) in kept.iter().zip(places).enumerate() {
        let [start, len] = [*place as u32, (place >> 32) as u32].map(|half| half as usize);
        let path = bytes.get(start..)?.get(..len)?;
        tree.learn(record.identity.id, path);
        shown.push(at as u32);
    }
    tree.end();
    tree.left_out = client.left_out();
    Some(())
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
