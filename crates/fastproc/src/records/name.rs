//! The name of a process, composed as by `proc_task_name()`.

use core::{fmt, ops::Deref};

use seqtext::SeqBuf;

use crate::records::record::{
    NAME_COMM, NAME_FULL, NAME_LEN, NameParts, Record, WORKER_BUSY, WORKER_HIGH, WORKER_POOL,
    WORKER_RESCUER,
};

/// A name of up to 63 arbitrary bytes; not necessarily UTF-8, and not necessarily fit to print on a terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    bytes: [u8; NAME_LEN],
    len: u8,
}

impl Name {
    /// The name in this record.
    pub(crate) fn from_record(record: &Record) -> Self {
        let parts = &record.name;
        match parts.kind {
            NAME_COMM => Self::new(until_nul(&record.identity.comm)),
            NAME_FULL => Self::new(until_nul(&parts.text)),
            _ => Self::from_worker(parts),
        }
    }

    /// A name of these bytes, cut like the kernel cuts it.
    pub(crate) fn new(name: &[u8]) -> Self {
        let len = name.len().min(NAME_LEN - 1);
        let mut bytes = [0; NAME_LEN];
        bytes[..len].copy_from_slice(&name[..len]);
        Self {
            bytes,
            len: len as u8,
        }
    }

    /// `format_worker_id()` and `wq_worker_comm()` of kernel/workqueue.c.
    fn from_worker(parts: &NameParts) -> Self {
        let (description, rescued) = parts.text.split_at(NAME_LEN / 2);
        let has = |flag| parts.worker_flags & flag != 0;
        let mut id = [0; NAME_LEN];
        let mut text = SeqBuf::new(&mut id);
        if has(WORKER_RESCUER) {
            text.puts("kworker/R-").write(until_nul(rescued));
        } else if !has(WORKER_POOL) {
            text.puts("kworker/dying");
        } else if parts.pool_cpu >= 0 {
            text.puts("kworker/")
                .put_decimal_ll("", parts.pool_cpu.into());
            text.put_decimal_ll(":", parts.worker_id.into());
            if has(WORKER_HIGH) {
                text.putc(b'H');
            }
        } else {
            text.puts("kworker/u")
                .put_decimal_ll("", parts.pool_id.into());
            text.put_decimal_ll(":", parts.worker_id.into());
        }
        // This is at most 41 bytes, so it always fits.
        let mut name = Self::new(text.text().unwrap_or_default());
        let description = until_nul(description);
        if has(WORKER_POOL) && !description.is_empty() {
            name.push(&[if has(WORKER_BUSY) { b'+' } else { b'-' }]);
            name.push(description);
        }
        name
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        let len = bytes.len().min(NAME_LEN - 1 - at);
        self.bytes[at..at + len].copy_from_slice(&bytes[..len]);
        self.len += len as u8;
    }
}

pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

impl Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len.into()]
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}
