//! `fastproc cat`: files of `/proc`, rendered from records.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs,
    io::{self, Write},
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use fastproc::{
    Collector, Fields, Process, Snapshot, SourceKind,
    counters::{self, Counters, MachineFile},
    proc_root,
    record::ThreadRecord,
    text::Files,
};
use fastproc_columns::escape::escape;

use crate::{
    Failure,
    privileges::{self, AccessCheck},
    source::{IrqsLatency, Source},
};

/// Print files of /proc like cat, rendered from records.
///
/// The files of a process are /proc/PID/stat, statm, status and schedstat. The files of the machine are /proc/stat, vmstat, interrupts,
/// softirqs, loadavg, uptime, meminfo, diskstats, net/dev, net/wireless, and /etc/mtab. /proc/ can be left out, as in 1/stat,
/// self/stat and stat.
///
/// The exit status is 0; 1 if a file could not be printed, with the message of cat(1); and 2 if the command could not run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "Examples:
  fastproc cat /proc/1/status 1/stat
      Print two files of process 1
  fastproc cat --all stat
      Print the stat file of every process
  fastproc cat --all status --proc
      Print the kernel's own text, for comparison
  fastproc cat --stat-irqs-latency 100ms /proc/stat /proc/vmstat
      Print counters of the machine, with interrupt counts that are at most 100 ms old")]
pub struct Args {
    /// Print these files.
    #[arg(
        value_name = "PATH",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    paths: Vec<PathBuf>,
    /// Print this file of every process, ordered by process id.
    #[arg(long, value_name = "FILE")]
    all: Option<ProcessFile>,
    /// Print the kernel's own text.
    #[arg(long)]
    proc: bool,
    /// Read processes from this source.
    #[arg(long, value_enum, default_value_t)]
    source: Source,
    #[command(flatten)]
    latency: IrqsLatency,
}

/// A file that every process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ProcessFile {
    Stat,
    Statm,
    Status,
    Schedstat,
}

impl ProcessFile {
    const ALL: [Self; 4] = [Self::Stat, Self::Statm, Self::Status, Self::Schedstat];

    const fn name(self) -> &'static str {
        match self {
            Self::Stat => "stat",
            Self::Statm => "statm",
            Self::Status => "status",
            Self::Schedstat => "schedstat",
        }
    }

    const fn fields(self) -> Fields {
        match self {
            // It has the values of the leading thread, and a record those of all threads.
            Self::Schedstat => Files::FIELDS.union(Fields::THREADS),
            _ => Files::FIELDS,
        }
    }
}

/// The kind of file that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Process(u32, ProcessFile),
    Machine(MachineFile),
    /// A file that fastproc does not render.
    Other,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let code = match args.all {
        Some(file) if args.proc => all_of_the_kernel(file, &mut out)?,
        Some(file) => all(file, args, &mut out)?,
        None => files(args, &mut out)?,
    };
    out.flush()?;
    Ok(code)
}

fn all_of_the_kernel(file: ProcessFile, out: &mut impl Write) -> Result<ExitCode, Failure> {
    let pids = fs::read_dir(proc_root::path("/proc"))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut pids: Vec<u32> = pids.collect();
    pids.sort_unstable();
    for pid in pids {
        // A process that has exited meanwhile has no text.
        if let Ok(text) = fs::read(kernel_path(pid, file)) {
            out.write_all(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn all(file: ProcessFile, args: &Args, out: &mut impl Write) -> Result<ExitCode, Failure> {
    let mut processes = Processes::open(file.fields(), args.source.kind())?;
    let Processes {
        collector,
        texts,
        checker,
    } = &mut processes;
    let snapshot = collector.snapshot()?;
    let leaders = snapshot
        .threads()
        .filter(|thread| thread.tid == thread.tgid);
    let leaders: HashMap<_, _> = leaders.map(|leader| (leader.tid, leader)).collect();
    for process in snapshot.iter() {
        let leader = leaders.get(&process.pid()).copied();
        if let Some(text) = render(texts, checker, &snapshot, (process, leader), file)? {
            out.write_all(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The collector and the renderers of its records, opened for the first process that is printed.
struct Processes {
    collector: Collector,
    texts: Files,
    checker: AccessCheck,
}

impl Processes {
    fn open(fields: Fields, source: Option<SourceKind>) -> Result<Self, Failure> {
        let collector = Collector::builder()
            .fields(fields)
            .source(source)
            .one_shot(true)
            .open()?;
        let texts = Files::open(collector.host(), collector.calibration())?;
        privileges::drop()?;
        let checker = AccessCheck::new(collector.host())?;
        Ok(Self {
            collector,
            texts,
            checker,
        })
    }
}

/// The text of a process with its leading thread, if the source has threads. `None`: only the kernel has it, and the process has exited.
fn render<'t>(
    texts: &'t mut Files,
    checker: &AccessCheck,
    snapshot: &Snapshot<'_>,
    (process, leader): (Process<'_>, Option<&ThreadRecord>),
    file: ProcessFile,
) -> Result<Option<Cow<'t, [u8]>>, Failure> {
    let kernel = || fs::read(kernel_path(process.pid(), file)).ok();
    let text = match file {
        ProcessFile::Stat => texts.stat(process, checker.access(process, snapshot))?,
        ProcessFile::Statm => texts.statm(process)?,
        ProcessFile::Status if texts.needs_kernel_status(process) => match kernel() {
            Some(kernel) => texts.status(process, Some(&kernel))?,
            None => return Ok(None),
        },
        ProcessFile::Status => texts.status(process, None)?,
        ProcessFile::Schedstat => {
            let is_known = |thread: &&ThreadRecord| {
                thread.sum_exec_ns().is_some() && thread.run_delay_ns().is_some()
            };
            match leader.filter(is_known) {
                Some(leader) => texts.schedstat(leader)?,
                None => return Ok(kernel().map(Cow::Owned)),
            }
        }
    };
    Ok(Some(Cow::Borrowed(text)))
}

fn kernel_path(pid: u32, file: ProcessFile) -> PathBuf {
    proc_root::path(&format!("/proc/{pid}/{}", file.name())).into_owned()
}

fn files(args: &Args, out: &mut impl Write) -> Result<ExitCode, Failure> {
    let targets = args.paths.iter().map(|path| target(path));
    let fields = targets.fold(Fields::empty(), |fields, target| match target {
        Target::Process(_, file) => fields | file.fields(),
        _ => fields,
    });
    let mut processes = None;
    let mut machine = None;
    let mut code = ExitCode::SUCCESS;
    for path in &args.paths {
        let printed = match target(path) {
            _ if args.proc => copy(&full(path), out),
            Target::Process(pid, file) => {
                let processes = match &mut processes {
                    Some(processes) => processes,
                    None => processes.insert(Processes::open(fields, args.source.kind())?),
                };
                print_process(processes, pid, file, out)?
            }
            Target::Machine(file) => {
                let reader = match &mut machine {
                    Some(reader) => reader,
                    None => machine.insert(open_counters(args)?),
                };
                print_machine(reader, file, out)
            }
            Target::Other => Err(not_rendered(path)),
        };
        if let Err(error) = printed {
            if error.kind() == io::ErrorKind::BrokenPipe {
                return Err(error.into());
            }
            out.flush()?;
            // The message of cat(1).
            let mut shown = Vec::new();
            escape(path.as_os_str().as_bytes(), &mut shown);
            let shown = String::from_utf8_lossy(&shown);
            let reason = fastproc::log_line(&reason(&error));
            writeln!(io::stderr(), "cat: {shown}: {reason}")?;
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

fn open_counters(args: &Args) -> Result<Counters, Failure> {
    let options = counters::Options::new()
        .bpf(args.source.kind() != Some(SourceKind::Procfs))
        .stat_irqs_latency(args.latency.get())
        .text_latency(Duration::ZERO);
    Ok(options.open()?)
}

fn print_machine(reader: &mut Counters, file: MachineFile, out: &mut impl Write) -> io::Result<()> {
    match reader.text(file) {
        Ok(text) => out.write_all(text),
        Err(counters::Error::Read { source, .. }) => Err(source),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Prints a process's file, or the kernel's own if no record has it: the process may be younger than the snapshot, or a
/// thread, which `/proc` shows but does not list.
fn print_process(
    processes: &mut Processes,
    pid: u32,
    file: ProcessFile,
    out: &mut impl Write,
) -> Result<io::Result<()>, Failure> {
    let Processes {
        collector,
        texts,
        checker,
    } = processes;
    let snapshot = collector.snapshot()?;
    if let Some(process) = snapshot.get(pid)
        && let leader = snapshot.threads().find(|thread| thread.tid == pid)
        && let Some(text) = render(texts, checker, &snapshot, (process, leader), file)?
    {
        return Ok(out.write_all(&text));
    }
    Ok(copy(&kernel_path(pid, file), out))
}

fn copy(path: &Path, out: &mut impl Write) -> io::Result<()> {
    out.write_all(&fs::read(path)?)
}

/// Completes a path that was written without `/proc`.
fn full(path: &Path) -> PathBuf {
    let path = &*proc_root::usual(path);
    match path.to_str() {
        Some(inside) if path.is_relative() && target(path) != Target::Other => {
            proc_root::path(&format!("/proc/{inside}")).into_owned()
        }
        Some(usual) => proc_root::path(usual).into_owned(),
        None => path.into(),
    }
}

fn target(path: &Path) -> Target {
    let path = &*proc_root::usual(path);
    let path = &*Path::new("/proc").join(path);
    if let Some(file) = MachineFile::ALL
        .into_iter()
        .find(|file| Path::new(file.path()) == path)
    {
        return Target::Machine(file);
    }
    let inside = path.strip_prefix("/proc").unwrap_or(path);
    let mut parts = inside.iter().map(|part| part.to_str().unwrap_or_default());
    let (Some(pid), Some(name), None) = (parts.next(), parts.next(), parts.next()) else {
        return Target::Other;
    };
    let pid = match pid {
        "self" => Some(own_pid()),
        pid if pid.bytes().all(|byte| byte.is_ascii_digit()) => pid.parse().ok(),
        _ => None,
    };
    let file = ProcessFile::ALL
        .into_iter()
        .find(|file| file.name() == name);
    match (pid, file) {
        (Some(pid), Some(file)) => Target::Process(pid, file),
        _ => Target::Other,
    }
}

/// The pid of this process in `/proc`, which may differ from that in its own namespace; 0, which no process has, if it
/// has none there.
fn own_pid() -> u32 {
    proc_root::own_pid().unwrap_or(0)
}

/// Why a file is not printed that fastproc does not render.
fn not_rendered(path: &Path) -> io::Error {
    match fs::metadata(path) {
        Ok(_) => io::Error::new(
            io::ErrorKind::Unsupported,
            "fastproc cat makes stat, statm, status and schedstat of a process, and counters of the machine; --proc prints this file like cat",
        ),
        Err(error) => error,
    }
}

/// The message of strerror(3), without Rust's error number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match (error.raw_os_error(), text.split_once(" (os error")) {
        (Some(_), Some((reason, _))) => reason.into(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_apart() {
        let of = |path: &str| target(Path::new(path));
        assert_eq!(of("/proc/17/stat"), Target::Process(17, ProcessFile::Stat));
        assert_eq!(of("17/status"), Target::Process(17, ProcessFile::Status));
        assert_eq!(
            of("/proc/self/statm"),
            Target::Process(std::process::id(), ProcessFile::Statm)
        );
        for path in ["/proc/stat", "stat"] {
            assert_eq!(of(path), Target::Machine(MachineFile::Stat));
        }
        assert_eq!(of("net/dev"), Target::Machine(MachineFile::NetDev));
        assert_eq!(of("self/stat"), of("/proc/self/stat"));
        assert_eq!(full(Path::new("net/dev")), Path::new("/proc/net/dev"));
        assert_eq!(full(Path::new("x/stat")), Path::new("x/stat"));
        assert_eq!(of("/etc/mtab"), Target::Machine(MachineFile::Mtab));
        for other in [
            "/proc/17/maps",
            "/etc/passwd",
            "/proc/17",
            "x/stat",
            "/proc/17/task/17/stat",
            "/proc/+1/stat",
            "/sys/fs/cgroup/a/memory.stat",
            "/sys/fs/cgroup/cgroup.procs",
            "etc/mtab",
            "proc/stat",
        ] {
            assert_eq!(of(other), Target::Other, "{other}");
        }
    }

    #[test]
    fn a_missing_file_is_missing_and_another_is_not_rendered() {
        let why = |path: &str| not_rendered(Path::new(path)).kind();
        assert_eq!(why("/proc/1/no such file"), io::ErrorKind::NotFound);
        assert_eq!(why("/proc/version"), io::ErrorKind::Unsupported);
    }

    #[test]
    fn reasons_are_those_of_cat() {
        assert_eq!(
            reason(&io::Error::from_raw_os_error(2)),
            "No such file or directory"
        );
        assert_eq!(reason(&io::Error::other("words")), "words");
    }
}
