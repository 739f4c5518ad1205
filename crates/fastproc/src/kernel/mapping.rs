//! The memory of maps, mapped into this process. All `unsafe` code that accesses it is here.

use std::{io, os::fd::AsFd, ptr::NonNull, slice};

use rustix::mm::{MapFlags, ProtFlags};

use crate::base::{mapping, plain::Plain};

/// The memory of a `BPF_F_MMAPABLE` array map.
///
/// [`as_slice`](Self::as_slice) is safe: the kernel writes only while one of our programs runs, and every run takes `&mut` of
/// the owner. What a program may write at any time is read by [`load`](Self::load).
#[derive(Debug)]
pub(crate) struct Mapping<T: Plain> {
    start: NonNull<T>,
    len: usize,
    _memory: mapping::Mapping,
}

// SAFETY: the mapping is memory of this process, owned by this value, and may be used from any thread.
unsafe impl<T: Plain> Send for Mapping<T> {}
// SAFETY: through `&Mapping` it is read only, or by volatile accesses.
unsafe impl<T: Plain> Sync for Mapping<T> {}

impl<T: Plain> Mapping<T> {
    /// Maps the first `len` elements of the map behind `fd`.
    pub(crate) fn new(fd: impl AsFd, len: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let memory = mapping::Mapping::new(fd, bytes::<T>(len), access)?;
        Ok(Self {
            start: memory.start().cast(),
            len,
            _memory: memory,
        })
    }

    /// All elements.
    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: `new` mapped `len` elements; any bytes are a valid `T`; nobody writes while `&self` is held.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All elements, mutable.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as for `as_slice`; `&mut self` makes this the only reference.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// A copy of one element, which a program may be writing.
    pub(crate) fn load(&self, index: usize) -> T {
        assert!(index < self.len, "beyond the map");
        // SAFETY: within the mapping; volatile, for a program may write meanwhile, and any bytes are a valid `T`.
        unsafe { self.start.as_ptr().add(index).read_volatile() }
    }

    /// Replaces one element, which a program may be reading.
    pub(crate) fn store(&self, index: usize, value: T) {
        assert!(index < self.len, "beyond the map");
        // SAFETY: within the mapping; volatile, for a program may read meanwhile.
        unsafe { self.start.as_ptr().add(index).write_volatile(value) }
    }
}

fn bytes<T>(len: usize) -> usize {
    (len * size_of::<T>()).next_multiple_of(rustix::param::page_size())
}

/// A kernel file that never changes, mapped as a whole.
pub(super) struct MappedFile(mapping::Mapping);

impl MappedFile {
    pub(super) fn new(file: &std::fs::File) -> io::Result<Self> {
        let len = file.metadata()?.len() as usize;
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        mapping::Mapping::with_flags(file, len, ProtFlags::READ, flags).map(Self)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        // SAFETY: mapped whole, for as long as `self` lives, and never written.
        unsafe { slice::from_raw_parts(self.0.start().as_ptr(), self.0.bytes()) }
    }
}
