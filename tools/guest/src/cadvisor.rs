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

const SERVE: [&str; 5] = [FASTPROC, "serve", "--cgroups", "--no-host", "--exits=false"];
const STARTS: Duration = Duration::from_secs(600);
/// How often a program is asked whether it serves, until that is reported: a guest that reports nothing for long is given up.
const ASKED: u32 = 20;
/// Series that may differ, as docs/cgroups.md says.
const DIFFERENT: [&str; 2] = [
    // What the kernel's log named since it started.
    "container_oom_events_total",
    // It reads a counter of version 1.
    "container_memory_kernel_usage",
];
/// Its messages that are reported.
const MESSAGES: usize = 8;
/// Cgroups for the comparison of costs: two numbers show what each of them adds.
const SIZES: [usize; 2] = [300, 1_000];
/// Scrapes of cAdvisor and of fastproc. The first scrape of all answers that it serves, and does not count.
const SCRAPES: [u64; 2] = [1, 3];
/// How many times fewer instructions a scrape takes at least. With 300 cgroups 355 and 500 were measured.
const TIMES: f64 = 300.0;
/// What a machine that counts instructions executes in a microsecond.
const INSTRUCTIONS: u64 = 500;

/// Values by the metric and its labels.
type Series = BTreeMap<String, f64>;

/// A program in a cgroup of its own.
struct Peer {
    address: String,
    cgroup: PathBuf,
    child: Child,
}

impl Peer {
    /// Starts it, and waits until it serves.
    fn start(
        reporter: &mut Reporter,
        name: &str,
        address: String,
        argv: &[&str],
    ) -> io::Result<Self> {
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
        let mut asked = 0;
        while let Err(error) = scrape(&address) {
            if began.elapsed() > STARTS {
                return Err(error);
            }
            asked += 1;
            if asked % ASKED == 0 {
                reporter.fact("seconds that it has not served", began.elapsed().as_secs())?;
            }
            thread::sleep(Duration::from_millis(200));
        }
        reporter.fact(
            &format!("seconds until {name} served"),
            began.elapsed().as_secs(),
        )?;
        Ok(Self {
            address,
            cgroup,
            child,
        })
    }

    fn scrape(&self) -> io::Result<String> {
        scrape(&self.address)
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

/// Starts cAdvisor and fastproc. `more`: arguments of cAdvisor. `number`: that of this start.
fn start(reporter: &mut Reporter, number: usize, more: &[&str]) -> io::Result<[Peer; 2]> {
    raise_loopback()?;
    service::make_nobody()?;
    // Those that were started before have other ports.
    let [theirs, ours] = [8080, 9256].map(|port| format!("127.0.0.1:{}", port + number));
    let listen = format!("--listen={ours}");
    let cadvisor = [&["/cadvisor", &theirs], more].concat();
    let fastproc = [&SERVE[..], &[&listen]].concat();
    let [first, second] = ["cadvisor", "fastproc"].map(|name| format!("{name}{number}"));
    Ok([
        Peer::start(reporter, &first, theirs.clone(), &cadvisor)?,
        Peer::start(reporter, &second, ours.clone(), &fastproc)?,
    ])
}

/// Compares the series of the cgroups below this path. All of their processes are stopped.
pub fn compare(reporter: &mut Reporter, below: &str) -> io::Result<()> {
    let [cadvisor, fastproc] = start(reporter, 0, &["all"])?;
    let [before, ours, after] = [&cadvisor, &fastproc, &cadvisor].map(Peer::scrape);
    let [before, ours, after] = [before?, ours?, after?];
    cadvisor.end()?;
    fastproc.end()?;
    let messages = fs::read_to_string(errors("cadvisor0"))?;
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
    let mut made = 0;
    for (number, size) in SIZES.into_iter().enumerate() {
        for name in made..size {
            fs::create_dir(tree.join(name.to_string()))?;
        }
        made = size;
        reporter.fact("cgroups", size)?;
        let peers = start(reporter, number, &[])?;
        let mut costs = [0; 2];
        for ((peer, cost), scrapes) in peers.iter().zip(&mut costs).zip(SCRAPES) {
            let before = peer.used_usec()?;
            let mut bytes = 0;
            for _ in 0..scrapes {
                bytes = peer.scrape()?.len();
            }
            *cost = (peer.used_usec()? - before) * INSTRUCTIONS / scrapes;
            reporter.fact(
                &format!("a scrape of {} with {size} cgroups", peer.cgroup.display()),
                format!("{cost} instructions, {bytes} bytes"),
            )?;
        }
        peers.into_iter().try_for_each(Peer::end)?;
        let times = costs[0] as f64 / costs[1].max(1) as f64;
        reporter.check(
            &format!("a scrape of {size} cgroups"),
            times >= TIMES,
            format!("{times:.1} times fewer instructions than cadvisor; {TIMES} are expected"),
        )?;
    }
    Ok(())
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
