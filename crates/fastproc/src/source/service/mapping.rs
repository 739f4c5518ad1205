//! A buffer of the service, mapped into this process.
//!
//! All `unsafe` code of this source is in this file.

use std::{fs::File, io, slice};

use rustix::{
    fs::{SealFlags, fcntl_get_seals},
    mm::ProtFlags,
};

use crate::{
    base::{mapping, plain::Plain},
    snapshot::texts::TextEntry,
};

// SAFETY: `repr(C)`, of integers only, and without padding.
unsafe impl Plain for TextEntry {}

/// A sealed file of the service, mapped for reading.
///
/// The service writes to it only while it is not lent. If a service breaks that rule, values may be anything, but
/// nothing is read beyond the mapping: its size is sealed, and all lengths come from messages. A reader therefore
/// connects only to services of root or of its own user.
#[derive(Debug)]
pub(super) struct Mapping(mapping::Mapping);

impl Mapping {
    /// Maps the first `bytes` of the file, which must be sealed against shrinking.
    pub(super) fn new(file: &File, bytes: u64) -> io::Result<Self> {
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        if !fcntl_get_seals(file)?.contains(SealFlags::SHRINK | SealFlags::SEAL) {
            return Err(wrong("the buffer is not sealed"));
        }
        let size = file.metadata()?.len();
        let bytes = usize::try_from(bytes)
            .ok()
            .filter(|&bytes| bytes > 0 && bytes as u64 <= size && isize::try_from(bytes).is_ok())
            .ok_or_else(|| wrong("the buffer is smaller than the service says"))?;
        mapping::Mapping::new(file, bytes, ProtFlags::READ).map(Self)
    }

    /// Number of bytes that are mapped.
    pub(super) fn len(&self) -> usize {
        self.0.bytes()
    }

    /// Returns `count` elements from byte `offset` on. `None` if they are not all within the mapping, or not
    /// aligned.
    pub(super) fn elements<T: Plain>(&self, offset: u64, count: u64) -> Option<&[T]> {
        if count == 0 {
            return Some(&[]);
        }
        let (offset, count) = (usize::try_from(offset).ok()?, usize::try_from(count).ok()?);
        let end = count.checked_mul(size_of::<T>())?.checked_add(offset)?;
        if end > self.0.bytes() || !offset.is_multiple_of(align_of::<T>()) {
            return None;
        }
        // SAFETY: the elements are within the mapping, which begins at a page and cannot shrink; any bytes are a valid
        // `T`; nothing in this process writes to them.
        Some(unsafe {
            slice::from_raw_parts(self.0.start().as_ptr().add(offset).cast::<T>(), count)
        })
    }
}
