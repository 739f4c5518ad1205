//! `fastproc bench files`: the cost of reading every open file once, by lsof, ss and loops over `/proc`, and by a snapshot.

use std::{
    fs::{self, File},
    io::{self, Read, Write, pipe},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use fastproc::files::{Fields, Files, Source};
use rustix::{
    event::{EventfdFlags, epoll, eventfd},
    process::geteuid,
    time::{TimerfdClockId, TimerfdFlags, timerfd_create},
};
use serde_json::json;

use super::{
    command::{command, cpu_of},
    measure::{Common, Failure, in_turn, ms, raise_open_files, timed},
    report::{Column, Report, Spread, column},
};

/// Arguments of `fastproc bench files`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Start this many processes with 20 open files each, 11 of them sockets.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    processes: usize,
    /// Start one process with this many UDP sockets.
    #[arg(long, value_name = "N", default_value_t = 19_000)]
    sockets: usize,
}

/// Arguments of a process that holds files for the benchmark.
#[derive(Debug, clap::Args)]
pub struct HoldArgs {
    /// The number of UDP sockets; 0: the files of the benchmark.
    sockets: usize,
}

const COLUMNS: [Column; 4] = [
    column("case", "case", 0, 0),
    column("cpu_ms", "CPU ms", 2, 0),
    column("compared_with", "compared with", 0, 0),
    column("ratio", "times cheaper", 1, 0),
];

/// How many processes start at once.
const AT_ONCE: usize = 50;

/// Opens files, says that they are open, and holds them until standard input ends.
pub fn hold(args: &HoldArgs) -> Result<(), Failure> {
    raise_open_files();
    let mut held: Vec<OwnedFd> = Vec::new();
    for _ in 0..args.sockets {
        held.push(UdpSocket::bind("127.0.0.1:0")?.into());
    }
    if args.sockets == 0 {
        let own = std::env::current_exe()?;
        for path in [
            own.clone(),
            own.clone(),
            own,
            "/etc/passwd".into(),
            "/".into(),
            "/dev/null".into(),
        ] {
            held.push(File::open::<PathBuf>(path)?.into());
        }
        let (reads, writes) = pipe()?;
        held.extend([reads.into(), writes.into()]);
        held.push(eventfd(0, EventfdFlags::empty())?);
        held.push(epoll::create(epoll::CreateFlags::empty())?);
        held.push(timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::empty(),
        )?);
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let client = TcpStream::connect(listener.local_addr()?)?;
        let (server, _) = listener.accept()?;
        held.extend([listener.into(), client.into(), server.into()]);
        for _ in 0..2 {
            held.push(UdpSocket::bind("127.0.0.1:0")?.into());
            let (one, other) = UnixDatagram::pair()?;
            held.extend([one.into(), other.into()]);
        }
    }
    io::stdout().write_all(b".")?;
    io::stdout().flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    drop(held);
    Ok(())
}

/// Processes that hold files, until this is dropped.
struct Load {
    children: Vec<Child>,
    /// Its end ends them.
    held: Option<io::PipeWriter>,
}

impl Load {
    fn start(args: &Args) -> Result<Self, Failure> {
        let (wait, held) = pipe()?;
        let mut load = Self {
            children: Vec::new(),
            held: Some(held),
        };
        let all = std::iter::once(args.sockets).filter(|&sockets| sockets > 0);
        let all: Vec<usize> = all.chain(std::iter::repeat_n(0, args.processes)).collect();
        for some in all.chunks(AT_ONCE) {
            let (mut told, tell) = pipe()?;
            for sockets in some {
                let child = Command::new(std::env::current_exe()?)
                    .args(["hold-files", &sockets.to_string()])
                    .stdin(wait.try_clone()?)
                    .stdout(tell.try_clone()?)
                    .spawn()?;
                load.children.push(child);
            }
            drop(tell);
            let mut dots = vec![0; some.len()];
            told.read_exact(&mut dots)?;
        }
        Ok(load)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        drop(self.held.take());
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

/// A way to read.
enum How {
    /// This program and its arguments; its CPU time counts.
    Command(&'static str),
    /// A collector that stays open. Names and addresses become text.
    Snapshot(Box<Files>),
    /// Reads the links of every folder of descriptors.
    Links,
    /// Only asks how large each folder is (Linux 6.2).
    Sizes,
}

struct Case {
    name: &'static str,
    /// The case that it is compared with.
    usual: &'static str,
    how: How,
    cpu_ms: Vec<f64>,
}

fn snapshot(fields: Fields) -> Result<How, Failure> {
    let builder = Files::builder().source(Some(Source::Bpf)).fields(fields);
    Ok(How::Snapshot(Box::new(builder.open()?)))
}

fn cases() -> Result<Vec<Case>, Failure> {
    let all = Fields::FILES | Fields::SOCKETS | Fields::PATHS;
    let cases = [
        ("readlink", "readlink", How::Links),
        ("fd-sizes", "readlink", How::Sizes),
        ("counts", "readlink", snapshot(Fields::empty())?),
        ("files", "lsof", snapshot(Fields::FILES)?),
        (
            "paths",
            "readlink",
            snapshot(Fields::FILES | Fields::PATHS)?,
        ),
        ("sockets", "ss-processes", snapshot(Fields::SOCKETS)?),
        ("all", "lsof", snapshot(all)?),
        ("lsof", "lsof", How::Command("lsof -n")),
        ("ss-processes", "ss-processes", How::Command("ss -tunap")),
        ("ss", "ss", How::Command("ss -tuna")),
        ("netstat", "netstat", How::Command("netstat -tunap")),
        (
            "command-count",
            "readlink",
            How::Command("fastproc files --count --csv"),
        ),
        (
            "command-files",
            "lsof",
            How::Command("fastproc files --csv"),
        ),
        (
            "command-sockets",
            "ss-processes",
            How::Command("fastproc sockets --csv"),
        ),
        (
            "command-orphans",
            "ss-processes",
            How::Command("fastproc sockets --orphans --csv"),
        ),
    ];
    let case = |(name, usual, how)| Case {
        name,
        usual,
        how,
        cpu_ms: Vec::new(),
    };
    Ok(cases.into_iter().map(case).collect())
}

/// The folders of all processes.
fn folders() -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
            folders.push(path.join("fd"));
        }
    }
    Ok(folders)
}

fn read_links() -> io::Result<usize> {
    let mut count = 0;
    for folder in folders()? {
        // It may have ended.
        for entry in fs::read_dir(folder).into_iter().flatten() {
            count += usize::from(fs::read_link(entry?.path()).is_ok());
        }
    }
    Ok(count)
}

fn add_sizes() -> io::Result<u64> {
    let sizes = folders()?
        .into_iter()
        .filter_map(|folder| fs::metadata(folder).ok());
    Ok(sizes.map(|folder| folder.len()).sum())
}

/// Reads all, and makes texts of names and addresses, as a reader that shows them.
fn read(files: &mut Files) -> Result<usize, Failure> {
    let mut text = Vec::new();
    let mut count = 0;
    for holder in files.snapshot()?.processes() {
        count += holder.open().unwrap_or(0) as usize;
        for file in holder.files() {
            text.clear();
            file.write_name(&mut text);
            if let Some(socket) = file.socket() {
                for end in [socket.local(), socket.peer()].into_iter().flatten() {
                    end.write(&mut text);
                }
            }
        }
    }
    Ok(count)
}

impl Case {
    fn once(&mut self) -> Result<Duration, Failure> {
        let (done, cpu) = match &mut self.how {
            How::Command(line) => return cpu_of(command(line)?.stdin(Stdio::null())),
            How::Snapshot(files) => {
                let (read, cpu, _) = timed(|| read(files));
                (read.map(|count| count > 0), cpu)
            }
            How::Links => {
                let (read, cpu, _) = timed(read_links);
                (read.map(|count| count > 0).map_err(Into::into), cpu)
            }
            How::Sizes => {
                let (read, cpu, _) = timed(add_sizes);
                (read.map(|count| count > 0).map_err(Into::into), cpu)
            }
        };
        if done? {
            Ok(cpu)
        } else {
            Err("it read nothing".into())
        }
    }

    fn cpu(&self) -> Spread {
        Spread::of(self.cpu_ms.iter().copied())
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    if !geteuid().is_root() {
        return Err("run this as root: only root sees the files of all processes".into());
    }
    raise_open_files();
    let load = Load::start(args)?;
    let mut cases = cases()?;
    let mut report = Report::new("files", "All open files", &COLUMNS);
    let mut missing = Vec::new();
    cases.retain_mut(|case| {
        let How::Command(line) = case.how else {
            return true;
        };
        let is_there = case.once().is_ok();
        if !is_there {
            missing.extend(line.split(' ').next());
        }
        is_there
    });
    in_turn(cases.len(), 1, common.rounds(5), |at, counts| {
        let case = &mut cases[at];
        let cpu = case
            .once()
            .map_err(|error| format!("{}: {error}", case.name))?;
        if counts {
            case.cpu_ms.push(ms(cpu));
        }
        Ok(())
    })?;
    let descriptors = read_links()?;
    report.head(json!({"processes": load.children.len(), "descriptors": descriptors}));
    for case in &cases {
        let usual = cases.iter().find(|other| other.name == case.usual);
        let usual = usual.map_or(f64::NAN, |usual| usual.cpu().median);
        let cpu = case.cpu();
        report.row([
            case.name.into(),
            cpu.into(),
            case.usual.into(),
            (usual / cpu.median).into(),
        ]);
    }
    if !missing.is_empty() {
        report.note(format!(
            "not installed, or it failed: {}",
            missing.join(", ")
        ));
    }
    report.note(
        "counts to all are snapshots of an open collector, with the texts of names and addresses; command-… are whole runs of the \
         command",
    );
    Ok(report.print(common.json)?)
}
