//! The texts of a page, as the process that serves them reads them: mapped, without a copy.

use std::{fs::File, io, os::fd::OwnedFd, slice, sync::Arc};

use fastproc::mapping::Mapping;
use rustix::{
    fs::{SealFlags, fcntl_get_seals},
    mm::ProtFlags,
};

/// A page of the other process. That process overwrites it only when it is asked for another text.
#[derive(Debug)]
pub struct Shown {
    page: File,
    mapping: Option<Arc<Mapping>>,
}

/// The text of a page. Ask for the next one only if [`Shown::is_free`], or for another page.
#[derive(Debug)]
pub struct Text {
    mapping: Arc<Mapping>,
    length: usize,
}

impl Shown {
    /// Takes the descriptor of a page, which must be sealed against shrinking.
    pub fn new(page: OwnedFd) -> io::Result<Self> {
        if !fcntl_get_seals(&page)?.contains(SealFlags::SHRINK) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self {
            page: page.into(),
            mapping: None,
        })
    }

    /// Whether nothing refers to its last text any more, so that the next one may overwrite it.
    pub fn is_free(&mut self) -> bool {
        let mapping = self.mapping.as_mut();
        mapping.is_none_or(|mapping| Arc::get_mut(mapping).is_some())
    }

    /// The text in its first bytes. Fails if the page has fewer, or if the last text is still in use.
    pub fn text(&mut self, length: u64) -> io::Result<Text> {
        if !self.is_free() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let size = self.page.metadata()?.len();
        let length = usize::try_from(length)
            .ok()
            .filter(|&length| length as u64 <= size && length <= isize::MAX as usize / 2)
            .ok_or(io::ErrorKind::InvalidData)?;
        let mapping = self.mapping.take();
        // Texts become longer. What is behind the end takes no memory.
        let longer = || Mapping::new(&self.page, length.next_power_of_two(), ProtFlags::READ);
        let mapping = match mapping.filter(|mapping| mapping.bytes() >= length) {
            Some(mapping) => mapping,
            None => Arc::new(longer()?),
        };
        self.mapping = Some(Arc::clone(&mapping));
        Ok(Text { mapping, length })
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the bytes are within the mapping and within the file, which cannot shrink. The other process, which
        // has more privileges than this one, writes to them only when it is asked for another text in this page.
        unsafe { slice::from_raw_parts(self.mapping.start().as_ptr(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;
    use crate::page::Page;

    #[test]
    fn a_text_is_read_in_place_and_keeps_its_page_from_being_free() {
        let mut page = Page::new().unwrap();
        let mut shown = Shown::new(page.shown().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!(shown.text(0).unwrap().as_ref(), b"");
        shown.text(1).unwrap_err();
        for text in [vec![b'a'; 3], vec![b'b'; 100_000], vec![b'c'; 200_000]] {
            assert!(shown.is_free());
            page.write_at(&text, 0).unwrap();
            let read = shown.text(text.len() as u64).unwrap();
            assert_eq!(read.as_ref(), text);
            assert!(!shown.is_free());
            shown.text(1).unwrap_err();
        }
        shown.text(1 << 30).unwrap_err();
    }

    #[test]
    fn a_page_that_can_shrink_is_refused() {
        let page = memfd_create("a", MemfdFlags::CLOEXEC).unwrap();
        Shown::new(page).unwrap_err();
    }
}
