//! Whether any process still has one of our files open or mapped.
//!
//! The kernel reports when the last descriptor and the last mapping of a passed file are gone (`IN_CLOSE_NOWRITE`). A
//! reader cannot open it again, because the file has no permissions.

use std::{mem::MaybeUninit, os::fd::OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

/// Watches files that were passed to other processes.
#[derive(Debug)]
pub(crate) struct PassedFiles(Option<OwnedFd>);

/// A watched file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watched(i32);

impl PassedFiles {
    /// If the kernel has no inotify instance to spare, no file is watched.
    pub(crate) fn new() -> Self {
        Self(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok())
    }

    /// Begins to watch. `None`: the service cannot learn when no process has the file any more.
    pub(crate) fn watch(&self, path: &str) -> Option<Watched> {
        let added = inotify::add_watch(self.0.as_ref()?, path, WatchFlags::CLOSE_NOWRITE);
        added.ok().map(Watched)
    }

    /// Calls `each` for every file that no process has any more. The kernel frees it now.
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

    /// Ends a watch, without which the kernel does not free a closed file.
    pub(crate) fn forget(&self, watched: Watched) {
        if let Some(inotify) = &self.0 {
            // It fails only if the watch is gone already.
            let _ = inotify::remove_watch(inotify, watched.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use fastproc::mapping::Mapping;
    use rustix::mm::ProtFlags;

    use super::*;
    use crate::memory::Memory;

    #[test]
    fn a_file_is_gone_with_its_last_descriptor_or_mapping() {
        let page = rustix::param::page_size();
        let files = PassedFiles::new();
        let gone = || {
            let mut gone = Vec::new();
            files.gone(|watched| gone.push(watched));
            gone
        };
        let memory = Memory::new(page, &files).expect("memory");
        let watched = memory.watched().expect("it is watched");
        let descriptor = memory.file().try_clone_to_owned().expect("a descriptor");
        let mapping = Mapping::new(&descriptor, page, ProtFlags::READ).expect("it can be read");
        drop(memory);
        assert_eq!(gone(), []);
        drop(descriptor);
        assert_eq!(gone(), [], "a mapped file is still in use");
        drop(mapping);
        // The child of a test that forks meanwhile has the descriptors for a moment.
        fastproc_testbed::wait_until("the end of the file", || gone() == [watched]);
    }
}
