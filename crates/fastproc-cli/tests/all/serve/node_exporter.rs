//! A real `node_exporter`.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

use crate::serve::exposition::Metrics;

/// Ends with the test.
pub struct NodeExporter {
    child: Child,
    address: String,
}

impl NodeExporter {
    pub const PROGRAM: &str = "prometheus-node-exporter";

    /// Starts it with a command that names the collectors.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .args([
                "--web.listen-address=127.0.0.1:0",
                "--collector.disable-defaults",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let log = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut lines = log.lines().map_while(Result::ok);
        let address = lines
            .by_ref()
            .filter(|line| line.contains("Listening on"))
            .find_map(|line| Some(line.split_once("address=")?.1.trim().to_owned()))
            .expect("it says where it listens");
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    #[track_caller]
    pub fn scrape(&self) -> Metrics {
        // HTTP/1.0 has no chunked bodies.
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        let asked = stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n");
        asked.expect("the request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (_, text) = answer.split_once("\r\n\r\n").expect("it answers");
        // Its metrics of itself have types that are not supported here.
        let of_machine = |line: &&str| {
            let name = line
                .trim_start_matches("# HELP ")
                .trim_start_matches("# TYPE ");
            name.starts_with("node_")
        };
        let lines: Vec<&str> = text.lines().filter(of_machine).collect();
        Metrics::parse(&(lines.join("\n") + "\n"))
    }
}

impl Drop for NodeExporter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
