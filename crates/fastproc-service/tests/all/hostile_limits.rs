//! Attacks by more connections than there are descriptors.

use crate::common;

use std::{ops::Range, os::fd::AsFd, time::Duration};

use crate::common::{
    Child, Raw, Served, Turn, as_user, in_child, request, settings, stream_pair, turns,
};
use fastproc::{
    SourceKind,
    source::service::wire::{Op, Status},
};
use fastproc_service::{Service, bind};
use fastproc_testbed::{Folder, alone, gate, needs, wait_until};
use rustix::{
    process::{Resource, getrlimit, setrlimit},
    thread::{CapabilitySet, CapabilitySets, set_capabilities},
};

/// The status that the service answers to a *hello*.
fn greet(raw: &Raw) -> Option<Status> {
    let answer = raw.ask(request(Op::Hello, Duration::ZERO));
    answer.map(|(reply, _)| reply.status)
}

/// Each of these users opens this number of connections, and holds them until [`let_go`].
fn hold_connections(
    users: Range<u32>,
    connections: u64,
    open: impl Fn() -> Raw,
) -> Vec<(Child, Turn)> {
    let attackers = users.map(|user| {
        let (mut own, mut its) = turns();
        let child = in_child(|| {
            common::become_user(user);
            let raws: Vec<Raw> = (0..connections).map(|_| open()).collect();
            its.give();
            its.wait();
            drop(raws);
        });
        own.wait();
        (child, own)
    });
    attackers.collect()
}

fn let_go(attackers: Vec<(Child, Turn)>) {
    for (child, mut own) in attackers {
        own.give();
        child.join();
    }
}

/// Uid 0 was exempt from the limit of connections as soon as it had connected, even without root's rights, as in most
/// containers.
#[test]
fn root_of_a_user_namespace_has_the_connection_limit_of_a_user() {
    const MOST: u64 = 1024;
    const ASKED: u64 = 1200;
    let _alone = alone();
    needs!(gate::root());
    common::raise_descriptors();
    let served = Served::start("unproven", Some(SourceKind::Procfs));
    let path = served.path();
    let (mut own, mut its) = turns();
    let child = in_child(|| {
        let none = CapabilitySet::empty();
        let sets = CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        set_capabilities(None, sets).expect("whoever has some may lose them");
        let raws: Vec<Raw> = (0..ASKED)
            .map(|_| Raw::open(&path).expect("the service listens"))
            .collect();
        its.give();
        its.wait();
        let asked = request(Op::Snapshot, Duration::ZERO);
        let refused = raws.last().and_then(|raw| raw.ask(asked));
        let status = refused.map(|(reply, _)| reply.status);
        assert_eq!(status, Some(Status::Credentials));
        its.give();
        its.wait();
    });
    own.wait();
    wait_until("all are accepted", || {
        served.status("/connections_total") >= ASKED
    });
    // Root is served nevertheless, with any number of connections.
    let raws: Vec<Raw> = (0..MOST + 100)
        .map(|_| {
            let raw = Raw::open(&path).expect("the service listens");
            let (reply, _) = raw
                .ask(request(Op::Hello, Duration::ZERO))
                .expect("an answer");
            assert_eq!(reply.status, Status::Ok);
            raw
        })
        .collect();
    let all = served.status("/clients/0");
    let roots = raws.len() as u64 + 1;
    assert!(
        all <= MOST + roots,
        "{all} connections, {roots} of them root's"
    );
    own.give();
    own.wait();
    own.give();
    child.join();
}

/// Four users who were served, and had as many connections as they may, had all of them.
#[test]
fn the_user_with_the_most_connections_makes_room_for_others() {
    const FIRST_USER: u32 = 54_710;
    const USERS: u32 = 4;
    const CONNECTIONS: u64 = 1024;
    let _alone = alone();
    needs!(gate::root());
    common::raise_descriptors();
    let mut settings = settings(Some(SourceKind::Procfs));
    // All of them should be served.
    settings.cpu_of_user = 1000.0;
    let served = Served::start_with("most", &settings);
    let path = served.path();
    let open = || {
        let raw = Raw::open(&path).expect("the service listens");
        assert_eq!(greet(&raw), Some(Status::Ok));
        raw
    };
    let attackers = hold_connections(FIRST_USER..FIRST_USER + USERS, CONNECTIONS, open);
    for uid in [0, FIRST_USER + USERS] {
        as_user(uid, || {
            let raws = [(); 3].map(|()| {
                let raw = Raw::open(&path).expect("the service listens");
                assert_eq!(greet(&raw), Some(Status::Ok), "{uid} has room");
                raw
            });
            // Users with more connections make room for those with fewer, not the other way round.
            for raw in raws {
                let again = raw.ask(request(Op::Hello, Duration::ZERO));
                assert!(again.is_some(), "{uid} has lost a connection");
            }
        });
    }
    let_go(attackers);
}

/// Beginning to record exits takes the service longer than anything else, and a reader that came and went made it begin
/// each time.
#[test]
fn repeated_requests_for_exits_record_them_once() {
    let _alone = alone();
    needs!(gate::bpf());
    let mut settings = settings(None);
    settings.exits_linger = Duration::from_secs(3600);
    let served = Served::start_with("exits", &settings);
    for _ in 0..5 {
        let raw = served.connect();
        let asked = raw.ask(request(Op::Exits, Duration::ZERO));
        let status = asked.map(|(reply, _)| reply.status);
        assert_eq!(status, Some(Status::Ok));
        drop(raw);
        wait_until("it has gone", || served.status("/exits/readers") == 0);
    }
    assert_eq!(served.status("/exits/starts_total"), 1);
    assert_eq!(served.status("/exits/recording"), 1);
}

/// A user has thousands of ids in its user namespaces, and can connect by each. None of them is served.
#[test]
fn unserved_connections_make_room_for_new_ones() {
    const FIRST_USER: u32 = 54_700;
    const USERS: u32 = 5;
    const CONNECTIONS: u64 = 1000;
    let _alone = alone();
    needs!(gate::root());
    common::raise_descriptors();
    let served = Served::start("room", Some(SourceKind::Procfs));
    let path = served.path();
    let open = || Raw::open(&path).expect("the service listens");
    let attackers = hold_connections(FIRST_USER..FIRST_USER + USERS, CONNECTIONS, open);
    for uid in [0, FIRST_USER + USERS] {
        as_user(uid, || {
            let raw = Raw::open(&path).expect("the service listens");
            assert_eq!(greet(&raw), Some(Status::Ok), "{uid} has room");
        });
    }
    let_go(attackers);
}

/// F11: without a descriptor for a new connection the service retried as fast as it could.
#[test]
fn without_descriptors_nobody_is_accepted_and_nothing_spins() {
    let _alone = alone();
    needs!(gate::root());
    let folder = Folder::new("descriptors");
    let path = folder.join("socket");
    let listener = bind(&path).expect("nobody listens there");
    let (mut own, mut its) = turns();
    let (told, stop) = stream_pair();
    let service = in_child(|| {
        let settings = settings(Some(SourceKind::Procfs));
        let service = Service::open(listener, &settings).expect("it can read");
        let open = std::fs::read_dir("/proc/self/fd").expect("/proc").count() as u64;
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = Some(open + 12);
        setrlimit(Resource::Nofile, limit).expect("less than it was");
        its.give();
        service.run(told.as_fd()).expect("it serves");
    });
    own.wait();
    let first = Raw::open(&path).expect("the service listens");
    let hello = |raw: &Raw| {
        raw.ask(request(Op::Hello, Duration::ZERO))
            .map(|answer| answer.0.status)
    };
    assert_eq!(hello(&first), Some(Status::Ok));
    let others: Vec<Raw> = (0..40)
        .map(|_| Raw::open(&path).expect("the service listens"))
        .collect();
    let count = |name: &str| {
        let (reply, text) = first.ask_text(request(Op::Status, Duration::ZERO));
        assert_eq!(reply, Status::Ok);
        let status: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        status[name].as_u64().expect("a number")
    };
    // It sleeps between, and existing connections are served.
    let (mut wakes, mut asked, mut pauses) = (count("wakes_total"), 1, count("pauses_total"));
    wait_until("some pauses", || {
        asked += 1;
        count("pauses_total") >= pauses + 4
    });
    asked += 2;
    wakes = count("wakes_total") - wakes;
    pauses = count("pauses_total") - pauses;
    assert!(
        wakes <= asked + 4 * pauses,
        "it has woken {wakes} times for {asked} requests and {pauses} pauses"
    );
    drop(others);
    let late = Raw::open(&path).expect("the service listens");
    assert_eq!(hello(&late), Some(Status::Ok), "there is room again");
    std::io::Write::write_all(&mut &stop, b".").expect("it serves");
    drop((first, late));
    service.join();
}
