//! `fastproc doctor`: what this machine allows, what would be used, and why.

mod timing;

use std::{io::Write, path::Path, process::ExitCode};

use fastproc::{
    Collector, Fields, OneShot, SourceKind,
    counters::{Counters, Evidence, Route},
    exits::Exits,
    source::service,
};
use rustix::thread::{CapabilitySet, capabilities};
use serde::Serialize;

use self::timing::Timing;
use crate::{Failure, failure::chain};

/// Tell what this machine allows: which source would be used, which were refused and why, and where every value comes
/// from.
///
/// Exit status: 0; 2 if it could not run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:
  fastproc doctor
  fastproc doctor --timing
  fastproc doctor --json | jq '.sources[] | select(.usable | not) | .error'")]
pub struct Args {
    /// Tell what the parts of opening take, in CPU time: for the fields of `ps`, the counters and the exits
    #[arg(long)]
    timing: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    kernel: String,
    privileges: Privileges,
    /// The source that would be used.
    source: &'static str,
    one_shot: OneLook,
    sources: Vec<Source>,
    service: Service,
    fields: Vec<Group>,
    array: Option<Array>,
    calibration: Calibration,
    counters: CountersReport,
    exits: ExitsReport,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    timing: Vec<Timing>,
}

#[derive(Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "one for each capability")]
struct Privileges {
    uid: u32,
    cap_bpf: bool,
    cap_perfmon: bool,
    cap_sys_ptrace: bool,
    cap_sys_admin: bool,
}

#[derive(Serialize)]
#[allow(clippy::struct_field_names, reason = "the names are those of the JSON")]
struct Source {
    source: &'static str,
    usable: bool,
    load_ms: Option<f64>,
    processes: Option<usize>,
    missed: Option<u32>,
    error: Option<String>,
}

/// The service that this process would use, as it tells of itself.
#[derive(Default, Serialize)]
struct Service {
    /// Where it is looked for.
    socket: Option<String>,
    version: Option<String>,
    pid: Option<u64>,
    /// What it reads from.
    source: Option<String>,
    /// What it shows this process.
    shares: Option<&'static str>,
    error: Option<String>,
}

/// Who looks once, as `ps` does without an interval.
#[derive(Serialize)]
struct OneLook {
    /// Where it reads without a service.
    source: &'static str,
    /// Files of `/proc` that it would read for the fields of `ps`.
    files: u64,
    /// From so many on it does not.
    limit: u64,
}

#[derive(Serialize)]
struct Group {
    group: &'static str,
    from: &'static str,
}

#[derive(Serialize)]
struct Array {
    capacity: u32,
    bytes: u64,
}

#[derive(Serialize)]
struct Calibration {
    exact_rss: Option<bool>,
    workers_by_comm: bool,
    thp_disable_bit: Option<u32>,
}

#[derive(Serialize)]
struct CountersReport {
    available: bool,
    error: Option<String>,
    symbols: bool,
    latency_knob: bool,
    lines: Vec<CounterLine>,
}

/// Whether this process could record what ends.
#[derive(Serialize)]
struct ExitsReport {
    recorded: bool,
    error: Option<String>,
}

#[derive(Serialize)]
struct CounterLine {
    file: &'static str,
    line: String,
    from: &'static str,
    route: String,
    nonzero: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut report = examine()?;
    if args.timing {
        report.timing = timing::all();
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &report)?;
        writeln!(out)?;
    } else {
        print(&mut out, &report)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn examine() -> Result<Report, Failure> {
    let sources = SourceKind::ALL.map(try_source).into();
    let service = examine_service();
    let mut collector = Collector::builder().fields(Fields::all()).open()?;
    let source = collector.source();
    collector.snapshot()?;
    let calibration = collector.calibration();
    Ok(Report {
        kernel: kernel_release(),
        privileges: privileges(),
        source: source.name(),
        one_shot: one_look(),
        sources,
        service,
        fields: Fields::NAMES
            .iter()
            .map(|(group, _)| Group {
                group,
                from: source.name(),
            })
            .collect(),
        array: collector.arrays().map(|arrays| Array {
            capacity: arrays.processes,
            bytes: arrays.bytes,
        }),
        calibration: Calibration {
            exact_rss: calibration.exact_rss,
            workers_by_comm: calibration.workers_by_comm,
            thp_disable_bit: calibration.thp_disable_bit,
        },
        counters: examine_counters().unwrap_or_else(|error| CountersReport {
            available: false,
            error: Some(chain(&error)),
            symbols: false,
            latency_knob: false,
            lines: Vec::new(),
        }),
        exits: examine_exits(),
        timing: Vec::new(),
    })
}

fn one_look() -> OneLook {
    let collector = Collector::builder()
        .fields(timing::FIELDS)
        .service_socket(None)
        .one_shot(true)
        .open();
    OneLook {
        source: collector
            .map_or(SourceKind::Procfs, |collector| collector.source())
            .name(),
        files: OneShot::now(timing::FIELDS, Path::new("/proc")).files,
        limit: OneShot::FILES,
    }
}

fn try_source(kind: SourceKind) -> Source {
    let tried = Collector::builder()
        .source(Some(kind))
        .fields(Fields::all())
        .open();
    let tried = tried.and_then(|mut collector| {
        let snapshot = collector.snapshot()?;
        let (processes, missed) = (snapshot.len(), snapshot.stats().missed);
        Ok((collector.load_time(), processes, missed))
    });
    match tried {
        Ok((load_time, processes, missed)) => Source {
            source: kind.name(),
            usable: true,
            load_ms: load_time.map(|time| time.as_secs_f64() * 1e3),
            processes: Some(processes),
            missed: Some(missed),
            error: None,
        },
        Err(error) => Source {
            source: kind.name(),
            usable: false,
            load_ms: None,
            processes: None,
            missed: None,
            error: Some(chain(&error)),
        },
    }
}

fn examine_service() -> Service {
    let Some(path) = service::socket_path() else {
        return Service {
            error: Some(format!("{} is empty", service::SOCKET_VARIABLE)),
            ..Service::default()
        };
    };
    let tried = try_source(SourceKind::Service);
    let status = service::status(&path).ok();
    let status: Option<serde_json::Value> =
        status.and_then(|status| serde_json::from_str(&status).ok());
    let text = |name: &str| Some(status.as_ref()?.get(name)?.as_str()?.to_owned());
    let all = rustix::process::geteuid().is_root();
    Service {
        socket: Some(path.display().to_string()),
        version: text("version"),
        pid: status
            .as_ref()
            .and_then(|status| status.get("pid")?.as_u64()),
        source: text("source"),
        shares: tried.usable.then_some(if all {
            "everything"
        } else {
            "what /proc shows everybody, and everything of this user's own processes"
        }),
        error: tried.error,
    }
}

fn privileges() -> Privileges {
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    Privileges {
        uid: rustix::process::geteuid().as_raw(),
        cap_bpf: effective.contains(CapabilitySet::BPF),
        cap_perfmon: effective.contains(CapabilitySet::PERFMON),
        cap_sys_ptrace: effective.contains(CapabilitySet::SYS_PTRACE),
        cap_sys_admin: effective.contains(CapabilitySet::SYS_ADMIN),
    }
}

fn examine_counters() -> Result<CountersReport, fastproc::counters::Error> {
    let counters = Counters::open()?;
    let report = counters.report();
    let lines = report.lines.iter().map(|line| CounterLine {
        file: line.file.trim_start_matches("/proc/"),
        line: line.name.clone(),
        from: origin(line.route),
        route: route(line.route),
        nonzero: line.evidence == Evidence::NonZero,
    });
    Ok(CountersReport {
        available: counters.unavailable().is_none(),
        error: counters.unavailable().map(|error| chain(error)),
        symbols: report.symbols,
        latency_knob: report.latency_knob,
        lines: lines.collect(),
    })
}

fn examine_exits() -> ExitsReport {
    let error = Exits::builder().open().err();
    ExitsReport {
        recorded: error.is_none(),
        error: error.map(|error| chain(&error)),
    }
}

/// `text` for the kernel's text, `bpf` for all else.
pub fn origin(route: Route) -> &'static str {
    if matches!(route, Route::Text(_)) {
        "text"
    } else {
        "bpf"
    }
}

fn route(route: Route) -> String {
    match route {
        Route::Text(why) => format!("text: {why:?}").to_lowercase(),
        route => format!("{route:?}").to_lowercase(),
    }
}

/// Release of the running kernel.
pub fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

fn print(out: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let privileges = &report.privileges;
    let capabilities = [
        ("CAP_BPF", privileges.cap_bpf),
        ("CAP_PERFMON", privileges.cap_perfmon),
        ("CAP_SYS_PTRACE", privileges.cap_sys_ptrace),
        ("CAP_SYS_ADMIN", privileges.cap_sys_admin),
    ];
    let held: Vec<&str> = capabilities
        .iter()
        .filter(|(_, held)| *held)
        .map(|(name, _)| *name)
        .collect();
    writeln!(out, "kernel        {}", report.kernel)?;
    writeln!(
        out,
        "privileges    uid {}, {}",
        privileges.uid,
        if held.is_empty() {
            "none of the capabilities that matter".into()
        } else {
            held.join(", ")
        }
    )?;
    writeln!(out, "source        {}", report.source)?;
    for source in &report.sources {
        match &source.error {
            None => {
                let load = source
                    .load_ms
                    .map_or(String::new(), |ms| format!(", loaded in {ms:.0} ms"));
                let missed = source.missed.filter(|missed| *missed > 0);
                let missed = missed.map_or(String::new(), |missed| {
                    format!("; {missed} that its walk does not meet are read from /proc")
                });
                writeln!(
                    out,
                    "  {:<11} usable: {} processes{load}{missed}",
                    source.source,
                    source.processes.unwrap_or(0)
                )?;
            }
            Some(error) => writeln!(out, "  {:<11} refused: {error}", source.source)?,
        }
    }
    print_service(out, &report.service)?;
    let OneLook {
        source,
        files,
        limit,
    } = report.one_shot;
    writeln!(
        out,
        "one look      from {source}: ps would read {files} files of /proc; from {limit} on BPF programs pay"
    )?;
    if let Some(array) = &report.array {
        writeln!(
            out,
            "array         room for {} processes, {:.1} MB",
            array.capacity,
            array.bytes as f64 / 1e6
        )?;
    }
    let groups: Vec<&str> = report.fields.iter().map(|group| group.group).collect();
    writeln!(
        out,
        "fields        from {}: {}",
        report.source,
        groups.join(", ")
    )?;
    let calibration = &report.calibration;
    let exact = match calibration.exact_rss {
        Some(true) => "exact",
        Some(false) => "approximate, as this kernel prints it",
        None => "not told apart from approximate here",
    };
    writeln!(out, "resident set  {exact}")?;
    print_counters(out, &report.counters)?;
    match &report.exits.error {
        None => writeln!(
            out,
            "exits         recorded, by tracepoints of the scheduler"
        )?,
        Some(error) => writeln!(out, "exits         not recorded: {error}")?,
    }
    timing::print(out, &report.timing)
}

fn print_service(out: &mut impl Write, service: &Service) -> std::io::Result<()> {
    let socket = service.socket.as_deref().unwrap_or("none");
    let (Some(version), Some(pid), Some(source)) = (&service.version, service.pid, &service.source)
    else {
        return writeln!(out, "service       nobody answers at {socket}");
    };
    writeln!(
        out,
        "service       {socket}: version {version}, process {pid}, from {source}"
    )?;
    match (&service.shares, &service.error) {
        (Some(shares), _) => writeln!(out, "              shows this user {shares}"),
        (None, error) => writeln!(
            out,
            "              refuses: {}",
            error.as_deref().unwrap_or("it does not say why")
        ),
    }
}

fn print_counters(out: &mut impl Write, counters: &CountersReport) -> std::io::Result<()> {
    if let Some(error) = &counters.error {
        writeln!(out, "counters      from the kernel's files: {error}")?;
        return writeln!(
            out,
            "              --stat-irqs-latency-ms saves nothing: the kernel prints the whole file or none"
        );
    }
    let from_text = counters
        .lines
        .iter()
        .filter(|line| line.from == "text")
        .count();
    writeln!(
        out,
        "counters      {} lines, {from_text} of them from the kernel's text; symbols {}; --stat-irqs-latency-ms {}",
        counters.lines.len(),
        if counters.symbols {
            "visible"
        } else {
            "hidden"
        },
        if counters.latency_knob {
            "works"
        } else {
            "saves nothing here"
        },
    )?;
    for line in &counters.lines {
        let proven = match (line.from, line.nonzero) {
            ("text", _) => "",
            (_, true) => "  proven non-zero",
            (_, false) => "  only ever zero",
        };
        writeln!(
            out,
            "  {:<7} {:<32} {}{proven}",
            line.file, line.line, line.route
        )?;
    }
    Ok(())
}
