//! `fastproc record`: a history of what runs.

use std::{
    io,
    os::unix::net::UnixStream,
    path::PathBuf,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use fastproc::{Collector, Fields, SourceKind};
use fastproc_columns::{parse_duration, parse_interval};
use fastproc_history::{
    folder::{Folder, USUAL, host_name},
    recorder::{
        Bounds, Hierarchy, Kept, Lines, Live, Look, Machine, Moment, Session, Waits, boot_id,
    },
};
use fastproc_metrics::say;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    low_level::pipe,
};

use crate::{Failure, failure::chain, privileges, source::Source};

const AFTER_HELP: &str = "\
Examples:
  fastproc record                      Record to /var/lib/fastproc/history, as the unit does
  fastproc record --size 10GiB /data   Keep up to 10 GiB in /data
  fastproc record --interval 10s --for 1h now
                                       Record every ten seconds for an hour, to the folder now
  systemctl enable --now fastproc-history
                                       Record from now on, and after each boot

See --help for what is recorded, and who may read it.";

const AFTER_LONG_HELP: &str = "\
Each second it records which processes have changed, and every process that ended, however short it lived. The folder
holds Parquet files, which DuckDB, Polars, pandas and Spark read as they are: an hour that is over is in
host=NAME/date=DATE/hour=HOUR (UTC), the present one in open.

What is older than --every has a row for every 10 seconds, after --each-10s for every minute, and is removed after --each-60s.
The last value of each counter and all exits stay exact. When there are more bytes than --size says, or less of the file system
is free than --leave says, the oldest hours are removed.

The files can be read by the user who records and by members of that user's group. Command lines may hold passwords:
--command-lines none records none of them. By default they are recorded as they are read after a process was first seen; with
all, also those of short processes, as they were executed.

As root, or with CAP_BPF and CAP_PERFMON, it reads by BPF and records every exit. Without, it records what /proc shows this
user, and no exits.

It runs until SIGTERM, Ctrl-C or --for, and then waits up to two seconds for the last exits. A disk that hangs or is full does not
stop it: what it could not write is told in the table events. If it is killed or cannot write its end, the next run tells that.

Exit status:
  0  it was told to end, and everything is written
  2  the command line is invalid, the folder cannot be written, or another recorder is there";

/// Record what runs, second by second, for later.
#[derive(Debug, clap::Args)]
#[command(max_term_width = 100, after_help = AFTER_HELP, after_long_help = AFTER_LONG_HELP)]
pub struct Args {
    /// Record to this folder, and create it if necessary.
    #[arg(default_value = USUAL)]
    folder: PathBuf,
    /// Look this often, at multiples of it in UTC.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_interval)]
    interval: Duration,
    /// Keep at most this many bytes.
    #[arg(long, value_name = "BYTES", default_value = "2GiB", value_parser = crate::serve::bytes)]
    size: usize,
    /// Leave this part of the file system free, from 0 to 1.
    #[arg(long, value_name = "PART", default_value_t = 0.1, value_parser = part_of_file_system)]
    leave: f64,
    /// Keep every look for this long.
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = parse_duration)]
    every: Duration,
    /// Keep one row for every 10 seconds until this age.
    #[arg(long = "each-10s", value_name = "DURATION", default_value = "7d", value_parser = parse_duration)]
    each_10: Duration,
    /// Keep one row for every minute until this age.
    #[arg(long = "each-60s", value_name = "DURATION", default_value = "28d", value_parser = parse_duration)]
    each_60: Duration,
    /// Write this often. A crash loses what is not written, and a slow disk has less to do with fewer writes.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    write_every: Duration,
    /// Record these command lines.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    command_lines: CommandLines,
    /// Record the cgroups too.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    cgroups: bool,
    /// Record each second what threads in state R or D wait for. This reads the threads too, and costs more.
    #[arg(long)]
    waits: bool,
    /// Record under this name of the machine. [default: the name that uname shows]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Stop after this time.
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// Read processes from this source.
    #[arg(long, value_enum, default_value_t)]
    source: Source,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum CommandLines {
    /// Those of all processes; of short ones as they were executed
    All,
    /// Those of processes that a look meets, as they are read then
    #[default]
    Kept,
    /// None
    None,
}

impl CommandLines {
    const fn lines(self) -> Lines {
        match self {
            Self::All => Lines::All,
            Self::Kept => Lines::Kept,
            Self::None => Lines::None,
        }
    }
}

fn part_of_file_system(text: &str) -> Result<f64, String> {
    crate::serve::part(text, "the file system")
}

/// What the columns hold.
const FIELDS: Fields = Fields::CPU
    .union(Fields::MEMORY)
    .union(Fields::SCHEDULING)
    .union(Fields::IO)
    .union(Fields::USERS)
    .union(Fields::CGROUP);

/// Parts of a row group, which covers a quarter of an hour, cover whole intervals.
const LONGEST: Duration = Duration::from_secs(60);

/// After the final look the recorder looks again and again, until the kernel has released all processes that had ended
/// before it, and their exits are known. It does not wait longer than this.
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.interval > LONGEST {
        return Err("the interval of a recorder is at most a minute".into());
    }
    let (ends, end) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        pipe::register(signal, end.try_clone()?)?;
    }
    let uname = rustix::system::uname();
    let named = args.host.as_ref().map(String::as_bytes);
    let host = host_name(named.unwrap_or(uname.nodename().to_bytes()));
    let bounds = Bounds {
        size: args.size as u64,
        leave: args.leave,
        every: args.every.as_secs() as i64,
        each_10: args.each_10.as_secs() as i64,
        each_60: args.each_60.as_secs() as i64,
    };
    // A refusal costs others a short wait, and no values.
    let _ = fastproc::give_way();
    let folder = Folder::create(&args.folder, &host)?;
    let now = Moment::now().wall.div_euclid(1_000_000);
    let (kept, taken, told) = Kept::take(folder, host, bounds, now)?;
    let mut fields = FIELDS;
    fields.set(Fields::THREADS, args.waits);
    let mut collector = Collector::builder()
        .fields(fields)
        .source(args.source.kind())
        .service_socket(None)
        .exits(true)
        .exit_cmdlines(args.command_lines == CommandLines::All)
        .open()?;
    let by_bpf = matches!(collector.source(), SourceKind::Bpf | SourceKind::BpfIter);
    let mut machine = Machine::open(collector.host(), args.interval, by_bpf)?;
    let cgroups = args.cgroups.then(|| Hierarchy::open(by_bpf));
    let mut cgroups = match cgroups.transpose() {
        Ok(cgroups) => cgroups,
        Err(error) => {
            say(&format!("cgroups are not recorded: {}", chain(&error)));
            None
        }
    };
    // Threads start later: capabilities belong to threads.
    collector.snapshot()?;
    privileges::drop()?;
    let mut texts = Live::open(collector.host(), args.command_lines.lines())?;
    let waits = args.waits.then(|| Waits::open(collector.host()));
    let mut waits = waits.transpose()?;
    let session = Session::new(kept, &boot_id()?, args.interval, taken, told)?;
    let mut session = session.with_parts(args.write_every);
    if let Err(error) = fastproc_service::confine_to_folders() {
        say(&format!("system calls are not filtered: {error}"));
    }
    let folder = args.folder.display();
    say(&format!(
        "recording to {folder}, from {}",
        collector.source().name()
    ));
    if let Some(error) = collector.exits_refused() {
        say(&format!("exits are not recorded: {}", chain(error)));
    }
    let until = args.duration.map(|duration| Instant::now() + duration);
    let mut has_failed = false;
    let mut ended: Option<Instant> = None;
    // The end of the final look, since boot.
    let mut last_ns = None;
    let why = loop {
        match ended {
            None if wait(&session, &ends, until)? => {}
            None => ended = Some(Instant::now()),
            Some(_) => thread::sleep(AGAIN),
        }
        let goes_on = ended.is_none();
        let moment = Moment::now();
        if goes_on && !session.is_due(moment) {
            continue;
        }
        match collector.snapshot() {
            Ok(snapshot) => {
                let row = machine.row(&snapshot);
                let cgroups = cgroups.as_mut().map_or_else(Vec::new, Hierarchy::rows);
                let waits = waits.as_mut().map(|waits| waits.rows(&snapshot));
                let waits = waits.unwrap_or_default();
                let look = Look {
                    moment,
                    snapshot: &snapshot,
                    machine: &row,
                    cgroups: &cgroups,
                    waits: &waits,
                };
                if goes_on {
                    session.push(&look, &mut texts);
                } else {
                    session.push_last(&look, &mut texts);
                    last_ns.get_or_insert(snapshot.stats().kernel_end_ns());
                }
                has_failed = false;
            }
            // The next one may succeed. Once for a failure that lasts.
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    say(&chain(&error));
                }
            }
        }
        for line in session.take_told() {
            say(&line);
        }
        let Some(ended) = ended else { continue };
        let awaits = last_ns.is_some_and(|last_ns| collector.awaits_exits(last_ns));
        if awaits && ended.elapsed() > PATIENCE {
            break "it was told to end; exits are missing, because the kernel had not released all that had ended";
        } else if !awaits {
            break "it was told to end";
        }
    };
    let is_written = session.finish(why);
    for line in session.take_told() {
        say(&line);
    }
    if is_written {
        return Ok(ExitCode::SUCCESS);
    }
    Err(io::Error::other(format!("not everything could be written to {folder}")).into())
}

/// Waits for the next look. Returns false if that is the last one.
fn wait(session: &Session, ends: &UnixStream, until: Option<Instant>) -> io::Result<bool> {
    let mut left = session.until_next(Moment::now());
    let is_last = until.is_some_and(|until| {
        let rest = until.saturating_duration_since(Instant::now());
        let is_last = rest < left;
        left = left.min(rest);
        is_last
    });
    let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(ends, PollFlags::IN)], Some(&timeout)) {
        Ok(0) => Ok(!is_last),
        Ok(_) => Ok(false),
        // A signal that does not end it.
        Err(Errno::INTR) => Ok(true),
        Err(error) => Err(error.into()),
    }
}
