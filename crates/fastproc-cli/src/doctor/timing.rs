//! `fastproc doctor --timing`: the time that each part of opening takes.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use fastproc::{Collector, Fields, Part, SourceKind, counters::Counters, exits::Exits};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// The default fields of `ps`.
pub const FIELDS: Fields = Fields::TOP.union(Fields::USERS);

/// A source, or another thing that can be opened.
#[derive(Serialize)]
pub struct Timing {
    opened: &'static str,
    cpu_ms: f64,
    wall_ms: f64,
    parts: Vec<TimedPart>,
}

#[derive(Serialize)]
struct TimedPart {
    part: &'static str,
    cpu_ms: f64,
    wall_ms: f64,
}

impl Timing {
    fn new(opened: &'static str, parts: &[Part]) -> Self {
        let mut timing = Self {
            opened,
            cpu_ms: 0.0,
            wall_ms: 0.0,
            parts: Vec::new(),
        };
        for part in parts {
            timing.add(part.name, part.cpu, part.wall);
        }
        timing
    }

    fn add(&mut self, part: &'static str, cpu: Duration, wall: Duration) {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        self.cpu_ms += ms(cpu);
        self.wall_ms += ms(wall);
        self.parts.push(TimedPart {
            part,
            cpu_ms: ms(cpu),
            wall_ms: ms(wall),
        });
    }
}

/// Opens everything that can be opened here, once. The first one finds cold caches.
pub fn all() -> Vec<Timing> {
    let sources = SourceKind::LOCAL.into_iter().filter_map(source);
    let counters = Counters::open().ok();
    let counters = counters.filter(|counters| counters.unavailable().is_none());
    let counters = counters.map(|counters| Timing::new("counters", counters.opening()));
    let exits = Exits::builder().open().ok();
    let exits = exits.map(|exits| Timing::new("exits", exits.opening()));
    sources.chain(counters).chain(exits).collect()
}

fn source(kind: SourceKind) -> Option<Timing> {
    let collector = Collector::builder()
        .source(Some(kind))
        .fields(FIELDS)
        .open();
    let mut collector = collector.ok()?;
    let mut timing = Timing::new(kind.name(), collector.opening());
    let (cpu, wall) = (cpu(), Instant::now());
    collector.snapshot().ok()?;
    timing.add(
        "first snapshot",
        self::cpu().saturating_sub(cpu),
        wall.elapsed(),
    );
    Some(timing)
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Writes a table.
pub fn print(out: &mut impl Write, timings: &[Timing]) -> io::Result<()> {
    if timings.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "opening       {:<34} {:>8} {:>9}",
        "for the fields of ps", "CPU ms", "wall ms"
    )?;
    for timing in timings {
        let line = |out: &mut dyn Write, name: &str, cpu: f64, wall: f64| {
            writeln!(out, "  {name:<46} {cpu:>8.3} {wall:>9.3}")
        };
        line(out, timing.opened, timing.cpu_ms, timing.wall_ms)?;
        for part in &timing.parts {
            line(out, &format!("  {}", part.part), part.cpu_ms, part.wall_ms)?;
        }
    }
    Ok(())
}
