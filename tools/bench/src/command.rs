//! The command `fastproc`, and the CPU time of other processes.

use std::{
    fs, io,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use nix::{
    sys::{
        resource::{UsageWho, getrusage},
        time::{TimeVal, TimeValLike as _},
    },
    time::ClockId,
    unistd::Pid,
};

use super::measure::Failure;

/// The command, which is beside this program in build and installation folders.
pub fn fastproc() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("fastproc"))
}

/// A command line of words without spaces; its fastproc is the one beside this program.
pub fn command(line: &str) -> io::Result<Command> {
    let mut words = line.split_whitespace();
    let mut command = match words.next().unwrap_or_default() {
        "fastproc" => Command::new(fastproc()?),
        tool => Command::new(tool),
    };
    command.args(words);
    Ok(command)
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

/// CPU time of this process, or of its children that have ended.
pub fn used(who: UsageWho) -> nix::Result<Duration> {
    let usage = getrusage(who)?;
    let us = |time: TimeVal| time.num_microseconds().unsigned_abs();
    Ok(Duration::from_micros(
        us(usage.user_time()) + us(usage.system_time()),
    ))
}

/// Runs a command, discards its output, and returns its CPU time. No other child may end meanwhile.
pub fn cpu_of(command: &mut Command) -> Result<Duration, Failure> {
    let name = command.get_program().display().to_string();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let before = used(UsageWho::RUSAGE_CHILDREN)?;
    let status = Ending::start(command)?.0.wait()?;
    if !status.success() {
        return Err(format!("{name}: {status}").into());
    }
    Ok(used(UsageWho::RUSAGE_CHILDREN)?.saturating_sub(before))
}
