//! The threads of a process and the changes of each in half a second, with the command line and the cgroup of the process.
//!
//! `cargo run --example threads -- [PID]`

use std::{thread::sleep, time::Duration};

use fastproc::{Baseline, Collector, Details, Fields};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = std::process::id();
    let pid = std::env::args()
        .nth(1)
        .map_or(Ok(own), |text| text.parse())?;
    let fields = Fields::TOP | Fields::THREADS | Fields::CGROUP;
    let mut collector = Collector::builder().fields(fields).open()?;
    // Values that are not in records are read from /proc on request.
    let mut details = Details::open(collector.host())?;
    let mut before = Baseline::default();
    before.set(&collector.snapshot()?);
    sleep(Duration::from_millis(500));
    let now = collector.snapshot()?;
    let process = now.get(pid).ok_or("there is no such process")?;
    match details.cmdline(process) {
        Ok(line) => println!("command line: {}", line.bytes.escape_ascii()),
        Err(error) => println!("command line: {error}"),
    }
    match details.cgroup(process) {
        Ok(path) => println!("cgroup: {}", path.escape_ascii()),
        Err(error) => println!("cgroup: {error}"),
    }
    for change in before.thread_changes(&now) {
        let Some(thread) = change.thread.filter(|thread| thread.tgid == pid) else {
            continue;
        };
        let percent = change.cpu_share.unwrap_or(0.0) * 100.0;
        let name = thread
            .comm
            .split(|&byte| byte == 0)
            .next()
            .unwrap_or_default();
        println!("{:>8} {percent:5.1} %  {}", thread.tid, name.escape_ascii());
    }
    Ok(())
}
