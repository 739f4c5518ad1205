//! Comparing processes: snapshot, the kernel's files, snapshot.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use fastproc::{
    Collector, Fields, Process, Snapshot, SourceKind, cputime, record::Record, text::Access,
};

use super::{
    again::{self, RETRIES},
    fields::File,
    tally::{Bracket, Tally},
};
use crate::{
    Failure,
    texts::{Texts, own_reader},
};

/// Processes between two snapshots: few, so that little moves while their files are read.
const BATCH: usize = 64;

/// Compares all processes, `rounds` times.
pub fn compare(
    source: Option<SourceKind>,
    rounds: u32,
) -> Result<(SourceKind, u64, Tally), Failure> {
    let fields = Texts::FIELDS | Fields::IO;
    let mut collector = Collector::builder().fields(fields).source(source).open()?;
    let texts = Texts::of_this_kernel(&collector, Path::new("/proc"))?;
    crate::privileges::drop()?;
    let mut comparison = Comparison {
        texts,
        proc: PathBuf::from("/proc"),
        tally: Tally::default(),
    };
    let mut processes = 0;
    for _ in 0..rounds {
        let listed = comparison.list()?;
        let before: Vec<u32> = collector.snapshot()?.iter().map(Process::pid).collect();
        for batch in listed.chunks(BATCH) {
            comparison.batch(&mut collector, batch)?;
        }
        processes = listed.len() as u64;
        comparison.look_for_missing(&mut collector, &listed, &before)?;
    }
    Ok((collector.source(), processes, comparison.tally))
}

struct Comparison {
    texts: Texts,
    proc: PathBuf,
    tally: Tally,
}

/// What is kept of a process between two snapshots: its record and its part of the pool.
struct Kept {
    record: Record,
    /// Which of the two pools its offsets point into.
    pool: usize,
    access: Access,
}

/// Some processes of a snapshot.
struct Snap {
    kept: BTreeMap<u32, Kept>,
    pools: [Vec<u64>; 2],
}

impl Snap {
    fn of(snapshot: &Snapshot<'_>, pids: &[u32]) -> Self {
        let reader = own_reader(snapshot);
        let pools = snapshot.pools();
        let kept = pids.iter().filter_map(|&pid| {
            let process = snapshot.get(pid)?;
            // What was read from the text is what the kernel shows us; for the rest we ask as it would.
            let from_text = snapshot.stats().source == SourceKind::Procfs
                || !std::ptr::eq(process.pool(), pools[0]);
            let access = match &reader {
                _ if from_text => Access::Granted,
                Some(reader) => reader.access(process),
                None => Access::Denied,
            };
            // The times as the kernel would show them now, whatever this collector has shown before.
            let mut record = *process.record();
            let time = cputime::of_process(&record.cpu);
            (record.cpu.utime_ns, record.cpu.stime_ns) = (time.utime_ns, time.stime_ns);
            let pool = usize::from(!std::ptr::eq(process.pool(), pools[0]));
            Some((
                pid,
                Kept {
                    record,
                    pool,
                    access,
                },
            ))
        });
        let kept = kept.collect();
        Self {
            kept,
            pools: pools.map(<[u64]>::to_vec),
        }
    }
}

impl Comparison {
    fn list(&self) -> io::Result<Vec<u32>> {
        let mut pids: Vec<u32> = fs::read_dir(&self.proc)?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .collect();
        pids.sort_unstable();
        Ok(pids)
    }

    fn batch(&mut self, collector: &mut Collector, pids: &[u32]) -> Result<(), Failure> {
        let mut rest = pids.to_vec();
        for attempt in 0..=RETRIES {
            let settled = attempt == RETRIES;
            rest = self.attempt(collector, &rest, settled)?;
            if rest.is_empty() {
                break;
            }
            again::pause(attempt);
        }
        Ok(())
    }

    /// Compares these processes, and returns those that should be looked at again.
    fn attempt(
        &mut self,
        collector: &mut Collector,
        pids: &[u32],
        settled: bool,
    ) -> Result<Vec<u32>, Failure> {
        let before = Snap::of(&collector.snapshot()?, pids);
        let kernel: Vec<_> = pids
            .iter()
            .map(|&pid| File::ALL.map(|file| self.read(pid, file).ok()))
            .collect();
        let after = Snap::of(&collector.snapshot()?, pids);
        let mut again = Vec::new();
        for (&pid, kernel) in pids.iter().zip(&kernel) {
            let (Some(old), Some(new)) = (before.kept.get(&pid), after.kept.get(&pid)) else {
                continue;
            };
            let [stat, statm, status, io] = kernel;
            // A process that went while its files were read proves nothing.
            let (Some(_), Some(_), Some(status)) = (stat, statm, status) else {
                continue;
            };
            let mut brackets = Vec::new();
            for (file, kernel) in File::ALL.into_iter().zip(kernel) {
                if file == File::Io && io.is_none() {
                    continue;
                }
                let ours = [(old, &before), (new, &after)]
                    .map(|(kept, snap)| self.render(kept, snap, file, status));
                let [Some(before), Some(after)] = ours else {
                    continue;
                };
                brackets.push((file, before, kernel.clone().unwrap_or_default(), after));
            }
            let brackets = brackets
                .iter()
                .map(|(file, before, kernel, after)| Bracket {
                    pid,
                    file: *file,
                    before,
                    kernel,
                    after,
                });
            if !settled && brackets.clone().any(|bracket| bracket.is_suspicious()) {
                again.push(pid);
                continue;
            }
            for bracket in brackets {
                self.tally.add(&bracket, settled);
            }
        }
        Ok(again)
    }

    fn read(&self, pid: u32, file: File) -> io::Result<Vec<u8>> {
        fs::read(self.proc.join(format!("{pid}/{file}")))
    }

    /// Our text of a file. `None`: the source does not know it.
    fn render(
        &mut self,
        kept: &Kept,
        snap: &Snap,
        file: File,
        kernel_status: &[u8],
    ) -> Option<Vec<u8>> {
        let process = Process::new(&kept.record, &snap.pools[kept.pool]);
        let text = match file {
            File::Stat => self.texts.stat(process, kept.access).map(<[u8]>::to_vec),
            File::Statm => self.texts.statm(process).map(<[u8]>::to_vec),
            File::Status => self
                .texts
                .status(process, Some(kernel_status))
                .map(<[u8]>::to_vec),
            File::Io => return process.io().map(|io| io_text(io).into_bytes()),
        };
        text.ok()
    }

    /// A process that `/proc` lists before and after, and no snapshot has, is missing.
    fn look_for_missing(
        &mut self,
        collector: &mut Collector,
        listed: &[u32],
        before: &[u32],
    ) -> Result<(), Failure> {
        let still = self.list()?;
        let snapshot = collector.snapshot()?;
        let missing = listed.iter().filter(|pid| {
            still.binary_search(pid).is_ok()
                && before.binary_search(pid).is_err()
                && snapshot.get(**pid).is_none()
        });
        self.tally.missing += missing.count() as u64;
        Ok(())
    }
}

fn io_text(io: &fastproc::record::Io) -> String {
    let lines = [
        ("rchar", io.rchar),
        ("wchar", io.wchar),
        ("syscr", io.syscr),
        ("syscw", io.syscw),
        ("read_bytes", io.read_bytes),
        ("write_bytes", io.write_bytes),
        ("cancelled_write_bytes", io.cancelled_write_bytes),
    ];
    lines
        .map(|(name, value)| format!("{name}: {value}\n"))
        .concat()
}
