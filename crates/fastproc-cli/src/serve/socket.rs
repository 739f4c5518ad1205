//! `fastproc serve --socket`: snapshots for other processes.

use std::{
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use fastproc::{SourceKind, proc_root, source::service};
use fastproc_columns::parse_duration;
use fastproc_metrics::metrics;
use fastproc_service::{Figures, Service, Settings, bind_for, passed_by_systemd};

use crate::Failure;

/// What is served to readers on this machine.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Snapshots for other processes")]
pub struct SocketArgs {
    /// Serve snapshots at this socket, to whom the kernel would show the same; without a path, at
    /// /run/fastproc/fastproc.sock, where fastproc and its libraries look for them.
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = service::DEFAULT_SOCKET)]
    socket: Option<PathBuf>,
    /// Serve nothing but the socket.
    #[arg(long)]
    pub no_metrics: bool,
    /// With --no-metrics: end when nobody has been connected for so long.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "no_metrics")]
    idle_exit: Option<Duration>,
    /// How long a reader waits for command lines at most, and half of it for one process's. It reads those that are missing itself.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "400ms")]
    texts_timeout: Duration,
    /// Let only root and the members of this group connect to the socket. A socket of systemd's is set by its unit: `SocketGroup=`
    /// and `SocketMode=`.
    #[arg(long, value_name = "GROUP", requires = "socket")]
    group: Option<String>,
    /// The part of one CPU's time that work for one user may take; 1000 is no limit. Root has none.
    #[arg(long, value_name = "PART", default_value_t = 0.5, value_parser = super::flags::share_of_user)]
    cpu_of_user: f64,
    /// Memory that the readers of one user may hold in snapshots; root's four times as much.
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = super::flags::bytes)]
    memory_of_user: usize,
    /// The same of the readers of all users but root.
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = super::flags::bytes)]
    memory_of_all: usize,
    /// Tell who uses the service that listens at the socket, and end.
    #[arg(long, conflicts_with_all = ["no_metrics", "idle_exit"])]
    pub status: bool,
    /// With --status: print one JSON object.
    #[arg(long, requires = "status")]
    json: bool,
}

impl SocketArgs {
    fn path(&self) -> Option<PathBuf> {
        self.socket.clone().or_else(service::socket_path)
    }

    /// Listens, and loads what reading takes; while this is still root. `None`: it was not requested.
    ///
    /// Returns the descriptors that it takes at most, too.
    pub fn open(&self, source: Option<SourceKind>) -> Result<Option<(Service, usize)>, Failure> {
        let listener = match (passed_by_systemd()?, &self.socket) {
            (Some(listener), _) => listener,
            (None, Some(path)) => bind_for(path, self.group.as_deref())?,
            (None, None) if self.no_metrics => {
                return Err("there is nothing to serve: give --socket with --no-metrics".into());
            }
            (None, None) => return Ok(None),
        };
        if proc_root::is_elsewhere() {
            return Err(
                "a service serves the processes of its own /proc: leave out --procfs and HOST_PROC, or --socket"
                    .into(),
            );
        }
        let mut settings = Settings::default();
        settings.source = source;
        settings.idle_exit = self.idle_exit;
        settings.texts_timeout = self.texts_timeout;
        settings.cpu_of_user = self.cpu_of_user;
        settings.memory_of_user = self.memory_of_user;
        settings.memory_of_all = self.memory_of_all;
        settings.log = Some(super::say);
        let service = Service::open(listener, &settings)?;
        Ok(Some((service, settings.descriptors())))
    }

    /// Prints the status of the service that listens at the socket.
    pub fn print_status(&self) -> Result<ExitCode, Failure> {
        let path = self.path().ok_or("FASTPROC_SOCKET names no socket")?;
        let status = service::status(&path)?;
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{status}")?;
        } else {
            let status: serde_json::Value = serde_json::from_str(&status)?;
            write_status(&mut out, "", &status)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What metrics tell of the service.
#[derive(Debug)]
pub struct Counted(pub Arc<Figures>);

impl metrics::Service for Counted {
    fn read(&self) -> metrics::Served {
        metrics::Served {
            connections: self.0.connections() as u64,
            lent_bytes: self.0.lent_bytes() as u64,
            refused: self.0.refused().collect(),
        }
    }
}

/// A line for each value, named by the way to it.
fn write_status(
    out: &mut impl Write,
    name: &str,
    value: &serde_json::Value,
) -> Result<(), Failure> {
    match value {
        serde_json::Value::Object(members) => {
            for (member, value) in members {
                let name = match name {
                    "" => member.clone(),
                    name => format!("{name} {member}"),
                };
                write_status(out, &name, value)?;
            }
        }
        serde_json::Value::Array(elements) if elements.iter().any(serde_json::Value::is_object) => {
            for (at, value) in elements.iter().enumerate() {
                write_status(out, &format!("{name} {}", at + 1), value)?;
            }
        }
        serde_json::Value::Array(elements) => {
            let words: Vec<&str> = elements
                .iter()
                .filter_map(serde_json::Value::as_str)
                .collect();
            writeln!(out, "{:<24} {}", name.replace('_', " "), words.join(" "))?;
        }
        serde_json::Value::String(text) => {
            writeln!(out, "{:<24} {text}", name.replace('_', " "))?;
        }
        value => writeln!(out, "{:<24} {value}", name.replace('_', " "))?,
    }
    Ok(())
}

/// Serves until this process is told to end.
pub fn run(service: Service) -> Result<ExitCode, Failure> {
    let (stop, told) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, told.try_clone()?)?;
    }
    service.run(stop.as_fd())?;
    Ok(ExitCode::SUCCESS)
}

/// Serves beside something else, until the descriptor that is returned is closed.
pub fn start(
    service: Service,
) -> io::Result<(OwnedFd, JoinHandle<Result<(), fastproc_service::Error>>)> {
    let (stop, told) = UnixStream::pair()?;
    let thread = std::thread::Builder::new()
        .name("service".into())
        .spawn(move || service.run(stop.as_fd()))?;
    Ok((told.into(), thread))
}
