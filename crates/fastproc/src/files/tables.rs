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

impl<'a> Tables<'a> {
    fn text(self, at: u32, length: u32) -> &'a [u8] {
        let text = self.texts.get(at as usize..);
        text.and_then(|text| text.get(..length as usize))
            .unwrap_or_default()
    }
}

/// Records of this process's own: what the kernel's text says, or a service.
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

    /// Adds a process with its records, whatever order these tables have.
    pub(super) fn add(&mut self, process: &Process, from: Tables<'_>) {
        let first = self.records.len();
        let all = from.records.get(process.first as usize..);
        let all = all.and_then(|all| all.get(..process.records as usize));
        for record in all.unwrap_or_default() {
            let mut record = *record;
            let socket = (record.socket as usize).checked_sub(1);
            record.socket = 0;
            if let Some(socket) = socket.and_then(|at| from.sockets.get(at)) {
                let mut socket = *socket;
                (socket.text, socket.text_len) =
                    self.add_text(from.text(socket.text, socket.text_len));
                self.sockets.push(socket);
                record.socket = self.sockets.len() as u32;
            }
            (record.text, record.text_len) = self.add_text(from.text(record.text, record.text_len));
            self.records.push(record);
        }
        self.processes.push(Process {
            first: first as u32,
            records: (self.records.len() - first) as u32,
            ..*process
        });
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
