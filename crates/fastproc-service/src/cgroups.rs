//! Cgroups: read when a reader asks for them, and shared as long as they are young enough.
//!
//! Everybody may read the files of most cgroups. Their owners can change that, so a user is shown a group of fields only
//! if the modes of its files, and of all folders above them, let everybody read them.

use std::{
    collections::HashMap,
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use fastproc::{
    cgroups::{self, Cgroup, Fields, Snapshot, Source},
    source::service::wire::{Part, Reply, Status, part},
};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::{buffers::Contents, view::View};

/// How long the modes of files are believed, as is `hidepid`: the kernel does not report their changes.
const BELIEVED: Duration = Duration::from_secs(1);

/// Permissions for the owner, the group and others, whichever a reader is.
const READ: u32 = 0o444;
const READ_AND_ENTER: u32 = 0o555;

/// The files that hold the fields of each group.
const FILES: [(Fields, &[&str]); 6] = [
    (Fields::CPU, &["cpu.stat", "cpu.max", "cpu.weight"]),
    (
        Fields::MEMORY,
        &[
            "memory.current",
            "memory.peak",
            "memory.min",
            "memory.low",
            "memory.high",
            "memory.max",
            "memory.swap.current",
            "memory.swap.peak",
            "memory.swap.high",
            "memory.swap.max",
            "memory.events",
            "memory.events.local",
            "memory.swap.events",
            "memory.oom.group",
        ],
    ),
    (Fields::MEMORY_STAT, &["memory.stat"]),
    (Fields::PIDS, &["pids.current", "pids.max", "pids.peak"]),
    (Fields::IO, &["io.stat"]),
    (
        Fields::PRESSURE,
        &["cpu.pressure", "memory.pressure", "io.pressure"],
    ),
];
const FILES_OF_ALL: &[&str] = &["cgroup.events", "cgroup.stat", "cgroup.type"];

/// The number of collectors: pressure costs more than all the rest, so one is without it.
pub(crate) const COUNT: usize = 2;

/// Which collector reads these groups.
pub(crate) fn collector_of(groups: Fields) -> usize {
    usize::from(groups.contains(Fields::PRESSURE))
}

/// The collectors of cgroups, which are opened at the first request.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    all: [Collecting; COUNT],
    modes: Modes,
    generation: u64,
}

#[derive(Debug, Default)]
struct Collecting {
    collector: Option<cgroups::Cgroups>,
    /// When the last snapshot began, and its generation.
    read: Option<(Instant, u64)>,
}

impl Cgroups {
    /// The generation of the last snapshot, if it began at `since` or later.
    pub(crate) fn read_since(&self, at: usize, since: Option<Instant>) -> Option<u64> {
        let (read, generation) = self.all[at].read?;
        since
            .is_none_or(|since| read >= since)
            .then_some(generation)
    }

    /// Makes a snapshot. Returns its generation.
    pub(crate) fn read(&mut self, at: usize) -> Result<u64, cgroups::Error> {
        let collecting = &mut self.all[at];
        collecting.read = None;
        let began = Instant::now();
        let collector = match &mut collecting.collector {
            Some(collector) => collector,
            none => {
                let fields = [Fields::all() - Fields::PRESSURE, Fields::all()][at];
                none.insert(cgroups::Cgroups::builder().fields(fields).open()?)
            }
        };
        collector.snapshot()?;
        self.generation += 1;
        collecting.read = Some((began, self.generation));
        Ok(self.generation)
    }

    /// Converts the last snapshot to what a view may see of it.
    pub(crate) fn answer(&mut self, view: View, contents: Contents) -> Result<Answer, Status> {
        let groups = Fields::from_bits_retain(contents.groups);
        let collecting = &self.all[collector_of(groups)];
        let collector = collecting.collector.as_ref().ok_or(Status::Failed)?;
        let permits = |cgroup: Cgroup<'_>, modes: &mut Modes| match view {
            View::All => Some(Fields::all()),
            View::Of(_) => modes.permitted(cgroup),
        };
        let snapshot = collector.last();
        let mut answer = Answer::new(snapshot, groups, collector.source());
        if view != View::All {
            self.modes.begin(collector.mount());
        }
        for cgroup in snapshot.iter() {
            if let Some(permitted) = permits(cgroup, &mut self.modes) {
                answer.push(snapshot, cgroup, groups & permitted);
            }
        }
        if view != View::All {
            self.modes.forget();
        }
        Ok(answer)
    }
}

/// What everybody may read of each cgroup.
#[derive(Debug, Default)]
struct Modes {
    root: Option<OwnedFd>,
    is_root_open: bool,
    of: HashMap<u64, Permitted>,
    pass: u32,
}

#[derive(Debug)]
struct Permitted {
    checked: Instant,
    /// The pass in which the cgroup was last met, and whether everybody could enter its folder and those above it then.
    met: u32,
    is_reachable: bool,
    /// `None`: not even what it is.
    groups: Option<Fields>,
}

impl Modes {
    /// Begins a pass over all cgroups.
    fn begin(&mut self, mount: &Path) {
        self.pass = self.pass.wrapping_add(1);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if self.root.is_none() {
            self.root = rustix::fs::open(mount, flags, Mode::empty()).ok();
        }
        // Whether everybody can get to the mount.
        let mut folders = mount.ancestors();
        self.is_root_open = folders.all(|folder| {
            let status = rustix::fs::statat(CWD, folder, AtFlags::empty());
            status.is_ok_and(|status| status.st_mode & READ_AND_ENTER == READ_AND_ENTER)
        });
    }

    /// What everybody may read of this cgroup; `None`: nothing. Parents come before their children.
    fn permitted(&mut self, cgroup: Cgroup<'_>) -> Option<Fields> {
        let Self {
            root,
            is_root_open,
            of,
            pass,
        } = self;
        let root = root.as_ref()?;
        let parent = of.get(&cgroup.record().identity.parent);
        let is_above_open = match parent {
            Some(parent) if parent.met == *pass => parent.is_reachable,
            _ => cgroup.path() == b"/" && *is_root_open,
        };
        let known = of.get(&cgroup.id());
        let known = known.filter(|known| known.checked.elapsed() < BELIEVED);
        let (checked, is_open, groups) = if let Some(known) = known {
            (known.checked, known.is_reachable, known.groups)
        } else {
            let is_open = is_above_open && is_open(root, cgroup);
            let groups = is_open.then(|| groups(root, cgroup.path())).flatten();
            (Instant::now(), is_open, groups)
        };
        let is_reachable = is_above_open && is_open;
        let permitted = Permitted {
            checked,
            met: *pass,
            is_reachable,
            groups,
        };
        of.insert(cgroup.id(), permitted);
        groups.filter(|_| is_reachable)
    }

    /// Ends the pass: forgets cgroups that were not met.
    fn forget(&mut self) {
        let pass = self.pass;
        self.of.retain(|_, permitted| permitted.met == pass);
    }
}

/// The groups whose files everybody may read.
fn groups(root: &OwnedFd, path: &[u8]) -> Option<Fields> {
    let allow = |files: &[&str]| files.iter().all(|file| allows(root, path, file));
    let readable = FILES.iter().filter(|(_, files)| allow(files));
    let groups = readable.fold(Fields::empty(), |all, (group, _)| all | *group);
    allow(FILES_OF_ALL).then_some(groups)
}

/// Whether everybody may enter and list the folder of a cgroup. Another one may have its path by now.
fn is_open(root: &OwnedFd, cgroup: Cgroup<'_>) -> bool {
    let path = in_tree(cgroup.path(), "");
    let status = rustix::fs::statat(root, &path, AtFlags::SYMLINK_NOFOLLOW);
    status.is_ok_and(|status| {
        status.st_ino == cgroup.id() && status.st_mode & READ_AND_ENTER == READ_AND_ENTER
    })
}

/// Whether everybody may read a file of a cgroup, or it does not exist.
fn allows(root: &OwnedFd, path: &[u8], file: &str) -> bool {
    match rustix::fs::statat(root, in_tree(path, file), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => status.st_mode & READ == READ,
        Err(error) => error == rustix::io::Errno::NOENT,
    }
}

/// A path relative to the mount.
fn in_tree(path: &[u8], file: &str) -> PathBuf {
    let path = OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path));
    PathBuf::from(".").join(path).join(file)
}

/// A snapshot of the cgroups, as the parts of a buffer.
#[derive(Debug)]
pub(crate) struct Answer {
    groups: Fields,
    source: Source,
    began_ns: u64,
    count: usize,
    records: Vec<u64>,
    device_count: usize,
    devices: Vec<u64>,
    places: Vec<u64>,
    paths: Vec<u8>,
    names: Vec<u8>,
}

impl Answer {
    fn new(snapshot: Snapshot<'_>, groups: Fields, source: Source) -> Self {
        let mut names = Vec::new();
        if groups.contains(Fields::MEMORY_STAT) {
            for (_, name) in snapshot.memory_stat_lines() {
                names.extend_from_slice(name.as_bytes());
                names.push(b'\n');
            }
        }
        Self {
            groups,
            source,
            began_ns: snapshot.began_ns(),
            count: 0,
            records: Vec::new(),
            device_count: 0,
            devices: Vec::new(),
            places: Vec::new(),
            paths: Vec::new(),
            names,
        }
    }

    fn push(&mut self, snapshot: Snapshot<'_>, cgroup: Cgroup<'_>, groups: Fields) {
        let mut record = cgroup.record().shared(groups);
        if cgroup.memory_stat().is_some() && groups.contains(Fields::MEMORY_STAT) {
            // In the order of the lines, whatever the source.
            record.identity.stat_by_line = 1;
            let lines = snapshot.memory_stat_lines();
            let values = lines.map(|(line, _)| cgroup.memory_stat_value(line).unwrap_or(0));
            record.memory_stat.slots.fill(0);
            for (slot, value) in record.memory_stat.slots.iter_mut().zip(values) {
                *slot = value;
            }
        }
        if groups.contains(Fields::IO) {
            record.io.devices_at = self.device_count as u32;
            for device in cgroup.devices() {
                self.devices.extend_from_slice(device.words());
                self.device_count += 1;
            }
        }
        self.records.extend_from_slice(record.words());
        self.count += 1;
        let path = cgroup.path();
        self.places
            .push(self.paths.len() as u64 | (path.len() as u64) << 32);
        self.paths.extend_from_slice(path);
    }

    /// The number of words of the buffer.
    pub(crate) fn words(&self) -> usize {
        let bytes = [&self.paths, &self.names].map(|bytes| bytes.len().div_ceil(8));
        self.records.len()
            + self.devices.len()
            + self.places.len()
            + bytes.into_iter().sum::<usize>()
    }

    /// Writes it, and returns where its parts are, and the rest of the reply.
    pub(crate) fn write(&self, to: &mut [u64], contents: Contents) -> Reply {
        let mut reply = Reply {
            layout: cgroups::record::LAYOUT,
            generation: contents.generation,
            groups: self.groups.bits(),
            kernel_boottime_ns: self.began_ns,
            source: match self.source {
                Source::Bpf => 1,
                _ => 2,
            },
            ..Reply::empty(Status::Ok)
        };
        let mut at = 0;
        let mut put = |words: &[u64], part: usize, count: usize, stride: usize| {
            to[at..at + words.len()].copy_from_slice(words);
            reply.parts[part] = Part {
                offset: at as u64 * 8,
                count: count as u64,
                stride: stride as u64,
            };
            at += words.len();
        };
        let of = |words: &[u64], count: usize| (words.len() * 8).checked_div(count).unwrap_or(0);
        let record = of(&self.records, self.count);
        put(&self.records, part::CGROUPS, self.count, record);
        let device = of(&self.devices, self.device_count);
        put(&self.devices, part::DEVICES, self.device_count, device);
        put(&self.places, part::PATHS, self.count, 8);
        put(
            &in_words(&self.paths),
            part::PATH_BYTES,
            self.paths.len(),
            1,
        );
        put(
            &in_words(&self.names),
            part::STAT_NAMES,
            self.names.len(),
            1,
        );
        reply
    }
}

/// Bytes as words, with zeros at the end.
fn in_words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
