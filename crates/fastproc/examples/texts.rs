//! The kernel's own texts of a process, byte for byte, without opening a file of it.
//!
//! `cargo run --example texts -- [PID]`

use std::{
    io::{Write, stdout},
    path::Path,
};

use fastproc::{
    Collector, Fields,
    access::Reader,
    text::{Text, Units, stat, statm, status},
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = std::process::id();
    let pid = std::env::args()
        .nth(1)
        .map_or(Ok(own), |text| text.parse())?;
    let mut collector = Collector::builder().fields(Fields::THREE_FILES).open()?;
    let units = Units::from(collector.host());
    // Which lines there are, and in what order, is learned from the running kernel once.
    let calibration = collector.calibration();
    let format = status::Format::read(Path::new("/proc"), collector.host())?
        .with_thp_disable_bit(calibration.thp_disable_bit)
        .with_thread_features(calibration.thread_features);
    let mut status = status::Renderer::new(format);

    let snapshot = collector.snapshot()?;
    let process = snapshot.get(pid).ok_or("there is no such process")?;
    // What the kernel would show to this program; BPF shows it everything.
    let this = snapshot.get(own).and_then(Reader::from_process);
    let access = this
        .ok_or("our own credentials are not known")?
        .access(process);
    // A line that no record holds, on a kernel newer than this library, is copied from the kernel's file.
    let kernel_text = if status.needs_kernel_text(process) {
        Some(std::fs::read(format!("/proc/{pid}/status"))?)
    } else {
        None
    };
    let mut text = Text::default();
    let bytes = text.render(|out| {
        stat::render(process, &units, access, out)?;
        statm::render(process, &units, out)?;
        status.render(process, kernel_text.as_deref(), out)
    })?;
    stdout().write_all(bytes)?;
    Ok(())
}
