//! `fastproc bench top`: the cost of a screen of processes, on a pseudo-terminal, beside htop, btop and top.

use std::{
    env,
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use indicatif::ProgressBar;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use serde::Serialize;

use super::{
    command::{Ending, cpu_ns, resident_mb},
    idle::Idle,
    measure::Failure,
    report::{Column, Report, Row, Skipped, Spread, column, progress},
};

/// Arguments of `fastproc bench top`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this many idle processes first, for one number after the other, and end them afterwards.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [300, 4000])]
    processes: Vec<usize>,
    /// Measure each program this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure this many screens each time, after the first.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    screens: u32,
    /// Press this many keys, and measure how soon the screen answers.
    #[arg(long, value_name = "N", default_value_t = 100)]
    keys: usize,
    /// Let one in N of the idle processes run before each refresh.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ran: Option<u32>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
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

/// A program and its arguments.
struct Program {
    case: &'static str,
    command: &'static str,
    arguments: &'static [&'static str],
    /// Seconds between two refreshes; the time for a refresh may be added.
    interval: f64,
}

/// The interval of the others, in seconds.
const LOOKS_EVERY: f64 = 0.5;

/// The program that is compared with the others.
const OURS: &str = "fastproc";

/// Every program refreshes twice a second; fastproc also ten times, which others cannot.
const PROGRAMS: [Program; 5] = [
    Program {
        case: "fastproc",
        command: OURS,
        arguments: &[
            "top",
            "--interval",
            "0.5",
            "--settings",
            "/proc/nowhere/top.toml",
        ],
        interval: LOOKS_EVERY,
    },
    Program {
        case: "fastproc-10hz",
        command: OURS,
        arguments: &[
            "top",
            "--interval",
            "0.1",
            "--settings",
            "/proc/nowhere/top.toml",
        ],
        interval: 0.1,
    },
    Program {
        case: "htop",
        command: "htop",
        arguments: &["--delay", "5"],
        interval: LOOKS_EVERY,
    },
    Program {
        case: "btop",
        command: "btop",
        arguments: &["--update", "500"],
        interval: LOOKS_EVERY,
    },
    Program {
        case: "top",
        command: "top",
        arguments: &["-d", "0.5"],
        interval: LOOKS_EVERY,
    },
];

#[derive(Debug, Serialize)]
struct Head {
    columns: u16,
    lines: u16,
    keys: Vec<Keys>,
}

/// Times from a key to the end of the screen that it changes.
#[derive(Debug, Serialize)]
struct Keys {
    processes: usize,
    pressed: usize,
    ms_median: f64,
    ms_p99: f64,
}

#[derive(Debug, Serialize)]
struct Screen {
    case: &'static str,
    processes: usize,
    interval_seconds: f64,
    cpu_ms_per_refresh: Spread,
    cpu_percent_of_a_core: f64,
    resident_mb: f64,
    /// How many times cheaper the refresh of fastproc is, measured in the same round with the same interval.
    times_fastproc: f64,
}

impl Row for Screen {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("processes", 0),
        column("every s", 1),
        column("CPU ms/refresh", 0),
        column("min", 3),
        column("max", 3),
        column("% of a core", 0),
        column("times fastproc", 0),
        column("resident MB", 1),
    ];

    fn cells(&self) -> Vec<String> {
        let cpu = self.cpu_ms_per_refresh;
        vec![
            self.case.to_owned(),
            self.processes.to_string(),
            self.interval_seconds.to_string(),
            format!("{:.2}", cpu.median),
            format!("{:.2}", cpu.min),
            format!("{:.2}", cpu.max),
            format!("{:.2}", self.cpu_percent_of_a_core),
            format!("{:.1}", self.times_fastproc),
            format!("{:.1}", self.resident_mb),
        ]
    }
}

/// A program on its own terminal.
struct Running {
    terminal: File,
    child: Ending,
}

impl Running {
    fn start(program: &Program) -> io::Result<Self> {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&terminal)?;
        unlockpt(&terminal)?;
        tcsetwinsize(&terminal, SIZE)?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let end = rustix::fs::open(ptsname(&terminal, Vec::new())?, flags, Mode::empty())?;
        let beside = env::current_exe()?.with_file_name(program.command);
        let path = if beside.is_file() {
            beside
        } else {
            program.command.into()
        };
        let mut command = Command::new(path);
        command
            .args(program.arguments)
            .env("TERM", "xterm-256color")
            // btop requires UTF-8.
            .env("LC_ALL", "C.UTF-8")
            // Ignore the user's settings; no folder for new ones can be created there.
            .env("HOME", "/proc")
            .env("XDG_CONFIG_HOME", "/proc")
            .stdin(Stdio::from(end.try_clone()?))
            .stdout(Stdio::from(end.try_clone()?))
            .stderr(Stdio::null());
        Ok(Self {
            terminal: terminal.into(),
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
    let ours = program.command == OURS;
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

/// Milliseconds from a key to the end of the screen that it changes.
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

/// Measures every program beside this many idle processes, in turn with the others.
fn screens(
    programs: &[&Program],
    args: &Args,
    processes: usize,
    progress: &ProgressBar,
) -> Result<(Vec<Screen>, Keys), Failure> {
    let idle = Idle::start_some(processes)?;
    let mut looks: Vec<Vec<Look>> = programs.iter().map(|_| Vec::new()).collect();
    for round in 0..args.rounds as usize {
        for i in 0..programs.len() {
            let at = (i + round) % programs.len();
            let program = programs[at];
            progress.set_message(format!("{} at {processes}", program.case));
            // The same duration for each.
            let screens = f64::from(args.screens) * LOOKS_EVERY / program.interval;
            let wake = || Idle::wake_some(idle.as_ref(), args.ran);
            looks[at].push(look(program, screens.round() as u32, wake)?);
            progress.inc(1);
        }
    }
    progress.set_message(format!("keys at {processes}"));
    let times = key_times(args.keys.max(1))?;
    drop(idle);
    let keys = Keys {
        processes,
        pressed: times.len(),
        ms_median: times[times.len() / 2],
        ms_p99: times[times.len() * 99 / 100],
    };
    let ours = programs
        .iter()
        .position(|program| program.case == "fastproc");
    let ours = ours.ok_or("fastproc is not installed")?;
    let screens = programs.iter().zip(&looks).map(|(program, of)| {
        let pairs = of.iter().zip(&looks[ours]);
        let times = pairs.map(|(look, ours)| look.cpu_ms_per_refresh / ours.cpu_ms_per_refresh);
        Screen {
            case: program.case,
            processes,
            interval_seconds: program.interval,
            cpu_ms_per_refresh: Spread::of(of.iter().map(|look| look.cpu_ms_per_refresh)),
            cpu_percent_of_a_core: Spread::of(of.iter().map(|look| look.percent)).median,
            resident_mb: Spread::of(of.iter().map(|look| look.resident_mb)).median,
            times_fastproc: Spread::of(times).median,
        }
    });
    Ok((screens.collect(), keys))
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let installed = |program: &Program| {
        let paths = env::var_os("PATH").unwrap_or_default();
        let beside =
            env::current_exe().is_ok_and(|path| path.with_file_name(program.command).is_file());
        beside || env::split_paths(&paths).any(|folder| folder.join(program.command).is_file())
    };
    let (mut programs, mut skipped) = (Vec::new(), Vec::new());
    for program in &PROGRAMS {
        let reason = if installed(program) {
            match look(program, 1, || Ok(())) {
                Err(error) if program.command != OURS => format!("{}: {error}", program.command),
                _ => {
                    programs.push(program);
                    continue;
                }
            }
        } else {
            format!("{} is not installed", program.command)
        };
        skipped.push(Skipped {
            case: program.case,
            reason,
        });
    }
    let (mut rows, mut keys) = (Vec::new(), Vec::new());
    let steps = args.processes.len() as u64 * programs.len() as u64 * u64::from(args.rounds);
    let progress = progress(steps, "{msg}");
    for &processes in &args.processes {
        let (screens, of) = screens(&programs, args, processes, &progress)?;
        rows.extend(screens);
        keys.push(of);
    }
    progress.finish_and_clear();
    let notes: Vec<_> = keys
        .iter()
        .map(|keys| {
            format!(
                "{} processes, ten refreshes a second: from a key to its screen {:.2} ms (median), {:.2} ms (p99), of {} keys.",
                keys.processes, keys.ms_median, keys.ms_p99, keys.pressed
            )
        })
        .collect();
    let head = Head {
        columns: SIZE.ws_col,
        lines: SIZE.ws_row,
        keys,
    };
    let mut report = Report::new("top", head, rows, skipped);
    for note in notes {
        report.note(note);
    }
    report.print("A screen of processes", args.json)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_on_a_terminal_is_measured() {
        let shell = Program {
            case: "sh",
            command: "sh",
            arguments: &["-c", "while :; do :; done"],
            interval: 1.0,
        };
        let mut running = Running::start(&shell).expect("there is a shell");
        let before = running.cpu().expect("/proc shows the process");
        while running.cpu().expect("/proc shows the process") == before {
            let soon = Duration::from_millis(10);
            running
                .read(soon, &mut Vec::new())
                .expect("the terminal can be read");
        }
        assert!(running.resident_mb().expect("/proc shows the process") > 0.0);
    }
}
