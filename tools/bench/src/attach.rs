//! `fastproc bench attach`: the cost of a single snapshot, and how a service changes it. CPU time of reader and service
//! together.

use std::{
    os::unix::process::CommandExt as _,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use fastproc::{Collector, source::service};
use rustix::time::ClockId;
use serde_json::json;

use super::{
    command::{command, cpu_ns, cpu_of, fastproc},
    idle::{Idle, Ran, processes},
    measure::{Common, Failure, clock, in_turn, ms, timed},
    report::{Column, Report, Spread, column, rounded},
    service::Service,
};

/// Commands: the case, the case of ps(1) or of the tool's own library that it is compared with, and its words. top refreshes
/// once.
const COMMANDS: [(&str, &str, &str); 14] = [
    ("ps", "ps-aux", "fastproc ps"),
    ("ps-bpf", "ps-aux", "fastproc ps --source bpf"),
    ("ps-procfs", "ps-aux", "fastproc ps --source procfs"),
    ("service-aux", "ps-aux", "fastproc ps aux --source service"),
    ("ps-columns", "ps-columns", OF_PS),
    ("ps-columns-nobody", "ps-columns-nobody", OF_PS),
    ("service", "ps-columns", OF_SERVICE),
    ("service-nobody", "ps-columns-nobody", OF_SERVICE),
    ("ps-aux", "ps-aux", "ps aux"),
    ("ps-aux-substitute", "ps-aux", "ps aux"),
    ("pgrep", "pgrep", "pgrep -x fastproc-idle"),
    ("pgrep-substitute", "pgrep", "pgrep -x fastproc-idle"),
    ("top-batch", "top-batch", "top -b -n2 -d0.2"),
    ("top-batch-substitute", "top-batch", "top -b -n2 -d0.2"),
];
const OF_PS: &str = "ps -eo pid,s,rss,time,comm";
const OF_SERVICE: &str =
    "fastproc ps --fields pid,state,rss,time,comm --format csv --source service";
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
    #[command(flatten)]
    ran: Ran,
}

const COLUMNS: [Column; 5] = [
    column("case", "case", 0, 0),
    // On the machine.
    column("processes", "processes", 0, 0),
    // Reader and service together, and the service's part.
    column("cpu_ms", "CPU ms", 3, 0),
    column("service_cpu_ms", "service ms", 3, 1),
    // Than ps(1) with the same columns.
    column("ratio_vs_ps", "times cheaper", 1, 0),
];

/// A way to make a snapshot.
enum How {
    /// A command line, run as nobody or as the current user, with the service or without.
    Command(&'static str),
    /// A collector that stays open.
    Reader(Box<Collector>),
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
        let (done, cpu, _) = match &mut self.how {
            How::Command(line) => {
                let mut command = command(line)?;
                let has_substitute = self.name.ends_with(SUBSTITUTE);
                if has_substitute {
                    command.env("LD_LIBRARY_PATH", substitute()?);
                }
                let socket = if has_substitute || line.ends_with("service") {
                    service.socket.as_os_str()
                } else {
                    "".as_ref()
                };
                command.env(service::SOCKET_VARIABLE, socket);
                if self.name.ends_with("-nobody") {
                    command.uid(NOBODY).gid(NOBODY);
                }
                return cpu_of(&mut command);
            }
            How::Reader(collector) => timed(|| collector.snapshot().map(drop)),
        };
        done?;
        Ok(cpu)
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
            self.cpu_ms.push(ms(cpu) + of_service);
            self.service_ms.push(of_service);
        }
        Ok(())
    }

    fn cpu(&self) -> Spread {
        Spread::of(self.cpu_ms.iter().copied())
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let title = "One snapshot, CPU time of reader and service";
    let mut report = Report::new("attach", title, &COLUMNS);
    let mut clients_cpu_percent = f64::NAN;
    // For each size: its processes, and the median of procfs less that of bpf.
    let mut costs = Vec::new();
    let largest = args.processes.iter().max().copied();
    for &wanted in &args.processes {
        // The service is one more process.
        let idle = Idle::fill_to(wanted)?;
        let service = Service::start(&[])?;
        let mut cases = cases(&service, &mut report)?;
        in_turn(cases.len(), 2, common.rounds(11), |at, counts| {
            idle.wake(args.ran.ran)?;
            cases[at].round(&service, counts)
        })?;
        let processes = processes()?;
        let median = |name: &str| {
            let case = cases.iter().find(|case| case.name == name);
            case.map_or(f64::NAN, |case| case.cpu().median)
        };
        costs.push((processes as f64, median("ps-procfs") - median("ps-bpf")));
        for case in &cases {
            let cpu = case.cpu();
            report.row([
                case.name.into(),
                processes.into(),
                cpu.into(),
                Spread::of(case.service_ms.iter().copied()).into(),
                (median(case.ps) / cpu.median).into(),
            ]);
        }
        if Some(wanted) == largest {
            drop(cases);
            clients_cpu_percent = many_clients(&service)?;
            report.note(format!(
                "{CLIENTS} readers, each ten times a second, at the last size: {clients_cpu_percent:.1} % of a CPU, the service's \
                 part included"
            ));
        }
    }
    report.head(json!({
        // Files of /proc whose reading costs as much as loading the programs. null: no size is between.
        "break_even_files": break_even(&costs),
        // CPU time of this many readers with ten snapshots a second, and of the service: share of one CPU.
        "clients": CLIENTS,
        "clients_cpu_percent": rounded(clients_cpu_percent),
    }));
    Ok(report.print(common.json)?)
}

/// The cases that can be measured here.
fn cases(service: &Service, report: &mut Report) -> Result<Vec<Case>, Failure> {
    let case = |(name, ps, line)| Case::new(name, ps, How::Command(line));
    let mut cases: Vec<_> = COMMANDS.into_iter().map(case).collect();
    for (name, age) in [
        ("reader", Duration::ZERO),
        ("reader-young", Duration::from_secs(60)),
    ] {
        let reader = How::Reader(Box::new(service.reader(age)?));
        cases.push(Case::new(name, "ps-columns", reader));
    }
    cases.retain_mut(|case| {
        let looked = case.look(service);
        looked
            .map_err(|error| report.skip(case.name, &error))
            .is_ok()
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
/// sizes. `costs`: processes, and how much more reading costs.
fn break_even(costs: &[(f64, f64)]) -> Option<u64> {
    let mut pairs = costs.windows(2);
    let pair = pairs.find(|pair| pair[0].1 < 0.0 && pair[1].1 >= 0.0)?;
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
