//! A service of fastproc.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use fastproc::{Collector, Fields, SourceKind, source::service};

use super::{
    command::{Ending, fastproc, resident_mb},
    measure::Failure,
};

/// A service, killed when this is dropped.
pub struct Service {
    child: Ending,
    /// The path of its socket.
    pub socket: PathBuf,
}

impl Service {
    /// Starts it with these arguments, and waits until it answers.
    pub fn start(arguments: &[&str]) -> Result<Self, Failure> {
        let name = format!("fastproc-bench-{}.sock", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let mut command = Command::new(fastproc()?);
        command
            .args(["serve", "--no-metrics"])
            .args(arguments)
            .arg("--socket")
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = Ending::start(&mut command)?;
        let mut service = Self { child, socket };
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match service::status(&service.socket) {
                Ok(_) => return Ok(service),
                Err(error) if Instant::now() > deadline => {
                    return Err(format!("the service has not started: {error}").into());
                }
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
            if let Some(status) = service.child.0.try_wait()? {
                return Err(format!("fastproc serve: {status}").into());
            }
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Its resident set, in megabytes.
    pub fn resident_mb(&self) -> Result<f64, Failure> {
        resident_mb(self.pid())
    }

    /// A reader of the fields of a `top`.
    pub fn reader(&self, max_age: Duration) -> Result<Collector, fastproc::Error> {
        Collector::builder()
            .fields(Fields::TOP)
            .source(Some(SourceKind::Service))
            .service_socket(Some(self.socket.clone()))
            .max_age(max_age)
            .open()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}
