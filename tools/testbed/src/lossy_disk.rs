//! A disk that may lose what was written to it and not flushed.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use crate::hung_fuse::{HEADER, LONGEST, answer_common, attach, bytes_of, mounted, reply};

// `linux/fuse.h`: operations, and the bytes that follow the header of a write.
const OPEN: u32 = 14;
const READ: u32 = 15;
const WRITE: u32 = 16;
const RELEASE: u32 = 18;
const FSYNC: u32 = 20;
const WRITE_IN: usize = 40;
const FOPEN_DIRECT_IO: u32 = 1;

/// The image of a disk, as a file that nothing caches: mount(8) makes a loop device of it, and what a file system writes and
/// flushes there is kept in order. [`after_cut`](Self::after_cut) says what a cut of the power leaves.
///
/// A thread of this process answers. The file system ends with the processes that use it.
#[derive(Debug)]
pub struct LossyDisk {
    log: Arc<Mutex<Log>>,
}

#[derive(Debug)]
struct Log {
    first: Vec<u8>,
    now: Vec<u8>,
    events: Vec<Event>,
}

#[derive(Debug)]
enum Event {
    /// At most a page, since the kernel is told to write no more at once.
    Write(usize, Vec<u8>),
    Flush,
}

impl LossyDisk {
    /// A disk with the image of this file, which it covers in the mount namespace of this thread: mount(8) wants a path.
    ///
    /// # Errors
    ///
    /// If this machine has no `/dev/fuse`, or this process may not mount.
    pub fn cover(file: &Path) -> io::Result<Self> {
        let image = fs::read(file)?;
        let (device, root) = mounted(libc::S_IFREG | 0o600)?;
        let log = Arc::new(Mutex::new(Log {
            first: image.clone(),
            now: image,
            events: Vec::new(),
        }));
        let disk = Self {
            log: Arc::clone(&log),
        };
        thread::Builder::new()
            .name("lossy-disk".into())
            .spawn(move || serve(&device, &log))?;
        // The loop device asks for the size that the kernel knows.
        rustix::fs::fstat(&root)?;
        attach(&root, file)?;
        Ok(disk)
    }

    /// How many writes and flushes there were.
    pub fn events(&self) -> usize {
        lock(&self.log).events.len()
    }

    /// What is on the disk if the power is cut after so many writes and flushes: all that was flushed, and of each later
    /// write half of the time something, by `seed`. With 0 nothing.
    pub fn after_cut(&self, events: usize, seed: u64) -> Vec<u8> {
        let log = lock(&self.log);
        let events = &log.events[..events.min(log.events.len())];
        let is_flush = |event: &Event| matches!(event, Event::Flush);
        let flushed = events.iter().rposition(is_flush).unwrap_or(0);
        let (mut image, mut random) = (log.first.clone(), seed);
        for (at, event) in events.iter().enumerate() {
            random = random.wrapping_mul(6_364_136_223_846_793_005);
            let Event::Write(offset, bytes) = event else {
                continue;
            };
            if at < flushed || random >> 63 == 1 {
                image[*offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        }
        image
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers until the file system ends.
fn serve(mut device: &File, log: &Mutex<Log>) {
    let mut bytes = vec![0; LONGEST];
    while let Ok(len) = device.read(&mut bytes) {
        let request = &bytes[..len];
        let (Some(operation), Some(number)) = (word(request, 4), request.get(8..16)) else {
            return;
        };
        let mut log = lock(log);
        let answered = match operation {
            OPEN => Some(bytes_of(&[0, 0, FOPEN_DIRECT_IO, 0])),
            READ => log.read(request),
            WRITE => log.write(request),
            FSYNC => {
                log.events.push(Event::Flush);
                Some(Vec::new())
            }
            RELEASE => Some(Vec::new()),
            _ => {
                let root = (libc::S_IFREG | 0o600, log.now.len() as u64);
                answer_common(device, operation, number, root);
                continue;
            }
        };
        match answered {
            Some(body) => reply(device, number, 0, &body),
            None => reply(device, number, -libc::EIO, &[]),
        }
    }
}

impl Log {
    fn read(&self, request: &[u8]) -> Option<Vec<u8>> {
        let (offset, size) = place(request)?;
        let end = (offset + size).min(self.now.len());
        Some(self.now.get(offset..end)?.to_vec())
    }

    fn write(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let (offset, size) = place(request)?;
        let data = request.get(HEADER + WRITE_IN..)?.get(..size)?;
        self.now
            .get_mut(offset..offset + size)?
            .copy_from_slice(data);
        self.events.push(Event::Write(offset, data.to_vec()));
        Some(bytes_of(&[size as u32, 0]))
    }
}

/// Offset and size of a read or write.
fn place(request: &[u8]) -> Option<(usize, usize)> {
    let offset = request.get(HEADER + 8..HEADER + 16)?.try_into().ok()?;
    let size = word(request, HEADER + 16)?;
    Some((u64::from_ne_bytes(offset) as usize, size as usize))
}

fn word(request: &[u8], at: usize) -> Option<u32> {
    let bytes = request.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}
