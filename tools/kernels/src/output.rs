//! The parts of fastproc's JSON output that are compared here. Other members may come and go.

use serde::Deserialize;

/// `fastproc doctor --json`.
#[derive(Debug, Deserialize)]
pub struct Doctor {
    /// The source that would be used.
    pub source: String,
    /// Each source.
    pub sources: Vec<Source>,
    /// The source of each group of fields.
    pub fields: Vec<Group>,
    /// The machine's counters.
    pub counters: Counters,
    /// The service, if one answers.
    pub service: Service,
}

/// The service.
#[derive(Debug, Deserialize)]
pub struct Service {
    /// Its version; `None` if no service answers.
    pub version: Option<String>,
    /// What it shows this reader.
    pub shares: Option<String>,
    /// Why it shows nothing.
    pub error: Option<String>,
}

/// A source, and whether it can be used.
#[derive(Debug, Deserialize)]
pub struct Source {
    /// Its name.
    #[serde(rename = "source")]
    pub name: String,
    /// Whether it can be used.
    pub usable: bool,
    /// Why not.
    pub error: Option<String>,
}

/// A group of fields.
#[derive(Debug, Deserialize)]
pub struct Group {
    /// Its name.
    pub group: String,
    /// Its source.
    pub from: String,
}

/// The machine's counters.
#[derive(Debug, Deserialize)]
pub struct Counters {
    /// Whether a program reads them.
    pub available: bool,
    /// Why not.
    pub error: Option<String>,
    /// Each line.
    pub lines: Vec<Line>,
}

/// A line of a file of counters.
#[derive(Debug, Deserialize)]
pub struct Line {
    /// The file.
    pub file: String,
    /// The line's first word.
    #[serde(rename = "line")]
    pub name: String,
    /// `bpf` or `text`.
    pub from: String,
}

/// `fastproc verify --json`.
#[derive(Debug, Deserialize)]
pub struct Verify {
    /// The source that was verified.
    pub source: String,
    /// Each field of a process.
    pub fields: Vec<Field>,
    /// Whole files of processes.
    pub texts: Vec<Text>,
    /// Each line of the machine's counters.
    pub counters: Vec<Counter>,
    /// Whole files of the machine.
    pub machine_texts: Vec<Text>,
    /// Interrupt counts that may be old, if that was requested and makes a difference.
    pub aged_interrupts: Option<Aged>,
    /// All comparisons.
    pub compared: u64,
    /// Those that failed.
    pub wrong: u64,
}

/// A field, over all processes.
#[derive(Debug, Deserialize)]
pub struct Field {
    /// The file.
    pub file: String,
    /// The field's name, or the line's.
    #[serde(rename = "field")]
    pub name: String,
    /// The counts of its comparisons.
    #[serde(flatten)]
    pub counts: Counts,
    /// Equal and not zero.
    pub nonzero: u64,
}

/// A file as a whole, over all processes or over all rounds.
#[derive(Debug, Deserialize)]
pub struct Text {
    /// The file.
    pub file: String,
    /// The counts of its comparisons.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A line of counters, over all rounds.
#[derive(Debug, Deserialize)]
pub struct Counter {
    /// The file.
    pub file: String,
    /// The line's first word.
    pub line: String,
    /// `bpf` or `text`.
    pub from: String,
    /// The counts of its comparisons.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Rows of interrupt counts that may be old.
#[derive(Debug, Deserialize)]
pub struct Aged {
    /// The counts of their comparisons.
    #[serde(flatten)]
    pub counts: Counts,
    /// Rows that were kept.
    pub kept: u64,
    /// Rows that were read again.
    pub renewed: u64,
}

/// Comparisons, by their result.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Counts {
    /// All comparisons.
    pub compared: u64,
    /// Equal to the kernel's.
    pub equal: u64,
    /// Wrong.
    pub wrong: u64,
}

/// `fastproc bench scan --json`.
#[derive(Debug, Deserialize)]
pub struct Scan {
    /// Each way to read every process.
    pub rows: Vec<Case>,
}

/// A way to read every process.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Its name.
    pub case: String,
    /// The cost of reading three files of each process, divided by that of this case.
    pub ratio_vs_proc_3files: f64,
}

/// `fastproc bench counters --json`.
#[derive(Debug, Deserialize)]
pub struct CounterCosts {
    /// Each way to read the counters.
    pub rows: Vec<CounterCost>,
}

/// A way to read the machine's counters.
#[derive(Debug, Deserialize)]
pub struct CounterCost {
    /// Its name.
    pub case: String,
    /// The cost of reading `/proc/stat`, divided by that of this case.
    pub ratio_vs_proc_stat: f64,
    /// The same for `/proc/interrupts`.
    pub ratio_vs_proc_interrupts: f64,
}

/// The JSON object in the last line of a program's output; lines before it are ignored.
pub fn object<'t, T: Deserialize<'t>>(stdout: &'t str) -> Result<T, String> {
    let line = stdout
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .ok_or("it printed nothing")?;
    serde_json::from_str(line).map_err(|error| {
        let beginning: String = line.chars().take(80).collect();
        format!("its JSON is not understood: {error}: {beginning}")
    })
}
