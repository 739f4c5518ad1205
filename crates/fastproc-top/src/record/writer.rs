//! Writes the file.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use fastproc::schema;
use flate2::{Compression, Crc, write::DeflateEncoder};

use super::{
    Frame,
    coding::put,
    file::{BLOCK, BLOCK_HEADER, Facts, MAGIC, VERSION},
};
use crate::machine::Gauge;

/// A block ends when it has this many bytes before compression, or spans this much time, which limits the loss when a
/// machine crashes.
const BLOCK_BYTES: usize = 4 << 20;
const BLOCK_NS: u64 = 60_000_000_000;

/// Writes a recording.
#[derive(Debug)]
pub struct Writer {
    file: File,
    /// Bytes of the file, and its limit.
    written: u64,
    most: u64,
    block: Vec<u8>,
    frames: u32,
    first_ns: u64,
    last_ns: u64,
    before: Frame,
}

impl Writer {
    /// Creates a file that did not exist, not even as a link, with at most `most` bytes. Only its owner may read it,
    /// since it contains data that the kernel hides from other users.
    pub fn create(path: &Path, facts: Facts, most: u64) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let mut header = Vec::new();
        for number in [
            facts.page_size,
            facts.ticks_per_second,
            facts.possible_cpus.into(),
            facts.possible_nodes.into(),
            facts.total_memory,
        ] {
            put(number, &mut header);
        }
        header.extend_from_slice(schema::layout().as_bytes());
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&header);
        file.write_all(&bytes)?;
        Ok(Self {
            file,
            written: bytes.len() as u64,
            most,
            block: Vec::new(),
            frames: 0,
            first_ns: 0,
            last_ns: 0,
            before: Frame::default(),
        })
    }

    /// Whether the next frame begins a block, which contains all texts again.
    pub fn begins_block(&self) -> bool {
        self.frames == 0
    }

    /// Adds a frame.
    pub fn push(&mut self, frame: &mut Frame) -> io::Result<()> {
        let calendar_ns = frame.machine.get(Gauge::Calendar).unwrap_or(0);
        if self.frames == 0 {
            self.first_ns = calendar_ns;
            self.before = Frame::default();
        }
        frame.write(&self.before, &mut self.block);
        self.last_ns = calendar_ns;
        self.frames += 1;
        std::mem::swap(&mut self.before, frame);
        let spans = self.last_ns.saturating_sub(self.first_ns);
        if self.block.len() >= BLOCK_BYTES || spans >= BLOCK_NS {
            self.end_block()?;
        }
        Ok(())
    }

    /// Writes the pending frames.
    pub fn end_block(&mut self) -> io::Result<()> {
        if self.frames == 0 {
            return Ok(());
        }
        let mut packed = vec![0; BLOCK_HEADER as usize];
        let mut encoder = DeflateEncoder::new(&mut packed, Compression::new(4));
        encoder.write_all(&self.block)?;
        encoder.finish()?;
        let length = packed.len() as u64 - BLOCK_HEADER;
        let mut crc = Crc::new();
        crc.update(&packed[BLOCK_HEADER as usize..]);
        let mut header = BLOCK.to_vec();
        for number in [
            length as u32,
            self.block.len() as u32,
            self.frames,
            crc.sum(),
        ] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.first_ns, self.last_ns] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        packed[..BLOCK_HEADER as usize].copy_from_slice(&header);
        let all = self.written + packed.len() as u64;
        if all > self.most {
            let full = format!(
                "it would have more than {} MiB: see --record-limit",
                self.most >> 20
            );
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, full));
        }
        // In one piece, so that a concurrent reader mostly finds whole blocks.
        self.file.write_all(&packed)?;
        self.written = all;
        self.block.clear();
        self.frames = 0;
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A caller that needs the result has called it before.
        let _ = self.end_block();
    }
}
