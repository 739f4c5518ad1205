//! What `fastproc cgroups` shows only if it is asked for: huge pages, and CPU time by CPU.

use std::{fs, io, path::Path, process::Command, time::Instant};

use serde_json::Value;

use crate::{cgroups::has_bpf, memory, proofs::FASTPROC, reporter::Reporter};

const HUGE: &str = "/sys/fs/cgroup/huge";
/// The pages of the cgroup, and its limits.
const USED: u64 = 2;
const LIMIT: u64 = 3;
const FIELDS: &str = "path,hugetlb,hugetlb_reserved,hugetlb_failures,hugetlb_sizes,hugetlb_by_size,hugetlb_limits,\
                      hugetlb_reserved_by_size,hugetlb_reserved_limits,hugetlb_failures_by_size";

/// Compares both.
pub fn compare(reporter: &mut Reporter) -> io::Result<()> {
    cpu_times(reporter)?;
    let controllers = fs::read_to_string("/sys/fs/cgroup/cgroup.controllers")?;
    if controllers
        .split_ascii_whitespace()
        .any(|name| name == "hugetlb")
    {
        huge_pages(reporter)
    } else {
        reporter.fact("huge pages of cgroups", "not of this kernel")
    }
}

/// The rows of `fastproc cgroups` by this source.
fn rows(reporter: &mut Reporter, source: &str, fields: &str) -> io::Result<Vec<Value>> {
    let argv = [
        FASTPROC, "cgroups", "--json", "--source", source, "--fields", fields,
    ];
    let started = Instant::now();
    let output = Command::new(argv[0]).args(&argv[1..]).output();
    let shown = output.as_ref().map(|output| output.stdout.clone());
    let shown = shown.unwrap_or_default();
    reporter.command(&format!("cgroups {source}"), &argv, started, output)?;
    let mut shown: Value = serde_json::from_slice(&shown)?;
    Ok(shown["cgroups"]
        .as_array_mut()
        .map(std::mem::take)
        .unwrap_or_default())
}

fn find<'v>(rows: &'v [Value], path: &str) -> Option<&'v Value> {
    rows.iter().find(|row| row["path"] == path)
}

/// The times of all CPUs together are the time of a cgroup whose processes are stopped.
fn cpu_times(reporter: &mut Reporter) -> io::Result<()> {
    const FIELDS: &str = "path,cpu_time,cpu_times";
    let by_files = rows(reporter, "files", FIELDS)?;
    let is_unknown = by_files.iter().all(|row| row["cpu_times_ns"].is_null());
    reporter.check("no CPU times by the files", is_unknown, String::new())?;
    if !has_bpf() {
        return Ok(());
    }
    let rows = rows(reporter, "bpf", FIELDS)?;
    let (mut compared, mut above_zero, mut wrong) = (0, 0, Vec::new());
    for row in rows.iter().filter(|row| {
        row["path"]
            .as_str()
            .is_some_and(|path| path.starts_with("/tree/"))
    }) {
        let times = row["cpu_times_ns"].as_array().into_iter().flatten();
        let times: Option<Vec<_>> = times.map(Value::as_u64).collect();
        let times = times.unwrap_or_default();
        let sum: u64 = times.iter().sum();
        compared += 1;
        above_zero += times.iter().filter(|&&time| time > 0).count();
        if times.is_empty() || Some(sum) != row["cpu_time_ns"].as_u64() {
            wrong.push(row.to_string());
        }
    }
    reporter.fact("CPU times of CPUs above zero", above_zero)?;
    let enough = compared > 5 && above_zero > 5;
    reporter.check(
        "CPU times of all CPUs",
        enough && wrong.is_empty(),
        wrong.join("; "),
    )
}

/// A cgroup with huge pages, and with a limit that one more would exceed. This process makes them, and leaves.
fn huge_pages(reporter: &mut Reporter) -> io::Result<()> {
    let size = memory::huge_page_size()? as u64;
    let name = match size >> 20 {
        0 => format!("{}KB", size >> 10),
        megabytes => format!("{megabytes}MB"),
    };
    let file = |what: &str| Path::new(HUGE).join(format!("hugetlb.{name}.{what}"));
    let own = std::process::id().to_string();
    fs::write("/proc/sys/vm/nr_hugepages", "8")?;
    fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+hugetlb")?;
    fs::create_dir(HUGE)?;
    fs::write(file("rsvd.max"), (LIMIT * size).to_string())?;
    fs::write(Path::new(HUGE).join("cgroup.procs"), &own)?;
    let made = memory::map_huge(USED as usize);
    let refused = memory::map_huge(USED as usize);
    fs::write("/sys/fs/cgroup/cgroup.procs", &own)?;
    made?;
    let events = fs::read_to_string(file("events"))?;
    let detail = format!("{refused:?}, {events:?}");
    reporter.check(
        "a limit of huge pages",
        refused.is_err() && events != "max 0\n",
        detail,
    )?;
    for source in if has_bpf() {
        &["bpf", "files"][..]
    } else {
        &["files"]
    } {
        let rows = rows(reporter, source, FIELDS)?;
        let wrong = differences(&rows, size, &events);
        reporter.check(&format!("huge pages by {source}"), wrong.is_empty(), wrong)?;
    }
    // Not reported as a command: its result is not that of verify without --cgroups.
    let verify = ["verify", "--cgroups", "--json", "--rounds", "1"];
    let output = Command::new(FASTPROC).args(verify).output()?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let files = report["files"].as_array().into_iter().flatten();
    let files = files.filter(|file| {
        file["file"]
            .as_str()
            .is_some_and(|name| name.starts_with("hugetlb."))
    });
    let compared: u64 = files.filter_map(|file| file["compared"].as_u64()).sum();
    let is_right = compared >= 5 && output.status.success();
    reporter.check("verified huge pages", is_right, compared.to_string())
}

/// What is not as it was made. The smallest size comes first, or the default one; the others have no pages.
fn differences(rows: &[Value], size: u64, events: &str) -> String {
    let Some(row) = find(rows, "/huge") else {
        return "it is missing".into();
    };
    let sizes = row["hugetlb_sizes_bytes"].as_array().into_iter().flatten();
    let sizes: Vec<_> = sizes.filter_map(Value::as_u64).collect();
    let Some(place) = sizes.iter().position(|&one| one == size) else {
        return format!("{sizes:?} lacks {size}");
    };
    let failures = events
        .trim()
        .strip_prefix("max ")
        .and_then(|count| count.parse::<u64>().ok());
    let mut wrong = Vec::new();
    for (column, by_size, expected) in [
        (
            Some("hugetlb_bytes"),
            "hugetlb_by_size_bytes",
            Some(USED * size),
        ),
        (
            Some("hugetlb_reserved_bytes"),
            "hugetlb_reserved_by_size_bytes",
            Some(USED * size),
        ),
        (
            Some("hugetlb_failures"),
            "hugetlb_failures_by_size",
            failures,
        ),
        (None, "hugetlb_limits_bytes", None),
        (None, "hugetlb_reserved_limits_bytes", Some(LIMIT * size)),
    ] {
        let sum = column.is_none_or(|column| row[column].as_u64() == expected);
        let of_size = &row[by_size][place];
        if !sum
            || of_size.as_u64() != expected
            || row[by_size].as_array().map(Vec::len) != Some(sizes.len())
        {
            wrong.push(format!("{by_size}: {row}, not {expected:?}"));
        }
    }
    wrong.join("; ")
}
