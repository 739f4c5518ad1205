//! The most memory that a service may need, whatever its readers request.

use crate::common;

use std::{fs, os::fd::AsFd, time::Duration};

use crate::common::{
    Child, Raw, Turn, become_user, in_child, request, settings, stream_pair, turns,
};
use fastproc::{
    Fields, Texts,
    source::service::wire::{Op, Request, Status},
};
use fastproc_service::{Service, bind};
use fastproc_testbed::{Folder, alone, gate, needs, wait_until};

const FIRST_USER: u32 = 54_700;
const USERS: u32 = 3;
/// For each user.
const CONNECTIONS: u64 = 60;
const TASKS: usize = 2000;

/// The sum of the bytes that each line with this label gives, in this unit.
fn sum(text: &str, label: &str, unit: u64) -> u64 {
    let lines = text.lines().filter_map(|line| line.strip_prefix(label));
    let numbers = lines.filter_map(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    numbers.sum::<u64>() * unit
}

/// Memory of a service: its own, the buffers that it has mapped, and what the kernel counts for its BPF programs and
/// maps. The counters of a control group would give the sum, but only if the service had one to itself.
fn memory(pid: i32) -> [u64; 3] {
    let status =
        fs::read_to_string(format!("/proc/{pid}/status")).expect("/proc shows the process");
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo")).expect("root may look");
    let files = files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
    let bpf = files.map(|file| sum(&file, "memlock:", 1)).sum();
    [
        sum(&status, "RssAnon:", 1024),
        sum(&status, "RssShmem:", 1024),
        bpf,
    ]
}

/// A user who requests everything on all its connections, a different snapshot each time, and keeps what it gets.
fn attacker(path: &std::path::Path, user: u32) -> (Child, Turn) {
    let (own, mut its) = turns();
    let child = in_child(|| {
        become_user(FIRST_USER + user);
        let raws: Vec<Raw> = (0..CONNECTIONS)
            .map(|_| Raw::open(path).expect("the service listens"))
            .collect();
        let (mut kept, mut refused) = (Vec::new(), 0);
        its.wait();
        for round in 0..3 {
            for (number, raw) in (round * CONNECTIONS..).zip(&raws) {
                let max_age = Duration::from_secs((number % 7) << 20);
                let asked = Request {
                    groups: Fields::all().bits(),
                    texts: Texts::all(),
                    texts_max_age_ns: number,
                    exits: true,
                    exits_after: number,
                    ..request(Op::Snapshot, max_age)
                };
                raw.send(asked).expect("the request is sent");
            }
            for raw in &raws {
                let (reply, buffer) = raw.receive().expect("an answer");
                kept.extend(buffer);
                refused += u32::from(reply.status != Status::Ok);
            }
        }
        assert!(!kept.is_empty(), "all of {refused} were refused");
        its.give();
        its.wait();
    });
    (child, own)
}

#[test]
fn whatever_is_asked_a_service_needs_64_mib_and_a_bit_for_each_task_and_what_it_has_lent() {
    let _alone = alone();
    needs!(gate::bpf());
    common::raise_descriptors();
    let folder = Folder::new("memory");
    let path = folder.join("socket");
    let listener = bind(&path).expect("nobody listens there");
    let (mut opened, mut its) = turns();
    let (told, stop) = stream_pair();
    // In a separate process, so that nothing else is counted.
    let service = in_child(|| {
        let service = Service::open(listener, &settings(None)).expect("it can read");
        its.give();
        service.run(told.as_fd()).expect("it serves");
    });
    opened.wait();
    let mut attackers: Vec<(Child, Turn)> = (0..USERS).map(|user| attacker(&path, user)).collect();
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Arc::new(std::sync::Mutex::new(held));
    let threads: Vec<_> = (0..TASKS)
        .map(|_| {
            let held = std::sync::Arc::clone(&held);
            let thread = std::thread::Builder::new().stack_size(64 << 10);
            let waits = move || drop(held.lock().map(|held| held.recv()));
            thread.spawn(waits).expect("there is room for a thread")
        })
        .collect();
    for (_, turn) in &mut attackers {
        turn.give();
    }
    for (_, turn) in &mut attackers {
        turn.wait();
    }
    let raw = Raw::open(&path).expect("the service listens");
    let (status, text) = raw.ask_text(request(Op::Status, Duration::ZERO));
    assert_eq!(status, Status::Ok);
    let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let number = |pointer: &str| report.pointer(pointer).and_then(serde_json::Value::as_u64);
    let lent = number("/buffers/lent_bytes").expect("a number");
    let tasks = fs::read_to_string("/proc/loadavg").expect("/proc");
    let tasks = tasks.split(['/', ' ']).nth(4).map(str::parse::<u64>);
    let tasks = tasks.expect("a word").expect("a number");
    let parts = memory(service.0.as_raw());
    let [own, mapped, bpf] = parts;
    assert!(own > 0 && mapped > 0 && bpf > 0 && lent > 0, "{parts:?}");
    let most = (64 << 20) + tasks * 1200 + lent;
    assert!(
        own + mapped + bpf <= most,
        "{parts:?} bytes for {tasks} tasks and {lent} bytes that are lent; {most} are allowed: {text}"
    );
    assert!(tasks >= TASKS as u64 && number("/walks_total") >= Some(1));
    drop(hold);
    for thread in threads {
        thread.join().expect("it only waits");
    }
    for (child, mut turn) in attackers {
        turn.give();
        child.join();
    }
    drop(raw);
    wait_until("the end", || {
        std::io::Write::write_all(&mut &stop, b".").is_ok()
    });
    service.join();
}
