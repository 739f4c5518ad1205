//! `fastproc bench attach`: the cost of a single snapshot, and how a service changes it. CPU time of reader and service
//! together.

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use fastproc::{Baseline, Collector, source::service};
use rustix::time::ClockId;
use serde::Serialize;

use super::{
    command::{cpu_ns, cpu_of, fastproc},
    idle::Idle,
    measure::{Failure, clock},
    report::{Column, Report, Row, Skipped, Spread, column, four_decimals, progress},
    service::Service,
};

const COLUMNS: [&str; 5] = [
    "ps",
    "--fields",
    "pid,state,rss,time,comm",
    "--format",
    "csv",
];
/// procps's tools, each measured with its own library and with the substitute. top refreshes once.
const TOOLS: [(&str, &str, &str, &[&str]); 3] = [
    ("ps-aux", "ps-aux-substitute", "ps", &["aux"]),
    (
        "pgrep",
        "pgrep-substitute",
        "pgrep",
        &["-x", "fastproc-idle"],
    ),
    (
        "top-batch",
        "top-batch-substitute",
        "top",
        &["-b", "-n2", "-d0.2"],
    ),
];
/// The suffix of cases with the substitute.
const SUBSTITUTE: &str = "-substitute";
const NOBODY: u32 = 65534;
/// The number of concurrent readers, their interval, and their snapshots.
const CLIENTS: usize = 200;
const PERIOD: Duration = Duration::from_millis(100);
const LOOKS: u32 = 20;

/// Arguments of `fastproc bench attach`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure with this many processes on the machine. Missing ones are started, idle, and removed afterwards; more
    /// processes are kept.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [100, 300, 1000, 4000])]
    processes: Vec<usize>,
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Measure only these cases, and those of ps(1) that they are compared with; no 200 readers.
    #[arg(long, value_name = "CASE", value_delimiter = ',')]
    cases: Vec<String>,
    /// Let one in N of the idle processes run before each snapshot.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ran: Option<u32>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Head {
    /// Files of `/proc` whose reading costs as much as loading the programs: between the two sizes at which the cheaper
    /// way changes. `null`: it does not change.
    break_even_files: Option<u64>,
    /// CPU time of this many readers with ten snapshots a second, and of the service, at the last size: share of one
    /// CPU.
    clients: usize,
    #[serde(serialize_with = "four_decimals")]
    clients_cpu_percent: f64,
}

#[derive(Debug, Serialize)]
struct Attach {
    case: &'static str,
    /// Processes on the machine.
    processes: usize,
    /// Reader and service together.
    cpu_ms: Spread,
    /// The service's part.
    service_cpu_ms: Spread,
    /// How many times cheaper than ps(1) with the same columns.
    #[serde(serialize_with = "four_decimals")]
    ratio_vs_ps: f64,
}

impl Row for Attach {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("processes", 0),
        column("CPU ms", 0),
        column("min", 2),
        column("max", 2),
        column("service ms", 1),
        column("times cheaper", 0),
    ];

    fn cells(&self) -> Vec<String> {
        let ms = |value: f64| format!("{value:.3}");
        vec![
            self.case.to_owned(),
            self.processes.to_string(),
            ms(self.cpu_ms.median),
            ms(self.cpu_ms.min),
            ms(self.cpu_ms.max),
            ms(self.service_cpu_ms.median),
            format!("{:.1}", self.ratio_vs_ps),
        ]
    }
}

/// A way to make a snapshot.
enum How {
    /// A command, run as nobody or as the current user, with the service or without.
    Command {
        program: PathBuf,
        arguments: Vec<&'static str>,
        nobody: bool,
    },
    /// A collector that stays open.
    Reader(Box<Collector>),
    /// The same, and the changes since its last snapshot.
    Changes(Box<Collector>, Box<Baseline>),
}

struct Case {
    name: &'static str,
    /// The case of ps(1) that it is compared with.
    ps: &'static str,
    how: How,
    cpu_ms: Vec<f64>,
    service_ms: Vec<f64>,
}

impl Case {
    fn command(
        name: &'static str,
        ps: &'static str,
        program: PathBuf,
        arguments: &[&'static str],
    ) -> Self {
        let how = How::Command {
            program,
            arguments: arguments.to_vec(),
            nobody: name.ends_with("-nobody"),
        };
        Self::new(name, ps, how)
    }

    const fn new(name: &'static str, ps: &'static str, how: How) -> Self {
        Self {
            name,
            ps,
            how,
            cpu_ms: Vec::new(),
            service_ms: Vec::new(),
        }
    }

    /// Makes a snapshot. Returns the CPU time.
    fn look(&mut self, service: &Service) -> Result<Duration, Failure> {
        match &mut self.how {
            How::Command {
                program,
                arguments,
                nobody,
            } => {
                let mut command = Command::new(program);
                command.args(&*arguments);
                if self.name.ends_with(SUBSTITUTE) {
                    command.env("LD_LIBRARY_PATH", substitute()?);
                }
                let by_service = arguments.contains(&"service") || self.name.ends_with(SUBSTITUTE);
                let socket = if by_service {
                    service.socket.as_os_str()
                } else {
                    "".as_ref()
                };
                command.env(service::SOCKET_VARIABLE, socket);
                if *nobody {
                    command.uid(NOBODY).gid(NOBODY);
                }
                cpu_of(&mut command)
            }
            How::Reader(collector) => {
                let before = clock(ClockId::ThreadCPUTime);
                collector.snapshot()?;
                Ok(clock(ClockId::ThreadCPUTime).saturating_sub(before))
            }
            How::Changes(collector, last) => {
                let before = clock(ClockId::ThreadCPUTime);
                let snapshot = collector.snapshot()?;
                let share: f64 = last.changes(&snapshot).filter_map(|of| of.cpu_share).sum();
                std::hint::black_box(share);
                last.set(&snapshot);
                Ok(clock(ClockId::ThreadCPUTime).saturating_sub(before))
            }
        }
    }

    fn round(&mut self, service: &Service, counts: bool) -> Result<(), Failure> {
        let before = cpu_ns(service.pid())?;
        let cpu = self
            .look(service)
            .map_err(|error| format!("{}: {error}", self.name))?;
        // Work of the service after its answer counts, too.
        thread::sleep(Duration::from_millis(3));
        let of_service = cpu_ns(service.pid())?.saturating_sub(before) as f64 / 1e6;
        if counts {
            self.cpu_ms.push(cpu.as_secs_f64() * 1e3 + of_service);
            self.service_ms.push(of_service);
        }
        Ok(())
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    let mut clients_cpu_percent = f64::NAN;
    let (warm_up, largest) = (2, args.processes.iter().max().copied());
    let progress = progress(
        args.processes.len() as u64 * u64::from(warm_up + args.rounds),
        "rounds",
    );
    for &wanted in &args.processes {
        let running = processes()?;
        // The service is one more process.
        let missing = wanted.saturating_sub(running + 1);
        let idle = Idle::start_some(missing)?;
        let service = Service::start(&[])?;
        let mut cases = cases(&service, &args.cases, &mut skipped)?;
        for round in 0..warm_up + args.rounds {
            let count = cases.len();
            for at in 0..count {
                let case = &mut cases[(at + round as usize) % count];
                Idle::wake_some(idle.as_ref(), args.ran)?;
                case.round(&service, round >= warm_up)?;
            }
            progress.inc(1);
        }
        let processes = processes()?;
        let median = |name: &str| {
            let case = cases.iter().find(|case| case.name == name);
            case.map_or(f64::NAN, |case| {
                Spread::of(case.cpu_ms.iter().copied()).median
            })
        };
        rows.extend(cases.iter().map(|case| {
            let cpu_ms = Spread::of(case.cpu_ms.iter().copied());
            Attach {
                case: case.name,
                processes,
                cpu_ms,
                service_cpu_ms: Spread::of(case.service_ms.iter().copied()),
                ratio_vs_ps: median(case.ps) / cpu_ms.median,
            }
        }));
        if Some(wanted) == largest && args.cases.is_empty() {
            drop(cases);
            clients_cpu_percent = many_clients(&service)?;
        }
    }
    progress.finish_and_clear();
    let head = Head {
        break_even_files: break_even(&rows),
        clients: CLIENTS,
        clients_cpu_percent,
    };
    let mut report = Report::new("attach", head, rows, skipped);
    if !clients_cpu_percent.is_nan() {
        report.note(format!(
        "{CLIENTS} readers, each ten times a second, at the last size: {clients_cpu_percent:.1} % of a CPU, the service's part included"
        ));
    }
    report.print("One snapshot, CPU time of reader and service", args.json)?;
    Ok(())
}

/// The cases that are wanted and can be measured here. If none is named, all are wanted.
fn cases(
    service: &Service,
    wanted: &[String],
    skipped: &mut Vec<Skipped>,
) -> Result<Vec<Case>, Failure> {
    let ours = fastproc()?;
    let with = |source: &'static str| [&COLUMNS[..], &["--source", source]].concat();
    let ps = PathBuf::from("ps");
    let of_ps = ["-eo", "pid,s,rss,time,comm"];
    let mut cases = vec![
        Case::command("ps", "ps-aux", ours.clone(), &["ps"]),
        Case::command("ps-bpf", "ps-aux", ours.clone(), &["ps", "--source", "bpf"]),
        Case::command(
            "ps-procfs",
            "ps-aux",
            ours.clone(),
            &["ps", "--source", "procfs"],
        ),
        Case::command(
            "service-aux",
            "ps-aux",
            ours.clone(),
            &["ps", "aux", "--source", "service"],
        ),
        Case::command("ps-columns", "ps-columns", ps.clone(), &of_ps),
        Case::command("ps-columns-nobody", "ps-columns-nobody", ps, &of_ps),
        Case::command("service", "ps-columns", ours.clone(), &with("service")),
        Case::command(
            "service-nobody",
            "ps-columns-nobody",
            ours,
            &with("service"),
        ),
    ];
    for (stock, ours, program, arguments) in TOOLS {
        for name in [stock, ours] {
            cases.push(Case::command(name, stock, program.into(), arguments));
        }
    }
    for (name, age) in [
        ("reader", Duration::ZERO),
        ("reader-young", Duration::from_secs(60)),
    ] {
        let reader = Box::new(service.reader(age)?);
        cases.push(Case::new(name, "ps-columns", How::Reader(reader)));
    }
    let (reader, last) = (service.reader(Duration::ZERO)?, Baseline::default());
    let changes = How::Changes(Box::new(reader), Box::new(last));
    cases.push(Case::new("reader-changes", "ps-columns", changes));
    let is_known = |name: &String| cases.iter().any(|case| case.name == name);
    if let Some(unknown) = wanted.iter().find(|name| !is_known(name)) {
        let names: Vec<_> = cases.iter().map(|case| case.name).collect();
        return Err(format!("there is no case {unknown}, but {}", names.join(", ")).into());
    }
    if !wanted.is_empty() {
        let named = cases
            .iter()
            .filter(|case| wanted.iter().any(|name| name == case.name));
        let kept: Vec<_> = named.flat_map(|case| [case.name, case.ps]).collect();
        cases.retain(|case| kept.contains(&case.name));
    }
    cases.retain_mut(|case| match case.look(service) {
        Ok(_) => true,
        Err(error) => {
            let reason = error.to_string();
            if !skipped.iter().any(|other| other.case == case.name) {
                skipped.push(Skipped {
                    case: case.name,
                    reason,
                });
            }
            false
        }
    });
    Ok(cases)
}

/// The folder with the substitute for procps's library. Without it the tools would be compared with themselves.
fn substitute() -> Result<PathBuf, Failure> {
    let folder = fastproc()?.with_file_name("procps");
    let names = ["libproc2.so.0", "libproc2.so.1"];
    if names.iter().any(|name| folder.join(name).exists()) {
        return Ok(folder);
    }
    Err("the substitute for procps's library is not built: make procps".into())
}

/// The number of files at which reading `/proc` begins to cost more than loading programs, interpolated between two
/// sizes.
fn break_even(rows: &[Attach]) -> Option<u64> {
    let of = |name: &'static str| rows.iter().filter(move |row| row.case == name);
    let costs: Vec<_> = of("ps-procfs")
        .zip(of("ps-bpf"))
        .map(|(procfs, bpf)| {
            (
                procfs.processes as f64,
                procfs.cpu_ms.median - bpf.cpu_ms.median,
            )
        })
        .collect();
    let pair = costs
        .windows(2)
        .find(|pair| pair[0].1 < 0.0 && pair[1].1 >= 0.0)?;
    let ((few, less), (many, more)) = (pair[0], pair[1]);
    // stat and status of each process.
    Some((2.0 * (few + (many - few) * -less / (more - less))) as u64)
}

/// Runs many readers that accept a snapshot as old as their interval. Returns the share of one CPU that they and the
/// service use.
fn many_clients(service: &Service) -> Result<f64, Failure> {
    let mut readers = (0..CLIENTS)
        .map(|_| service.reader(PERIOD))
        .collect::<Result<Vec<_>, _>>()?;
    let cpu = || -> Result<Duration, Failure> {
        let of_service = Duration::from_nanos(cpu_ns(service.pid())?);
        Ok(clock(ClockId::ProcessCPUTime) + of_service)
    };
    let (before, started) = (cpu()?, Instant::now());
    thread::scope(|scope| -> Result<(), Failure> {
        let threads: Vec<_> = readers
            .iter_mut()
            .enumerate()
            .map(|(at, reader)| {
                let first = started + PERIOD * at as u32 / CLIENTS as u32;
                scope.spawn(move || -> Result<(), fastproc::Error> {
                    for look in 0..LOOKS {
                        let due = first + PERIOD * look;
                        thread::sleep(due.saturating_duration_since(Instant::now()));
                        reader.snapshot()?;
                    }
                    Ok(())
                })
            })
            .collect();
        for thread in threads {
            thread.join().map_err(|_| "a reader panicked")??;
        }
        Ok(())
    })?;
    let spent = cpu()?.saturating_sub(before);
    Ok(100.0 * spent.as_secs_f64() / started.elapsed().as_secs_f64())
}

/// Processes on this machine.
pub fn processes() -> Result<usize, Failure> {
    let names = fs::read_dir("/proc")?.filter_map(Result::ok);
    let is_pid = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    Ok(names.filter(|entry| is_pid(&entry.file_name())).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(case: &'static str, processes: usize, ms: f64) -> Attach {
        Attach {
            case,
            processes,
            cpu_ms: Spread::of([ms]),
            service_cpu_ms: Spread::of([0.0]),
            ratio_vs_ps: 1.0,
        }
    }

    #[test]
    fn the_break_even_lies_between_two_sizes() {
        let mut rows = vec![row("ps-procfs", 100, 4.0), row("ps-bpf", 100, 12.0)];
        assert_eq!(break_even(&rows), None);
        rows.extend([row("ps-procfs", 900, 32.0), row("ps-bpf", 900, 16.0)]);
        // A third of the way, two files each.
        assert_eq!(break_even(&rows), Some(733));
    }
}
