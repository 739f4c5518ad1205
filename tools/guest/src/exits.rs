//! Compares the exits that `fastproc exits` shows with those that the kernel reports to the waiting parent.

use std::{
    io::{self, BufRead as _, BufReader, Read as _},
    os::unix::process::ExitStatusExt as _,
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
    time::Instant,
};

use crate::{enter::Place, proofs::FASTPROC, reporter::Reporter};

/// The columns, in this order.
const FIELDS: &str = "pid,ppid,user,comm,status,minflt,majflt,vmhwm,time,final";

/// A running `fastproc exits`, which records.
struct Recording {
    started: Instant,
    argv: Vec<String>,
    child: Child,
    heading: String,
    lines: BufReader<ChildStdout>,
}

impl Recording {
    fn start(count: usize) -> io::Result<Self> {
        let count = count.to_string();
        let own = ["--filter", "ppid == 1", "-o", FIELDS, "--count", &count];
        let argv = [&[FASTPROC, "exits", "--format", "csv"], &own[..]].concat();
        let mut child = Command::new(argv[0])
            .args(&argv[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let pipe = child.stdout.take();
        let pipe = pipe.ok_or_else(|| io::Error::other("a pipe to it is missing"))?;
        let mut lines = BufReader::new(pipe);
        // The heading appears once no exit can be missed.
        let mut heading = String::new();
        lines.read_line(&mut heading)?;
        Ok(Self {
            started: Instant::now(),
            argv: argv.into_iter().map(str::to_owned).collect(),
            child,
            heading,
            lines,
        })
    }
}

/// An exited process, as reported to its parent.
struct Waited {
    pid: u32,
    status: ExitStatus,
    usage: libc::rusage,
}

impl Waited {
    fn wait_for(child: &Child) -> io::Result<Self> {
        let (mut status, mut usage) = (0, std::mem::MaybeUninit::zeroed());
        // SAFETY: both are written before it returns, or it fails; all zeroes are a valid `rusage`, too.
        let (pid, usage) = unsafe {
            let pid = libc::wait4(child.id() as i32, &raw mut status, 0, usage.as_mut_ptr());
            (pid, usage.assume_init())
        };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            pid: child.id(),
            status: ExitStatus::from_raw(status),
            usage,
        })
    }

    /// Whether a row shows the same.
    fn is_told_by(&self, row: &str, user: &str, comm: &str) -> bool {
        let status = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => code.to_string(),
            (None, Some(libc::SIGKILL)) => "KILL".into(),
            (None, _) => return false,
        };
        let usage = &self.usage;
        let expected = [
            &self.pid.to_string(),
            "1",
            user,
            comm,
            &status,
            &usage.ru_minflt.to_string(),
            &usage.ru_majflt.to_string(),
            &(usage.ru_maxrss * 1024).to_string(),
        ];
        let columns: Vec<&str> = row.trim_end().split(',').collect();
        let Some((told, [time, last])) = columns.split_at_checked(expected.len()) else {
            return false;
        };
        let microseconds = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
        let waited = microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
        // It may have run a little longer, until it lost the CPU.
        told == expected
            && time
                .parse()
                .is_ok_and(|ns: i64| ns / 1000 >= waited && ns > 0)
            && *last == "true"
    }
}

/// Checks the exits of processes that end in each way.
pub fn record(reporter: &mut Reporter) -> io::Result<()> {
    let nobody = Place::Nobody.enter();
    let programs: [&[&str]; 3] = [
        &[FASTPROC, "--version"],
        // It is not PID 1 of an emulated machine, so it exits with a message.
        &["/init"],
        &[&nobody[..], &[FASTPROC, "--version"]].concat(),
    ];
    let mut recording = Recording::start(programs.len() + 1)?;
    let mut ended = Vec::new();
    for argv in programs {
        let mut command = Command::new(argv[0]);
        command
            .args(&argv[1..])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        ended.push(Waited::wait_for(&command.spawn()?)?);
    }
    let mut killed = Recording::start(1)?;
    killed.child.kill()?;
    ended.push(Waited::wait_for(&killed.child)?);

    let mut stdout = recording.heading;
    recording.lines.read_to_string(&mut stdout)?;
    let mut stderr = Vec::new();
    if let Some(mut pipe) = recording.child.stderr.take() {
        pipe.read_to_end(&mut stderr)?;
    }
    let output = recording.child.wait().map(|status| Output {
        status,
        stdout: stdout.clone().into_bytes(),
        stderr,
    });
    let argv: Vec<&str> = recording.argv.iter().map(String::as_str).collect();
    reporter.command("exits", &argv, recording.started, output)?;

    let rows: Vec<&str> = stdout.lines().skip(1).collect();
    let who = [
        ("0", "fastproc"),
        ("0", "init"),
        ("65534", "fastproc"),
        ("0", "fastproc"),
    ];
    for (at, (waited, (user, comm))) in ended.iter().zip(who).enumerate() {
        let row = rows.get(at).copied().unwrap_or_default();
        let name = format!("an exit with {}", waited.status);
        let detail = format!("{row} after {FIELDS} for {:?}", waited.usage.ru_maxrss);
        reporter.check(&name, waited.is_told_by(row, user, comm), detail)?;
    }
    Ok(())
}
