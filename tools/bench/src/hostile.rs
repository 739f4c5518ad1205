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
use serde_json::json;

use super::{
    command::{Ending, cpu_ns},
    idle::{Idle, processes},
    measure::{Common, Failure, in_turn, percentile, raise_open_files},
    report::{Column, Report, column},
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
    /// Take this many snapshots in each case of a round.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    looks: u32,
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
    #[value(name = "nobody")]
    Idle,
    #[value(name = "cpu-burners")]
    Burners,
    #[value(name = "other-snapshots")]
    Snapshots,
    #[value(name = "other-texts")]
    Texts,
    Walks,
    #[value(name = "small-requests")]
    Requests,
    Connections,
    Exits,
}

impl Role {
    /// Its name in the report, and for the program that plays it.
    fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

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

    /// The next request of this attack.
    fn request(self, number: u64) -> Request {
        let any_age = u64::MAX >> 1;
        let mut request = Request {
            groups: Fields::all().bits(),
            max_age_ns: any_age,
            // Different each time, so that no kept text is accepted.
            texts_max_age_ns: number,
            ..Request::new(Op::Snapshot)
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

const COLUMNS: [Column; 6] = [
    column("case", "beside", 0, 0),
    column("p50_ms", "p50 ms", 2, 0),
    column("p99_ms", "p99 ms", 2, 0),
    column("max_ms", "max ms", 2, 0),
    // The additional time, compared with processes that only use the CPU.
    column("p99_more_ms", "p99 more ms", 2, 0),
    // CPU time of the service, in percent of one CPU.
    column("service_cpu_percent", "service CPU %", 0, 1),
];

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
}

/// Measures, and prints the report.
pub fn run(args: &Args, common: Common) -> Result<(), Failure> {
    if let (Some(role), Some(socket)) = (args.role, &args.socket) {
        return play(role, socket, args.looks);
    }
    if !rustix::process::geteuid().is_root() {
        return Err("the attacker and the reader are other users: run this as root".into());
    }
    let rounds = common.rounds(3);
    let _idle = Idle::fill_to(args.processes)?;
    let service = Service::start(&[])?;
    let mut measured = Role::CASES.map(|_| Measured::default());
    in_turn(measured.len(), 0, rounds, |at, _| {
        measured[at].look(Role::CASES[at], &service, args)
    })?;
    let mut report = Report::new(
        "hostile",
        "A look beside an attack on the service",
        &COLUMNS,
    );
    // Of the first case, with which the others are compared.
    let mut burners_p99_ms = None;
    for (role, mut of) in Role::CASES.into_iter().zip(measured) {
        of.took.sort_by(f64::total_cmp);
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|part| percentile(&of.took, part));
        let more = p99 - *burners_p99_ms.get_or_insert(p99);
        let service_cpu_percent = 100.0 * of.service_cpu.div_duration_f64(of.elapsed);
        let numbers = [p50, p99, max, more, service_cpu_percent];
        report.row(
            [role.name().into()]
                .into_iter()
                .chain(numbers.map(Into::into)),
        );
    }
    report.head(json!({
        "processes": processes()?,
        "attackers": args.attackers,
        "rounds": rounds,
        "looks": args.looks,
    }));
    report.note(format!(
        "{} processes of one user attack; another user looks at every process, each time by a walk of its own",
        args.attackers
    ));
    Ok(report.print(common.json)?)
}

/// Starts a process of a user.
fn start(role: Role, socket: &Path, looks: u32, uid: u32) -> Result<Ending, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .args(["hostile", "--role", &role.name(), "--socket"])
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
    raise_open_files();
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
