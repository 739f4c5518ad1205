//! Measures several ways to do the same. They are interleaved, so that a disturbance of the machine affects all of
//! them.

use std::{error::Error, time::Duration};

use rustix::{
    thread::{CpuSet, sched_setaffinity},
    time::{ClockId, Timespec, clock_gettime},
};

use super::report::Spread;

/// An error while measuring.
pub type Failure = Box<dyn Error + Send + Sync>;

/// One way to do it.
pub struct Case<'a> {
    /// Its name in the report.
    pub name: &'static str,
    /// Does it once. Returns how many items (processes, counters) it has read.
    pub run: Box<dyn FnMut() -> Result<usize, Failure> + 'a>,
}

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Rounds that do not count: caches fill, descriptors open, branches are learned.
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

impl Plan {
    /// How often each case is run.
    pub fn runs(&self) -> u32 {
        self.warm_up + self.rounds
    }
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
        Spread::of(
            self.rounds
                .iter()
                .map(|round| per_thing(round.cpu, round.count)),
        )
    }

    /// The same for the first runs.
    pub fn cold_cpu_us(&self) -> Spread {
        Spread::of(
            self.cold
                .iter()
                .map(|round| per_thing(round.cpu, round.count)),
        )
    }

    /// Microseconds of wall-clock time.
    pub fn wall_us(&self) -> Spread {
        Spread::of(
            self.rounds
                .iter()
                .map(|round| per_thing(round.wall, round.count)),
        )
    }

    /// The number of items read: the median.
    pub fn count(&self) -> usize {
        Spread::of(self.rounds.iter().map(|round| round.count as f64)).median as usize
    }
}

fn per_thing(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

/// Runs every case several times in a row in each round. Each round begins with another case, so that none always
/// follows the same one. The first run finds the caches as the other cases left them, and is kept apart.
///
/// Calls `prepare` before each run of the case of that name, and does not measure it; calls `done` after each case.
pub fn measure(
    cases: &mut [Case<'_>],
    plan: Plan,
    mut prepare: impl FnMut(&'static str) -> Result<(), Failure>,
    mut done: impl FnMut(),
) -> Result<Vec<Measured>, Failure> {
    let mut once = |case: &mut Case<'_>| {
        prepare(case.name)?;
        once(case)
    };
    if let Some(cpu) = plan.cpu {
        stay_on(cpu)?;
    }
    let mut measured: Vec<Measured> = cases
        .iter()
        .map(|case| Measured {
            name: case.name,
            ..Measured::default()
        })
        .collect();
    let count = cases.len();
    for turn in 0..plan.runs() as usize {
        for index in (0..count).map(|index| (index + turn) % count) {
            for _ in 0..plan.prime {
                once(&mut cases[index])?;
            }
            if plan.prime > 0 {
                once(&mut cases[0])?;
            }
            let cold = once(&mut cases[index])?;
            let counts = turn >= plan.warm_up as usize;
            if counts {
                measured[index].cold.push(cold);
            }
            for _ in 0..plan.repeat {
                let warm = once(&mut cases[index])?;
                if counts {
                    measured[index].rounds.push(warm);
                }
            }
            done();
        }
    }
    Ok(measured)
}

fn once(case: &mut Case<'_>) -> Result<Round, Failure> {
    let (wall, cpu) = (clock(ClockId::Monotonic), clock(ClockId::ThreadCPUTime));
    let result = (case.run)();
    let (cpu, wall) = (
        clock(ClockId::ThreadCPUTime).saturating_sub(cpu),
        clock(ClockId::Monotonic).saturating_sub(wall),
    );
    let count = result.map_err(|error| format!("{}: {error}", case.name))?;
    if count == 0 {
        return Err(format!("{}: it read nothing", case.name).into());
    }
    Ok(Round { cpu, wall, count })
}

/// The time of a clock.
pub fn clock(id: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(id);
    Duration::new(tv_sec.unsigned_abs(), tv_nsec as u32)
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

    fn plan(warm_up: u32, rounds: u32, cpu: Option<usize>) -> Plan {
        Plan {
            warm_up,
            rounds,
            prime: 0,
            repeat: 1,
            cpu,
        }
    }

    #[test]
    fn every_case_runs_twice_a_round_and_warm_up_is_not_counted() {
        let log = RefCell::new(Vec::new());
        let case = |name: &'static str, count| Case {
            name,
            run: Box::new({
                let log = &log;
                move || {
                    log.borrow_mut().push(name);
                    Ok(count)
                }
            }),
        };
        let mut cases = [case("a", 1), case("b", 20), case("c", 300)];
        let mut runs = 0;
        let measured = measure(&mut cases, plan(1, 2, None), |_| Ok(()), || runs += 1).unwrap();
        assert_eq!(
            *log.borrow(),
            [
                "a", "a", "b", "b", "c", "c", "b", "b", "c", "c", "a", "a", "c", "c", "a", "a",
                "b", "b"
            ]
        );
        assert_eq!(runs, 9);
        assert!(
            measured
                .iter()
                .all(|case| case.rounds.len() == 2 && case.cold.len() == 2)
        );
        assert_eq!(
            measured.iter().map(Measured::count).collect::<Vec<_>>(),
            [1, 20, 300]
        );
    }

    #[test]
    fn times_are_for_each_thing_read() {
        let round = |cpu, wall, count| Round {
            cpu: Duration::from_micros(cpu),
            wall: Duration::from_micros(wall),
            count,
        };
        let measured = Measured {
            name: "x",
            rounds: vec![
                round(100, 400, 100),
                round(300, 800, 100),
                round(1_000, 600, 200),
            ],
            cold: vec![round(700, 700, 100)],
        };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let (cpu, wall) = (measured.cpu_us(), measured.wall_us());
        assert!(
            close(cpu.min, 1.0) && close(cpu.median, 3.0) && close(cpu.max, 5.0),
            "{cpu:?}"
        );
        assert!(
            close(wall.min, 3.0) && close(wall.median, 4.0) && close(wall.max, 8.0),
            "{wall:?}"
        );
    }

    #[test]
    fn a_case_that_reads_nothing_is_an_error_that_names_it() {
        let mut cases = [Case {
            name: "empty",
            run: Box::new(|| Ok(0)),
        }];
        let error = measure(&mut cases, plan(0, 1, None), |_| Ok(()), || ()).unwrap_err();
        assert!(error.to_string().contains("empty"), "{error}");
    }

    #[test]
    fn a_failure_names_its_case() {
        let mut cases = [Case {
            name: "broken",
            run: Box::new(|| Err("no luck".into())),
        }];
        let error = measure(&mut cases, plan(0, 1, None), |_| Ok(()), || ()).unwrap_err();
        assert_eq!(error.to_string(), "broken: no luck");
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error() {
        for cpu in [1_000, usize::MAX] {
            let plan = plan(0, 1, Some(cpu));
            assert!(measure(&mut [], plan, |_| Ok(()), || ()).is_err());
        }
    }
}
