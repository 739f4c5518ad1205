//! Reads the cgroups of version 2: CPU time, memory, I/O, processes and pressure of each.
//!
//! The kernel's files are text: the readers that poll them most read fourteen for each container. A [`Cgroups`] walks
//! all cgroups by BPF and returns borrowed views of records; if BPF cannot be used, it reads the files into the same
//! records, through descriptors that stay open.
//!
//! ```no_run
//! use fastproc::cgroups::{Cgroups, Fields};
//!
//! # fn main() -> Result<(), fastproc::cgroups::Error> {
//! let mut cgroups = Cgroups::builder().fields(Fields::CPU | Fields::MEMORY).open()?;
//! for cgroup in cgroups.snapshot()?.iter() {
//!     let used = cgroup.memory().and_then(|memory| memory.current());
//!     println!("{:>12} {}", used.unwrap_or(0), cgroup.path().escape_ascii());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The age of values
//!
//! The kernel adds up CPU time, the lines of memory.stat and I/O for each CPU, and folds them into a cgroup when its
//! files are read. A snapshot therefore first reads a file of every top-level cgroup, which updates all its
//! descendants. [`Builder::max_age`] allows older values, which costs less. The source `bpf` calculates the totals of
//! pressure as the kernel would at that moment. The averages of pressure are from the kernel's files with every source.
//!
//! # Visibility
//!
//! A snapshot contains the cgroups whose directories are below the mount of the hierarchy for this process, so a reader
//! in a cgroup namespace sees no others. The source `bpf` also needs `CAP_DAC_READ_SEARCH`. Without it a service is
//! asked, which checks what this user may read, or the files are read, and the kernel decides.

mod bounds;
mod builder;
mod difference;
mod error;
mod fields;
mod files;
mod ids;
mod limits;
mod lists;
mod object;
mod pressure;
mod proofs;
pub mod record;
mod recorded;
mod served;
mod snapshot;
mod stat;
mod text;
mod tree;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use files::Files;
use lists::Lists;
use object::{Bpf, Met};
use pressure::Totals;
use proofs::Proofs;
use record::Record;
use served::Served;
use stat::Lines;
use tree::Tree;

pub use self::{
    builder::{Builder, Source},
    difference::{Baseline, Changes},
    error::Error,
    fields::Fields,
    ids::Ids,
    limits::{LimitReader, Limits},
    snapshot::{Cgroup, Snapshot},
    stat::StatLine,
    text::TextFile,
};
#[doc(hidden)]
pub use bounds::Bounds;
#[cfg(test)]
pub(crate) use object::{OBJECT, layout};
#[doc(hidden)]
pub use recorded::Recorded;

use crate::{base::host::boottime_ns, rules::cputime};

/// A collector of cgroups.
#[derive(Debug)]
pub struct Cgroups {
    fields: Fields,
    absent: Vec<&'static str>,
    refusal: Option<Error>,
    reader: Reader,
    tree: Tree,
    files: Files,
    met: Met,
    shown: Vec<u32>,
    lists: Lists,
    lines: Lines,
    proofs: Option<Proofs>,
    /// Cgroups whose memory.stat the next walk compares with the text.
    candidates: Vec<u64>,
    totals: Totals,
    /// Whether memory.stat is read as text, because the names of its stored values are unknown.
    by_text: bool,
    max_age: Duration,
    flushed: Option<Instant>,
}

#[derive(Debug)]
enum Reader {
    Bpf(Box<Bpf>),
    Service(Box<Served>),
    Files(Vec<Record>),
}

/// How many cgroups are compared with their texts at once, and how many times for the first snapshot.
const COMPARED: usize = 4;
const FIRST_ROUNDS: u32 = 3;

impl Cgroups {
    /// Returns a builder, which sets how to read cgroups.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The source in use: while a service does not answer, this is that of the files.
    pub fn source(&self) -> Source {
        match &self.reader {
            Reader::Bpf(_) => Source::Bpf,
            Reader::Service(served) if served.is_used() => Source::Service,
            Reader::Service(_) | Reader::Files(_) => Source::Files,
        }
    }

    /// Why the source `bpf` is not used, if it was tried.
    pub fn refusal(&self) -> Option<&Error> {
        self.refusal.as_ref()
    }

    /// The controllers that this hierarchy lacks, of `cpu`, `memory`, `pids` and `io`: they are on version 1, or the
    /// kernel lacks them. Their values are unknown.
    pub fn absent_controllers(&self) -> &[&'static str] {
        &self.absent
    }

    /// The mount point of the hierarchy.
    pub fn mount(&self) -> &Path {
        self.tree.mount()
    }

    /// Whether memory.stat is read as text, because the names of the kernel's stored values are unknown.
    pub fn reads_memory_stat_as_text(&self) -> bool {
        self.stat_is_text() || self.source() == Source::Files
    }

    fn stat_is_text(&self) -> bool {
        self.by_text || self.proofs.as_ref().is_some_and(Proofs::are_refuted)
    }

    /// The longest run of the program during the last snapshot; zero with another source than `bpf`.
    pub fn longest_section(&self) -> Duration {
        self.met.longest_section
    }

    /// Reads all cgroups.
    ///
    /// # Errors
    /// The program could not be run, the cgroups did not fit into memory, or this process may not open more files.
    pub fn snapshot(&mut self) -> Result<Snapshot<'_>, Error> {
        // Until then nothing is read, and the last snapshot stays.
        self.check_count()?;
        self.lists.clear();
        let read = self.read();
        if let Err(error) = self.tree.check().and(read) {
            self.shown.clear();
            return Err(error);
        }
        Ok(self.last())
    }

    fn read(&mut self) -> Result<(), Error> {
        match self.reader {
            Reader::Service(_) => {
                if !self.read_served()? {
                    self.read_files();
                }
            }
            Reader::Files(_) => self.read_files(),
            Reader::Bpf(_) => {
                self.flush();
                self.walk_and_prove()?;
                self.complete();
            }
        }
        Ok(())
    }

    /// Returns the last snapshot again. It is empty if there was none, or if making the last one failed.
    pub fn last(&self) -> Snapshot<'_> {
        let records: &[Record] = match &self.reader {
            Reader::Bpf(bpf) => bpf.records(self.met),
            Reader::Service(served) => &served.records,
            Reader::Files(records) => records,
        };
        Snapshot {
            records,
            lists: &self.lists,
            shown: &self.shown,
            paths: snapshot::Paths::Tree(&self.tree),
            lines: &self.lines,
            began_ns: self.met.began_ns,
        }
    }

    /// Makes the kernel fold the counts of the CPUs: reading a file of a top-level cgroup does it for all descendants.
    fn flush(&mut self) {
        if self.flushed.is_some_and(|at| at.elapsed() < self.max_age) {
            return;
        }
        let files = [
            (Fields::CPU, "cpu.stat"),
            (Fields::MEMORY_STAT, "memory.stat"),
            (Fields::IO, "io.stat"),
        ];
        let wanted: Vec<_> = files
            .into_iter()
            .filter(|(groups, _)| self.fields.intersects(*groups))
            .collect();
        if wanted.is_empty() {
            return;
        }
        let root = self.tree.root_id();
        for id in self.tree.children(root) {
            for (_, name) in &wanted {
                self.files.text(&mut self.tree, id, name);
            }
        }
        self.flushed = Some(Instant::now());
    }

    fn read_files(&mut self) {
        let Self {
            reader,
            tree,
            files,
            shown,
            lists,
            lines,
            fields,
            ..
        } = self;
        let records = match reader {
            Reader::Bpf(_) => return,
            Reader::Service(served) => &mut served.records,
            Reader::Files(records) => records,
        };
        self.met.began_ns = boottime_ns();
        lists.clear();
        records.clear();
        shown.clear();
        tree.begin();
        let root = tree.root_id();
        let mut left = vec![(root, 0, 0)];
        while let Some((id, parent, level)) = left.pop() {
            if !tree.meet(id, parent) {
                continue;
            }
            let mut record = Record::default();
            (
                record.identity.id,
                record.identity.parent,
                record.identity.level,
            ) = (id, parent, level);
            // A user sees the cgroup only if he may read these files, as by the service.
            if files.identity(tree, &mut record).is_some() {
                if lines.is_empty()
                    && fields.contains(Fields::MEMORY_STAT)
                    && let Some(text) = files.text(tree, id, "memory.stat")
                {
                    *lines = Lines::new(text, None);
                }
                files.fill(tree, &mut record, *fields, lines, lists);
                lists.sum_io(&mut record);
                shown.push(records.len() as u32);
                records.push(record);
            }
            let children = tree.children(id);
            left.extend(
                children
                    .into_iter()
                    .rev()
                    .map(|child| (child, id, level + 1)),
            );
        }
        tree.end();
    }

    fn walk_and_prove(&mut self) -> Result<(), Error> {
        let mut candidates = std::mem::take(&mut self.candidates);
        for _ in 0..FIRST_ROUNDS {
            let before = self.texts(&candidates);
            self.walk()?;
            self.compare(&candidates, &before);
            let is_first = candidates.is_empty();
            candidates = self.find_candidates();
            if candidates.is_empty() || !is_first {
                break;
            }
        }
        self.candidates = candidates;
        Ok(())
    }

    fn walk(&mut self) -> Result<(), Error> {
        let Self {
            reader: Reader::Bpf(bpf),
            tree,
            shown,
            ..
        } = self
        else {
            return Ok(());
        };
        shown.clear();
        self.met = Met::default();
        self.met = bpf.walk(tree.bounds.cgroups)?;
        let records = bpf.records(self.met);
        tree.begin();
        for (at, record) in records.iter().enumerate() {
            if tree.meet(record.identity.id, record.identity.parent) {
                shown.push(at as u32);
            }
        }
        tree.end();
        Ok(())
    }

    /// Cgroups with a line of memory.stat that must still be compared with the text.
    fn find_candidates(&mut self) -> Vec<u64> {
        let Self {
            reader: Reader::Bpf(bpf),
            tree,
            files,
            lines,
            shown,
            ..
        } = self
        else {
            return Vec::new();
        };
        if !self.fields.contains(Fields::MEMORY_STAT) || self.by_text {
            return Vec::new();
        }
        let records = bpf.records(self.met);
        let with_stat = shown.iter().map(|&at| &records[at as usize]);
        let with_stat = with_stat.filter(|record| {
            let identity = &record.identity;
            identity.groups & Fields::MEMORY_STAT.bits() != 0 && identity.stat_by_line == 0
        });
        if lines.is_empty() {
            let id = with_stat
                .clone()
                .next()
                .map_or(tree.root_id(), |record| record.identity.id);
            let Some(text) = files.text(tree, id, "memory.stat") else {
                return Vec::new();
            };
            *lines = Lines::new(text, Some(bpf.types()));
            self.proofs = Some(Proofs::new(lines));
        }
        let Some(proofs) = &mut self.proofs else {
            return Vec::new();
        };
        if !lines.are_stored() {
            self.by_text = true;
            return Vec::new();
        }
        if proofs.rest(Instant::now()) {
            return Vec::new();
        }
        let wanted = with_stat.filter(|record| proofs.wants(&record.memory_stat.slots));
        let wanted = wanted.map(|record| record.identity.id).take(COMPARED);
        let candidates: Vec<_> = wanted.collect();
        if candidates.is_empty() {
            proofs.settle();
        }
        candidates
    }

    fn texts(&mut self, ids: &[u64]) -> Vec<Option<record::MemoryStat>> {
        let Self {
            tree, files, lines, ..
        } = self;
        let read = ids.iter().map(|&id| {
            let mut stat = record::MemoryStat::default();
            let text = files.text(tree, id, "memory.stat")?;
            lines.parse(text, &mut stat.slots)?;
            Some(stat)
        });
        read.collect()
    }

    fn compare(&mut self, ids: &[u64], before: &[Option<record::MemoryStat>]) {
        let after = self.texts(ids);
        let (Reader::Bpf(bpf), Some(proofs)) = (&self.reader, &mut self.proofs) else {
            return;
        };
        let records = bpf.records(self.met);
        for ((id, before), after) in ids.iter().zip(before).zip(&after) {
            let record = records.iter().find(|record| record.identity.id == *id);
            if let (Some(record), Some(before), Some(after)) = (record, before, after)
                && record.identity.groups & Fields::MEMORY_STAT.bits() != 0
            {
                proofs.compare(
                    &self.lines,
                    &record.memory_stat.slots,
                    &before.slots,
                    &after.slots,
                );
            }
        }
        proofs.refute(Instant::now());
    }

    /// Adds values that the program does not read, and those that the kernel calculates when it prints.
    fn complete(&mut self) {
        let stat_is_text = self.stat_is_text();
        let Self {
            reader: Reader::Bpf(bpf),
            tree,
            files,
            shown,
            lists,
            lines,
            fields,
            totals,
            ..
        } = self
        else {
            return;
        };
        let mut from_files = *fields - bpf.fields();
        if stat_is_text {
            from_files |= *fields & Fields::MEMORY_STAT;
        }
        let (records, devices) = bpf.records_mut(self.met);
        lists.devices.extend_from_slice(devices);
        for &at in shown.iter() {
            let record = &mut records[at as usize];
            let is_root = record.identity.parent == 0;
            if is_root {
                files.fill_root(tree, record, *fields, lines, lists);
            } else {
                let has_pressure = record.identity.groups & Fields::PRESSURE.bits() != 0;
                let is_torn = has_pressure && record.pressure.torn != 0;
                let mut from_files = from_files;
                if is_torn {
                    from_files |= Fields::PRESSURE;
                }
                if !from_files.is_empty() {
                    files.fill(tree, record, from_files, lines, lists);
                }
                adjust(&mut record.cpu);
            }
            if fields.contains(Fields::PRESSURE) {
                totals.raise(record);
            }
            lists.sum_io(record);
        }
        totals.forget(shown.len(), |id| tree.path(id).is_some());
    }
}

/// Sets user and system time as the kernel shows them.
fn adjust(cpu: &mut record::Cpu) {
    let time = |utime_ns, stime_ns| cputime::CpuTime { utime_ns, stime_ns };
    let shown = cputime::cputime_adjust(
        cpu.usage_ns,
        time(cpu.sampled_utime_ns, cpu.sampled_stime_ns),
        time(cpu.prev_utime_ns, cpu.prev_stime_ns),
    );
    (cpu.user_ns, cpu.system_ns) = (shown.utime_ns, shown.stime_ns);
}
