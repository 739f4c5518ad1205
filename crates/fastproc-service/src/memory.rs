//! Memory that other processes may map but not write.
//!
//! Every `unsafe` of the buffers is in this file.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    slice,
};

use fastproc::{
    TextEntry,
    mapping::{Mapping, file_in_memory},
    record::{ExitRecord, Record, ThreadRecord},
    source::service::wire::{Part, part},
};
use rustix::{
    fs::{Mode, OFlags, SealFlags, fchmod, fcntl_add_seals, ftruncate, open},
    mm::ProtFlags,
};

use crate::passed_files::{PassedFiles, Watched};

/// Opens the file for reading only. Nobody can open it again, so when this descriptor's copies are closed no reader has
/// it.
fn open_for_others(file: &OwnedFd, files: &PassedFiles) -> io::Result<(OwnedFd, Option<Watched>)> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let watched = files.watch(&path);
    let opened = open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .and_then(|shared| fchmod(file, Mode::empty()).map(|()| shared));
    match opened {
        Ok(shared) => Ok((shared, watched)),
        Err(error) => {
            watched.inspect(|&watched| files.forget(watched));
            Err(error.into())
        }
    }
}

/// The parts of a buffer, in their order: what each is called, and of what its elements are.
macro_rules! parts {
    ($($(#[$doc:meta])* $part:ident: $element:ty,)*) => {
        /// How many elements each part of a buffer has.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Counts {
            $(pub(crate) $part: usize,)*
        }

        /// Where each part begins, in bytes.
        #[derive(Clone, Copy, Debug, Default)]
        pub(crate) struct Offsets {
            $(pub(crate) $part: usize,)*
            /// Where the last one ends.
            pub(crate) end: usize,
        }

        impl Counts {
            /// The parts follow each other. Each begins at a multiple of eight.
            pub(crate) fn offsets(self) -> Offsets {
                let mut offsets = Offsets::default();
                $(
                    const { assert!(align_of::<$element>() <= 8) };
                    offsets.$part = offsets.end.next_multiple_of(8);
                    offsets.end = offsets.$part + self.$part * size_of::<$element>();
                )*
                offsets
            }

            /// The parts as a reply names them: their numbers there are their order here.
            pub(crate) fn in_reply(self) -> [Part; part::COUNT] {
                let offsets = self.offsets();
                let all = [$(Part {
                    offset: offsets.$part as u64,
                    count: self.$part as u64,
                    stride: size_of::<$element>() as u64,
                }),*];
                std::array::from_fn(|number| all[number])
            }
        }

        /// The parts of a buffer, to be filled.
        #[derive(Debug)]
        pub(crate) struct Parts<'a> {
            $($(#[$doc])* pub(crate) $part: &'a mut [$element],)*
        }

        impl Memory {
            /// The parts, at the offsets of [`Counts::offsets`]. `None`: they do not fit.
            pub(crate) fn parts(&mut self, counts: Counts) -> Option<Parts<'_>> {
                let offsets = counts.offsets();
                if offsets.end > self.mapping.bytes() {
                    return None;
                }
                // SAFETY: all lie within the mapping, one after the other, aligned (it begins at a page, and each part at a
                // multiple of eight); integers have any bytes as a value; `&mut self` makes these the only references here.
                // Other processes may read only while the buffer is lent, and it is filled only while it is not.
                unsafe {
                    let at = |offset: usize| self.mapping.start().as_ptr().add(offset);
                    Some(Parts {
                        $($part: slice::from_raw_parts_mut(at(offsets.$part).cast(), counts.$part),)*
                    })
                }
            }
        }
    };
}

parts! {
    records: Record,
    threads: ThreadRecord,
    pool: u64,
    unsure: u32,
    texts: TextEntry,
    text_bytes: u8,
    exits: ExitRecord,
    exit_lines: u8,
    /// For each record, the generation in which it changed last.
    changed: u64,
}

impl Counts {
    /// Where the generations begin; 0 if there are none.
    pub(crate) fn changed_at(self) -> u64 {
        match self.changed {
            0 => 0,
            _ => self.offsets().changed as u64,
        }
    }
}

/// A sealed file in memory, and this process's mapping of it, the only one that can be written to.
#[derive(Debug)]
pub(crate) struct Memory {
    shared: OwnedFd,
    watched: Option<Watched>,
    /// It outlives the writable descriptor.
    mapping: Mapping,
}

impl Memory {
    /// Creates a file of zeros.
    pub(crate) fn new(bytes: usize, files: &PassedFiles) -> io::Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(rustix::param::page_size());
        let file = file_in_memory(c"fastproc")?;
        ftruncate(&file, bytes as u64)?;
        let mapping = Mapping::new(&file, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        // From here on no other mapping can be written to, and nobody can take the memory away from a reader.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
        fcntl_add_seals(&file, seals)?;
        let (shared, watched) = open_for_others(&file, files)?;
        Ok(Self {
            shared,
            watched,
            mapping,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.mapping.bytes()
    }

    pub(crate) fn watched(&self) -> Option<Watched> {
        self.watched
    }

    /// The descriptor that readers receive.
    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.shared.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use fastproc::TextPlace;
    use rustix::fs::fcntl_get_seals;

    use super::*;

    #[test]
    fn parts_do_not_overlap_and_do_not_exceed() {
        let counts = Counts {
            records: 3,
            threads: 2,
            pool: 5,
            unsure: 3,
            texts: 2,
            text_bytes: 9,
            exits: 2,
            exit_lines: 5,
            changed: 3,
        };
        let end = counts.offsets().end;
        let mut memory = Memory::new(end, &PassedFiles::new()).expect("memory");
        let parts = memory.parts(counts).expect("they fit");
        parts.records.fill(Record::default());
        parts.pool.fill(7);
        parts.unsure.fill(9);
        let entry = TextEntry {
            read_ns: 5,
            cmdline: TextPlace::NONE,
            exe: TextPlace::NONE,
        };
        parts.texts.fill(entry);
        parts.text_bytes.fill(b'x');
        let mut exit = ExitRecord::default();
        exit.pid = 1;
        parts.exits.fill(exit);
        parts.exit_lines.fill(b'y');
        parts.changed.fill(11);
        let mut thread = ThreadRecord::default();
        thread.tid = 1;
        parts.threads.fill(thread);
        let parts = memory.parts(counts).expect("they fit");
        assert!(
            parts
                .records
                .iter()
                .all(|record| *record == Record::default())
        );
        assert!(parts.threads.iter().all(|thread| thread.tid == 1));
        assert_eq!(*parts.pool, [7; 5]);
        assert_eq!(*parts.unsure, [9; 3]);
        assert_eq!(*parts.texts, [entry; 2]);
        assert_eq!(parts.text_bytes, b"xxxxxxxxx");
        assert_eq!(*parts.exits, [exit; 2]);
        assert_eq!(parts.exit_lines, b"yyyyy");
        assert_eq!(*parts.changed, [11; 3]);
        let more = Counts {
            records: 1000,
            ..counts
        };
        assert!(memory.parts(more).is_none());
    }

    #[test]
    fn readers_cannot_write_to_shared_memory() {
        let memory = Memory::new(1, &PassedFiles::new()).expect("memory");
        let written = rustix::io::pwrite(memory.file(), b"x", 0);
        assert_eq!(written, Err(rustix::io::Errno::BADF));
        assert_eq!(ftruncate(memory.file(), 0), Err(rustix::io::Errno::INVAL));
        let seals = fcntl_get_seals(memory.file()).expect("a file in memory");
        assert!(seals.contains(SealFlags::SHRINK | SealFlags::FUTURE_WRITE | SealFlags::SEAL));
        // A process that may open it again, such as root's, finds it sealed.
        let path = format!("/proc/self/fd/{}", memory.file().as_raw_fd());
        if let Ok(again) = open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
            let written = rustix::io::pwrite(&again, b"x", 0);
            assert_eq!(written, Err(rustix::io::Errno::PERM));
            assert_eq!(ftruncate(&again, 0), Err(rustix::io::Errno::PERM));
        }
        let mapped = Mapping::new(memory.file(), memory.bytes(), ProtFlags::WRITE);
        let error = mapped.expect_err("it is open for reading only").kind();
        assert_eq!(error, io::ErrorKind::PermissionDenied);
    }
}
