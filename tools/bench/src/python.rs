//! `fastproc bench python`: a snapshot of all processes from Python, by psutil and by the package `fastproc`.

use std::{
    collections::BTreeMap,
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde::{Deserialize, Serialize};

use super::{
    idle::Idle,
    measure::Failure,
    report::{Column, Report, Row, Spread, column, four_decimals},
    service::Service,
};

/// The Python program that measures.
const PROGRAM: &str = include_str!("../../../python/benchmark.py");
/// The case that the others are compared with.
const BASELINE: &str = "psutil";

/// Arguments of `fastproc bench python`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this many idle processes first, and end them afterwards. 0: measure the machine as it is.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    processes: usize,
    /// Measure each case this many times, in turn with the others.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Use this Python. It needs the packages fastproc and psutil, and for some cases Glances, Polars and pandas; make
    /// test-python creates an environment with them in target/venv.
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: PathBuf,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
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

#[derive(Debug, Serialize)]
struct Head {
    processes: usize,
    /// Time that importing fastproc takes.
    import_ms: Spread,
    /// Memory of a table of the twelve columns.
    table_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Look {
    case: String,
    /// CPU time, including that of the service.
    cpu_ms: Spread,
    #[serde(serialize_with = "four_decimals")]
    ratio_vs_psutil: f64,
}

impl Row for Look {
    const COLUMNS: &'static [Column] = &[
        column("case", 0),
        column("CPU ms", 0),
        column("min", 1),
        column("max", 1),
        column("times cheaper", 0),
    ];

    fn cells(&self) -> Vec<String> {
        let ms = |value: f64| format!("{value:.2}");
        vec![
            self.case.clone(),
            ms(self.cpu_ms.median),
            ms(self.cpu_ms.min),
            ms(self.cpu_ms.max),
            format!("{:.1}", self.ratio_vs_psutil),
        ]
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    let idle = Idle::start_some(args.processes)?;
    let service = Service::start(&["--cpu-of-user=1000"])?;
    let mut child = Command::new(&args.python)
        .args(["-", &args.rounds.to_string()])
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
    let baseline = measured
        .cases
        .get(BASELINE)
        .map_or(f64::NAN, |seconds| ms(seconds).median);
    let mut rows: Vec<_> = measured
        .cases
        .iter()
        .map(|(case, seconds)| {
            let cpu_ms = ms(seconds);
            Look {
                case: case.clone(),
                cpu_ms,
                ratio_vs_psutil: baseline / cpu_ms.median,
            }
        })
        .collect();
    rows.sort_by(|a, b| b.cpu_ms.median.total_cmp(&a.cpu_ms.median));
    let head = Head {
        processes: measured.processes,
        import_ms: ms(&measured.import),
        table_bytes: measured.table_bytes,
    };
    let title = format!("{} processes from Python", head.processes);
    let notes = [
        format!("Importing fastproc: {:.1} ms.", head.import_ms.median),
        format!(
            "A table of twelve columns: {:.2} MB.",
            head.table_bytes as f64 / 1e6
        ),
    ];
    let mut report = Report::new("python", head, rows, Vec::new());
    for note in notes {
        report.note(note);
    }
    report.print(&title, args.json)?;
    Ok(())
}
