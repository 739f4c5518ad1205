//! Whether anybody still has a file of ours, open or mapped.
//!
//! The kernel tells when the last descriptor and the last mapping of a passed file are gone (`IN_CLOSE_NOWRITE`), and a reader
//! cannot open another one, because the file has no permissions.

use std::{mem::MaybeUninit, os::fd::OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// Files that were passed to others.
#[derive(Debug)]
pub(crate) struct Holders(Option<OwnedFd>);

/// A file that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watched(i32);

impl Holders {
    /// Where the kernel has no inotify to spare, nothing is known of any file.
    pub(crate) fn new() -> Self {
        Self(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok())
    }

    /// Begins to watch. `None`: it will never be known that nobody has the file.
    pub(crate) fn watch(&self, path: &str) -> Option<Watched> {
        let added = inotify::add_watch(self.0.as_ref()?, path, WatchFlags::CLOSE_NOWRITE);
        added.ok().map(Watched)
    }

    /// Names the files that nobody has any more. The kernel frees them now.
    pub(crate) fn gone(&self, mut each: impl FnMut(Watched)) {
        let Some(inotify) = &self.0 else { return };
        let mut bytes = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(inotify, &mut bytes);
        while let Ok(event) = events.next() {
            if event.events().contains(ReadFlags::CLOSE_NOWRITE) {
                let watched = Watched(event.wd());
                self.forget(watched);
                each(watched);
            }
        }
    }

    /// A file that has gone with its last descriptor takes this to be freed.
    pub(crate) fn forget(&self, watched: Watched) {
        if let Some(inotify) = &self.0 {
            // Of a watch that is there; if it is not there is nothing to forget.
            let _ = inotify::remove_watch(inotify, watched.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    #[test]
    fn a_file_is_gone_with_its_last_descriptor_or_mapping() {
        use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
        let page = rustix::param::page_size();
        let holders = Holders::new();
        let gone = || {
            let mut gone = Vec::new();
            holders.gone(|watched| gone.push(watched));
            gone
        };
        let memory = Memory::new(page, &holders).expect("memory");
        let watched = memory.watched().expect("it is watched");
        let descriptor = memory.file().try_clone_to_owned().expect("a descriptor");
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapping = unsafe {
            mmap(
                std::ptr::null_mut(),
                page,
                ProtFlags::READ,
                MapFlags::SHARED,
                &descriptor,
                0,
            )
        };
        let mapping = mapping.expect("it can be read");
        drop(memory);
        assert_eq!(gone(), []);
        drop(descriptor);
        assert_eq!(gone(), [], "it is still mapped");
        // SAFETY: exactly what was mapped above, which nothing refers to.
        unsafe { munmap(mapping, page) }.expect("it was mapped");
        // Another test may fork meanwhile, and its child has the descriptors for a moment.
        fastproc_testbed::wait_until("the end of the file", || gone() == [watched]);
    }
}
