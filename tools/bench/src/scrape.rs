//! `fastproc bench scrape`: the cost of one scrape, including its answer.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{
    idle::{Processes, Ran},
    measure::{Common, Failure, in_turn, ms, timed},
    report::{Column, Report, Spread, column},
    scan_proc::ThreeFiles,
    server::Server,
};

/// A group for each process.
const A_GROUP_EACH: &str = "process_names: [{name: '{{.Comm}}:{{.PID}}', cmdline: ['.+']}]\n";
/// The configuration of process-exporter's packages.
const BY_NAME: &str = "process_names: [{name: '{{.Comm}}', cmdline: ['.+']}]\n";
/// No groups.
const NO_GROUP: &str = "process_names: []\n";
/// Cases with their arguments and configurations. Those of "host" leave of processes only their number and states.
const CASES: [(&str, &str, &str); 7] = [
    ("default", "--host", BY_NAME),
    ("default-gzip", "--host", BY_NAME),
    ("group-each", "--host", A_GROUP_EACH),
    ("group-each-gzip", "--host", A_GROUP_EACH),
    (
        "names",
        "--no-host --gather-fds=false --gather-wchan=false",
        BY_NAME,
    ),
    ("descriptors", "--no-host --gather-wchan=false", BY_NAME),
    (
        "host",
        "--host --gather-fds=false --gather-wchan=false --threads=false --exits=false",
        NO_GROUP,
    ),
];
const PROCESS_EXPORTER: &str = "process-exporter";
const NODE_EXPORTER: &str = "node_exporter";
/// Other exporters, if they are installed: case, names, arguments and configuration.
const OTHERS: [(&str, [&str; 2], &str, &str); 2] = [
    (
        PROCESS_EXPORTER,
        [PROCESS_EXPORTER, "prometheus-process-exporter"],
        "-config.path=/dev/stdin -gather-smaps=false",
        BY_NAME,
    ),
    (
        NODE_EXPORTER,
        [NODE_EXPORTER, "prometheus-node-exporter"],
        // The collectors that fastproc also has.
        "--collector.disable-defaults --collector.arp --collector.conntrack --collector.cpu \
         --collector.cpufreq --collector.diskstats --collector.entropy --collector.filefd \
         --collector.filesystem --collector.loadavg --collector.meminfo --collector.netclass \
         --collector.netdev --collector.netstat --collector.pressure --collector.processes \
         --collector.schedstat --collector.sockstat --collector.softnet --collector.stat \
         --collector.stat.softirq --collector.textfile --collector.thermal_zone --collector.time \
         --collector.timex --collector.uname --collector.vmstat",
        "",
    ),
];

/// Arguments of `fastproc bench scrape`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    processes: Processes,
    /// Leave out process-exporter and `node_exporter`, which are otherwise scraped in turn if they are installed.
    #[arg(long)]
    alone: bool,
    #[command(flatten)]
    ran: Ran,
}

const COLUMNS: [Column; 8] = [
    column("case", "case", 0, 0),
    // CPU time of the whole server for one scrape.
    column("cpu_ms", "CPU ms", 3, 0),
    column("wall_ms", "wall ms", 3, 1),
    column("ratio_vs_proc_3files", "times cheaper", 1, 0),
    // Than the other exporter with the same metrics, if there is one.
    column("ratio_vs_beside", "than the other", 1, 1),
    column("body_bytes", "KB", 0, 2).per(1e3),
    // After all scrapes, and its peak.
    column("rss_bytes", "resident MB", 1, 0).per(1e6),
    column("peak_rss_bytes", "peak MB", 1, 3).per(1e6),
];

/// Measurements of one exporter.
struct Measured {
    case: &'static str,
    server: Server,
    cpu: Vec<f64>,
    wall: Vec<f64>,
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let idle = args.processes.start()?;
    let mut report = Report::new("scrape", "One scrape", &COLUMNS);
    let mut measured = Vec::new();
    let mut add = |case, server: Result<Server, Failure>| match server
        .and_then(|server| Measured::warm(case, server))
    {
        Ok(of) => measured.push(of),
        Err(error) => report.skip(case, &error),
    };
    for (case, arguments, config) in CASES {
        add(case, Server::fastproc(arguments, config));
    }
    for (case, names, arguments, config) in OTHERS.into_iter().filter(|_| !args.alone) {
        add(case, Server::other(names, arguments, config));
    }
    let mut three_files = ThreeFiles::open()?;
    let (mut processes, mut baseline) = (three_files.scan()?, Vec::new());
    in_turn(measured.len() + 1, 0, common.rounds(11), |at, _| {
        let Some(case) = measured.get_mut(at) else {
            let (scanned, cpu, _) = timed(|| three_files.scan());
            processes = scanned?;
            baseline.push(ms(cpu));
            return Ok(());
        };
        idle.wake(args.ran.ran)?;
        case.round()
    })?;
    drop(idle);
    let baseline = Spread::of(baseline);
    let median = |of: &Measured| Spread::of(of.cpu.iter().copied()).median;
    for of in &measured {
        let cpu = Spread::of(of.cpu.iter().copied());
        let other = match of.case {
            "host" | NODE_EXPORTER => NODE_EXPORTER,
            _ => PROCESS_EXPORTER,
        };
        let other = measured.iter().find(|of| of.case == other);
        report.row([
            of.case.into(),
            cpu.into(),
            Spread::of(of.wall.iter().copied()).into(),
            (baseline.median / cpu.median).into(),
            other.map(|other| median(other) / cpu.median).into(),
            of.server.body.len().into(),
            of.server.status("VmRSS:")?.into(),
            of.server.status("VmHWM:")?.into(),
        ]);
    }
    // The baseline of all cases: reading three files of each process once.
    report.head(json!({"processes": processes, "proc_3files_cpu_ms": baseline.json()}));
    Ok(report.print(common.json)?)
}

impl Measured {
    /// The first scrapes, which allocate memory and fill caches of names.
    fn warm(case: &'static str, server: Server) -> Result<Self, Failure> {
        let (cpu, wall) = (Vec::new(), Vec::new());
        let mut measured = Self {
            case,
            server,
            cpu,
            wall,
        };
        measured.scrape()?;
        measured.scrape()?;
        Ok(measured)
    }

    fn scrape(&mut self) -> Result<(), Failure> {
        self.server.scrape(self.case.ends_with("-gzip"))
    }

    fn round(&mut self) -> Result<(), Failure> {
        let (before, started) = (self.server.cpu_ns()?, Instant::now());
        self.scrape()?;
        self.wall.push(ms(started.elapsed()));
        // Work after the answer is part of the scrape, too: wait until the server is idle, or give up if others keep it
        // busy.
        let mut after = self.server.cpu_ns()?;
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(20));
            let now = self.server.cpu_ns()?;
            if now == after {
                break;
            }
            after = now;
        }
        self.cpu.push(after.saturating_sub(before) as f64 / 1e6);
        Ok(())
    }
}
