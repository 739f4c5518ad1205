//! The programs that record exits, and the ring that they write to.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::layout::Settings;
use crate::{
    base::{error::Error, timing},
    kernel::{KernelTypes, Loader, MappedRing, ObjectFile, Wanted, object_file, shapes},
    records::fields::Fields,
};

pub(crate) static OBJECT: ObjectFile = object_file!("exits.bpf");

/// Loaded only if execs are requested. A fork is needed to find the exec of the process that forked.
const OF_EXECS: [&str; 2] = ["process_execs", "process_forks"];

/// The groups of fields whose values exits have, too.
const SHOWN: Fields = Fields::CPU
    .union(Fields::USERS)
    .union(Fields::CREDENTIALS)
    .union(Fields::IO);

/// The largest ring buffer, for about 200,000 unread exits.
const MAX_BYTES: u32 = 64 << 20;

/// Exited processes of a pid namespace that are not freed yet. If there are more than this, the oldest have no final
/// values.
const MOST_ZOMBIES: u32 = 16 << 10;

/// The ring in use, and the one before.
#[derive(Debug)]
pub(super) struct Rings {
    ring: Ring,
    /// A program that had looked up the old ring before it was replaced may still write to it, so it is read
    /// once more.
    replaced: Option<Ring>,
    /// The map in which the programs find the ring.
    outer: MapHandle,
    lost: MapHandle,
    /// Whether the kernel still allows a larger ring.
    grows: bool,
    /// Closing these ends the recording.
    _links: Vec<OwnedFd>,
}

impl Rings {
    pub(super) fn open(settings: &Settings, execs: bool, bytes: u32) -> Result<Self, Error> {
        let page = rustix::param::page_size() as u32;
        let bytes = bytes.clamp(page, MAX_BYTES).next_power_of_two();
        let types = KernelTypes::read(Wanted {
            object: Some(&OBJECT),
            paths: &shapes::paths(),
            ..Wanted::default()
        })?;
        timing::done("type information");
        shapes::check(&types, SHOWN)?;
        let mut loader = Loader::open(&OBJECT, &types)?;
        loader.set("exit_settings", settings)?;
        loader.set_len("first_ring", bytes)?;
        if settings.pid_ns != 0 {
            loader.set_len("ended", MOST_ZOMBIES)?;
        }
        let mut programs = vec!["process_ends", "task_freed"];
        if execs {
            programs.extend(OF_EXECS);
        } else {
            for program in OF_EXECS {
                loader.skip(program);
            }
        }
        let loaded = loader.load()?;
        let links = programs.into_iter().map(|program| loaded.attach(program));
        let links = links.collect::<Result<_, _>>()?;
        timing::done("attaching");
        Ok(Self {
            ring: Ring::map(loaded.map_handle("first_ring")?)?,
            replaced: None,
            outer: loaded.map_handle("rings")?,
            lost: loaded.map_handle("lost")?,
            grows: true,
            _links: links,
        })
    }

    /// Calls `each` with every waiting event. Makes the ring larger if it was more than half full.
    pub(super) fn read(&mut self, mut each: impl FnMut(&[u8])) -> Result<(), Error> {
        if let Some(mut replaced) = self.replaced.take() {
            replaced.mapped.drain(&mut each)?;
        }
        let waited = self.ring.mapped.drain(&mut each)?;
        let bytes = self.bytes();
        if self.grows && waited > bytes as usize / 2 && bytes < MAX_BYTES {
            // A process that has dropped its privileges, or has no memory left, keeps this ring. Lost
            // events are counted.
            self.grows = self.grow(bytes * 2).is_ok();
        }
        Ok(())
    }

    fn grow(&mut self, bytes: u32) -> Result<(), Error> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let ring = MapHandle::create(MapType::RingBuf, Some("ring"), 0, 0, bytes, &options)
            .map_err(ring_error)?;
        let ring = Ring::map(ring)?;
        self.outer
            .update(
                &0u32.to_ne_bytes(),
                &rustix::fd::AsRawFd::as_raw_fd(&ring.map.as_fd()).to_ne_bytes(),
                MapFlags::ANY,
            )
            .map_err(ring_error)?;
        self.replaced = Some(std::mem::replace(&mut self.ring, ring));
        Ok(())
    }

    pub(super) fn wait(&self, timeout: Duration) -> Result<bool, Error> {
        let timeout = Timespec::try_from(timeout).ok();
        let mut fds = [PollFd::new(&self.ring.map, PollFlags::IN)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            // A signal ends the wait.
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(Error::Run(error.into())),
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.ring.map.as_fd()
    }

    pub(super) fn lost(&self) -> u64 {
        let lost = self.lost.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let lost = lost.ok().flatten().and_then(|bytes| bytes.try_into().ok());
        lost.map_or(0, u64::from_ne_bytes)
    }

    pub(super) fn bytes(&self) -> u32 {
        self.ring.map.max_entries()
    }
}

/// A ring, and its memory.
#[derive(Debug)]
struct Ring {
    map: MapHandle,
    mapped: MappedRing,
}

impl Ring {
    fn map(map: MapHandle) -> Result<Self, Error> {
        let mapped = MappedRing::new(map.as_fd(), map.max_entries()).map_err(Error::Run)?;
        Ok(Self { map, mapped })
    }
}

fn ring_error(error: libbpf_rs::Error) -> Error {
    Error::Run(io::Error::other(error))
}
