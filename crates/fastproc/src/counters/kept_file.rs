//! Files of the kernel whose descriptors stay open, so that a read needs no path lookup, open or close.

use std::{fs::File, io};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::fstatfs,
};

use super::Error;
use crate::base::{proc_root, whole_file::read_whole};

/// The files that a monitor polls besides the ones computed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MachineFile {
    /// `/proc/stat`
    Stat,
    /// `/proc/vmstat`
    Vmstat,
    /// `/proc/interrupts`
    Interrupts,
    /// `/proc/softirqs`
    Softirqs,
    /// `/proc/loadavg`
    Loadavg,
    /// `/proc/uptime`
    Uptime,
    /// `/proc/meminfo`
    Meminfo,
    /// `/proc/diskstats`
    Diskstats,
    /// `/proc/net/dev`, of the network namespace of the thread that first read it.
    NetDev,
    /// `/proc/net/wireless`, likewise; absent on a kernel without wireless extensions.
    NetWireless,
    /// `/etc/mtab`, as a rule a link to `/proc/self/mounts`.
    Mtab,
}

impl MachineFile {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Stat,
        Self::Vmstat,
        Self::Interrupts,
        Self::Softirqs,
        Self::Loadavg,
        Self::Uptime,
        Self::Meminfo,
        Self::Diskstats,
        Self::NetDev,
        Self::NetWireless,
        Self::Mtab,
    ];

    /// The path of the file.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Stat => "/proc/stat",
            Self::Vmstat => "/proc/vmstat",
            Self::Interrupts => "/proc/interrupts",
            Self::Softirqs => "/proc/softirqs",
            Self::Loadavg => "/proc/loadavg",
            Self::Uptime => "/proc/uptime",
            Self::Meminfo => "/proc/meminfo",
            Self::Diskstats => "/proc/diskstats",
            Self::NetDev => "/proc/net/dev",
            Self::NetWireless => "/proc/net/wireless",
            Self::Mtab => "/etc/mtab",
        }
    }

    /// The file of a path, as in [`path`](Self::path).
    pub fn from_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.path() == path)
    }
}

/// One file and its text.
#[derive(Debug)]
pub(super) struct KeptFile {
    path: &'static str,
    file: Option<File>,
    text: Vec<u8>,
    /// The file signals changes by `poll()`, and its text has been read.
    watched: bool,
}

const PROC_SUPER_MAGIC: u32 = 0x9fa0;

impl KeptFile {
    pub(super) fn new(file: MachineFile) -> Self {
        Self {
            path: file.path(),
            file: None,
            text: Vec::new(),
            watched: false,
        }
    }

    fn open(&mut self) -> io::Result<&File> {
        // A missing file is tried again each time, because a module may create it.
        match self.file {
            Some(ref file) => Ok(file),
            None => Ok(self.file.insert(File::open(proc_root::path(self.path))?)),
        }
    }

    /// The file's text now.
    pub(super) fn read(&mut self) -> Result<&[u8], Error> {
        let path = self.path;
        self.fill().map_err(|source| Error::Read { path, source })?;
        Ok(&self.text)
    }

    /// The text that was read last.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let read = self
            .open()
            .and_then(|file| Ok(read_whole(file, &mut text)?));
        self.text = text;
        read
    }

    /// Returns the text of a list of mounts. Reads it again only if the kernel signals a change.
    pub(super) fn read_watched(&mut self) -> Result<&[u8], Error> {
        let path = self.path;
        let failed = |source| Error::Read { path, source };
        let first = self.file.is_none();
        self.watched &= !first;
        let file = self.open().map_err(failed)?;
        if first {
            // A regular file at this path never signals a change.
            let kind = fstatfs(file).map_err(|error| failed(error.into()))?.f_type;
            if kind as u32 != PROC_SUPER_MAGIC {
                let text = std::fs::read(proc_root::path(path)).map_err(failed)?;
                self.file = None;
                self.text = text;
                return Ok(&self.text);
            }
        }
        let mut polled = [PollFd::new(file, PollFlags::PRI)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut polled, Some(&now)).map_err(|error| failed(error.into()))?;
        let changed = polled[0]
            .revents()
            .intersects(PollFlags::PRI | PollFlags::ERR);
        // Take the signal before reading the text, so that a change in between signals again.
        if changed || !self.watched {
            self.fill().map_err(failed)?;
            self.watched = true;
        }
        Ok(&self.text)
    }
}
