//! Reads the kernel's text: the source that needs no privileges, and that reads the processes that other sources miss.
//!
//! It shows what `/proc` shows. With `hidepid`, or with the `/proc` of another pid namespace, some processes are
//! missing. A process that exits while it is read is left out. So is one whose files hold what this library does not
//! understand, which is counted.

mod cgroup;
mod files;
mod open_files;
mod reader;

use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use self::{files::Files, reader::Reader};
pub use crate::base::error::procfs::Error;
use crate::{
    base::{host::Host, proc_root},
    records::{
        fields::Fields,
        record::{Record, ThreadRecord},
    },
    snapshot::table::Table,
    text::status,
};

/// Reads processes from `/proc`. It reuses its memory, and does not allocate for a process.
///
/// From the second [`collect`](Self::collect) on, it keeps two files open for each of up to 1024 processes, which
/// halves the cost of reading them. It uses only the lower half of the descriptor numbers that this program may
/// have (`ulimit -n`).
#[doc(hidden)]
#[derive(Debug)]
pub struct Procfs {
    reader: Reader,
    /// The only ones to read, by pid, if not all.
    only: Option<Vec<u32>>,
    pids: Vec<u32>,
    records: Vec<Record>,
    threads: Vec<ThreadRecord>,
    pool: Vec<u64>,
    /// Processes that were left out because a file of theirs cannot be parsed.
    left_out: u32,
}

impl Procfs {
    /// Opens the proc file system that is mounted at `root`, to read these groups of fields.
    pub fn open(root: &Path, fields: Fields, host: &Host) -> Result<Self, Error> {
        let failed = |source| Error::List {
            path: root.display().to_string(),
            source,
        };
        proc_root::check(root).map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(root, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let format = status::Format::read(host)?;
        Ok(Self {
            reader: Reader::new(Files::new(directory, root), fields, format, host),
            only: None,
            pids: Vec::new(),
            records: Vec::new(),
            threads: Vec::new(),
            pool: Vec::new(),
            left_out: 0,
        })
    }

    /// Reads only these from here on.
    pub(crate) fn read_only(&mut self, mut pids: Vec<u32>) {
        pids.sort_unstable();
        pids.dedup();
        self.only = Some(pids);
    }

    /// Counts the processes that are left out from here on.
    pub(crate) fn forget_left_out(&mut self) {
        self.left_out = 0;
    }

    /// How many processes were left out because a file of theirs cannot be parsed.
    pub(crate) fn left_out(&self) -> u32 {
        self.left_out
    }

    /// Sets which bit of `mm->flags` disables transparent huge pages for a process. Before this call records lack the
    /// bit.
    pub fn set_thp_disable_bit(&mut self, bit: Option<u32>) {
        self.reader.set_thp_disable_bit(bit);
    }

    /// Lists the processes, in the order of their ids.
    pub fn pids(&mut self, pids: &mut Vec<u32>) -> Result<(), Error> {
        self.reader.pids(pids)
    }

    /// Reads one process into `record`, and appends to `threads` and `pool`. Returns whether the process
    /// exists and its files can be parsed.
    ///
    /// The record has the requested groups that the kernel shows to this reader.
    pub fn read_one(
        &mut self,
        pid: u32,
        record: &mut Record,
        threads: &mut Vec<ThreadRecord>,
        pool: &mut Vec<u64>,
    ) -> Result<bool, Error> {
        let arrays = (threads.len(), pool.len());
        let read = self.reader.read(pid, record, threads, pool);
        or_left_out(read, arrays, threads, pool, &mut self.left_out)
    }

    /// Call this before reading processes by [`read_next`](Self::read_next).
    pub(crate) fn begin(&mut self) {
        self.reader.begin();
    }

    /// Like [`read_one`](Self::read_one), but in the order of the ids, with files that stay open for the next
    /// time.
    pub(crate) fn read_next(
        &mut self,
        pid: u32,
        record: &mut Record,
        threads: &mut Vec<ThreadRecord>,
        pool: &mut Vec<u64>,
    ) -> Result<bool, Error> {
        let arrays = (threads.len(), pool.len());
        let read = self.reader.read_next(pid, record, threads, pool);
        or_left_out(read, arrays, threads, pool, &mut self.left_out)
    }

    /// Reads all processes, in the order of their ids.
    pub fn collect(&mut self) -> Result<Table<'_>, Error> {
        let Self {
            reader,
            only,
            pids,
            records,
            threads,
            pool,
            left_out,
        } = self;
        reader.begin();
        match only {
            Some(only) => pids.clone_from(only),
            None => reader.pids(pids)?,
        }
        threads.clear();
        pool.clear();
        // Offset 0 means "nothing in the pool".
        pool.push(0);
        records.clear();
        records.reserve(pids.len());
        for &pid in &*pids {
            let mut record = Record::default();
            let arrays = (threads.len(), pool.len());
            let read = reader.read_next(pid, &mut record, threads, pool);
            if or_left_out(read, arrays, threads, pool, left_out)? {
                records.push(record);
            }
        }
        Ok(self.table())
    }

    /// The result of the last [`collect`](Self::collect).
    pub(crate) fn table(&self) -> Table<'_> {
        Table {
            records: &self.records,
            threads: &self.threads,
            pool: &self.pool,
        }
    }
}

/// Leaves out a process whose files cannot be parsed: counts it, and removes what it added to these arrays, which had
/// these lengths before.
fn or_left_out(
    read: Result<bool, Error>,
    (threads_before, pool_before): (usize, usize),
    threads: &mut Vec<ThreadRecord>,
    pool: &mut Vec<u64>,
    left_out: &mut u32,
) -> Result<bool, Error> {
    if !matches!(read, Err(Error::Parse { .. })) {
        return read;
    }
    threads.truncate(threads_before);
    pool.truncate(pool_before);
    *left_out = left_out.saturating_add(1);
    Ok(false)
}
