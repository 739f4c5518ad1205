//! `fastproc bench scrape`: the cost of one scrape, including its answer.

use std::{
    str::FromStr,
    time::{Duration, Instant},
};

use rustix::time::ClockId;
use serde::{Serialize, Serializer};

use super::{
    containers::Containers,
    idle::Idle,
    measure::{Failure, clock},
    report::{Column, Report, Row, Skipped, Spread, column, four_decimals},
    scan_proc::ThreeFiles,
    server::Server,
};

/// A group for each process.
const A_GROUP_EACH: &str = "process_names: [{name: '{{.Comm}}:{{.PID}}', cmdline: ['.+']}]\n";
/// The configuration of process-exporter's packages.
const BY_NAME: &str = "process_names: [{name: '{{.Comm}}', cmdline: ['.+']}]\n";
/// A group for each container, by the path of its cgroup.
const BY_PATH: &str = "process_names: [{name: '{{.Comm}} {{.Cgroups}}', cmdline: ['.+']}]\n";
/// By names, as in docs/kubernetes.md.
const BY_CONTAINER: &str =
    "process_names: [{name: '{{.Namespace}}/{{.PodName}}/{{.ContainerName}}', cmdline: ['.+']}]\n";
/// By everything that is known of it.
const BY_ALL: &str = "process_names: [{name: '{{.Comm}} {{.ContainerID}} {{.PodUID}} {{.Namespace}} {{.PodName}} \
     {{.ContainerName}} {{.Image}}', cmdline: ['.+']}]\n";
/// One group for all processes.
const ONE_GROUP: &str = "process_names: [{name: all, cmdline: ['.+']}]\n";
/// No groups.
const NO_GROUP: &str = "process_names: []\n";
/// The case of another exporter that is already running.
const BESIDE: &str = "beside";
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
/// The cases of `--containers`. Each container has processes of one name, so all cases except the first have the same
/// number of groups.
const OF_CONTAINERS: [Case; 5] = [
    Case::ours("one-group", &[], ONE_GROUP).beside("name"),
    Case::ours("name", &[], BY_NAME),
    Case::ours("path", &[], BY_PATH).beside("name"),
    Case::ours("container", &[], BY_CONTAINER).beside("name"),
    Case::ours("container-all", &[], BY_ALL).beside("name"),
];
const PROCESS_EXPORTER: &str = "process-exporter";
const NODE_EXPORTER: &str = "node_exporter";
/// Other exporters, if they are installed.
const OTHERS: [Other; 2] = [
    Other {
        case: PROCESS_EXPORTER,
        names: &["process-exporter", "prometheus-process-exporter"],
        arguments: &["-config.path=/dev/stdin", "-gather-smaps=false"],
        config: BY_NAME,
    },
    Other {
        case: NODE_EXPORTER,
        names: &["node_exporter", "prometheus-node-exporter"],
        // The collectors that fastproc also has.
        arguments: &[
            "--collector.disable-defaults",
            "--collector.arp",
            "--collector.conntrack",
            "--collector.cpu",
            "--collector.cpufreq",
            "--collector.diskstats",
            "--collector.entropy",
            "--collector.filefd",
            "--collector.filesystem",
            "--collector.loadavg",
            "--collector.meminfo",
            "--collector.netclass",
            "--collector.netdev",
            "--collector.netstat",
            "--collector.pressure",
            "--collector.processes",
            "--collector.schedstat",
            "--collector.sockstat",
            "--collector.softnet",
            "--collector.stat",
            "--collector.stat.softirq",
            "--collector.textfile",
            "--collector.thermal_zone",
            "--collector.time",
            "--collector.timex",
            "--collector.uname",
            "--collector.vmstat",
        ],
        config: "",
    },
];

/// Arguments of `fastproc bench scrape`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this many idle processes first, and end them afterwards. 0: measure the machine as it is.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    processes: usize,
    /// Scrape this many times, each case once in a round.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Also scrape another exporter that runs on this machine, in turn with this one: its process, and its address with
    /// /metrics.
    #[arg(long, value_name = "PID@ADDRESS:PORT")]
    beside: Option<Beside>,
    /// Leave out process-exporter and `node_exporter`, which are otherwise scraped in turn if they are installed.
    #[arg(long)]
    alone: bool,
    /// Let one in N of the idle processes run before each scrape.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ran: Option<u32>,
    /// Put the idle processes into this many containers, and compare groups by name with groups by container.
    #[arg(long, value_name = "N", conflicts_with = "beside", value_parser = clap::value_parser!(u32).range(1..))]
    containers: Option<u32>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Another exporter that is already running.
#[derive(Clone, Debug)]
struct Beside {
    pid: u32,
    address: String,
}

impl FromStr for Beside {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('@');
        let parts = parts.and_then(|(pid, address)| Some((pid.parse().ok()?, address)));
        let (pid, address) = parts.ok_or("it must be PID@ADDRESS:PORT")?;
        Ok(Self {
            pid,
            address: address.into(),
        })
    }
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

/// Another exporter.
struct Other {
    case: &'static str,
    names: &'static [&'static str],
    arguments: &'static [&'static str],
    config: &'static str,
}

#[derive(Debug, Serialize)]
struct Head {
    processes: usize,
    /// CPU time of reading three files of each process once: the baseline of all cases.
    proc_3files_cpu_ms: Spread,
}

#[derive(Debug, Serialize)]
struct Scrape {
    case: &'static str,
    /// CPU time of the whole server for one scrape.
    cpu_ms: Spread,
    wall_ms: Spread,
    /// How many times cheaper than the three files.
    #[serde(serialize_with = "four_decimals")]
    ratio_vs_proc_3files: f64,
    /// How many times cheaper than the other exporter with the same metrics, if there is one.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "four_decimals_if_any"
    )]
    ratio_vs_beside: Option<f64>,
    /// Bytes of the body.
    body_bytes: usize,
    /// Resident memory after all scrapes, and its peak.
    rss_bytes: u64,
    peak_rss_bytes: u64,
}

#[expect(clippy::ref_option, reason = "it is what serde calls")]
fn four_decimals_if_any<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => four_decimals(value, serializer),
        None => serializer.serialize_none(),
    }
}

impl Row for Scrape {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("CPU ms", 0),
        column("min", 3),
        column("max", 3),
        column("wall ms", 1),
        column("times cheaper", 0),
        column("than the other", 1),
        column("KB", 2),
        column("resident MB", 0),
    ];

    fn cells(&self) -> Vec<String> {
        let ms = |value: f64| format!("{value:.3}");
        vec![
            self.case.to_owned(),
            ms(self.cpu_ms.median),
            ms(self.cpu_ms.min),
            ms(self.cpu_ms.max),
            ms(self.wall_ms.median),
            format!("{:.1}", self.ratio_vs_proc_3files),
            self.ratio_vs_beside
                .map_or_else(|| "–".into(), |ratio| format!("{ratio:.1}")),
            (self.body_bytes / 1000).to_string(),
            format!("{:.1}", self.rss_bytes as f64 / 1e6),
        ]
    }
}

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
pub fn run(args: &Args) -> Result<(), Failure> {
    // Dropped after the processes in them.
    let containers;
    let names = args.containers.unwrap_or(1) as usize;
    let idle = (args.processes > 0)
        .then(|| Idle::start_with_names(args.processes, names))
        .transpose()?;
    containers = args
        .containers
        .map(|wanted| Containers::new(wanted, idle.as_ref()))
        .transpose()?;
    let host_root = containers
        .as_ref()
        .map(|containers| containers.host_root().to_string_lossy());
    let ours = if containers.is_some() {
        &OF_CONTAINERS[..]
    } else {
        &CASES
    };
    let mut three_files = ThreeFiles::open()?;
    let mut processes = three_files.scan()?;
    let (mut measured, mut skipped) = (Vec::new(), Vec::new());
    let beside = args.beside.iter().map(|beside| {
        let server = Server::running(beside.pid, &beside.address);
        Measured::warm(BESIDE, BESIDE, false, server)
    });
    let others = OTHERS
        .iter()
        .filter(|_| !args.alone && containers.is_none())
        .map(|other| {
            let server = Server::other(other.names, other.arguments, other.config);
            Measured::warm(other.case, other.case, false, server)
        });
    let cases = ours.iter().map(|case| {
        let mut arguments = case.arguments.to_vec();
        if let Some(root) = &host_root {
            arguments.extend(["--host-root", root]);
        }
        let server = Server::fastproc(&arguments, case.config);
        let other = if args.beside.is_some() {
            BESIDE
        } else {
            case.other
        };
        Measured::warm(case.name, other, case.gzip, server)
    });
    for case in cases.chain(beside).chain(others) {
        match case {
            Ok(case) => measured.push(case),
            Err(one) => skipped.push(one),
        }
    }
    let mut baseline = Vec::new();
    for _ in 0..args.rounds {
        let before = clock(ClockId::ThreadCPUTime);
        processes = three_files.scan()?;
        baseline.push(
            clock(ClockId::ThreadCPUTime)
                .saturating_sub(before)
                .as_secs_f64()
                * 1e3,
        );
        for case in &mut measured {
            Idle::wake_some(idle.as_ref(), args.ran)?;
            case.round()?;
        }
    }
    drop(idle);
    let baseline = Spread::of(baseline);
    let rows = measured
        .iter()
        .map(|case| {
            let other = measured.iter().find(|other| other.case == case.other);
            let other_ms = other.map(|other| Spread::of(other.cpu.iter().copied()).median);
            case.row(baseline.median, other_ms)
        })
        .collect::<Result<_, _>>()?;
    let head = Head {
        processes,
        proc_3files_cpu_ms: baseline,
    };
    Report::new("scrape", head, rows, skipped).print("One scrape", args.json)?;
    Ok(())
}

impl Measured {
    /// The first scrapes, which allocate memory and fill caches of names.
    fn warm(
        case: &'static str,
        other: &'static str,
        gzip: bool,
        server: Result<Server, Failure>,
    ) -> Result<Self, Skipped> {
        let warm = server.and_then(|mut server| {
            let mut body_bytes = 0;
            for _ in 0..2 {
                body_bytes = server.scrape(gzip)?;
            }
            Ok((server, body_bytes))
        });
        let (server, body_bytes) = warm.map_err(|error| Skipped {
            case,
            reason: error.to_string(),
        })?;
        Ok(Self {
            case,
            other,
            gzip,
            server,
            cpu: Vec::new(),
            wall: Vec::new(),
            body_bytes,
        })
    }

    fn round(&mut self) -> Result<(), Failure> {
        let (before, started) = (self.server.cpu_ns()?, Instant::now());
        self.body_bytes = self.server.scrape(self.gzip)?;
        self.wall.push(started.elapsed().as_secs_f64() * 1e3);
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
        let spent = after.saturating_sub(before);
        self.cpu.push(spent as f64 / 1e6);
        Ok(())
    }

    fn row(&self, baseline_ms: f64, other_ms: Option<f64>) -> Result<Scrape, Failure> {
        let cpu_ms = Spread::of(self.cpu.iter().copied());
        Ok(Scrape {
            case: self.case,
            cpu_ms,
            wall_ms: Spread::of(self.wall.iter().copied()),
            ratio_vs_proc_3files: baseline_ms / cpu_ms.median,
            ratio_vs_beside: other_ms.map(|other_ms| other_ms / cpu_ms.median),
            body_bytes: self.body_bytes,
            rss_bytes: self.server.status("VmRSS:")?,
            peak_rss_bytes: self.server.status("VmHWM:")?,
        })
    }
}
