//! Writes what recorders on many hosts would have written on 2026-11-30, in one folder:
//! `cargo run --release -p fastproc-history --example fleet -- FOLDER HOSTS PROCESSES FIRST_HOUR HOURS [DISTINCT]`
//!
//! A twentieth of the processes of a host run each second, mostly the same ones, and two processes end. Only the first DISTINCT
//! hosts are recorded; the files of each of the others are links to those of one of them.

use std::{
    error::Error,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    thread,
    time::Duration,
};

use fastproc::{
    Fields, Process, Snapshot, SnapshotStats, SourceKind, Table, exits::Exit, record::Record,
};
use fastproc_history::{
    folder::Folder,
    recorder::{
        Bounds, Cell, Event, Job, Kept, Look, Moment, Names, Place, Session, Texts, row_of,
    },
    table::MACHINE,
};

type Failure = Box<dyn Error + Send + Sync>;

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3600;
const QUARTER: i64 = HOUR / 4;
/// 2026-11-30, in UTC.
const DAY: i64 = 1_795_996_800;
const BOOTED: i64 = (DAY - 7 * 24 * HOUR) * SECOND;
const GROUPS: Fields = Fields::CPU
    .union(Fields::MEMORY)
    .union(Fields::SCHEDULING)
    .union(Fields::IO)
    .union(Fields::USERS);

/// Texts by number.
struct Made;

impl Texts for Made {
    fn name(&mut self, _: Names, id: u32) -> Cell {
        format!("user{id}").as_str().into()
    }
    fn line(&mut self, process: Process<'_>) -> Cell {
        format!("/usr/bin/program --number={}", process.pid())
            .as_str()
            .into()
    }
    fn line_of_exit(&mut self, _: &Snapshot<'_>, exit: &Exit) -> Cell {
        format!("/usr/bin/short {}", exit.pid).as_str().into()
    }
    fn may_trace(&mut self, _: Process<'_>) -> bool {
        true
    }
}

/// Counts the row groups that are written: this goes faster than a second each.
struct Counted {
    kept: Kept,
    groups: Arc<AtomicI64>,
}

impl Place for Counted {
    type Error = <Kept as Place>::Error;

    fn write(&mut self, job: &Job, told: &mut Vec<Event>) -> Result<(), Self::Error> {
        let written = self.kept.write(job, told);
        if let Job::Group(_) = job {
            self.groups.fetch_add(1, Ordering::Release);
        }
        written
    }
}

/// Pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Nanoseconds since boot.
fn since_boot(wall: i64) -> u64 {
    ((wall - BOOTED) * 1000).unsigned_abs()
}

fn name(comm: &mut [u8], text: &str) {
    for (to, byte) in comm.iter_mut().zip(text.bytes()) {
        *to = byte;
    }
}

fn processes(count: u32, host: u32) -> Vec<Record> {
    let made = (0..count).map(|number| {
        let mut record = Record::default();
        let identity = &mut record.identity;
        identity.groups = GROUPS.bits();
        (identity.tgid, identity.start_ns) = (100 + number, u64::from(number) * 77_777_777);
        identity.masked = 1;
        name(
            &mut identity.comm,
            &format!("program-{}", (number + host) % 40),
        );
        record.users.euid = number % 7;
        record
    });
    made.collect()
}

/// One second of a process that runs.
fn run(record: &mut Record, random: &mut Random) {
    let cpu = &mut record.cpu;
    let (user, system) = (random.below(20_000_000), random.below(8_000_000));
    cpu.utime_ns += user;
    cpu.stime_ns += system;
    cpu.minflt += random.below(6);
    record.io.rchar += random.below(9_000);
    record.io.wchar += random.below(9_000);
    record.memory.rss_anon += random.below(3) << 12;
}

/// Short-lived processes that ended before a second.
fn ended(number: u32, wall: i64, random: &mut Random) -> Exit {
    let mut exit = Exit::default();
    (exit.pid, exit.tid) = (100_000 + number % 900_000, 100_000 + number % 900_000);
    let end = since_boot(wall) - 500_000_000 + u64::from(number % 2);
    (exit.start_ns, exit.end_ns) = (end - 40_000_000, Some(end));
    name(&mut exit.comm, &format!("short-{}", number % 5));
    (exit.utime_ns, exit.is_final) = (random.below(30_000_000), true);
    exit
}

fn record(folder: &Path, host: u32, count: u32, (first, last): (i64, i64)) -> Result<(), Failure> {
    let name = format!("host-{host:02}");
    let bounds = Bounds {
        size: u64::MAX / 2,
        leave: 0.0,
        every: i64::MAX / 4,
        each_10: i64::MAX / 4,
        each_60: i64::MAX / 4,
    };
    let own = folder.join(format!(".{name}"));
    let (kept, taken, told) =
        Kept::take(Folder::create(&own, &name)?, name.clone(), bounds, first)?;
    let groups = Arc::new(AtomicI64::new(0));
    let place = Counted {
        kept,
        groups: Arc::clone(&groups),
    };
    let session = Session::new(place, "made", Duration::from_secs(1), taken, told)?;
    let mut session = session.with_parts(Duration::from_secs(QUARTER.unsigned_abs()));
    let mut random = Random(u64::from(host) + 1);
    let mut records = processes(count, host);
    let mut number = 0;
    for second in first..last {
        let wall = second * SECOND;
        for record in &mut records {
            let is_busy = record.identity.tgid % 25 == host % 25;
            if is_busy || random.below(100) == 0 {
                run(record, &mut random);
            }
        }
        let exits = [(); 2].map(|()| {
            number += 1;
            ended(number, wall, &mut random)
        });
        let machine = [
            ("began_ns", since_boot(wall) as i64),
            ("read_for_ns", 0),
            ("interval_ns", 1_000_000_000),
            ("lost_exits", 0),
            ("processes", i64::from(count)),
            ("cpus", 8),
        ];
        let machine = row_of(&MACHINE, &machine);
        let table = Table {
            records: &records,
            ..Table::default()
        };
        let stats = SnapshotStats::recorded(SourceKind::Procfs, since_boot(wall), Duration::ZERO);
        let snapshot = Snapshot::recorded(table, stats).with_exits(&exits, 0);
        let moment = Moment {
            wall,
            boot: wall - BOOTED,
            awake: wall - BOOTED,
        };
        let look = Look {
            moment,
            snapshot: &snapshot,
            machine: &machine,
            cgroups: &[],
            waits: &[],
        };
        session.push(&look, &mut Made);
        while second % QUARTER == 0 && groups.load(Ordering::Acquire) < (second - first) / QUARTER {
            thread::sleep(Duration::from_millis(1));
        }
    }
    if !session.finish("its day is over") {
        return Err("not everything could be written".into());
    }
    let sealed = format!("host={name}");
    fs::rename(own.join(&sealed), folder.join(&sealed))?;
    Ok(fs::remove_dir_all(&own)?)
}

/// Makes all files of a folder those of another folder too.
fn link(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            link(&entry.path(), &target)?;
        } else {
            fs::hard_link(entry.path(), target)?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [folder, numbers @ ..] = &arguments[..] else {
        return Err(
            "name a folder, and the numbers of hosts, processes, first hour and hours".into(),
        );
    };
    let numbers: Vec<u32> = numbers
        .iter()
        .map(|number| number.parse())
        .collect::<Result<_, _>>()?;
    let [hosts, processes, hour, hours, distinct @ ..] = &numbers[..] else {
        return Err("give the numbers of hosts, processes, first hour and hours".into());
    };
    let distinct = distinct.first().map_or(*hosts, |most| *most.min(hosts));
    let folder = Path::new(folder);
    fs::create_dir_all(folder)?;
    let first = DAY + i64::from(*hour) * HOUR;
    let last = first + i64::from(*hours) * HOUR;
    for host in 0..distinct {
        record(folder, host, *processes, (first, last))?;
    }
    for host in distinct..*hosts {
        let of = |host: u32| folder.join(format!("host=host-{host:02}"));
        link(&of(host % distinct), &of(host))?;
    }
    Ok(())
}
