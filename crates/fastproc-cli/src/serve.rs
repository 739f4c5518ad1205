//! `fastproc serve`: metrics for Prometheus.
#![allow(
    clippy::struct_excessive_bools,
    reason = "a switch for each thing that can be switched"
)]
#![allow(
    clippy::format_push_string,
    reason = "none of these strings is on the way of a scrape"
)]

mod cgroups;
mod collectors;
mod configuration;
mod examples;
mod exporter;
mod flags;
mod listen;
mod peers;
mod signals;
mod socket;

use std::{
    io::{self, Write},
    net::TcpListener,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use clap::{ArgAction, ValueEnum};
use fastproc::{SourceKind, cgroups::Source as CgroupSource, frozen, proc_root};
use fastproc_columns::parse_duration;
use fastproc_metrics::{
    collecting::{Bounds, Collecting},
    costly, descriptors,
    exporter::{Exporter, Settings},
    exposition::{Exposition, Format},
    groups,
    naming::Rules,
    privileges::{self, Needs},
    say, sys_root,
};

use fastproc_service::Service;

use self::{
    cgroups::CgroupArgs,
    collectors::Collectors,
    configuration::Files,
    exporter::Configured,
    flags::{boolean, path, share},
    peers::Peers,
    signals::Signals,
};
use crate::{Failure, failure::chain, source::Source, standard};

pub use self::flags::{bytes, part, with_two_dashes};

/// Serve metrics of processes and of this machine to Prometheus.
///
/// Processes are grouped as process-exporter groups them, with its configuration and under its names; the machine's
/// counters have the names of `node_exporter`. Each scrape is one snapshot. Started as root, it becomes an unprivileged
/// user once everything is loaded.
#[derive(Debug, clap::Args)]
#[command(version)]
#[command(after_help = "--help has examples, of certificates and passwords too.")]
#[command(after_long_help = examples::EXAMPLES)]
pub struct Args {
    /// Listen at this address. Without a host, as in :9256, listen at all addresses. Can be repeated.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9256",
        visible_alias = "web.listen-address"
    )]
    listen: Vec<String>,
    /// Group processes by this file, in the format of process-exporter. Without it, processes with a command line are
    /// grouped by name.
    #[arg(long, value_name = "FILE", visible_alias = "config.path")]
    config: Option<PathBuf>,
    /// Serve metrics under this path.
    #[arg(
        long = "web.telemetry-path",
        value_name = "PATH",
        default_value = "/metrics",
        value_parser = path
    )]
    telemetry_path: String,
    /// Take two snapshots, this long apart, write the metrics to standard output, and exit.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    once_to_stdout_delay: Option<Duration>,
    /// Print to standard error how processes are grouped.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    debug: bool,
    /// Read files of container runtimes and ask file systems below this folder: where a container has mounted the host's
    /// file system. By default these are the files below / or below the root of process 1, and the file systems that
    /// process 1 sees.
    #[arg(long, value_name = "FOLDER", visible_alias = "path.rootfs")]
    host_root: Option<PathBuf>,
    /// The same as --procfs, for a command line of `node_exporter`.
    #[arg(long = "path.procfs", hide = true, value_name = "FOLDER")]
    path_procfs: Option<PathBuf>,
    /// Read the sysfs that is mounted at this folder, as in a container that has the host's.
    #[arg(long = "path.sysfs", value_name = "FOLDER")]
    sysfs: Option<PathBuf>,
    /// Serve by TLS and require passwords as this file says, in the format of Prometheus's exporter toolkit; see the
    /// examples.
    #[arg(long = "web.config.file", value_name = "FILE")]
    web_config: Option<PathBuf>,
    /// Reload the configuration at POST or PUT of /-/reload, as at SIGHUP.
    #[arg(long = "web.enable-lifecycle", value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    enable_lifecycle: bool,
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
    /// Add a process that is in no group to the group of its parent.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    children: bool,
    /// Export metrics of threads, by their names.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    threads: bool,
    /// At each scrape, group again processes that are in no group, or have run since and may have another name.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    recheck: bool,
    /// Group again only processes that are younger than this.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    recheck_with_time_limit: Option<Duration>,
    /// Remove groups without processes.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    remove_empty_groups: bool,
    /// Export at most N groups, and the sum of the others as the group "other".
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_groups: usize,
    /// Export the groups that came first, or those with the most of a resource.
    #[arg(long, value_name = "BY", value_enum, default_value_t)]
    rank: Rank,
    /// Export at most N names of threads, and the sum of the others as "other".
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    max_thread_names: usize,
    /// Export proportional memory, for which the kernel walks all pages of a process.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    gather_smaps: bool,
    /// Export open descriptors.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    gather_fds: bool,
    /// Export the kernel functions in which threads wait.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    gather_wchan: bool,
    /// Count processes that start and exit between two scrapes. Needs the privileges to read by BPF.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = boolean)]
    exits: bool,
    /// Spend at most this part of one CPU's time on smaps, fds and wchan. Their ages are exported.
    #[arg(long, value_name = "PART", default_value_t = 0.01, value_parser = share)]
    costly_share: f64,
    #[command(flatten)]
    cgroups: CgroupArgs,
    /// Let scrapes within this time share a snapshot.
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = parse_duration)]
    min_interval: Duration,
    /// Accept at most N connections at once. A further one replaces an idle one, but never one that has shown a
    /// password.
    #[arg(long, value_name = "N", default_value_t = 256)]
    max_connections: usize,
    /// Read processes from this source.
    #[arg(long, value_enum, default_value_t)]
    source: Source,
    /// Become this user, if started as root. As root it reads text files that only root may read, also behind links in a
    /// folder for --collector.textfile.directory. [default: fastproc if it exists, else nobody]
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// The time that the serving and collecting processes may take to exit.
    #[arg(long, hide = true, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    end_within: Duration,
    /// Flags were given with one dash.
    #[arg(long, hide = true)]
    one_dash: bool,
    #[command(flatten)]
    collectors: Collectors,
    #[command(flatten)]
    socket: socket::SocketArgs,
    #[command(flatten)]
    peers: Peers,
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

impl Args {
    fn files(&self) -> Files {
        Files {
            groups: self.config.clone(),
            web: self.web_config.clone(),
            names: Vec::new(),
        }
    }

    /// The rules from flags.
    fn rules(&self) -> Result<Rules, Failure> {
        if self.procnames.is_empty() && self.namemapping.is_none() {
            return Ok(Rules::default());
        }
        Ok(Rules::of_names(
            &self.procnames,
            self.namemapping.as_deref(),
        )?)
    }

    /// Whether it runs with the configuration or the flags of process-exporter. Then a `node_exporter` is likely to run
    /// as well.
    fn replaces_process_exporter(&self) -> bool {
        self.one_dash
            || self.config.is_some()
            || !self.procnames.is_empty()
            || self.namemapping.is_some()
            || proc_root::is_elsewhere() && self.path_procfs.is_none()
    }

    fn settings(&self, rules: Option<Rules>) -> Result<Settings, Failure> {
        let regroups = rules.as_ref().is_some_and(|rules| !rules.is_empty());
        let rules = rules.map_or_else(|| self.rules(), Ok)?;
        let by_files = self.source.kind() == Some(SourceKind::Procfs);
        Ok(Settings {
            source: self.source.kind(),
            groups: groups::Options {
                rules,
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
            cgroups: self.cgroups.settings(by_files),
            costly: costly::Settings {
                smaps: self.gather_smaps,
                fds: self.gather_fds,
                wchan: self.gather_wchan,
                share: self.costly_share,
            },
            regroups,
            host_root: self.host_root.clone(),
            exits: self.exits && !by_files,
            host: self.collectors.switches(!self.replaces_process_exporter()),
        })
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let hung_up = signals::remember_hangup()?;
    if let Some(folder) = &args.path_procfs {
        proc_root::set(folder)?;
    }
    if let Some(folder) = &args.sysfs {
        sys_root::set(folder)?;
    }
    if let Some(remark) = args.peers.remark() {
        say(&remark);
    }
    if args.socket.status {
        return args.socket.print_status();
    }
    match args.socket.open(args.source.kind())? {
        Some((service, taken)) if args.socket.no_metrics => {
            descriptors::raise_limit(taken)?;
            give_up_root(args, &[service.source()], true)?;
            // A refusal costs others a short wait, and no values.
            let _ = fastproc::give_way();
            confine();
            say(&args.socket.start_line(&service));
            socket::run(service)
        }
        service => serve_metrics(args, service, hung_up),
    }
}

/// Drops root, but keeps what these sources need.
fn give_up_root(args: &Args, sources: &[SourceKind], proc_of_others: bool) -> Result<(), Failure> {
    let needs = Needs {
        bpf: sources.iter().any(|source| *source != SourceKind::Procfs),
        proc_of_others,
        configuration: !args.files().are_none(),
    };
    Ok(privileges::drop_to(args.user.as_deref(), needs)?)
}

/// From now on this process can execute nothing and write no file.
fn confine() {
    if let Err(error) = fastproc_service::confine() {
        say(&format!(
            "what is not needed is not forbidden, system calls are not filtered: {error}"
        ));
    }
}

fn serve_metrics(
    args: &Args,
    service: Option<(Service, usize)>,
    hung_up: Arc<AtomicBool>,
) -> Result<ExitCode, Failure> {
    let (service, taken) = service.unzip();
    let signals = Signals::new(hung_up)?;
    let files = usize::from(args.cgroups.cgroups) * descriptors::OF_CGROUPS;
    let kept = args.max_connections + taken.unwrap_or(0) + files;
    let descriptors = descriptors::raise_limit(kept)?;
    let once = args.once_to_stdout_delay;
    // Only the exporter can parse its files.
    let mut exporter = match once {
        Some(_) if args.files().are_none() => None,
        _ => Some(exporter::Exporter::start(args)?),
    };
    let configured = match &mut exporter {
        None => Configured::default(),
        Some(started) => match started.configure()? {
            Some(configured) => configured,
            None => return exporter.map_or(Ok(ExitCode::SUCCESS), exporter::Exporter::end),
        },
    };
    let mut settings = args.settings(configured.rules)?;
    if descriptors < descriptors::FOR_BPF && settings.source.is_none() {
        say(&format!(
            "no more than {descriptors} descriptors may be open (ulimit -n), too few for BPF: /proc is read"
        ));
        settings.source = Some(SourceKind::Procfs);
        settings.exits = false;
        if let Some(cgroups) = &mut settings.cgroups {
            cgroups.source = Some(CgroupSource::Files);
        }
    }
    if fastproc::host::proc_is_of_own_namespace() {
        say(
            "it runs in a PID namespace of its own, as containers do, and sees no processes but those in it: all of the machine are seen \
             with hostPID: true in Kubernetes, or docker run --pid=host",
        );
    }
    if args.debug {
        // It has many lines, and names in them are escaped already. If standard error is closed, they are lost.
        let _ = writeln!(
            io::stderr(),
            "fastproc: processes are grouped by {:#?}",
            settings.groups.rules
        );
    }
    let exporter = match (exporter, once) {
        (Some(exporter), None) => exporter,
        (exporter, delay) => {
            exporter.map(exporter::Exporter::end).transpose()?;
            return write_once(args, settings, delay.unwrap_or_default());
        }
    };
    let scheme = if configured.has_tls { "https" } else { "http" };
    let listeners = args.listen.iter().map(|address| listen::at(address));
    let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
    let addresses = listeners.iter().map(TcpListener::local_addr);
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    let mut metrics = open(settings)?;
    let source = metrics.source();
    // The service reads /proc to identify its clients.
    let proc_of_others = service.is_some() || metrics.needs_proc_of_others();
    // Either may fall back to /proc.
    let sources: Vec<SourceKind> = service
        .iter()
        .map(Service::source)
        .chain([source])
        .collect();
    give_up_root(args, &sources, proc_of_others)?;
    let (scrapes, serving) = exporter.begin(&listeners)?;
    let _ = fastproc::give_way();
    signals::leave_to_other_threads()?;
    drop(listeners);
    if signals.leave_to_exporter() {
        serving.hang_up()?;
    }
    let service = service.map(|mut service| {
        service.collects_for(serving.pid());
        metrics.tell_of(socket::Counted(service.figures()));
        say(&args.socket.start_line(&service));
        socket::start(service)
    });
    let service = service.transpose()?;
    confine();
    for address in addresses {
        say(&format!(
            "serving {scheme}://{address}{}, from {}",
            args.telemetry_path,
            source.name()
        ));
    }
    let bounds = Bounds {
        regroups: args.config.is_some(),
        min_interval: args.min_interval,
    };
    let collected = Collecting::new(metrics, scrapes, bounds).run(|error| say(&chain(error)));
    if let Err(error) = collected {
        serving.kill();
        return Err(format!("fastproc-exporter cannot be answered: {error}").into());
    }
    // Its link is closed, so it exits by itself, or is killed.
    serving.end(&signals)?;
    if let Some((stop, thread)) = service {
        drop(stop);
        match thread.join() {
            Ok(served) => served?,
            Err(_) => return Err("the service has failed".into()),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes two snapshots, `delay` apart, and writes the metrics to standard output.
fn write_once(args: &Args, settings: Settings, delay: Duration) -> Result<ExitCode, Failure> {
    standard::output()?;
    let mut exporter = open(settings)?;
    give_up_root(args, &[exporter.source()], exporter.needs_proc_of_others())?;
    exporter.collect()?;
    frozen::sleep(delay);
    exporter.collect()?;
    for left_out in exporter.left_out() {
        say(&chain(&left_out));
    }
    if let Some(error) = exporter.take_name_error() {
        say(&chain(&error));
    }
    let mut text = Exposition::new(Format::Prometheus, Vec::new());
    exporter.write(&mut text);
    io::stdout().write_all(&text.finish())?;
    Ok(ExitCode::SUCCESS)
}

fn open(settings: Settings) -> Result<Exporter, Failure> {
    let exporter = Exporter::open(settings)?;
    let mut told = Vec::new();
    for refusal in exporter.refused() {
        let why = why(&refusal.error.to_string(), &mut told);
        say(&format!("source {} cannot be used{why}", refusal.source));
    }
    let unseen = exporter.unseen();
    if !unseen.is_empty() {
        say(&format!(
            "it does not have the host's network namespace, or may not see that, so these are left out: {}; set hostNetwork: true in \
             Kubernetes, use docker run --network=host --uts=host, or give it CAP_SYS_PTRACE",
            unseen.join(", ")
        ));
    }
    if let Some(cgroups) = exporter.cgroups() {
        if let Some(error) = cgroups.refusal() {
            let why = why(&chain(error), &mut told);
            say(&format!("cgroups are read from files{why}"));
        }
        let absent = cgroups.absent_controllers();
        if !absent.is_empty() {
            let absent = absent.join(", ");
            say(&format!(
                "controllers that are not on version 2, so not told of cgroups: {absent}"
            ));
        }
    }
    if let Some(error) = exporter.exits_refused() {
        let why = why(&error.to_string(), &mut told);
        say(&format!(
            "what lives and dies between two scrapes is not counted{why}"
        ));
    }
    Ok(exporter)
}

/// A reason and its advice, once. The first line alone: the verifier of BPF programs has more to say.
fn why(error: &str, told: &mut Vec<String>) -> String {
    let line = error.lines().next().unwrap_or_default();
    if told.iter().any(|told| told == line) {
        return ", for the same reason".into();
    }
    told.push(line.into());
    format!(": {line}")
}
