//! `fastproc bench scrape`: what one scrape costs, its answer included.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    time::{ClockId, clock_gettime},
};
use serde::Serialize;

use super::{
    herd::Herd,
    measure::Failure,
    report::{Column, Report, Row, Skipped, Spread, four_decimals},
    scan_proc::ThreeFiles,
};

/// A group for each process.
const A_GROUP_EACH: &str = "process_names: [{name: '{{.Comm}}:{{.PID}}', cmdline: ['.+']}]\n";
const CASES: [Case; 4] = [
    Case {
        name: "default",
        a_group_each: false,
        gzip: false,
    },
    Case {
        name: "default-gzip",
        a_group_each: false,
        gzip: true,
    },
    Case {
        name: "group-each",
        a_group_each: true,
        gzip: false,
    },
    Case {
        name: "group-each-gzip",
        a_group_each: true,
        gzip: true,
    },
];

/// Arguments of `fastproc bench scrape`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this many idle processes first; they are gone afterwards. 0: measure the machine as it is.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    processes: usize,
    /// Scrape this often.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    a_group_each: bool,
    gzip: bool,
}

#[derive(Debug, Serialize)]
struct Head {
    processes: usize,
    /// CPU time of reading three files of each process once: what everything is compared with.
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
    /// Bytes of the body.
    body_bytes: usize,
    /// Resident memory after all scrapes, and its highest.
    rss_bytes: u64,
    peak_rss_bytes: u64,
}

impl Row for Scrape {
    const COLUMNS: &'static [Column] = &[
        Column {
            title: "case",
            rank: 0,
        },
        Column {
            title: "CPU ms",
            rank: 0,
        },
        Column {
            title: "min",
            rank: 3,
        },
        Column {
            title: "max",
            rank: 3,
        },
        Column {
            title: "wall ms",
            rank: 1,
        },
        Column {
            title: "times cheaper",
            rank: 0,
        },
        Column {
            title: "KB",
            rank: 2,
        },
        Column {
            title: "resident MB",
            rank: 0,
        },
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
            (self.body_bytes / 1000).to_string(),
            format!("{:.1}", self.rss_bytes as f64 / 1e6),
        ]
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let herd = (args.processes > 0)
        .then(|| Herd::start(args.processes))
        .transpose()?;
    let mut three_files = ThreeFiles::open()?;
    let mut processes = three_files.scan()?;
    let mut baseline = Vec::new();
    for _ in 0..args.rounds.min(5) {
        let before = own_cpu();
        processes = three_files.scan()?;
        baseline.push(own_cpu().checked_sub(before).unwrap().as_secs_f64() * 1e3);
    }
    let baseline = Spread::of(baseline);
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for case in CASES {
        match measure(case, args.rounds, baseline.median) {
            Ok(row) => rows.push(row),
            Err(error) => skipped.push(Skipped {
                case: case.name,
                reason: error.to_string(),
            }),
        }
    }
    drop(herd);
    let head = Head {
        processes,
        proc_3files_cpu_ms: baseline,
    };
    Report::new("scrape", head, rows, skipped).print("One scrape", args.json)?;
    Ok(())
}

fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn measure(case: Case, rounds: u32, baseline_ms: f64) -> Result<Scrape, Failure> {
    let mut server = Server::start(case)?;
    // The first scrapes make memory and names.
    for _ in 0..2 {
        server.scrape(case.gzip)?;
    }
    let (mut cpu, mut wall, mut body_bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        let (before, started) = (server.cpu_ns()?, Instant::now());
        body_bytes = server.scrape(case.gzip)?;
        wall.push(started.elapsed().as_secs_f64() * 1e3);
        // What it does after its answer is part of the scrape, too.
        std::thread::sleep(Duration::from_millis(5));
        cpu.push((server.cpu_ns()? - before) as f64 / 1e6);
    }
    let cpu_ms = Spread::of(cpu);
    Ok(Scrape {
        case: case.name,
        cpu_ms,
        wall_ms: Spread::of(wall),
        ratio_vs_proc_3files: baseline_ms / cpu_ms.median,
        body_bytes,
        rss_bytes: server.status("VmRSS:")?,
        peak_rss_bytes: server.status("VmHWM:")?,
    })
}

/// This very program, serving. It ends with this.
struct Server {
    child: Child,
    address: String,
    stream: BufReader<TcpStream>,
}

impl Server {
    fn start(case: Case) -> Result<Self, Failure> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["serve", "--listen", "127.0.0.1:0", "--min-interval", "0"]);
        if case.a_group_each {
            command.args(["--config", "/dev/stdin"]);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(A_GROUP_EACH.as_bytes())?;
        }
        let mut said = String::new();
        let mut stderr = BufReader::new(child.stderr.take().ok_or("no standard error")?);
        let address = loop {
            let mut line = String::new();
            if stderr.read_line(&mut line)? == 0 {
                let _ = child.wait();
                return Err(format!("the server has not started: {}", said.trim()).into());
            }
            if let Some((_, rest)) = line.split_once("://")
                && let Some((address, _)) = rest.split_once('/')
            {
                break address.to_owned();
            }
            said += &line;
        };
        let stream = TcpStream::connect(&address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self {
            child,
            address,
            stream: BufReader::with_capacity(1 << 16, stream),
        })
    }

    /// Scrapes on the connection that is kept, as Prometheus does. Returns the bytes of the body.
    fn scrape(&mut self, gzip: bool) -> Result<usize, Failure> {
        let encoding = if gzip { "gzip" } else { "identity" };
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {}\r\nAccept-Encoding: {encoding}\r\n\r\n",
            self.address
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut length, mut status) = (None, String::new());
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if status.is_empty() {
                line.clone_into(&mut status);
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
        }
        if !status.starts_with("HTTP/1.1 200") {
            return Err(format!("the server answers {status:?}").into());
        }
        let length: usize = length.ok_or("the answer has no length")?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(length)
    }

    /// CPU time of all of its threads.
    fn cpu_ns(&self) -> Result<u64, Failure> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let time = text.split(' ').next().ok_or("schedstat is empty")?;
            sum += time.parse::<u64>()?;
        }
        Ok(sum)
    }

    /// A line of its status, in bytes.
    fn status(&self, name: &str) -> Result<u64, Failure> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kib.ok_or("its status has no such line")?.parse::<u64>()? * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
