//! The harness: measures several ways to do the same. They are interleaved, so that a disturbance of the machine affects
//! all of them.

use std::{error::Error, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CpuSet, sched_setaffinity},
    time::{ClockId, Timespec, clock_gettime},
};

use super::report::Spread;

/// An error while measuring.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Options of every benchmark.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Common {
    /// Print one JSON object instead of a table.
    #[arg(long, global = true)]
    pub json: bool,
    /// Measure each case this many times, in turn with the others. Default: 11; latency, hostile and top: 3; scale: 5;
    /// exits: 61.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
}

impl Common {
    /// The number of rounds; without the option the usual number of this benchmark.
    pub fn rounds(self, usual: u32) -> u32 {
        self.rounds.unwrap_or(usual)
    }
}

/// Runs `count` cases in turn: all of them in each round. Each round begins with another case, so that none always
/// follows the same one. `run` is called with the case and whether it counts: the rounds of the warm-up do not, in which
/// caches fill, descriptors open and branches are learned.
pub fn in_turn(
    count: usize,
    warm_up: u32,
    rounds: u32,
    mut run: impl FnMut(usize, bool) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let turns = warm_up + rounds;
    let progress = progress(u64::from(turns) * count as u64, "{pos}/{len} runs");
    for turn in 0..turns {
        for at in (0..count).map(|at| (at + turn as usize) % count) {
            run(at, turn >= warm_up)?;
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    Ok(())
}

/// A progress line on standard error, if that is a terminal, with this text behind the bar.
pub fn progress(length: u64, text: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {text}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(length).with_style(style)
}

/// One way to do it.
pub struct Case<'a> {
    /// Its name in the report.
    pub name: &'static str,
    run: Box<dyn FnMut() -> Result<usize, Failure> + 'a>,
}

impl<'a> Case<'a> {
    /// `run` does it once, and returns how many items (processes, counters) it has read.
    pub fn new(name: &'static str, run: impl FnMut() -> Result<usize, Failure> + 'a) -> Self {
        let run = Box::new(run);
        Self { name, run }
    }

    fn once(&mut self) -> Result<Round, Failure> {
        let (result, cpu, wall) = timed(|| (self.run)());
        let count = result.map_err(|error| format!("{}: {error}", self.name))?;
        if count == 0 {
            return Err(format!("{}: it read nothing", self.name).into());
        }
        Ok(Round { cpu, wall, count })
    }
}

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds that do not count.
    pub warm_up: u32,
    /// Rounds that count.
    pub rounds: u32,
    /// Runs of a case before the first that counts in a round, so that it has seen the changes that the other cases
    /// caused. After them the first case takes the caches again.
    pub prime: u32,
    /// Further runs in a row within a round, after the first: with the caches as the case left them.
    pub repeat: u32,
    /// Stay on this CPU, so that no round includes a migration.
    pub cpu: Option<usize>,
}

/// Measurements of one case in all rounds.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Its name.
    pub name: &'static str,
    /// For each round: the runs after the first, like those of a reader that returns before others have taken the
    /// caches.
    pub rounds: Vec<Round>,
    /// For each round: the first run, right after the other cases have used the caches.
    pub cold: Vec<Round>,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// CPU time of this thread, in the kernel and outside of it.
    pub cpu: Duration,
    /// Wall-clock time.
    pub wall: Duration,
    /// The number of items read.
    pub count: usize,
}

impl Measured {
    /// Microseconds of CPU time for each item.
    pub fn cpu_us(&self) -> Spread {
        Spread::of(self.rounds.iter().map(|of| us_each(of.cpu, of.count)))
    }

    /// The same for the first runs.
    pub fn cold_cpu_us(&self) -> Spread {
        Spread::of(self.cold.iter().map(|of| us_each(of.cpu, of.count)))
    }

    /// Microseconds of wall-clock time.
    pub fn wall_us(&self) -> Spread {
        Spread::of(self.rounds.iter().map(|of| us_each(of.wall, of.count)))
    }

    /// The number of items read: the median.
    pub fn count(&self) -> usize {
        Spread::of(self.rounds.iter().map(|of| of.count as f64)).median as usize
    }
}

fn us_each(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

/// The case of this name.
pub fn named<'m>(measured: &'m [Measured], name: &str) -> Result<&'m Measured, Failure> {
    let case = measured.iter().find(|case| case.name == name);
    case.ok_or_else(|| format!("{name} was not measured").into())
}

/// Runs every case several times in a row in each round. The first run finds the caches as the other cases left them, and
/// is kept apart. Calls `prepare` before each run of the case of that name, and does not measure it.
pub fn measure(
    cases: &mut [Case<'_>],
    plan: Plan,
    mut prepare: impl FnMut(&'static str) -> Result<(), Failure>,
) -> Result<Vec<Measured>, Failure> {
    let mut once = |case: &mut Case<'_>| {
        prepare(case.name)?;
        case.once()
    };
    if let Some(cpu) = plan.cpu {
        stay_on(cpu)?;
    }
    let names = cases.iter().map(|case| case.name);
    let mut measured: Vec<Measured> = names
        .map(|name| Measured {
            name,
            ..Measured::default()
        })
        .collect();
    in_turn(cases.len(), plan.warm_up, plan.rounds, |at, counts| {
        for _ in 0..plan.prime {
            once(&mut cases[at])?;
        }
        if plan.prime > 0 {
            once(&mut cases[0])?;
        }
        let cold = once(&mut cases[at])?;
        let warm = (0..plan.repeat).map(|_| once(&mut cases[at]));
        let warm = warm.collect::<Result<Vec<_>, _>>()?;
        if counts {
            measured[at].cold.push(cold);
            measured[at].rounds.extend(warm);
        }
        Ok(())
    })?;
    Ok(measured)
}

/// Does something, and returns the CPU time of this thread and the time that passed.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration, Duration) {
    let [wall, cpu] = [ClockId::Monotonic, ClockId::ThreadCPUTime].map(clock);
    let done = work();
    let cpu = clock(ClockId::ThreadCPUTime).saturating_sub(cpu);
    let wall = clock(ClockId::Monotonic).saturating_sub(wall);
    (done, cpu, wall)
}

/// The time of a clock.
pub fn clock(id: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(id);
    Duration::new(tv_sec.unsigned_abs(), tv_nsec as u32)
}

/// Milliseconds.
pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The value below which this part of the sorted values lies: one that was measured.
pub fn percentile(sorted: &[f64], part: f64) -> f64 {
    let place = ((sorted.len() as f64 * part).ceil() as usize).max(1) - 1;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// Raises the limit of open files to the kernel's usual maximum if that is allowed, or else to the hard limit.
pub fn raise_open_files() {
    for most in [Some(1 << 20), getrlimit(Resource::Nofile).maximum] {
        let limit = Rlimit {
            current: most,
            maximum: most,
        };
        if setrlimit(Resource::Nofile, limit).is_ok() {
            return;
        }
    }
}

/// Keeps this thread on one CPU.
pub fn stay_on(cpu: usize) -> Result<(), Failure> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(format!("there is no CPU {cpu}").into());
    }
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one)
        .map_err(|errno| format!("cannot stay on CPU {cpu}: {errno}").into())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const PLAN: Plan = Plan {
        warm_up: 1,
        rounds: 2,
        prime: 0,
        repeat: 1,
        cpu: None,
    };

    #[test]
    fn every_case_runs_twice_a_round_and_warm_up_is_not_counted() {
        let log = RefCell::new(String::new());
        let case = |name: &'static str, count| {
            let log = &log;
            Case::new(name, move || {
                log.borrow_mut().push_str(name);
                Ok(count)
            })
        };
        let mut cases = [case("a", 1), case("b", 20), case("c", 300)];
        let measured = measure(&mut cases, PLAN, |_| Ok(())).unwrap();
        assert_eq!(*log.borrow(), "aabbccbbccaaccaabb");
        let sizes = measured
            .iter()
            .map(|of| (of.rounds.len(), of.cold.len(), of.count()));
        assert!(sizes.eq([(2, 2, 1), (2, 2, 20), (2, 2, 300)]));
        // With priming: each case three times, the first again, and then it counts.
        log.borrow_mut().clear();
        let plan = Plan {
            warm_up: 0,
            rounds: 1,
            prime: 3,
            ..PLAN
        };
        measure(&mut cases, plan, |_| Ok(())).unwrap();
        assert_eq!(*log.borrow(), "aaaaaabbbabbcccacc");
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let sorted: Vec<f64> = (1..=1000).map(f64::from).collect();
        let all = [0.5, 0.99, 0.999, 1.0].map(|part| percentile(&sorted, part) as u64);
        assert_eq!(all, [500, 990, 999, 1000]);
        assert_eq!(
            [0.5, 1.0].map(|part| percentile(&[7.0], part) as u64),
            [7, 7]
        );
        assert!(percentile(&[], 0.5).is_nan());
    }
}
