//! Converts snapshots to frames, with their texts.

use std::{
    collections::{HashMap, HashSet},
    hash::{DefaultHasher, Hasher},
    path::Path,
};

use fastproc::{Fields, Mask, Process, Snapshot, container::Origin, record::Io};
use fastproc_columns::Lookup;

use super::{
    Writer,
    file::Facts,
    frame::{Frame, Key},
    names,
};
use crate::{
    details::{self, Page},
    observation::View,
};

/// The number of processes whose limits and open files are read per snapshot: reading all at once would take long.
const READ_PER_LOOK: usize = 200;

/// A command line as it was written last. It is checked again when its process has run, since a process executes a
/// program or overwrites its arguments only while it runs.
#[derive(Debug)]
struct Line {
    /// Another program mostly has another name.
    comm: [u8; 16],
    ran: [u64; 5],
    /// Of the text, which may be long.
    hash: u64,
}

/// Records snapshots.
#[derive(Debug)]
pub struct Recorder {
    writer: Writer,
    frame: Frame,
    /// The texts of this block except command lines.
    written: HashSet<Key>,
    /// The command lines of this block.
    lines: HashMap<(u32, u64), Line>,
    /// The process whose limits and open files were read last.
    last_read: u32,
}

impl Recorder {
    /// Creates a recorder with a new file of at most `most` bytes.
    pub fn create(path: &Path, lookup: &Lookup, most: u64) -> std::io::Result<Self> {
        let facts = Facts::new(&lookup.host, lookup.total_memory);
        Ok(Self {
            writer: Writer::create(path, facts, most)?,
            frame: Frame::default(),
            written: HashSet::new(),
            lines: HashMap::new(),
            last_read: 0,
        })
    }

    /// Adds a snapshot.
    pub fn push(
        &mut self,
        view: &View<'_>,
        lookup: &mut Lookup,
        mut anew: bool,
    ) -> std::io::Result<()> {
        if self.writer.begins_block() {
            self.written.clear();
            self.lines.clear();
            lookup.details.renew();
            anew = true;
        }
        self.frame.fill(&view.snapshot, view.machine);
        if !lookup.sees_all && !view.snapshot.stats().source.is_guarded() {
            self.hide(&view.snapshot, lookup);
        }
        for process in view.snapshot.iter() {
            self.line_of(process, lookup, anew);
            self.texts_of(process, lookup);
        }
        self.read_pages(&view.snapshot, lookup);
        self.writer.push(&mut self.frame)
    }

    /// Hides what the kernel would not show to the recording user, so that readers of the file do not see it.
    fn hide(&mut self, snapshot: &Snapshot<'_>, lookup: &mut Lookup) {
        let mut without_io = HashSet::new();
        for (process, record) in snapshot.iter().zip(&mut self.frame.records) {
            if !lookup.details.may_trace(process) {
                Mask::hide(record);
                record.identity.groups &= !Fields::LAYOUT.bits();
            } else if process.io().is_some() && !lookup.details.may_read_io(process) {
                record.identity.groups &= !Fields::IO.bits();
                record.io = Io::default();
            } else {
                continue;
            }
            without_io.insert(process.pid());
        }
        for thread in &mut self.frame.threads {
            if without_io.contains(&thread.tgid) {
                Mask::hide_thread(thread);
            }
        }
        // It is no longer known for which of them the kernel would have shown these values.
        for exit in self.frame.exits.iter_mut().flatten() {
            (exit.io, exit.status) = (None, None);
        }
    }

    /// Reads limits and open files once a block, at each snapshot for some processes in turn.
    fn read_pages(&mut self, snapshot: &Snapshot<'_>, lookup: &mut Lookup) {
        let last = self.last_read;
        let later = snapshot.iter().filter(|process| process.pid() > last);
        let earlier = snapshot.iter().filter(|process| process.pid() <= last);
        let mut left = READ_PER_LOOK;
        for process in later.chain(earlier) {
            let identity = process.identity();
            let (pid, start_ns) = (identity.tgid, identity.start_ns);
            let key = Key::Limits(pid, start_ns);
            if identity.is_kernel_thread() || !self.written.insert(key) {
                continue;
            }
            let pages = [
                (Page::Limits, key),
                (Page::Files, Key::Files(pid, start_ns)),
            ];
            for (page, key) in pages {
                // What the kernel hides from the recording user is not recorded.
                if let Ok(lines) = details::read(page, process, lookup) {
                    self.frame.texts.push((key, lines.join(&b'\n')));
                }
            }
            self.last_read = pid;
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }

    fn line_of(&mut self, process: Process<'_>, lookup: &mut Lookup, anew: bool) {
        let identity = process.identity();
        // A kernel thread has none, which is known without reading.
        if identity.is_kernel_thread() {
            return;
        }
        let ran = process.cpu().map_or([0; 5], |cpu| {
            [
                cpu.sum_exec_ns().unwrap_or(0),
                cpu.utime_ns,
                cpu.stime_ns,
                cpu.nvcsw,
                cpu.nivcsw,
            ]
        });
        let id = (identity.tgid, identity.start_ns);
        let known = self.lines.get(&id);
        if known.is_some_and(|line| line.comm == identity.comm && (!anew || line.ran == ran)) {
            return;
        }
        let Ok(line) = lookup.details.cmdline(process) else {
            return;
        };
        let mut hasher = DefaultHasher::new();
        hasher.write(line.bytes);
        let hash = hasher.finish();
        if known.is_none_or(|known| known.hash != hash) {
            let key = Key::Cmdline(id.0, id.1);
            self.frame.texts.push((key, line.bytes.to_vec()));
        }
        let line = Line {
            comm: identity.comm,
            ran,
            hash,
        };
        self.lines.insert(id, line);
    }

    fn texts_of(&mut self, process: Process<'_>, lookup: &mut Lookup) {
        let (texts, written) = (&mut self.frame.texts, &mut self.written);
        if let Some(id) = process.cgroup_id()
            && written.insert(Key::Cgroup(id))
            && let Ok(path) = lookup.details.whole_cgroup(process)
        {
            let origin = Origin::from_cgroup(path);
            if let Some(labels) = lookup.containers.get(&origin)
                && let Some(container) = origin.container
            {
                texts.push((Key::Container(id), names::written(container, labels)));
            }
            texts.push((Key::Cgroup(id), path.to_vec()));
        }
        if let Some(users) = process.users() {
            for id in [users.uid, users.euid] {
                if written.insert(Key::User(id)) {
                    texts.push((Key::User(id), lookup.users.name(id).to_vec()));
                }
            }
            for id in [users.gid, users.egid] {
                if written.insert(Key::Group(id)) {
                    texts.push((Key::Group(id), lookup.groups.name(id).to_vec()));
                }
            }
        }
    }

    /// Writes the pending frames.
    pub fn finish(&mut self) -> std::io::Result<()> {
        self.writer.end_block()
    }
}
