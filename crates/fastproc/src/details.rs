//! What no record holds: the command line, the program and the cgroup's path, read from `/proc` on demand.

mod cgroup;

use std::{
    collections::HashMap,
    ffi::CStr,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    path::DecInt,
};
use thiserror::Error;

use self::cgroup::Cgroups;
use crate::{Host, Process, Snapshot};

/// Longest command line that is read. A process chooses its own, up to all its memory, and must not choose ours.
const LONGEST: u64 = 128 * 1024;
/// Longest command line that is kept, so that many processes cannot make this large either.
const LONGEST_KEPT: usize = 4096;
/// Longest path that is read from a file; the kernel itself shows no more than a page.
const LONGEST_PATH: u64 = 64 * 1024;
/// `PF_FORKNOEXEC`: forked and not yet executed anything, so that the command line is still the parent's.
const FORKED: u32 = 0x40;

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
        /// What the kernel said.
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

/// Reads details of processes, once for each, and keeps them.
///
/// A process is known by pid and start time. Before anything is read, the directory of the process is opened and its
/// start time compared with the record's; what is then read through that directory can only be of that process, even
/// if it ends and its pid is given away meanwhile.
///
/// A command line is read again after the process has executed another program. One that a process rewrites while it
/// runs is shown as it was when it was first asked for.
///
/// Reading a command line reads the memory of that process, and waits where that memory has to be fetched.
#[derive(Debug)]
pub struct Details {
    proc: OwnedFd,
    tick_ns: u64,
    boot_offset_ns: i64,
    entries: HashMap<u32, Entry>,
    cgroups: Cgroups,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct Entry {
    program: Program,
    cmdline: Option<Box<[u8]>>,
    exe: Option<Box<[u8]>>,
}

/// Which process, and as far as a record tells, which program it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Program {
    start_ns: u64,
    comm: [u8; 16],
    forked: bool,
}

impl Program {
    fn of(process: Process<'_>) -> Self {
        let identity = process.identity();
        Self {
            start_ns: identity.start_ns,
            comm: identity.comm,
            forked: identity.flags & FORKED != 0,
        }
    }
}

impl Details {
    /// Nothing is read yet.
    ///
    /// # Errors
    /// `/proc` cannot be opened.
    pub fn open(host: &Host) -> Result<Self, crate::Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let proc = rustix::fs::open("/proc", flags, Mode::empty());
        let proc = proc.map_err(|source| crate::Error::Host {
            path: "/proc".into(),
            source: source.into(),
        })?;
        Ok(Self {
            proc,
            tick_ns: 1_000_000_000 / host.ticks_per_second.max(1),
            boot_offset_ns: host.boot_offset_ns,
            entries: HashMap::new(),
            cgroups: Cgroups::open(),
            scratch: Vec::new(),
        })
    }

    /// The command line: `/proc/PID/cmdline`.
    ///
    /// # Errors
    /// The process is gone, or the kernel does not let this reader have it.
    pub fn cmdline(&mut self, process: Process<'_>) -> Result<Cmdline<'_>, DetailError> {
        const WHAT: &str = "command line";
        let (pid, program) = (process.pid(), Program::of(process));
        if process.identity().is_kernel_thread() {
            return Ok(Cmdline {
                bytes: &[],
                cut: false,
            });
        }
        if self
            .kept(pid, program)
            .is_none_or(|entry| entry.cmdline.is_none())
        {
            let directory = self.directory(process, WHAT)?;
            read(
                directory.as_fd(),
                c"cmdline",
                LONGEST + 1,
                &mut self.scratch,
            )
            .map_err(|error| failed(pid, WHAT, error))?;
            let cut = self.scratch.len() as u64 > LONGEST;
            // A zombie has none any more, and it is a cheap answer.
            if self.scratch.is_empty() || self.scratch.len() > LONGEST_KEPT {
                self.scratch.truncate(LONGEST as usize);
                return Ok(Cmdline {
                    bytes: &self.scratch,
                    cut,
                });
            }
            let kept = self.scratch.as_slice().into();
            self.entry(pid, program).cmdline = Some(kept);
        }
        let kept = self
            .kept(pid, program)
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
    pub fn exe(&mut self, process: Process<'_>) -> Result<&[u8], DetailError> {
        const WHAT: &str = "program";
        let (pid, program) = (process.pid(), Program::of(process));
        if process.identity().is_kernel_thread() {
            return Err(DetailError::Absent { pid, what: WHAT });
        }
        if self
            .kept(pid, program)
            .is_none_or(|entry| entry.exe.is_none())
        {
            let directory = self.directory(process, WHAT)?;
            let exe = rustix::fs::readlinkat(&directory, c"exe", Vec::new()).map_err(|error| {
                if error == Errno::NOENT {
                    DetailError::Absent { pid, what: WHAT }
                } else {
                    failed(pid, WHAT, error.into())
                }
            })?;
            self.entry(pid, program).exe = Some(exe.into_bytes().into());
        }
        let kept = self
            .kept(pid, program)
            .and_then(|entry| entry.exe.as_deref());
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
        let directory = self.directory(process, WHAT)?;
        read(
            directory.as_fd(),
            c"cgroup",
            LONGEST_PATH,
            &mut self.scratch,
        )
        .map_err(|error| failed(pid, WHAT, error))?;
        let path = cgroup::path_in(&self.scratch);
        let path = path.ok_or(DetailError::Absent { pid, what: WHAT })?;
        if let Some(id) = id {
            self.cgroups.keep(id, path);
        }
        Ok(path)
    }

    /// Whether the kernel lets this reader see what it shows only to those who could trace the process: addresses, I/O
    /// counters, the exit status.
    ///
    /// A BPF program reads them without asking. Who shows them to somebody else, or has no `CAP_SYS_PTRACE`, asks here.
    pub fn may_trace(&self, process: Process<'_>) -> bool {
        let Ok(directory) = self.directory(process, "program") else {
            return false;
        };
        // The access is checked before there is found to be no program.
        matches!(
            rustix::fs::readlinkat(&directory, c"exe", Vec::new()),
            Ok(_) | Err(Errno::NOENT)
        )
    }

    /// Forgets the processes that are not in this snapshot, and cgroups that nobody asked for since the last call.
    pub fn forget_gone(&mut self, now: &Snapshot<'_>) {
        self.entries.retain(|&pid, entry| {
            now.get(pid)
                .is_some_and(|process| process.identity().start_ns == entry.program.start_ns)
        });
        self.cgroups.forget_unused();
    }

    fn kept(&self, pid: u32, program: Program) -> Option<&Entry> {
        self.entries
            .get(&pid)
            .filter(|entry| entry.program == program)
    }

    fn entry(&mut self, pid: u32, program: Program) -> &mut Entry {
        let fresh = || Entry {
            program,
            cmdline: None,
            exe: None,
        };
        let entry = self.entries.entry(pid).or_insert_with(fresh);
        if entry.program != program {
            *entry = fresh();
        }
        entry
    }

    /// The directory of this very process.
    fn directory(&self, process: Process<'_>, what: &'static str) -> Result<OwnedFd, DetailError> {
        let pid = process.pid();
        let failed = |error: io::Error| failed(pid, what, error);
        let directory = rustix::fs::openat(
            &self.proc,
            DecInt::new(pid),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|error| failed(error.into()))?;
        let mut stat = [0; 2048];
        let len = open(directory.as_fd(), c"stat")
            .and_then(|file| Ok(rustix::io::read(file, &mut stat)?))
            .map_err(failed)?;
        let ticks = start_ticks(&stat[..len]).ok_or_else(|| {
            failed(io::Error::other(
                "its stat is not what the kernel writes there",
            ))
        })?;
        let shown_ns = i128::from(ticks) * i128::from(self.tick_ns);
        let start_ns = i128::from(process.identity().start_ns) + i128::from(self.boot_offset_ns);
        // The text is rounded down to a tick.
        if shown_ns.abs_diff(start_ns) < u128::from(self.tick_ns) {
            Ok(directory)
        } else {
            Err(DetailError::Gone { pid })
        }
    }
}

fn failed(pid: u32, what: &'static str, source: io::Error) -> DetailError {
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::SRCH) => DetailError::Gone { pid },
        Some(Errno::ACCESS | Errno::PERM) => DetailError::Hidden { pid, what },
        _ => DetailError::Read { pid, what, source },
    }
}

fn open(directory: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(
        directory,
        name,
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// Reads a file, but no more than `most` bytes.
fn read(directory: BorrowedFd<'_>, name: &CStr, most: u64, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    std::fs::File::from(open(directory, name)?)
        .take(most)
        .read_to_end(into)?;
    Ok(())
}

/// `starttime`, the 22nd field of `/proc/PID/stat`. The second, the name, ends at the last parenthesis.
fn start_ticks(stat: &[u8]) -> Option<u64> {
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let field = stat.get(end + 2..)?.split(|&byte| byte == b' ').nth(19)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        process::{Child, Command, Stdio},
    };

    use super::*;
    use crate::record::{Identity, Record};

    /// A shell that waits for its standard input to end, or for a line to execute.
    fn shell() -> Child {
        Command::new("sh")
            .args(["-c", "read line && exec $line", "a name", ""])
            .stdin(Stdio::piped())
            .spawn()
            .expect("there is a shell")
    }

    fn record(pid: u32) -> Record {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).expect("it runs");
        let mut record = Record {
            identity: Identity {
                tgid: pid,
                start_ns: start_ticks(&stat).expect("a start time") * 10_000_000,
                ..Identity::default()
            },
            ..Record::default()
        };
        let comm = std::fs::read(format!("/proc/{pid}/comm")).expect("it runs");
        record.identity.comm[..comm.len() - 1].copy_from_slice(&comm[..comm.len() - 1]);
        record
    }

    fn details() -> Details {
        let host = Host {
            page_size: 4096,
            ticks_per_second: 100,
            possible_cpus: 1,
            online_cpus: vec![0],
            possible_nodes: 1,
            boot_offset_ns: 0,
        };
        Details::open(&host).expect("/proc is there")
    }

    fn wait_until(mut done: impl FnMut() -> bool) {
        while !done() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    #[test]
    fn a_command_line_is_read_once_and_again_after_exec() {
        let mut shell = shell();
        let pid = shell.id();
        let line = || std::fs::read(format!("/proc/{pid}/cmdline")).expect("it runs");
        wait_until(|| line().ends_with(b"a name\0\0"));
        let mut details = details();
        let before = record(pid);
        let process = Process::new(&before, &[]);
        let expected = line();
        assert_eq!(details.cmdline(process).expect("readable").bytes, expected);
        assert!(details.exe(process).expect("readable").starts_with(b"/"));

        let mut stdin = shell.stdin.take().expect("a pipe");
        stdin.write_all(b"cat -\n").expect("it reads");
        wait_until(|| line() == b"cat\0-\0");
        assert_eq!(details.cmdline(process).expect("kept").bytes, expected);
        let after = record(pid);
        let process = Process::new(&after, &[]);
        assert_eq!(details.cmdline(process).expect("read").bytes, b"cat\0-\0");

        drop(stdin);
        shell.wait().expect("it ends with its input");
        let changed = Record {
            identity: Identity {
                comm: *b"another\0\0\0\0\0\0\0\0\0",
                ..after.identity
            },
            ..after
        };
        assert!(matches!(
            details.cmdline(Process::new(&changed, &[])),
            Err(DetailError::Gone { .. })
        ));
    }

    #[test]
    fn another_process_with_the_pid_gives_nothing() {
        let mut other = record(std::process::id());
        other.identity.start_ns -= 10_000_000;
        let process = Process::new(&other, &[]);
        let mut details = details();
        assert!(matches!(
            details.cmdline(process),
            Err(DetailError::Gone { .. })
        ));
        assert!(matches!(
            details.exe(process),
            Err(DetailError::Gone { .. })
        ));
        assert!(matches!(
            details.cgroup(process),
            Err(DetailError::Gone { .. })
        ));
        assert!(!details.may_trace(process));
    }

    #[test]
    fn ones_own_process_may_be_traced() {
        let own = record(std::process::id());
        assert!(details().may_trace(Process::new(&own, &[])));
    }

    #[test]
    fn a_long_command_line_is_cut_and_not_kept() {
        // A single argument may have 128 KiB at most.
        let argument = "x".repeat(100_000);
        let mut sleeper = Command::new("sh")
            .args(["-c", "read line", &argument, &argument])
            .stdin(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let own = record(sleeper.id());
        let mut details = details();
        // spawn() returns when the old memory is gone, which is before the new one has its arguments.
        wait_until(|| {
            let line = details.cmdline(Process::new(&own, &[]));
            !line.expect("readable").bytes.is_empty()
        });
        let line = details.cmdline(Process::new(&own, &[])).expect("readable");
        assert!(line.cut);
        assert_eq!(line.bytes.len() as u64, LONGEST);
        assert!(details.entries.is_empty());
        drop(sleeper.stdin.take());
        sleeper.wait().expect("it ends with its input");
    }

    #[test]
    fn the_cgroup_is_the_same_with_and_without_its_id() {
        let mut details = details();
        let mut own = record(std::process::id());
        let path = details.cgroup(Process::new(&own, &[])).map(<[u8]>::to_vec);
        let Ok(path) = path else {
            eprintln!("SKIPPED: there is no default hierarchy here");
            return;
        };
        assert!(path.starts_with(b"/"));
        own.identity.groups = crate::Fields::CGROUP.bits();
        for id in [details.cgroups.folder_id(&path).unwrap_or(1), 4711] {
            own.cgroup_id = id;
            for _ in 0..2 {
                let again = details.cgroup(Process::new(&own, &[]));
                assert_eq!(again.expect("readable"), path);
            }
        }
    }

    #[test]
    fn the_start_time_stands_behind_any_name() {
        let numbers = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        let stat = format!("7 (a) S 1 (b) R) S {numbers}");
        assert_eq!(start_ticks(stat.as_bytes()), Some(4711));
        assert_eq!(start_ticks(b"7 (a) S 1 2"), None);
        assert_eq!(start_ticks(b"7 (a)"), None);
        assert_eq!(start_ticks(b""), None);
    }
}
