//! The loaded programs of a walk, and their maps as memory.

use std::os::fd::{AsFd, OwnedFd};

use super::{
    capacity::{Beside, Capacity},
    run::{Position, Run, Settings},
};
use crate::{
    base::{error::Error, timing},
    kernel::{KernelTypes, Loader, Mapping, iterate, run, walk::Walk},
    records::{
        fields::Fields,
        record::{Record, ThreadRecord},
    },
};

const FIND_CPU_OFFSETS: &str = "find_cpu_offsets";

/// Programs and maps, loaded.
#[derive(Debug)]
pub(crate) struct Tasks {
    walk: Program,
    find_cpu_offsets: Option<OwnedFd>,
    pub(crate) run: Mapping<Run>,
    pub(crate) records: Mapping<Record>,
    pub(crate) index: Mapping<u64>,
    pub(crate) threads: Mapping<ThreadRecord>,
    pub(crate) pool: Mapping<u64>,
    pub(crate) cpu_offsets: Mapping<u64>,
    /// Of the iterator.
    pub(super) order: Option<Mapping<Position>>,
    pub(crate) capacity: Capacity,
    beside: Beside,
    /// `places` and `proofs`, if it has them.
    #[cfg(test)]
    pub(super) kept: Option<[libbpf_rs::MapHandle; 2]>,
}

/// How a walk is run.
#[derive(Debug)]
enum Program {
    Call(OwnedFd),
    Iterate(OwnedFd),
}

impl Tasks {
    pub(crate) fn load(
        walk: Walk,
        settings: &Settings,
        capacity: Capacity,
        cpu_offsets: bool,
        types: &KernelTypes,
    ) -> Result<Self, Error> {
        let mut loader = Loader::open(
            walk.object(Fields::from_bits_retain(settings.groups)),
            types,
        )?;
        loader.set("settings", settings)?;
        loader.set_len("records", capacity.records)?;
        loader.set_len("index_of_records", capacity.records)?;
        let beside = Beside::of(walk, settings.keeps != 0);
        loader.set_len("places", capacity.records)?;
        if beside.proofs {
            loader.set_len("proofs", capacity.records)?;
        }
        if beside.order {
            loader.set_len("order", capacity.records)?;
        }
        loader.set_len("threads", capacity.threads)?;
        // One element, so that a program can write several words after a single bound check.
        loader.set_value_size("pool", capacity.pool * 8)?;
        loader.set_len("cpu_offsets", settings.max_cpus)?;
        if !cpu_offsets {
            loader.skip(FIND_CPU_OFFSETS);
        }
        let loaded = loader.load()?;
        let tasks = Self {
            walk: match walk {
                Walk::OpenCoded => Program::Call(loaded.program("walk")?),
                Walk::Iterator => Program::Iterate(loaded.attach("visit")?),
            },
            find_cpu_offsets: cpu_offsets
                .then(|| loaded.program(FIND_CPU_OFFSETS))
                .transpose()?,
            run: loaded.map(".data.run", 1)?,
            records: loaded.map("records", capacity.records)?,
            index: loaded.map("index_of_records", capacity.records)?,
            threads: loaded.map("threads", capacity.threads)?,
            pool: loaded.map("pool", capacity.pool)?,
            cpu_offsets: loaded.map("cpu_offsets", settings.max_cpus)?,
            order: (beside.order)
                .then(|| loaded.map("order", capacity.records))
                .transpose()?,
            capacity,
            beside,
            #[cfg(test)]
            kept: (beside.proofs)
                .then(|| {
                    Ok::<_, Error>([loaded.map_handle("places")?, loaded.map_handle("proofs")?])
                })
                .transpose()?,
        };
        timing::done("memory of the maps");
        Ok(tasks)
    }

    /// Walks once, in as many runs as necessary.
    pub(crate) fn walk(&mut self) -> Result<(), Error> {
        match &self.walk {
            Program::Call(walk) => {
                while self.run.as_slice()[0].done == 0 {
                    section(walk)?;
                }
                Ok(())
            }
            Program::Iterate(link) => {
                let done = iterate(link.as_fd());
                done.map_err(|error| Error::descriptor_limit(&error).unwrap_or(Error::Run(error)))
            }
        }
    }

    /// One run of a walk, which pauses after it.
    #[cfg(test)]
    pub(super) fn one_section(&mut self) -> Result<(), Error> {
        match &self.walk {
            Program::Call(walk) => section(walk),
            Program::Iterate(_) => self.walk(),
        }
    }

    /// Finds the offset of each CPU's part of per-CPU objects.
    pub(crate) fn find_cpu_offsets(&mut self) -> Result<(), Error> {
        match &self.find_cpu_offsets {
            Some(program) => run(program.as_fd(), &mut []).map(drop),
            None => Ok(()),
        }
    }

    /// Bytes of the arrays.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.capacity.bytes(self.beside)
    }
}

fn section(walk: &OwnedFd) -> Result<(), Error> {
    run(walk.as_fd(), &mut []).map(drop)
}
