//! `fastproc bench tools`: what procps's tools cost as they are, and with the substitute for their library.

use std::{
    fs, io,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use serde::Serialize;

use super::{
    idle::Idle,
    measure::Failure,
    report::{Column, Report, Row, Skipped, Spread, column, four_decimals},
};

/// A tool as it is run, and how often it looks at all processes.
struct Tool {
    name: &'static str,
    looks: u32,
}

const fn tool(name: &'static str, looks: u32) -> Tool {
    Tool { name, looks }
}

const TOOLS: [Tool; 10] = [
    tool("ps -e", 1),
    tool("ps -eo pid,comm", 1),
    tool("ps aux", 1),
    tool("ps -ef", 1),
    tool("ps -eo pid,ppid,rss,pcpu", 1),
    tool("pgrep -x -u root no-such-name", 1),
    tool("pgrep no-such-name", 1),
    tool("top -b -n5 -d0.2", 5),
    // On a terminal.
    tool(
        "script -qec 'stty rows 50 cols 160; top -n11 -d0.1' /dev/null",
        11,
    ),
    tool("w", 1),
];

/// Arguments of `fastproc bench tools`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this many idle processes first; they are gone afterwards. 0: measure the machine as it is.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    processes: usize,
    /// Measure each tool this many times with either library, in turn.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Where the substitute lies, if not beside this program; make procps builds it.
    #[arg(long, value_name = "FOLDER")]
    library: Option<PathBuf>,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Head {
    processes: usize,
}

#[derive(Debug, Serialize)]
struct Measured {
    case: &'static str,
    stock_cpu_ms: Spread,
    /// Of the tool and of the service together.
    cpu_ms: Spread,
    /// Of the service alone.
    service_cpu_ms: Spread,
    /// The median with the stock library divided by the one with the substitute.
    #[serde(serialize_with = "four_decimals")]
    ratio: f64,
}

impl Row for Measured {
    const COLUMNS: &'static [Column] = &[
        column("tool", 0),
        column("stock, CPU ms", 0),
        column("min", 2),
        column("max", 2),
        column("CPU ms", 0),
        column("min", 2),
        column("max", 2),
        column("of it the service", 1),
        column("times cheaper", 0),
    ];

    fn cells(&self) -> Vec<String> {
        let ms = |value: f64| format!("{value:.2}");
        let (stock, ours) = (self.stock_cpu_ms, self.cpu_ms);
        vec![
            self.case.to_owned(),
            ms(stock.median),
            ms(stock.min),
            ms(stock.max),
            ms(ours.median),
            ms(ours.min),
            ms(ours.max),
            ms(self.service_cpu_ms.median),
            format!("{:.2}", self.ratio),
        ]
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let beside = std::env::current_exe()?;
    let library = args
        .library
        .clone()
        .unwrap_or_else(|| beside.with_file_name("procps"));
    if !has_substitute(&library) {
        return Err(format!(
            "there is no substitute for procps's library in {}; make procps builds it",
            library.display()
        )
        .into());
    }
    let idle = (args.processes > 0)
        .then(|| Idle::start(args.processes))
        .transpose()?;
    let service = Service::start(&beside.with_file_name("fastproc"))?;
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for tool in &TOOLS {
        match measure(tool, args.rounds, &library, &service) {
            Ok(row) => rows.push(row),
            Err(error) => skipped.push(Skipped {
                case: tool.name,
                reason: error.to_string(),
            }),
        }
    }
    let head = Head {
        processes: idle.map_or(0, |idle| idle.count()),
    };
    let mut report = Report::new("tools", head, rows, skipped);
    report.note("CPU time of a tool that looks several times is that of one look.".into());
    report.print(
        "procps's tools, as they are and with the substitute",
        args.json,
    )?;
    Ok(())
}

/// Without it the tools would be compared with themselves.
fn has_substitute(library: &Path) -> bool {
    let names = ["libproc2.so.0", "libproc2.so.1"];
    names.iter().any(|name| library.join(name).exists())
}

fn measure(
    tool: &Tool,
    rounds: u32,
    library: &Path,
    service: &Service,
) -> Result<Measured, Failure> {
    let (mut stock, mut ours, mut of_service) = (Vec::new(), Vec::new(), Vec::new());
    let looks = f64::from(tool.looks);
    // The first round is not counted: the service reads command lines that it keeps from then on.
    for round in 0..=rounds {
        let plain = cpu_of(tool, None, service)?;
        let before = service.cpu()?;
        let alone = cpu_of(tool, Some(library), service)?;
        let served = service.cpu()?.saturating_sub(before);
        if round > 0 {
            let ms = |time: Duration| time.as_secs_f64() * 1e3 / looks;
            stock.push(ms(plain));
            ours.push(ms(alone + served));
            of_service.push(ms(served));
        }
    }
    let (stock, ours) = (Spread::of(stock), Spread::of(ours));
    Ok(Measured {
        case: tool.name,
        stock_cpu_ms: stock,
        cpu_ms: ours,
        service_cpu_ms: Spread::of(of_service),
        ratio: stock.median / ours.median,
    })
}

/// CPU time of one run, of its children too.
fn cpu_of(tool: &Tool, library: Option<&Path>, service: &Service) -> Result<Duration, Failure> {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("exec {}", tool.name)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("TERM", "xterm")
        .env("FASTPROC_SOCKET", service.socket());
    if let Some(library) = library {
        command.env("LD_LIBRARY_PATH", library);
    }
    let (status, cpu) = wait(&command.spawn()?)?;
    // 1: nothing was found.
    if matches!(status.code(), Some(0 | 1)) {
        Ok(cpu)
    } else {
        Err(format!("it ended with {status}").into())
    }
}

/// Waits for a child, and tells what it used.
fn wait(child: &Child) -> io::Result<(ExitStatus, Duration)> {
    let mut status = 0;
    // SAFETY: a structure of numbers may be all zero.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both are written to.
    if unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut used) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    Ok((
        ExitStatus::from_raw(status),
        time(used.ru_utime) + time(used.ru_stime),
    ))
}

/// A service of our own.
struct Service {
    child: Child,
    folder: PathBuf,
}

impl Service {
    fn start(program: &Path) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("fastproc-bench-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let child = Command::new(program)
            .args(["serve", "--no-metrics", "--cpu-of-user=1000", "--socket"])
            .arg(folder.join("socket"))
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
        let service = Self { child, folder };
        let given_up = Instant::now() + Duration::from_secs(30);
        while !service.socket().exists() {
            if Instant::now() > given_up {
                return Err("the service does not listen".into());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(service)
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// CPU time of all its threads so far.
    fn cpu(&self) -> Result<Duration, Failure> {
        let mut all = Duration::ZERO;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = fs::read_to_string(thread?.path().join("schedstat"))?;
            all += Duration::from_nanos(text.split(' ').next().unwrap_or_default().parse()?);
        }
        Ok(all)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // What has ended already needs not be ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
