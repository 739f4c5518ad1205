//! The server under test.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use fastproc_testbed::wait_until;
use rustix::process::{Pid, Signal, kill_process};

use crate::serve::{
    FASTPROC,
    client::{Client, Response},
    exposition::Metrics,
};

/// `fastproc serve` on a port of its own, killed at the end of the test.
pub struct Server {
    child: Child,
    /// The address that it printed.
    pub address: String,
    /// What it has written to standard error.
    output: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts it, and waits until it has printed its address and taken its first snapshot. Each scrape takes a new
    /// snapshot.
    #[track_caller]
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_by(&mut Command::new(FASTPROC), arguments)
    }

    /// Starts it as an unprivileged user.
    #[track_caller]
    pub fn start_as(program: &Path, uid: u32, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        Self::start_by(command.uid(uid).gid(uid), arguments)
    }

    /// Starts it with a command, to which the subcommand and its arguments are added.
    #[track_caller]
    pub fn start_by(command: &mut Command, arguments: &[&str]) -> Self {
        let (server, secured) = Self::start_only(command, arguments);
        if !secured {
            // Processes that start from now on are new to it.
            wait_until("it has looked once", || {
                server.get("/-/ready", &[]).status == 200
            });
        }
        server
    }

    /// Starts it without waiting for its first answer. Returns whether it serves by TLS, too.
    #[track_caller]
    pub fn start_only(command: &mut Command, arguments: &[&str]) -> (Self, bool) {
        let given = |flag: &str| arguments.iter().any(|argument| argument.starts_with(flag));
        command.arg("serve");
        if !given("--web.listen-address") && !given("-web.listen-address") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if !given("--min-interval") {
            command.args(["--min-interval", "0"]);
        }
        let mut child = command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut output = String::new();
        let (address, secured) = loop {
            let before = output.len();
            let read = stderr
                .read_line(&mut output)
                .expect("standard error is UTF-8");
            assert!(read > 0, "it has not started: {output}");
            if let Some((scheme, rest)) = output[before..].split_once("://") {
                let (address, _) = rest.split_once('/').expect("a path");
                break (address.to_owned(), scheme.ends_with("https"));
            }
        };
        let output = Arc::new(Mutex::new(output));
        let listener = Some(listen(stderr, Arc::clone(&output)));
        let server = Self {
            child,
            address,
            output,
            listener,
        };
        (server, secured)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process that serves the metrics that this one collects.
    #[track_caller]
    pub fn exporter(&self) -> u32 {
        let path = format!("/proc/{0}/task/{0}/children", self.pid());
        let children = fs::read_to_string(path).expect("/proc shows the process");
        children.trim().parse().expect("it has one child")
    }

    /// What it has written to standard error.
    pub fn stderr(&self) -> String {
        self.output.lock().expect("nobody panics with it").clone()
    }

    pub fn connect(&self) -> Client {
        Client::connect(&self.address)
    }

    /// One answer on a new connection.
    #[track_caller]
    pub fn get(&self, path: &str, headers: &[&str]) -> Response {
        self.connect().get(path, headers)
    }

    /// The metrics, parsed strictly.
    #[track_caller]
    pub fn scrape(&self) -> Metrics {
        let response = self.get("/metrics", &[]);
        assert_eq!(response.status, 200, "{response:?}");
        Metrics::parse(response.text())
    }

    /// Anonymous memory of both processes in KiB, counted page by page: the sum in a status file lags by some pages for
    /// each thread.
    #[track_caller]
    pub fn anonymous_kib(&self) -> u64 {
        let of = |pid| {
            let line = status(&format!("/proc/{pid}/smaps_rollup"), "Anonymous");
            let kib: u64 = line.trim_end_matches(" kB").parse().expect("a number");
            kib
        };
        of(self.pid()) + of(self.exporter())
    }

    /// Open sockets: connections and the listening socket.
    #[track_caller]
    pub fn sockets(&self) -> usize {
        let folder =
            fs::read_dir(format!("/proc/{}/fd", self.exporter())).expect("/proc shows the process");
        let files = folder.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        files
            .filter(|file| file.to_string_lossy().starts_with("socket:"))
            .count()
    }

    /// Asks it to end, and waits. Returns its exit status and its messages.
    pub fn end(self, signal: Signal) -> (ExitStatus, String) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("the signal is sent");
        self.wait()
    }

    /// Waits until it has ended. Returns its exit status and its messages.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("the child ends");
        if let Some(listener) = self.listener.take() {
            listener.join().expect("it only reads");
        }
        (status, self.stderr())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the server printed: {}", self.stderr());
        }
    }
}

/// Runs what must not succeed. Returns its messages.
#[track_caller]
pub fn refused(command: &mut Command) -> String {
    let output = command.output().expect("it can be started");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{command:?}: {stderr}");
    stderr
}

/// A line of a status file, without its name.
#[track_caller]
pub fn status(path: &str, name: &str) -> String {
    let text = fs::read_to_string(path).expect("/proc shows the process");
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let found = lines.find(|(line, _)| *line == name);
    let (_, value) = found.unwrap_or_else(|| panic!("{path} has no {name}"));
    value.trim().to_owned()
}

/// Reads the pipe, so that the server never blocks on it.
fn listen(stderr: BufReader<ChildStderr>, output: Arc<Mutex<String>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            let mut output = output.lock().expect("nobody panics with it");
            output.push_str(&line);
            output.push('\n');
        }
    })
}
