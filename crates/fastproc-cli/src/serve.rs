//! `fastproc serve`: metrics for Prometheus.
#![allow(
    clippy::struct_excessive_bools,
    reason = "a switch for each thing that can be switched"
)]
#![allow(
    clippy::format_push_string,
    reason = "none of these strings is on the way of a scrape"
)]

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::{ArgAction, ValueEnum};
use fastproc::SourceKind;
use fastproc_exporter::{
    costly,
    exporter::{Exporter, Settings},
    groups,
    metrics::{Switches, VmstatFilter},
    naming::{self, Rules},
    privileges::{self, Needs},
    web::{Limits, Server, WebConfig, scraper},
};

use crate::{Failure, source::Source};

const EXAMPLES: &str = "\
Examples:
  fastproc serve
      at 127.0.0.1:9256, a group for each name
  fastproc serve --listen=:9256 --config=/etc/process-exporter/all.yaml
      in place of process-exporter: at every address, with its configuration
  fastproc serve --max-groups=100 --rank=cpu
      the 100 groups that use most CPU time; the group \"other\" has the rest
  fastproc serve --gather-smaps --gather-fds --costly-share=0.02
      proportional memory and open descriptors, for no more than 2% of one CPU
  fastproc serve --source=procfs --user=metrics
      without BPF, and as a user of its own

Groups, in the file for --config: the first item that matches a process names its group.
  process_names:
    - name: \"{{.Comm}}:{{.Matches.Port}}\"
      comm: [postgres, nginx]
      cmdline: ['-p\\s+(?P<Port>\\d+)']
    - name: \"{{.Comm}}\"
      cmdline: ['.+']

TLS and passwords: make a certificate, or take one that you have,
  openssl req -x509 -newkey rsa:4096 -nodes -days 365 -keyout fastproc.key -out fastproc.pem \\
      -subj /CN=$(hostname) -addext subjectAltName=DNS:$(hostname)
make a password's hash with htpasswd (-nB USER, which asks for it), and name all in a file for --web.config.file:
  tls_server_config:
    cert_file: fastproc.pem
    key_file: fastproc.key
  basic_auth_users:
    prometheus: $2y$10$…
This program reads them before it gives up root. A certificate that is replaced takes a restart.

In Prometheus:
  scrape_configs:
    - job_name: fastproc
      scheme: https
      tls_config: {ca_file: fastproc.pem}
      basic_auth: {username: prometheus, password_file: fastproc.password}
      static_configs: [{targets: ['HOST:9256']}]

Exit status: 0 ended by SIGTERM or SIGINT; 2 it could not run, and standard error says why.";

/// Serve metrics of processes and of this machine to Prometheus.
///
/// Processes are grouped as process-exporter groups them, with its configuration and under its names; the machine's
/// counters have the names of `node_exporter`. Each scrape is one snapshot. Started as root, it becomes an unprivileged
/// user once everything is loaded.
#[derive(Debug, clap::Args)]
#[command(after_help = "--help has examples, of certificates and passwords too.")]
#[command(after_long_help = EXAMPLES)]
pub struct Args {
    /// Listen at this address; without one, as in :9256, at all of them.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9256",
        visible_alias = "web.listen-address"
    )]
    listen: String,
    /// Group processes by this file, in the form of process-exporter's. Without, whatever has a command line is grouped
    /// by its name.
    #[arg(long, value_name = "FILE", visible_alias = "config.path")]
    config: Option<PathBuf>,
    /// Serve by TLS, and ask for passwords, as this file says: the exporter toolkit's. The examples below have one.
    #[arg(long = "web.config.file", value_name = "FILE")]
    web_config: Option<PathBuf>,
    /// Group only processes with these names.
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        conflicts_with = "config"
    )]
    procnames: Vec<String>,
    /// Add to a name what a regular expression captures in the command line.
    #[arg(long, value_name = "NAME,REGEX,…", conflicts_with = "config")]
    namemapping: Option<String>,
    /// A process that is in no group belongs to the group of its parent.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    children: bool,
    /// Tell what threads do, by their names.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    threads: bool,
    /// Look at the names of processes again at each scrape.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    recheck: bool,
    /// Look again only at processes that are younger than this.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    recheck_with_time_limit: Option<Duration>,
    /// Forget groups that have no processes.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    remove_empty_groups: bool,
    /// Show at most so many groups. The others are summed up as the group "other".
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_groups: usize,
    /// Which groups are shown: those that came first, or those with the most of something.
    #[arg(long, value_name = "BY", value_enum, default_value_t)]
    rank: Rank,
    /// Tell at most so many names of threads. The others are summed up under "other".
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_thread_names: usize,
    /// Tell proportional memory, which the kernel reads by walking all pages of a process.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    gather_smaps: bool,
    /// Tell open descriptors.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    gather_fds: bool,
    /// Tell in which function of the kernel threads wait.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    gather_wchan: bool,
    /// The part of one CPU's time that may go into the last three. Their ages are told with them.
    #[arg(long, value_name = "PART", default_value_t = 0.01, value_parser = share)]
    costly_share: f64,
    /// Scrapes that follow one another faster than this share a snapshot.
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = duration)]
    min_interval: Duration,
    /// Connections at once.
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// Where processes are read from.
    #[arg(long, value_enum, default_value_t)]
    source: Source,
    /// The user to become, if this is root.
    #[arg(long, value_name = "USER", default_value = "nobody")]
    user: String,
    #[command(flatten)]
    collectors: Collectors,
}

/// Parts of the machine's metrics, named as in `node_exporter`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Metrics of the machine")]
struct Collectors {
    /// Leave out `node_cpu`_*.
    #[arg(long = "no-collector.cpu")]
    no_cpu: bool,
    /// Leave out `node_intr_total`, `node_forks_total` and their like.
    #[arg(long = "no-collector.stat")]
    no_stat: bool,
    /// Leave out `node_softirqs_total`.
    #[arg(long = "no-collector.softirqs")]
    no_softirqs: bool,
    /// Leave out `node_vmstat`_*.
    #[arg(long = "no-collector.vmstat")]
    no_vmstat: bool,
    /// Fields of /proc/vmstat.
    #[arg(long = "collector.vmstat.fields", value_name = "REGEX", default_value = VmstatFilter::DEFAULT)]
    vmstat_fields: String,
    /// Leave out `node_processes`_*.
    #[arg(long = "no-collector.processes")]
    no_processes: bool,
    /// Tell `node_interrupts_total`: a series for each interrupt and CPU.
    #[arg(long = "collector.interrupts")]
    interrupts: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Rank {
    /// Those that came first stay
    #[default]
    First,
    /// The most CPU time since the last scrape
    Cpu,
    /// The most resident memory
    Memory,
}

/// As Go writes it: `500ms`, `1.5s`, `2m`, `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration, such as 500ms, 10s or 1h30m");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut total, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let after = &rest[digits..];
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        total += number
            * match &after[..end] {
                "ns" => 1e-9,
                "us" | "µs" => 1e-6,
                "ms" => 1e-3,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return Err(wrong()),
            };
        rest = &after[end..];
    }
    if text.is_empty() {
        return Err(wrong());
    }
    Duration::try_from_secs_f64(total).map_err(|_| wrong())
}

fn share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| format!("{text:?} is no part of a CPU's time, from 0 to 1"))
}

impl Args {
    fn rules(&self) -> Result<Rules, Failure> {
        if let Some(path) = &self.config {
            return Ok(naming::read(path)?);
        }
        if self.procnames.is_empty() && self.namemapping.is_none() {
            return Ok(Rules::default());
        }
        Ok(Rules::of_names(
            &self.procnames,
            self.namemapping.as_deref(),
        )?)
    }

    fn settings(&self) -> Result<Settings, Failure> {
        let collectors = &self.collectors;
        let fields = VmstatFilter::new(&collectors.vmstat_fields)?;
        Ok(Settings {
            source: self.source.kind(),
            groups: groups::Options {
                rules: self.rules()?,
                children: self.children,
                recheck: self.recheck || self.recheck_with_time_limit.is_some(),
                recheck_within: self.recheck_with_time_limit,
                threads: self.threads,
                remove_empty: self.remove_empty_groups,
                limits: groups::Limits {
                    groups: self.max_groups,
                    rank: match self.rank {
                        Rank::First => groups::Rank::First,
                        Rank::Cpu => groups::Rank::Cpu,
                        Rank::Memory => groups::Rank::Memory,
                    },
                    thread_names: self.max_thread_names,
                },
            },
            costly: costly::Settings {
                smaps: self.gather_smaps,
                fds: self.gather_fds,
                wchan: self.gather_wchan,
                share: self.costly_share,
            },
            host: Switches {
                cpu: !collectors.no_cpu,
                stat: !collectors.no_stat,
                softirqs: !collectors.no_softirqs,
                interrupts: collectors.interrupts,
                processes: !collectors.no_processes,
                vmstat: (!collectors.no_vmstat).then_some(fields),
            },
        })
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let settings = args.settings()?;
    let web = match &args.web_config {
        Some(path) => WebConfig::read(path)?,
        None => WebConfig::default(),
    };
    let limits = Limits {
        connections: args.max_connections,
        ..Limits::default()
    };
    let scheme = if web.has_tls() { "https" } else { "http" };
    let server = Server::bind(&args.listen, web, limits)?;
    let exporter = Exporter::open(settings)?;
    for (kind, error) in exporter.refused() {
        say(&format!("source {} cannot be used: {error}", kind.name()));
    }
    let source = exporter.source();
    privileges::drop_to(
        &args.user,
        Needs {
            bpf: source != SourceKind::Procfs,
            proc_of_others: exporter.needs_proc_of_others(),
        },
    )?;
    say(&format!(
        "serving {scheme}://{}/metrics, from {}",
        server.address()?,
        source.name()
    ));
    let (scraper, handle) = scraper(exporter, args.min_interval);
    let web = std::thread::Builder::new()
        .name("web".into())
        .spawn(move || server.run(handle))?;
    // Ends when the web server has, which holds the only handle.
    scraper.run(|error| say(&chain(error)));
    match web.join() {
        Ok(served) => served?,
        Err(_) => return Err("the web server has failed".into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// On standard error, where a service's log is. Where that is closed there is nobody to tell.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "fastproc: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_as_go_writes_them() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for wrong in ["", "5", "s", "1x", "1s2", "-1s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
