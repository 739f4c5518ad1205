//! A loaded BPF object: its programs, and its maps as memory.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{Mutex, MutexGuard, PoisonError},
};

use libbpf_rs::{
    HasSize, MapCore, Object, ObjectBuilder, OpenObject, PrintLevel, ProgramInput,
    btf::types::{MemberAttr, Struct},
    set_print,
};

use super::mapping::{Mapping, bytes_of};
use crate::{
    Error,
    record::{Record, ThreadRecord},
};

/// Mirrors `struct fp_settings`: fixed when the programs are loaded.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) groups: u32,
    pub(crate) page_shift: u32,
    pub(crate) cpu_words: u32,
    pub(crate) mem_words: u32,
    pub(crate) max_pool: u32,
    pub(crate) max_cpus: u32,
    pub(crate) sched_start: u64,
    pub(crate) sched_end: u64,
    pub(crate) lock_start: u64,
    pub(crate) lock_end: u64,
}

/// Mirrors `struct fp_run`: set up before a run, counted in by the programs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Run {
    pub(crate) records: u32,
    pub(crate) threads: u32,
    pub(crate) pool: u32,
    pub(crate) lost_records: u32,
    pub(crate) lost_threads: u32,
    pub(crate) lost_pool: u32,
    pub(crate) torn: u32,
    pub(crate) orphans: u32,
    pub(crate) previous: u32,
    pub(crate) cpus: u32,
    pub(crate) current: u32,
    pub(crate) current_tgid: u32,
    pub(crate) old_next: u32,
    pub(crate) old_at: u32,
    pub(crate) has_old: u32,
    pub(crate) reused_actions: u32,
    pub(crate) task: u64,
}

/// How many entries the maps have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capacity {
    pub(crate) records: u32,
    pub(crate) threads: u32,
    /// Words.
    pub(crate) pool: u32,
}

/// The program that finds where each CPU keeps its part of a per-CPU object.
pub(crate) const FIND_CPU_OFFSETS: &str = "find_cpu_offsets";

/// Which of the two objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Walk {
    /// `tasks.bpf.c`: one run of a syscall program, open-coded iteration.
    OpenCoded,
    /// `tasks_iter.bpf.c`: an `iter/task` program, driven by read(2).
    Iterator,
}

/// An object file at the alignment that ELF wants.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

static OPEN_CODED: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/tasks.bpf.o")));
static ITERATOR: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
    env!("OUT_DIR"),
    "/tasks_iter.bpf.o"
)));

/// Programs and maps, loaded.
#[derive(Debug)]
pub(crate) struct Tasks {
    object: Object,
    link: Option<libbpf_rs::Link>,
    pub(crate) run: Mapping<Run>,
    pub(crate) records: Mapping<Record>,
    pub(crate) index: Mapping<u64>,
    pub(crate) threads: Mapping<ThreadRecord>,
    pub(crate) pool: Mapping<u64>,
    pub(crate) cpu_offsets: Mapping<u64>,
    pub(crate) capacity: Capacity,
}

impl Tasks {
    pub(crate) fn load(
        walk: Walk,
        settings: &Settings,
        capacity: Capacity,
        cpu_offsets: bool,
    ) -> Result<Self, Error> {
        let log = Log::start();
        let bytes = match walk {
            Walk::OpenCoded => &OPEN_CODED.0,
            Walk::Iterator => &ITERATOR.0,
        };
        let open = ObjectBuilder::default()
            .open_memory(bytes)
            .map_err(|error| log.refusal(&error))?;
        let mut open = size_maps(open, settings, capacity).map_err(|error| log.refusal(&error))?;
        for mut program in open
            .progs_mut()
            .filter(|program| program.name() == FIND_CPU_OFFSETS)
        {
            program.set_autoload(cpu_offsets);
        }
        let object = open.load().map_err(|error| log.refusal(&error))?;
        check_layout(bytes)?;
        let link = match walk {
            Walk::OpenCoded => None,
            Walk::Iterator => {
                let visit = object.progs_mut().find(|program| program.name() == "visit");
                let visit = visit.ok_or_else(|| Error::Layout {
                    what: "the program visit".into(),
                })?;
                let link = visit.attach_iter_with_opts(libbpf_rs::IterOpts::None);
                Some(link.map_err(|error| log.refusal(&error))?)
            }
        };
        drop(log);
        Ok(Self {
            run: map_memory(&object, ".data.run", 1)?,
            records: map_memory(&object, "records", capacity.records)?,
            index: map_memory(&object, "index_of_records", capacity.records)?,
            threads: map_memory(&object, "threads", capacity.threads)?,
            pool: map_memory(&object, "pool", capacity.pool)?,
            cpu_offsets: map_memory(&object, "cpu_offsets", settings.max_cpus)?,
            object,
            link,
            capacity,
        })
    }

    /// Runs a syscall program once.
    pub(crate) fn call(&mut self, name: &str) -> Result<(), Error> {
        let program = self
            .object
            .progs_mut()
            .find(|program| program.name() == name);
        let program = program.ok_or_else(|| Error::Layout {
            what: format!("the program {name}"),
        })?;
        program
            .test_run(ProgramInput::default())
            .map_err(run_error)?;
        Ok(())
    }

    /// Runs the iterator program to the end.
    pub(crate) fn iterate(&mut self) -> Result<(), Error> {
        let link = self.link.as_ref().ok_or_else(|| Error::Layout {
            what: "the program visit".into(),
        })?;
        let iterator = libbpf_rs::Iter::new(link).map_err(run_error)?;
        drain(iterator).map_err(Error::Run)
    }

    /// A descriptor of the map `records`, for tests of what the kernel accounts for it.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let capacity = self.capacity;
        u64::from(capacity.records) * (size_of::<Record>() as u64 + 8)
            + u64::from(capacity.threads) * size_of::<ThreadRecord>() as u64
            + u64::from(capacity.pool) * 8
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

fn run_error(error: libbpf_rs::Error) -> Error {
    Error::Run(io::Error::other(error))
}

fn size_maps(
    mut open: OpenObject,
    settings: &Settings,
    capacity: Capacity,
) -> libbpf_rs::Result<OpenObject> {
    for mut map in open.maps_mut() {
        match map.name().to_string_lossy().as_ref() {
            "records" | "index_of_records" => map.set_max_entries(capacity.records)?,
            "threads" => map.set_max_entries(capacity.threads)?,
            // One element, so that a program may write past a single word with one bound check.
            "pool" => map.set_value_size(capacity.pool * 8)?,
            "cpu_offsets" => map.set_max_entries(settings.max_cpus)?,
            name if name.ends_with(".rodata") => {
                let bytes = bytes_of(settings);
                let Some(value) = map.initial_value_mut() else {
                    continue;
                };
                if let Some(value) = value.get_mut(..bytes.len()) {
                    value.copy_from_slice(bytes);
                }
            }
            _ => {}
        }
    }
    Ok(open)
}

fn map_fd(object: &Object, name: &'static str) -> Result<OwnedFd, Error> {
    let map = object
        .maps()
        .find(|map| is_called(&map.name().to_string_lossy(), name));
    let map = map.ok_or_else(|| Error::Layout {
        what: format!("the map {name}"),
    })?;
    map.as_fd()
        .try_clone_to_owned()
        .map_err(|source| Error::Map { map: name, source })
}

/// libbpf prefixes the names of its own maps, `.rodata` and the like, with the object's.
fn is_called(map: &str, name: &str) -> bool {
    map == name || (name.starts_with('.') && map.ends_with(name))
}

fn map_memory<T: super::mapping::Plain>(
    object: &Object,
    name: &'static str,
    len: u32,
) -> Result<Mapping<T>, Error> {
    let fd = map_fd(object, name)?;
    Mapping::new(fd, len as usize).map_err(|source| Error::Map { map: name, source })
}

/// Compares the records' layout in the object's own type information with the library's.
fn check_layout(object: &[u8]) -> Result<(), Error> {
    let different = |what: &str| Error::Layout { what: what.into() };
    let btf = libbpf_rs::btf::Btf::from_raw("fastproc", object);
    let btf = btf
        .ok()
        .flatten()
        .ok_or_else(|| different("its type information"))?;
    for &(name, size, members) in super::layout::STRUCTS {
        let item: Struct<'_> = btf.type_by_name(name).ok_or_else(|| different(name))?;
        if item.size() != size || item.len() != members.len() {
            return Err(different(name));
        }
        for (member, &(member_name, offset)) in item.iter().zip(members) {
            let same_name = member.name.is_some_and(|name| name == member_name);
            let same_place = matches!(member.attr, MemberAttr::Normal { offset: bits } if bits as usize == offset * 8);
            if !same_name || !same_place {
                return Err(different(&format!("{name}.{member_name}")));
            }
        }
    }
    Ok(())
}

/// What libbpf says while an object is loaded. libbpf has one callback for the whole process: one load at a time.
pub(crate) struct Log {
    previous: Option<(PrintLevel, libbpf_rs::PrintCallback)>,
    _one_at_a_time: MutexGuard<'static, ()>,
}

static LOADING: Mutex<()> = Mutex::new(());
static SAID: Mutex<String> = Mutex::new(String::new());
/// The verifier's log can be megabytes; its end says what went wrong.
const LOG_END: usize = 4096;

impl Log {
    pub(crate) fn start() -> Self {
        let guard = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let previous = set_print(Some((PrintLevel::Warn, |_level, message| {
            SAID.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push_str(&message);
        })));
        Self {
            previous,
            _one_at_a_time: guard,
        }
    }

    #[allow(
        clippy::unused_self,
        reason = "what was said is said while the log is taken"
    )]
    pub(crate) fn refusal(&self, error: &libbpf_rs::Error) -> Error {
        let said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        let mut from = said.len().saturating_sub(LOG_END);
        while !said.is_char_boundary(from) {
            from += 1;
        }
        Error::Verifier {
            reason: error.to_string(),
            log: said[from..].trim_end().to_owned(),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        set_print(self.previous.take());
    }
}
