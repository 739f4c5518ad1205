//! `fastproc bench hostile`: how long a user waits for the service while another one attacks it, compared with the same
//! number of processes of that user that only use the CPU.

use std::{
    io::{BufRead, BufReader},
    os::{fd::OwnedFd, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use fastproc::{
    Collector, Fields, SourceKind, Texts,
    source::service::wire::{self, Op, Request},
};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};
use serde::Serialize;

use super::{
    attach,
    command::{Ending, cpu_ns},
    idle::Idle,
    measure::Failure,
    report::{Column, Report, Row, column, four_decimals, progress},
    service::Service,
};

const ATTACKER: u32 = 54_321;
const READER: u32 = 65_534;
const CONNECTIONS: usize = 500;
/// The time between two snapshots of the reader.
const APART: Duration = Duration::from_millis(10);
/// The time that attackers have to connect.
const CONNECTING: Duration = Duration::from_secs(1);

/// Arguments of `fastproc bench hostile`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Measure with this many processes on the machine. Missing ones are started, idle, and removed afterwards.
    #[arg(long, value_name = "N", default_value_t = 4000)]
    processes: usize,
    /// Attack from this many processes.
    #[arg(long, value_name = "N", default_value_t = 2)]
    attackers: usize,
    /// Measure all cases this many times.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Take this many snapshots in each case of a round.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    looks: u32,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
    /// The role of this process, at this socket, as its user.
    #[arg(long, hide = true, requires = "socket")]
    role: Option<Role>,
    #[arg(long, hide = true)]
    socket: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    /// Takes snapshots, and prints the microseconds that each took.
    Reader,
    Idle,
    Burners,
    Snapshots,
    Texts,
    Walks,
    Requests,
    Connections,
    Exits,
}

impl Role {
    /// The roles beside which the reader is measured. The others are compared with the first.
    const CASES: [Self; 8] = [
        Self::Burners,
        Self::Idle,
        Self::Snapshots,
        Self::Texts,
        Self::Walks,
        Self::Requests,
        Self::Connections,
        Self::Exits,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Idle => "nobody",
            Self::Burners => "cpu-burners",
            Self::Snapshots => "other-snapshots",
            Self::Texts => "other-texts",
            Self::Walks => "walks",
            Self::Requests => "small-requests",
            Self::Connections => "connections",
            Self::Exits => "exits",
        }
    }

    /// The next request of this attack.
    fn request(self, number: u64) -> Request {
        let any_age = u64::MAX >> 1;
        let mut request = Request {
            op: Op::Snapshot,
            groups: Fields::all().bits(),
            max_age_ns: any_age,
            generation: 0,
            holds: [0; wire::HOLDS],
            texts: Texts::empty(),
            // Different each time, so that no kept text is accepted.
            texts_max_age_ns: number,
            exits: false,
            exits_after: 0,
        };
        match self {
            Self::Texts => {
                request.texts = Texts::all();
                request.groups = Fields::TOP.bits();
            }
            Self::Walks => request.max_age_ns = 0,
            Self::Requests if number.is_multiple_of(2) => request.op = Op::Status,
            Self::Requests | Self::Connections => request.op = Op::Hello,
            Self::Exits => (request.exits, request.exits_after) = (true, number),
            _ => (),
        }
        request
    }
}

#[derive(Debug, Serialize)]
struct Head {
    processes: usize,
    attackers: usize,
    rounds: u32,
    looks: u32,
}

#[derive(Debug, Serialize)]
struct Hostile {
    case: &'static str,
    #[serde(serialize_with = "four_decimals")]
    p50_ms: f64,
    #[serde(serialize_with = "four_decimals")]
    p99_ms: f64,
    #[serde(serialize_with = "four_decimals")]
    max_ms: f64,
    /// The additional time, compared with processes that only use the CPU.
    #[serde(serialize_with = "four_decimals")]
    p99_more_ms: f64,
    /// CPU time of the service, in percent of one CPU.
    #[serde(serialize_with = "four_decimals")]
    service_cpu_percent: f64,
}

impl Row for Hostile {
    const COLUMNS: &'static [Column] = &[
        column("beside", 0),
        column("p50 ms", 0),
        column("p99 ms", 0),
        column("max ms", 0),
        column("p99 more ms", 0),
        column("service CPU %", 1),
    ];

    fn cells(&self) -> Vec<String> {
        let ms = |value: f64| format!("{value:.2}");
        vec![
            self.case.to_owned(),
            ms(self.p50_ms),
            ms(self.p99_ms),
            ms(self.max_ms),
            ms(self.p99_more_ms),
            format!("{:.0}", self.service_cpu_percent),
        ]
    }
}

/// Measurements of one case in all rounds.
#[derive(Default)]
struct Measured {
    /// Milliseconds of each snapshot.
    took: Vec<f64>,
    service_cpu: Duration,
    elapsed: Duration,
}

impl Measured {
    fn look(&mut self, role: Role, service: &Service, args: &Args) -> Result<(), Failure> {
        let attackers = (0..args.attackers)
            .map(|_| start(role, &service.socket, args.looks, ATTACKER))
            .collect::<Result<Vec<_>, _>>()?;
        // The attackers have connected by then.
        thread::sleep(CONNECTING);
        let (before, began) = (cpu_ns(service.pid())?, Instant::now());
        self.took.extend(look(&service.socket, args.looks)?);
        self.elapsed += began.elapsed();
        let used = cpu_ns(service.pid())?.saturating_sub(before);
        self.service_cpu += Duration::from_nanos(used);
        drop(attackers);
        Ok(())
    }

    /// `burners_p99_ms`: the value to compare with; `None` for that case itself.
    fn row(mut self, role: Role, burners_p99_ms: Option<f64>) -> Hostile {
        self.took.sort_by(f64::total_cmp);
        let at = |part: f64| self.took[((self.took.len() - 1) as f64 * part).round() as usize];
        let p99_ms = at(0.99);
        Hostile {
            case: role.name(),
            p50_ms: at(0.5),
            p99_ms,
            max_ms: at(1.0),
            p99_more_ms: p99_ms - burners_p99_ms.unwrap_or(p99_ms),
            service_cpu_percent: 100.0 * self.service_cpu.div_duration_f64(self.elapsed),
        }
    }
}

/// Measures, and prints the report.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let (Some(role), Some(socket)) = (args.role, &args.socket) {
        return play(role, socket, args.looks);
    }
    if !rustix::process::geteuid().is_root() {
        return Err("the attacker and the reader are other users: run this as root".into());
    }
    let missing = args.processes.saturating_sub(attach::processes()? + 1);
    let _idle = Idle::start_some(missing)?;
    let service = Service::start(&[])?;
    let mut measured = Role::CASES.map(|role| (role, Measured::default()));
    let count = measured.len();
    let progress = progress(u64::from(args.rounds) * count as u64, "cases");
    for round in 0..args.rounds as usize {
        for at in 0..count {
            let (role, case) = &mut measured[(at + round) % count];
            case.look(*role, &service, args)?;
            progress.inc(1);
        }
    }
    progress.finish_and_clear();
    let mut rows: Vec<Hostile> = Vec::new();
    for (role, case) in measured {
        let burners_p99_ms = rows.first().map(|first| first.p99_ms);
        rows.push(case.row(role, burners_p99_ms));
    }
    let head = Head {
        processes: attach::processes()?,
        attackers: args.attackers,
        rounds: args.rounds,
        looks: args.looks,
    };
    let mut report = Report::new("hostile", head, rows, Vec::new());
    report.note(format!(
        "{} processes of one user attack; another user looks at every process, each time by a walk of its own",
        args.attackers
    ));
    report.print("A look beside an attack on the service", args.json)?;
    Ok(())
}

/// Starts a process of a user.
fn start(role: Role, socket: &Path, looks: u32, uid: u32) -> Result<Ending, Failure> {
    let name = role.to_possible_value().ok_or("no such role")?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["hostile", "--role", name.get_name(), "--socket"])
        .arg(socket)
        .args(["--looks", &looks.to_string()])
        .uid(uid)
        .gid(uid)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    Ok(Ending::start(&mut command)?)
}

/// Runs a reader. Returns the milliseconds that each snapshot took.
fn look(socket: &Path, looks: u32) -> Result<Vec<f64>, Failure> {
    let mut reader = start(Role::Reader, socket, looks, READER)?;
    let out = reader.0.stdout.take().ok_or("no output")?;
    let mut took = Vec::new();
    for line in BufReader::new(out).lines() {
        took.push(line?.parse::<f64>()? / 1e3);
    }
    if took.len() != looks as usize {
        return Err(format!("the reader has looked {} times", took.len()).into());
    }
    Ok(took)
}

fn play(role: Role, socket: &Path, looks: u32) -> Result<(), Failure> {
    match role {
        Role::Reader => {
            let mut collector = Collector::builder()
                .fields(Fields::TOP)
                .source(Some(SourceKind::Service))
                .service_socket(Some(socket.to_owned()))
                .open()?;
            for _ in 0..looks {
                thread::sleep(APART);
                let began = Instant::now();
                collector.snapshot()?;
                println!("{}", began.elapsed().as_micros());
            }
            Ok(())
        }
        Role::Idle => loop {
            thread::park();
        },
        Role::Burners => loop {
            std::hint::spin_loop();
        },
        role => attack(role, socket),
    }
}

/// Sends a request on every connection, and repeats when all have been answered.
fn attack(role: Role, socket: &Path) -> Result<(), Failure> {
    raise_descriptors();
    let address = SocketAddrUnix::new(socket)?;
    let open = || -> Result<OwnedFd, Failure> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        connect(&socket, &address)?;
        Ok(socket)
    };
    let mut sockets = (0..CONNECTIONS)
        .map(|_| open())
        .collect::<Result<Vec<_>, _>>()?;
    let mut answer = vec![0; 1 << 18];
    let mut number = u64::from(std::process::id()) << 32;
    loop {
        for socket in &mut sockets {
            number += 1;
            if role == Role::Connections {
                *socket = open()?;
            }
            let request = wire::to_bytes(&role.request(number).to_words());
            // If one is disconnected, the attacker continues with the others.
            let _ = send(&*socket, &request, SendFlags::NOSIGNAL);
        }
        for socket in &sockets {
            let _ = recv(socket, &mut answer[..], RecvFlags::empty());
        }
    }
}

fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attack_asks_for_something_else_each_time() {
        for role in [Role::Snapshots, Role::Texts, Role::Walks, Role::Exits] {
            assert_ne!(role.request(1), role.request(2));
        }
        assert_eq!(Role::Requests.request(2).op, Op::Status);
        assert_eq!(Role::Connections.request(2).op, Op::Hello);
    }
}
