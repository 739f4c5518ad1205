//! The command `fastproc`, and the CPU time of other processes.

use std::{
    fs, io,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use nix::{time::ClockId, unistd::Pid};

use super::measure::Failure;

/// The command, which is beside this program in build and installation folders.
pub fn fastproc() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("fastproc"))
}

/// CPU time of all threads of a process, ended ones too, in nanoseconds: its CPU clock.
pub fn cpu_ns(pid: u32) -> Result<u64, Failure> {
    let read = || ClockId::pid_cpu_clock_id(Pid::from_raw(pid.cast_signed()))?.now();
    let time = read().map_err(|error| format!("the CPU clock of process {pid}: {error}"))?;
    Ok(Duration::from(time).as_nanos() as u64)
}

/// A value of a text of lines like `VmRSS:    1234 kB`, in bytes.
pub fn bytes(path: &str, name: &str) -> Result<u64, Failure> {
    let text = fs::read_to_string(path)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kib.ok_or_else(|| format!("{path} has no {name}"))? * 1024)
}

/// The resident set of a process, in megabytes.
pub fn resident_mb(pid: u32) -> Result<f64, Failure> {
    Ok(bytes(&format!("/proc/{pid}/status"), "VmRSS:")? as f64 / 1e6)
}

/// A child that is killed when this is dropped.
pub struct Ending(pub Child);

impl Ending {
    /// Starts it; an error names the command.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let child = command.spawn().map_err(|error| {
            let message = format!("{}: {error}", command.get_program().display());
            io::Error::new(error.kind(), message)
        })?;
        Ok(Self(child))
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        // It may have exited by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command, discards its output, and returns its CPU time from exec on.
pub fn cpu_of(command: &mut Command) -> Result<Duration, Failure> {
    let name = command.get_program().display().to_string();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let (status, cpu) = wait(&Ending::start(command)?.0)?;
    if status == 0 {
        Ok(cpu)
    } else {
        Err(format!("{name} failed: wait status {status:#x}").into())
    }
}

/// Waits for a child. Returns its status and its CPU time.
fn wait(child: &Child) -> io::Result<(i32, Duration)> {
    let mut status = 0;
    // SAFETY: numbers only, for which every bit pattern is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both live across the call; no other code waits for the child.
    let waited =
        unsafe { libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut usage) };
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Ok((status, time(usage.ru_utime) + time(usage.ru_stime)))
}
