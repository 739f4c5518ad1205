//! Every field of `fastproc ps` against the line or column of `/proc` that it is named after, for a testbed of odd processes.

mod common;

use std::{
    collections::{BTreeMap, HashMap},
    fs,
};

use common::{Differences, pids_of_testbed, testbed};
use fastproc_testbed::{Brackets, TestProcess, gate};
use serde_json::Value;

/// Fields, and the number of the field of `/proc/PID/stat` that they show.
const OF_STAT: &[(&str, usize)] = &[
    ("pid", 1),
    ("ppid", 4),
    ("pgrp", 5),
    ("session", 6),
    ("tty_nr", 7),
    ("tpgid", 8),
    ("flags", 9),
    ("minflt", 10),
    ("cminflt", 11),
    ("majflt", 12),
    ("cmajflt", 13),
    ("priority", 18),
    ("nice", 19),
    ("num_threads", 20),
    ("vsize_bytes", 23),
    ("rsslim_bytes", 25),
    ("startcode", 26),
    ("endcode", 27),
    ("startstack", 28),
    ("kstkesp", 29),
    ("kstkeip", 30),
    ("exit_signal", 38),
    ("processor", 39),
    ("rt_priority", 40),
    ("policy", 41),
    ("start_data", 45),
    ("end_data", 46),
    ("start_brk", 47),
    ("arg_start", 48),
    ("arg_end", 49),
    ("env_start", 50),
    ("env_end", 51),
    ("exit_code", 52),
];

/// The same for times, which are ticks there.
const TIMES_OF_STAT: &[(&str, usize)] = &[
    ("utime_ns", 14),
    ("stime_ns", 15),
    ("cutime_ns", 16),
    ("cstime_ns", 17),
    ("starttime_ns", 22),
    ("delayacct_blkio_ns", 42),
    ("guest_time_ns", 43),
    ("cguest_time_ns", 44),
];

/// Fields, and the word of the line of `/proc/PID/status` that they show.
const OF_STATUS: &[(&str, &str, usize)] = &[
    ("umask", "Umask", 0),
    ("pid", "Tgid", 0),
    ("ngid", "Ngid", 0),
    ("ppid", "PPid", 0),
    ("tracer_pid", "TracerPid", 0),
    ("ruid", "Uid", 0),
    ("euid", "Uid", 1),
    ("suid", "Uid", 2),
    ("fsuid", "Uid", 3),
    ("rgid", "Gid", 0),
    ("egid", "Gid", 1),
    ("sgid", "Gid", 2),
    ("fsgid", "Gid", 3),
    ("fdsize", "FDSize", 0),
    ("num_threads", "Threads", 0),
    ("sigq_limit", "SigQ", 1),
    ("sigpnd", "SigPnd", 0),
    ("shdpnd", "ShdPnd", 0),
    ("sigblk", "SigBlk", 0),
    ("sigign", "SigIgn", 0),
    ("sigcgt", "SigCgt", 0),
    ("capinh", "CapInh", 0),
    ("capprm", "CapPrm", 0),
    ("capeff", "CapEff", 0),
    ("capbnd", "CapBnd", 0),
    ("capamb", "CapAmb", 0),
    ("seccomp", "Seccomp", 0),
    ("seccomp_filters", "Seccomp_filters", 0),
    ("cpus_allowed_list", "Cpus_allowed_list", 0),
    ("mems_allowed_list", "Mems_allowed_list", 0),
    ("nvcsw", "voluntary_ctxt_switches", 0),
    ("nivcsw", "nonvoluntary_ctxt_switches", 0),
];

/// Sizes, which are KiB there.
const SIZES_OF_STATUS: &[(&str, &str)] = &[
    ("vmpeak_bytes", "VmPeak"),
    ("vsize_bytes", "VmSize"),
    ("vmlck_bytes", "VmLck"),
    ("vmpin_bytes", "VmPin"),
    ("vmhwm_bytes", "VmHWM"),
    ("rss_bytes", "VmRSS"),
    ("rssanon_bytes", "RssAnon"),
    ("rssfile_bytes", "RssFile"),
    ("rssshmem_bytes", "RssShmem"),
    ("vmdata_bytes", "VmData"),
    ("vmstk_bytes", "VmStk"),
    ("vmexe_bytes", "VmExe"),
    ("vmlib_bytes", "VmLib"),
    ("vmpte_bytes", "VmPTE"),
    ("vmswap_bytes", "VmSwap"),
    ("hugetlbpages_bytes", "HugetlbPages"),
];

/// Lists of numbers.
const LISTS_OF_STATUS: &[(&str, &str)] = &[
    ("groups", "Groups"),
    ("nspid", "NSpid"),
    ("nspgid", "NSpgid"),
    ("nssid", "NSsid"),
];

const OF_IO: &[(&str, &str)] = &[
    ("rchar_bytes", "rchar"),
    ("wchar_bytes", "wchar"),
    ("syscr", "syscr"),
    ("syscw", "syscw"),
    ("read_bytes", "read_bytes"),
    ("write_bytes", "write_bytes"),
    ("cancelled_write_bytes", "cancelled_write_bytes"),
];

/// What the kernel says of a process, and of which nothing moved while it was asked.
struct Kernel {
    stat: Vec<String>,
    status: HashMap<String, Vec<String>>,
    io: HashMap<String, Vec<String>>,
    comm: Vec<u8>,
    cmdline: Vec<u8>,
    wchan: Option<String>,
    exe: Option<String>,
    cgroup: Option<String>,
}

impl Kernel {
    fn read(pid: u32) -> Option<Self> {
        let read = |name| fs::read(format!("/proc/{pid}/{name}"));
        let stat = read("stat").ok()?;
        let end = stat.iter().rposition(|&byte| byte == b')')?;
        let (before, after) = stat.split_at(end + 1);
        let first = String::from_utf8_lossy(before)
            .split(' ')
            .next()?
            .to_owned();
        let after = String::from_utf8_lossy(after);
        let rest = after.split_whitespace().map(str::to_owned);
        let lines = |text: Vec<u8>| {
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines = text.lines().filter_map(|line| line.split_once(':'));
            lines
                .map(|(name, words)| {
                    let words = words
                        .split(['\t', ' ', '/'])
                        .filter(|word| !word.is_empty());
                    (name.to_owned(), words.map(str::to_owned).collect())
                })
                .collect()
        };
        let mut comm = read("comm").ok()?;
        comm.pop();
        let cgroup = String::from_utf8_lossy(&read("cgroup").ok()?).into_owned();
        Some(Self {
            stat: [first, "(comm)".to_owned()]
                .into_iter()
                .chain(rest)
                .collect(),
            status: lines(read("status").ok()?),
            io: lines(read("io").unwrap_or_default()),
            comm,
            cmdline: read("cmdline").ok()?,
            wchan: fs::read_to_string(format!("/proc/{pid}/wchan"))
                .ok()
                .map(|function| {
                    if function == "0" {
                        "-".into()
                    } else {
                        function
                    }
                }),
            exe: fs::read_link(format!("/proc/{pid}/exe"))
                .ok()
                .map(|path| path.to_string_lossy().into_owned()),
            cgroup: cgroup
                .lines()
                .find_map(|line| line.strip_prefix("0::"))
                .map(str::to_owned),
        })
    }
}

/// The text of a value as the kernel would print it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(truth) => u8::from(*truth).to_string(),
        other => other.to_string(),
    }
}

/// What is shown, and what the kernel says, by field and file.
type Values = BTreeMap<String, (String, String)>;

fn values(row: &Value, kernel: &Kernel) -> Values {
    let mut values = Values::new();
    let mut compare = |name: &str, shown: String, expected: String| {
        // Some fields are in two files.
        let name = format!("{name} ({})", values.len());
        values.insert(name, (shown, expected));
    };
    let number = |name: &str| row[name].as_u64();
    let is_root = rustix::process::geteuid().is_root();
    for &(name, field) in OF_STAT {
        let expected = kernel.stat[field - 1].clone();
        // To a reader without access the kernel shows what it hides as 0 or 1; that is not a value.
        let hidden = !is_root && matches!(expected.as_str(), "0" | "1");
        if !(hidden && row[name].is_null()) {
            compare(name, shown(&row[name]), expected);
        }
    }
    for &(name, field) in TIMES_OF_STAT {
        let ticks = number(name).map(|nanoseconds| (nanoseconds / 10_000_000).to_string());
        compare(
            name,
            ticks.unwrap_or_default(),
            kernel.stat[field - 1].clone(),
        );
    }
    compare("state", shown(&row["state"]), kernel.stat[2].clone());
    let word = |line: &str, word: usize| {
        kernel
            .status
            .get(line)
            .and_then(|words| words.get(word))
            .cloned()
    };
    for &(name, line, at) in OF_STATUS {
        if let Some(word) = word(line, at) {
            compare(name, shown(&row[name]), word);
        }
    }
    compare(
        "nonewprivs",
        shown(&row["nonewprivs"]),
        word("NoNewPrivs", 0).unwrap_or_default(),
    );
    for &(name, line) in SIZES_OF_STATUS {
        if let Some(size) = word(line, 0) {
            let kibibytes = number(name).map(|bytes| (bytes / 1024).to_string());
            compare(name, kibibytes.unwrap_or_default(), size);
        }
    }
    for &(name, line) in LISTS_OF_STATUS {
        let list = row[name]
            .as_array()
            .map(|list| list.iter().map(shown).collect::<Vec<_>>());
        compare(
            name,
            format!("{:?}", list.unwrap_or_default()),
            format!("{:?}", kernel.status[line]),
        );
    }
    for &(name, line) in OF_IO {
        if let Some(words) = kernel.io.get(line) {
            compare(name, shown(&row[name]), words[0].clone());
        }
    }
    compare(
        "comm",
        common::bytes(&row["comm"]).escape_ascii().to_string(),
        kernel.comm.escape_ascii().to_string(),
    );
    let arguments = row["cmdline"].as_array().expect("arguments");
    let arguments: Vec<_> = arguments.iter().map(common::bytes).collect();
    let joined = arguments.join(&0).escape_ascii().to_string();
    let expected = kernel
        .cmdline
        .strip_suffix(b"\0")
        .unwrap_or(&kernel.cmdline);
    compare("cmdline", joined, expected.escape_ascii().to_string());
    compare(
        "wchan",
        shown(&row["wchan"]),
        kernel.wchan.clone().unwrap_or("null".into()),
    );
    compare(
        "exe",
        shown(&row["exe"]),
        kernel.exe.clone().unwrap_or("null".into()),
    );
    compare(
        "cgroup",
        shown(&row["cgroup"]),
        kernel.cgroup.clone().unwrap_or("null".into()),
    );
    values
}

fn compare_all(source: &str) {
    let keys = [OF_STAT, TIMES_OF_STAT]
        .concat()
        .into_iter()
        .map(|(name, _)| name);
    let keys = keys
        .chain(OF_STATUS.iter().map(|&(name, ..)| name))
        .chain(
            [SIZES_OF_STATUS, LISTS_OF_STATUS, OF_IO]
                .concat()
                .into_iter()
                .map(|(name, _)| name),
        )
        .chain([
            "state",
            "comm",
            "nonewprivs",
            "cmdline",
            "exe",
            "cgroup",
            "wchan",
        ]);
    let columns = keys.collect::<Vec<_>>().join(",");
    // The times of a process that runs never stand still.
    let still = |process: &&TestProcess| process.label != "running";
    let processes: Vec<_> = testbed().processes().iter().filter(still).collect();
    let kernel = || -> Vec<Kernel> {
        let read = processes.iter().map(|process| Kernel::read(process.pid));
        read.map(|kernel| kernel.expect("it lives as long as the testbed"))
            .collect()
    };
    let mut brackets = Brackets::new();
    let mut differences = Differences::default();
    // One that looks once, and one that looks again and again.
    let once = ["--fields", &columns, "--source", source];
    let count = (Differences::LOOKS - 1).to_string();
    let pids = pids_of_testbed();
    let often = ["--interval", "0.02", "--count", &count, "-p", &pids];
    for arguments in [&once[..], &[&once[..], &often].concat()] {
        let before = kernel();
        let rows = common::rows(arguments);
        let after = kernel();
        let mut looks: HashMap<u64, Vec<Value>> = HashMap::new();
        for row in rows {
            let pid = row["pid"].as_u64().expect("a pid");
            looks.entry(pid).or_default().push(row);
        }
        let expected = if arguments.len() == once.len() {
            1
        } else {
            Differences::LOOKS - 1
        };
        for (process, (before, after)) in processes.iter().zip(before.iter().zip(&after)) {
            let label = process.label;
            let looks = looks.remove(&process.pid.into()).unwrap_or_default();
            assert_eq!(looks.len(), expected, "{label} is not in each look");
            for row in &looks {
                let [before, after] = [before, after].map(|kernel| values(row, kernel));
                for (name, (shown, kernel)) in before {
                    let same = after.get(&name).is_some_and(|after| after.1 == kernel);
                    brackets.count(same);
                    if same && shown != kernel {
                        let seen = format!("{shown:?} instead of {kernel:?}");
                        differences.add(format!("{label}: {name}"), seen);
                    }
                }
            }
        }
    }
    differences.finish();
    assert!(brackets.judged() > 10_000, "few values were compared");
    brackets.finish(80);
}

#[test]
fn every_field_is_what_the_kernel_says() {
    gate::ran();
    compare_all("auto");
}

#[test]
fn so_it_is_from_proc() {
    gate::ran();
    compare_all("procfs");
}
