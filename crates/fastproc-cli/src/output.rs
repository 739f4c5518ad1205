//! Standard output, written in large pieces, and the options that choose between text and JSON.

use std::io::{self, Write};

use clap::ValueEnum;

/// The number of bytes to gather before writing.
const PIECE: usize = 64 * 1024;

/// Standard output could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to standard output")]
pub struct OutputError(#[from] io::Error);

/// Gathers output, and writes it in large pieces.
#[derive(Debug, Default)]
pub struct Output {
    gathered: Vec<u8>,
}

impl Output {
    /// Writes the gathered output.
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

/// The formats of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Text for people
    #[default]
    #[value(alias = "table")]
    Text,
    /// One JSON object
    Json,
}

/// `--format` and `--json` of commands that print a report.
#[derive(Clone, Debug, clap::Args)]
pub struct TextOrJson {
    /// Write in this format.
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,

    /// Write JSON; the same as --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl TextOrJson {
    /// Whether the report must be JSON.
    pub fn is_json(&self) -> bool {
        self.json || self.format == ReportFormat::Json
    }
}
