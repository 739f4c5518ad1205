//! The kernel's text: the source that needs no privileges, and serves what the others miss.
//!
//! What `/proc` shows is what there is: under `hidepid`, or with the `/proc` of another pid namespace mounted, that is
//! less than every process. A process that ends while it is read is left out.

mod cgroup;
mod files;
mod open_files;
mod reader;

use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

use self::{files::Files, reader::Reader};
pub use crate::base::error::procfs::Error;
use crate::{
    base::host::Host,
    records::{
        fields::Fields,
        record::{Record, ThreadRecord},
    },
    snapshot::table::Table,
    text::status,
};

/// Reads processes from `/proc`, with memory that is used again: nothing is allocated for a process.
///
/// From the second [`collect`](Self::collect) on, two files each of up to 1024 processes are kept open, as far as the lower
/// half of the numbers of descriptors suffices that this program may have (`ulimit -n`): that halves the cost of reading
/// them, and the upper half is never taken from the program.
#[derive(Debug)]
pub struct Procfs {
    reader: Reader,
    pids: Vec<u32>,
    records: Vec<Record>,
    threads: Vec<ThreadRecord>,
    pool: Vec<u64>,
}

impl Procfs {
    /// Opens the proc file system that is mounted at `root`, to read these groups of fields.
    pub fn open(root: &Path, fields: Fields, host: &Host) -> Result<Self, Error> {
        let directory = open(
            root,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let directory = directory.map_err(|error| Error::List {
            path: root.display().to_string(),
            source: error.into(),
        })?;
        // In the /proc of another pid namespace nobody is oneself, but the kernel is the same.
        let format = status::Format::of_this_kernel(root, host)
            .or_else(|_| status::Format::of_this_kernel(Path::new("/proc"), host))?;
        Ok(Self {
            reader: Reader::new(Files::new(directory, root), fields, format, host),
            pids: Vec::new(),
            records: Vec::new(),
            threads: Vec::new(),
            pool: Vec::new(),
        })
    }

    /// Sets the bit of `mm->flags` in which records shall have it that a process may not have transparent huge pages.
    /// Until then they do not have it.
    pub fn set_thp_disable_bit(&mut self, bit: Option<u32>) {
        self.reader.set_thp_disable_bit(bit);
    }

    /// Lists the processes, in the order of their ids.
    pub fn pids(&mut self, pids: &mut Vec<u32>) -> Result<(), Error> {
        self.reader.pids(pids)
    }

    /// Reads one process into `record`, appending to `threads` and `pool`. Returns whether it is there.
    ///
    /// The record holds, of the groups that were asked for at [`open`](Self::open), those that this reader may see.
    pub fn read_one(
        &mut self,
        pid: u32,
        record: &mut Record,
        threads: &mut Vec<ThreadRecord>,
        pool: &mut Vec<u64>,
    ) -> Result<bool, Error> {
        self.reader.read(pid, record, threads, pool)
    }

    /// To be called before processes are read by [`read_next`](Self::read_next).
    pub(crate) fn begin(&mut self) {
        self.reader.begin();
    }

    /// As [`read_one`](Self::read_one), in the order of the ids, by files that are kept open for the next time.
    pub(crate) fn read_next(
        &mut self,
        pid: u32,
        record: &mut Record,
        threads: &mut Vec<ThreadRecord>,
        pool: &mut Vec<u64>,
    ) -> Result<bool, Error> {
        self.reader.read_next(pid, record, threads, pool)
    }

    /// Reads every process, in the order of their ids.
    pub fn collect(&mut self) -> Result<Table<'_>, Error> {
        let Self {
            reader,
            pids,
            records,
            threads,
            pool,
        } = self;
        reader.begin();
        reader.pids(pids)?;
        threads.clear();
        pool.clear();
        // Offset 0 stands for "nothing in the pool".
        pool.push(0);
        records.clear();
        records.reserve(pids.len());
        for &pid in &*pids {
            let mut record = Record::default();
            if reader.read_next(pid, &mut record, threads, pool)? {
                records.push(record);
            }
        }
        Ok(self.table())
    }

    /// What the last [`collect`](Self::collect) has read.
    pub(crate) fn table(&self) -> Table<'_> {
        Table {
            records: &self.records,
            threads: &self.threads,
            pool: &self.pool,
        }
    }
}
