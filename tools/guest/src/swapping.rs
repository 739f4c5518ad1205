//! A sleeping process whose memory is swapped out and in.

use std::{
    ffi::c_void,
    fs,
    io::{self, BufRead as _, BufReader, Read as _},
    process::{Child, Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use crate::{memory, reporter::Reporter};

/// The argument that makes this program the sleeping process.
pub const SLEEPER: &str = "swapped";

const SIZE: usize = 4 << 20;
/// The shortest time between two changes.
const PAUSE: Duration = Duration::from_millis(150);

/// Fills memory, prints its address, and sleeps until its input ends.
pub fn sleep() -> ExitCode {
    let slept = memory::fill(SIZE).and_then(|start| {
        println!("{start}");
        io::stdin().read_to_end(&mut Vec::new())
    });
    match slept {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("swapped: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Swaps the memory of a sleeper out and in until it is stopped.
pub struct Swapping {
    sleeper: Child,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<usize>>,
}

impl Swapping {
    /// Starts swapping.
    pub fn start() -> io::Result<Self> {
        let mut sleeper = Command::new("/proc/self/exe")
            .arg(SLEEPER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let missing =
            || io::Error::other("the process that sleeps did not say where its memory is");
        let mut line = String::new();
        let output = sleeper.stdout.take().ok_or_else(missing)?;
        BufReader::new(output).read_line(&mut line)?;
        let start: usize = line.trim().parse().map_err(|_| missing())?;
        let stop = Arc::new(AtomicBool::new(false));
        let (told, pid) = (Arc::clone(&stop), sleeper.id());
        let thread = thread::spawn(move || {
            let mut times = 0;
            while !told.load(Ordering::Relaxed) {
                for change in [swap_out, read_back] {
                    let began = Instant::now();
                    change(pid, start)?;
                    let swapped = swapped_kib(pid)?;
                    times += usize::from(swapped > SIZE / 2 / 1024);
                    // On a busy host everything takes longer, so wait longer between changes, too.
                    thread::sleep(PAUSE.max(began.elapsed() * 4));
                }
            }
            Ok(times)
        });
        Ok(Self {
            sleeper,
            stop,
            thread,
        })
    }

    /// Stops, and reports how often most of the memory was swapped out.
    pub fn stop(mut self, reporter: &mut Reporter) -> io::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        let times = self
            .thread
            .join()
            .map_err(|_| io::Error::other("the thread that swaps panicked"))??;
        drop(self.sleeper.stdin.take());
        self.sleeper.wait()?;
        reporter.check(
            "a process that sleeps was swapped out",
            times > 1,
            format!("{times} times"),
        )
    }
}

fn part(start: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start as *mut c_void,
        iov_len: SIZE,
    }
}

fn swap_out(pid: u32, start: usize) -> io::Result<()> {
    let part = part(start);
    // SAFETY: system calls; the second reads one iovec. The memory belongs to another process, and keeps its contents.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if process < 0 {
            return Err(io::Error::last_os_error());
        }
        let advised = libc::syscall(
            libc::SYS_process_madvise,
            process,
            &raw const part,
            1,
            libc::MADV_PAGEOUT,
            0,
        );
        let error = io::Error::last_os_error();
        libc::close(process as i32);
        if advised < 0 { Err(error) } else { Ok(()) }
    }
}

fn read_back(pid: u32, start: usize) -> io::Result<()> {
    let mut bytes = vec![0_u8; SIZE];
    let here = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: SIZE,
    };
    let there = part(start);
    // SAFETY: it writes to `bytes`, which has that size.
    let read =
        unsafe { libc::process_vm_readv(pid as i32, &raw const here, 1, &raw const there, 1, 0) };
    if read < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn swapped_kib(pid: u32) -> io::Result<usize> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSwap:"));
    let number = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
    number.ok_or_else(|| io::Error::other("there is no VmSwap"))
}
