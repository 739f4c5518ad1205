//! `fastproc bench history`: what a history costs, to record it beside atop on the same load, and to read it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use fastproc::{Collector, Fields};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{
    command::{Ending, bytes, cpu_ns, cpu_of, fastproc},
    forks::Forks,
    idle::Idle,
    measure::{Common, Failure, timed},
    report::{Cell, Column, Report, Spread, column},
};

/// Arguments of `fastproc bench history`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this many processes first, for one number after the other, and end them afterwards. Up to 1,000 are mostly
    /// idle: each second one in a hundred runs, and one more ends. Of more, one in twenty runs, and ten more end.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [4000, 300])]
    processes: Vec<usize>,
    /// Record for this long. The bytes a day are too many for less than a quarter of an hour, which begins with all
    /// processes.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800, value_parser = clap::value_parser!(u64).range(10..))]
    seconds: u64,
    /// Record below this folder. A file system in memory shows no bytes that are written.
    #[arg(long, value_name = "FOLDER", default_value = "/var/tmp")]
    folder: PathBuf,
}

/// What runs each second.
struct Load {
    processes: usize,
    one_in: u32,
    exits: u32,
}

impl Load {
    const fn of(processes: usize) -> Self {
        let (one_in, exits) = if processes > 1000 { (20, 10) } else { (100, 1) };
        Self {
            processes,
            one_in,
            exits,
        }
    }
}

const COLUMNS: [Column; 8] = [
    column("case", "case", 0, 0),
    column("processes", "processes", 0, 0),
    // A second of recording, a walk, or a command.
    column("cpu_ms", "CPU ms", 2, 0),
    column("cpu_percent", "% of a CPU", 3, 0),
    column("resident_mb", "resident MB", 1, 0),
    column("mb_a_day", "MB a day", 1, 0),
    column("written_mb_a_day", "written MB a day", 1, 1),
    column("syncs_a_day", "syncs a day", 0, 1),
];

const DAY: f64 = 86_400.0;
const RECORD: &str = "fastproc record";
const ATOP: &str = "atop -w … 1";
/// What a recorder reads: the same walk alone.
const FIELDS: Fields = Fields::CPU
    .union(Fields::MEMORY)
    .union(Fields::SCHEDULING)
    .union(Fields::IO)
    .union(Fields::USERS)
    .union(Fields::CGROUP);

/// A folder that is removed when this is dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Counts the calls of fsync and fdatasync of a process, by tracefs.
struct Syncs(PathBuf);

const TRACEFS: &str = "/sys/kernel/tracing";

impl Syncs {
    fn count_of(pid: u32) -> Result<Self, Failure> {
        if !Path::new(TRACEFS).join("instances").exists() {
            return Err(format!("mount it first: mount -t tracefs tracefs {TRACEFS}").into());
        }
        let counter = Self(format!("{TRACEFS}/instances/fastproc-bench-{pid}").into());
        fs::create_dir(&counter.0)?;
        let threads = fs::read_dir(format!("/proc/{pid}/task"))?;
        let threads = threads.filter_map(|thread| thread.ok()?.file_name().into_string().ok());
        let threads = threads.collect::<Vec<_>>().join(" ");
        fs::write(counter.0.join("set_event_pid"), threads)?;
        for call in ["fsync", "fdatasync"] {
            let event = format!("events/syscalls/sys_enter_{call}/enable");
            fs::write(counter.0.join(event), "1")?;
        }
        Ok(counter)
    }

    /// Those that are in the buffers of all CPUs, and those that had no room there.
    fn so_far(&self) -> Result<u64, Failure> {
        let mut count = 0;
        for cpu in fs::read_dir(self.0.join("per_cpu"))? {
            let text = fs::read_to_string(cpu?.path().join("stats"))?;
            let numbers = text.lines().filter_map(|line| {
                let (name, number) = line.split_once(": ")?;
                let is_call = ["entries", "overrun"].contains(&name);
                is_call.then(|| number.trim().parse::<u64>().ok())?
            });
            count += numbers.sum::<u64>();
        }
        Ok(count)
    }
}

impl Drop for Syncs {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A program that records.
struct Recording {
    case: &'static str,
    child: Ending,
    syncs: Option<Syncs>,
    /// CPU time and bytes when measuring began.
    before: (u64, u64),
}

impl Recording {
    fn start(case: &'static str, command: &mut Command) -> Result<Self, Failure> {
        let child = Ending::start(command.stdin(Stdio::null()).stderr(Stdio::null()))?;
        Ok(Self {
            case,
            child,
            syncs: None,
            before: (0, 0),
        })
    }

    fn pid(&self) -> u32 {
        self.child.0.id()
    }

    fn written(&self) -> Result<u64, Failure> {
        let text = fs::read_to_string(format!("/proc/{}/io", self.pid()))?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("write_bytes: "));
        let written = line.and_then(|number| number.parse().ok());
        written.ok_or_else(|| format!("{} writes without a number of bytes", self.case).into())
    }

    fn begin(&mut self, report: &mut Report) -> Result<(), Failure> {
        match Syncs::count_of(self.pid()) {
            Ok(syncs) => self.syncs = Some(syncs),
            Err(error) => report.skip("syncs a day", &error),
        }
        self.before = (cpu_ns(self.pid())?, self.written()?);
        Ok(())
    }

    /// Ends it, and adds its row. `size` is what it has kept, in bytes.
    fn end(
        mut self,
        report: &mut Report,
        load: &Load,
        took: Duration,
        size: impl FnOnce() -> Result<u64, Failure>,
    ) -> Result<(), Failure> {
        let seconds = took.as_secs_f64();
        let used = (cpu_ns(self.pid())? - self.before.0) as f64 / 1e9;
        let written = (self.written()? - self.before.1) as f64;
        let syncs = self.syncs.take().map(|syncs| syncs.so_far()).transpose()?;
        let resident = bytes(&format!("/proc/{}/status", self.pid()), "VmHWM:")? as f64;
        let pid = Pid::from_child(&self.child.0);
        kill_process(pid, Signal::TERM)?;
        self.child.0.wait()?;
        let a_day = |amount: f64| amount / seconds * DAY;
        report.row([
            self.case.into(),
            load.processes.into(),
            (used / seconds * 1e3).into(),
            (used / seconds * 100.0).into(),
            (resident / 1e6).into(),
            a_day(size()? as f64 / 1e6).into(),
            a_day(written / 1e6).into(),
            syncs.map_or(Cell::Absent, |syncs| a_day(syncs as f64).into()),
        ]);
        Ok(())
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let mut report = Report::new("history", "A history of processes", &COLUMNS);
    let mut tables = Vec::new();
    for &processes in &args.processes {
        tables.push(beside(args, &Load::of(processes), common, &mut report)?);
    }
    report.head(json!({"seconds": args.seconds, "tables": tables}));
    Ok(report.print(common.json)?)
}

/// Records and reads beside a load. Returns the bytes of each table a day.
fn beside(args: &Args, load: &Load, common: Common, report: &mut Report) -> Result<Value, Failure> {
    let idle = Idle::start(load.processes)?;
    let forks = Forks::start(load.exits)?;
    let folder = Temporary(
        args.folder
            .join(format!("fastproc-bench-{}", std::process::id())),
    );
    fs::create_dir_all(&folder.0)?;
    let (history, raw) = (folder.0.join("history"), folder.0.join("atop"));
    let mut record = Command::new(fastproc()?);
    record.args(["record", "--leave", "0", "--host", "bench"]);
    let mut running = vec![Recording::start(RECORD, record.arg(&history))?];
    match Recording::start(ATOP, Command::new("atop").arg("-w").arg(&raw).arg("1")) {
        Ok(atop) => running.push(atop),
        Err(error) => report.skip(ATOP, &error),
    }
    let mut alone = Collector::builder()
        .fields(FIELDS)
        .service_socket(None)
        .open()?;
    // What each of them does once.
    thread::sleep(Duration::from_secs(5));
    for of in &mut running {
        of.begin(report)?;
    }
    let began = Instant::now();
    let walks = beside_load(&idle, load, args.seconds, || {
        let (walk, cpu, _) = timed(|| alone.snapshot().map(|snapshot| snapshot.len()));
        walk?;
        Ok(cpu.as_secs_f64() * 1e3)
    })?;
    let took = began.elapsed();
    let until = SystemTime::now();
    for of in running {
        let is_ours = of.case == RECORD;
        let size = || {
            if is_ours {
                Ok(sizes(&history)?.iter().map(|(_, bytes)| bytes).sum())
            } else {
                Ok(fs::metadata(&raw)?.len())
            }
        };
        of.end(report, load, took, size)?;
    }
    drop((forks, idle));
    let (walk, nothing) = (Spread::of(walks), || std::iter::repeat_n(Cell::Absent, 4));
    let row = |case: &str, ms: Spread, percent| {
        let known = [case.into(), load.processes.into(), ms.into(), percent];
        known.into_iter().chain(nothing())
    };
    report.row(row("a walk alone", walk, (walk.median / 10.0).into()));
    for (case, ms) in reads(&history, until, took, common.rounds(11))? {
        report.row(row(case, ms, Cell::Absent));
    }
    let sizes = sizes(&history)?;
    let a_day = |bytes: u64| bytes as f64 / took.as_secs_f64() * DAY / 1e6;
    let shown = sizes
        .iter()
        .map(|(table, bytes)| format!("{table} {:.1}", a_day(*bytes)));
    report.note(format!(
        "{} processes, one in {} runs each second, {} more end; MB a day: {}.",
        load.processes,
        load.one_in,
        load.exits,
        shown.collect::<Vec<_>>().join(", ")
    ));
    let of_tables = sizes.iter().map(|(table, bytes)| (table, a_day(*bytes)));
    let of_tables: BTreeMap<_, _> = of_tables.collect();
    Ok(json!({"processes": load.processes, "mb_a_day": of_tables}))
}

/// Calls `each` every second, for so many seconds, while a part of the processes run every second.
fn beside_load(
    idle: &Idle,
    load: &Load,
    seconds: u64,
    mut each: impl FnMut() -> Result<f64, Failure>,
) -> Result<Vec<f64>, Failure> {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let waker = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                idle.wake(Some(load.one_in))?;
                thread::sleep(Duration::from_secs(1));
            }
            std::io::Result::Ok(())
        });
        let began = Instant::now();
        let results = (1..=seconds).map(|second| {
            let due = began + Duration::from_secs(second);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            each()
        });
        let results = results.collect();
        over.store(true, Ordering::Relaxed);
        waker.join().map_err(|_| "the load has failed")??;
        results
    })
}

/// CPU milliseconds of commands that read what was recorded until then, warm.
fn reads(
    history: &Path,
    until: SystemTime,
    recorded: Duration,
    rounds: u32,
) -> Result<[(&'static str, Spread); 2], Failure> {
    let until = until.duration_since(UNIX_EPOCH)?;
    let time = |before: f64| -> Result<String, Failure> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let ago = now.saturating_sub(until).as_secs_f64() + before;
        Ok(format!("-{ago:.0}s"))
    };
    let seconds = recorded.as_secs_f64();
    let mut at = Vec::new();
    let mut between = Vec::new();
    for round in 0..=rounds {
        let ps = |options: &[&str]| -> Result<f64, Failure> {
            let mut command = Command::new(fastproc()?);
            command
                .arg("ps")
                .args(options)
                .arg("--history")
                .arg(history);
            Ok(cpu_of(&mut command)?.as_secs_f64() * 1e3)
        };
        let one = ps(&["--at", &time(seconds / 2.0)?, "--sort", "-rss"])?;
        let from = ["--from", &time(seconds - 2.0)?, "--to", &time(2.0)?];
        let all = ps(&[&from[..], &["--sort", "-time"]].concat())?;
        // The first one is not warm.
        if round > 0 {
            at.push(one);
            between.push(all);
        }
    }
    Ok([
        ("ps --at", Spread::of(at)),
        ("ps --from --to, all of it", Spread::of(between)),
    ])
}

/// The bytes of each table.
fn sizes(history: &Path) -> Result<Vec<(String, u64)>, Failure> {
    let mut command = Command::new(fastproc()?);
    let output = command
        .args(["history", "--json", "--history"])
        .arg(history)
        .output()?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let tables = report["hosts"][0]["tables"].as_array();
    let tables = tables.ok_or("the history has no tables")?.iter();
    let size = |table: &Value| Some((table["table"].as_str()?.into(), table["bytes"].as_u64()?));
    Ok(tables.filter_map(size).collect())
}
