//! Reads every process by `/proc`: in the usual way, and in the best one.
//!
//! Both stop when the kernel's bytes are in a buffer. They do not parse the text, as a program must, which favours
//! them.

use std::{ffi::CStr, mem::MaybeUninit, os::fd::OwnedFd};

use rustix::{
    fs::{Mode, OFlags, RawDir, SeekFrom, open, openat, seek},
    io::{Errno, pread, read},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use super::{measure::Failure, taskstats::Taskstats};

/// An open `/proc`, and buffers that are used again.
struct Proc {
    dir: OwnedFd,
    listing: Box<[MaybeUninit<u8>]>,
}

impl Proc {
    fn open() -> Result<Self, Errno> {
        let dir = open(
            "/proc",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        Ok(Self {
            dir,
            listing: vec![MaybeUninit::uninit(); 256 << 10].into(),
        })
    }

    /// Calls `each` with the pid's digits and the directory itself, in the order of the pids.
    fn each_pid(
        &mut self,
        mut each: impl FnMut(&OwnedFd, &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        seek(&self.dir, SeekFrom::Start(0))?;
        let mut entries = RawDir::new(&self.dir, &mut self.listing);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            // Only pids begin with a digit.
            if name[0].is_ascii_digit() {
                each(&self.dir, name)?;
            }
        }
        Ok(())
    }
}

/// `PID/FILE` for openat, written without allocating.
struct Path([u8; 32]);

impl Path {
    fn new() -> Self {
        Self([0; 32])
    }

    /// A pid has at most ten digits, and the names of the files are short.
    fn set(&mut self, pid: &[u8], file: &[u8]) -> &CStr {
        let Self(bytes) = self;
        let end = pid.len() + 1 + file.len();
        bytes[..pid.len()].copy_from_slice(pid);
        bytes[pid.len()] = b'/';
        bytes[pid.len() + 1..end].copy_from_slice(file);
        bytes[end] = 0;
        CStr::from_bytes_until_nul(bytes).unwrap_or_default()
    }
}

/// Whether the process is gone, which is not a failure of the reader.
fn is_gone(errno: Errno) -> bool {
    matches!(errno, Errno::NOENT | Errno::SRCH)
}

/// `proc-3files`: the method of `top`, `ps` and metrics agents. It lists the directory, and opens, reads at once and
/// closes `stat`, `statm` and `status` of each process. Paths are relative to an open `/proc`, and nothing is
/// allocated: the best form of this loop.
pub struct ThreeFiles {
    proc: Proc,
    text: Box<[u8]>,
}

impl ThreeFiles {
    /// Opens `/proc`.
    pub fn open() -> Result<Self, Failure> {
        Ok(Self {
            proc: Proc::open()?,
            text: vec![0; 64 << 10].into(),
        })
    }

    /// Reads all processes. Returns their number.
    pub fn scan(&mut self) -> Result<usize, Failure> {
        let Self { proc, text } = self;
        let (mut path, mut count) = (Path::new(), 0);
        proc.each_pid(|dir, pid| {
            for file in [&b"stat"[..], b"statm", b"status"] {
                let opened = openat(
                    dir,
                    path.set(pid, file),
                    OFlags::RDONLY | OFlags::CLOEXEC,
                    Mode::empty(),
                );
                match opened.and_then(|file| read(&file, &mut **text)) {
                    Ok(_) => {}
                    Err(errno) if is_gone(errno) => return Ok(()),
                    Err(errno) => return Err(errno.into()),
                }
            }
            count += 1;
            Ok(())
        })?;
        Ok(count)
    }
}

/// `proc-best`: the fastest reader without BPF. The descriptors of `stat` and `statm` stay open between scans, so the
/// kernel only writes the text again and resolves no path. `status`, the most expensive of the three, is replaced by
/// taskstats: uid, context switches, delays and the I/O counters in binary form, for many processes at a time.
///
/// It has less data than the three files: no capabilities, no signals, no groups.
pub struct Best {
    proc: Proc,
    taskstats: Taskstats,
    text: Box<[u8]>,
    kept: Vec<Kept>,
    /// The list of the previous scan, while the next one is made; empty between scans.
    before: Vec<Kept>,
    /// The number of processes whose descriptors may be kept.
    limit: usize,
}

struct Kept {
    pid: u32,
    /// `stat` and `statm`; `None` if the limit of open files leaves no room.
    files: Option<[OwnedFd; 2]>,
}

impl Best {
    /// Opens `/proc` and the socket. Raises the limit of open files as far as possible.
    pub fn open() -> Result<Self, Failure> {
        let taskstats = Taskstats::open()?;
        let limit = (raise_open_files().unwrap_or(u64::MAX).saturating_sub(64) / 2) as usize;
        let proc = Proc::open()?;
        Ok(Self {
            proc,
            taskstats,
            text: vec![0; 64 << 10].into(),
            kept: Vec::new(),
            before: Vec::new(),
            limit,
        })
    }

    /// How many processes it must open again in each scan, and why. `None`: it keeps all open.
    pub fn not_kept(&self) -> Option<String> {
        let count = self.kept.iter().filter(|kept| kept.files.is_none()).count();
        (count > 0).then(|| {
            format!(
                "the descriptors of {count} of {} processes could not be kept: RLIMIT_NOFILE allows {} in all",
                self.kept.len(),
                2 * self.limit
            )
        })
    }

    /// Reads all processes. Returns their number.
    pub fn scan(&mut self) -> Result<usize, Failure> {
        let Self {
            proc,
            taskstats,
            text,
            kept,
            before,
            limit,
        } = self;
        std::mem::swap(kept, before);
        // Both lists are in the order of the pids, so one pass matches them and closes the descriptors of exited
        // processes.
        let mut old = before.drain(..).peekable();
        let (mut path, mut count, mut open) = (Path::new(), 0, 0);
        proc.each_pid(|dir, name| {
            let pid = number(name);
            while old.next_if(|kept| kept.pid < pid).is_some() {}
            let mut files = old
                .next_if(|kept| kept.pid == pid)
                .and_then(|kept| kept.files);
            if let Some(known) = &files
                && known
                    .iter()
                    .try_for_each(|file| pread(file, &mut **text, 0).map(drop))
                    .is_err()
            {
                // The process of these descriptors has exited; this is another one with its pid.
                files = None;
            } else if files.is_some() {
                kept.push(Kept { pid, files });
                open += 1;
                count += 1;
                return Ok(());
            }
            let mut fresh = || -> Result<[OwnedFd; 2], Errno> {
                let mut one = |file: &[u8]| {
                    let file = openat(
                        dir,
                        path.set(name, file),
                        OFlags::RDONLY | OFlags::CLOEXEC,
                        Mode::empty(),
                    )?;
                    pread(&file, &mut **text, 0)?;
                    Ok(file)
                };
                Ok([one(b"stat")?, one(b"statm")?])
            };
            drop(files);
            match fresh() {
                Ok(files) => {
                    let room = open < *limit;
                    open += usize::from(room);
                    count += 1;
                    kept.push(Kept {
                        pid,
                        files: room.then_some(files),
                    });
                }
                Err(errno) if is_gone(errno) => {}
                Err(errno) => return Err(errno.into()),
            }
            Ok(())
        })?;
        drop(old);
        let answered = taskstats.query(kept.iter().map(|kept| kept.pid))?;
        Ok(count.min(answered))
    }
}

fn number(digits: &[u8]) -> u32 {
    digits.iter().fold(0, |number: u32, digit| {
        number.wrapping_mul(10).wrapping_add(u32::from(digit & 15))
    })
}

/// Raises the soft limit to the hard one, and the hard one to the kernel's maximum, if allowed.
pub fn raise_open_files() -> Option<u64> {
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let most = Rlimit {
        current: most,
        maximum: most,
    };
    if most.current.is_none() || setrlimit(Resource::Nofile, most).is_err() {
        let hard = getrlimit(Resource::Nofile).maximum;
        // A limit that cannot be raised stays; the effective one is read below.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: hard,
                maximum: hard,
            },
        );
    }
    getrlimit(Resource::Nofile).current
}
