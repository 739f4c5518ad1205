//! `fastproc doctor`: which sources work on this machine, which one is used, and why.

mod text;
mod timing;

use std::{io::Write as _, process::ExitCode};

use fastproc::{
    Collector, Fields, Keeping, OneShot, SourceKind,
    cgroups::{self, Cgroups},
    counters::{Counters, Evidence, Route},
    exits::Exits,
    proc_root,
    source::service,
};
use rustix::thread::{CapabilitySet, capabilities};
use serde::Serialize;

use self::timing::Timing;
use crate::{Failure, failure::chain, output::TextOrJson};

/// Report what works here, what is missing, and how to get it.
///
/// The report has a few lines. --counters adds the source of every counter; --json prints everything.
///
/// The exit status is 0, or 2 if the command could not run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:
  fastproc doctor
      Report what works and what is missing
  fastproc doctor --timing
      Also measure how long opening takes
  fastproc doctor --counters
      Also list the source of every counter of the machine
  fastproc doctor --json | jq '.sources[] | select(.usable | not) | .error'
      List why sources cannot be used")]
pub struct Args {
    /// Measure the CPU time that each part of opening takes, for fastproc ps, counters and exits.
    #[arg(long)]
    timing: bool,

    /// List where each line of the machine's counters comes from.
    #[arg(long)]
    counters: bool,

    #[command(flatten)]
    output: TextOrJson,
}

#[derive(Serialize)]
struct Report {
    kernel: String,
    architecture: String,
    privileges: Privileges,
    /// The source that would be used.
    source: &'static str,
    /// How many processes it shows.
    processes: usize,
    /// How many of them its walk missed; they are read from `/proc`.
    missed: u32,
    one_shot: OneLook,
    sources: Vec<Source>,
    service: Service,
    fields: Vec<Group>,
    array: Option<Array>,
    calibration: Calibration,
    records: Records,
    counters: CountersReport,
    exits: ExitsReport,
    cgroups: CgroupsReport,
    /// Whether delay accounting is switched on. `None`: the kernel has no switch for it.
    delay_accounting: Option<bool>,
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

/// The service that this process would use.
#[derive(Default, Serialize)]
struct Service {
    /// The path of its socket.
    socket: Option<String>,
    version: Option<String>,
    pid: Option<u64>,
    /// The process that serves the metrics that the service collects, if it does.
    exporter: Option<u64>,
    /// The source of its snapshots.
    source: Option<String>,
    /// Which processes it shows to this process.
    shares: Option<&'static str>,
    error: Option<String>,
}

/// How a single snapshot is read, as by `ps` without an interval.
#[derive(Serialize)]
struct OneLook {
    /// Its source.
    source: &'static str,
    /// The files of `/proc` that it would read for the fields of `ps`.
    files: u64,
    /// The number of files from which on BPF is used.
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

/// Whether records of unchanged processes are kept, instead of being read at each snapshot.
#[derive(Serialize)]
struct Records {
    kept: bool,
    /// Why they are not kept.
    reason: Option<&'static str>,
    /// Records that were read although they could have been kept, and that differed.
    disproven: u32,
}

#[derive(Serialize)]
struct CountersReport {
    available: bool,
    error: Option<String>,
    symbols: bool,
    latency_knob: bool,
    lines: Vec<CounterLine>,
}

/// Whether this process could record exits.
#[derive(Serialize)]
struct ExitsReport {
    recorded: bool,
    /// Whether by the service, because this process could not.
    by_service: bool,
    error: Option<String>,
}

/// How cgroups of version 2 would be read.
#[derive(Default, Serialize)]
struct CgroupsReport {
    /// `None`: they cannot be read.
    source: Option<&'static str>,
    count: usize,
    /// Controllers that are on version 1, or missing.
    absent_controllers: Vec<&'static str>,
    /// Whether memory.stat is read as text.
    memory_stat_as_text: bool,
    /// Why they cannot be read, or not by BPF.
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
    if args.output.is_json() {
        serde_json::to_writer(&mut out, &report)?;
        writeln!(out)?;
    } else {
        text::print(&mut out, &report)?;
        if args.counters {
            text::print_counters(&mut out, &report.counters)?;
        }
        timing::print(&mut out, &report.timing)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn examine() -> Result<Report, Failure> {
    let sources = SourceKind::LOCAL.map(try_source).into();
    let service = examine_service();
    let mut collector = Collector::builder().fields(Fields::all()).open()?;
    let source = collector.source();
    let snapshot = collector.snapshot()?;
    let (processes, missed) = (snapshot.len(), snapshot.stats().missed);
    let calibration = collector.calibration();
    Ok(Report {
        kernel: kernel_release(),
        architecture: architecture(),
        privileges: privileges(),
        source: source.name(),
        processes,
        missed,
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
        records: examine_records(),
        counters: examine_counters().unwrap_or_else(|error| CountersReport {
            available: false,
            error: Some(chain(&error)),
            symbols: false,
            latency_knob: false,
            lines: Vec::new(),
        }),
        exits: examine_exits(),
        cgroups: examine_cgroups().unwrap_or_else(|error| CgroupsReport {
            error: Some(chain(&error)),
            ..CgroupsReport::default()
        }),
        delay_accounting: delay_accounting(),
        timing: Vec::new(),
    })
}

/// Takes enough snapshots to check each record once, if records are kept.
fn examine_records() -> Records {
    let mut records = Records {
        kept: false,
        reason: None,
        disproven: 0,
    };
    let open = |source| {
        let builder = Collector::builder().source(Some(source));
        builder.fields(Fields::all() - Fields::THREADS).open()
    };
    let opened = open(SourceKind::Bpf).or_else(|_| open(SourceKind::BpfIter));
    let Ok(mut collector) = opened else {
        records.reason = Some("neither bpf nor bpf-iter can be used");
        return records;
    };
    for _ in 0..17 {
        let snapshot = collector.snapshot();
        records.disproven += snapshot.map_or(0, |snapshot| snapshot.stats().disproven);
        if collector.keeping() != Keeping::Kept {
            break;
        }
    }
    match collector.keeping() {
        Keeping::Kept => records.kept = true,
        Keeping::LacksTypes => {
            records.reason = Some("the type information of this kernel lacks what proves them");
        }
        Keeping::Off => {
            records.reason = Some("it is switched off, or not possible on this processor");
        }
    }
    records
}

fn delay_accounting() -> Option<bool> {
    let switch = std::fs::read(proc_root::path("/proc/sys/kernel/task_delayacct")).ok()?;
    Some(switch.trim_ascii() != b"0")
}

fn one_look() -> OneLook {
    let collector = Collector::builder()
        .fields(timing::FIELDS)
        .one_shot(true)
        .open();
    OneLook {
        source: collector
            .map_or(SourceKind::Procfs, |collector| collector.source())
            .name(),
        files: OneShot::now(timing::FIELDS).files,
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
    let number = |name: &str| status.as_ref()?.get(name)?.as_u64();
    let all = rustix::process::geteuid().is_root();
    Service {
        socket: Some(path.display().to_string()),
        version: text("version"),
        pid: number("pid"),
        exporter: number("exporter"),
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
    let by_service = error.is_some()
        && service::socket_path().is_some_and(|path| service::Exits::open(&path).is_ok());
    ExitsReport {
        recorded: error.is_none() || by_service,
        by_service,
        error: error.map(|error| chain(&error)),
    }
}

/// `text` for the kernel's text, `bpf` for all other routes.
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

/// Architecture of the running kernel, as `uname -m` prints it.
fn architecture() -> String {
    rustix::system::uname()
        .machine()
        .to_string_lossy()
        .into_owned()
}

/// Release of the running kernel.
pub fn kernel_release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

fn examine_cgroups() -> Result<CgroupsReport, cgroups::Error> {
    use cgroups::Fields;
    let fields = Fields::ALL_BUT_AVERAGES - Fields::PRESSURE;
    let mut reader = Cgroups::builder().fields(fields).open()?;
    let count = reader.snapshot()?.len();
    Ok(CgroupsReport {
        source: Some(reader.source().name()),
        count,
        absent_controllers: reader.absent_controllers().to_vec(),
        memory_stat_as_text: reader.reads_memory_stat_as_text(),
        error: reader.refusal().map(|error| chain(error)),
    })
}
