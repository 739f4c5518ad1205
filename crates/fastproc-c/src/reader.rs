//! A collector, and values of its last snapshot by the places of processes.

use std::{cell::Cell, fs, time::Duration};

use fastproc::{
    Baseline, Collector, Details, Directories, Fields, Process, Snapshot, SourceKind, Texts,
    access::{Access, may_trace_all},
    difference::{Change, Gone},
    record::{Record, ThreadRecord},
    text::Files,
};

use crate::{
    constants::{
        FASTPROC_CMDLINE, FASTPROC_EXE, FASTPROC_LIST_CPUS, FASTPROC_LIST_GROUPS,
        FASTPROC_LIST_IDS, FASTPROC_LIST_NODES, FASTPROC_TEXT_CGROUP, FASTPROC_TEXT_CMDLINE,
        FASTPROC_TEXT_EXE, FASTPROC_TEXT_NAME, FASTPROC_TEXT_STAT, FASTPROC_TEXT_STATM,
        FASTPROC_TEXT_STATUS,
    },
    failure::Failure,
    structures::{FastprocChange, FastprocSnapshot},
    unknown::{mark, mark_thread},
};

/// To whom the kernel shows a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    /// The kernel shows it only to users who may trace the process.
    Guarded,
    /// The kernel shows it only to users who may read the I/O counters of the process: see [`Details::may_read_io`].
    Io,
}

/// The state behind a handle.
#[derive(Debug)]
pub(crate) struct Reader {
    collector: Collector,
    /// The number of the last snapshot; the first is 1.
    serial: u64,
    /// Whether the kernel would show this process everything, because of its capabilities, at the time of the snapshot.
    sees_all: bool,
    /// Whether it would show the values with this guard for the process at this place.
    seen: Cell<Option<((usize, Guard), bool)>>,
    details: Details,
    /// For paths of programs only: its data of each process is discarded at once.
    programs: Details,
    directories: Directories,
    files: Option<Files>,
    /// A buffer for each text, so that one stays valid while the others are requested.
    texts: [Vec<u8>; TEXTS.len()],
    earlier: Option<Baseline>,
    /// The snapshot that was compared last, and whether there was an earlier one.
    compared: Option<(u64, bool)>,
    changes: Vec<FastprocChange>,
    thread_changes: Vec<FastprocChange>,
    gone: Vec<Gone>,
    /// The threads of the last snapshot, in its memory.
    threads: Vec<*const ThreadRecord>,
}

/// The texts of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    Name,
    Cmdline,
    Exe,
    Cgroup,
    Stat,
    Statm,
    Status,
}

const TEXTS: [(u32, Text); 7] = [
    (FASTPROC_TEXT_NAME, Text::Name),
    (FASTPROC_TEXT_CMDLINE, Text::Cmdline),
    (FASTPROC_TEXT_EXE, Text::Exe),
    (FASTPROC_TEXT_CGROUP, Text::Cgroup),
    (FASTPROC_TEXT_STAT, Text::Stat),
    (FASTPROC_TEXT_STATM, Text::Statm),
    (FASTPROC_TEXT_STATUS, Text::Status),
];

impl FastprocChange {
    fn new(change: &Change<'_>) -> Self {
        let known = |value: Option<f64>| value.unwrap_or(f64::NAN);
        Self {
            cpu_ns: change.cpu_ns.unwrap_or(u64::MAX),
            cpu_share: known(change.cpu_share),
            user_share: known(change.user_share),
            system_share: known(change.system_share),
            minflt_per_second: known(change.minflt_per_second),
            majflt_per_second: known(change.majflt_per_second),
            read_bytes_per_second: known(change.read_bytes_per_second),
            write_bytes_per_second: known(change.write_bytes_per_second),
            born: change.born,
        }
    }
}

const NOT_KNOWN: Failure = Failure::Unknown(
    c"the value is not known: the source has it not, or the process has none of it (a kernel thread, a zombie)",
);
impl Reader {
    pub(crate) fn open(
        fields: u32,
        source: Option<&[u8]>,
        max_age: Duration,
    ) -> Result<Self, Failure> {
        let mut texts = Texts::empty();
        texts.set(Texts::CMDLINE, fields & FASTPROC_CMDLINE != 0);
        texts.set(Texts::EXE, fields & FASTPROC_EXE != 0);
        let bits = fields & !(FASTPROC_CMDLINE | FASTPROC_EXE);
        let Some(fields) = Fields::from_bits(bits) else {
            let unknown = bits & !Fields::all().bits();
            return Err(Failure::Argument(format!(
                "no field has the bits {unknown:#x}: combine the FASTPROC_* of fastproc.h that this version of the library knows"
            )));
        };
        let source = match source {
            None | Some(b"auto") => None,
            Some(name) => {
                let name = String::from_utf8_lossy(name);
                let kind: Result<SourceKind, _> = name.parse();
                Some(kind.map_err(|error| Failure::Argument(error.to_string()))?)
            }
        };
        let collector = Collector::builder()
            .fields(fields)
            .source(source)
            .max_age(max_age)
            .texts(texts)
            .texts_max_age(max_age)
            .open()?;
        Ok(Self {
            serial: 0,
            sees_all: false,
            seen: Cell::new(None),
            details: Details::open(collector.host())?,
            programs: Details::open(collector.host())?,
            directories: Directories::open(collector.host())?,
            files: None,
            texts: Default::default(),
            earlier: None,
            compared: None,
            changes: Vec::new(),
            thread_changes: Vec::new(),
            gone: Vec::new(),
            threads: Vec::new(),
            collector,
        })
    }

    /// Makes another snapshot, and discards the places of the last one.
    pub(crate) fn take_snapshot(&mut self) -> Result<FastprocSnapshot, Failure> {
        self.threads.clear();
        self.seen.set(None);
        self.details.renew();
        self.serial += 1;
        let wants_threads = self.collector.fields().contains(Fields::THREADS);
        let snapshot = self.collector.snapshot()?;
        if wants_threads {
            let threads = snapshot.threads_with_processes();
            self.threads
                .extend(threads.map(|(_, thread)| std::ptr::from_ref(thread)));
        }
        let stats = snapshot.stats();
        let taken = FastprocSnapshot {
            count: snapshot.len(),
            threads: self.threads.len(),
            left_out: 0,
            began_ns: stats.kernel_boottime_ns(),
            took_ns: stats.read_for.as_nanos() as u64,
            source: match self.collector.source() {
                SourceKind::Service => c"service",
                SourceKind::Bpf => c"bpf",
                SourceKind::BpfIter => c"bpf-iter",
                SourceKind::Procfs => c"procfs",
            }
            .as_ptr(),
        };
        self.sees_all = may_trace_all();
        Ok(taken)
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, Failure> {
        self.collector.latest().ok_or(Failure::NoSnapshot)
    }

    pub(crate) fn find(&self, id: u64) -> Result<usize, Failure> {
        let snapshot = self.snapshot()?;
        let place = u32::try_from(id)
            .ok()
            .and_then(|pid| snapshot.position(pid));
        place.ok_or(Failure::NoSuchId(id))
    }

    fn process(&self, place: usize) -> Result<Process<'_>, Failure> {
        self.snapshot()?.at(place).ok_or(Failure::Place)
    }

    fn require(&self, fields: Fields) -> Result<(), Failure> {
        let missing = fields.difference(self.collector.fields());
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Failure::NotAsked(missing))
        }
    }

    /// A copy of the record of the process at this place, with marks where a value is not known.
    pub(crate) fn record(&self, place: usize) -> Result<Record, Failure> {
        let process = self.process(place)?;
        let mut record = *process.record();
        let may_trace = self.may_see(Guard::Guarded, place, process);
        mark(&mut record, may_trace, || {
            self.may_see(Guard::Io, place, process)
        });
        Ok(record)
    }

    /// Whether the kernel would show this reader the values with this guard of the process at this place.
    fn may_see(&self, guard: Guard, place: usize, process: Process<'_>) -> bool {
        if process.identity().masked != 0 {
            return false;
        }
        if self.sees_all {
            return true;
        }
        match self.seen.get() {
            Some((of, seen)) if of == (place, guard) => seen,
            _ => {
                let is_guarded = self
                    .collector
                    .latest()
                    .is_some_and(|snapshot| snapshot.source_of(process).is_guarded());
                let seen = is_guarded
                    || match guard {
                        Guard::Io => self.details.may_read_io(process),
                        Guard::Guarded => self.details.may_trace(process),
                    };
                self.seen.set(Some(((place, guard), seen)));
                seen
            }
        }
    }

    /// The thread at this place among all threads.
    fn thread(&self, place: usize) -> Result<&ThreadRecord, Failure> {
        self.require(Fields::THREADS)?;
        self.snapshot()?;
        let thread = *self.threads.get(place).ok_or(Failure::Place)?;
        // SAFETY: it points into the last snapshot, which stays unchanged until the next one is made through `&mut
        // self`; that first clears `threads`.
        Ok(unsafe { &*thread })
    }

    /// A copy of the record of the thread at this place, with marks where a value is not known.
    pub(crate) fn thread_record(&self, place: usize) -> Result<ThreadRecord, Failure> {
        let mut thread = *self.thread(place)?;
        let of = self.find(thread.tgid.into())?;
        let process = self.process(of)?;
        let has_io = process.io().is_some() && self.may_see(Guard::Io, of, process);
        mark_thread(&mut thread, has_io);
        Ok(thread)
    }

    /// A text of the process at this place, followed by a NUL.
    pub(crate) fn text(&mut self, which: u32, place: usize) -> Result<&[u8], Failure> {
        let which = TEXTS.iter().find(|(text, _)| *text == which);
        let &(_, which) =
            which.ok_or_else(|| Failure::Argument("no FASTPROC_TEXT_* has this number".into()))?;
        if matches!(which, Text::Stat | Text::Statm | Text::Status) {
            self.file(which, place)?;
            return Ok(&self.texts[which as usize]);
        }
        let snapshot = self.collector.latest().ok_or(Failure::NoSnapshot)?;
        let process = snapshot.at(place).ok_or(Failure::Place)?;
        let text = &mut self.texts[which as usize];
        text.clear();
        match which {
            Text::Name => text.extend_from_slice(&process.name()),
            Text::Cmdline => match process.served_cmdline() {
                Some(line) => text.extend_from_slice(line),
                // Not through `Details`, which keep every line until the next snapshot.
                None if !process.identity().is_kernel_thread() => {
                    let start_ns = process.identity().start_ns;
                    let directory = self.directories.get(process.pid(), start_ns)?;
                    directory.cmdline(text)?;
                }
                None => {}
            },
            Text::Exe => {
                text.extend_from_slice(self.programs.exe(process)?);
                self.programs.renew();
            }
            Text::Cgroup => text.extend_from_slice(self.details.cgroup(process)?),
            Text::Stat | Text::Statm | Text::Status => return Err(NOT_KNOWN),
        }
        text.push(0);
        Ok(text)
    }

    /// Renders one of the three files into its buffer.
    fn file(&mut self, which: Text, place: usize) -> Result<(), Failure> {
        self.require(Files::FIELDS)?;
        let process = self.process(place)?;
        let access = if self.may_see(Guard::Guarded, place, process) {
            Access::Granted
        } else {
            Access::Denied
        };
        if self.files.is_none() {
            self.files = Some(Files::open(
                self.collector.host(),
                self.collector.calibration(),
            )?);
        }
        let Some(files) = &mut self.files else {
            return Err(NOT_KNOWN);
        };
        let process = self
            .collector
            .latest()
            .and_then(|snapshot| snapshot.at(place));
        let process = process.ok_or(Failure::Place)?;
        let rendered = match which {
            Text::Stat => files.stat(process, access)?,
            Text::Statm => files.statm(process)?,
            _ if files.needs_kernel_status(process) => {
                let kernel = fs::read(format!("/proc/{}/status", process.pid()));
                let kernel = kernel.map_err(|_| Failure::NoSuchId(process.pid().into()))?;
                files.status(process, Some(&kernel))?
            }
            _ => files.status(process, None)?,
        };
        let text = &mut self.texts[which as usize];
        text.clear();
        text.extend_from_slice(rendered);
        text.push(0);
        Ok(())
    }

    /// A value of a list of the process at this place.
    pub(crate) fn list(&self, place: usize, list: u32, at: usize) -> Result<u64, Failure> {
        let fields = match list {
            FASTPROC_LIST_GROUPS => Fields::CREDENTIALS,
            FASTPROC_LIST_CPUS | FASTPROC_LIST_NODES => Fields::SCHEDULING_DETAILS,
            FASTPROC_LIST_IDS => Fields::NAMESPACES,
            _ => {
                return Err(Failure::Argument(
                    "no FASTPROC_LIST_* has this number".into(),
                ));
            }
        };
        self.require(fields)?;
        let process = self.process(place)?;
        if !process.fields().contains(fields) {
            return Err(NOT_KNOWN);
        }
        let host = self.collector.host();
        let words = |possible: u32| possible.div_ceil(64) as usize;
        let found = match list {
            FASTPROC_LIST_GROUPS => process.supplementary_groups().nth(at).map(u64::from),
            FASTPROC_LIST_CPUS => process
                .cpus_allowed(words(host.possible_cpus))
                .get(at)
                .copied(),
            FASTPROC_LIST_NODES => process
                .mems_allowed(words(host.possible_nodes))
                .get(at)
                .copied(),
            _ => process
                .nested_ids()
                .nth(at / 4)
                .map(|ids| [ids.tgid, ids.pid, ids.pgrp, ids.session][at % 4].into()),
        };
        found.ok_or(Failure::Place)
    }

    /// Compares the snapshot with the one that was compared last. Returns how many processes are gone.
    pub(crate) fn compare(&mut self) -> Result<usize, Failure> {
        let snapshot = self.collector.latest().ok_or(Failure::NoSnapshot)?;
        if self
            .compared
            .is_some_and(|(serial, _)| serial == self.serial)
        {
            return Ok(self.gone.len());
        }
        self.changes.clear();
        self.thread_changes.clear();
        self.gone.clear();
        if let Some(earlier) = &self.earlier {
            self.changes.extend(
                earlier
                    .changes(&snapshot)
                    .map(|change| FastprocChange::new(&change)),
            );
            let of_threads = earlier.thread_changes(&snapshot);
            self.thread_changes
                .extend(of_threads.map(|change| FastprocChange::new(&change)));
            self.gone.extend(earlier.gone(&snapshot));
        }
        self.compared = Some((self.serial, self.earlier.is_some()));
        self.earlier.get_or_insert_default().set(&snapshot);
        Ok(self.gone.len())
    }

    fn compared(&self) -> Result<(), Failure> {
        match self.compared {
            Some((serial, true)) if serial == self.serial => Ok(()),
            Some((serial, false)) if serial == self.serial => Err(Failure::Unknown(
                c"there is no earlier snapshot: take another one, and compare it by fastproc_difference()",
            )),
            _ => Err(Failure::NotCompared),
        }
    }

    /// What the process at this place did since the earlier snapshot.
    pub(crate) fn change(&self, place: usize) -> Result<FastprocChange, Failure> {
        let process = self.process(place)?;
        self.compared()?;
        let change = self.changes.get(place).ok_or(Failure::Place)?;
        Ok(self.shown(*change, place, process))
    }

    /// What the thread at this place did since the earlier snapshot.
    pub(crate) fn thread_change(&self, place: usize) -> Result<FastprocChange, Failure> {
        let of = self.find(self.thread(place)?.tgid.into())?;
        self.compared()?;
        let change = self.thread_changes.get(place).ok_or(Failure::Place)?;
        Ok(self.shown(*change, of, self.process(of)?))
    }

    /// A change without what the kernel would not show this reader.
    fn shown(&self, change: FastprocChange, of: usize, process: Process<'_>) -> FastprocChange {
        let has_io = !change.read_bytes_per_second.is_nan();
        if !has_io || self.may_see(Guard::Io, of, process) {
            return change;
        }
        FastprocChange {
            read_bytes_per_second: f64::NAN,
            write_bytes_per_second: f64::NAN,
            ..change
        }
    }

    pub(crate) fn gone(&self, at: usize) -> Result<Gone, Failure> {
        self.snapshot()?;
        self.compared()?;
        self.gone.get(at).copied().ok_or(Failure::Place)
    }
}
