//! Takes a CPU offline and online.

use std::{
    fs::{self, File},
    io,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{proofs::FASTPROC, reporter::Reporter};

/// The file that switches the last CPU.
fn switch() -> io::Result<String> {
    let present = fs::read_to_string("/sys/devices/system/cpu/present")?;
    let last = present.trim().rsplit(['-', ',']).next().unwrap_or_default();
    Ok(format!("/sys/devices/system/cpu/cpu{last}/online"))
}

/// Bytes that a round of `verify` over the counters reads from the kernel.
const A_ROUND: u64 = 20_000;

/// Compares counters while the last CPU is offline, and switches it while the reader is stopped, so that it does not
/// notice.
pub fn come_and_go_unseen(reporter: &mut Reporter) -> io::Result<()> {
    const OUTPUT: &str = "/tmp/unseen";
    let switch = switch()?;
    let argv = [FASTPROC, "verify", "--rounds", "12"];
    fs::write(&switch, "0")?;
    let mut child = Command::new(argv[0])
        .args(&argv[1..])
        .stdout(File::create(OUTPUT)?)
        .stderr(Stdio::null())
        .spawn()?;
    let pid = Pid::from_child(&child);
    let (mut times, mut read, mut enough) = (0, 0, A_ROUND);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let now = bytes_read(pid).unwrap_or(read);
        if now < enough {
            thread::sleep(Duration::from_millis(5));
            continue;
        }
        (read, enough) = (now, now + A_ROUND);
        kill_process(pid, Signal::STOP)?;
        fs::write(&switch, "1")?;
        thread::sleep(Duration::from_millis(20));
        fs::write(&switch, "0")?;
        kill_process(pid, Signal::CONT)?;
        times += 1;
    };
    fs::write(&switch, "1")?;
    let said = fs::read_to_string(OUTPUT)?;
    reporter.check(
        "counters of a CPU that came and went unseen",
        status.success() && times > 2,
        format!("{times} times; {status}: {said}"),
    )
}

/// The bytes that a process has read so far.
fn bytes_read(pid: Pid) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{}/io", pid.as_raw_nonzero())).ok()?;
    io.lines()
        .find_map(|line| line.strip_prefix("rchar: "))?
        .parse()
        .ok()
}

/// The shortest time between two changes.
const PAUSE: Duration = Duration::from_millis(150);

/// Takes the last CPU offline and online until it is stopped.
pub struct Shaking {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<usize>>,
}

impl Shaking {
    /// Starts switching.
    pub fn start() -> io::Result<Self> {
        let switch = switch()?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut times = 0;
            loop {
                for state in ["0", "1"] {
                    let started = Instant::now();
                    fs::write(&switch, state)?;
                    // On a busy host everything takes longer, so wait longer between changes, too.
                    thread::sleep(PAUSE.max(started.elapsed() * 4));
                }
                times += 1;
                if told.load(Ordering::Relaxed) {
                    return Ok(times);
                }
            }
        });
        Ok(Self { stop, thread })
    }

    /// Stops, with the CPU online, and reports how often it was offline.
    pub fn stop(self, reporter: &mut Reporter) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let times = self
            .thread
            .join()
            .map_err(|_| io::Error::other("the thread that shook a CPU panicked"))??;
        reporter.check("a CPU went and came", times > 1, format!("{times} times"))
    }
}
