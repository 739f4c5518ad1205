//! Details that records lack, read from `/proc` on demand: the command line, and the paths of the program and of the
//! cgroup.

mod cgroup;
mod directory;
pub mod held_up;
mod hierarchy;
pub mod owner;
mod rights;

use std::{collections::HashMap, ffi::CStr, io};

use self::cgroup::Cgroups;
pub use self::{
    directory::{Directories, Directory},
    hierarchy::path_in as cgroup_path_in,
};
use crate::{
    base::{error::Error, host::Host},
    snapshot::{cmdline::Cmdline, process::Process, texts::ProcessTexts},
};

/// The longest command line that is kept, so that many long ones cannot fill the memory.
const LONGEST_KEPT: usize = 4096;

/// Why a detail is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DetailError {
    /// The process has exited. Another one may have its pid.
    #[error("process {pid} has ended")]
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
    /// The process has no such detail: it is a kernel thread or a zombie.
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

/// Reads details of processes, and keeps them for one snapshot.
///
/// A process is identified by its pid and start time. Before it reads anything, it opens the directory of the
/// process and compares the start time with the record's. What it reads through that directory belongs to that
/// process, even if the process ends and its pid is reused meanwhile.
///
/// # Nothing is kept for the next snapshot
/// Details are kept until [`renew`](Self::renew), so that a filter, a sort and a column of one snapshot agree.
/// They are not kept longer, because nothing shows that a command line is still the same. exec(2) changes it, and
/// may leave the name as it was. A process may rewrite it in place (`setproctitle(3)`), which shows at least in
/// its CPU time. Another process may overwrite it in an idle process (`process_vm_writev(2)`, `ptrace(2)`,
/// `/proc/PID/mem`, shared memory), which shows in no counter.
///
/// A service may have kept command lines, if [`Builder::texts_max_age`](crate::Builder::texts_max_age) allows it.
///
/// Reading a command line reads the memory of that process, and waits if that memory has to be fetched.
#[derive(Debug)]
pub struct Details {
    /// `None` if only recorded details are known.
    directories: Option<Directories>,
    entries: HashMap<u32, Entry>,
    /// The entries of the snapshot before, for exited processes. `None` if nobody wants them.
    earlier: Option<HashMap<u32, Entry>>,
    cgroups: Cgroups,
    scratch: Vec<u8>,
}

/// What was read of a process since the last [`Details::renew`].
#[derive(Debug)]
struct Entry {
    start_ns: u64,
    /// Its name when it was read, `None` if it was recorded. If the name has changed, the process mostly runs
    /// another program.
    comm: Option<[u8; 16]>,
    cmdline: Option<Box<[u8]>>,
    /// Whether that is only the beginning of it; one that was read is kept whole.
    cut: bool,
    exe: Option<Box<[u8]>>,
}

impl Entry {
    fn is_of(&self, process: Process<'_>) -> bool {
        let identity = process.identity();
        self.start_ns == identity.start_ns && self.comm.is_none_or(|comm| comm == identity.comm)
    }
}

impl Details {
    /// Opens `/proc`. Reads no process yet.
    ///
    /// # Errors
    /// `/proc` cannot be opened.
    pub fn open(host: &Host) -> Result<Self, Error> {
        Ok(Self {
            directories: Some(Directories::open(host)?),
            entries: HashMap::new(),
            earlier: None,
            cgroups: Cgroups::default(),
            scratch: Vec::new(),
        })
    }

    /// The command line: `/proc/PID/cmdline`.
    ///
    /// # Errors
    /// The process has exited, or the kernel does not show it to this reader.
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
            if self.scratch.len() > LONGEST_KEPT {
                return Ok(Cmdline {
                    bytes: &self.scratch,
                    cut,
                });
            }
            let kept = self.scratch.as_slice().into();
            self.entry(process).cmdline = Some(kept);
        }
        let kept = self.kept(process);
        Ok(Cmdline {
            bytes: kept
                .and_then(|entry| entry.cmdline.as_deref())
                .unwrap_or_default(),
            cut: kept.is_some_and(|entry| entry.cut),
        })
    }

    /// Path of the program: the target of `/proc/PID/exe`. It ends in ` (deleted)` if the file was removed.
    ///
    /// # Errors
    /// The process has exited or has no program, or the kernel does not show it to this reader.
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
    /// Paths are kept by the id of the cgroup. With `CAP_DAC_READ_SEARCH` the kernel returns the path for an id, even
    /// for an exited process; otherwise one process of each cgroup is read. Without
    /// [`Fields::CGROUP`](crate::Fields::CGROUP) every process is read.
    ///
    /// # Errors
    /// The process has exited, or there is no default hierarchy.
    pub fn cgroup(&mut self, process: Process<'_>) -> Result<&[u8], DetailError> {
        if let Some(id) = process.cgroup_id()
            && self.cgroups.shown(id).is_some()
        {
            return Ok(self.cgroups.shown(id).unwrap_or_default());
        }
        self.read_cgroup(process)
    }

    /// Path of the cgroup from the root of the whole hierarchy, whatever the cgroup namespace of this reader, which in
    /// a container mostly differs. If it is unknown, the path is that of [`cgroup`](Self::cgroup), which may begin with
    /// `/..`. [`Origin`](crate::container::Origin) reads both.
    ///
    /// # Errors
    /// As for [`cgroup`](Self::cgroup).
    pub fn whole_cgroup(&mut self, process: Process<'_>) -> Result<&[u8], DetailError> {
        if let Some(id) = process.cgroup_id()
            && self.cgroups.whole(id).is_some()
        {
            return Ok(self.cgroups.whole(id).unwrap_or_default());
        }
        let path = self.read_cgroup(process)?.to_vec();
        self.scratch = self.cgroups.whole_path(&path).unwrap_or(path);
        Ok(&self.scratch)
    }

    /// The path in `/proc/PID/cgroup`.
    fn read_cgroup(&mut self, process: Process<'_>) -> Result<&[u8], DetailError> {
        const WHAT: &str = "cgroup";
        let pid = process.pid();
        let directory = self.directory(process)?;
        directory.file(c"cgroup", WHAT, &mut self.scratch)?;
        let path = hierarchy::path_in(&self.scratch);
        let path = path.ok_or(DetailError::Absent { pid, what: WHAT })?;
        if let Some(id) = process.cgroup_id() {
            self.cgroups.keep(id, path);
        }
        Ok(path)
    }

    /// A file in the directory of the process, such as `wchan` or `task/7/wchan`: its first 64 KiB, as they
    /// are now. This is for files that neither a record nor another method has. Nothing is kept.
    ///
    /// # Errors
    /// The process has exited, or the kernel does not show the file to this reader.
    pub fn file(&mut self, process: Process<'_>, path: &CStr) -> Result<&[u8], DetailError> {
        let directory = self.directory(process)?;
        directory.file(path, "file", &mut self.scratch)?;
        Ok(&self.scratch)
    }

    /// The target of a link in the directory of the process, such as `ns/net`. It is not kept.
    ///
    /// # Errors
    /// As for [`file`](Self::file).
    pub fn link(&mut self, process: Process<'_>, path: &CStr) -> Result<&[u8], DetailError> {
        self.scratch = self.directory(process)?.link(path)?;
        Ok(&self.scratch)
    }

    /// The descriptors that a process has open, at most `most`, in the order of their numbers, each with the
    /// target of its link in `/proc/PID/fd`. Nothing is kept.
    ///
    /// # Errors
    /// As for [`file`](Self::file).
    pub fn open_files(
        &mut self,
        process: Process<'_>,
        most: usize,
    ) -> Result<Vec<(u32, Vec<u8>)>, DetailError> {
        self.directory(process)?.open_files(most)
    }

    /// Whether the kernel lets this reader see the values that require ptrace access: addresses, I/O counters, the exit
    /// status.
    ///
    /// A BPF program reads them without a check. Call this before you show them to another user, or without
    /// `CAP_SYS_PTRACE`.
    pub fn may_trace(&self, process: Process<'_>) -> bool {
        if process.texts().and_then(ProcessTexts::exe).is_some() {
            return true;
        }
        let Ok(directory) = self.directory(process) else {
            return false;
        };
        // The kernel checks access before it finds that there is no program.
        matches!(directory.exe(), Ok(_) | Err(DetailError::Absent { .. }))
    }

    /// Whether the kernel shows the I/O counters to this reader: it could trace the process, and owns the
    /// file. root owns that file for non-dumpable processes (`task_dump_owner()` of fs/proc/base.c), so these
    /// cannot read their own.
    pub fn may_read_io(&self, process: Process<'_>) -> bool {
        let mut text = Vec::new();
        self.directory(process)
            .and_then(|directory| directory.file(c"io", "I/O", &mut text))
            .is_ok()
    }

    /// Begins another snapshot: details that were kept are read again when needed.
    pub fn renew(&mut self) {
        if let Some(earlier) = &mut self.earlier {
            std::mem::swap(earlier, &mut self.entries);
        }
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
            cut: false,
            exe: None,
        };
        let entry = self.entries.entry(process.pid()).or_insert_with(fresh);
        if !entry.is_of(process) {
            *entry = fresh();
        }
        entry
    }

    /// The directory of this process itself.
    fn directory(&self, process: Process<'_>) -> Result<Directory, DetailError> {
        let (pid, what) = (process.pid(), "directory");
        let directories = self.directories.as_ref();
        let directories = directories.ok_or(DetailError::Absent { pid, what })?;
        directories.get(pid, process.identity().start_ns)
    }
}

#[doc(hidden)]
impl Details {
    /// For processes of another machine or time: only details that were given to [`keep_cmdline`](Self::keep_cmdline)
    /// and [`keep_cgroup`](Self::keep_cgroup) are known.
    pub fn recorded() -> Self {
        Self {
            directories: None,
            entries: HashMap::new(),
            earlier: None,
            cgroups: Cgroups::none(),
            scratch: Vec::new(),
        }
    }

    /// Keeps the command line of a process, by its id and start time.
    pub fn keep_cmdline(&mut self, pid: u32, start_ns: u64, cmdline: Cmdline<'_>) {
        let entry = Entry {
            start_ns,
            comm: None,
            cmdline: Some(cmdline.bytes.into()),
            cut: cmdline.cut,
            exe: None,
        };
        self.entries.insert(pid, entry);
    }

    /// Keeps the path of a cgroup, by its id.
    pub fn keep_cgroup(&mut self, id: u64, path: &[u8]) {
        self.cgroups.take(id, path);
    }

    /// Keeps command lines for one more snapshot from now on, for [`earlier_cmdline`](Self::earlier_cmdline). Only a caller
    /// that records execs may rely on them.
    pub fn keep_earlier_cmdlines(&mut self) {
        self.earlier = Some(HashMap::new());
    }

    /// Forgets the command lines of the snapshot before, because execs may have been lost since.
    pub fn forget_earlier_cmdlines(&mut self) {
        if let Some(earlier) = &mut self.earlier {
            earlier.clear();
        }
    }

    /// The command line that a process had in the snapshot before, if it was read then, and if it still had the same name
    /// when it ended. Longer ones than 4 KiB were not kept.
    pub fn earlier_cmdline(&self, process: Process<'_>) -> Option<Cmdline<'_>> {
        let entry = self.earlier.as_ref()?.get(&process.pid())?;
        let bytes = entry.cmdline.as_deref().filter(|_| entry.is_of(process))?;
        (!bytes.is_empty()).then_some(Cmdline { bytes, cut: false })
    }

    /// Whether the path of this cgroup is known by its id. Otherwise [`whole_cgroup`](Self::whole_cgroup) returned the
    /// path of a process, which may have moved since its record was read.
    pub fn knows_cgroup(&self, id: u64) -> bool {
        self.cgroups.knows(id)
    }

    /// Finds the mount of cgroups now, since a process that drops its privileges could not later.
    pub fn find_cgroups(&self) {
        self.cgroups.find();
    }
}

#[cfg(test)]
mod tests;
