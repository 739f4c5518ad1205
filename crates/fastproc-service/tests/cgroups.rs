//! Cgroups: root is shown all of them, and nobody else any.

mod common;

use std::{collections::BTreeMap, fs, mem::offset_of, os::fd::OwnedFd, path::Path, time::Duration};

use common::{Raw, Served, become_user, in_child, request};
use fastproc::{
    cgroups::{
        Fields,
        record::{LAYOUT, Record},
    },
    source::service::wire::{Op, Reply, Request, Status, part},
};
use fastproc_testbed::{Cgroup, alone, gate};
use rustix::thread::{UnshareFlags, unshare_unsafe};

const NOBODY: u32 = 65534;

fn asked(groups: u32) -> Request {
    Request {
        groups,
        ..request(Op::Cgroups, Duration::ZERO)
    }
}

type Rows = BTreeMap<String, (Fields, u64)>;

/// The groups and the CPU time of each cgroup that the service shows, by path.
fn shown(raw: &Raw) -> Rows {
    let groups = Fields::CPU | Fields::PRESSURE;
    let (reply, buffer) = raw.ask(asked(groups.bits())).expect("an answer");
    assert_eq!((reply.status, reply.layout), (Status::Ok, LAYOUT));
    rows(&reply, &buffer.expect("it does not say that it has one"))
}

fn rows(reply: &Reply, buffer: &OwnedFd) -> Rows {
    let mut bytes = vec![0; reply.buffer_bytes as usize];
    rustix::io::pread(buffer, &mut bytes, 0).expect("a file");
    let [records, paths] = [part::CGROUPS, part::PATHS].map(|at| reply.parts[at]);
    assert_eq!(records.count, paths.count);
    assert_eq!(records.stride, size_of::<Record>() as u64);
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let row = |number: u64| {
        let at = (records.offset + number * records.stride) as usize;
        let place = (paths.offset + number * 8) as usize;
        let start = reply.parts[part::PATH_BYTES].offset as usize + half(place) as usize;
        let path = &bytes[start..start + half(place + 4) as usize];
        let groups = half(at + offset_of!(Record, identity.groups));
        let usage = word(at + offset_of!(Record, cpu.usage_ns));
        let path = String::from_utf8_lossy(path).into_owned();
        (path, (Fields::from_bits_retain(groups), usage))
    };
    (0..records.count).map(row).collect()
}

fn usage_ns(folder: &Path) -> u64 {
    let text = fs::read_to_string(folder.join("cpu.stat")).expect("it is there");
    let usec = text
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "));
    usec.and_then(|usec| usec.parse::<u64>().ok())
        .expect("a number")
        * 1000
}

#[test]
fn root_is_shown_everything_and_users_nothing() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    let Some(cgroup) = Cgroup::new("outer/inner") else {
        gate::skipped("the default hierarchy is not mounted here");
        return;
    };
    let inner = cgroup.folder();
    let mut busy = cgroup.command("exit 0").spawn().expect("there is a shell");
    busy.wait().expect("it ends");
    let served = Served::start("cgroups", None);
    let before = usage_ns(&inner);
    let root = Raw::open(&served.path()).expect("it listens");
    let all = shown(&root);
    let &(groups, usage) = all.get(&cgroup.path()).expect("root sees it");
    assert!(groups.contains(Fields::CPU) && usage >= before && usage <= usage_ns(&inner));
    let socket = served.path();
    in_child(|| {
        become_user(NOBODY);
        let raw = Raw::open(&socket).expect("it listens");
        let (reply, buffer) = raw.ask(asked(Fields::CPU.bits())).expect("an answer");
        assert_eq!(reply.status, Status::Credentials);
        assert!(buffer.is_none());
    })
    .join();
}

#[test]
fn another_cgroup_namespace_and_unknown_groups_are_refused() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    let served = Served::start("cgroup-namespace", None);
    let socket = served.path();
    let raw = Raw::open(&socket).expect("it listens");
    let (reply, _) = raw.ask(asked(1 << 30)).expect("an answer");
    assert_eq!(reply.status, Status::Groups);
    in_child(|| {
        // SAFETY: it shares its descriptors with no thread.
        unsafe { unshare_unsafe(UnshareFlags::NEWCGROUP) }.expect("root may");
        let raw = Raw::open(&socket).expect("it listens");
        let (reply, _) = raw.ask(asked(0)).expect("an answer");
        assert_eq!(reply.status, Status::Namespace);
        // Its processes are those of all.
        let processes = request(Op::Snapshot, Duration::ZERO);
        let (reply, _) = raw.ask(processes).expect("an answer");
        assert_eq!(reply.status, Status::Ok);
    })
    .join();
}

/// The buffer of a snapshot of cgroups is used again for processes, and holds nothing of it then.
#[test]
fn a_buffer_that_had_cgroups_is_written_anew() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    if Cgroup::new("any").is_none() {
        gate::skipped("the default hierarchy is not mounted here");
        return;
    }
    let served = Served::start("cgroup-buffers", None);
    let raw = Raw::open(&served.path()).expect("it listens");
    let mut collector = served.builder().open().expect("it is served");
    for _ in 0..20 {
        assert!(shown(&raw).contains_key("/"));
        let snapshot = collector.snapshot().expect("it is served");
        let own = snapshot.get(std::process::id()).expect("it lives");
        assert_eq!(own.identity().tgid, std::process::id());
        let (reply, _) = raw
            .ask(request(Op::Snapshot, Duration::ZERO))
            .expect("an answer");
        assert_eq!(reply.status, Status::Ok);
    }
}
