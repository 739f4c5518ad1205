//! The beginning of a file in memory, mapped.

use std::{
    fs::File,
    io,
    ptr::{self, NonNull},
};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) start: NonNull<u8>,
    pub(super) bytes: usize,
}

// SAFETY: the mapping is memory of this process, owned by this value, and may be used from any thread.
unsafe impl Send for Mapping {}
// SAFETY: nothing can be written through a shared reference.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub(super) fn new(file: &File, bytes: usize, access: ProtFlags) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let start = unsafe { mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; no reference outlives `self`.
        // It fails only for an address that was never mapped, so there is no error to report.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
