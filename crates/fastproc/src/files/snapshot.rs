//! The open files of all processes, borrowed from their collector.

use rustix::fs::{major, minor};

use super::{
    Source,
    gpu::{Clients, GpuClient},
    groups::Kind,
    name,
    object::{
        UNLISTED,
        layout::{
            CHANGED, CWD, DELETED, HIDDEN, OF_THREAD, PROGRAM, Process as ProcessRecord, ROOT,
            ROOTLESS, Record, STATED, TORN, UNCOUNTED, WHOLE,
        },
    },
    socket::Socket,
    tables::{Names, Tables},
    trusted::is_trusted,
};

const O_ACCMODE: u32 = 3;
const O_CLOEXEC: u32 = 0o2_000_000;
const O_PATH: u32 = 0o10_000_000;
/// The kernel's own numbers of devices (`include/linux/kdev_t.h`).
const MINOR_BITS: u32 = 20;

/// The open files of all processes at about one time.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    pub(super) tables: Tables<'a>,
    pub(super) names: &'a Names,
    pub(super) gpus: &'a Clients,
    pub(super) orphans: Tables<'a>,
    /// The only processes to show.
    pub(super) pids: Option<&'a [u32]>,
    pub(super) source: Source,
    pub(super) began_ns: u64,
}

/// A process and its open files.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    record: &'a ProcessRecord,
    snapshot: Snapshot<'a>,
}

/// An open file of a process.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    record: &'a Record,
    place: u32,
    snapshot: Snapshot<'a>,
}

/// How a process holds a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Slot {
    /// A descriptor with this number.
    Descriptor(u32),
    /// As its current directory.
    CurrentDirectory,
    /// As its root directory.
    Root,
    /// As its program.
    Program,
}

/// What a file was opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To read.
    Read,
    /// To write.
    Write,
    /// To read and write.
    Both,
}

/// The number of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device {
    /// Which driver.
    pub major: u32,
    /// Which device of it.
    pub minor: u32,
}

impl Device {
    pub(super) fn from_kernel(number: u32) -> Self {
        Self {
            major: number >> MINOR_BITS,
            minor: number & ((1 << MINOR_BITS) - 1),
        }
    }

    pub(super) fn from_stat(number: u64) -> Self {
        let (major, minor) = (major(number), minor(number));
        Self { major, minor }
    }

    pub(super) fn to_kernel(self) -> u32 {
        self.major << MINOR_BITS | self.minor
    }
}

impl<'a> Snapshot<'a> {
    /// Every process that was asked for, in the order in which the source met them.
    pub fn processes(self) -> impl Iterator<Item = Holder<'a>> {
        let is_shown =
            move |record: &&ProcessRecord| self.pids.is_none_or(|pids| pids.contains(&record.tgid));
        let shown = self.tables.processes.iter().filter(is_shown);
        shown.map(move |record| Holder {
            record,
            snapshot: self,
        })
    }

    /// Every open file that was asked for, process after process.
    pub fn files(self) -> impl Iterator<Item = (Holder<'a>, File<'a>)> {
        self.processes()
            .flat_map(|holder| holder.files().map(move |file| (holder, file)))
    }

    /// Sockets of this process's network namespace of which no process in sight has a descriptor: connections that wait for their
    /// end or to be accepted, and those of hidden processes. Empty unless they were asked for.
    pub fn orphans(self) -> impl ExactSizeIterator<Item = Socket<'a>> {
        let Tables {
            sockets,
            records,
            texts,
            ..
        } = self.orphans;
        sockets.iter().zip(records).map(|(record, of)| Socket {
            record,
            texts,
            inode: of.ino,
        })
    }

    /// Whether the kernel hides the files of any process.
    pub(super) fn has_hidden(self) -> bool {
        self.processes().any(Holder::is_hidden)
    }

    /// Where it was read: that of this snapshot, even if a service answers the next one.
    pub fn source(self) -> Source {
        self.source
    }

    /// When the snapshot began, in nanoseconds since boot.
    pub fn began_ns(self) -> u64 {
        self.began_ns
    }
}

impl<'a> Holder<'a> {
    /// The process id.
    pub fn pid(self) -> u32 {
        self.record.tgid
    }

    /// When it started, in nanoseconds since boot; from `/proc` in whole clock ticks.
    pub fn start_ns(self) -> u64 {
        self.record.start_ns
    }

    /// The effective user id.
    pub fn uid(self) -> u32 {
        self.record.uid
    }

    /// The name, as in `/proc/PID/comm`: up to 15 bytes.
    pub fn comm(self) -> &'a [u8] {
        let name = &self.record.comm;
        let end = name.iter().position(|&byte| byte == 0);
        &name[..end.unwrap_or(name.len())]
    }

    /// The id of its cgroup of version 2. `None`: it is not known; `/proc` tells it only as a path.
    pub fn cgroup_id(self) -> Option<u64> {
        Some(self.record.cgroup).filter(|&id| id != 0)
    }

    /// The number of open descriptors. `None`: the kernel hides it.
    pub fn open(self) -> Option<u32> {
        (self.state() & UNCOUNTED == 0).then_some(self.record.open)
    }

    /// The number of open descriptors of this kind. `None`: the kernel hides it.
    pub fn count(self, kind: Kind) -> Option<u32> {
        let count = self.record.kinds[usize::from(kind.number())];
        (self.state() & HIDDEN == 0).then_some(count)
    }

    /// Whether the kernel hides which files it has open.
    pub fn is_hidden(self) -> bool {
        self.state() & HIDDEN != 0
    }

    /// Whether the files are those of a thread because the leader has ended; `/proc/PID/fd` is empty then.
    pub fn is_of_thread(self) -> bool {
        self.state() & OF_THREAD != 0
    }

    /// Whether some files may be missing: the process changed its table whenever it was read, or it has so many descriptors that
    /// their records would take too much memory. It is counted how many.
    pub fn is_incomplete(self) -> bool {
        self.state() & CHANGED != 0
    }

    /// Whether nothing is known of its sockets but their descriptors, because `/proc` has no tables of its network namespace. Those
    /// of sockets without a line in a table are never known.
    pub fn lacks_sockets(self) -> bool {
        self.state() & UNLISTED != 0
    }

    fn state(self) -> u32 {
        self.record.state
    }

    /// The clients of GPUs that it has open, each once.
    pub fn gpus(self) -> impl Iterator<Item = &'a GpuClient> {
        let mut known: Vec<*const GpuClient> = Vec::new();
        let clients = self.files().filter_map(File::gpu);
        clients.filter(move |&client| {
            let is_new = !known.contains(&std::ptr::from_ref(client));
            known.push(client);
            is_new
        })
    }

    /// The open files that were asked for, by number.
    pub fn files(self) -> impl ExactSizeIterator<Item = File<'a>> {
        let (first, count) = (self.record.first, self.record.records);
        let range = first as usize..first as usize + count as usize;
        let records = self.snapshot.tables.records.get(range).unwrap_or_default();
        let places = records.iter().enumerate();
        places.map(move |(place, record)| File {
            record,
            place: first + place as u32,
            snapshot: self.snapshot,
        })
    }
}

impl<'a> File<'a> {
    /// Its number in the process.
    pub fn slot(self) -> Slot {
        match self.record.fd {
            CWD => Slot::CurrentDirectory,
            ROOT => Slot::Root,
            PROGRAM => Slot::Program,
            number => Slot::Descriptor(number),
        }
    }

    /// The number of the descriptor, if it is one.
    pub fn descriptor(self) -> Option<u32> {
        match self.slot() {
            Slot::Descriptor(number) => Some(number),
            _ => None,
        }
    }

    /// What it is. [`Kind::Other`] if the descriptor changed whenever it was read.
    pub fn kind(self) -> Kind {
        Kind::from_number(self.record.kind)
    }

    fn is_read(self) -> bool {
        self.state() & TORN == 0
    }

    fn is_opened(self) -> bool {
        self.descriptor().is_some() && self.is_read()
    }

    /// The flags of open(2), with `O_CLOEXEC` of this descriptor, as in `/proc/PID/fdinfo/N`. `None`: it is no descriptor.
    pub fn flags(self) -> Option<u32> {
        self.is_opened().then_some(self.record.flags)
    }

    /// What it was opened for. `None`: for neither (`O_PATH`), or it is no descriptor.
    pub fn mode(self) -> Option<Mode> {
        let flags = self.flags().filter(|flags| flags & O_PATH == 0)?;
        match flags & O_ACCMODE {
            0 => Some(Mode::Read),
            1 => Some(Mode::Write),
            2 => Some(Mode::Both),
            _ => None,
        }
    }

    /// Whether execve(2) closes it.
    pub fn is_close_on_exec(self) -> Option<bool> {
        self.flags().map(|flags| flags & O_CLOEXEC != 0)
    }

    /// Whether it only names a file (`O_PATH`).
    pub fn is_path_only(self) -> Option<bool> {
        self.flags().map(|flags| flags & O_PATH != 0)
    }

    /// Whether stat(2) shows what the record has.
    fn is_as_stat(self) -> bool {
        self.state() & STATED != 0 || is_trusted(self.record.magic)
    }

    /// The device of its file system, as stat(2) shows it. `None`: it is not known without [`Fields::STAT`](super::Fields::STAT).
    pub fn device(self) -> Option<Device> {
        let number = Device::from_kernel(self.record.dev);
        (self.is_read() && self.is_as_stat()).then_some(number)
    }

    /// The inode number, as stat(2) shows it. `None`: it is not known without [`Fields::STAT`](super::Fields::STAT).
    pub fn inode(self) -> Option<u64> {
        (self.is_read() && self.is_as_stat()).then_some(self.record.ino)
    }

    /// The device that it is, if it is one.
    pub fn special_device(self) -> Option<Device> {
        let is_device = matches!(self.kind(), Kind::Character | Kind::Block);
        is_device.then(|| Device::from_kernel(self.record.rdev))
    }

    /// The size of a regular file in bytes.
    pub fn size(self) -> Option<u64> {
        (self.kind() == Kind::File && self.is_as_stat()).then_some(self.record.size)
    }

    /// Where the next read or write begins, in bytes.
    pub fn position(self) -> Option<u64> {
        let has_position = self.is_opened() && self.record.flags & O_PATH == 0;
        has_position.then_some(self.record.pos)
    }

    /// Whether its path was removed. `None`: paths were not asked for, or it is not known.
    pub fn is_deleted(self) -> Option<bool> {
        let has_path = !matches!(
            self.kind(),
            Kind::Socket | Kind::Pipe | Kind::Anonymous | Kind::Namespace | Kind::Pidfd
        );
        let is_deleted = self.state() & DELETED != 0;
        if !self.is_read() || has_path && !is_deleted && !self.has_text() {
            return None;
        }
        let has_folder = self.state() & ROOTLESS == 0;
        Some(has_path && (is_deleted || !has_folder))
    }

    /// Appends its name as readlink(2) of `/proc/PID/fd/N` says it: a path, or `socket:[1]`. A path is that in the mount
    /// namespace of the process, below the root of this one; its end is ` (deleted)` if it was removed. Returns false, and
    /// appends nothing, if it is not known.
    pub fn write_name(self, to: &mut Vec<u8>) -> bool {
        if let Some(name) = self.snapshot.names.get(&self.place) {
            to.extend_from_slice(name);
            return true;
        }
        let start = self.record.text as usize;
        let range = start..start + self.record.text_len as usize;
        let Some(text) = self.snapshot.tables.texts.get(range) else {
            return false;
        };
        let has_form = matches!(self.kind(), Kind::Socket | Kind::Pipe);
        if self.state() & WHOLE != 0 {
            to.extend_from_slice(text);
        } else if self.is_read() && (has_form || self.has_text()) {
            name::write(self.record, text, to);
        } else {
            return false;
        }
        true
    }

    /// Whether its name was read.
    fn has_text(self) -> bool {
        self.record.text_len > 0 && !name::is_missing(self.record)
            || self.snapshot.names.contains_key(&self.place)
    }

    /// The client of a GPU that it is, with what the engines did and what memory it has. `None`: it is no open GPU, the driver tells
    /// nothing, or [`Fields::GPUS`](super::Fields::GPUS) was not asked for.
    pub fn gpu(self) -> Option<&'a GpuClient> {
        self.snapshot.gpus.find(self.place)
    }

    /// The socket. `None`: the file is not a socket, sockets were not asked for, or no table of `/proc/net` shows it.
    pub fn socket(self) -> Option<Socket<'a>> {
        let at = self.record.socket.checked_sub(1)?;
        let Tables { sockets, texts, .. } = self.snapshot.tables;
        sockets.get(at as usize).map(|record| Socket {
            record,
            texts,
            inode: self.record.ino,
        })
    }

    fn state(self) -> u32 {
        self.record.state.into()
    }
}
