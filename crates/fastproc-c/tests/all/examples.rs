//! The installed library and each example, built by the command in its first lines, and run as root and as an
//! unprivileged user.

use crate::common;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{NOBODY, Served, run};
use fastproc_testbed::{Folder, gate, needs};

fn examples() -> Vec<PathBuf> {
    let files = fs::read_dir("examples").expect("the folder is read");
    let mut files: Vec<_> = files
        .map(|file| file.expect("it is listed").path())
        .collect();
    files.sort();
    files
}

/// Runs each example as this user, with or without the socket of a service.
fn check(prefix: &Path, uid: u32, socket: &Path) {
    let example = |name: &str| {
        let mut command = Command::new(prefix.join(name));
        command
            .uid(uid)
            .gid(uid)
            .current_dir("/")
            .env("FASTPROC_SOCKET", socket);
        command
    };
    let own = std::process::id();
    let name = fs::read_to_string("/proc/self/comm").expect("/proc is mounted");

    let text = run(example("by_memory").arg("1000000"));
    let mut sizes = Vec::new();
    let mut pids = BTreeSet::new();
    for line in text.lines().skip(1) {
        let mut words = line.split_whitespace();
        let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
        // A user may start a process with a line feed in its name.
        if let (Some(pid), Some(size)) = (number(), number()) {
            pids.insert(pid);
            sizes.push(size);
        }
    }
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{text}");
    assert!(pids.contains(&own.into()) && pids.contains(&1), "{text}");

    let text = run(example("one_process").arg(own.to_string()));
    let value = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_default()
    };
    assert_eq!(value("name "), name.trim_end());
    assert_eq!(value("uid "), "0", "{text}");
    assert_eq!(
        value("ppid "),
        std::os::unix::process::parent_id().to_string()
    );
    assert!(
        value("rss_bytes ")
            .parse::<u64>()
            .is_ok_and(|rss| rss > 1 << 20),
        "{text}"
    );
    let line = fs::read_to_string("/proc/self/cmdline").expect("/proc is mounted");
    assert_eq!(
        value("cmdline "),
        line.trim_end_matches('\0').replace('\0', " ")
    );
    if fs::read_to_string("/proc/self/mountinfo").is_ok_and(|mounts| mounts.contains(" - cgroup2 "))
    {
        let text = run(&mut example("cgroups"));
        let root = text.lines().nth(1).unwrap_or_default();
        let words: Vec<_> = root.split_whitespace().collect();
        let [cpu, memory, tasks, path] = words[..] else {
            panic!("{text}");
        };
        // The root has neither memory.current nor pids.current.
        assert_eq!([memory, tasks, path], ["-", "-", "/"], "{text}");
        assert!(cpu.parse::<u64>().is_ok_and(|ns| ns > 0), "{text}");
    }

    // A value that the kernel hides from a user is not shown as 0.
    let io = value("read_bytes ");
    assert_eq!(io.parse::<u64>().is_ok(), uid == 0, "{io}");
    assert!(uid == 0 || io == "-", "{io}");

    let text = run(example("cpu_shares").arg("0.2"));
    assert!(text.ends_with(" processes\n"), "{text}");

    let text = run(example("status").arg(own.to_string()));
    let comm = name.trim_end();
    assert!(text.starts_with(&format!("{own} ({comm}) ")), "{text}");
    assert!(text.contains(&format!("\nName:\t{comm}\n")), "{text}");
}

#[test]
fn examples_say_what_proc_says() {
    needs!(gate::programs(&["cc", "pkg-config"]), gate::bpf());
    let prefix = common::install("examples");
    for source in examples() {
        common::compile(&prefix, &source);
    }
    let nowhere = prefix.join("nowhere");
    check(&prefix, 0, &nowhere);
    check(&prefix, NOBODY, &nowhere);
    let served = Served::start(&prefix);
    check(&prefix, 0, &served.socket);
    check(&prefix, NOBODY, &served.socket);
    drop(served);
}

#[test]
fn valgrind_finds_no_error_and_no_leak() {
    needs!(
        gate::programs(&["cc", "pkg-config", "valgrind"]),
        gate::bpf()
    );
    let prefix = common::install("valgrind");
    let program = common::compile(&prefix, Path::new("examples/one_process.c"));
    // With the records of BPF, and with the texts of /proc.
    for uid in [0, NOBODY] {
        let text = run(Command::new("valgrind")
            .args(["--quiet", "--leak-check=full", "--error-exitcode=9"])
            .arg(&program)
            .arg("1")
            .uid(uid)
            .gid(uid)
            .current_dir("/")
            .env("FASTPROC_SOCKET", prefix.join("nowhere")));
        assert!(text.contains("\nppid 0\n"), "{text}");
    }
}

#[test]
fn a_program_is_built_with_what_lies_where_the_library_was_built() {
    needs!(gate::programs(&["cc", "pkg-config"]));
    let folder = Folder::new("built");
    common::build(&folder);
    let flags = run(Command::new("pkg-config")
        .env("PKG_CONFIG_PATH", &*folder)
        .args(["--cflags", "--libs", "fastproc"]));
    let program = folder.join("one_process");
    run(Command::new("cc")
        .arg("examples/one_process.c")
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program));
    let own = std::process::id().to_string();
    let text = run(Command::new(&program)
        .env_remove("LD_LIBRARY_PATH")
        .env("FASTPROC_SOCKET", folder.join("nowhere"))
        .arg(&own));
    let name = fs::read_to_string("/proc/self/comm").expect("/proc is mounted");
    assert!(
        text.lines()
            .any(|line| line.strip_prefix("name ") == Some(name.trim_end())),
        "{text}"
    );
}

#[test]
fn the_library_has_what_the_header_declares_by_versions() {
    needs!(gate::programs(&["cc", "nm", "readelf"]));
    let prefix = common::install("symbols");
    let library = prefix.join("lib/libfastproc.so");
    let dynamic = run(Command::new("readelf").arg("-d").arg(&library));
    assert!(
        dynamic.contains("Library soname: [libfastproc.so.0]"),
        "{dynamic}"
    );
    let symbols = run(Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(&library));
    let symbols: BTreeSet<_> = symbols
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .filter(|symbol| *symbol != "FASTPROC_0")
        .collect();
    let declared: BTreeSet<_> = common::functions()
        .iter()
        .map(|name| format!("{name}@@FASTPROC_0"))
        .collect();
    assert!(declared.len() > 15, "{declared:?}");
    assert_eq!(symbols, declared.iter().map(String::as_str).collect());
}
