//! cAdvisor beside `fastproc serve --cgroups`: both serve one tree of cgroups, and every series that both have is compared.
//! The program is built of cAdvisor's packages (tools/cadvisor).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read as _, Write as _},
    net::{TcpStream, UdpSocket},
    os::fd::AsRawFd as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{cgroups::value, proofs::FASTPROC, reporter::Reporter, service};

const CADVISOR: &str = "127.0.0.1:8080";
const OURS: &str = "127.0.0.1:9256";
const SERVE: [&str; 6] = [
    FASTPROC,
    "serve",
    "--cgroups",
    "--no-host",
    "--exits=false",
    "--listen=127.0.0.1:9256",
];
const STARTS: Duration = Duration::from_secs(240);
/// Series that may differ, as docs/cgroups.md says.
const DIFFERENT: [&str; 2] = [
    // What the kernel's log named since it started.
    "container_oom_events_total",
    // It reads a counter of version 1.
    "container_memory_kernel_usage",
];
/// Its messages that are reported.
const MESSAGES: usize = 8;
/// Cgroups for the comparison of costs, and scrapes of each.
const MANY: usize = 1_000;
const SCRAPES: u64 = 3;
/// What a machine that counts instructions executes in a microsecond.
const INSTRUCTIONS: u64 = 500;

/// Values by the metric and its labels.
type Series = BTreeMap<String, f64>;

/// A program in a cgroup of its own.
struct Peer {
    address: &'static str,
    cgroup: PathBuf,
    child: Child,
}

impl Peer {
    fn start(name: &str, address: &'static str, argv: &[&str]) -> io::Result<Self> {
        let cgroup = Path::new("/sys/fs/cgroup").join(name);
        fs::create_dir(&cgroup)?;
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]).stdin(Stdio::null());
        // It begins in the cgroup, and so do its children.
        let own = std::process::id().to_string();
        fs::write(cgroup.join("cgroup.procs"), &own)?;
        command.stdout(Stdio::null());
        let child = command.stderr(File::create(errors(name))?).spawn();
        fs::write("/sys/fs/cgroup/cgroup.procs", &own)?;
        let child = child?;
        let began = Instant::now();
        while let Err(error) = scrape(address) {
            if began.elapsed() > STARTS {
                return Err(error);
            }
            thread::sleep(Duration::from_millis(200));
        }
        Ok(Self {
            address,
            cgroup,
            child,
        })
    }

    fn scrape(&self) -> io::Result<String> {
        scrape(self.address)
    }

    /// Its CPU time so far.
    fn used_usec(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.cgroup.join("cpu.stat"))?;
        value(&text, "usage_usec").ok_or_else(|| io::Error::other("cpu.stat has no usage_usec"))
    }

    fn end(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

/// The file with the messages of a program.
fn errors(name: &str) -> String {
    format!("/tmp/{name}.errors")
}

/// Starts cAdvisor and fastproc. `more`: arguments of cAdvisor.
fn start(more: &[&str]) -> io::Result<[Peer; 2]> {
    raise_loopback()?;
    service::make_nobody()?;
    let argv = [&["/cadvisor", CADVISOR], more].concat();
    Ok([
        Peer::start("cadvisor", CADVISOR, &argv)?,
        Peer::start("fastproc", OURS, &SERVE)?,
    ])
}

/// Compares the series of the cgroups below this path. All of their processes are stopped.
pub fn compare(reporter: &mut Reporter, below: &str) -> io::Result<()> {
    let [cadvisor, fastproc] = start(&["all"])?;
    let [before, ours, after] = [&cadvisor, &fastproc, &cadvisor].map(Peer::scrape);
    let [before, ours, after] = [before?, ours?, after?];
    cadvisor.end()?;
    fastproc.end()?;
    let messages = fs::read_to_string(errors("cadvisor"))?;
    let first: Vec<_> = messages.lines().take(MESSAGES).collect();
    reporter.fact("messages of cadvisor", first.join("; "))?;
    let [their_types, our_types] = [&before, &ours].map(|text| types(text));
    let types_differ: Vec<_> = our_types
        .iter()
        .filter(|(name, kind)| their_types.get(*name).is_some_and(|other| other != *kind))
        .map(|(name, kind)| format!("{name} is a {kind}"))
        .collect();
    let [theirs, ours, after] = [before, ours, after].map(|text| series(&text, below));
    let name = |series: &str| series.split('{').next().unwrap_or_default().to_owned();
    let (mut equal, mut not_zero) = (0, 0);
    let mut different = BTreeMap::new();
    let [mut only_theirs, mut only_ours] = [BTreeSet::new(), BTreeSet::new()];
    for (series, &value) in &theirs {
        let Some(&own) = ours.get(series) else {
            only_theirs.insert(name(series));
            continue;
        };
        let later = after.get(series).copied().unwrap_or(value);
        // Times of theirs have microseconds.
        let is_equal = |other: f64| (own - other).abs() <= other.abs() * 1e-9 + 1.1e-6;
        if is_equal(value) || is_equal(later) {
            equal += 1;
            not_zero += usize::from(value != 0.0);
        } else {
            different.insert(name(series), format!("{series}: {own} instead of {value}"));
        }
    }
    only_ours.extend(
        ours.keys()
            .filter(|of| !theirs.contains_key(*of))
            .map(|of| name(of)),
    );
    reporter.fact("series that both have, with equal values", equal)?;
    reporter.fact("of these above zero", not_zero)?;
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
    reporter.fact(
        "metrics with series that only cAdvisor has",
        list(&only_theirs),
    )?;
    reporter.fact(
        "metrics with series that only fastproc has",
        list(&only_ours),
    )?;
    for (name, example) in &different {
        reporter.fact(name, example)?;
    }
    let mut wrong: Vec<_> = different
        .iter()
        .filter(|(name, _)| !DIFFERENT.contains(&name.as_str()))
        .map(|(_, example)| example.clone())
        .collect();
    wrong.extend(types_differ);
    reporter.check(
        "cadvisor",
        wrong.is_empty() && not_zero > 50,
        wrong.join("; "),
    )
}

/// Counts what a scrape takes of both, with many cgroups.
pub fn cost(reporter: &mut Reporter) -> io::Result<()> {
    let tree = Path::new("/sys/fs/cgroup/many");
    fs::create_dir(tree)?;
    fs::write(
        tree.join("cgroup.subtree_control"),
        "+cpu +memory +io +pids",
    )?;
    for number in 0..MANY {
        fs::create_dir(tree.join(number.to_string()))?;
    }
    // A guest that reports nothing for long is given up.
    reporter.fact("cgroups", MANY)?;
    let peers = start(&[])?;
    reporter.fact("programs", peers.len())?;
    let mut instructions = [0; 2];
    for (peer, instructions) in peers.iter().zip(&mut instructions) {
        let before = peer.used_usec()?;
        let mut bytes = 0;
        for _ in 0..SCRAPES {
            bytes = peer.scrape()?.len();
            reporter.fact("bytes of a scrape", bytes)?;
        }
        *instructions = (peer.used_usec()? - before) * INSTRUCTIONS / SCRAPES;
        reporter.fact(
            &format!("a scrape of {} with {MANY} cgroups", peer.cgroup.display()),
            format!("{instructions} instructions, {bytes} bytes"),
        )?;
    }
    peers.into_iter().try_for_each(Peer::end)?;
    let times = instructions[0] as f64 / instructions[1].max(1) as f64;
    reporter.fact(
        "times as many instructions of cadvisor",
        format!("{times:.1}"),
    )
}

/// The types of metrics by their names.
fn types(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines();
    lines
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect()
}

fn scrape(address: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        _ => Err(io::Error::other(format!("{address}: {head}"))),
    }
}

/// The series whose `id` is below this path, without empty labels.
fn series(text: &str, below: &str) -> Series {
    let parse = |line: &str| {
        let (name, rest) = line.split_once('{')?;
        let (labels, value) = rest.split_once("} ")?;
        // No value of these labels has a comma.
        let mut labels: Vec<_> = labels
            .split(',')
            .filter(|of| !of.ends_with("=\"\""))
            .collect();
        labels.sort_unstable();
        let id = labels
            .iter()
            .find_map(|label| label.strip_prefix("id=\""))?;
        if !id.starts_with(below) {
            return None;
        }
        let value = value.split(' ').next()?.parse().ok()?;
        Some((format!("{name}{{{}}}", labels.join(",")), value))
    };
    text.lines().filter_map(parse).collect()
}

fn raise_loopback() -> io::Result<()> {
    // SAFETY: all zeros are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    let any = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: the kernel only reads the request, and the socket is open until then.
    let failed = unsafe {
        libc::ioctl(
            any.as_raw_fd(),
            libc::SIOCSIFFLAGS as libc::Ioctl,
            &raw const request,
        )
    };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
