//! `fastproc bench python`: a snapshot of all processes from Python, by psutil and by the package `fastproc`.

use std::{
    collections::BTreeMap,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde::Deserialize;
use serde_json::json;

use super::{
    idle::Processes,
    measure::{Common, Failure},
    report::{Column, Report, Spread, column},
    service::Service,
};

/// The Python program that measures.
const PROGRAM: &str = include_str!("../../../python/benchmark.py");
/// The case that the others are compared with.
const BASELINE: &str = "psutil";

/// Arguments of `fastproc bench python`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    processes: Processes,
    /// Use this Python. It needs the packages fastproc and psutil, and for some cases Glances, Polars and pandas; make
    /// test-python creates an environment with them in target/venv.
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
}

/// The output of the program.
#[derive(Debug, Deserialize)]
struct Measured {
    processes: usize,
    /// Seconds.
    import: Vec<f64>,
    table_bytes: u64,
    cases: BTreeMap<String, Vec<f64>>,
}

const COLUMNS: [Column; 3] = [
    column("case", "case", 0, 0),
    // CPU time, including that of the service.
    column("cpu_ms", "CPU ms", 2, 0),
    column("ratio_vs_psutil", "times cheaper", 1, 0),
];

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    let idle = args.processes.start()?;
    let service = Service::start(&["--cpu-of-user=1000"])?;
    let mut child = Command::new(&args.python)
        .args(["-", &common.rounds(11).to_string()])
        .env("FASTPROC_SOCKET", &service.socket)
        .env("FASTPROC_SERVICE_PID", service.pid().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", args.python.display()))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(PROGRAM.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    drop((idle, service));
    if !output.status.success() {
        return Err(format!("{}: {}", args.python.display(), output.status).into());
    }
    let measured: Measured = serde_json::from_slice(&output.stdout)?;
    let ms = |seconds: &[f64]| Spread::of(seconds.iter().map(|seconds| seconds * 1e3));
    let baseline = measured.cases.get(BASELINE);
    let baseline = baseline.map_or(f64::NAN, |seconds| ms(seconds).median);
    let mut cases: Vec<_> = measured
        .cases
        .iter()
        .map(|(case, of)| (case, ms(of)))
        .collect();
    cases.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
    let mut report = Report::new("python", "All processes from Python", &COLUMNS);
    for (case, cpu) in cases {
        report.row([
            case.as_str().into(),
            cpu.into(),
            (baseline / cpu.median).into(),
        ]);
    }
    let (processes, import) = (measured.processes, ms(&measured.import));
    report.head(json!({
        "processes": processes,
        // Time that importing fastproc takes.
        "import_ms": import.json(),
        // Memory of a table of the twelve columns.
        "table_bytes": measured.table_bytes,
    }));
    report.note(format!(
        "Processes: {processes}. Importing fastproc: {:.1} ms.",
        import.median
    ));
    let megabytes = measured.table_bytes as f64 / 1e6;
    report.note(format!("A table of twelve columns: {megabytes:.2} MB."));
    Ok(report.print(common.json)?)
}
