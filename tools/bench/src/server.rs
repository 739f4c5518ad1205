//! A running exporter, and a client for it.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek as _, Write},
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::fs::{MemfdFlags, memfd_create};

use super::{
    command::{Ending, bytes, command, cpu_ns},
    measure::Failure,
};

/// An exporter, killed when this is dropped.
pub struct Server {
    child: Ending,
    address: String,
    stream: BufReader<TcpStream>,
    /// Of the last answer.
    pub body: Vec<u8>,
}

impl Server {
    /// Starts `fastproc serve` with these arguments. `--config /dev/stdin` reads the configuration, if there is one.
    pub fn fastproc(arguments: &str, config: &str) -> Result<Self, Failure> {
        let from = if config.is_empty() {
            ""
        } else {
            "--config /dev/stdin"
        };
        let line =
            format!("fastproc serve --listen 127.0.0.1:0 --min-interval 0 {from} {arguments}");
        Self::start(command(&line)?, config)
    }

    /// Starts another exporter, by the first of its names that is installed, with these arguments and this standard
    /// input.
    pub fn other(names: [&str; 2], arguments: &str, input: &str) -> Result<Self, Failure> {
        for name in names {
            let line = format!("{name} {arguments} --web.listen-address=127.0.0.1:0");
            match Self::start(command(&line)?, input) {
                Err(error) if is_not_found(&error) => {}
                started => return started,
            }
        }
        Err(format!("{} is not installed", names[0]).into())
    }

    fn start(mut command: Command, config: &str) -> Result<Self, Failure> {
        // A file without a name: a configuration is only read from a regular file.
        let mut input = File::from(memfd_create("config", MemfdFlags::CLOEXEC)?);
        input.write_all(config.as_bytes())?;
        input.rewind()?;
        command
            .stdin(input)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = Ending::start(&mut command)?;
        let mut messages = String::new();
        let mut stderr = BufReader::new(child.0.stderr.take().ok_or("no standard error")?);
        let address = loop {
            let mut line = String::new();
            if stderr.read_line(&mut line)? == 0 {
                return Err(format!("the server has not started: {}", messages.trim()).into());
            }
            if let Some(address) = address(&line) {
                break address;
            }
            messages += &line;
        };
        // Read the rest, so that its writer never waits.
        std::thread::spawn(move || io::copy(&mut stderr, &mut io::sink()));
        Ok(Self {
            child,
            stream: connect(&address)?,
            address,
            body: Vec::new(),
        })
    }

    /// CPU time of the server and its children.
    pub fn cpu_ns(&self) -> Result<u64, Failure> {
        let pid = self.child.0.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        let mut sum = cpu_ns(pid)?;
        for child in children.split_ascii_whitespace() {
            sum += cpu_ns(child.parse()?)?;
        }
        Ok(sum)
    }

    /// Scrapes on the kept connection, like Prometheus, or on a new one if the server has closed it.
    pub fn scrape(&mut self, gzip: bool) -> Result<(), Failure> {
        if self.is_closed()? {
            self.stream = connect(&self.address)?;
        }
        let encoding = if gzip { "gzip" } else { "identity" };
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: {}\r\nAccept-Encoding: {encoding}\r\n\r\n",
            self.address
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let status = self.line()?;
        if !status.starts_with("HTTP/1.1 200") {
            return Err(format!("the server answers {status:?}").into());
        }
        self.body.clear();
        let mut length = None;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = Some(value.trim().parse()?);
            }
        }
        if let Some(length) = length {
            return self.take(length);
        }
        // In chunks: each follows its length and ends in a line end, and the last one is empty.
        loop {
            let length = u64::from_str_radix(&self.line()?, 16)?;
            self.take(length)?;
            self.line()?;
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn is_closed(&self) -> io::Result<bool> {
        let stream = self.stream.get_ref();
        stream.set_nonblocking(true)?;
        let read = stream.peek(&mut [0]);
        stream.set_nonblocking(false)?;
        Ok(!read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock))
    }

    fn take(&mut self, bytes: u64) -> Result<(), Failure> {
        let taken = io::copy(&mut self.stream.by_ref().take(bytes), &mut self.body)?;
        if taken < bytes {
            return Err("the answer ends too early".into());
        }
        Ok(())
    }

    /// A value of its `/proc/PID/status`, in bytes.
    pub fn status(&self, name: &str) -> Result<u64, Failure> {
        bytes(&format!("/proc/{}/status", self.child.0.id()), name)
    }
}

fn is_not_found(error: &Failure) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The address at which it listens, if this line has it: here `http://ADDRESS/…`, and with the exporter toolkit
/// `address=ADDRESS`.
fn address(line: &str) -> Option<String> {
    let after = match line.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?.0,
        None if line.contains("Listening on") => line.split_once("address=")?.1,
        None => return None,
    };
    Some(after.trim().to_owned())
}

fn connect(address: &str) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    Ok(BufReader::with_capacity(1 << 16, stream))
}
