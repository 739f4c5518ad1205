//! Reads one process from its files.

use rustix::{fd::OwnedFd, thread::CapabilitySet};

use super::{
    cgroup::Cgroups,
    files::{FilePath, Files, Found},
    open_files::{OpenFiles, ProcessFiles},
};
use crate::{
    base::{
        error::{parse::ParseError, procfs::Error},
        frozen,
        host::Host,
    },
    records::{
        fields::Fields,
        record::{Cpu, Io, Record, ThreadRecord},
    },
    text::{Units, io, schedstat, stat, statm, status},
};

/// State for reading processes.
#[derive(Debug)]
pub(super) struct Reader {
    files: Files,
    kept: OpenFiles,
    fields: Fields,
    format: status::Format,
    units: Units,
    cgroups: Cgroups,
    /// Whether the kernel hides data of kernel threads from this process: it is not root, and may not trace others.
    is_user: bool,
    tids: Vec<u32>,
    /// A record for reading only a part of one.
    scratch: Box<Record>,
    scratch_pool: Vec<u64>,
    /// Whether the kernel counts what threads wait: it has done so for one of this snapshot.
    counts_waits: bool,
}

impl Reader {
    pub(super) fn new(files: Files, fields: Fields, format: status::Format, host: &Host) -> Self {
        let capabilities = rustix::thread::capabilities(None);
        Self {
            files,
            kept: OpenFiles::default(),
            fields,
            format,
            units: host.into(),
            cgroups: if fields.contains(Fields::CGROUP) {
                Cgroups::find()
            } else {
                Cgroups::default()
            },
            is_user: frozen::folder().is_none()
                && !rustix::process::geteuid().is_root()
                && capabilities
                    .is_ok_and(|sets| !sets.effective.contains(CapabilitySet::SYS_PTRACE)),
            tids: Vec::new(),
            scratch: Box::default(),
            scratch_pool: Vec::new(),
            counts_waits: false,
        }
    }

    pub(super) fn set_thp_disable_bit(&mut self, bit: Option<u32>) {
        self.format.set_thp_disable_bit(bit);
    }

    pub(super) fn pids(&mut self, pids: &mut Vec<u32>) -> Result<(), Error> {
        self.files.list(None, pids)
    }

    /// Call this before reading all processes: cgroups may have come and gone since.
    pub(super) fn begin(&mut self) {
        self.cgroups.forget();
        self.kept.begin();
        // It can be switched off.
        self.counts_waits = false;
    }

    /// Reads a process into a fresh `record`. Returns whether the process exists.
    pub(super) fn read(
        &mut self,
        pid: u32,
        record: &mut Record,
        threads: &mut Vec<ThreadRecord>,
        pool: &mut Vec<u64>,
    ) -> Result<bool, Error> {
        Ok(
            self.read_own(pid, None, None, record, pool)?
                && self.read_rest(pid, record, threads)?,
        )
    }

    /// Reads a process through files that stay open for the next time. The pids must come in ascending order.
    pub(super) fn read_next(
        &mut self,
        pid: u32,
        record: &mut Record,
        threads: &mut Vec<ThreadRecord>,
        pool: &mut Vec<u64>,
    ) -> Result<bool, Error> {
        let (threads_before, pool_before) = (threads.len(), pool.len());
        match self.read_by_kept(pid, record, threads, pool) {
            Err(error) if error.is_want_of_descriptors() && self.kept.give_up() => {
                threads.truncate(threads_before);
                pool.truncate(pool_before);
                self.read(pid, record, threads, pool)
            }
            result => result,
        }
    }

    fn read_by_kept(
        &mut self,
        pid: u32,
        record: &mut Record,
        threads: &mut Vec<ThreadRecord>,
        pool: &mut Vec<u64>,
    ) -> Result<bool, Error> {
        let kept = self.kept.take(pid);
        let was_kept = kept.is_some();
        if let Some(kept) = kept.or_else(|| self.open_to_keep(pid)) {
            if self.read_own(pid, None, Some(&kept), record, pool)? {
                self.kept.keep(kept);
                return self.read_rest(pid, record, threads);
            }
            if !was_kept {
                return Ok(false);
            }
            // The files belonged to a process that has exited. Another process may have its id.
        }
        self.read(pid, record, threads, pool)
    }

    /// Opens the files to keep. If this fails, reading the process by its paths shows why.
    fn open_to_keep(&mut self, pid: u32) -> Option<ProcessFiles> {
        if !self.kept.has_room() {
            return None;
        }
        let open = |name| {
            let path = FilePath {
                pid,
                tid: None,
                name,
            };
            self.files.open(path).ok()
        };
        Some(ProcessFiles {
            pid,
            stat: open("stat")?,
            status: open("status")?,
        })
    }

    /// Reads the two files that every record is made from. Each has a part of the identity of the process or thread.
    fn read_own(
        &mut self,
        pid: u32,
        tid: Option<u32>,
        kept: Option<&ProcessFiles>,
        record: &mut Record,
        pool: &mut Vec<u64>,
    ) -> Result<bool, Error> {
        let (stat, status) = (kept.map(|kept| &kept.stat), kept.map(|kept| &kept.status));
        let path = |name| FilePath { pid, tid, name };
        let pool_before = pool.len();
        for _ in 0..LOOKS {
            *record = Record::default();
            pool.truncate(pool_before);
            let is_there = self
                .parse(path("stat"), stat, |text, kernel| {
                    stat::parse(text, kernel.units, record)
                })?
                .is_text()
                && self
                    .parse(path("status"), status, |text, kernel| {
                        status::parse(text, kernel.format, record, pool)
                    })?
                    .is_text();
            if !is_there || !is_released(record) {
                return Ok(is_there);
            }
        }
        Ok(false)
    }

    /// Reads the other files that the groups need.
    fn read_rest(
        &mut self,
        pid: u32,
        record: &mut Record,
        threads: &mut Vec<ThreadRecord>,
    ) -> Result<bool, Error> {
        let mut groups = self.fields & Fields::THREE_FILES;
        if groups.contains(Fields::MEMORY)
            && !status::tells_text(record)
            && !self.read_text_size(pid, record)?
        {
            return Ok(false);
        }
        if stat::leaves_masked_open(record) {
            match self.is_masked(pid, record)? {
                Some(masked) => record.identity.masked = masked.into(),
                None => return Ok(false),
            }
        }
        if self.fields.contains(Fields::IO) {
            match self.read_io(pid, None, &mut record.io)? {
                Found::Text(()) => groups |= Fields::IO,
                Found::Nothing if !self.is_there(pid, None)? => return Ok(false),
                Found::Nothing | Found::Denied => {}
            }
        }
        if self.fields.contains(Fields::CGROUP) && self.cgroups.are_known() {
            match self.cgroup_id(pid)? {
                Found::Text(id) => {
                    record.cgroup.id = id.unwrap_or_default();
                    groups.set(Fields::CGROUP, id.is_some());
                }
                Found::Nothing if !self.is_there(pid, None)? => return Ok(false),
                Found::Nothing | Found::Denied => {}
            }
        }
        let own_threads = threads.len();
        if self.fields.contains(Fields::THREADS) {
            self.read_threads(pid, threads)?;
            groups |= Fields::THREADS;
        }
        if self.fields.contains(Fields::CPU) {
            self.add_waits(pid, record, &threads[own_threads..])?;
        }
        record.identity.groups = groups.bits();
        Ok(true)
    }

    /// Whether the kernel hides from this reader the values that only users who may trace the process see. `None`: it
    /// has exited.
    fn is_masked(&mut self, pid: u32, record: &Record) -> Result<Option<bool>, Error> {
        if self.is_user && record.identity.is_kernel_thread() {
            return Ok(Some(true));
        }
        let (name, tid) = ("exe", None);
        Ok(match self.files.follow(FilePath { pid, tid, name })? {
            Found::Denied => Some(true),
            Found::Text(()) => Some(false),
            // The kernel checks access before it finds that there is no program.
            Found::Nothing => self.is_there(pid, None)?.then_some(false),
        })
    }

    /// Whether a process or thread still exists. Some kernels lack one of the files.
    fn is_there(&mut self, pid: u32, tid: Option<u32>) -> Result<bool, Error> {
        let name = "stat";
        let found = self.files.read(FilePath { pid, tid, name }, None)?;
        Ok(found.is_text())
    }

    /// Parses a file.
    #[inline]
    fn parse(
        &mut self,
        path: FilePath,
        kept: Option<&OwnedFd>,
        parse: impl FnOnce(&[u8], &Context<'_>) -> Result<(), ParseError>,
    ) -> Result<Found<()>, Error> {
        let pid = path.pid;
        self.files.read(path, kept)?.try_map(|text| {
            let context = Context {
                format: &self.format,
                units: &self.units,
            };
            parse(text, &context).map_err(|source| Error::Parse { pid, source })
        })
    }

    /// The size of the program's text, for kernels whose status lacks it.
    fn read_text_size(&mut self, pid: u32, record: &mut Record) -> Result<bool, Error> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let alive = self.parse(
            FilePath {
                pid,
                tid: None,
                name: "statm",
            },
            None,
            |text, kernel| statm::parse(text, kernel.units, &mut scratch),
        );
        // It may have released its memory since then.
        record.memory.text = if scratch.identity.has_mm != 0 {
            scratch.memory.text
        } else {
            record.memory.exe
        };
        self.scratch = scratch;
        Ok(alive?.is_text())
    }

    fn read_io(&mut self, pid: u32, tid: Option<u32>, io: &mut Io) -> Result<Found<()>, Error> {
        self.parse(
            FilePath {
                pid,
                tid,
                name: "io",
            },
            None,
            |text, _| io::parse(text).map(|parsed| *io = parsed),
        )
    }

    /// What a thread waited. Kernels may lack the file. One that counts says three zeros of a thread that has never run.
    fn waits(
        &mut self,
        pid: u32,
        tid: Option<u32>,
        cpu: &Cpu,
    ) -> Result<Option<schedstat::Waits>, Error> {
        let name = "schedstat";
        let found = self.files.read(FilePath { pid, tid, name }, None)?;
        let parsed = found.try_map(|text| {
            schedstat::parse(text).map_err(|source| Error::Parse { pid, source })
        })?;
        Ok(match parsed {
            Found::Text(waits) => {
                self.counts_waits |= waits.is_some();
                let has_never_run = self.counts_waits && (cpu.utime_ns, cpu.stime_ns) == (0, 0);
                waits.or(has_never_run.then_some(schedstat::Waits::NONE))
            }
            Found::Nothing | Found::Denied => None,
        })
    }

    /// What the threads of a process waited: of several only if they are listed anyway, because each has a file.
    fn add_waits(
        &mut self,
        pid: u32,
        record: &mut Record,
        threads: &[ThreadRecord],
    ) -> Result<(), Error> {
        let cpu = &mut record.cpu;
        if record.identity.num_threads == 1 {
            if let Some(waits) = self.waits(pid, None, cpu)? {
                (cpu.run_delay_ns, cpu.timeslices) = (waits.run_delay_ns, waits.timeslices);
            }
        } else {
            // A thread that was met before all that have run has none.
            let known = threads
                .iter()
                .filter_map(|thread| thread.run_delay_ns().zip(thread.timeslices()));
            let sum = known.reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1));
            (cpu.run_delay_ns, cpu.timeslices) = sum.unwrap_or((u64::MAX, u64::MAX));
        }
        Ok(())
    }

    fn cgroup_id(&mut self, pid: u32) -> Result<Found<Option<u64>>, Error> {
        let path = FilePath {
            pid,
            tid: None,
            name: "cgroup",
        };
        self.files
            .read(path, None)?
            .try_map(|text| Ok(self.cgroups.id(text)))
    }

    fn read_threads(&mut self, pid: u32, threads: &mut Vec<ThreadRecord>) -> Result<(), Error> {
        let mut tids = std::mem::take(&mut self.tids);
        let listed = self.files.list(Some(pid), &mut tids);
        let mut record = std::mem::take(&mut self.scratch);
        let mut pool = std::mem::take(&mut self.scratch_pool);
        let result = listed.and_then(|()| {
            for &tid in &tids {
                pool.clear();
                if !self.read_own(pid, Some(tid), None, &mut record, &mut pool)? {
                    continue;
                }
                let mut thread = thread_of(pid, tid, &record);
                if self.fields.contains(Fields::IO)
                    && matches!(
                        self.read_io(pid, Some(tid), &mut thread.io)?,
                        Found::Nothing
                    )
                    && !self.is_there(pid, Some(tid))?
                {
                    continue;
                }
                if self.fields.contains(Fields::CPU)
                    && let Some(waits) = self.waits(pid, Some(tid), &record.cpu)?
                {
                    (thread.run_delay_ns, thread.timeslices) =
                        (waits.run_delay_ns, waits.timeslices);
                }
                threads.push(thread);
            }
            Ok(())
        });
        (self.tids, self.scratch, self.scratch_pool) = (tids, record, pool);
        result
    }
}

/// Facts about this kernel that parsing depends on.
struct Context<'a> {
    format: &'a status::Format,
    units: &'a Units,
}

/// How often to read a process that the kernel has already released. By the second time it has exited, unless it was
/// the leader of a process in which another thread called execve(2) and took its place.
const LOOKS: usize = 4;

/// Whether the kernel released the process while it printed stat or status. Then some values are zero.
const fn is_released(record: &Record) -> bool {
    // The first is from one file, the second from the other.
    record.identity.seen_threads == 0 || record.identity.num_threads == 0
}

/// Makes a thread's record from the record that its files gave.
fn thread_of(tgid: u32, tid: u32, record: &Record) -> ThreadRecord {
    let Record {
        identity,
        cpu,
        scheduling,
        ..
    } = record;
    ThreadRecord {
        start_ns: identity.start_ns,
        utime_ns: cpu.utime_ns,
        stime_ns: cpu.stime_ns,
        gtime_ns: cpu.gtime_ns,
        minflt: cpu.minflt,
        majflt: cpu.majflt,
        nvcsw: cpu.nvcsw,
        nivcsw: cpu.nivcsw,
        prev_utime_ns: cpu.prev_utime_ns,
        prev_stime_ns: cpu.prev_stime_ns,
        tid,
        tgid,
        state_bits: identity.state_bits,
        flags: identity.flags,
        priority: scheduling.priority,
        nice: scheduling.nice,
        rt_priority: scheduling.rt_priority,
        policy: scheduling.policy,
        processor: scheduling.processor,
        comm: identity.comm,
        ..ThreadRecord::default()
    }
}
