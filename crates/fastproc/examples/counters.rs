//! The counters of the machine: busy CPUs, context switches, page faults; and the kernel's own text from them.
//!
//! `cargo run --example counters`

use std::{thread::sleep, time::Duration};

use fastproc::counters::{Counters, Error, Want};

fn main() -> Result<(), Error> {
    let mut counters = Counters::open()?;
    let mut earlier = counters.collect(Want::STAT | Want::VMSTAT)?.clone();
    for _ in 0..3 {
        sleep(Duration::from_millis(200));
        let later = counters.collect(Want::STAT | Want::VMSTAT)?;
        let change = later.since(&earlier);
        println!(
            "{:5.1} % busy, {} context switches, {} forks, {} page faults",
            100.0 * change.busy(),
            change.ctxt(),
            change.processes(),
            change.vm("pgfault").unwrap_or(0),
        );
        earlier = later.clone();
    }
    // The same numbers as the kernel would print them.
    let text = String::from_utf8_lossy(counters.stat()?).into_owned();
    println!("{}", text.lines().next().unwrap_or_default());
    Ok(())
}
