//! The source `procfs`: the kernel's text, which needs no privileges and shows what the kernel lets this process see.

use std::{collections::BTreeMap, fs};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, Mode, OFlags, RawDir, fstat, open, openat, statat},
    io::Errno,
};

use super::{
    descriptor::{Seen, read_descriptor, read_kind, read_other},
    error::Error,
    gpu::is_gpu,
    groups::{Fields, Kind},
    net::Net,
    object::{
        UNLISTED,
        layout::{self, HIDDEN, OF_THREAD, UNCOUNTED},
    },
    tables::{Owned, Tables},
};
use crate::base::{
    host::{Host, boottime_ns},
    proc_root,
    whole_file::read_whole,
};

/// Network namespaces, each with a folder of its tables, and the places of the processes that have sockets and are in it.
type Networks = BTreeMap<u32, (String, Vec<usize>)>;

/// The collector's state.
#[derive(Debug)]
pub(super) struct Procfs {
    fields: Fields,
    /// Whether links are followed to tell kinds of files apart, which asks their file systems.
    follows: bool,
    nanoseconds_per_tick: u64,
    boot_offset_ns: i64,
    /// Whether the size of a folder of descriptors is their number (Linux 6.2).
    tells_number: bool,
    own_net: u32,
    owned: Owned,
    net: Net,
    text: Vec<u8>,
    entries: Vec<u8>,
    began_ns: u64,
}

impl Procfs {
    pub(super) fn open(fields: Fields) -> Result<Self, Error> {
        let host = Host::read()?;
        let own = fs::metadata("/proc/self/fd");
        Ok(Self {
            fields,
            follows: true,
            nanoseconds_per_tick: 1_000_000_000 / host.ticks_per_second.max(1),
            boot_offset_ns: host.boot_offset_ns,
            tells_number: own.is_ok_and(|folder| folder.len() > 0),
            own_net: own_network_namespace(),
            owned: Owned::default(),
            net: Net::default(),
            text: Vec::new(),
            entries: Vec::with_capacity(32 << 10),
            began_ns: 0,
        })
    }

    /// Counts without asking any file system: one that hangs would hold the reader. What has a path is of no known kind.
    pub(super) fn follows_no_links(mut self) -> Self {
        self.follows = false;
        self
    }

    pub(super) fn tables(&self) -> Tables<'_> {
        self.owned.tables()
    }

    pub(super) fn began_ns(&self) -> u64 {
        self.began_ns
    }

    /// Reads these processes, or all.
    pub(super) fn read(&mut self, pids: Option<&[u32]>) -> Result<(), Error> {
        self.owned.clear();
        self.net.clear();
        self.began_ns = boottime_ns();
        let root = proc_root::path("/proc");
        let failed = |source: Errno| Error::Read {
            path: root.to_path_buf(),
            source: source.into(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(&*root, flags, Mode::empty()).map_err(failed)?;
        let mut all = Vec::new();
        let pids = if let Some(pids) = pids {
            pids
        } else {
            list(&directory, &mut self.entries, &mut all).map_err(failed)?;
            &all
        };
        let mut networks = Networks::default();
        for &pid in pids {
            self.read_process(&directory, pid, &mut networks);
        }
        self.read_sockets(networks);
        Ok(())
    }

    /// Reads a process, unless it has ended.
    fn read_process(&mut self, root: &OwnedFd, pid: u32, networks: &mut Networks) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(folder) = openat(root, format!("{pid}"), flags, Mode::empty()) else {
            return;
        };
        let Some((mut process, has_ended)) = self.identify(&folder, pid) else {
            return;
        };
        process.first = self.owned.records.len() as u32;
        let thread = if has_ended {
            self.thread_with_files(&folder, pid)
        } else {
            None
        };
        if thread.is_some() {
            process.state |= OF_THREAD;
        }
        let folder = thread.unwrap_or(folder);
        match openat(&folder, "fd", flags, Mode::empty()) {
            Ok(descriptors) => self.read_descriptors(&folder, &descriptors, &mut process),
            Err(Errno::NOENT | Errno::SRCH) => return,
            Err(_) => {
                process.state |= HIDDEN;
                let size = statat(&folder, "fd", AtFlags::empty()).map_or(0, |stat| stat.st_size);
                process.open = size as u32;
                if !self.tells_number {
                    process.state |= UNCOUNTED;
                }
            }
        }
        let records = &self.owned.records[process.first as usize..];
        process.records = records.len() as u32;
        let is_socket = |record: &layout::Record| record.kind == Kind::Socket.number();
        if self.fields.contains(Fields::SOCKETS) && records.iter().any(is_socket) {
            let link = format!("/proc/{pid}/ns/net");
            let namespace = network_namespace(&link).unwrap_or(self.own_net);
            let (_, users) = networks
                .entry(namespace)
                .or_insert_with(|| (format!("/proc/{pid}/net"), Vec::new()));
            users.push(self.owned.processes.len());
        }
        self.owned.processes.push(process);
    }

    /// The folder of a thread that has files.
    fn thread_with_files(&mut self, folder: &OwnedFd, pid: u32) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tasks = openat(folder, "task", flags, Mode::empty()).ok()?;
        let mut threads = Vec::new();
        list(&tasks, &mut self.entries, &mut threads).ok()?;
        threads.retain(|&thread| thread != pid);
        threads.into_iter().find_map(|thread| {
            let thread = openat(&tasks, format!("{thread}"), flags, Mode::empty()).ok()?;
            let descriptors = openat(&thread, "fd", flags, Mode::empty()).ok()?;
            let mut numbers = Vec::new();
            list(&descriptors, &mut self.entries, &mut numbers).ok()?;
            (!numbers.is_empty()).then_some(thread)
        })
    }

    /// The process's name, user and start, and whether its leader has ended. `None`: it is gone.
    fn identify(&mut self, folder: &OwnedFd, pid: u32) -> Option<(layout::Process, bool)> {
        let mut process = layout::Process {
            tgid: pid,
            ..layout::Process::default()
        };
        self.load(folder, "stat")?;
        let (comm, state, ticks) = name_state_and_start(&self.text)?;
        let has_ended = matches!(state, b'Z' | b'X');
        let comm = &comm[..comm.len().min(process.comm.len() - 1)];
        process.comm[..comm.len()].copy_from_slice(comm);
        let start_ns = ticks.saturating_mul(self.nanoseconds_per_tick);
        // The text counts from the start of this time namespace.
        process.start_ns = start_ns.saturating_add_signed(self.boot_offset_ns.saturating_neg());
        self.load(folder, "status")?;
        process.uid = effective_user(&self.text)?;
        Some((process, has_ended))
    }

    fn load(&mut self, folder: &OwnedFd, name: &str) -> Option<()> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(folder, name, flags, Mode::empty()).ok()?;
        read_whole(&file, &mut self.text).ok()
    }

    fn read_descriptors(
        &mut self,
        folder: &OwnedFd,
        descriptors: &OwnedFd,
        process: &mut layout::Process,
    ) {
        let mut numbers = Vec::new();
        if list(descriptors, &mut self.entries, &mut numbers).is_err() {
            process.state |= HIDDEN | UNCOUNTED;
            return;
        }
        numbers.sort_unstable();
        let mut denied = false;
        for number in numbers {
            let text = &mut self.text;
            let seen = if self.fields.is_empty() {
                read_kind(descriptors, number, self.follows).map(|kind| (kind.number(), None))
            } else {
                match read_descriptor(folder, descriptors, number, self.fields, text) {
                    Seen::Open(record, name) => Some((record.kind, Some((record, name)))),
                    Seen::Unknown => None,
                }
            };
            let Some((kind, file)) = seen else {
                // The folder can be read, and what the links lead to cannot: by a security module.
                denied |= is_denied(descriptors, number);
                continue;
            };
            process.open += 1;
            process.kinds[usize::from(kind)] += 1;
            let Some((record, name)) = file else {
                continue;
            };
            let is_socket = record.kind == Kind::Socket.number();
            let is_wanted = self.fields.contains(Fields::FILES)
                || self.fields.contains(Fields::SOCKETS) && is_socket
                || self.fields.contains(Fields::GPUS) && is_gpu(&record);
            if is_wanted {
                self.add(record, &name);
            }
        }
        if denied {
            process.state |= HIDDEN;
            process.open = fstat(descriptors).map_or(0, |stat| stat.st_size as u32);
        }
        if self.fields.contains(Fields::FILES) {
            for (number, name) in [
                (layout::CWD, "cwd"),
                (layout::ROOT, "root"),
                (layout::PROGRAM, "exe"),
            ] {
                if let Seen::Open(record, name) = read_other(folder, number, name) {
                    self.add(record, &name);
                }
            }
        }
    }

    fn add(&mut self, mut record: layout::Record, name: &[u8]) {
        if self.fields.contains(Fields::PATHS) {
            let (text, length) = self.owned.add_text(name);
            (record.text, record.text_len) = (text, length);
        }
        self.owned.records.push(record);
    }

    /// Adds the sockets of these network namespaces to their descriptors.
    fn read_sockets(&mut self, networks: Networks) {
        for (namespace, (folder, users)) in networks {
            let folder = if namespace == self.own_net {
                "/proc/net"
            } else {
                &folder
            };
            if !self.net.read(folder, namespace, &[]) {
                for at in users {
                    self.owned.processes[at].state |= UNLISTED;
                }
            }
        }
        for at in 0..self.owned.records.len() {
            let record = self.owned.records[at];
            if record.kind != Kind::Socket.number() {
                continue;
            }
            if let Some((mut socket, name)) = self.net.find(record.ino) {
                (socket.text, socket.text_len) = self.owned.add_text(name);
                self.owned.sockets.push(socket);
                self.owned.records[at].socket = self.owned.sockets.len() as u32;
            }
        }
    }
}

fn is_denied(descriptors: &OwnedFd, number: u32) -> bool {
    let stat = statat(descriptors, format!("{number}"), AtFlags::empty());
    matches!(stat, Err(Errno::ACCESS | Errno::PERM))
}

/// The network namespace of this process; 0 if it is not known.
pub(super) fn own_network_namespace() -> u32 {
    network_namespace("/proc/self/ns/net").unwrap_or(0)
}

fn network_namespace(link: &str) -> Option<u32> {
    let target = fs::read_link(proc_root::path(link)).ok()?;
    let number = target.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?;
    number.parse().ok()
}

fn list(directory: &OwnedFd, buffer: &mut Vec<u8>, numbers: &mut Vec<u32>) -> Result<(), Errno> {
    let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_str().ok();
        numbers.extend(name.and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(())
}

/// The name, the state and the start, in clock ticks, of a line of `/proc/PID/stat`. A name may hold parentheses.
fn name_state_and_start(line: &[u8]) -> Option<(&[u8], u8, u64)> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(line.get(close + 1..)?).ok()?;
    let start = rest.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let state = *line.get(close + 2)?;
    Some((line.get(open + 1..close)?, state, start))
}

/// The effective user in a text of `/proc/PID/status`.
fn effective_user(text: &[u8]) -> Option<u32> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"Uid:"))?;
    let line = std::str::from_utf8(line).ok()?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_rest_of_its_line() {
        let line = b"12 (a) S 1 (b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        let expected = (&b"a) S 1 (b"[..], b'R', 4242);
        assert_eq!(name_state_and_start(line), Some(expected));
        assert_eq!(name_state_and_start(b"12 (a"), None);
        assert_eq!(name_state_and_start(b"12 )a("), None);
        assert_eq!(effective_user(b"Name:\tx\nUid:\t1\t2\t3\t4\n"), Some(2));
        assert_eq!(effective_user(b"Uid:\t1\n"), None);
    }

    #[test]
    fn sockets_of_a_namespace_without_tables_are_not_known() {
        for (folder, state) in [("/proc/self/net", 0), ("/proc/self/none", UNLISTED)] {
            let mut procfs = Procfs::open(Fields::SOCKETS).expect("/proc is there");
            procfs.owned.processes.push(layout::Process::default());
            procfs.read_sockets(Networks::from([(1, (folder.into(), vec![0]))]));
            assert_eq!(procfs.owned.processes[0].state, state, "{folder}");
        }
    }
}
