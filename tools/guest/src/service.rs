//! A service, at its usual socket in the guest.

use std::{
    fs, io,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{proofs::FASTPROC, reporter::Reporter};

const SERVE: [&str; 5] = [
    FASTPROC,
    "serve",
    "--no-metrics",
    "--cpu-of-user=1000",
    "--socket",
];
/// The socket where readers look for it.
const SOCKET: &str = "/run/fastproc/fastproc.sock";
/// An emulated machine loads programs in seconds.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Makes the user that `fastproc serve` becomes.
pub fn make_nobody() -> io::Result<()> {
    fs::create_dir_all("/etc")?;
    fs::write("/etc/passwd", "nobody:x:65534:65534::/:\n")
}

/// A running service.
pub struct Service {
    started: Instant,
    child: Child,
}

impl Service {
    /// Starts it after these words, and waits until it answers.
    pub fn start(enter: &[&str]) -> io::Result<Self> {
        make_nobody()?;
        let argv = [enter, &SERVE, &[SOCKET]].concat();
        let mut service = Self {
            started: Instant::now(),
            child: Command::new(argv[0])
                .args(&argv[1..])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()?,
        };
        while !answers()? {
            if service.child.try_wait()?.is_some() || service.started.elapsed() > TIMEOUT {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(service)
    }

    /// Stops it, and reports its output and the readers that it served.
    pub fn stop(self, reporter: &mut Reporter) -> io::Result<()> {
        reporter.run("serve --status", &[FASTPROC, "serve", "--status"])?;
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            // A service that has exited by itself reports why.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let output = self.child.wait_with_output();
        reporter.command("serve", &SERVE, self.started, output)
    }
}

fn answers() -> io::Result<bool> {
    let status = Command::new(FASTPROC)
        .args(["serve", "--status"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    Ok(status.success())
}
