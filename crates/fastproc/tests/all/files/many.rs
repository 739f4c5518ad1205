//! A process that has more descriptors than others have together.

use std::{fs, os::fd::AsRawFd, process::Command, sync::mpsc, thread};

use fastproc::files::{Fields, File, Files, Kind, Source};
use fastproc_testbed::{GUARD, HungFuse, gate, needs, own_process};
use rustix::{
    fd::OwnedFd,
    io::dup,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use super::{elsewhere::Held, open, own_pid, process};

/// More descriptors than a test has besides.
const FEW: u64 = 1000;

/// Raises the limit of descriptors, as far as that is permitted and needed. Returns how many more may be opened.
fn permit(count: u32) -> u32 {
    let limit = getrlimit(Resource::Nofile);
    let most = fs::read_to_string("/proc/sys/fs/nr_open").expect("the file exists");
    let most: u64 = most.trim().parse().expect("a number");
    let needed = most.min(u64::from(count) + FEW);
    let raised = |current, maximum| {
        let [current, maximum] = [current, maximum].map(Some);
        setrlimit(Resource::Nofile, Rlimit { current, maximum }).is_ok()
    };
    let hard = limit.maximum.unwrap_or(needed);
    let _ = raised(needed, needed.max(hard)) || raised(needed.min(hard), hard);
    let permitted = getrlimit(Resource::Nofile).current.unwrap_or(needed);
    permitted.saturating_sub(FEW).min(count.into()) as u32
}

/// Duplicates a descriptor, which programs inherit that are executed.
fn duplicates(count: u32) -> Vec<OwnedFd> {
    let file = fs::File::open("/dev/null").expect("the file exists");
    let copies = (0..count).map(|_| dup(&file).expect("it is permitted"));
    copies.collect()
}

/// A line of `/proc/self/status`, in bytes.
fn memory(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").expect("own status");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number
        .expect("a size")
        .trim()
        .parse::<u64>()
        .expect("a number")
        << 10
}

/// In one process if that is permitted, else in as few as possible.
#[test]
fn a_million_descriptors_take_a_bounded_memory() {
    const MANY: u32 = 1_000_000;
    /// A record has 64 bytes, and its name here 9; there is room for a quarter more, beside what it replaces.
    const BYTES: u64 = 256;
    needs!(
        gate::bpf(),
        own_process(a_million_descriptors_take_a_bounded_memory)
    );
    let each = permit(MANY);
    let held = duplicates(each);
    let heirs = (1..MANY.div_ceil(each)).map(|_| {
        let mut command = Command::new("sh");
        Held::start(command.args(["-c", "echo; read x"]), "").0
    });
    let heirs: Vec<Held> = heirs.collect();
    let mut counts = open(Source::Bpf, Fields::empty());
    let snapshot = counts.snapshot().expect("a snapshot");
    let opened = snapshot
        .processes()
        .filter_map(|holder| holder.count(Kind::Character));
    assert!(opened.sum::<u32>() >= MANY);
    let mut files = open(Source::Bpf, Fields::FILES | Fields::PATHS);
    let before = memory("VmRSS:");
    let snapshot = files.snapshot().expect("a snapshot");
    let taken = memory("VmHWM:").saturating_sub(before);
    let records: usize = snapshot
        .processes()
        .map(|holder| holder.files().len())
        .sum();
    assert!(records >= MANY as usize);
    assert!(taken < records as u64 * BYTES, "{taken} bytes");
    for pid in heirs.iter().map(Held::pid).chain([own_pid()]) {
        let holder = process(snapshot, pid);
        let numbers: Vec<u32> = holder.files().filter_map(File::descriptor).collect();
        assert!(numbers.len() >= each as usize && numbers.is_sorted());
        assert!(!holder.is_incomplete());
        let number = held.last().expect("there are many").as_raw_fd() as u32;
        let last = holder
            .files()
            .find(|file| file.descriptor() == Some(number));
        let mut name = Vec::new();
        assert!(last.expect("it is open").write_name(&mut name));
        assert_eq!(name, b"/dev/null");
    }
}

/// A user can duplicate a descriptor very often at little cost. That must not fill the memory of the reader.
#[test]
fn one_process_does_not_take_the_room_of_others() {
    const ROOM: u32 = 4_000;
    needs!(
        gate::bpf(),
        own_process(one_process_does_not_take_the_room_of_others)
    );
    let many = permit(15_000);
    if many < 2 * ROOM {
        gate::skipped("a process may not have so many descriptors here");
        return;
    }
    let held = duplicates(many);
    let builder = Files::builder().source(Some(Source::Bpf));
    let mut files = builder
        .fields(Fields::FILES)
        .room(ROOM)
        .open()
        .expect("it opens");
    let snapshot = files.snapshot().expect("a snapshot");
    let holder = process(snapshot, own_pid());
    assert!(holder.is_incomplete());
    assert!(holder.open() > Some(many) && holder.count(Kind::Character) >= Some(many));
    assert!(
        holder.files().len() <= ROOM as usize,
        "{}",
        holder.files().len()
    );
    let mut others = snapshot
        .processes()
        .filter(|holder| holder.open() < Some(100));
    assert!(others.any(|other| !other.is_incomplete() && other.files().len() > 0));
    drop(held);
}

/// Links of `/proc/PID/fd` lead to files whose file system may never answer.
#[test]
fn a_file_system_that_hangs_does_not_hold_who_only_counts() {
    needs!(gate::root());
    let Some(mut hung) = HungFuse::open() else {
        return;
    };
    hung.hang();
    let (send, counted) = mpsc::channel();
    let count = move || {
        let builder = Files::builder().source(Some(Source::Procfs));
        let mut files = builder
            .asks_no_file_system()
            .open()
            .expect("/proc is there");
        let holder = process(files.snapshot().expect("a snapshot"), own_pid());
        send.send(holder.open()).expect("the test waits");
    };
    let counter = thread::spawn(count);
    let open = counted.recv_timeout(GUARD);
    hung.end();
    counter
        .join()
        .expect("it ends with the file system at the latest");
    assert!(open.expect("it was not held") > Some(0));
}
