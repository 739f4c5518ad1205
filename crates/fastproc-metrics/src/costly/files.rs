//! Costly values of one process from `/proc`: its descriptors and their limit, its proportional memory, where its
//! threads wait.

use std::{
    io::{self, Read},
    os::fd::OwnedFd,
};

use fastproc::{frozen, proc_root};
use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags},
    io::Errno,
};

/// All files that are read here are shorter.
const LONGEST: u64 = 64 * 1024;
/// The longest name of a kernel function.
const LONGEST_SYMBOL: usize = 512;

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The kernel does not show it to this process.
    Hidden,
    /// The process has exited.
    Gone,
}

impl From<Errno> for Missing {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::ACCESS | Errno::PERM => Self::Hidden,
            _ => Self::Gone,
        }
    }
}

/// Proportional memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Smaps {
    pub pss_bytes: u64,
    pub swap_pss_bytes: u64,
}

/// Open descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptors {
    pub open: u64,
    pub limit: u64,
}

/// Reads files of processes by pid. The caller checks by the next snapshot that the pid still belonged to the same
/// process.
#[derive(Debug)]
pub(super) struct ProcessFiles {
    proc: Option<OwnedFd>,
    /// The size of the folder `fd` is the number of descriptors (Linux 6.2).
    pub(super) size_is_count: bool,
    text: Vec<u8>,
}

impl ProcessFiles {
    pub(super) fn new() -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The folder of a frozen machine belongs to another file system.
        let own = rustix::fs::stat("/proc/self/fd").ok();
        let own = own.filter(|_| frozen::folder().is_none());
        Self {
            proc: rustix::fs::open(&*proc_root::path("/proc"), flags, Mode::empty()).ok(),
            size_is_count: own.is_some_and(|own| own.st_size > 0),
            text: Vec::new(),
        }
    }

    pub(super) fn smaps(&mut self, pid: u32) -> Result<Smaps, Missing> {
        match self.read(pid, "smaps_rollup") {
            Ok(()) => Ok(Smaps {
                pss_bytes: self.kib("Pss:") * 1024,
                swap_pss_bytes: self.kib("SwapPss:") * 1024,
            }),
            // A kernel thread or a zombie, which has no memory.
            Err(Errno::SRCH) => Ok(Smaps {
                pss_bytes: 0,
                swap_pss_bytes: 0,
            }),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The number on the line with this name.
    fn kib(&self, name: &str) -> u64 {
        let mut lines = self.text.split(|&byte| byte == b'\n');
        let line = lines.find_map(|line| line.strip_prefix(name.as_bytes()));
        let words = line.and_then(|line| std::str::from_utf8(line).ok());
        let number = words.and_then(|words| words.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or(0)
    }

    pub(super) fn descriptors(&mut self, pid: u32) -> Result<Descriptors, Missing> {
        let open = self.open_descriptors(pid)?;
        self.read(pid, "limits")?;
        let mut lines = self.text.split(|&byte| byte == b'\n');
        let limit = lines
            .find_map(|line| line.strip_prefix(b"Max open files"))
            .and_then(|line| std::str::from_utf8(line).ok()?.split_whitespace().next())
            .and_then(|soft| match soft {
                "unlimited" => Some(u64::MAX),
                number => number.parse().ok(),
            })
            .ok_or(Missing::Gone)?;
        Ok(Descriptors { open, limit })
    }

    fn open_descriptors(&self, pid: u32) -> Result<u64, Missing> {
        let proc = self.proc.as_ref().ok_or(Missing::Gone)?;
        let path = format!("{pid}/fd");
        if self.size_is_count {
            let fd = rustix::fs::statat(proc, path, AtFlags::empty())?;
            return Ok(fd.st_size as u64);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(proc, path, flags, Mode::empty())?;
        let entries = Dir::read_from(&fd)?.filter_map(Result::ok);
        let named = entries.filter(|entry| !entry.file_name().to_bytes().starts_with(b"."));
        Ok(named.count() as u64)
    }

    /// Calls `each` with the kernel function in which a thread waits, for each waiting thread.
    pub(super) fn wchans(
        &self,
        pid: u32,
        one_thread: bool,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Missing> {
        let proc = self.proc.as_ref().ok_or(Missing::Gone)?;
        // For a hidden process the kernel reports that it waits nowhere, but refuses to read a link.
        if let Err(errno) = rustix::fs::readlinkat(proc, format!("{pid}/cwd"), Vec::new())
            && Missing::from(errno) == Missing::Hidden
        {
            return Err(Missing::Hidden);
        }
        let mut read = |folder: &OwnedFd, path: &[u8]| -> Result<(), Errno> {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let file = rustix::fs::openat(folder, path, flags, Mode::empty())?;
            let mut text = [0; LONGEST_SYMBOL];
            let length = rustix::io::read(&file, &mut text[..])?;
            let name = text[..length].trim_ascii();
            if !matches!(name, b"" | b"0") {
                each(name);
            }
            Ok(())
        };
        if one_thread {
            return Ok(read(proc, format!("{pid}/wchan").as_bytes())?);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tasks = rustix::fs::openat(proc, format!("{pid}/task"), flags, Mode::empty())?;
        let listed = Dir::read_from(&tasks)?.map_while(Result::ok);
        let mut files: Vec<_> = listed
            .filter(|task| !task.file_name().to_bytes().starts_with(b"."))
            .map(|task| [task.file_name().to_bytes(), b"/wchan"].concat())
            .collect();
        frozen::sort(&mut files);
        for file in files {
            // A thread that has exited meanwhile waits nowhere.
            let _ = read(&tasks, &file);
        }
        Ok(())
    }

    fn read(&mut self, pid: u32, name: &str) -> Result<(), Errno> {
        let proc = self.proc.as_ref().ok_or(Errno::NOENT)?;
        self.text.clear();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(proc, format!("{pid}/{name}"), flags, Mode::empty())?;
        let read = std::fs::File::from(file)
            .take(LONGEST)
            .read_to_end(&mut self.text);
        read.map(drop).map_err(|error: io::Error| {
            Errno::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        sync::{Arc, Mutex, mpsc},
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    #[test]
    fn values_are_what_proc_says() {
        let held: Vec<File> = (0..10)
            .map(|_| File::open("/proc/self/stat").unwrap())
            .collect();
        let pid = std::process::id();
        let mut files = ProcessFiles::new();
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        // By the folder's size, and by its entries where the size is not the count.
        for size_is_count in [files.size_is_count, false] {
            files.size_is_count = size_is_count;
            let found = files.descriptors(pid).expect("its own are never hidden");
            assert!(found.open >= 10, "{found:?}");
            assert_eq!(found.limit, limit.current.unwrap_or(u64::MAX));
        }
        assert!(files.smaps(pid).expect("never hidden").pss_bytes > 0);
        drop(held);
        assert_eq!(files.descriptors(u32::MAX), Err(Missing::Gone));
    }

    #[test]
    fn threads_that_wait_are_told_by_place() {
        let (end, waited) = mpsc::channel::<()>();
        let waited = Arc::new(Mutex::new(waited));
        let threads = [(); 3].map(|()| {
            let waited = Arc::clone(&waited);
            thread::spawn(move || waited.lock().is_ok_and(|waited| waited.recv().is_ok()))
        });
        let files = ProcessFiles::new();
        let limit = Instant::now() + Duration::from_secs(120);
        loop {
            let mut count = 0;
            let read = files.wchans(std::process::id(), false, |_| count += 1);
            read.expect("its own are never hidden");
            if count >= 3 {
                break;
            }
            assert!(Instant::now() < limit, "nobody waits");
        }
        drop(end);
        for thread in threads {
            thread.join().expect("it only waits");
        }
    }
}
