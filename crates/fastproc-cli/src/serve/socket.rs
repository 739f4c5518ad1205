//! `fastproc serve --socket`: snapshots for other processes.

use std::{
    fs,
    io::{self, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::FileTypeExt as _, net::UnixStream},
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

use crate::{Failure, standard};

/// The snapshots that are served to readers on this machine.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Snapshots for other processes")]
pub struct SocketArgs {
    /// Serve snapshots at this socket, to processes to which the kernel would show the same. Without a path, use
    /// /run/fastproc/fastproc.sock, where fastproc and its libraries look for it. The folder must exist, unless it is
    /// directly in /run. Root uses no folder in which another user could replace the socket.
    #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = service::DEFAULT_SOCKET)]
    socket: Option<PathBuf>,
    /// Serve only the socket.
    #[arg(long)]
    pub no_metrics: bool,
    /// With --no-metrics: exit if no reader has been connected for this long.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, requires = "no_metrics")]
    idle_exit: Option<Duration>,
    /// Let a reader wait for command lines at most this long, and half of it for a single process. It then reads
    /// missing ones itself.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "400ms")]
    texts_timeout: Duration,
    /// Let only root and the members of this group connect to the socket. For a socket of systemd, use `SocketGroup=`
    /// and `SocketMode=` of its unit instead.
    #[arg(long, value_name = "GROUP", requires = "socket")]
    group: Option<String>,
    /// Limit the work for one user to this part of one CPU's time; 1000 is no limit. Root has no limit.
    #[arg(long, value_name = "PART", default_value_t = 0.5, value_parser = super::flags::share_of_user)]
    cpu_of_user: f64,
    /// Limit the memory that snapshots hold for the readers of one user; root may hold four times as much.
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = super::flags::bytes)]
    memory_of_user: usize,
    /// Limit the memory that snapshots hold for the readers of all users except root.
    #[arg(long, value_name = "BYTES", default_value = "512MiB", value_parser = super::flags::bytes)]
    memory_of_all: usize,
    /// Print the users of the service that listens at the socket, and exit.
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

    /// Listens, and loads what reading needs; called as root. `None`: the socket was not requested.
    ///
    /// Also returns the number of descriptors that the service needs at most.
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

    /// Says where snapshots are served.
    pub fn start_line(&self, service: &Service) -> String {
        let socket = self.socket.as_ref().map_or_else(
            || "the socket of systemd".into(),
            |path| path.display().to_string(),
        );
        format!("serving snapshots at {socket}, from {}", service.source())
    }

    /// Prints the status of the service that listens at the socket.
    pub fn print_status(&self) -> Result<ExitCode, Failure> {
        standard::output()?;
        let path = self.path().ok_or(service::Error::NotWanted)?;
        let file = fs::metadata(&path).map(|file| file.file_type());
        if file.is_ok_and(|file| !file.is_socket()) {
            return Err(format!("{} is not a socket", path.display()).into());
        }
        let status = service::status(&path)?;
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{status}")?;
        } else {
            writeln!(out, "{:<24} {}", "socket", path.display())?;
            let status: serde_json::Value = serde_json::from_str(&status)?;
            write_status(&mut out, "", &status)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Counters of the service, for metrics.
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

/// Writes a line for each value, named by its path.
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
        serde_json::Value::Null => writeln!(out, "{:<24} -", name.replace('_', " "))?,
        value => writeln!(out, "{:<24} {value}", name.replace('_', " "))?,
    }
    Ok(())
}

/// Serves until a signal stops this process.
pub fn run(service: Service) -> Result<ExitCode, Failure> {
    let (stop, told) = UnixStream::pair()?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::low_level::pipe::register(signal, told.try_clone()?)?;
    }
    service.run(stop.as_fd())?;
    Ok(ExitCode::SUCCESS)
}

/// Serves in a thread, until the returned descriptor is closed.
pub fn start(
    service: Service,
) -> io::Result<(OwnedFd, JoinHandle<Result<(), fastproc_service::Error>>)> {
    let (stop, told) = UnixStream::pair()?;
    let thread = std::thread::Builder::new()
        .name("service".into())
        .spawn(move || service.run(stop.as_fd()))?;
    Ok((told.into(), thread))
}
