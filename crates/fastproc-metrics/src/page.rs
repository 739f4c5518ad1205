//! A page: memory to which the collecting process writes one text after the other, and which the serving process reads in
//! place.

mod shown;

use std::{
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    ptr,
};

use fastproc::mapping::{Mapping, file_in_memory};
use rustix::{
    fs::{FallocateFlags, SealFlags, fallocate, fcntl_add_seals},
    io::retry_on_intr,
    mm::ProtFlags,
};

pub use self::shown::{Shown, Text};

/// The most pages that the serving process can make the other one hold: it faces the network.
pub const PAGES: usize = 4;

/// The size of a page is a multiple of this.
const STEP: usize = 64 << 10;

/// Memory that holds one text after the other, for a reader that cannot write to it.
#[derive(Debug)]
pub struct Page {
    memory: File,
    /// The memory as far as texts need it. System calls that write to it take nearly twice the time.
    mapping: Option<Mapping>,
    shown: OwnedFd,
}

/// The pages that one process writes to, each made when it is first used.
#[derive(Debug, Default)]
pub struct Pages([Option<Page>; PAGES]);

impl Pages {
    /// The page with this number, and whether it was just made.
    pub fn page(&mut self, number: usize) -> io::Result<(&mut Page, bool)> {
        let place = &mut self.0[number % PAGES];
        let is_new = place.is_none();
        let page = match place.take() {
            Some(page) => page,
            None => Page::new()?,
        };
        Ok((place.insert(page), is_new))
    }
}

impl Page {
    /// Creates an empty page.
    pub fn new() -> io::Result<Self> {
        let memory = file_in_memory(c"fastproc-metrics")?;
        // So that the reader may map it.
        fcntl_add_seals(&memory, SealFlags::SHRINK)?;
        // Opened again, only for reading.
        let shown = File::open(format!("/proc/self/fd/{}", memory.as_raw_fd()))?;
        Ok(Self {
            memory: memory.into(),
            mapping: None,
            shown: shown.into(),
        })
    }

    /// The descriptor for the reader.
    pub fn shown(&self) -> BorrowedFd<'_> {
        self.shown.as_fd()
    }

    /// Writes a piece of the next text, which overwrites the last one: the reader must not need that any more.
    pub fn write_at(&mut self, piece: &[u8], at: usize) -> io::Result<()> {
        let end = at
            .checked_add(piece.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        let mapping = match self.mapping.take().filter(|of| of.bytes() >= end) {
            Some(mapping) => mapping,
            None => self.grow(end)?,
        };
        // SAFETY: the bytes are within the mapping, which may be written to and into which no reference points, and within the
        // file, which cannot shrink.
        unsafe {
            let to = mapping.start().as_ptr().add(at);
            ptr::copy_nonoverlapping(piece.as_ptr(), to, piece.len());
        }
        self.mapping = Some(mapping);
        Ok(())
    }

    /// Makes room for so many bytes, and some more.
    fn grow(&self, bytes: usize) -> io::Result<Mapping> {
        let bytes = bytes
            .checked_add(bytes / 8 + 1)
            .and_then(|bytes| bytes.checked_next_multiple_of(STEP))
            .ok_or(io::ErrorKind::FileTooLarge)?;
        // If the machine refuses memory, this is an error, and writing to the mapping would be a signal.
        retry_on_intr(|| fallocate(&self.memory, FallocateFlags::empty(), 0, bytes as u64))?;
        Mapping::new(&self.memory, bytes, ProtFlags::READ | ProtFlags::WRITE)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::exposition::{Exposition, Format, Value};

    #[test]
    fn a_reader_of_a_page_cannot_write_to_it() {
        let mut page = Page::new().unwrap();
        page.write_at(b"the first", 0).unwrap();
        page.write_at(b"anoth", 0).unwrap();
        page.write_at(b"er", 5).unwrap();
        let shown = File::from(page.shown().try_clone_to_owned().unwrap());
        let mut text = [0; 7];
        shown.read_exact_at(&mut text, 0).unwrap();
        assert_eq!(&text, b"another");
        shown.write_all_at(b"x", 0).unwrap_err();
        shown.set_len(1).unwrap_err();
    }

    #[test]
    fn no_number_makes_a_fifth_page() {
        let (mut pages, mut made) = (Pages::default(), 0);
        for number in (0..100).chain([usize::MAX]) {
            made += usize::from(pages.page(number).unwrap().1);
        }
        assert_eq!(made, PAGES);
    }

    #[test]
    fn a_text_that_finds_no_memory_is_an_error() {
        let mut page = Page::new().unwrap();
        let write = |page: &mut Page, series: u64| {
            let mut text = Exposition::to_page(Format::Prometheus, page);
            (0..series).for_each(|of| text.series("a", "", "", Value::Whole(of)));
            text.finish_page()
        };
        let short = write(&mut page, 1000).unwrap();
        fcntl_add_seals(&page.memory, SealFlags::GROW).unwrap();
        write(&mut page, 100_000).unwrap_err();
        assert_eq!(write(&mut page, 1000).unwrap(), short);
        page.write_at(b"a", usize::MAX).unwrap_err();
    }
}
