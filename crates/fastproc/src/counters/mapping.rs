//! The maps' memory, in this process.

use std::{io, os::fd::AsFd, ptr::NonNull, slice};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Plain data that a BPF program may write.
///
/// # Safety
/// The implementor must be `#[repr(C)]` or primitive and made of integers only, without padding.
pub(super) unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($type:ty),*) => {
        $(
            // SAFETY: `#[repr(C)]`, integers only; layout.rs asserts that there is no padding.
            unsafe impl Plain for $type {}
        )*
    };
}

plain!(
    u32,
    u64,
    super::layout::Place,
    super::layout::Block,
    super::layout::Config,
    super::layout::Run,
    super::layout::Cpu,
    super::layout::Irq,
    super::layout::IrqWords,
    super::layout::Located
);

/// The memory of a `BPF_F_MMAPABLE` array map.
#[derive(Debug)]
pub(super) struct Mapping<T: Plain> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: memory of this process, owned by this value; what is shared between threads is said at each access.
unsafe impl<T: Plain> Send for Mapping<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Mapping<T> {}

impl<T: Plain> Mapping<T> {
    /// Maps the first `len` elements of the map behind `fd`.
    pub(super) fn new(fd: impl AsFd, len: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes::<T>(len),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                fd,
                0,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self { start, len })
    }

    /// Elements that nobody writes while the slice lives.
    ///
    /// # Safety
    /// No program that writes these elements may run, and nothing else may change them, until the slice is gone.
    pub(super) unsafe fn slice(&self, first: usize, count: usize) -> &[T] {
        assert!(first + count <= self.len, "beyond the map");
        // SAFETY: within the mapping, which outlives `&self`; any bytes are a valid `T`; the caller keeps writers away.
        unsafe { slice::from_raw_parts(self.start.as_ptr().add(first), count) }
    }

    /// Elements that nobody else reads or writes while the slice lives.
    ///
    /// # Safety
    /// As for [`slice`](Self::slice), and there may be no other slice of these elements.
    #[allow(
        clippy::mut_from_ref,
        reason = "slots are disjoint parts of one mapping; each has one owner"
    )]
    pub(super) unsafe fn slice_mut(&self, first: usize, count: usize) -> &mut [T] {
        assert!(first + count <= self.len, "beyond the map");
        // SAFETY: as above, and the caller has them alone.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr().add(first), count) }
    }

    /// A copy of one element, whoever may be writing it.
    pub(super) fn load(&self, index: usize) -> T {
        assert!(index < self.len, "beyond the map");
        // SAFETY: within the mapping; volatile, for a program may write meanwhile, and any bytes are a valid `T`.
        unsafe { self.start.as_ptr().add(index).read_volatile() }
    }

    /// Replaces one element, whoever may be reading it.
    pub(super) fn store(&self, index: usize, value: T) {
        assert!(index < self.len, "beyond the map");
        // SAFETY: within the mapping; volatile, for a program may read meanwhile.
        unsafe { self.start.as_ptr().add(index).write_volatile(value) }
    }
}

impl<T: Plain> Drop for Mapping<T> {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; no reference outlives `self`. It cannot fail for such a range.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), bytes::<T>(self.len)) };
    }
}

fn bytes<T>(len: usize) -> usize {
    (len * size_of::<T>()).next_multiple_of(rustix::param::page_size())
}
