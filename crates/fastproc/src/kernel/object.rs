//! Prepares and loads one of this library's object files.

use std::{
    ffi::OsStr,
    io, iter,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
};

use libbpf_rs::{MapCore, MapHandle, Object, ObjectBuilder, OpenMapMut, OpenObject, OpenProgram};

use nix::sys::signal::{SigSet, SigmaskHow};

use super::{
    Mapping,
    log::Log,
    object_file::{FUNCTION_IDS, ObjectFile, TYPE_IDS},
    program::{self, Functions, Program},
    types::KernelTypes,
};
use crate::base::plain::{Plain, bytes_of};
use crate::base::{error::Error, timing};

/// Descriptors that libbpf opens in addition to maps, whose numbers it allocates from the start: for type information,
/// and for its probes of the kernel.
const DESCRIPTORS_TO_PREPARE: usize = 6;
/// An object before it is loaded: maps get their sizes, and constants their values.
pub(crate) struct Loader<'a> {
    file: &'static ObjectFile,
    open: OpenObject,
    types: &'a KernelTypes,
    /// libbpf reads it when it prepares the object.
    _cut: Option<OwnedFd>,
}

impl<'a> Loader<'a> {
    pub(crate) fn open(file: &'static ObjectFile, types: &'a KernelTypes) -> Result<Self, Error> {
        let log = Log::start();
        let mut builder = ObjectBuilder::default();
        let cut = types.cut_as_file().map_err(Error::no_types)?;
        if let Some(cut) = &cut {
            let path = format!("/proc/self/fd/{}", cut.as_raw_fd());
            builder
                .btf_custom_path(path)
                .map_err(|error| refusal(&log, &error))?;
        }
        let open = builder
            .open_memory(file.bytes)
            .map_err(|error| refusal(&log, &error))?;
        let mut loader = Self {
            file,
            open,
            types,
            _cut: cut,
        };
        loader.set_ids(TYPE_IDS, |name| types.id(name))?;
        loader.set_ids(FUNCTION_IDS, |name| types.function_id(name))?;
        timing::done("object file");
        Ok(loader)
    }

    /// Fills a constant whose members have names of the kernel, if the programs have this constant.
    fn set_ids(&mut self, constant: &str, id: impl Fn(&str) -> u32) -> Result<(), Error> {
        for (name, offset) in self.file.members(constant) {
            let place = self.file.constant(constant);
            let (start, _) = place.ok_or_else(|| differs(constant))?;
            self.set_at(constant, start + offset, &id(name).to_ne_bytes())?;
        }
        Ok(())
    }

    /// Gives a constant of the programs its value.
    pub(crate) fn set<T: Plain>(&mut self, constant: &str, value: &T) -> Result<(), Error> {
        let bytes = bytes_of(value);
        let place = self
            .file
            .constant(constant)
            .filter(|&(_, size)| size == bytes.len());
        let (offset, _) = place.ok_or_else(|| differs(constant))?;
        self.set_at(constant, offset, bytes)
    }

    fn set_at(&mut self, constant: &str, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        // libbpf puts the object's name before that of the section.
        let mut maps = self
            .open
            .maps_mut()
            .filter(|map| map.name().to_string_lossy().ends_with(".rodata"));
        let mut map = maps.next().ok_or_else(|| differs(constant))?;
        let data = map
            .initial_value_mut()
            .and_then(|data| data.get_mut(offset..offset + bytes.len()));
        data.ok_or_else(|| differs(constant))?
            .copy_from_slice(bytes);
        Ok(())
    }

    /// Sets the number of a map's elements.
    pub(crate) fn set_len(&mut self, map: &'static str, len: u32) -> Result<(), Error> {
        self.with_map(map, |map| map.set_max_entries(len.max(1)))
    }

    /// Sets the size of a map's elements, if the object does not define it.
    pub(crate) fn set_value_size(&mut self, map: &'static str, size: u32) -> Result<(), Error> {
        self.with_map(map, |map| map.set_value_size(size))
    }

    fn with_map(
        &mut self,
        name: &'static str,
        change: impl FnOnce(&mut OpenMapMut<'_>) -> libbpf_rs::Result<()>,
    ) -> Result<(), Error> {
        let log = Log::start();
        let map = self
            .open
            .maps_mut()
            .find(|map| map.name() == OsStr::new(name));
        change(&mut map.ok_or_else(|| differs(name))?).map_err(|error| refusal(&log, &error))
    }

    /// Leaves out a program.
    pub(crate) fn skip(&mut self, program: &str) {
        for mut known in self
            .open
            .progs_mut()
            .filter(|known| known.name() == OsStr::new(program))
        {
            known.set_autoload(false);
        }
    }

    pub(crate) fn load(mut self) -> Result<Loaded, Error> {
        let log = Log::start();
        let _blocked = SignalsBlocked::new();
        self.ensure_descriptors()?;
        let functions = Functions::new(self.file, self.types);
        let licence = self.file.licence().ok_or_else(|| differs("license"))?;
        let programs = program::load(&mut self.open, licence, &functions, self.types);
        let programs = programs.map_err(|error| refusal(&log, &error))?;
        let object = self.open.load().map_err(|error| refusal(&log, &error))?;
        timing::done("verifier");
        Ok(Loaded { object, programs })
    }

    /// libbpf probes the kernel, mistakes a lack of descriptors for a lack of features, and remembers that for good.
    fn ensure_descriptors(&self) -> Result<(), Error> {
        let programs = self.open.progs().filter(OpenProgram::autoload).count();
        let reserved = (0..programs + DESCRIPTORS_TO_PREPARE)
            .map(|_| rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC))
            .collect::<Result<Vec<_>, _>>();
        reserved.map(drop).map_err(|errno| {
            let error = errno.into();
            Error::descriptor_limit(&error).unwrap_or(Error::Run(error))
        })
    }
}

/// Loaded programs and maps. What is taken out of it lives on independently: a mapping and a program keep their maps, a
/// link its program. Dropping the rest saves some dozens of descriptors.
#[derive(Debug)]
pub(crate) struct Loaded {
    object: Object,
    programs: Vec<Program>,
}

impl Loaded {
    /// The memory of a map's first `len` elements.
    pub(crate) fn map<T: Plain>(&self, name: &'static str, len: u32) -> Result<Mapping<T>, Error> {
        // libbpf puts the object's name before those of its own maps, `.data` and the like.
        let is_named = |map: &str| map == name || (name.starts_with('.') && map.ends_with(name));
        let map = self
            .object
            .maps()
            .find(|map| is_named(&map.name().to_string_lossy()));
        let map = map.ok_or_else(|| differs(name))?;
        // Elements are rounded up to eight bytes.
        if !(map.value_size() as usize)
            .next_multiple_of(8)
            .is_multiple_of(size_of::<T>())
        {
            return Err(differs(name));
        }
        Mapping::new(map.as_fd(), (len as usize).max(1))
            .map_err(|source| Error::Map { map: name, source })
    }

    /// A map that is used by system calls.
    pub(crate) fn map_handle(&self, name: &'static str) -> Result<MapHandle, Error> {
        let mut maps = self.object.maps();
        let map = maps.find(|map| map.name() == OsStr::new(name));
        MapHandle::try_from(&map.ok_or_else(|| differs(name))?)
            .map_err(|error| Error::Run(io::Error::other(error)))
    }

    fn find(&self, name: &str) -> Result<&Program, Error> {
        let program = self.programs.iter().find(|program| program.name == name);
        program.ok_or_else(|| differs(name))
    }

    /// The descriptor of a program.
    pub(crate) fn program(&self, name: &str) -> Result<OwnedFd, Error> {
        let program = self.find(name)?.fd.try_clone();
        program.map_err(|error| Error::descriptor_limit(&error).unwrap_or(Error::Run(error)))
    }

    /// Attaches a program as its section says, until the returned descriptor is closed.
    pub(crate) fn attach(&self, name: &str) -> Result<OwnedFd, Error> {
        let log = Log::start();
        let link = self.find(name)?.attach();
        link.map_err(|error| refusal(&log, &error))
    }
}

/// Runs a program of the kind `syscall` once, and returns its result.
pub(crate) fn run(program: BorrowedFd<'_>, arguments: &mut [u32]) -> Result<u32, Error> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        ..Default::default()
    };
    if !arguments.is_empty() {
        options.ctx_in = arguments.as_mut_ptr().cast();
        options.ctx_size_in = size_of_val(arguments) as u32;
    }
    // SAFETY: the descriptor is a program's, and the options outlive the call.
    let result =
        unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if result < 0 {
        Err(Error::Run(io::Error::from_raw_os_error(-result)))
    } else {
        Ok(options.retval)
    }
}

fn refusal(log: &Log, error: &dyn std::error::Error) -> Error {
    let causes = iter::successors(Some(error), |error| error.source());
    let reason: Vec<String> = causes.map(ToString::to_string).collect();
    let reason = reason.join(": ");
    // libbpf-rs does not return the kernel's error number.
    let too_many = io::Error::from(rustix::io::Errno::MFILE);
    if reason.ends_with(&too_many.to_string())
        && let Some(error) = Error::descriptor_limit(&too_many)
    {
        return error;
    }
    let log = log.end();
    Error::Verifier { reason, log }
}

fn differs(what: &str) -> Error {
    Error::Layout { what: what.into() }
}

/// Blocks signals of this thread. The kernel aborts the check of a program when a signal arrives (`EAGAIN`), and libbpf
/// tries only five times: resizing a terminal repeatedly sends more.
struct SignalsBlocked(Option<SigSet>);

impl SignalsBlocked {
    fn new() -> Self {
        Self(SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).ok())
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // It was the mask before, so it is a valid one.
            let _ = before.thread_set_mask();
        }
    }
}
