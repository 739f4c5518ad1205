//! Standard output: written in large pieces, and quiet when its reader has had enough.

use std::io::{self, Write};

/// Bytes that are gathered before they are written.
const PIECE: usize = 64 * 1024;

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
pub struct OutputError(#[from] io::Error);

/// Gathers what is written, and hands it on in large pieces.
#[derive(Debug, Default)]
pub struct Output {
    gathered: Vec<u8>,
}

impl Output {
    /// Writes what has been gathered so far.
    pub fn finish(&mut self) -> Result<(), OutputError> {
        Ok(self.flush()?)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.gathered.len() >= PIECE {
            self.flush()?;
        }
        self.gathered.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut standard = io::stdout().lock();
        let written = standard
            .write_all(&self.gathered)
            .and_then(|()| standard.flush());
        self.gathered.clear();
        written
    }
}
