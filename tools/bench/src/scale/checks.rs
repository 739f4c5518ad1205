//! What users run, beside many processes: it must work, be right, and is measured once or a few times.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use fastproc::source::service::SOCKET_VARIABLE;
use rustix::time::ClockId;
use serde::Deserialize;

use super::crowd::Crowd;
use crate::{
    command::{cpu_ns, cpu_of, fastproc},
    idle::NAME,
    measure::{Failure, clock, ms},
    report::{Cell, Spread},
    server::Server,
    service::Service,
    top,
};

/// Processes whose every value is compared with the kernel's files.
const SAMPLE: usize = 200;
/// Rows of `fastproc ps`.
const ROWS: usize = 20;

/// Runs all of it. Returns the values of the last columns.
pub fn check(crowd: &Crowd, rounds: u32) -> Result<[Cell; 9], Failure> {
    let ps = ps(crowd, rounds)?;
    let mut procps = Command::new("ps");
    let procps = ms(cpu_of(procps.args(["-eo", "pid,s,rss,time,comm"]))?);
    let (service_ms, service_mb) = service(crowd)?;
    let top = top::refresh()?;
    let (scrape_ms, serve_mb) = scrape(crowd)?;
    Ok([
        ps.into(),
        procps.into(),
        service_ms.into(),
        service_mb.into(),
        top.cpu_ms_per_refresh.into(),
        top.resident_mb.into(),
        scrape_ms.into(),
        serve_mb.into(),
        verify(crowd)?.into(),
    ])
}

/// `fastproc` without a service.
fn alone(arguments: &[&str]) -> Result<Command, Failure> {
    let mut command = Command::new(fastproc()?);
    command.args(arguments).env(SOCKET_VARIABLE, "");
    Ok(command)
}

fn output(mut command: Command) -> Result<String, Failure> {
    let output = command.stdin(Stdio::null()).output()?;
    let words: Vec<_> = command
        .get_args()
        .map(|word| word.to_string_lossy())
        .collect();
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(format!("fastproc {}: {}: {error}", words.join(" "), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The first rows, and all of them. Returns the CPU time for the first rows.
fn ps(crowd: &Crowd, rounds: u32) -> Result<Spread, Failure> {
    let top = ["ps", "--top", &ROWS.to_string(), "--format", "csv"];
    let rows = output(alone(&top)?)?.lines().count();
    // One is the heading.
    if rows != ROWS + 1 {
        return Err(format!("fastproc ps --top {ROWS} printed {rows} lines").into());
    }
    let all = output(alone(&["ps", "--fields", "pid", "--format", "csv"])?)?;
    let pids = all.lines().filter_map(|line| line.parse().ok());
    crowd.check(pids, "fastproc ps")?;
    let times = (0..rounds).map(|_| Ok(ms(cpu_of(&mut alone(&top)?)?)));
    Ok(Spread::of(times.collect::<Result<Vec<_>, Failure>>()?))
}

/// A snapshot by the service.
fn service(crowd: &Crowd) -> Result<(f64, f64), Failure> {
    let service = Service::start(&[])?;
    let mut reader = service.reader(Duration::ZERO)?;
    crowd.check_snapshot(&reader.snapshot()?)?;
    reader.snapshot()?;
    let cpu = || -> Result<Duration, Failure> {
        Ok(clock(ClockId::ThreadCPUTime) + Duration::from_nanos(cpu_ns(service.pid())?))
    };
    let before = cpu()?;
    for _ in 0..SNAPSHOTS {
        crowd.check_count(reader.snapshot()?.len(), "the service")?;
    }
    let took = ms(cpu()?.saturating_sub(before)) / f64::from(SNAPSHOTS);
    Ok((took, service.resident_mb()?))
}

/// Snapshots and scrapes after the first, of which the mean is taken.
const SNAPSHOTS: u32 = 3;

/// Scrapes. All idle processes are in one group, because they have one name.
fn scrape(crowd: &Crowd) -> Result<(f64, f64), Failure> {
    let mut server = Server::fastproc("", "")?;
    server.scrape(false)?;
    let name = NAME.to_str()?;
    let name = format!("namedprocess_namegroup_num_procs{{groupname=\"{name}\"}} ");
    let body = str::from_utf8(&server.body)?;
    let found = body.lines().find_map(|line| line.strip_prefix(&name));
    let expected = crowd.count();
    if found != Some(&expected.to_string()) {
        return Err(format!("the exporter shows {found:?} idle processes, of {expected}").into());
    }
    let before = server.cpu_ns()?;
    for _ in 0..SNAPSHOTS {
        server.scrape(false)?;
    }
    let took = Duration::from_nanos(server.cpu_ns()?.saturating_sub(before));
    Ok((
        ms(took) / f64::from(SNAPSHOTS),
        server.status("VmRSS:")? as f64 / 1e6,
    ))
}

/// The parts of the output of `fastproc verify` that are read here.
#[derive(Deserialize)]
struct Verified {
    compared: u64,
    wrong: u64,
    missing: u64,
}

/// Compares every value of some processes with the kernel's files. Returns how many.
fn verify(crowd: &Crowd) -> Result<u64, Failure> {
    let pids: Vec<_> = crowd.sample(SAMPLE).iter().map(u32::to_string).collect();
    let pids = pids.join(",");
    let verify = [
        "verify", "--json", "--rounds", "1", "--source", "bpf", "--pids", &pids,
    ];
    let text = output(alone(&verify)?)?;
    let found: Verified = serde_json::from_str(&text)?;
    if found.compared == 0 || found.wrong > 0 || found.missing > 0 {
        return Err(format!(
            "fastproc verify: {} of {} values are wrong, {} processes are missing",
            found.wrong, found.compared, found.missing
        )
        .into());
    }
    Ok(found.compared)
}
