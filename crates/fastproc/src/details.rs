//! What no record holds: the command line, the program and the cgroup's path, read from `/proc` on demand.

mod cgroup;
mod directory;
mod rights;

use std::{collections::HashMap, ffi::CStr, io};

use thiserror::Error;

use self::cgroup::Cgroups;
pub use self::{
    directory::{Directories, Directory},
    rights::{Rights, parse_rights},
};
use crate::{Host, Process, texts::ProcessTexts};

/// Longest command line that is kept, so that many processes cannot make this large either.
const LONGEST_KEPT: usize = 4096;

/// Why a detail is not known.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DetailError {
    /// The process has ended; another one may have its pid.
    #[error("process {pid} is no more")]
    Gone {
        /// The pid it had.
        pid: u32,
    },
    /// The kernel does not show it to this reader.
    #[error(
        "the kernel shows the {what} of process {pid} only to its owner and to readers with CAP_SYS_PTRACE"
    )]
    Hidden {
        /// The process.
        pid: u32,
        /// The detail.
        what: &'static str,
    },
    /// The process has none: a kernel thread, or a zombie.
    #[error("process {pid} has no {what}")]
    Absent {
        /// The process.
        pid: u32,
        /// The detail.
        what: &'static str,
    },
    /// Reading failed.
    #[error("cannot read the {what} of process {pid}")]
    Read {
        /// The process.
        pid: u32,
        /// The detail.
        what: &'static str,
        /// What the kernel answered.
        #[source]
        source: io::Error,
    },
}

/// A command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cmdline<'a> {
    /// The arguments as `/proc/PID/cmdline` has them, each followed by a NUL unless the process did otherwise. Empty
    /// for a kernel thread or a zombie.
    pub bytes: &'a [u8],
    /// Whether it is longer, and only its first 128 KiB were read.
    pub cut: bool,
}

/// Reads details of processes, once for each snapshot.
///
/// A process is known by pid and start time. Before anything is read, the directory of the process is opened and its
/// start time compared with the record's; what is then read through that directory can only be of that process, even
/// if it ends and its pid is given away meanwhile.
///
/// # Nothing is kept for the next snapshot
/// What is read is kept until [`renew`](Self::renew), so that a filter, a sort and a column of one snapshot agree, and no
/// longer. exec(2) changes all of it and may leave the name as it was; a process rewrites its command line in place when
/// it likes (`setproctitle(3)`), in which case it has run at least. But others may write to the memory of one that rests
/// (`process_vm_writev(2)`, `ptrace(2)`, `/proc/PID/mem`, a process that shares its memory), which leaves no trace in any
/// counter of it: that a command line has not changed cannot be proven by less than reading it.
///
/// A service may have kept them, if it was asked to: [`Builder::texts_max_age`](crate::Builder::texts_max_age) says how long.
///
/// Reading a command line reads the memory of that process, and waits where that memory has to be fetched.
#[derive(Debug)]
pub struct Details {
    /// `None`: what is known was recorded, and there is nothing else.
    directories: Option<Directories>,
    entries: HashMap<u32, Entry>,
    cgroups: Cgroups,
    scratch: Vec<u8>,
}

/// What was read of a process since the last [`Details::renew`].
#[derive(Debug)]
struct Entry {
    start_ns: u64,
    /// Its name; of what was recorded, none. With another one it mostly runs another program.
    comm: Option<[u8; 16]>,
    cmdline: Option<Box<[u8]>>,
    exe: Option<Box<[u8]>>,
}

impl Entry {
    fn is_of(&self, process: Process<'_>) -> bool {
        let identity = process.identity();
        self.start_ns == identity.start_ns && self.comm.is_none_or(|comm| comm == identity.comm)
    }
}

impl Details {
    /// Nothing is read yet.
    ///
    /// # Errors
    /// `/proc` cannot be opened.
    pub fn open(host: &Host) -> Result<Self, crate::Error> {
        Ok(Self {
            directories: Some(Directories::open(host)?),
            entries: HashMap::new(),
            cgroups: Cgroups::default(),
            scratch: Vec::new(),
        })
    }

    /// Of processes that are not there: what [`keep_cmdline`](Self::keep_cmdline) and [`keep_cgroup`](Self::keep_cgroup)
    /// were given is known, and nothing else.
    pub fn recorded() -> Self {
        Self {
            directories: None,
            entries: HashMap::new(),
            cgroups: Cgroups::none(),
            scratch: Vec::new(),
        }
    }

    /// Takes the command line of a process, by its id and start time.
    pub fn keep_cmdline(&mut self, pid: u32, start_ns: u64, cmdline: &[u8]) {
        let entry = Entry {
            start_ns,
            comm: None,
            cmdline: Some(cmdline.into()),
            exe: None,
        };
        self.entries.insert(pid, entry);
    }

    /// Takes the path of a cgroup, by its id.
    pub fn keep_cgroup(&mut self, id: u64, path: &[u8]) {
        self.cgroups.take(id, path);
    }

    /// The command line: `/proc/PID/cmdline`.
    ///
    /// # Errors
    /// The process is gone, or the kernel does not let this reader have it.
    pub fn cmdline<'a>(&'a mut self, process: Process<'a>) -> Result<Cmdline<'a>, DetailError> {
        if process.identity().is_kernel_thread() {
            return Ok(Cmdline {
                bytes: &[],
                cut: false,
            });
        }
        if let Some(bytes) = process.texts().and_then(ProcessTexts::cmdline) {
            return Ok(Cmdline { bytes, cut: false });
        }
        if self
            .kept(process)
            .is_none_or(|entry| entry.cmdline.is_none())
        {
            let cut = self.directory(process)?.cmdline(&mut self.scratch)?;
            // A zombie has none any more, and it is a cheap answer.
            if self.scratch.is_empty() || self.scratch.len() > LONGEST_KEPT {
                return Ok(Cmdline {
                    bytes: &self.scratch,
                    cut,
                });
            }
            let kept = self.scratch.as_slice().into();
            self.entry(process).cmdline = Some(kept);
        }
        let kept = self
            .kept(process)
            .and_then(|entry| entry.cmdline.as_deref());
        Ok(Cmdline {
            bytes: kept.unwrap_or_default(),
            cut: false,
        })
    }

    /// Path of the program: where `/proc/PID/exe` leads. It ends in ` (deleted)` if the file is no more.
    ///
    /// # Errors
    /// The process is gone or has no program, or the kernel does not let this reader have it.
    pub fn exe<'a>(&'a mut self, process: Process<'a>) -> Result<&'a [u8], DetailError> {
        const WHAT: &str = "program";
        let pid = process.pid();
        if process.identity().is_kernel_thread() {
            return Err(DetailError::Absent { pid, what: WHAT });
        }
        if let Some(path) = process.texts().and_then(ProcessTexts::exe) {
            return Ok(path);
        }
        if self.kept(process).is_none_or(|entry| entry.exe.is_none()) {
            let exe = self.directory(process)?.exe()?;
            self.entry(process).exe = Some(exe.into());
        }
        let kept = self.kept(process).and_then(|entry| entry.exe.as_deref());
        Ok(kept.unwrap_or_default())
    }

    /// Path of the cgroup in the default (version 2) hierarchy, as seen from this reader's cgroup namespace: the line
    /// `0::` of `/proc/PID/cgroup`.
    ///
    /// It is kept by the id of the cgroup, so that one process of each is looked at; without
    /// [`Fields::CGROUP`](crate::Fields::CGROUP) every process is.
    ///
    /// # Errors
    /// The process is gone, or there is no such hierarchy.
    pub fn cgroup(&mut self, process: Process<'_>) -> Result<&[u8], DetailError> {
        const WHAT: &str = "cgroup";
        let pid = process.pid();
        let id = process.cgroup_id();
        if id.is_some_and(|id| self.cgroups.path(id).is_some()) {
            let path = id.and_then(|id| self.cgroups.path(id));
            return Ok(path.unwrap_or_default());
        }
        let directory = self.directory(process)?;
        directory.file(c"cgroup", WHAT, &mut self.scratch)?;
        let path = cgroup::path_in(&self.scratch);
        let path = path.ok_or(DetailError::Absent { pid, what: WHAT })?;
        if let Some(id) = id {
            self.cgroups.keep(id, path);
        }
        Ok(path)
    }

    /// A file in the directory of the process, such as `wchan` or `task/7/wchan`, as it is now and no more than 64 KiB of
    /// it: for what neither a record has nor a method of its own. Nothing of it is kept.
    ///
    /// # Errors
    /// The process is gone, or the kernel does not let this reader have it.
    pub fn file(&mut self, process: Process<'_>, path: &CStr) -> Result<&[u8], DetailError> {
        let directory = self.directory(process)?;
        directory.file(path, "file", &mut self.scratch)?;
        Ok(&self.scratch)
    }

    /// Where a link in the directory of the process leads, such as `ns/net`. Nothing of it is kept.
    ///
    /// # Errors
    /// As [`file`](Self::file) has.
    pub fn link(&mut self, process: Process<'_>, path: &CStr) -> Result<&[u8], DetailError> {
        self.scratch = self.directory(process)?.link(path)?;
        Ok(&self.scratch)
    }

    /// The descriptors that a process has open, no more than `most`, each with what it leads to, in the order of their
    /// numbers: the links in `/proc/PID/fd`. Nothing of it is kept.
    ///
    /// # Errors
    /// As [`file`](Self::file) has.
    pub fn open_files(
        &mut self,
        process: Process<'_>,
        most: usize,
    ) -> Result<Vec<(u32, Vec<u8>)>, DetailError> {
        self.directory(process)?.open_files(most)
    }

    /// Whether the kernel lets this reader see what it shows only to those who could trace the process: addresses, I/O
    /// counters, the exit status.
    ///
    /// A BPF program reads them without asking. Who shows them to somebody else, or has no `CAP_SYS_PTRACE`, asks here.
    pub fn may_trace(&self, process: Process<'_>) -> bool {
        if process.texts().and_then(ProcessTexts::exe).is_some() {
            return true;
        }
        let Ok(directory) = self.directory(process) else {
            return false;
        };
        // The access is checked before there is found to be no program.
        matches!(directory.exe(), Ok(_) | Err(DetailError::Absent { .. }))
    }

    /// Whether the kernel shows this reader the counters of I/O: it could trace the process, and owns the file. That of
    /// a process that may not be dumped is root's (`task_dump_owner()` of fs/proc/base.c), also for the process itself.
    pub fn may_read_io(&self, process: Process<'_>) -> bool {
        let mut text = Vec::new();
        self.directory(process)
            .and_then(|directory| directory.file(c"io", "I/O", &mut text))
            .is_ok()
    }

    /// Another snapshot is looked at: what was read until now is read again when it is asked for.
    pub fn renew(&mut self) {
        self.entries.clear();
        self.cgroups.clear();
    }

    fn kept(&self, process: Process<'_>) -> Option<&Entry> {
        let entry = self.entries.get(&process.pid())?;
        entry.is_of(process).then_some(entry)
    }

    fn entry(&mut self, process: Process<'_>) -> &mut Entry {
        let identity = process.identity();
        let fresh = || Entry {
            start_ns: identity.start_ns,
            comm: Some(identity.comm),
            cmdline: None,
            exe: None,
        };
        let entry = self.entries.entry(process.pid()).or_insert_with(fresh);
        if !entry.is_of(process) {
            *entry = fresh();
        }
        entry
    }

    /// The directory of this very process.
    fn directory(&self, process: Process<'_>) -> Result<Directory, DetailError> {
        let (pid, what) = (process.pid(), "directory");
        let directories = self.directories.as_ref();
        let directories = directories.ok_or(DetailError::Absent { pid, what })?;
        directories.of(pid, process.identity().start_ns)
    }
}

#[cfg(test)]
mod tests;
