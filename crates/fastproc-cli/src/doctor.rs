//! `fastproc doctor`: what this machine allows, what would be used, and why.

use std::{io::Write, process::ExitCode};

use fastproc::{
    Collector, Fields, SourceKind,
    counters::{Counters, Evidence, Route},
};
use rustix::thread::{CapabilitySet, capabilities};
use serde::Serialize;

use crate::{Failure, failure::chain};

/// Tell what this machine allows: which source would be used, which were refused and why, and where every value comes
/// from.
///
/// Exit status: 0; 2 if it could not run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:
  fastproc doctor
  fastproc doctor --json | jq '.sources[] | select(.usable | not) | .error'")]
pub struct Args {
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
    sources: Vec<Source>,
    fields: Vec<Group>,
    array: Option<Array>,
    calibration: Calibration,
    counters: CountersReport,
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
    let report = examine()?;
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
    let mut collector = Collector::builder().fields(Fields::all()).open()?;
    let source = collector.source();
    collector.snapshot()?;
    let calibration = collector.calibration();
    Ok(Report {
        kernel: kernel_release(),
        privileges: privileges(),
        source: source.name(),
        sources,
        fields: Fields::NAMES
            .iter()
            .map(|(group, _)| Group {
                group,
                from: source.name(),
            })
            .collect(),
        array: collector
            .array()
            .map(|(capacity, bytes)| Array { capacity, bytes }),
        calibration: Calibration {
            exact_rss: calibration.exact_rss,
            workers_by_comm: calibration.workers_by_comm,
            thp_disable_bit: calibration.thp_disable_bit,
        },
        counters: examine_counters()?,
    })
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

fn examine_counters() -> Result<CountersReport, Failure> {
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
    print_counters(out, &report.counters)
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
