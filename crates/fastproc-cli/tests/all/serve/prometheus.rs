//! A real Prometheus on loopback, with its own folder.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use fastproc_testbed::{wait_for, wait_until};
use serde_json::Value;

use crate::serve::{client::Client, folder::Folder};

/// Ends with the test.
pub struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    /// Starts it with these jobs, each an item of `scrape_configs`, which are scraped every other second.
    #[track_caller]
    pub fn start(folder: &Folder, jobs: &str) -> Self {
        let config = folder.write(
            "prometheus.yml",
            &format!(
                "global: {{scrape_interval: 2s, scrape_timeout: 2s}}\nscrape_configs:\n{jobs}"
            ),
        );
        let mut child = Command::new("prometheus")
            .arg(format!("--config.file={config}"))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            // It chooses the port, and logs it.
            .args([
                "--web.listen-address=127.0.0.1:0",
                "--log.format=json",
                "--log.level=info",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("prometheus is there");
        let log = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut lines = log.lines().map_while(Result::ok);
        let mut stderr = Vec::new();
        let address = lines.by_ref().find_map(|line| {
            let entry: Value = serde_json::from_str(&line).unwrap_or_default();
            stderr.push(line);
            (entry["msg"] == "Listening on")
                .then(|| entry["address"].as_str().map(str::to_owned))?
        });
        let address =
            address.unwrap_or_else(|| panic!("Prometheus has not started: {}", stderr.join("\n")));
        // The pipe is read, so that Prometheus never blocks on it.
        std::thread::spawn(move || lines.for_each(drop));
        let prometheus = Self { child, address };
        wait_until("Prometheus is ready", || {
            let ready = Client::try_connect(&prometheus.address)
                .and_then(|mut client| client.try_get("/-/ready", &[]));
            ready.is_ok_and(|answer| answer.status == 200)
        });
        prometheus
    }

    /// The answer of its API.
    #[track_caller]
    fn api(&self, path: &str) -> Value {
        let answer =
            Client::connect(&self.address).get(&format!("/api/v1/{path}"), &["Connection: close"]);
        let answer: Value = serde_json::from_slice(&answer.body).expect("it answers in JSON");
        assert_eq!(answer["status"], "success", "{path}: {answer}");
        answer["data"].clone()
    }

    /// The current values of a query.
    #[track_caller]
    pub fn query(&self, query: &str) -> Vec<f64> {
        let encoded = query.bytes().map(|byte| format!("%{byte:02X}"));
        let encoded: Vec<String> = encoded.collect();
        let data = self.api(&format!("query?query={}", encoded.concat()));
        let series = data["result"].as_array().expect("a vector");
        let value = |series: &Value| series["value"][1].as_str().expect("a value").parse();
        series
            .iter()
            .map(|series| value(series).expect("a number"))
            .collect()
    }

    /// Waits until a query has one value that satisfies `holds`, and returns the value.
    #[track_caller]
    pub fn wait_for(&self, query: &str, holds: impl Fn(f64) -> bool) -> f64 {
        let mut last = Vec::new();
        wait_for(query, || {
            last = self.query(query);
            match *last {
                [value] if holds(value) => Some(value),
                _ => None,
            }
        })
    }

    /// The type that it has learnt for a family.
    #[track_caller]
    pub fn type_of(&self, family: &str) -> String {
        let data = self.api(&format!("targets/metadata?metric={family}"));
        let kind = data[0]["type"].as_str();
        kind.unwrap_or_else(|| panic!("{family}: {data}"))
            .to_owned()
    }

    /// The last errors of all targets.
    #[track_caller]
    pub fn errors(&self) -> Vec<String> {
        let data = self.api("targets");
        let targets = data["activeTargets"].as_array().expect("targets");
        let errors = targets
            .iter()
            .filter_map(|target| target["lastError"].as_str());
        errors
            .filter(|error| !error.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("Prometheus was at {}", self.address);
        }
    }
}
