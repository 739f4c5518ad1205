//! A ring buffer's memory, in this process, and the reader's half of its protocol (kernel/bpf/ringbuf.c).

use std::{
    io,
    os::fd::BorrowedFd,
    process,
    ptr::{self, NonNull},
    slice,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering},
};

use rustix::{
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap},
    param::page_size,
};

use crate::base::error::Error;

/// Bits of the length in an event's header: busy (still being written) and discarded.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
/// Bytes of the header; events begin at a multiple of this.
const HEADER: usize = 8;

/// The memory of a ring buffer. It stays mapped while this value lives, because mapping it costs more than
/// reading it.
///
/// A forked process does not get it. Copying its thousand page table entries would make a fork half as expensive
/// again, and two readers would take events from each other.
#[derive(Debug)]
pub(crate) struct MappedRing {
    consumed: Pages,
    /// A page with the position up to which programs have written, followed by the events.
    produced: Pages,
    bytes: usize,
    /// An event that wraps around the end of the ring, copied into one piece.
    joined: Vec<u8>,
    /// The process that mapped the memory.
    process: u32,
}

impl MappedRing {
    /// Maps the ring behind `fd`. `bytes` is a power of two of pages.
    pub(crate) fn new(fd: BorrowedFd<'_>, bytes: u32) -> io::Result<Self> {
        let (page, bytes) = (page_size(), bytes as usize);
        assert!(bytes.is_power_of_two() && bytes >= page, "no ring");
        Ok(Self {
            consumed: Pages::map(fd, page, ProtFlags::READ | ProtFlags::WRITE, 0)?,
            produced: Pages::map(fd, page + bytes, ProtFlags::READ, page)?,
            bytes,
            joined: Vec::new(),
            process: process::id(),
        })
    }

    /// Calls `each` with every waiting event, and returns how many bytes they took.
    pub(crate) fn drain(&mut self, each: &mut impl FnMut(&[u8])) -> Result<usize, Error> {
        if self.process != process::id() {
            return Err(Error::Forked);
        }
        // SAFETY: each page begins with an unsigned long, at an address for it, which programs and reader change as atomics.
        let (consumed, produced) = unsafe {
            (
                self.consumed.0.cast::<AtomicUsize>().as_ref(),
                self.produced.0.cast::<AtomicUsize>().as_ref(),
            )
        };
        // Only this writes it: `&mut self`.
        let begin = consumed.load(Ordering::Relaxed);
        let mut at = begin;
        while at != produced.load(Ordering::Acquire) {
            let offset = at & (self.bytes - 1);
            // SAFETY: the events follow the first page.
            let start = unsafe { self.events().add(offset) };
            // SAFETY: at `at`, before the end, there is a header, at a multiple of eight, and so in one piece; its
            // first word is changed as an atomic.
            let header = unsafe { start.cast::<AtomicU32>().as_ref() }.load(Ordering::Acquire);
            if header & BUSY != 0 {
                break;
            }
            let len = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 {
                // Its body may begin at the very end, which wraps to the start.
                let body = (offset + HEADER) & (self.bytes - 1);
                let first = len.min(self.bytes - body);
                // SAFETY: no event is longer than the ring; programs write to it again only when `consumed` is beyond it.
                let (part, rest) = unsafe {
                    (
                        slice::from_raw_parts(self.events().add(body).as_ptr(), first),
                        slice::from_raw_parts(self.events().as_ptr(), len - first),
                    )
                };
                if rest.is_empty() {
                    each(part);
                } else {
                    self.joined.clear();
                    self.joined.extend_from_slice(part);
                    self.joined.extend_from_slice(rest);
                    each(&self.joined);
                }
            }
            at = at.wrapping_add((len + HEADER).next_multiple_of(HEADER));
            consumed.store(at, Ordering::Release);
        }
        Ok(at.wrapping_sub(begin))
    }

    fn events(&self) -> NonNull<u8> {
        // SAFETY: `produced` has the ring after its first page.
        unsafe { self.produced.0.add(page_size()) }
    }
}

impl Drop for MappedRing {
    fn drop(&mut self) {
        // In a forked process these addresses may be other memory.
        if self.process == process::id() {
            self.consumed.unmap();
            self.produced.unmap();
        }
    }
}

/// Pages of the map: the address, and the number of bytes.
#[derive(Debug)]
struct Pages(NonNull<u8>, usize);

// SAFETY: memory of this process, which may be used from any thread; it is read and written through `&mut` of the ring.
unsafe impl Send for Pages {}
// SAFETY: nothing is accessed through `&`.
unsafe impl Sync for Pages {}

impl Pages {
    fn map(fd: BorrowedFd<'_>, len: usize, may: ProtFlags, offset: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let start = unsafe {
            mmap(
                ptr::null_mut(),
                len,
                may,
                MapFlags::SHARED,
                fd,
                offset as u64,
            )
        }?;
        let pages = Self(
            NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?,
            len,
        );
        // SAFETY: this changes what a forked process gets, and nothing in this one.
        unsafe { madvise(start, len, Advice::LinuxDontFork) }.inspect_err(|_| pages.unmap())?;
        Ok(pages)
    }

    /// Unmaps them; they must not be used afterwards.
    fn unmap(&self) {
        // SAFETY: exactly what was mapped; no reference outlives the ring. It cannot fail for this range.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), self.1) };
    }
}
