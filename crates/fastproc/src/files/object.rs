//! The BPF source: the walk, and its maps as memory.

use std::{
    fs,
    os::fd::{AsFd, OwnedFd},
    time::Duration,
};

use super::{Bounds, error::Error, groups::Fields, tables::Tables};
use crate::{
    base::{
        error,
        host::{boottime_ns, running_tasks},
        namespaces::Numbering,
        proc_root,
    },
    kernel::{
        KernelTypes, Loader, Mapping, ObjectFile, Wanted, iterate, object_file, run, support,
    },
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

use layout::{PIECE, Process, Record, Rights, Run, Settings, Socket};

pub(crate) static OBJECT: ObjectFile = object_file!("files.bpf");

/// The most repetitions of a walk whose files outgrow their arrays.
const MAX_GROWTHS: u32 = 8;
const SINCE_6_7: &str = "bpf_iter_task_new";
/// Bytes of text for a descriptor, on average, for which there is room at first.
const TEXT_BYTES: u32 = 32;
/// The kernel shows no longer path.
const LONGEST_TEXT: u64 = 4096;
/// So many descriptors of each process are read, however many there are.
const LEAST_OF_PROCESS: u32 = 256;

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

/// A state of a process that only the source `procfs` sets, besides those of the program: the tables of sockets of its network
/// namespace could not be read.
pub(super) const UNLISTED: u32 = 1 << 31;

/// The programs that list tables of sockets.
const LISTS: [&str; 3] = ["list_tcp", "list_udp", "list_unix"];

/// The loaded program.
#[derive(Debug)]
pub(super) struct Bpf {
    types: KernelTypes,
    capacity: Capacity,
    loaded: Walk,
    options: Options,
    most_records: u32,
    met: Met,
}

/// How to walk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) fields: Fields,
    /// Whether to list the sockets of the kernel's tables, too.
    pub(super) lists: bool,
    /// How long one run of the program may take.
    pub(super) section: Duration,
    /// The most records; by default they take an eighth of the machine's memory.
    pub(super) room: Option<u32>,
    /// How much there is room for at first.
    pub(super) bounds: Bounds,
}

/// For how many there is room. Texts are counted in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    rights: Mapping<Rights>,
    records: Mapping<Record>,
    sockets: Mapping<Socket>,
    texts: Mapping<u8>,
    lists: Vec<OwnedFd>,
}

/// The result of a walk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    processes: usize,
    records: usize,
    with_listed: usize,
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
    /// Loads the program.
    pub(super) fn open(mut options: Options) -> Result<Self, Error> {
        let fields = options.fields;
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
        let listed = if options.lists { in_tables() } else { 0 };
        let capacity = Capacity::expected(fields, listed).within(options.bounds);
        let mut loaded = Walk::load(options, capacity, &types);
        if options.lists && loaded.is_err() {
            // These tables may be those of a module. The text has them as well.
            options.lists = false;
            loaded = Walk::load(options, capacity, &types);
        }
        Ok(Self {
            loaded: loaded?,
            types,
            capacity,
            options,
            most_records: options.room.unwrap_or_else(most_in_memory),
            met: Met::default(),
        })
    }

    /// Walks all processes. With a user, it reads the files of this user's processes, and how many others have.
    pub(super) fn walk(&mut self, user: Option<u32>, bounds: Bounds) -> Result<(), Error> {
        self.met = Met::default();
        let mut most = u32::MAX;
        for _ in 0..MAX_GROWTHS {
            let began_ns = boottime_ns();
            self.loaded.run.as_mut_slice()[0] = Run {
                section_ns: self.options.section.as_nanos() as u64,
                most,
                is_for_user: user.is_some().into(),
                user: user.unwrap_or(0),
                ..Run::default()
            };
            while self.loaded.run.as_slice()[0].done == 0 {
                if bounds.are_over() {
                    return Err(Error::TooLong);
                }
                run(self.loaded.program.as_fd(), &mut [])?;
            }
            let records = self.loaded.run.as_slice()[0].records as usize;
            for link in &self.loaded.lists {
                iterate(link.as_fd()).map_err(error::Error::Run)?;
            }
            let run = self.loaded.run.as_slice()[0];
            // The arrays may have grown for a request with larger bounds.
            if !is_within(&run, bounds) {
                return Err(Error::TooMany);
            }
            let fields = self.options.fields;
            let Some(capacity) = self.capacity.grown(&run, fields, self.most_records) else {
                self.met = Met {
                    processes: run.processes as usize,
                    records,
                    with_listed: run.records as usize,
                    sockets: run.sockets as usize,
                    texts: (run.text * PIECE) as usize,
                    began_ns,
                    longest_section: Duration::from_nanos(run.longest_ns),
                    retried: run.retried,
                };
                return Ok(());
            };
            if capacity.records > self.most_records && most == u32::MAX {
                // Duplicates of a descriptor cost their user little: they must not fill the memory of a reader.
                most = (self.most_records / run.processes.max(1)).max(LEAST_OF_PROCESS);
                continue;
            }
            let capacity = self.capacity.raised(capacity, bounds);
            if capacity == self.capacity {
                return Err(Error::TooMany);
            }
            self.loaded = Walk::load(self.options, capacity, &self.types)?;
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

    /// The sockets of the kernel's tables. `None`: they were not asked for, or only the text has them.
    pub(super) fn listed(&self) -> Option<&[Record]> {
        let listed = self.met.records..self.met.with_listed;
        let records = self.loaded.records.as_slice();
        self.options.lists.then(|| &records[listed])
    }

    /// The rights of each process, if files were read for a user.
    pub(super) fn rights(&self) -> &[Rights] {
        &self.loaded.rights.as_slice()[..self.met.processes]
    }

    pub(super) fn records_mut(&mut self) -> &mut [Record] {
        &mut self.loaded.records.as_mut_slice()[..self.met.records]
    }
}

/// How many records fill an eighth of the machine's memory.
fn most_in_memory() -> u32 {
    let memory = rustix::system::sysinfo();
    let bytes = memory.totalram as u64 * u64::from(memory.mem_unit);
    let record = size_of::<Record>() + size_of::<Socket>() + TEXT_BYTES as usize;
    // Texts have a place of 32 bits.
    let most = u64::from(u32::MAX / TEXT_BYTES / 2);
    (bytes / 8 / record as u64).min(most) as u32
}

/// The number of open files of the machine. Processes may share each.
pub(super) fn allocated_files() -> Option<u32> {
    let text = fs::read_to_string(proc_root::path("/proc/sys/fs/file-nr")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// The number of sockets in the tables of this network namespace, about.
pub(super) fn in_tables() -> u32 {
    let text = fs::read_to_string("/proc/net/sockstat").unwrap_or_default();
    let mut words = text.split_ascii_whitespace();
    let mut sum = 0_u32;
    while let Some(word) = words.next() {
        if let "used" | "orphan" | "tw" = word {
            let number = words.next().and_then(|number| number.parse().ok());
            sum = sum.saturating_add(number.unwrap_or(0));
        }
    }
    sum
}

/// Whether no more was read than the bounds allow.
fn is_within(run: &Run, bounds: Bounds) -> bool {
    run.records.max(run.sockets) <= bounds.files && run.text <= bounds.text_bytes / PIECE
}

impl Capacity {
    /// A guess: processes share few files. So many sockets are listed besides.
    fn expected(fields: Fields, listed: u32) -> Self {
        let processes = running_tasks().unwrap_or(1000);
        let files = allocated_files()
            .unwrap_or(10_000)
            .saturating_add(3 * processes)
            .saturating_add(listed);
        let files = files.saturating_add(files / 4);
        let only = |group, count: u32| if fields.intersects(group) { count } else { 1 };
        Self {
            processes: processes + processes / 4 + 64,
            records: only(Fields::FILES | Fields::SOCKETS | Fields::GPUS, files),
            sockets: only(Fields::SOCKETS, files),
            pieces: only(
                Fields::PATHS | Fields::SOCKETS,
                files / (PIECE / TEXT_BYTES) + 2,
            ),
        }
    }

    /// As much of it as the bounds allow.
    fn within(self, bounds: Bounds) -> Self {
        Self {
            records: self.records.min(bounds.files),
            sockets: self.sockets.min(bounds.files),
            pieces: self.pieces.min(bounds.text_bytes / PIECE),
            ..self
        }
    }

    /// Room for so many, as far as the bounds allow, but no less than now: whoever needed it would have to load the program again.
    fn raised(self, wanted: Self, bounds: Bounds) -> Self {
        let wanted = wanted.within(bounds);
        Self {
            processes: self.processes.max(wanted.processes),
            records: self.records.max(wanted.records),
            sockets: self.sockets.max(wanted.sockets),
            pieces: self.pieces.max(wanted.pieces),
        }
    }

    /// Room for what was lost, and a quarter more. `None`: nothing was lost, or only texts for which there may not be more room.
    fn grown(self, run: &Run, fields: Fields, most_records: u32) -> Option<Self> {
        let most_pieces = most_records / (PIECE / TEXT_BYTES) + 2;
        // Each lost record may have a text, too.
        let texts = if fields.contains(Fields::PATHS) {
            run.lost_texts.max(run.lost_records)
        } else {
            run.lost_texts
        };
        let texts = if self.pieces < most_pieces { texts } else { 0 };
        let lost = [
            run.lost_processes,
            run.lost_records,
            run.lost_sockets,
            texts,
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
            pieces: with(self.pieces, pieces_for(run, texts)).min(most_pieces),
        })
    }
}

/// Pieces for so many lost texts, as long as those that were written.
fn pieces_for(run: &Run, lost: u32) -> u32 {
    let bytes = u64::from(run.text) * u64::from(PIECE);
    let written = run.records.saturating_sub(run.lost_texts).max(1);
    let each = (bytes / u64::from(written)).clamp(TEXT_BYTES.into(), LONGEST_TEXT);
    (u64::from(lost) * each).div_ceil(PIECE.into()) as u32
}

impl Walk {
    fn load(options: Options, capacity: Capacity, types: &KernelTypes) -> Result<Self, Error> {
        let mut loader = Loader::open(&OBJECT, types)?;
        let lists = if options.lists { &LISTS[..] } else { &[] };
        for program in LISTS.iter().filter(|name| !lists.contains(name)) {
            loader.skip(program);
        }
        let settings = Settings {
            groups: options.fields.bits(),
            pieces: capacity.pieces,
        };
        loader.set("settings", &settings)?;
        loader.set_len("processes", capacity.processes)?;
        loader.set_len("rights", capacity.processes)?;
        loader.set_len("places", capacity.processes)?;
        loader.set_len("records", capacity.records)?;
        loader.set_len("sockets", capacity.sockets)?;
        loader.set_len("texts", capacity.pieces)?;
        let loaded = loader.load()?;
        let lists = lists.iter().map(|program| loaded.attach(program));
        Ok(Self {
            lists: lists.collect::<Result<_, _>>()?,
            program: loaded.program("walk")?,
            run: loaded.map(".data.run", 1)?,
            processes: loaded.map("processes", capacity.processes)?,
            rights: loaded.map("rights", capacity.processes)?,
            records: loaded.map("records", capacity.records)?,
            sockets: loaded.map("sockets", capacity.sockets)?,
            texts: loaded.map("texts", capacity.pieces * PIECE)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use fastproc_testbed::{gate, needs};

    use super::*;
    use crate::files::{Files, Reader, Source};

    #[test]
    fn bounds_hold_in_arrays_that_grew_for_a_request_without() {
        needs!(gate::bpf());
        let fields = Fields::FILES | Fields::SOCKETS;
        let builder = Files::builder().fields(fields).source(Some(Source::Bpf));
        let mut files = builder.open_at(None).expect("root may load the program");
        let mut walk = |bounds| {
            let Reader::Bpf(bpf) = &mut files.reader else {
                panic!("another source");
            };
            let walked = bpf.walk(None, bounds);
            (walked.map_err(|error| error.to_string()), bpf.capacity)
        };
        let (all, capacity) = walk(Bounds::default());
        assert_eq!(all, Ok(()));
        let few = Bounds {
            files: 1,
            ..Bounds::default()
        };
        // Nor does a request that is refused take the room away.
        assert_eq!(walk(few), (Err(Error::TooMany.to_string()), capacity));
    }

    #[test]
    fn names_and_sockets_count_as_descriptors_do() {
        let bounds = Bounds {
            files: 10,
            text_bytes: 2 * PIECE,
            ..Bounds::default()
        };
        let run = |records, sockets, text| Run {
            records,
            sockets,
            text,
            ..Run::default()
        };
        assert!(is_within(&run(10, 10, 2), bounds));
        for more in [run(11, 0, 0), run(0, 11, 0), run(0, 0, 3)] {
            assert!(!is_within(&more, bounds), "{more:?}");
        }
    }

    #[test]
    fn room_grows_within_the_bounds_and_never_shrinks() {
        let room = |processes, others| Capacity {
            processes,
            records: others,
            sockets: others,
            pieces: others,
        };
        let bounds = Bounds {
            files: 10,
            text_bytes: 10 * PIECE,
            ..Bounds::default()
        };
        let raised = |from, to| room(1, from).raised(room(2, to), bounds);
        assert_eq!(raised(5, 20), room(2, 10));
        assert_eq!(raised(100, 200), room(2, 100));
    }

    /// Any user can open many files with the longest names.
    #[test]
    fn long_names_get_room_after_a_few_walks() {
        const RECORDS: u32 = 100_000;
        let mut capacity = Capacity {
            processes: 1000,
            records: RECORDS,
            sockets: RECORDS,
            pieces: RECORDS / (PIECE / TEXT_BYTES) + 2,
        };
        let fit = PIECE / LONGEST_TEXT as u32;
        for _ in 1..MAX_GROWTHS {
            let run = Run {
                records: RECORDS,
                text: capacity.pieces.min(RECORDS / fit),
                lost_texts: RECORDS.saturating_sub(capacity.pieces * fit),
                ..Run::default()
            };
            match capacity.grown(&run, Fields::all(), 100 * RECORDS) {
                Some(grown) => capacity = grown,
                None => return,
            }
        }
        panic!("there is no room with {capacity:?}");
    }
}
