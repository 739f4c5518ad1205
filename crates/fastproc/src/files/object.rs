//! The BPF source: the walk, and its maps as memory.

use std::{
    fs,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use super::{error::Error, groups::Fields, tables::Tables};
use crate::{
    base::{
        error,
        host::{boottime_ns, running_tasks},
        namespaces::Numbering,
        proc_root,
    },
    kernel::{KernelTypes, Loader, Mapping, ObjectFile, Wanted, object_file, run, support},
    rules::access::may_trace_all,
};

/// Data that the program and the library exchange.
pub(crate) mod layout {
    #![allow(dead_code, reason = "some members are for the program alone")]
    #![allow(
        clippy::unreadable_literal,
        reason = "generated from C, whose numbers have no separators"
    )]
    include!(concat!(env!("OUT_DIR"), "/files.rs"));
}

use layout::{PIECE, Process, Record, Run, Settings, Socket};

pub(crate) static OBJECT: ObjectFile = object_file!("files.bpf");

/// The most repetitions of a walk whose files outgrow their arrays.
const MAX_GROWTHS: u32 = 8;
const SINCE_6_7: &str = "bpf_iter_task_new";
/// Bytes of text for a descriptor, on average, for which there is room at first.
const TEXT_BYTES: u32 = 32;

/// What the program must find in the structures, or it would show zeros.
const MEMBERS: [&str; 24] = [
    "task_struct.files",
    "task_struct.real_cred",
    "files_struct.fdt",
    "files_struct.count.counter",
    "fdtable.fd",
    "fdtable.open_fds",
    "fdtable.close_on_exec",
    "fdtable.max_fds",
    "file.f_inode",
    "file.f_flags",
    "file.f_pos",
    "file.f_path.dentry",
    "file.f_path.mnt",
    "inode.i_ino",
    "inode.i_mode",
    "inode.i_sb",
    "inode.i_rdev",
    "super_block.s_dev",
    "super_block.s_magic",
    "dentry.d_parent",
    "dentry.d_name",
    "dentry.d_seq.seqcount.sequence",
    "mount.mnt_parent",
    "mount.mnt_mountpoint",
];
/// The same for sockets.
const MEMBERS_OF_SOCKETS: [&str; 8] = [
    "socket_alloc.vfs_inode",
    "socket.sk",
    "sock.__sk_common.skc_family",
    "sock.__sk_common.skc_state",
    "sock.__sk_common.skc_net.net",
    "sock.sk_uid",
    "sock.sk_type",
    "sock.sk_protocol",
];

/// The loaded program.
#[derive(Debug)]
pub(super) struct Bpf {
    types: KernelTypes,
    fields: Fields,
    capacity: Capacity,
    loaded: Walk,
    section: Duration,
    met: Met,
}

/// For how many there is room. Texts are counted in pieces.
#[derive(Clone, Copy, Debug)]
struct Capacity {
    processes: u32,
    records: u32,
    sockets: u32,
    pieces: u32,
}

#[derive(Debug)]
struct Walk {
    program: OwnedFd,
    run: Mapping<Run>,
    processes: Mapping<Process>,
    records: Mapping<Record>,
    sockets: Mapping<Socket>,
    texts: Mapping<u8>,
}

/// The result of a walk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    processes: usize,
    records: usize,
    sockets: usize,
    texts: usize,
    /// Time since boot when the walk began.
    pub(super) began_ns: u64,
    /// The longest run of the program.
    pub(super) longest_section: Duration,
    /// How many records were read again.
    pub(super) retried: u32,
}

impl Bpf {
    /// Loads the program, whose runs take this long.
    pub(super) fn open(fields: Fields, section: Duration) -> Result<Self, Error> {
        support::permitted()?;
        if !may_trace_all() {
            return Err(Error::NotPermitted);
        }
        if Numbering::of_proc()? != Numbering::Initial {
            return Err(error::Error::OtherProcesses {
                reads: "the whole machine",
                shows: "another pid namespace",
            }
            .into());
        }
        let members = [&MEMBERS[..], &MEMBERS_OF_SOCKETS].concat();
        let types = KernelTypes::read(Wanted {
            object: Some(&OBJECT),
            paths: &members,
            functions: &["bpf_rdonly_cast", "bpf_rcu_read_lock", SINCE_6_7],
            ..Wanted::default()
        })?;
        if !types.has_function(SINCE_6_7) {
            return Err(error::Error::KernelTooOld {
                missing: "open-coded task iterator (bpf_iter_task_new)",
                since: "6.7",
            }
            .into());
        }
        let wanted = if fields.contains(Fields::SOCKETS) {
            &members[..]
        } else {
            &MEMBERS[..]
        };
        if let Some(&missing) = wanted.iter().find(|path| !types.has_path(path)) {
            return Err(Error::UnknownKernel { missing });
        }
        let capacity = Capacity::expected(fields);
        Ok(Self {
            loaded: Walk::load(fields, capacity, &types)?,
            types,
            fields,
            capacity,
            section,
            met: Met::default(),
        })
    }

    /// Walks all processes.
    pub(super) fn walk(&mut self) -> Result<(), Error> {
        self.met = Met::default();
        for _ in 0..MAX_GROWTHS {
            let began_ns = boottime_ns();
            self.loaded.run.as_mut_slice()[0] = Run {
                section_ns: self.section.as_nanos() as u64,
                ..Run::default()
            };
            while self.loaded.run.as_slice()[0].done == 0 {
                run(self.loaded.program.as_fd(), &mut [])?;
            }
            let run = self.loaded.run.as_slice()[0];
            let Some(capacity) = self.capacity.grown(&run) else {
                self.met = Met {
                    processes: run.processes as usize,
                    records: run.records as usize,
                    sockets: run.sockets as usize,
                    texts: (run.text * PIECE) as usize,
                    began_ns,
                    longest_section: Duration::from_nanos(run.longest_ns),
                    retried: run.retried,
                };
                return Ok(());
            };
            self.loaded = Walk::load(self.fields, capacity, &self.types)?;
            self.capacity = capacity;
        }
        Err(Error::Overflow {
            capacity: self.capacity.records,
        })
    }

    /// The result of the last walk.
    pub(super) fn met(&self) -> Met {
        self.met
    }

    pub(super) fn tables(&self) -> Tables<'_> {
        let Self { loaded, met, .. } = self;
        Tables {
            processes: &loaded.processes.as_slice()[..met.processes],
            records: &loaded.records.as_slice()[..met.records],
            sockets: &loaded.sockets.as_slice()[..met.sockets],
            texts: &loaded.texts.as_slice()[..met.texts],
        }
    }

    pub(super) fn records_mut(&mut self) -> &mut [Record] {
        &mut self.loaded.records.as_mut_slice()[..self.met.records]
    }
}

/// The number of open files of the machine. Processes may share each.
pub(super) fn allocated_files() -> Option<u32> {
    let text = fs::read_to_string(proc_root::path("/proc/sys/fs/file-nr")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

impl Capacity {
    /// A guess: processes share few files.
    fn expected(fields: Fields) -> Self {
        let processes = running_tasks().unwrap_or(1000);
        let files = allocated_files()
            .unwrap_or(10_000)
            .saturating_add(3 * processes);
        let files = files.saturating_add(files / 4);
        let only = |group, count: u32| if fields.intersects(group) { count } else { 1 };
        Self {
            processes: processes + processes / 4 + 64,
            records: only(Fields::FILES | Fields::SOCKETS, files),
            sockets: only(Fields::SOCKETS, files),
            pieces: only(
                Fields::PATHS | Fields::SOCKETS,
                files / (PIECE / TEXT_BYTES) + 2,
            ),
        }
    }

    /// Room for what was lost, and a quarter more. `None`: nothing was lost.
    fn grown(self, run: &Run) -> Option<Self> {
        let lost = [
            run.lost_processes,
            run.lost_records,
            run.lost_sockets,
            run.lost_texts,
        ];
        if lost == [0; 4] {
            return None;
        }
        let with = |room: u32, lost: u32| {
            let needed = room.saturating_add(lost);
            if lost == 0 {
                room
            } else {
                needed.saturating_add(needed / 4).saturating_add(1)
            }
        };
        Some(Self {
            // The walk ends where there is no room for a process.
            processes: with(self.processes, run.lost_processes.min(1) * self.processes),
            records: with(self.records, run.lost_records),
            sockets: with(self.sockets, run.lost_sockets),
            pieces: with(self.pieces, run.lost_texts / (PIECE / TEXT_BYTES) + 1),
        })
    }
}

impl Walk {
    fn load(fields: Fields, capacity: Capacity, types: &KernelTypes) -> Result<Self, Error> {
        let mut loader = Loader::open(&OBJECT, types)?;
        let settings = Settings {
            groups: fields.bits(),
            pieces: capacity.pieces,
        };
        loader.set("settings", &settings)?;
        loader.set_len("processes", capacity.processes)?;
        loader.set_len("places", capacity.processes)?;
        loader.set_len("records", capacity.records)?;
        loader.set_len("sockets", capacity.sockets)?;
        loader.set_len("texts", capacity.pieces)?;
        let loaded = loader.load()?;
        Ok(Self {
            program: loaded.program("walk")?,
            run: loaded.map(".data.run", 1)?,
            processes: loaded.map("processes", capacity.processes)?,
            records: loaded.map("records", capacity.records)?,
            sockets: loaded.map("sockets", capacity.sockets)?,
            texts: loaded.map("texts", capacity.pieces * PIECE)?,
        })
    }
}
