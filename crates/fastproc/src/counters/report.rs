//! The source of every line, and the results of its comparison: for `fastproc doctor`.

/// Where a line's numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route {
    /// The kernel's memory, at an address that `/proc/kallsyms` shows.
    Symbols,
    /// The kernel's memory, found from the running task by the types' layout.
    Structure,
    /// The kernel's text once, and a count of events since.
    Tracepoint,
    /// The clocks.
    Clock,
    /// The kernel prints the same number on all machines.
    Constant,
    /// The kernel's text.
    Text(WhyText),
}

/// Why a line comes from the kernel's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WhyText {
    /// BPF cannot be used: see [`Report::unavailable`].
    NoBpf,
    /// The number cannot be found on this kernel.
    NoRoute,
    /// The kernel computes it for each reader; such lines are read at most
    /// [`text_latency`](super::Counters::text_latency) apart.
    Computed,
    /// CPUs were booted `nohz_full`: their times are in per-task accounting.
    NohzFull,
    /// The memory and the text disagreed.
    Disagreed,
}

/// The result of comparing a line with the kernel's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Evidence {
    /// Not compared: the line comes from the text.
    None,
    /// It agreed, but every number in it has only ever been zero.
    OnlyZero,
    /// It agreed, and held a number other than zero.
    NonZero,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineReport {
    /// The file.
    pub file: &'static str,
    /// The line's first word.
    pub name: String,
    /// Where it comes from.
    pub route: Route,
    /// The result of its comparison.
    pub evidence: Evidence,
    /// Rounds in which it was compared.
    pub rounds: u32,
    /// Rounds in which the number in the text was not between the ones read before and after it.
    pub outside: u32,
}

/// What was decided on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Why BPF is not used, as a sentence.
    pub unavailable: Option<String>,
    /// Whether `/proc/kallsyms` shows the addresses of the kernel's data.
    pub symbols: bool,
    /// Whether the programs read by typed loads, or by a helper.
    pub typed_loads: bool,
    /// Whether interrupt counts come from the descriptors, so that
    /// [`stat_irqs_latency`](super::Counters::stat_irqs_latency) has something to save.
    pub latency_knob: bool,
    /// Comparisons with the text so far.
    pub checks: u64,
    /// Every line of `/proc/stat` and `/proc/vmstat`.
    pub lines: Vec<LineReport>,
}

impl Report {
    /// Lines that come from the kernel's text.
    pub fn from_text(&self) -> impl Iterator<Item = &LineReport> {
        self.lines
            .iter()
            .filter(|line| matches!(line.route, Route::Text(_)))
    }
}
