//! CPUs that go and come.

use std::{
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::reporter::Reporter;

/// The shortest time between two changes.
const PAUSE: Duration = Duration::from_millis(150);

/// The last CPU, which is taken away and given back until it is told to stop.
pub struct Shaking {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<usize>>,
}

impl Shaking {
    /// Starts with it.
    pub fn start() -> io::Result<Self> {
        let present = fs::read_to_string("/sys/devices/system/cpu/present")?;
        let last = present.trim().rsplit(['-', ',']).next().unwrap_or_default();
        let switch = format!("/sys/devices/system/cpu/cpu{last}/online");
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut times = 0;
            loop {
                for state in ["0", "1"] {
                    let started = Instant::now();
                    fs::write(&switch, state)?;
                    // On a busy host everything takes longer, what is between two changes too.
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

    /// Stops, with the CPU back, and says how often it was away.
    pub fn stop(self, reporter: &mut Reporter) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let times = self
            .thread
            .join()
            .map_err(|_| io::Error::other("the thread that shook a CPU panicked"))??;
        reporter.check("a CPU went and came", times > 1, format!("{times} times"))
    }
}
