//! Every process with its memory and CPU time, and the source of these.
//!
//! `cargo run --example process_table`; as root it walks the kernel's own list, otherwise it reads `/proc`.

use fastproc::{Collector, Fields};

fn main() -> Result<(), fastproc::Error> {
    let mut collector = Collector::builder().fields(Fields::TOP).open()?;
    for refusal in collector.refused() {
        eprintln!("{} cannot be used: {}", refusal.source, refusal.error);
    }
    let snapshot = collector.snapshot()?;
    println!("{:>8} S {:>12} {:>10} NAME", "PID", "RSS_KIB", "CPU_MS");
    for process in snapshot.iter() {
        // A group of fields that was not requested, or is hidden, is `None`.
        let rss_kib = process.memory().map_or(0, |memory| memory.rss() / 1024);
        let cpu_ms = process
            .cpu()
            .map_or(0, |cpu| (cpu.utime_ns + cpu.stime_ns) / 1_000_000);
        let (pid, state) = (process.pid(), process.state().letter() as char);
        // A process chooses the bytes of its name: always escape them.
        let name = process.name();
        println!(
            "{pid:>8} {state} {rss_kib:>12} {cpu_ms:>10} {}",
            name.escape_ascii()
        );
    }
    let stats = snapshot.stats();
    eprintln!(
        "{} processes from {} in {:?}",
        snapshot.len(),
        stats.source,
        stats.took
    );
    Ok(())
}
