//! `fastproc bench scrape`: what one scrape costs, its answer included.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    str::FromStr,
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    time::{ClockId, clock_gettime},
};
use serde::{Serialize, Serializer};

use super::{
    herd::Herd,
    measure::Failure,
    report::{Column, Report, Row, Skipped, Spread, four_decimals},
    scan_proc::ThreeFiles,
};

/// A group for each process.
const A_GROUP_EACH: &str = "process_names: [{name: '{{.Comm}}:{{.PID}}', cmdline: ['.+']}]\n";
/// The case of another exporter.
const BESIDE: &str = "beside";
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
    /// Scrape this often, each case once a round.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Scrape another exporter that runs on this machine as well, in turn with this one: its process, and where it serves
    /// /metrics.
    #[arg(long, value_name = "PID@ADDRESS:PORT")]
    beside: Option<Beside>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// Another exporter.
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
    /// How many times cheaper than the other exporter, if there is one.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "four_decimals_if_any"
    )]
    ratio_vs_beside: Option<f64>,
    /// Bytes of the body.
    body_bytes: usize,
    /// Resident memory after all scrapes, and its highest.
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

/// One exporter and what was measured of it.
struct Measured {
    case: &'static str,
    gzip: bool,
    server: Server,
    cpu: Vec<f64>,
    wall: Vec<f64>,
    body_bytes: usize,
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let herd = (args.processes > 0)
        .then(|| Herd::start(args.processes))
        .transpose()?;
    let mut three_files = ThreeFiles::open()?;
    let mut processes = three_files.scan()?;
    let (mut measured, mut skipped) = (Vec::new(), Vec::new());
    let beside = args.beside.iter().map(|beside| {
        let server = Server::running(beside.pid, &beside.address);
        Measured::warm(BESIDE, false, server)
    });
    let cases = CASES
        .iter()
        .map(|case| Measured::warm(case.name, case.gzip, Server::start(*case)));
    for case in cases.chain(beside) {
        match case {
            Ok(case) => measured.push(case),
            Err(one) => skipped.push(one),
        }
    }
    let mut baseline = Vec::new();
    for _ in 0..args.rounds {
        let before = own_cpu();
        processes = three_files.scan()?;
        baseline.push(own_cpu().saturating_sub(before).as_secs_f64() * 1e3);
        for case in &mut measured {
            case.round()?;
        }
    }
    drop(herd);
    let baseline = Spread::of(baseline);
    let other = measured.iter().find(|case| case.case == BESIDE);
    let other_ms = other.map(|other| Spread::of(other.cpu.iter().copied()).median);
    let rows = measured
        .iter()
        .map(|case| case.row(baseline.median, other_ms))
        .collect::<Result<_, _>>()?;
    let head = Head {
        processes,
        proc_3files_cpu_ms: baseline,
    };
    Report::new("scrape", head, rows, skipped).print("One scrape", args.json)?;
    Ok(())
}

impl Measured {
    /// The first scrapes make memory and names.
    fn warm(
        case: &'static str,
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
        // What it does after its answer is part of the scrape, too.
        std::thread::sleep(Duration::from_millis(5));
        let spent = self.server.cpu_ns()?.saturating_sub(before);
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

fn own_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// An exporter. If it is this very program, then it ends with this.
struct Server {
    child: Option<Child>,
    pid: u32,
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
        let mut server = Self::running(child.id(), &address)?;
        server.child = Some(child);
        Ok(server)
    }

    fn running(pid: u32, address: &str) -> Result<Self, Failure> {
        Ok(Self {
            child: None,
            pid,
            address: address.into(),
            stream: connect(address)?,
        })
    }

    /// Scrapes on the connection that is kept, as Prometheus does, or on a new one if the server has closed it meanwhile.
    /// Returns the bytes of the body.
    fn scrape(&mut self, gzip: bool) -> Result<usize, Failure> {
        if self.is_closed()? {
            self.stream = connect(&self.address)?;
        }
        let encoding = if gzip { "gzip" } else { "identity" };
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {}\r\nAccept-Encoding: {encoding}\r\n\r\n",
            self.address
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let (mut length, mut chunked, mut status) = (None, false, String::new());
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
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok();
            }
            chunked |= line == "transfer-encoding: chunked";
        }
        if !status.starts_with("HTTP/1.1 200") {
            return Err(format!("the server answers {status:?}").into());
        }
        if chunked {
            return self.skip_chunks();
        }
        let length: usize = length.ok_or("the answer has no length")?;
        self.skip(length)?;
        Ok(length)
    }

    fn is_closed(&self) -> io::Result<bool> {
        let stream = self.stream.get_ref();
        stream.set_nonblocking(true)?;
        let read = stream.peek(&mut [0]);
        stream.set_nonblocking(false)?;
        Ok(!read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock))
    }

    /// Reads a body in chunks: the length of each stands before it, and the last is empty.
    fn skip_chunks(&mut self) -> Result<usize, Failure> {
        let mut sum = 0;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let length = usize::from_str_radix(line.trim_end(), 16)?;
            self.skip(length + 2)?;
            sum += length;
            if length == 0 {
                return Ok(sum);
            }
        }
    }

    fn skip(&mut self, bytes: usize) -> Result<(), Failure> {
        let skipped = io::copy(
            &mut self.stream.by_ref().take(bytes as u64),
            &mut io::sink(),
        )?;
        if skipped < bytes as u64 {
            return Err("the answer ends too early".into());
        }
        Ok(())
    }

    /// CPU time of all of its threads.
    fn cpu_ns(&self) -> Result<u64, Failure> {
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.pid))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let time = text.split(' ').next().ok_or("schedstat is empty")?;
            sum += time.parse::<u64>()?;
        }
        Ok(sum)
    }

    /// A line of its status, in bytes.
    fn status(&self, name: &str) -> Result<u64, Failure> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        Ok(kib.ok_or("its status has no such line")?.parse::<u64>()? * 1024)
    }
}

fn connect(address: &str) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    Ok(BufReader::with_capacity(1 << 16, stream))
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else {
            return;
        };
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
        let _ = child.wait();
    }
}
