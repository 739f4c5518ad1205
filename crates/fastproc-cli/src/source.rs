//! `--source` and `--stat-irqs-latency`, the same for every subcommand.

use std::time::Duration;

use clap::ValueEnum;
use fastproc::SourceKind;
use fastproc_columns::parse_duration;

/// Sources of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Source {
    /// The first of the following sources that works on this machine
    #[default]
    Auto,
    /// A service, started as root with fastproc serve --no-metrics --socket
    Service,
    /// A BPF program that walks the tasks (Linux 6.7 and later)
    Bpf,
    /// A BPF program that the kernel's task iterator calls (Linux 5.8 and later)
    BpfIter,
    /// The files of /proc; needs no privileges
    Procfs,
}

impl Source {
    /// The only source that the library may use. `None`: the library chooses.
    pub const fn kind(self) -> Option<SourceKind> {
        match self {
            Self::Auto => None,
            Self::Service => Some(SourceKind::Service),
            Self::Bpf => Some(SourceKind::Bpf),
            Self::BpfIter => Some(SourceKind::BpfIter),
            Self::Procfs => Some(SourceKind::Procfs),
        }
    }
}

/// How old interrupt counts may be.
#[derive(Clone, Debug, clap::Args)]
pub struct IrqsLatency {
    /// Allow interrupt counts of /proc/stat to be this old, as in 0.5 or 100ms; 0 means always exact.
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = parse_duration)]
    stat_irqs_latency: Duration,
}

impl IrqsLatency {
    /// The age.
    pub fn get(&self) -> Duration {
        self.stat_irqs_latency
    }
}
