//! The file: a header, and blocks of frames. Reads it.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use fastproc::{Host, regular_file, schema};
use flate2::{Crc, read::DeflateDecoder};

use super::{Error, Frame, coding::Input};

/// The first bytes of a file, and the version of its format.
pub(super) const MAGIC: &[u8; 8] = b"fastprec";
pub(super) const VERSION: u32 = 1;
/// The first bytes of a block.
pub(super) const BLOCK: &[u8; 4] = b"blok";
pub(super) const BLOCK_HEADER: u64 = 4 + 4 + 4 + 4 + 4 + 8 + 8;
/// The longest header and block that are accepted.
const LONGEST_HEADER: u32 = 1 << 20;
const LONGEST_BLOCK: u32 = 1 << 29;

/// Facts about the machine that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Bytes of a page.
    pub page_size: u64,
    /// `USER_HZ`.
    pub ticks_per_second: u64,
    /// CPUs that can exist.
    pub possible_cpus: u32,
    /// Memory nodes that can exist.
    pub possible_nodes: u32,
    /// Bytes of memory.
    pub total_memory: u64,
}

impl Facts {
    /// The facts of this machine.
    pub fn new(host: &Host, total_memory: u64) -> Self {
        Self {
            page_size: host.page_size,
            ticks_per_second: host.ticks_per_second,
            possible_cpus: host.possible_cpus,
            possible_nodes: host.possible_nodes,
            total_memory,
        }
    }
}

/// The place of a block.
#[derive(Clone, Copy, Debug)]
struct Block {
    at: u64,
    length: u32,
    raw: u32,
    frames: u32,
    crc: u32,
    first_ns: u64,
    last_ns: u64,
}

/// Reads a recording at any position.
#[derive(Debug)]
pub struct Reader {
    file: File,
    /// Facts about the machine.
    pub facts: Facts,
    blocks: Vec<Block>,
    /// Frames before each block.
    starts: Vec<u64>,
    frames: u64,
    /// The block that is unpacked, and the rest of it.
    unpacked: Vec<u8>,
    block: Option<usize>,
    read: usize,
    /// The frame that was read last, counted from the first of the file.
    at: Option<u64>,
    /// That frame.
    pub frame: Frame,
}

impl Reader {
    /// Opens a recording, without an incomplete block at its end.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut file = regular_file::open(path, u64::MAX)?;
        let mut start = [0; 16];
        file.read_exact(&mut start).map_err(short)?;
        let word = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().unwrap_or_default());
        if start[..8] != *MAGIC {
            return Err(Error::NotARecording);
        }
        if word(8) != VERSION {
            return Err(Error::Version(word(8)));
        }
        if word(12) > LONGEST_HEADER {
            return Err(Error::Damaged("the header is too long"));
        }
        let mut header = vec![0; word(12) as usize];
        file.read_exact(&mut header).map_err(short)?;
        let mut input = Input(&header);
        let facts = Facts {
            page_size: input.number()?,
            ticks_per_second: input.number()?.clamp(1, 1_000_000),
            possible_cpus: input.small()?.min(1 << 16),
            possible_nodes: input.small()?.min(1 << 16),
            total_memory: input.number()?,
        };
        if input.0 != schema::layout().as_bytes() {
            return Err(Error::Layout);
        }
        let mut reader = Self {
            file,
            facts,
            blocks: Vec::new(),
            starts: Vec::new(),
            frames: 0,
            unpacked: Vec::new(),
            block: None,
            read: 0,
            at: None,
            frame: Frame::default(),
        };
        reader.find_blocks(16 + header.len() as u64)?;
        if reader.frames == 0 {
            return Err(Error::Empty);
        }
        Ok(reader)
    }

    fn find_blocks(&mut self, mut at: u64) -> Result<(), Error> {
        let end = self.file.seek(SeekFrom::End(0))?;
        while at + BLOCK_HEADER <= end {
            let mut header = [0; BLOCK_HEADER as usize];
            self.file.seek(SeekFrom::Start(at))?;
            self.file.read_exact(&mut header)?;
            let small =
                |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap_or_default());
            let large =
                |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap_or_default());
            let block = Block {
                at: at + BLOCK_HEADER,
                length: small(4),
                raw: small(8),
                frames: small(12),
                crc: small(16),
                first_ns: large(20),
                last_ns: large(28),
            };
            at = block.at + u64::from(block.length);
            let is_whole = header[..4] == *BLOCK && at <= end;
            // A frame takes at least some bytes.
            if !is_whole || block.frames > block.raw || block.raw > LONGEST_BLOCK {
                break;
            }
            self.starts.push(self.frames);
            self.frames += u64::from(block.frames);
            self.blocks.push(block);
        }
        Ok(())
    }

    /// The number of frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// The frame that was read last.
    pub fn position(&self) -> Option<u64> {
        self.at
    }

    /// The first frame of the last block that does not begin after this time: the frame for that time is in this block.
    pub fn before(&self, calendar_ns: u64) -> u64 {
        let after = self
            .blocks
            .partition_point(|block| block.first_ns <= calendar_ns);
        self.starts[after.saturating_sub(1)]
    }

    /// When the recording begins and ends.
    pub fn span(&self) -> (u64, u64) {
        let first = self.blocks.first().map_or(0, |block| block.first_ns);
        let last = self.blocks.last().map_or(0, |block| block.last_ns);
        (first, last)
    }

    /// Whether a frame is in another block than the frame that was read last.
    pub fn is_elsewhere(&self, frame: u64) -> bool {
        let block = self.starts.partition_point(|&start| start <= frame);
        block.checked_sub(1) != self.block
    }

    /// Reads a frame. Passes all texts of its block up to it to `texts`.
    pub fn read(&mut self, frame: u64, mut texts: impl FnMut(&mut Frame)) -> Result<(), Error> {
        let block = self.starts.partition_point(|&start| start <= frame);
        let block = block.checked_sub(1).ok_or(Error::Empty)?;
        let in_order = self.at.is_some_and(|at| at < frame) && self.block == Some(block);
        let result = self.read_in(block, frame, in_order, &mut texts);
        if result.is_err() {
            // Decoding cannot continue after a partial read.
            (self.at, self.block) = (None, None);
        }
        result
    }

    fn read_in(
        &mut self,
        block: usize,
        frame: u64,
        in_order: bool,
        texts: &mut impl FnMut(&mut Frame),
    ) -> Result<(), Error> {
        let mut next = self.starts[block];
        if in_order {
            next = self.at.map_or(next, |at| at + 1);
        } else {
            if self.block != Some(block) {
                self.unpack(block)?;
            }
            self.read = 0;
            self.frame = Frame::default();
        }
        for at in next..=frame {
            let rest = self.unpacked.get(self.read..).unwrap_or_default();
            let mut input = Input(rest);
            self.at = None;
            self.frame.read(&mut input)?;
            self.read += rest.len() - input.0.len();
            self.at = Some(at);
            texts(&mut self.frame);
        }
        Ok(())
    }

    fn unpack(&mut self, at: usize) -> Result<(), Error> {
        self.block = None;
        let block = self.blocks[at];
        self.file.seek(SeekFrom::Start(block.at))?;
        let mut packed = Vec::new();
        (&self.file)
            .take(block.length.into())
            .read_to_end(&mut packed)?;
        let mut crc = Crc::new();
        crc.update(&packed);
        if crc.sum() != block.crc {
            return Err(Error::Damaged("a block is not what was written"));
        }
        self.unpacked.clear();
        let most = u64::from(block.raw) + 1;
        DeflateDecoder::new(packed.as_slice())
            .take(most)
            .read_to_end(&mut self.unpacked)
            .map_err(|_| Error::Damaged("a block cannot be unpacked"))?;
        if self.unpacked.len() != block.raw as usize {
            return Err(Error::Damaged("a block has another length"));
        }
        self.block = Some(at);
        Ok(())
    }
}

fn short(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::NotARecording,
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use fastproc::{
        Fields,
        record::{ExitRecord, Record, ThreadRecord},
    };

    use super::{super::Writer, *};

    fn frame(pid: u32) -> Frame {
        let mut record = Record::default();
        record.identity.tgid = pid;
        record.identity.groups = Fields::CPU.bits();
        record.cpu.utime_ns = u64::from(pid);
        let mut thread = ThreadRecord::default();
        (thread.tid, thread.tgid, thread.minflt) = (pid, pid, 3);
        let mut exit = ExitRecord::default();
        exit.pid = pid + 1;
        Frame {
            records: vec![record],
            threads: vec![thread],
            exits: Some(vec![exit.to_exit()]),
            ..Frame::default()
        }
    }

    #[test]
    fn a_recording_is_read_in_any_order_and_refused_if_its_records_are_others() {
        let path = std::env::temp_dir().join(format!("fastproc-layout-{}", std::process::id()));
        let facts = Facts {
            page_size: 4096,
            ticks_per_second: 100,
            possible_cpus: 2,
            possible_nodes: 1,
            total_memory: 1 << 30,
        };
        let mut writer = Writer::create(&path, facts, 1 << 20).expect("the folder can be written");
        for pid in [10, 11] {
            writer.push(&mut frame(pid)).expect("there is room");
        }
        drop(writer);
        let mut reader = Reader::open(&path).expect("it was written by this version");
        for (number, pid) in [(0, 10), (1, 11), (0, 10)] {
            reader.read(number, |_| ()).expect("it has two frames");
            let snapshot = reader.frame.snapshot();
            let process = snapshot.get(pid).expect("it is in the frame");
            let cpu = process.cpu().expect("it has this group");
            assert_eq!(cpu.utime_ns, u64::from(pid));
            assert_eq!(reader.frame.threads[0].minflt, 3);
            let exits = reader.frame.exits.as_ref().map(|exits| exits[0].pid);
            assert_eq!(exits, Some(pid + 1));
        }
        let mut bytes = fs::read(&path).expect("it was written");
        let length = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes"));
        bytes[15 + length as usize] ^= 1;
        fs::write(&path, bytes).expect("it can be written");
        assert!(matches!(Reader::open(&path), Err(Error::Layout)));
        fs::remove_file(&path).expect("it was written");
    }
}
