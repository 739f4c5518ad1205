//! The records to render: of real processes, twice.

use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use fastproc::{
    Collector, Fields, Process, Snapshot,
    record::Record,
    text::{Access, Text, Units, stat, statm, status},
};

use crate::bench::measure::Failure;

/// How long to wait between the two snapshots: as long as a reader who looks each second.
const APART: Duration = Duration::from_secs(1);

/// A process that has lived for ten seconds will likely do so for a few more.
const LASTING_NS: u64 = 10_000_000_000;

/// A process that was there both times.
pub struct Sample {
    pub pid: u32,
    records: [Record; 2],
    /// Which of the pools of a snapshot each record points into.
    pools: [usize; 2],
    /// Its status as the kernel has it, where that is needed to render it.
    kernel_text: Option<Vec<u8>>,
}

impl Sample {
    pub fn kernel_text(&self) -> Option<&[u8]> {
        self.kernel_text.as_deref()
    }
}

/// All processes of users, at two moments.
pub struct Input {
    pub samples: Vec<Sample>,
    pub apart: Duration,
    pub units: Units,
    pub format: status::Format,
    pub cpus: usize,
    pools: [[Vec<u64>; 2]; 2],
}

/// What is copied of a snapshot: each process by its record and its pool, and the pools.
type Taken = (Vec<(Record, usize)>, [Vec<u64>; 2]);

fn take(snapshot: &Snapshot<'_>) -> Taken {
    let pools = snapshot.pools();
    let of_users = snapshot
        .iter()
        .filter(|process| process.identity().has_mm != 0);
    let records = of_users.map(|process| {
        let pool = usize::from(std::ptr::eq(process.pool(), pools[1]));
        (*process.record(), pool)
    });
    (records.collect(), pools.map(<[u64]>::to_vec))
}

/// How many processes of users there are that do not come and go.
pub fn user_processes() -> Result<usize, Failure> {
    let mut collector = Collector::builder().fields(Fields::MEMORY).open()?;
    let snapshot = collector.snapshot()?;
    let born_before = snapshot.stats().boottime_ns.saturating_sub(LASTING_NS);
    let (processes, _) = take(&snapshot);
    let lasting = processes
        .iter()
        .filter(|(record, _)| record.identity.start_ns < born_before);
    Ok(lasting.count())
}

impl Input {
    /// Takes two snapshots.
    pub fn take() -> Result<Self, Failure> {
        let mut collector = Collector::builder().fields(Fields::THREE_FILES).open()?;
        let calibration = collector.calibration();
        let format = status::Format::of_this_kernel(Path::new("/proc"), collector.host())?
            .with_thp_disable_bit(calibration.thp_disable_bit)
            .with_thread_features(calibration.thread_features);
        let (before, pools_before) = take(&collector.snapshot()?);
        let started = Instant::now();
        sleep(APART);
        let (after, pools_after) = take(&collector.snapshot()?);
        let mut input = Self {
            samples: Vec::new(),
            apart: started.elapsed(),
            units: Units::from(collector.host()),
            cpus: collector.host().possible_cpus as usize,
            format,
            pools: [pools_before, pools_after],
        };
        let renderer = input.renderer();
        for (record, pool) in before {
            let pid = record.identity.tgid;
            let same = |(other, _): &&(Record, usize)| {
                (other.identity.tgid, other.identity.start_ns) == (pid, record.identity.start_ns)
            };
            let Some(&(later, later_pool)) = after.iter().find(same) else {
                continue;
            };
            let mut sample = Sample {
                pid,
                records: [record, later],
                pools: [pool, later_pool],
                kernel_text: None,
            };
            if renderer.needs_kernel_text(input.process(&sample, 1)) {
                // It is gone; it cannot be read by the other ways either.
                let Ok(text) = fs::read(format!("/proc/{pid}/status")) else {
                    continue;
                };
                sample.kernel_text = Some(text);
            }
            input.samples.push(sample);
        }
        Ok(input)
    }

    /// The process as it was in the first or the second snapshot.
    #[inline]
    pub fn process<'a>(&'a self, sample: &'a Sample, snapshot: usize) -> Process<'a> {
        let pool = &self.pools[snapshot][sample.pools[snapshot]];
        Process::new(&sample.records[snapshot], pool)
    }

    pub fn renderer(&self) -> status::Renderer {
        status::Renderer::new(self.format.clone())
    }

    /// Of how many processes the texts are not the same both times.
    pub fn changed(&self) -> usize {
        let mut texts = self.texts();
        let changed = |sample: &&Sample| {
            texts(self.process(sample, 0), sample) != texts(self.process(sample, 1), sample)
        };
        self.samples.iter().filter(changed).count()
    }

    fn texts(&self) -> impl FnMut(Process<'_>, &Sample) -> Vec<u8> {
        let mut status = self.renderer();
        let mut text = Text::default();
        move |process, sample| {
            let rendered = text.render(|out| {
                stat::render(process, &self.units, Access::Granted, out)?;
                statm::render(process, &self.units, out)?;
                status.render(process, sample.kernel_text(), out)
            });
            rendered.map(<[u8]>::to_vec).unwrap_or_default()
        }
    }
}
