//! The loaded programs that walk, and their maps as memory.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use super::{
    capacity::Capacity,
    run::{Run, Settings},
};
use crate::{
    Error, Fields,
    bpf::{KernelTypes, Loader, Mapping, ObjectFile, iterate, object_file, run},
    record::{Record, ThreadRecord},
    timing,
};

const FIND_CPU_OFFSETS: &str = "find_cpu_offsets";

/// Which of the two objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// `tasks.bpf.c`: one run of a syscall program, open-coded iteration.
    OpenCoded,
    /// `tasks_iter.bpf.c`: an `iter/task` program, driven by read(2).
    Iterator,
}

pub(super) static OPEN_CODED: ObjectFile = object_file!("tasks.bpf");
pub(super) static ITERATOR: ObjectFile = object_file!("tasks_iter.bpf");
pub(super) static OPEN_CODED_TOP: ObjectFile = object_file!("tasks_top.bpf");
pub(super) static ITERATOR_TOP: ObjectFile = object_file!("tasks_iter_top.bpf");

/// The groups that the smaller objects have code for: `GROUPS` in `bpf/tasks_top.bpf.c`.
const TOP: Fields = Fields::TOP.union(Fields::USERS).union(Fields::SCHEDULING);

impl Walk {
    /// The smallest that collects these fields: what there is no code for has not to be relocated, verified and thrown away.
    pub(super) fn object(self, fields: Fields) -> &'static ObjectFile {
        match (self, TOP.contains(fields)) {
            (Self::OpenCoded, true) => &OPEN_CODED_TOP,
            (Self::OpenCoded, false) => &OPEN_CODED,
            (Self::Iterator, true) => &ITERATOR_TOP,
            (Self::Iterator, false) => &ITERATOR,
        }
    }
}

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
    pub(crate) capacity: Capacity,
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
        if walk == Walk::OpenCoded {
            loader.set_len("places", capacity.records)?;
        }
        loader.set_len("threads", capacity.threads)?;
        // One element, so that a program may write past a single word with one bound check.
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
            capacity,
        };
        timing::done("memory of the maps");
        Ok(tasks)
    }

    /// Walks once, in as many runs as it takes.
    pub(crate) fn walk(&mut self) -> Result<(), Error> {
        match &self.walk {
            Program::Call(walk) => {
                while self.run.as_slice()[0].done == 0 {
                    run(walk.as_fd(), &mut [])?;
                }
                Ok(())
            }
            Program::Iterate(link) => {
                let done = iterate(link.as_fd()).and_then(drain);
                done.map_err(|error| Error::of_descriptors(&error).unwrap_or(Error::Run(error)))
            }
        }
    }

    /// Finds where each CPU keeps its part of a per-CPU object.
    pub(crate) fn find_cpu_offsets(&mut self) -> Result<(), Error> {
        match &self.find_cpu_offsets {
            Some(program) => run(program.as_fd(), &mut []).map(drop),
            None => Ok(()),
        }
    }

    /// Bytes of the arrays.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.capacity.bytes(matches!(self.walk, Program::Call(_)))
    }
}

/// The program writes nothing to the file, so every read comes back empty; one with an error says so.
fn drain(mut iterator: impl io::Read) -> io::Result<()> {
    let mut nothing = [0; 64];
    loop {
        match iterator.read(&mut nothing) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            // A long walk is given up to the scheduler this way.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) => {}
            Err(error) => return Err(error),
        }
    }
}
