//! Every accessor, in a C program generated from the header: compares its values with those of the Rust library for
//! unusual processes, and its errors after wrong use.

use crate::common;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{NOBODY, Served, run};
use fastproc::{
    Collector, Fields, Snapshot, SourceKind,
    schema::{self, Field, Shown, Type, Unit},
};
use fastproc_testbed::{Options, Testbed, gate};

/// Whether a value means "not known".
fn is_nothing(field: &Field, value: i128) -> bool {
    let bits = match field.type_of.size() {
        4 => u64::from(value as u32),
        _ => value as u64,
    };
    field.unknown == Some(bits)
}

/// Whether a value changes while a process is idle, or other users see it less precisely.
fn is_of_the_moment(path: &str) -> bool {
    path.ends_with("_ns")
        || ["processor", "queued", "switches", "csw", "flt"]
            .iter()
            .any(|name| path.ends_with(name))
}

/// An accessor of the header: its name and the type of its value.
fn accessors() -> Vec<(String, String)> {
    let header = fs::read_to_string("include/fastproc.h").expect("the file is read");
    let declarations = header.split_inclusive(';').filter_map(|part| {
        let text = part
            .rsplit("*/")
            .next()?
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let (name, rest) = text.strip_prefix("int ")?.split_once('(')?;
        let rest = rest.strip_prefix("const struct fastproc *handle, size_t index, ")?;
        let value = rest.strip_suffix(" *value);")?;
        (!value.contains(',')).then_some(())?;
        Some((name.to_owned(), value.to_owned()))
    });
    declarations.collect()
}

/// Builds the program that prints the values of the processes with these ids, and of their threads.
fn program(folder: &Path) -> PathBuf {
    let mut lines = String::new();
    for (name, value) in accessors() {
        let (format, cast) = match value.as_str() {
            "double" => ("%.17g", "double"),
            "int32_t" => ("%lld", "long long"),
            _ => ("%llu", "unsigned long long"),
        };
        let of = if name.starts_with("fastproc_thread_") {
            "thread"
        } else {
            "process"
        };
        let of = if name.starts_with("fastproc_gone_") {
            "gone"
        } else {
            of
        };
        let _ = writeln!(
            lines,
            "ACCESSOR({name}, {value}, \"{format}\", {cast}, {of})"
        );
    }
    fs::write(folder.join("accessors.inc"), lines).expect("it can be written");
    let source = folder.join("every.c");
    fs::copy("tests/all/every.c", &source).expect("the file can be copied");
    common::compile(folder, &source)
}

/// The name of the accessor of a member.
fn accessor(prefix: &str, field: &Field) -> String {
    let unit = if field.unit == Unit::Bytes && !field.path.ends_with("bytes") {
        "_bytes"
    } else {
        ""
    };
    format!("fastproc_{prefix}{}{unit}", field.path.replace('.', "_"))
}

/// A member of a record, as C prints it.
fn number(words: &[u64], field: &Field) -> i128 {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let part = &bytes[field.offset..field.offset + field.type_of.size()];
    match field.type_of {
        Type::U8 => part[0].into(),
        Type::U32 => u32::from_ne_bytes(part.try_into().expect("four bytes")).into(),
        Type::I32 => i32::from_ne_bytes(part.try_into().expect("four bytes")).into(),
        Type::U64 => u64::from_ne_bytes(part.try_into().expect("eight bytes")).into(),
        Type::I64 => i64::from_ne_bytes(part.try_into().expect("eight bytes")).into(),
        other => panic!("{} is a {other:?}", field.path),
    }
}

/// Known values, by their process or thread and the name of the accessor.
type Values = BTreeMap<(String, String), Option<i128>>;

/// The values that the Rust library returns.
fn expected(snapshot: &Snapshot<'_>, pids: &BTreeSet<u32>) -> Values {
    let mut values = Values::new();
    let is_shown = |field: &Field| !field.is_inner;
    let numbers = |structure: &'static schema::Structure| {
        let fields = structure.fields().into_iter();
        fields.filter(|field| !matches!(field.type_of, Type::Chars(_)))
    };
    for process in snapshot
        .iter()
        .filter(|process| pids.contains(&process.pid()))
    {
        let about = format!("process {}", process.pid());
        let masked = process.identity().masked != 0;
        for field in numbers(schema::RECORD).filter(is_shown) {
            let is_there = field
                .group
                .is_none_or(|group| process.fields().contains(group))
                && !(masked && field.shown == Shown::Tracers);
            let value = is_there
                .then(|| number(process.record().words(), &field))
                .filter(|&value| !is_nothing(&field, value));
            values.insert((about.clone(), accessor("", &field)), value);
        }
    }
    for (process, thread) in snapshot
        .threads_with_processes()
        .filter(|(process, _)| pids.contains(&process.pid()))
    {
        let about = format!("thread {}", thread.tid);
        for field in numbers(schema::THREAD).filter(is_shown) {
            let is_there = !field.path.starts_with("io.") || process.io().is_some();
            let value = is_there
                .then(|| number(thread.words(), &field))
                .filter(|&value| !is_nothing(&field, value));
            values.insert((about.clone(), accessor("thread_", &field)), value);
        }
    }
    values
}

/// The values that the program prints.
fn printed(text: &str) -> Values {
    let lines = text.lines().map(|line| {
        let words: Vec<_> = line.split('\t').collect();
        let [about, name, result, value] = words[..] else {
            panic!("{line:?}");
        };
        let value = match result {
            "0" => Some(value.parse().unwrap_or_else(|_| panic!("{line:?}"))),
            "1" => {
                assert_eq!(value.parse::<f64>(), Ok(0.0), "{line:?}");
                None
            }
            _ => panic!("{line:?}"),
        };
        ((about.to_owned(), name.to_owned()), value)
    });
    lines.collect()
}

#[test]
fn every_member_of_a_record_has_an_accessor() {
    let accessors: BTreeSet<_> = accessors().into_iter().map(|(name, _)| name).collect();
    for (structure, prefix) in [(schema::RECORD, ""), (schema::THREAD, "thread_")] {
        for field in structure.fields() {
            let name = accessor(prefix, &field);
            let is_text = matches!(field.type_of, Type::Chars(_));
            let is_hidden = field.is_inner;
            assert_eq!(accessors.contains(&name), !is_text && !is_hidden, "{name}");
        }
    }
    gate::ran();
}

/// The accessor of the other half of a time that is split between user and system.
fn other_half(name: &str) -> Option<String> {
    let halves = [
        ("cpu_utime_ns", "cpu_stime_ns"),
        ("thread_utime_ns", "thread_stime_ns"),
    ];
    halves.iter().find_map(|(user, system)| {
        let (user, system) = (format!("fastproc_{user}"), format!("fastproc_{system}"));
        match name {
            _ if name == user => Some(system),
            _ if name == system => Some(user),
            _ => None,
        }
    })
}

#[test]
fn values_are_those_of_the_library_in_rust() {
    if !gate::programs(&["cc", "pkg-config", "setpriv"]) || !gate::bpf() {
        return;
    }
    let prefix = common::install("accessors");
    let every = program(&prefix);
    let testbed = Testbed::open(&Options::default()).expect("it opens");
    let served = Served::start(&prefix);
    let pids: BTreeSet<u32> = testbed
        .processes()
        .iter()
        .map(|process| process.pid)
        .collect();
    let ways = [
        ("bpf", SourceKind::Bpf, 0),
        ("service", SourceKind::Service, NOBODY),
        ("bpf", SourceKind::Bpf, NOBODY),
    ];
    for (name, kind, uid) in ways {
        let mut collector = Collector::builder()
            .fields(Fields::all())
            .source(Some(kind))
            .service_socket(Some(served.socket.clone()))
            .open()
            .expect("it opens");
        let guarded: Vec<String> = schema::RECORD
            .fields()
            .iter()
            .filter(|field| field.shown == Shown::Tracers)
            .map(|field| accessor("", field))
            .collect();
        let mut unproven = BTreeMap::new();
        // Values that may have changed in between are compared again.
        for round in 0..10 {
            let befores = expected(&collector.snapshot().expect("a snapshot"), &pids);
            // BPF reads all values. The library hides those that this user may not see.
            let mut command = if uid != 0 && kind == SourceKind::Bpf {
                nobody_with_bpf(&every)
            } else {
                let mut command = Command::new(&every);
                command.uid(uid).gid(uid);
                command
            };
            command
                .env("FASTPROC_SOCKET", &served.socket)
                .current_dir("/");
            command
                .args(["values", name])
                .args(pids.iter().map(ToString::to_string));
            let ours_all = printed(&run(&mut command));
            let afters = expected(&collector.snapshot().expect("a snapshot"), &pids);
            assert!(
                befores.len() > 100 * pids.len() * 3 / 4,
                "{}",
                befores.len()
            );
            let mut wrong = BTreeMap::new();
            for (key, &before) in &befores {
                let (Some(&after), Some(&ours)) = (afters.get(key), ours_all.get(key)) else {
                    wrong.insert(key.clone(), "is not everywhere".to_owned());
                    continue;
                };
                let path = key
                    .1
                    .trim_start_matches("fastproc_")
                    .trim_start_matches("thread_");
                let of_process = key.1.replace("fastproc_thread_", "fastproc_");
                if uid != 0 && guarded.contains(&of_process) {
                    // Processes of this user are included.
                    if ours.is_some() && ours != before && ours != after {
                        wrong.insert(
                            key.clone(),
                            format!("{ours:?} is shown to a user instead of {before:?}"),
                        );
                    }
                    continue;
                }
                // The service leaves some processes to the reader, and their text lacks the run time.
                if uid != 0 && ours.is_none() && path.ends_with("sum_exec_ns") {
                    continue;
                }
                // Unless the user is root, times are rounded to ticks.
                let mut tick = if uid == 0 { 0 } else { 10_000_000 };
                let mut readings = [before, ours, after];
                // Two readers may split a time between user and system differently; the sum is the same.
                if let Some(other) = other_half(&key.1) {
                    let other = (key.0.clone(), other);
                    let halves = [&befores, &ours_all, &afters]
                        .map(|all| all.get(&other).copied().flatten());
                    readings = std::array::from_fn(|at| Some(readings[at]? + halves[at]?));
                    tick *= 2;
                }
                let is_between = match readings {
                    [Some(before), Some(ours), Some(after)] if is_of_the_moment(path) => {
                        before.min(after) - tick <= ours && ours <= before.max(after)
                    }
                    [before, ours, after] => ours == before || ours == after,
                };
                if !is_between {
                    wrong.insert(
                        key.clone(),
                        format!("{ours:?}, and around it {before:?} and {after:?}"),
                    );
                }
            }
            if uid != 0 {
                let hidden = ours_all.iter().filter(|(key, value)| {
                    key.1.starts_with("fastproc_layout_") && value.is_none()
                });
                assert!(
                    hidden.count() > 12,
                    "{name}: a user is shown addresses of root's processes"
                );
            }
            if round == 0 {
                unproven = wrong;
            } else {
                unproven.retain(|key, _| wrong.contains_key(key));
            }
            if unproven.is_empty() {
                break;
            }
            // Signals are counted for the whole user: other processes change their number.
            let is_own = |key: &(String, String)| key.1 != "fastproc_signals_queued";
            if round == 0 && unproven.keys().any(is_own) {
                gate::repeated(&format!("{name} as {uid}: {unproven:?}"));
            }
        }
        assert!(unproven.is_empty(), "{name} as {uid}: {unproven:#?}");
    }
    drop(served);
}

/// Runs the program as a user whose only right is to load BPF programs.
fn nobody_with_bpf(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--inh-caps=+bpf,+perfmon", "--ambient-caps=+bpf,+perfmon"])
        .args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")])
        .arg("--clear-groups")
        .arg(program);
    command
}

#[test]
fn every_accessor_refuses_what_cannot_be_right() {
    if !gate::programs(&["cc", "pkg-config"]) {
        return;
    }
    let prefix = common::install("misuse");
    let every = program(&prefix);
    let text = run(Command::new(&every).args(["misuse", "procfs"]));
    let counted: usize = text.trim().parse().expect("how many there are");
    assert_eq!(counted, accessors().len());
}
