//! Where walks are read from: a history, or the last minutes.

use fastproc::Fields;
use fastproc_history::read::{Error, History, Moment, Texts, Walk};

use super::{
    memory::Memory,
    past::{Exits, NO_WALK_BEFORE, NOT_RECORDED, Step, Steps},
};
use crate::machine::{Gauge, Machine};

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600 * SECOND;
/// What is read before an hour, for what led to its beginning.
const BEFORE: i64 = 600 * SECOND;

/// The columns of `machine` that are gauges.
const GAUGES: [(&str, Gauge); 18] = [
    ("context_switches", Gauge::ContextSwitches),
    ("interrupts", Gauge::Interrupts),
    ("forks", Gauge::Forks),
    ("load_1", Gauge::Load1),
    ("load_5", Gauge::Load5),
    ("load_15", Gauge::Load15),
    ("memory_bytes", Gauge::MemTotal),
    ("memory_free_bytes", Gauge::MemFree),
    ("memory_available_bytes", Gauge::MemAvailable),
    ("buffers_bytes", Gauge::Buffers),
    ("swap_total_bytes", Gauge::SwapTotal),
    ("swap_free_bytes", Gauge::SwapFree),
    ("cpu_some_ns", Gauge::CpuSome),
    ("memory_some_ns", Gauge::MemorySome),
    ("memory_full_ns", Gauge::MemoryFull),
    ("io_some_ns", Gauge::IoSome),
    ("io_full_ns", Gauge::IoFull),
    ("cached_bytes", Gauge::Cached),
];
/// The page cache has these as well.
const OF_CACHE: [&str; 2] = ["reclaimable_bytes", "shared_bytes"];
const TIMES: [&str; 10] = [
    "user_ns",
    "nice_ns",
    "system_ns",
    "idle_ns",
    "iowait_ns",
    "irq_ns",
    "softirq_ns",
    "steal_ns",
    "guest_ns",
    "guest_nice_ns",
];

/// Where walks are read from.
#[derive(Debug)]
pub enum Stored {
    /// A history.
    History(Box<History>),
    /// The last minutes.
    Memory(Box<Memory>),
}

impl Stored {
    /// Its name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::History(_) => "history",
            Self::Memory(_) => "memory",
        }
    }

    /// The walks around a time.
    pub fn steps(&mut self, time: i64) -> Result<Steps, Error> {
        let history = match self {
            Self::History(history) => history,
            Self::Memory(memory) => return Ok(memory.steps()),
        };
        let from = time.div_euclid(HOUR) * HOUR;
        let to = from.saturating_add(HOUR);
        let columns = GAUGES.iter().map(|(name, _)| *name);
        let columns: Vec<_> = columns.chain(OF_CACHE).chain(TIMES).collect();
        let all = history.walks_with(from - BEFORE, to - 1, &columns, |walk, values| Step {
            machine: machine(&walk, values),
            walk,
        })?;
        Ok(Steps {
            time: (from, to),
            all,
        })
    }

    /// The processes of a walk.
    pub fn moment(&mut self, walk: &Walk, fields: Fields) -> Result<Moment, Error> {
        match self {
            Self::History(history) => history.at(walk.time, fields),
            Self::Memory(memory) => memory.moment(walk),
        }
    }

    /// The exits between two walks, the later of which saw `now`.
    pub fn exits(&mut self, before: &Walk, walk: &Walk, now: &Moment) -> Result<Exits, Error> {
        let history = match self {
            Self::History(history) => history,
            Self::Memory(memory) => return Ok(memory.exits(walk)),
        };
        let (mut all, mut texts) = (Vec::new(), Texts::default());
        let snapshot = now.snapshot();
        history.exits_between(before, walk, |exited| {
            texts.extend(exited.texts);
            let exit = exited.exit;
            // Of two processes with one pid the living one keeps its command line.
            if let Some(line) = exited.line.filter(|_| snapshot.get(exit.pid).is_none()) {
                texts.add_line(exit.pid, exit.start_ns, line.get());
            }
            all.push(exit);
        })?;
        let lacking = match walk.lost_exits {
            None => NOT_RECORDED,
            Some(_) if before.lasts_until(walk.time) => "",
            Some(_) => NO_WALK_BEFORE,
        };
        Ok(Exits {
            all: lacking.is_empty().then_some(all),
            lacking,
            lost: walk.lost_exits.filter(|_| lacking.is_empty()).unwrap_or(0),
            texts,
        })
    }

    /// The nearest walks before and after a time, far away.
    pub fn around(&mut self, time: i64) -> Result<(Option<i64>, Option<i64>), Error> {
        match self {
            Self::History(history) => history.around(time),
            Self::Memory(memory) => {
                let all = memory.steps().all;
                let times = || all.iter().map(|step| step.walk.time);
                Ok((
                    times().rfind(|of| *of < time),
                    times().find(|of| *of > time),
                ))
            }
        }
    }

    /// The first walk after a time that did not see a process which was there then.
    pub fn end_of(&mut self, pid: u32, start_ns: u64, from: i64) -> Result<Option<i64>, Error> {
        match self {
            Self::History(history) => history.end_of(pid, start_ns, from),
            Self::Memory(memory) => Ok(memory.end_of(pid, start_ns, from)),
        }
    }

    /// Says what is known around a time of which nothing is.
    pub fn gap(&mut self, time: i64) -> Result<Error, Error> {
        let (before, after) = self.around(time)?;
        Ok(Error::Gap {
            asked: time,
            before,
            after,
            damaged: false,
        })
    }

    /// How many damaged parts were met, and the last of them, if they are more than these.
    pub fn damage(&self, known: usize) -> Option<(usize, String)> {
        let Self::History(history) = self else {
            return None;
        };
        let damaged = history.damaged();
        let last = damaged.last().filter(|_| damaged.len() > known)?;
        let text = format!("damaged: {}: {}", last.path.display(), last.error);
        Some((damaged.len(), text))
    }
}

/// The machine at a walk. What was not recorded is not known.
fn machine(walk: &Walk, values: &[Option<i64>]) -> Machine {
    let value = |at: usize| values.get(at).copied().flatten();
    let value = |at| value(at).and_then(|value| u64::try_from(value).ok());
    let mut machine = Machine::default();
    for (at, (_, gauge)) in GAUGES.into_iter().enumerate() {
        machine.set(gauge, value(at));
    }
    let cached = machine.get(Gauge::Cached).and_then(|cached| {
        let [reclaimable, shared] = [0, 1].map(|at| value(GAUGES.len() + at));
        let all = cached.checked_add(reclaimable.unwrap_or(0))?;
        Some(all.saturating_sub(shared.unwrap_or(0)))
    });
    machine.set(Gauge::Cached, cached);
    let calendar = u64::try_from(walk.time).ok();
    machine.set(
        Gauge::Calendar,
        calendar.and_then(|time| time.checked_mul(1000)),
    );
    machine.set(Gauge::Uptime, Some(walk.began_ns));
    let first = GAUGES.len() + OF_CACHE.len();
    let times = (first..first + TIMES.len()).map(value);
    machine.total = times
        .collect::<Option<Vec<_>>>()
        .and_then(|times| times.try_into().ok());
    machine
}
