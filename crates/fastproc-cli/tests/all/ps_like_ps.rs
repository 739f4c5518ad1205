//! What `fastproc ps` has in common with ps(1): its options, and every field that both have, for unusual processes.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use crate::common::{Differences, fastproc, output, rows, run};
use fastproc_testbed::{Brackets, Options, Testbed, gate};

/// The form in which ps(1) writes a value of ours.
#[derive(Clone, Copy, Debug)]
enum As {
    /// As in a table.
    Table,
    /// KiB.
    Kibibytes,
    /// KiB that may change with each process that shares the memory, including the reading one.
    Shared,
    /// Whole seconds.
    Seconds,
    /// `Sun Mar  1 09:30:00 2026`
    Date,
}

/// Fields that both have under the same name.
const FIELDS: &[(As, &str)] = &[
    (
        As::Table,
        "ppid pgid pgrp sess sid session tpgid tname tt tty s state stat comm ucmd ucomm ni nice rtprio policy cls class pri \
         priority nlwp thcount euid uid ruid suid svuid fsuid fuid egid gid rgid sgid svgid fsgid fgid user euser uname ruser \
         group egroup rgroup start wchan cgroupns ipcns mntns netns pidns timens userns utsns sz oom oomadj unit slice \
         label f flag c blocked caught ignored pending sigcatch sigignore sigmask min_flt maj_flt pagein",
    ),
    (As::Kibibytes, "vsz vsize rss rssize rsz size"),
    (As::Shared, "pss uss"),
    (As::Seconds, "times cputimes"),
    (As::Date, "lstart"),
];

/// The values of ps(1) by pid, without headings.
fn of_ps(field: &str, pids: &str) -> BTreeMap<u32, String> {
    let columns = ["-o", "pid=", "-o", &format!("{field}:300=")].map(String::from);
    let output = Command::new("ps")
        .args(columns)
        .args(["-p", pids])
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "Asia/Kathmandu")
        .output()
        .expect("ps(1) is there");
    let text = String::from_utf8(output.stdout).expect("text");
    by_pid(&text)
}

/// The columns of this version of ps(1).
fn known_to_ps() -> BTreeSet<String> {
    let output = Command::new("ps").arg("L").output();
    let text = String::from_utf8(output.expect("ps(1) is there").stdout).expect("text");
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

fn by_pid(text: &str) -> BTreeMap<u32, String> {
    let line = |line: &str| {
        let line = line.trim();
        let (pid, value) = line.split_once(' ').unwrap_or((line, ""));
        (pid.parse().expect("a pid"), value.trim().to_owned())
    };
    text.lines().map(line).collect()
}

/// Our values in the same form.
fn ours(form: As, field: &str, pids: &str) -> BTreeMap<u32, String> {
    let columns = format!("pid,{field}");
    // Other tests compare BPF with it, and loading programs takes longer.
    let source = ["--source", "procfs"];
    let table = [
        &[
            "ps",
            "--quiet",
            "--no-headers",
            "-p",
            pids,
            "--fields",
            &columns,
        ][..],
        &source,
    ]
    .concat();
    match form {
        As::Table | As::Date => {
            let output = fastproc(&table)
                .env("TZ", "Asia/Kathmandu")
                .output()
                .expect("the program starts");
            let values = by_pid(&String::from_utf8(output.stdout).expect("text"));
            let date = |value: String| {
                if matches!(form, As::Date) {
                    as_ctime(&value)
                } else {
                    value
                }
            };
            values
                .into_iter()
                .map(|(pid, value)| (pid, date(value)))
                .collect()
        }
        As::Kibibytes | As::Shared | As::Seconds => {
            let divisor = if matches!(form, As::Seconds) {
                1_000_000_000
            } else {
                1024
            };
            rows(&[&["-p", pids, "--fields", &columns][..], &source].concat())
                .into_iter()
                .map(|row| {
                    let row = row.as_object().expect("a row");
                    let value = row
                        .iter()
                        .find(|(key, _)| *key != "pid")
                        .expect("a value")
                        .1;
                    let number = value.as_u64().map(|number| (number / divisor).to_string());
                    (
                        row["pid"].as_u64().expect("a pid") as u32,
                        number.unwrap_or("-".into()),
                    )
                })
                .collect()
        }
    }
}

/// `2026-03-01 09:30:00` as ctime(3) writes it, without the day of the week.
fn as_ctime(date: &str) -> String {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (day, time) = date.split_once(' ').expect("a date and a time");
    let parts: Vec<usize> = day
        .split('-')
        .map(|part| part.parse().expect("a number"))
        .collect();
    format!("{} {} {time} {}", MONTHS[parts[1] - 1], parts[2], parts[0])
}

fn are_near(a: &str, b: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().expect("a number");
    number(a).abs_diff(number(b)) <= 8 + number(a) / 10
}

/// The output of ps(1), normalized where several forms mean the same.
fn normal(form: As, value: &str) -> String {
    match form {
        As::Date => value
            .split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" "),
        // A process without its own memory: kernel threads and zombies.
        As::Kibibytes | As::Shared if value == "-" => "0".into(),
        As::Table => unescaped(value),
        _ => value.to_owned(),
    }
}

/// Where versions of ps(1) differ: names of zombies may be marked, prefixes of kernel functions may be cut, and the
/// largest ids may be negative. It shows ? for what cannot be printed, as ours does here.
fn unescaped(value: &str) -> String {
    if let Some(id) = value
        .strip_prefix("429496")
        .and_then(|_| value.parse::<u32>().ok())
    {
        return (id as i32).to_string();
    }
    let value = value.strip_suffix(" <defunct>").unwrap_or(value);
    let value = if value == "_" {
        value
    } else {
        value.trim_start_matches('_')
    };
    value
        .chars()
        .map(|c| {
            if c.is_ascii_graphic() || c == ' ' {
                c
            } else {
                '?'
            }
        })
        .collect()
}

#[test]
fn fields_are_those_of_ps() {
    gate::ran();
    let testbed = Testbed::open(&Options::default()).expect("the testbed opens");
    // The times of `running` change all the time, and names that are not text are written differently. Other tests
    // compare these with the kernel's.
    let plain = |label: &str| label != "running" && !label.starts_with("name-");
    let labels: BTreeMap<u32, &str> = testbed
        .processes()
        .iter()
        .filter(|process| plain(process.label))
        .map(|process| (process.pid, process.label))
        .collect();
    let pids: Vec<_> = labels.keys().map(ToString::to_string).collect();
    let pids = pids.join(",");
    let mut brackets = Brackets::new();
    let mut differences = Differences::default();
    let known = known_to_ps();
    for &(form, names) in FIELDS {
        for field in names.split_whitespace() {
            if !known.contains(field) {
                continue;
            }
            let mut look = || {
                let [before, ours, after] = [
                    of_ps(field, &pids),
                    ours(form, field, &pids),
                    of_ps(field, &pids),
                ];
                assert_eq!([before.len(), after.len()], [ours.len(); 2], "{field}");
                let mut differed = false;
                for (pid, theirs) in before {
                    // A value that changed may have been anything between.
                    let same = after[&pid] == theirs;
                    brackets.count(same);
                    let (theirs, ours) = (normal(form, &theirs), normal_ours(form, &ours[&pid]));
                    let near = matches!(form, As::Shared) && are_near(&theirs, &ours);
                    if same && theirs != ours && !near {
                        let name = format!("{field} of {}", labels[&pid]);
                        differences.add(name, format!("{ours:?}, ps has {theirs:?}"));
                        differed = true;
                    }
                }
                differed
            };
            if look() {
                for _ in 1..Differences::LOOKS {
                    look();
                }
            }
        }
    }
    differences.finish();
    assert!(brackets.judged() > 3000, "few values were compared");
    brackets.finish(80);
}

fn normal_ours(form: As, value: &str) -> String {
    match form {
        As::Kibibytes | As::Shared if value == "-" => "0".into(),
        As::Table => unescaped(value),
        _ => value.to_owned(),
    }
}

#[test]
fn the_calls_of_ps_are_understood() {
    let own = std::process::id();
    let by_pid = |arguments: &[&str]| by_pid(&output(&[&["ps"], arguments].concat()));
    // This process and its parent, since others start and exit.
    let all = [own, std::os::unix::process::parent_id()];
    for arguments in [
        &["-e", "-o", "pid="][..],
        &["-eo", "pid="],
        &["-A", "-opid="],
        &["axo", "pid", "h"],
        &["-ax", "-o", "pid="],
        &["-aux", "-o", "pid="],
        &["-e", "--format", "pid=", "--no-heading"],
        &["ax", "--fields", "pid", "--no-headers"],
        &["--fields", "pid", "--no-headings"],
    ] {
        let shown = by_pid(arguments);
        assert!(
            all.iter().all(|pid| shown.contains_key(pid)),
            "{arguments:?}"
        );
    }
    let own = own.to_string();
    for arguments in [
        &["-o", "pid=", &own][..],
        &["-o", "pid=", "-p", &own],
        &["p", &own, "o", "pid", "h"],
        &["-q", &own, "-o", "pid="],
        &["--pid", &own, "--no-headings", "-o", "pid"],
    ] {
        assert_eq!(by_pid(arguments).len(), 1, "{arguments:?}");
    }
    // The order is that of the list.
    for pids in [format!("{own},1"), format!("1,{own}")] {
        for arguments in [
            &["-q", &pids, "-o", "pid="][..],
            &["q", &pids, "o", "pid="],
            &["--quick-pid", &pids, "--fields", "pid", "--no-headers"],
        ] {
            let text = output(&[&["ps"], arguments].concat());
            let shown: Vec<_> = text.split_whitespace().collect();
            assert_eq!(shown.join(","), pids, "{arguments:?}");
        }
    }
    for arguments in [
        &["ps", "extra"][..],
        &["ps", "-f", "extra"],
        &["ps", "auxz"],
    ] {
        let output = run(arguments);
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains("type aux, ax"), "{arguments:?}: {message}");
    }
}

/// `--fields`, and no option at all, print fastproc's own table; so do its own options, if no option of ps(1) names
/// columns.
#[test]
fn the_arguments_choose_the_table_of_ps_or_our_own() {
    let own = std::process::id().to_string();
    let heading = |arguments: &[&str]| {
        let text = output(&[&["ps"], arguments].concat());
        text.lines().next().expect("a heading").to_owned()
    };
    for arguments in [
        &[][..],
        &["--top", "2"],
        &["--top", "2", "--sort", "-rss"],
        &["--filter", "pid > 0", "-u", "root,65534"],
        &["--threads", "--top", "1"],
        &["--fields", "pid,vsize", "-p", &own],
    ] {
        let heading = heading(arguments);
        assert!(
            heading.contains("VSIZE") || heading.contains("ELAPSED"),
            "{heading}"
        );
    }
    for (arguments, headings) in [
        (
            &["aux"][..],
            "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND",
        ),
        (
            &["aux", "--top", "2"],
            "USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND",
        ),
        (&["-ef"], "UID PID PPID C STIME TTY TIME CMD"),
        (&["-p", &own], "PID TTY TIME CMD"),
        (&["-e", "--sort", "-rss"], "PID TTY TIME CMD"),
        (&["-eL"], "PID LWP TTY TIME CMD"),
        (&["-o", "pid,vsz", "--filter", "pid > 0"], "PID VSZ"),
    ] {
        let heading = heading(arguments);
        let words: Vec<_> = heading.split_whitespace().collect();
        assert_eq!(words.join(" "), headings, "{arguments:?}");
    }
}

#[test]
fn processes_are_selected_as_in_ps() {
    let testbed = Testbed::open(&Options::only(["threads-8", "zombie", "pidns-3"]))
        .expect("the testbed opens");
    let pids: Vec<_> = testbed
        .processes()
        .iter()
        .map(|process| process.pid.to_string())
        .collect();
    let shown = |arguments: &[&str]| {
        let text = run(&[
            &[
                "ps",
                "--quiet",
                "--no-headers",
                "--fields",
                "pid",
                "--sort",
                "pid",
            ],
            arguments,
        ]
        .concat());
        let text = String::from_utf8(text.stdout).expect("text");
        text.lines()
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let mut sorted = pids.clone();
    sorted.sort_by_key(|pid| pid.parse::<u32>().expect("a pid"));
    assert_eq!(shown(&["-p", &pids.join(",")]), sorted);
    assert_eq!(shown(&["-p", &pids.join("\n")]), sorted);
    let each: Vec<_> = pids.iter().flat_map(|pid| ["-p", pid]).collect();
    assert_eq!(shown(&each), sorted);
    // Lists are joined, and a filter removes from them.
    let both = shown(&["-p", &pids[0], "-C", "no such name"]);
    assert_eq!(both, [pids[0].clone()]);
    let none = shown(&["-p", &pids[0], "--filter", "pid == 0"]);
    assert!(none.is_empty());
    let name = std::fs::read_to_string("/proc/self/comm").expect("/proc is mounted");
    assert!(shown(&["-C", name.trim()]).contains(&std::process::id().to_string()));
    let ours = shown(&["-u", &rustix::process::geteuid().as_raw().to_string()]);
    assert!(ours.contains(&std::process::id().to_string()));
}

#[test]
fn a_tree_has_children_below_their_parents() {
    let mut child = Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("sleep(1) is there");
    let (parent, child_pid) = (std::process::id().to_string(), child.id().to_string());
    let pids = format!("{parent},{child_pid}");
    // spawn() may return before the process has its name.
    let text = output(&[
        "ps",
        "--quiet",
        "--no-headers",
        "--tree",
        "-p",
        &pids,
        "--fields",
        "pid,comm",
        "--sort",
        "-pid",
    ]);
    child.kill().expect("the child is killed");
    child.wait().expect("it ends");
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    assert!(lines[0].starts_with(&parent), "{text}");
    assert!(
        lines[1].starts_with(&child_pid) && lines[1].contains(r" \_ "),
        "{text}"
    );
    let output = run(&["ps", "--tree", "--threads"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn several_keys_decide_the_order() {
    let rows = rows(&["--fields", "user,ppid,pid", "--sort", "user,-ppid,-pid"]);
    let keys: Vec<_> = rows
        .iter()
        .map(|row| {
            let number = |key| -row[key].as_i64().expect("a number");
            (
                row["user"].as_str().expect("a name").to_owned(),
                number("ppid"),
                number("pid"),
            )
        })
        .collect();
    assert!(keys.is_sorted(), "{keys:?}");
}

#[test]
fn rates_take_an_interval() {
    for arguments in [
        &["ps", "--filter", "pid > 0 && read/s > 1"][..],
        &["ps", "--sort", "pid,-minflt/s"],
    ] {
        let output = run(arguments);
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("--interval 1"), "{message}");
    }
    let interval = [
        "--interval",
        "0.05",
        "--count",
        "1",
        "--filter",
        "minflt/s >= 0",
        "--sort",
        "-minflt/s",
    ];
    assert!(!rows(&[&["--fields", "pid"], &interval[..]].concat()).is_empty());
}
