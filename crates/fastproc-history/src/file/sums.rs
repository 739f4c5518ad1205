//! CRCs: of what passes a writer, and the block before the footer.

use std::io::{self, Write};

use crc32fast::Hasher;

/// The first and the last bytes of a Parquet file.
pub const MAGIC: &[u8; 4] = b"PAR1";
/// The length of a footer, and the magic.
pub const TAIL: usize = 8;

const BLOCK_MAGIC: &[u8; 8] = b"fastproc";

/// Stands directly before the footer: `fastproc`, where the indexes of pages begin (u64), how long the footer is (u32), and
/// the CRC of these, of the indexes, the footer and the last 8 bytes (u32); little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where the indexes of pages begin: the end of the last row group.
    pub indexes: u64,
    /// The bytes of the footer.
    pub footer: u32,
    /// The CRC.
    pub sum: u32,
}

impl Block {
    /// Its bytes.
    pub const BYTES: usize = 24;

    /// The block for these indexes, this footer and tail.
    pub fn of(at: u64, indexes: &[u8], footer: &[u8], tail: &[u8]) -> Self {
        let mut block = Self {
            indexes: at,
            footer: footer.len() as u32,
            sum: 0,
        };
        let mut sum = Hasher::new();
        sum.update(&block.to_bytes()[..Self::BYTES - 4]);
        for part in [indexes, footer, tail] {
            sum.update(part);
        }
        block.sum = sum.finalize();
        block
    }

    /// As it is written.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(BLOCK_MAGIC);
        bytes[8..16].copy_from_slice(&self.indexes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.footer.to_le_bytes());
        bytes[20..].copy_from_slice(&self.sum.to_le_bytes());
        bytes
    }

    /// Reads it.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (indexes, rest) = rest.split_first_chunk()?;
        let (footer, rest) = rest.split_first_chunk()?;
        let sum = rest.first_chunk()?;
        (magic == BLOCK_MAGIC).then(|| Self {
            indexes: u64::from_le_bytes(*indexes),
            footer: u32::from_le_bytes(*footer),
            sum: u32::from_le_bytes(*sum),
        })
    }
}

/// A writer that keeps the CRC of what passes, and holds the end of a file back.
pub struct Summed<W> {
    out: W,
    sum: Hasher,
    held: Option<Vec<u8>>,
}

impl<W: Write> Summed<W> {
    pub fn new(out: W) -> Self {
        Self {
            out,
            sum: Hasher::new(),
            held: None,
        }
    }

    /// The CRC of what passed since this was last asked.
    pub fn take_sum(&mut self) -> u32 {
        std::mem::take(&mut self.sum).finalize()
    }

    /// Holds back what comes from now on.
    pub fn hold(&mut self) {
        self.held = Some(Vec::new());
    }

    /// The writer below, and what was held back.
    pub fn into_parts(self) -> (W, Vec<u8>) {
        (self.out, self.held.unwrap_or_default())
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(held) = &mut self.held {
            held.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let written = self.out.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
