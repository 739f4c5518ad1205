//! Compares processes: snapshot, the kernel's files, snapshot.

use std::{
    collections::BTreeMap,
    fs, io,
    path::PathBuf,
    time::{Duration, Instant},
};

use fastproc::{
    Collector, Fields, Process, Snapshot, SourceKind, access::Access, cputime, proc_root,
    record::Record, record::ThreadRecord, text::Files,
};

use super::{
    again::{self, RETRIES},
    fields::{File, split},
    progress::Progress,
    tally::{Bracket, Look, Tally, Value},
};
use crate::{
    Failure,
    privileges::{self, AccessCheck},
};

/// Processes between two snapshots: few, so that little changes while their files are read.
const BATCH: usize = 64;

/// How long the kernel's text is read again for a value of ours that it has not shown yet. A process that changes all
/// the time stays the same while it has no CPU: the kernel takes the CPU from a real-time process for a part of each
/// second, and a virtual CPU may stall for seconds.
const LONGER_LOOK: Duration = Duration::from_secs(10);
/// And how often at least: some states of such processes show in one of a thousand readings.
const LONGER_LOOKS: u32 = 5_000;

const FILES: usize = File::ALL.len();

/// Compares all processes, or those of `pids`, `rounds` times.
pub fn compare(
    source: Option<SourceKind>,
    pids: Option<&[u32]>,
    rounds: u32,
    progress: &mut Progress,
) -> Result<(SourceKind, u64, Tally), Failure> {
    let fields = Files::FIELDS | Fields::IO;
    let mut collector = Collector::builder().fields(fields).source(source).open()?;
    let texts = Files::open(collector.host(), collector.calibration())?;
    // Another one: a walk that lists every thread keeps no records, which are to be compared too.
    let threads = match collector.source() {
        SourceKind::Procfs => None,
        kind => {
            let fields = Fields::CPU | Fields::THREADS;
            let builder = Collector::builder().fields(fields).source(Some(kind));
            Some(builder.open()?)
        }
    };
    privileges::drop()?;
    let mut comparison = Comparison {
        threads,
        only: pids,
        checker: AccessCheck::new(collector.host())?,
        texts,
        proc: proc_root::path("/proc").into(),
        tally: Tally::default(),
    };
    let mut processes = 0;
    'rounds: for round in 0..rounds as usize {
        let listed = comparison.list()?;
        let before: Vec<u32> = collector.snapshot()?.iter().map(Process::pid).collect();
        let batches = listed.chunks(BATCH);
        let all = batches.len();
        for (at, batch) in batches.enumerate() {
            if !progress.goes_on("processes", round * all + at, rounds as usize * all) {
                break 'rounds;
            }
            comparison.batch(&mut collector, batch)?;
            processes = processes.max(at * BATCH + batch.len());
        }
        comparison.look_for_missing(&mut collector, &listed, &before)?;
    }
    Ok((collector.source(), processes as u64, comparison.tally))
}

struct Comparison<'p> {
    /// What has a record of each thread.
    threads: Option<Collector>,
    /// The processes to compare; `None`: all.
    only: Option<&'p [u32]>,
    checker: AccessCheck,
    texts: Files,
    proc: PathBuf,
    tally: Tally,
}

/// A process of a snapshot: its record and its part of the pool.
struct Kept {
    record: Record,
    /// Which of the two pools its offsets point into.
    pool: usize,
    access: Access,
    /// Its leading thread, which has a record of its own in another snapshot of the same time.
    leader: Option<ThreadRecord>,
}

/// All readings of files of processes, by pid, start and file.
type Looks = BTreeMap<(u32, u64, File), Vec<Look>>;

/// Some processes of a snapshot.
struct Snap {
    kept: BTreeMap<u32, Kept>,
    pools: [Vec<u64>; 2],
}

impl Snap {
    fn new(snapshot: &Snapshot<'_>, pids: &[u32], checker: &AccessCheck) -> Self {
        let pools = snapshot.pools();
        let pools = [pools.own, pools.from_text];
        let kept = pids.iter().filter_map(|&pid| {
            let process = snapshot.get(pid)?;
            let access = checker.access(process, snapshot);
            // The times as the kernel would show them now, whatever this collector has shown before.
            let mut record = *process.record();
            // If the service has rounded them, their inputs are rounded too, and would give other times.
            if record.identity.masked == 0 {
                let time = cputime::shown_by_kernel(&record.cpu);
                (record.cpu.utime_ns, record.cpu.stime_ns) = (time.utime_ns, time.stime_ns);
            }
            let pool = usize::from(!std::ptr::eq(process.pool(), pools[0]));
            Some((
                pid,
                Kept {
                    record,
                    pool,
                    access,
                    leader: None,
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

impl Comparison<'_> {
    fn list(&self) -> io::Result<Vec<u32>> {
        let mut pids: Vec<u32> = fs::read_dir(&self.proc)?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| self.only.is_none_or(|only| only.contains(pid)))
            .collect();
        pids.sort_unstable();
        Ok(pids)
    }

    fn batch(&mut self, collector: &mut Collector, pids: &[u32]) -> Result<(), Failure> {
        let mut rest = pids.to_vec();
        let mut looks = Looks::new();
        for attempt in 0..=RETRIES {
            let settled = attempt == RETRIES;
            rest = self.attempt(collector, &rest, &mut looks, settled)?;
            if rest.is_empty() {
                break;
            }
            again::pause(attempt);
        }
        Ok(())
    }

    /// Compares these processes, and returns those that should be compared again.
    fn attempt(
        &mut self,
        collector: &mut Collector,
        pids: &[u32],
        looks: &mut Looks,
        settled: bool,
    ) -> Result<Vec<u32>, Failure> {
        let first = self.read_all(pids);
        let before = self.snap(collector, pids)?;
        let between = self.read_all(pids);
        let after = self.snap(collector, pids)?;
        let last = self.read_all(pids);
        let mut again = Vec::new();
        for (&pid, kernel) in pids.iter().zip(first.iter().zip(&between).zip(&last)) {
            let ((first, between), last) = kernel;
            let (Some(old), Some(new)) = (before.kept.get(&pid), after.kept.get(&pid)) else {
                continue;
            };
            let start = old.record.identity.start_ns;
            // A process that exited while its files were read proves nothing.
            let [Some(_), Some(_), Some(status), ..] = between else {
                continue;
            };
            if last[0].is_none() || new.record.identity.start_ns != start {
                continue;
            }
            let mut files = Vec::new();
            for (at, file) in File::ALL.into_iter().enumerate() {
                let ours = [(old, &before), (new, &after)]
                    .map(|(kept, snap)| self.render(kept, snap, file, status));
                // A file may be unreadable, or the source may not know it.
                let kernel = [first, between, last].map(|texts| texts[at].clone());
                let ([Some(first), Some(between), Some(last)], [Some(before), Some(after)]) =
                    (kernel, ours)
                else {
                    continue;
                };
                let looks = looks.entry((pid, start, file)).or_default();
                looks.push([first, before, between, after, last]);
                files.push(file);
            }
            let [before, after] =
                [old, new].map(|kept| (kept.record.cpu.nvcsw, kept.record.cpu.nivcsw));
            let switched = before != after;
            let brackets = files.into_iter().filter_map(|file| {
                let looks = looks.get(&(pid, start, file))?;
                let [_, before, kernel, after, _] = looks.last()?;
                Some(Bracket {
                    pid,
                    file,
                    before,
                    kernel,
                    after,
                    looks,
                    shown_since: &[],
                    switched,
                })
            });
            if !settled && brackets.clone().any(|bracket| bracket.is_suspicious()) {
                again.push(pid);
                continue;
            }
            for bracket in brackets {
                let shown_since = &self.look_longer(&bracket);
                let bracket = Bracket {
                    shown_since,
                    ..bracket
                };
                self.tally.add(&bracket, settled);
            }
        }
        Ok(again)
    }

    fn snap(&mut self, collector: &mut Collector, pids: &[u32]) -> Result<Snap, Failure> {
        let mut snap = Snap::new(&collector.snapshot()?, pids, &self.checker);
        if let Some(threads) = &mut self.threads {
            for thread in threads.snapshot()?.threads() {
                let kept = snap.kept.get_mut(&thread.tid);
                let kept = kept.filter(|kept| kept.record.identity.start_ns == thread.start_ns);
                if let Some(kept) = kept {
                    kept.leader = Some(*thread);
                }
            }
        }
        Ok(snap)
    }

    /// Values of ours that no reading of the kernel's text had, but that it shows after longer reading.
    fn look_longer(&self, bracket: &Bracket<'_>) -> Vec<Value> {
        let path = self.proc.join(format!("{}/{}", bracket.pid, bracket.file));
        let mut unseen = bracket.unseen();
        let mut shown = Vec::new();
        let started = Instant::now();
        let mut looks = 0;
        while !unseen.is_empty() && (looks < LONGER_LOOKS || started.elapsed() < LONGER_LOOK) {
            looks += 1;
            let Ok(text) = fs::read(&path) else {
                // An exited process proves nothing.
                shown.append(&mut unseen);
                break;
            };
            for (name, value) in split(bracket.file, &text) {
                let found = unseen.extract_if(.., |unseen| unseen.0 == name && unseen.1 == value);
                shown.extend(found);
            }
        }
        shown
    }

    /// The kernel's texts of these processes, as far as they are readable.
    fn read_all(&self, pids: &[u32]) -> Vec<[Option<Vec<u8>>; FILES]> {
        let read = |pid, file| fs::read(self.proc.join(format!("{pid}/{file}"))).ok();
        pids.iter()
            .map(|&pid| File::ALL.map(|file| read(pid, file)))
            .collect()
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
            File::Schedstat => self.texts.schedstat(&kept.leader?).map(<[u8]>::to_vec),
        };
        text.ok()
    }

    /// A process that `/proc` lists before and after, but no snapshot has, is missing.
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
