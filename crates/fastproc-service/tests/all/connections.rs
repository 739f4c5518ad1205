//! A connection belongs to the process and the user that made it.
//!
//! One test at a time: a forked child also has the sockets of the other tests, which would stay open.

use std::{
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::{fs::chown, net::UnixStream},
    },
    time::Duration,
};

use crate::common::{
    Child, Raw, Served, as_user, become_user, in_child, request, stream_pair, turns,
};
use fastproc::{
    Collector, Fields, SourceKind, message,
    source::service::{
        self,
        wire::{Op, Status},
    },
};
use fastproc_testbed::{GUARD, alone, gate, needs};
use rustix::thread::{UnshareFlags, unshare_unsafe};

const NOBODY: u32 = 65534;
const YOUNG: Duration = Duration::from_secs(3600);

#[test]
fn a_child_of_a_reader_is_served_by_itself_and_its_parent_goes_on() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("forked", None);
    let mut collector = served.builder().open().expect("the service answers");
    collector.snapshot().expect("the service answers");
    let raw = served.connect();
    let children: Vec<Child> = (0..8)
        .map(|_| {
            in_child(|| {
                // The connection is its parent's.
                let (reply, _) = raw.ask(request(Op::Snapshot, YOUNG)).expect("an answer");
                assert_eq!(reply.status, Status::NotYours);
                for _ in 0..5 {
                    let snapshot = collector.snapshot().expect("it connects by itself");
                    assert!(snapshot.get(std::process::id()).is_some());
                }
            })
        })
        .map(|child| {
            child.join();
            in_child(|| ())
        })
        .collect();
    drop(children);
    let snapshot = collector.snapshot().expect("it goes on");
    assert!(snapshot.get(std::process::id()).is_some());
}

#[test]
fn a_client_that_changes_its_user_sees_what_that_user_may() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("setuid", None);
    let fields = Fields::LAYOUT | Fields::IO | Fields::CREDENTIALS;
    let builder = served.builder().fields(fields);
    let path = served.path();
    let owner = std::process::id();
    in_child(|| {
        let mut collector = builder.open().expect("the service answers");
        let sees = |collector: &mut Collector| {
            let snapshot = collector.snapshot().expect("the service answers");
            let process = snapshot.get(owner).expect("the process is shown");
            let user_ns = process
                .credentials()
                .is_some_and(|of| of.user_ns().is_some());
            (process.layout().is_some(), process.io().is_some(), user_ns)
        };
        assert_eq!(sees(&mut collector), (true, true, true));
        let raw = Raw::open(&path).expect("the service listens");
        let ask = || {
            raw.ask(request(Op::Snapshot, YOUNG))
                .expect("an answer")
                .0
                .status
        };
        assert_eq!(ask(), Status::Ok);
        become_user(NOBODY);
        // The connection that root made is useless now; the reader makes another.
        assert_eq!(ask(), Status::NotYours);
        assert_eq!(sees(&mut collector), (false, false, false));
    })
    .join();
}

/// As in a daemon that root has started: the variable that named the service still counts.
#[test]
fn a_client_that_dropped_rights_finds_the_service_by_its_variable() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("variable", None);
    let path = served.path();
    in_child(|| {
        // SAFETY: no other thread of this child reads the environment, for there is none.
        unsafe { std::env::set_var(service::SOCKET_VARIABLE, &path) };
        become_user(NOBODY);
        let only = Collector::builder().source(Some(SourceKind::Service));
        let mut collector = only
            .service_timeout(GUARD)
            .open()
            .expect("the service answers");
        collector.snapshot().expect("the service answers");
    })
    .join();
}

/// Passes a descriptor to the other end, and nothing else.
fn pass(to: &UnixStream, descriptor: BorrowedFd<'_>) {
    message::send(to, b".", Some(descriptor)).expect("the other end is there");
}

fn passed(from: &UnixStream) -> OwnedFd {
    let received = message::receive(from, &mut [0]);
    let (_, descriptor) = received.expect("the other end is there");
    descriptor.expect("a descriptor")
}

#[test]
fn a_connection_that_is_passed_on_serves_nobody_but_who_made_it() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("passed-on", None);
    let path = served.path();
    for [maker, getter] in [[0, 0], [0, NOBODY], [NOBODY, 0], [NOBODY, 12_345]] {
        let as_user = |uid| {
            if uid != 0 {
                become_user(uid);
            }
        };
        let status = |raw: &Raw, op| raw.ask(request(op, YOUNG)).expect("an answer").0.status;
        let (ours, theirs) = stream_pair();
        let (mut done, mut wait) = turns();
        // Forked before the connection exists, so that it has it only from the message.
        let getter = in_child(|| {
            as_user(getter);
            let raw = Raw::from(passed(&theirs));
            for op in [Op::Snapshot, Op::Hello, Op::Snapshot] {
                assert_eq!(status(&raw, op), Status::NotYours);
            }
            done.give();
            // Nor after its maker was served.
            done.wait();
            assert_eq!(status(&raw, Op::Snapshot), Status::NotYours);
            done.give();
        });
        let maker = in_child(|| {
            as_user(maker);
            let raw = Raw::open(&path).expect("the service listens");
            pass(&ours, raw.as_fd());
            wait.wait();
            assert_eq!(status(&raw, Op::Snapshot), Status::Ok);
            wait.give();
            wait.wait();
            assert_eq!(status(&raw, Op::Snapshot), Status::Ok);
        });
        maker.join();
        getter.join();
    }
}

/// If its own user has no id, all other users read as the same user.
#[test]
fn the_service_of_anybody_is_not_that_of_a_reader_without_an_id() {
    let _alone = alone();
    needs!(gate::root());
    let source = Some(SourceKind::Procfs);
    let mut served = Served::start("without-an-id", source);
    served.stop();
    chown(served.folder(), Some(NOBODY), Some(NOBODY)).expect("root sets the owner");
    as_user(NOBODY, || {
        served.restart(source);
        let path = served.path();
        service::status(&path).expect("it is its own");
        in_child(|| {
            // SAFETY: it shares its descriptors with no thread.
            unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }.expect("it has one thread");
            let refused = service::status(&path);
            let error = refused.expect_err("it might be anybody's");
            assert!(matches!(
                error,
                service::Error::Untrusted { uid: NOBODY, .. }
            ));
        })
        .join();
    });
}
