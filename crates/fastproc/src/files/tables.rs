//! Records of processes, descriptors and sockets, wherever they were written.

use std::collections::HashMap;

use super::object::layout::{Process, Record, Socket};

/// Borrowed records.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tables<'a> {
    pub(super) processes: &'a [Process],
    pub(super) records: &'a [Record],
    pub(super) sockets: &'a [Socket],
    pub(super) texts: &'a [u8],
}

/// Records of this process's own: what the kernel's text says.
#[derive(Debug, Default)]
pub(super) struct Owned {
    pub(super) processes: Vec<Process>,
    pub(super) records: Vec<Record>,
    pub(super) sockets: Vec<Socket>,
    pub(super) texts: Vec<u8>,
}

impl Owned {
    pub(super) fn clear(&mut self) {
        self.processes.clear();
        self.records.clear();
        self.sockets.clear();
        self.texts.clear();
    }

    pub(super) fn tables(&self) -> Tables<'_> {
        Tables {
            processes: &self.processes,
            records: &self.records,
            sockets: &self.sockets,
            texts: &self.texts,
        }
    }

    /// Keeps a text, and returns where it is.
    pub(super) fn add_text(&mut self, text: &[u8]) -> (u32, u32) {
        let at = self.texts.len() as u32;
        self.texts.extend_from_slice(text);
        (at, text.len() as u32)
    }
}

/// What the text says of records that the program could not read, by the place of the record.
pub(super) type Names = HashMap<u32, Box<[u8]>>;
