//! Files that are mapped into this process, and files in memory that it can share.

use std::{
    ffi::CStr,
    io,
    os::fd::{AsFd, OwnedFd},
    ptr::NonNull,
};

use rustix::{
    fs::{MemfdFlags, memfd_create},
    io::Errno,
    mm::{MapFlags, ProtFlags, mmap, munmap},
};

/// The beginning of a file. Whoever accesses the memory says why that is safe.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is memory of this process, owned by this value, and may be used from any thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives only the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` of a file, shared with others.
    pub fn new(file: impl AsFd, bytes: usize, access: ProtFlags) -> io::Result<Self> {
        Self::with_flags(file, bytes, access, MapFlags::SHARED)
    }

    pub(crate) fn with_flags(
        file: impl AsFd,
        bytes: usize,
        access: ProtFlags,
        flags: MapFlags,
    ) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, flags, file, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, bytes })
    }

    /// The address of the first byte.
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The number of bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; no reference outlives `self`.
        // It fails only for an address that was never mapped, so there is no error to report.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A file in memory that can be sealed, and not executed. Kernels before 6.3 do not know the second flag.
pub fn file_in_memory(name: &CStr) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => Ok(memfd_create(name, flags)?),
        made => Ok(made?),
    }
}
