//! What a hostile user may do to the service by having more connections than there are descriptors.

mod common;

use std::{os::fd::AsFd, time::Duration};

use common::{Raw, in_child, request, settings, stream_pair, turns};
use fastproc::{
    SourceKind,
    source::service::wire::{Op, Status},
};
use fastproc_service::{Service, bind};
use fastproc_testbed::{Folder, alone, gate, wait_until};
use rustix::process::{Resource, getrlimit, setrlimit};

/// F11: without a descriptor for who connects the service asked again and again, as fast as it could.
#[test]
fn without_descriptors_nobody_is_accepted_and_nothing_spins() {
    let _alone = alone();
    if !gate::root() {
        return;
    }
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
    let first = Raw::open(&path).expect("it listens");
    let hello = |raw: &Raw| {
        raw.ask(request(Op::Hello, Duration::ZERO))
            .map(|answer| answer.0.status)
    };
    assert_eq!(hello(&first), Some(Status::Ok));
    let others: Vec<Raw> = (0..40)
        .map(|_| Raw::open(&path).expect("it listens"))
        .collect();
    let count = |name: &str| {
        let (reply, text) = first.ask_text(request(Op::Status, Duration::ZERO));
        assert_eq!(reply, Status::Ok);
        let status: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        status[name].as_u64().expect("a number")
    };
    // It sleeps between, and those who are there are served.
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
    let late = Raw::open(&path).expect("it listens");
    assert_eq!(hello(&late), Some(Status::Ok), "there is room again");
    std::io::Write::write_all(&mut &stop, b".").expect("it serves");
    drop((first, late));
    service.join();
}
