//! The kernel's own texts of a process, byte for byte, without opening one of its files.
//!
//! `cargo run --example texts -- [PID]`

use std::io::{Write, stdout};

use fastproc::{Collector, access::Reader, text::Files};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = std::process::id();
    let pid = std::env::args()
        .nth(1)
        .map_or(Ok(own), |text| text.parse())?;
    let mut collector = Collector::builder().fields(Files::FIELDS).open()?;
    // It reads the lines of the running kernel, and their order, once.
    let (host, calibration) = (collector.host(), collector.calibration());
    let mut files = Files::open(host, calibration)?;

    let snapshot = collector.snapshot()?;
    let process = snapshot.get(pid).ok_or("there is no such process")?;
    // The kernel would hide values from some programs; BPF reads them all.
    let this = snapshot.get(own).and_then(Reader::from_process);
    let access = this
        .ok_or("our own credentials are not known")?
        .access(process);
    // A kernel newer than this library may have lines that are not in records: copy them from its file.
    let kernel_text = if files.needs_kernel_status(process) {
        Some(std::fs::read(format!("/proc/{pid}/status"))?)
    } else {
        None
    };
    let mut out = stdout().lock();
    out.write_all(files.stat(process, access)?)?;
    out.write_all(files.statm(process)?)?;
    out.write_all(files.status(process, kernel_text.as_deref())?)?;
    Ok(())
}
