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
/// Only groups by name.
const NAMES: [&str; 3] = ["--no-host", "--gather-fds=false", "--gather-wchan=false"];
/// The machine, and of processes only their number and states.
const HOST: [&str; 5] = [
    "--host",
    "--gather-fds=false",
    "--gather-wchan=false",
    "--threads=false",
    "--exits=false",
];
const CASES: [Case; 7] = [
    Case::ours("default", &["--host"], BY_NAME),
    Case::ours("default-gzip", &["--host"], BY_NAME).in_gzip(),
    Case::ours("group-each", &["--host"], A_GROUP_EACH),
    Case::ours("group-each-gzip", &["--host"], A_GROUP_EACH).in_gzip(),
    Case::ours("names", &NAMES, BY_NAME),
    Case::ours(
        "descriptors",
        &["--no-host", "--gather-wchan=false"],
        BY_NAME,
    ),
    Case::ours("host", &HOST, NO_GROUP).beside(NODE_EXPORTER),
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

#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    arguments: &'static [&'static str],
    config: &'static str,
    gzip: bool,
    /// The case that it is compared with.
    other: &'static str,
}

impl Case {
    const fn ours(
        name: &'static str,
        arguments: &'static [&'static str],
        config: &'static str,
    ) -> Self {
        Self {
            name,
            arguments,
            config,
            gzip: false,
            other: PROCESS_EXPORTER,
        }
    }

    const fn in_gzip(self) -> Self {
        Self { gzip: true, ..self }
    }

    const fn beside(self, other: &'static str) -> Self {
        Self { other, ..self }
    }
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
    other: &'static str,
    gzip: bool,
    server: Server,
    cpu: Vec<f64>,
    wall: Vec<f64>,
    body_bytes: usize,
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let idle = args.processes.start()?;
    let mut report = Report::new("scrape", "One scrape", &COLUMNS);
    let mut measured = Vec::new();
    let mut add = |case, other, gzip, server: Result<Server, Failure>| match server
        .and_then(|server| Measured::warm(case, other, gzip, server))
    {
        Ok(of) => measured.push(of),
        Err(error) => report.skip(case, &error),
    };
    for case in CASES {
        let server = Server::fastproc(case.arguments, case.config);
        add(case.name, case.other, case.gzip, server);
    }
    for (case, names, arguments, config) in OTHERS.into_iter().filter(|_| !args.alone) {
        add(case, case, false, Server::other(names, arguments, config));
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
        let other = measured.iter().find(|other| other.case == of.other);
        report.row([
            of.case.into(),
            cpu.into(),
            Spread::of(of.wall.iter().copied()).into(),
            (baseline.median / cpu.median).into(),
            other.map(|other| median(other) / cpu.median).into(),
            of.body_bytes.into(),
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
    fn warm(
        case: &'static str,
        other: &'static str,
        gzip: bool,
        mut server: Server,
    ) -> Result<Self, Failure> {
        server.scrape(gzip)?;
        Ok(Self {
            case,
            other,
            gzip,
            body_bytes: server.scrape(gzip)?,
            server,
            cpu: Vec::new(),
            wall: Vec::new(),
        })
    }

    fn round(&mut self) -> Result<(), Failure> {
        let (before, started) = (self.server.cpu_ns()?, Instant::now());
        self.body_bytes = self.server.scrape(self.gzip)?;
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
