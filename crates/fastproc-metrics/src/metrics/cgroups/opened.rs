//! The folder of a process in `/proc`, kept open: its files are those of this process, whoever gets its pid later.
//!
//! A kept descriptor of `/proc/PID/net/dev` would keep the network namespace alive after its processes have gone, with its
//! devices and addresses. That of the folder keeps nothing but some bytes that say which process it was: opening a file
//! through it fails as soon as the process has gone.

use std::{
    io::Read,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use fastproc::{difference::is_same_start, frozen, proc_root, record::TICK_NS};
use rustix::{
    fs::{CWD, Mode, OFlags, openat, readlinkat},
    io::Errno,
};

use super::members::First;

/// All files that are read here are shorter, unless a container has a thousand interfaces.
const LONGEST: u64 = 256 * 1024;

/// A network namespace: its inode number, which no other one has while it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Network(u64);

impl Network {
    /// What a link `ns/net` names. Reading the link costs less than following it, and does not keep the namespace.
    pub(super) fn of(folder: impl AsFd, path: &str) -> Result<Self, Errno> {
        let link = readlinkat(folder, path, Vec::new())?;
        let number = link.to_str().ok().and_then(|link| {
            let number = link.strip_prefix("net:[")?.strip_suffix(']')?;
            number.parse().ok()
        });
        number.map(Self).ok_or(Errno::INVAL)
    }

    /// That of the machine, which is that of the first process. As for the metrics of the machine, it is taken to be that of
    /// this process if that cannot be compared and the processes are its own.
    pub(super) fn of_machine() -> Result<Self, Errno> {
        let of = |path: &Path| Self::of(CWD, &path.to_string_lossy());
        let first = of(&proc_root::path("/proc/1/ns/net"));
        if first.is_ok() || proc_root::is_elsewhere() {
            return first;
        }
        of(&frozen::own_path("/proc/self/ns/net"))
    }
}

/// The folder of a process.
#[derive(Debug)]
pub(super) struct Opened {
    process: First,
    folder: OwnedFd,
}

impl Opened {
    /// Opens the folder of this process, and makes sure that no other one has got its pid.
    pub(super) fn new(process: First) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = format!("/proc/{}", process.pid);
        let folder = rustix::fs::open(&*proc_root::path(&path), flags, Mode::empty())?;
        let opened = Self { process, folder };
        let mut stat = Vec::new();
        opened.read("stat", &mut stat)?;
        let start_ns = start_ticks(&stat).ok_or(Errno::INVAL)? * TICK_NS;
        if !is_same_start(start_ns, process.start_ns) {
            return Err(Errno::SRCH);
        }
        Ok(opened)
    }

    /// Whether it is that of this process.
    pub(super) fn is_of(&self, process: First) -> bool {
        self.process == process
    }

    /// The network namespace in which the process is now. Needs permission to trace.
    pub(super) fn network(&self) -> Result<Network, Errno> {
        Network::of(&self.folder, "ns/net")
    }

    /// Reads a file of the process into memory that may have been used before.
    pub(super) fn read(&self, name: &str, text: &mut Vec<u8>) -> Result<(), Errno> {
        text.clear();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.folder, name, flags, Mode::empty())?;
        let read = std::fs::File::from(file).take(LONGEST).read_to_end(text);
        read.map(drop)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

/// The start of a process in its file stat, in ticks after boot. Its name, in parentheses, may contain anything.
fn start_ticks(stat: &[u8]) -> Option<u64> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(&stat[end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    fn first(pid: u32) -> First {
        let stat = fs::read(format!("/proc/{pid}/stat")).expect("the process lives");
        let start_ns = start_ticks(&stat).expect("a start") * TICK_NS;
        First { start_ns, pid }
    }

    #[test]
    fn a_process_that_has_another_start_is_another_one() {
        let own = first(std::process::id());
        let opened = Opened::new(own).expect("the process lives");
        assert!(opened.is_of(own) && opened.network().is_ok());
        let start_ns = own.start_ns + 2 * TICK_NS;
        let error = Opened::new(First { start_ns, ..own }).expect_err("another one");
        assert_eq!(error, Errno::SRCH);
    }

    #[test]
    fn a_file_of_a_process_that_has_gone_cannot_be_read() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("it starts");
        let opened = Opened::new(first(child.id())).expect("the process lives");
        let mut text = Vec::new();
        assert_eq!(opened.read("net/dev", &mut text), Ok(()));
        assert!(text.starts_with(b"Inter-"));
        child.kill().expect("it is a child");
        child.wait().expect("it ends");
        assert!(opened.read("net/dev", &mut text).is_err());
        assert!(opened.network().is_err());
    }
}
