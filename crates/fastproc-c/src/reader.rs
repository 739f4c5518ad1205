//! A collector, and values of its last snapshot by the places of processes.

use std::{cell::Cell, fs, time::Duration};

use fastproc::{
    Baseline, Collector, Details, Directories, Fields, NestedIds, Process, Snapshot, SourceKind,
    Texts,
    access::{Access, may_trace_all},
    difference::{Change, Gone},
    record::ThreadRecord,
    text::Files,
};

use crate::{
    constants::{FASTPROC_CMDLINE, FASTPROC_EXE},
    failure::Failure,
};

/// To whom the kernel shows a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    Public,
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
    texts: [Vec<u8>; TEXTS],
    earlier: Option<Baseline>,
    /// The snapshot that was compared last, and whether there was an earlier one.
    compared: Option<(u64, bool)>,
    changes: Vec<ChangeValues>,
    thread_changes: Vec<ChangeValues>,
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
    /// A name in a record.
    Characters,
}

const TEXTS: usize = Text::Characters as usize + 1;

/// Changes of a process or thread between two snapshots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChangeValues {
    pub(crate) born: Option<bool>,
    pub(crate) cpu_ns: Option<u64>,
    pub(crate) cpu_share: Option<f64>,
    pub(crate) user_share: Option<f64>,
    pub(crate) system_share: Option<f64>,
    pub(crate) minflt_per_second: Option<f64>,
    pub(crate) majflt_per_second: Option<f64>,
    pub(crate) read_bytes_per_second: Option<f64>,
    pub(crate) write_bytes_per_second: Option<f64>,
}

impl ChangeValues {
    fn new(change: &Change<'_>) -> Self {
        Self {
            born: Some(change.born),
            cpu_ns: change.cpu_ns,
            cpu_share: change.cpu_share,
            user_share: change.user_share,
            system_share: change.system_share,
            minflt_per_second: change.minflt_per_second,
            majflt_per_second: change.majflt_per_second,
            read_bytes_per_second: change.read_bytes_per_second,
            write_bytes_per_second: change.write_bytes_per_second,
        }
    }
}

const NOT_KNOWN: Failure = Failure::Unknown(
    c"the value is not known: the source has it not, or the process has none of it (a kernel thread, a zombie)",
);
const NOT_SHOWN: Failure = Failure::Unknown(
    c"the kernel shows it only to the owner of the process and to readers with CAP_SYS_PTRACE",
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

    pub(crate) fn source(&self) -> &'static str {
        self.collector.source().name()
    }

    /// Makes another snapshot, and discards the places of the last one.
    pub(crate) fn take_snapshot(&mut self) -> Result<(), Failure> {
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
        self.sees_all = may_trace_all();
        Ok(())
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, Failure> {
        self.collector.latest().ok_or(Failure::NoSnapshot)
    }

    pub(crate) fn count(&self) -> Result<usize, Failure> {
        Ok(self.snapshot()?.len())
    }

    pub(crate) fn find(&self, pid: u32) -> Result<usize, Failure> {
        self.snapshot()?
            .position(pid)
            .ok_or(Failure::NoProcess(pid))
    }

    /// When reading began, on the clock of start times, and how long it took.
    pub(crate) fn time(&self) -> Result<(u64, u64), Failure> {
        let stats = self.snapshot()?.stats();
        Ok((stats.kernel_boottime_ns(), stats.read_for.as_nanos() as u64))
    }

    fn process(&self, place: usize) -> Result<Process<'_>, Failure> {
        self.snapshot()?.at(place).ok_or(Failure::Place)
    }

    fn require(&self, fields: u32) -> Result<(), Failure> {
        let fields = Fields::from_bits_truncate(fields);
        let missing = fields.difference(self.collector.fields());
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Failure::NotAsked(missing))
        }
    }

    /// A value of the process at this place.
    pub(crate) fn of_process<T>(
        &self,
        place: usize,
        fields: u32,
        guard: Guard,
        get: impl FnOnce(Process<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        let process = self.process(place)?;
        self.require(fields)?;
        self.let_through(guard, place, process)?;
        get(process).ok_or(NOT_KNOWN)
    }

    fn let_through(&self, guard: Guard, place: usize, process: Process<'_>) -> Result<(), Failure> {
        if guard == Guard::Public || self.may_see(guard, place, process) {
            Ok(())
        } else {
            Err(NOT_SHOWN)
        }
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
                        _ => self.details.may_trace(process),
                    };
                self.seen.set(Some(((place, guard), seen)));
                seen
            }
        }
    }

    pub(crate) fn shows_everything_of(&self, place: usize) -> Result<bool, Failure> {
        Ok(self.may_see(Guard::Guarded, place, self.process(place)?))
    }

    pub(crate) fn thread_count(&self) -> Result<usize, Failure> {
        self.require(Fields::THREADS.bits())?;
        self.snapshot()?;
        Ok(self.threads.len())
    }

    /// The thread at this place among all threads.
    fn thread(&self, place: usize) -> Result<&ThreadRecord, Failure> {
        self.require(Fields::THREADS.bits())?;
        self.snapshot()?;
        let thread = *self.threads.get(place).ok_or(Failure::Place)?;
        // SAFETY: it points into the last snapshot, which stays unchanged until the next one is made through `&mut
        // self`; that first clears `threads`.
        Ok(unsafe { &*thread })
    }

    /// A value of the thread at this place.
    pub(crate) fn of_thread<T>(
        &self,
        place: usize,
        fields: u32,
        guard: Guard,
        get: impl FnOnce(Process<'_>, &ThreadRecord) -> Option<T>,
    ) -> Result<T, Failure> {
        let thread = self.thread(place)?;
        let of = self.find(thread.tgid)?;
        self.of_process(of, fields, guard, |process| get(process, thread))
    }

    /// A name in the record of a process.
    pub(crate) fn process_characters(
        &mut self,
        place: usize,
        get: impl FnOnce(&fastproc::record::Record) -> &[u8; 16],
    ) -> Result<&[u8], Failure> {
        let name = *get(self.process(place)?.record());
        Ok(self.keep(Text::Characters, until_nul(&name)))
    }

    /// A name in the record of a thread.
    pub(crate) fn thread_characters(
        &mut self,
        place: usize,
        get: impl FnOnce(&ThreadRecord) -> &[u8; 16],
    ) -> Result<&[u8], Failure> {
        let name = *get(self.thread(place)?);
        Ok(self.keep(Text::Characters, until_nul(&name)))
    }

    /// Copies a text to its buffer, followed by a NUL.
    fn keep(&mut self, which: Text, bytes: &[u8]) -> &[u8] {
        let text = &mut self.texts[which as usize];
        text.clear();
        text.extend_from_slice(bytes);
        text.push(0);
        text
    }

    /// A text of the process at this place, followed by a NUL.
    pub(crate) fn text(&mut self, which: Text, place: usize) -> Result<&[u8], Failure> {
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
            Text::Stat | Text::Statm | Text::Status | Text::Characters => return Err(NOT_KNOWN),
        }
        text.push(0);
        Ok(text)
    }

    /// Renders one of the three files into its buffer.
    fn file(&mut self, which: Text, place: usize) -> Result<(), Failure> {
        self.require(Files::FIELDS.bits())?;
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
                let kernel = kernel.map_err(|_| Failure::NoProcess(process.pid()))?;
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

    pub(crate) fn supplementary_group(&self, place: usize, at: usize) -> Result<u32, Failure> {
        self.require(Fields::CREDENTIALS.bits())?;
        let process = self.process(place)?;
        process.credentials().ok_or(NOT_KNOWN)?;
        process.supplementary_groups().nth(at).ok_or(Failure::Place)
    }

    pub(crate) fn nested_ids(&self, place: usize, level: usize) -> Result<NestedIds, Failure> {
        self.require(Fields::NAMESPACES.bits())?;
        let process = self.process(place)?;
        process.namespaces().ok_or(NOT_KNOWN)?;
        process.nested_ids().nth(level).ok_or(Failure::Place)
    }

    /// 64 bits of the mask of CPUs that a process may run on, or of its memory nodes.
    pub(crate) fn allowed(&self, place: usize, word: usize, nodes: bool) -> Result<u64, Failure> {
        self.require(Fields::SCHEDULING_DETAILS.bits())?;
        let process = self.process(place)?;
        process.scheduling_details().ok_or(NOT_KNOWN)?;
        let host = self.collector.host();
        let words = |possible: u32| possible.div_ceil(64) as usize;
        let set = if nodes {
            process.mems_allowed(words(host.possible_nodes))
        } else {
            process.cpus_allowed(words(host.possible_cpus))
        };
        set.get(word).copied().ok_or(Failure::Place)
    }

    /// Compares the snapshot with the one that was compared last.
    pub(crate) fn compare(&mut self) -> Result<(), Failure> {
        let snapshot = self.collector.latest().ok_or(Failure::NoSnapshot)?;
        if self
            .compared
            .is_some_and(|(serial, _)| serial == self.serial)
        {
            return Ok(());
        }
        self.changes.clear();
        self.thread_changes.clear();
        self.gone.clear();
        if let Some(earlier) = &self.earlier {
            self.changes.extend(
                earlier
                    .changes(&snapshot)
                    .map(|change| ChangeValues::new(&change)),
            );
            let of_threads = earlier.thread_changes(&snapshot);
            self.thread_changes
                .extend(of_threads.map(|change| ChangeValues::new(&change)));
            self.gone.extend(earlier.gone(&snapshot));
        }
        self.compared = Some((self.serial, self.earlier.is_some()));
        self.earlier.get_or_insert_default().set(&snapshot);
        Ok(())
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

    /// A change of the process at this place.
    pub(crate) fn change<T>(
        &self,
        place: usize,
        guard: Guard,
        get: impl FnOnce(&ChangeValues) -> Option<T>,
    ) -> Result<T, Failure> {
        let process = self.process(place)?;
        self.compared()?;
        self.let_through(guard, place, process)?;
        let change = self.changes.get(place).ok_or(Failure::Place)?;
        get(change).ok_or(NOT_KNOWN)
    }

    /// A change of the thread at this place.
    pub(crate) fn thread_change<T>(
        &self,
        place: usize,
        guard: Guard,
        get: impl FnOnce(&ChangeValues) -> Option<T>,
    ) -> Result<T, Failure> {
        let of = self.find(self.thread(place)?.tgid)?;
        self.compared()?;
        self.let_through(guard, of, self.process(of)?)?;
        let change = self.thread_changes.get(place).ok_or(Failure::Place)?;
        get(change).ok_or(NOT_KNOWN)
    }

    /// The number of processes of the earlier snapshot that are gone.
    pub(crate) fn gone_count(&self) -> Result<usize, Failure> {
        self.snapshot()?;
        self.compared()?;
        Ok(self.gone.len())
    }

    pub(crate) fn gone(&self, at: usize) -> Result<Gone, Failure> {
        self.snapshot()?;
        self.compared()?;
        self.gone.get(at).copied().ok_or(Failure::Place)
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}
