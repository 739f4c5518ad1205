//! The records to render: of real processes.

use std::{fs, path::Path};

use fastproc::{
    Collector, Fields, Process, Snapshot,
    record::Record,
    text::{Units, status},
};

use crate::measure::Failure;

/// A process that has lived for ten seconds will likely do so for a few more.
const LASTING_NS: u64 = 10_000_000_000;

/// A process.
pub struct Sample {
    pub pid: u32,
    record: Record,
    /// Which of the pools of the snapshot its record points into.
    pool: usize,
    /// Its status as the kernel has it, where that is needed to render it.
    kernel_text: Option<Vec<u8>>,
}

impl Sample {
    pub fn kernel_text(&self) -> Option<&[u8]> {
        self.kernel_text.as_deref()
    }
}

/// All processes of users.
pub struct Input {
    pub samples: Vec<Sample>,
    pub units: Units,
    pub format: status::Format,
    pub cpus: usize,
    pools: [Vec<u64>; 2],
}

/// What is copied of a snapshot: each process by its record and its pool, and the pools.
type Taken = (Vec<(Record, usize)>, [Vec<u64>; 2]);

fn take(snapshot: &Snapshot<'_>) -> Taken {
    let pools = snapshot.pools();
    let pools = [pools.own, pools.from_text];
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
    /// Takes a snapshot.
    pub fn take() -> Result<Self, Failure> {
        let mut collector = Collector::builder().fields(Fields::THREE_FILES).open()?;
        let calibration = collector.calibration();
        let format = status::Format::read(Path::new("/proc"), collector.host())?
            .with_thp_disable_bit(calibration.thp_disable_bit)
            .with_thread_features(calibration.thread_features);
        let (records, pools) = take(&collector.snapshot()?);
        let mut input = Self {
            samples: Vec::new(),
            units: Units::from(collector.host()),
            cpus: collector.host().possible_cpus as usize,
            format,
            pools,
        };
        let renderer = input.renderer();
        for (record, pool) in records {
            let pid = record.identity.tgid;
            let mut sample = Sample {
                pid,
                record,
                pool,
                kernel_text: None,
            };
            if renderer.needs_kernel_text(input.process(&sample)) {
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

    #[inline]
    pub fn process<'a>(&'a self, sample: &'a Sample) -> Process<'a> {
        Process::new(&sample.record, &self.pools[sample.pool])
    }

    pub fn renderer(&self) -> status::Renderer {
        status::Renderer::new(self.format.clone())
    }
}
