//! Files of the kernel whose descriptors stay open, so that a read needs no path lookup, open or close.

use std::{fs::File, io};

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
}

/// One file and its text.
#[derive(Debug)]
pub(super) struct KeptFile {
    path: &'static str,
    file: Option<File>,
    text: Vec<u8>,
}

impl KeptFile {
    pub(super) fn new(file: MachineFile) -> Self {
        Self {
            path: file.path(),
            file: None,
            text: Vec::new(),
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

    /// Forgets the file, which may be replaced by another one at its path.
    pub(super) fn close(&mut self) {
        self.file = None;
    }
}
