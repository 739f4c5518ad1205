//! `fastproc bench top`: the cost of a screen of processes, on a pseudo-terminal, beside htop, btop and top.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use nix::pty::{Winsize, openpty};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{FdFlags, fcntl_setfd},
};
use serde_json::json;

use super::{
    command::{Ending, command, cpu_ns, resident_mb},
    idle::{Idle, Ran},
    measure::{Common, Failure, in_turn, percentile},
    report::{Column, Report, Spread, column},
};

/// Arguments of `fastproc bench top`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this many idle processes first, for one number after the other, and end them afterwards.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [300, 4000])]
    processes: Vec<usize>,
    /// Measure this many screens each time, after the first.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    screens: u32,
    /// Press this many keys, and measure how soon the screen answers.
    #[arg(long, value_name = "N", default_value_t = 100)]
    keys: usize,
    #[command(flatten)]
    ran: Ran,
}

/// The screen: as large as a usual one.
const SIZE: Winsize = Winsize {
    ws_row: 40,
    ws_col: 120,
    ws_xpixel: 0,
    ws_ypixel: 0,
};
/// A screen of fastproc ends with this.
const SCREEN_ENDS: &[u8] = b"\x1b[?2026l";

/// A program on a terminal.
struct Program {
    case: &'static str,
    line: &'static str,
    /// Seconds between two refreshes; the time for a refresh may be added.
    interval: f64,
}

/// The interval of the others, in seconds.
const LOOKS_EVERY: f64 = 0.5;

/// The program that is compared with the others.
const OURS: &str = "fastproc";

const fn program(case: &'static str, line: &'static str, interval: f64) -> Program {
    Program {
        case,
        line,
        interval,
    }
}

/// Every program refreshes twice a second; fastproc also ten times, which others cannot, and without the user's settings.
const PROGRAMS: [Program; 5] = [
    program(
        OURS,
        "fastproc top --settings /proc/nowhere/top.toml --interval 0.5",
        LOOKS_EVERY,
    ),
    program(
        "fastproc-10hz",
        "fastproc top --settings /proc/nowhere/top.toml --interval 0.1",
        0.1,
    ),
    program("htop", "htop --delay 5", LOOKS_EVERY),
    program("btop", "btop --update 500", LOOKS_EVERY),
    program("top", "top -d 0.5", LOOKS_EVERY),
];

impl Program {
    fn is_ours(&self) -> bool {
        self.case.starts_with(OURS)
    }
}

const COLUMNS: [Column; 7] = [
    column("case", "case", 0, 0),
    column("processes", "processes", 0, 0),
    column("interval_seconds", "every s", 1, 1),
    column("cpu_ms_per_refresh", "CPU ms/refresh", 2, 0),
    column("cpu_percent_of_a_core", "% of a core", 2, 0),
    // How many times cheaper the refresh of fastproc is, measured in the same round with the same interval.
    column("times_fastproc", "times fastproc", 1, 0),
    column("resident_mb", "resident MB", 1, 1),
];

/// A program on its own terminal.
struct Running {
    terminal: File,
    child: Ending,
}

impl Running {
    fn start(program: &Program) -> io::Result<Self> {
        let terminal = openpty(Some(&SIZE), None)?;
        fcntl_setfd(&terminal.master, FdFlags::CLOEXEC)?;
        let mut command = command(program.line)?;
        command
            .env("TERM", "xterm-256color")
            // btop requires UTF-8.
            .env("LC_ALL", "C.UTF-8")
            // Ignore the user's settings; no folder for new ones can be created there.
            .env("HOME", "/proc")
            .env("XDG_CONFIG_HOME", "/proc")
            .stdin(terminal.slave.try_clone()?)
            .stdout(terminal.slave)
            .stderr(Stdio::null());
        Ok(Self {
            terminal: terminal.master.into(),
            child: Ending::start(&mut command)?,
        })
    }

    /// Reads the next output, if there is some within that time.
    fn read(&mut self, within: Duration, bytes: &mut Vec<u8>) -> io::Result<bool> {
        let timeout = Timespec::try_from(within).map_err(io::Error::other)?;
        let mut ready = [PollFd::from_borrowed_fd(
            self.terminal.as_fd(),
            PollFlags::IN,
        )];
        if poll(&mut ready, Some(&timeout))? == 0 {
            return Ok(false);
        }
        let mut piece = [0; 1 << 14];
        let read = self.terminal.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..read]);
        Ok(true)
    }

    /// Reads until another screen has been drawn: fastproc marks the end, and others draw without a pause.
    fn screen(&mut self, ours: bool) -> io::Result<()> {
        let (mut bytes, end) = (Vec::new(), Instant::now() + START);
        loop {
            let within = if ours || bytes.is_empty() {
                end.saturating_duration_since(Instant::now())
            } else {
                PAUSE
            };
            match self.read(within, &mut bytes)? {
                false if bytes.is_empty() || ours => {
                    return Err(io::Error::other("no screen was drawn"));
                }
                false => return Ok(()),
                true => {}
            }
            let mut parts = bytes.windows(SCREEN_ENDS.len());
            if ours && parts.any(|part| part == SCREEN_ENDS) {
                return Ok(());
            }
        }
    }

    fn cpu(&self) -> Result<Duration, Failure> {
        cpu_ns(self.child.0.id()).map(Duration::from_nanos)
    }

    fn resident_mb(&self) -> Result<f64, Failure> {
        resident_mb(self.child.0.id())
    }
}

/// How long a program may take to show a screen.
const START: Duration = Duration::from_secs(30);
/// A pause longer than those within a screen.
const PAUSE: Duration = Duration::from_millis(150);
/// Refreshes that do not count: the start, and the first one.
const WARM_UP: u32 = 2;

/// What a program took.
pub struct Look {
    /// CPU time.
    pub cpu_ms_per_refresh: f64,
    percent: f64,
    /// Resident set.
    pub resident_mb: f64,
}

/// A few screens of `fastproc top`, beside the processes that exist.
pub fn refresh() -> Result<Look, Failure> {
    look(&PROGRAMS[0], 3, || Ok(()))
}

/// Calls `wake` before each screen that counts.
fn look(
    program: &Program,
    screens: u32,
    wake: impl Fn() -> io::Result<()>,
) -> Result<Look, Failure> {
    let mut running = Running::start(program)?;
    let ours = program.is_ours();
    let mut draw = |screens| {
        (0..screens)
            .try_for_each(|_| wake().and_then(|()| running.screen(ours)))
            .map_err(|error| format!("{}: {error}", program.case))
            .and_then(|()| running.cpu().map_err(|error| error.to_string()))
    };
    let before = draw(WARM_UP)?;
    let began = Instant::now();
    let used = draw(screens)?.saturating_sub(before).as_secs_f64();
    Ok(Look {
        cpu_ms_per_refresh: used / f64::from(screens) * 1e3,
        percent: used / began.elapsed().as_secs_f64() * 100.0,
        resident_mb: running.resident_mb()?,
    })
}

/// Milliseconds from a key to the end of the screen that it changes, sorted.
fn key_times(keys: usize) -> Result<Vec<f64>, Failure> {
    let mut running = Running::start(&PROGRAMS[1])?;
    running.screen(true)?;
    let mut times = Vec::new();
    for i in 0..keys {
        // At any point of an interval, while nothing else is written.
        thread::sleep(Duration::from_millis(20 + (i as u64 * 37) % 100));
        while running.read(Duration::from_millis(1), &mut Vec::new())? {}
        let pressed = Instant::now();
        running
            .terminal
            .write_all(if i % 60 < 30 { b"\x1b[B" } else { b"\x1b[A" })?;
        running.screen(true)?;
        times.push(pressed.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Measures every program beside this many idle processes, in turn with the others. Returns the times of keys.
fn screens(
    report: &mut Report,
    programs: &[&Program],
    args: &Args,
    processes: usize,
    rounds: u32,
) -> Result<Vec<f64>, Failure> {
    let idle = Idle::start(processes)?;
    let mut looks: Vec<Vec<Look>> = programs.iter().map(|_| Vec::new()).collect();
    in_turn(programs.len(), 0, rounds, |at, _| {
        let program = programs[at];
        // The same duration for each.
        let screens = f64::from(args.screens) * LOOKS_EVERY / program.interval;
        let wake = || idle.wake(args.ran.ran);
        looks[at].push(look(program, screens.round() as u32, wake)?);
        Ok(())
    })?;
    let times = key_times(args.keys.max(1))?;
    drop(idle);
    let ours = programs.iter().position(|program| program.case == OURS);
    let ours = &looks[ours.ok_or("fastproc is not installed")?];
    for (program, of) in programs.iter().zip(&looks) {
        let spread = |value: fn(&Look) -> f64| Spread::of(of.iter().map(value));
        let pairs = of.iter().zip(ours);
        let times = pairs.map(|(look, ours)| look.cpu_ms_per_refresh / ours.cpu_ms_per_refresh);
        report.row([
            program.case.into(),
            processes.into(),
            program.interval.into(),
            spread(|look| look.cpu_ms_per_refresh).into(),
            spread(|look| look.percent).median.into(),
            Spread::of(times).median.into(),
            spread(|look| look.resident_mb).median.into(),
        ]);
    }
    Ok(times)
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let mut report = Report::new("top", "A screen of processes", &COLUMNS);
    let mut programs = Vec::new();
    for program in &PROGRAMS {
        match look(program, 1, || Ok(())) {
            Err(error) if !program.is_ours() => report.skip(program.case, &error),
            _ => programs.push(program),
        }
    }
    let mut keys = Vec::new();
    for &processes in &args.processes {
        let times = screens(&mut report, &programs, args, processes, common.rounds(3))?;
        let [median, p99] = [0.5, 0.99].map(|part| percentile(&times, part));
        report.note(format!(
            "{processes} processes, ten refreshes a second: from a key to its screen {median:.2} ms (median), {p99:.2} ms (p99), \
             of {} keys.",
            times.len()
        ));
        keys.push(json!({
            "processes": processes, "pressed": times.len(), "ms_median": median, "ms_p99": p99,
        }));
    }
    report.head(json!({"columns": SIZE.ws_col, "lines": SIZE.ws_row, "keys": keys}));
    Ok(report.print(common.json)?)
}
