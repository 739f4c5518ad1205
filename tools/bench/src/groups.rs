//! `fastproc bench groups`: how much of the CPU time that the kernel counts is in the exporter's groups, while processes come
//! and go as when a program is compiled.

use std::{
    io,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{
    exits::kernel_seconds,
    measure::Failure,
    report::{Column, Report, Row, Skipped, column, four_decimals},
    server::Server,
};

/// Every process, a kernel thread too, is in one group.
const ONE_GROUP: &str = "process_names: [{name: all, cmdline: ['.*']}]\n";
const CASES: [(&str, &[&str]); 2] = [("groups", &[]), ("without-exits", &["--exits=false"])];
/// A driver that starts a preprocessor, a compiler and an assembler one after the other, each for some time: in rounds of a loop.
const JOB: &str =
    "for n in $1 $2 $3; do sh -c 'i=0; while [ $i -lt $0 ]; do i=$((i+1)); done' $n; done";
/// How many rounds each of them has, in turn: from a millisecond to some seconds.
const ROUNDS: [[u32; 3]; 8] = [
    [300, 4_000, 500],
    [1_000, 60_000, 4_000],
    [200, 300, 200],
    [500, 20_000, 1_000],
    [2_000, 400_000, 10_000],
    [300, 10_000, 800],
    [1_000, 100_000, 3_000],
    [4_000, 2_000_000, 30_000],
];

/// Arguments of `fastproc bench groups`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Compare for so long.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Scrape this often.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    interval: u64,
    /// Run so many jobs at once; 0: as many as there are CPUs.
    #[arg(long, value_name = "N", default_value_t = 0)]
    jobs: usize,
    /// End with status 2 if less than so many percent are in the groups.
    #[arg(long, value_name = "PERCENT")]
    at_least: Option<f64>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Head {
    seconds: u64,
    interval: u64,
    /// Jobs that ended, each of which was four processes.
    jobs: u64,
    /// What /proc/stat counted: everything but idle, waiting and stolen time.
    kernel_seconds: f64,
}

#[derive(Debug, Serialize)]
struct Found {
    case: &'static str,
    cpu_seconds: f64,
    /// Of what /proc/stat counted.
    #[serde(serialize_with = "four_decimals")]
    percent: f64,
    exits: Option<f64>,
    lost: Option<f64>,
}

impl Row for Found {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("CPU s", 0),
        column("% of /proc/stat", 0),
        column("exits", 1),
        column("lost", 1),
    ];

    fn cells(&self) -> Vec<String> {
        let count =
            |number: Option<f64>| number.map_or_else(|| "–".into(), |it| format!("{it:.0}"));
        vec![
            self.case.to_owned(),
            format!("{:.2}", self.cpu_seconds),
            format!("{:.2}", self.percent),
            count(self.exits),
            count(self.lost),
        ]
    }
}

/// Runs the benchmark.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (mut servers, mut skipped) = (Vec::new(), Vec::new());
    for (case, arguments) in CASES {
        let arguments = [
            &["--no-host", "--gather-fds=false", "--gather-wchan=false"],
            arguments,
        ]
        .concat();
        let started = Server::fastproc(&arguments, ONE_GROUP);
        match started.and_then(|mut server| Ok((server.text()?, server))) {
            Ok((_, server)) => servers.push((case, server, String::new(), String::new())),
            Err(error) => skipped.push(Skipped {
                case,
                reason: error.to_string(),
            }),
        }
    }
    let jobs = match args.jobs {
        0 => std::thread::available_parallelism()?.get(),
        jobs => jobs,
    };
    let mut storm = Storm::default();
    // It is under way when counting begins and when it ends.
    storm.run(jobs, Duration::from_secs(1))?;
    let before = kernel_seconds()?;
    for (_, server, text, _) in &mut servers {
        *text = server.text()?;
    }
    let (began, first) = (Instant::now(), storm.ended);
    let all = Duration::from_secs(args.seconds);
    while let Some(left) = all
        .checked_sub(began.elapsed())
        .filter(|left| !left.is_zero())
    {
        storm.run(jobs, left.min(Duration::from_secs(args.interval)))?;
        let is_last = began.elapsed() >= all;
        if is_last {
            break;
        }
        for (_, server, ..) in &mut servers {
            server.scrape(false)?;
        }
    }
    let kernel = kernel_seconds()? - before;
    for (_, server, _, text) in &mut servers {
        *text = server.text()?;
    }
    let jobs = storm.ended - first;
    drop(storm);
    let rows: Vec<Found> = servers
        .iter()
        .map(|(case, _, before, after)| {
            let grown = |name| Some(sum(after, name)? - sum(before, name)?);
            let cpu_seconds = grown("namedprocess_namegroup_cpu_seconds_total").unwrap_or(0.0);
            Found {
                case,
                cpu_seconds,
                percent: cpu_seconds / kernel * 100.0,
                exits: grown("fastproc_exits_total"),
                lost: grown("fastproc_exits_lost_total"),
            }
        })
        .collect();
    let percent = rows.first().map_or(0.0, |row| row.percent);
    let head = Head {
        seconds: args.seconds,
        interval: args.interval,
        jobs,
        kernel_seconds: kernel,
    };
    let mut report = Report::new("groups", head, rows, skipped);
    report.note(format!(
        "Of {kernel:.2} s that /proc/stat counted in {} s, with {jobs} jobs of four processes, {percent:.2} % are in the groups.",
        args.seconds
    ));
    report.print("groups", args.json)?;
    match args.at_least {
        Some(least) if percent < least => {
            Err(format!("{percent:.2} % are in the groups, and {least} were asked for").into())
        }
        _ => Ok(()),
    }
}

/// The sum of all series of this name; `None` without any.
fn sum(text: &str, name: &str) -> Option<f64> {
    let mut values = text
        .lines()
        .filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        })
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .peekable();
    values.peek()?;
    Some(values.sum())
}

/// Jobs, some at once. Those that run end with this.
#[derive(Default)]
struct Storm {
    running: Vec<Child>,
    started: usize,
    ended: u64,
}

impl Storm {
    /// Keeps so many running for so long.
    fn run(&mut self, jobs: usize, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let before = self.running.len();
            // What cannot be waited for has ended.
            self.running
                .retain_mut(|job| matches!(job.try_wait(), Ok(None)));
            self.ended += (before - self.running.len()) as u64;
            while self.running.len() < jobs {
                let rounds = ROUNDS[self.started % ROUNDS.len()];
                self.running.push(job(rounds)?);
                self.started += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

fn job(rounds: [u32; 3]) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", JOB, "driver"])
        .args(rounds.map(|rounds| rounds.to_string()))
        .stdin(Stdio::null())
        .spawn()
}

impl Drop for Storm {
    fn drop(&mut self) {
        // Each ends by itself within seconds.
        for child in &mut self.running {
            let _ = child.wait();
        }
    }
}
