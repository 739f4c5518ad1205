//! An attack by a file system in user space that does not answer.

use std::{fs, time::Duration};

use crate::common::{Raw, Served, as_user, in_child, request, turns};
use fastproc::{
    Fields, Texts,
    source::service::wire::{Op, Request, Status},
};
use fastproc_testbed::{HungFuse, alone, gate, needs};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

const BYSTANDER: u32 = 54_622;

/// The service looked up the root directory of a reader in a way that asks the file system of that directory.
#[test]
fn a_client_in_a_hanging_file_system_is_refused_and_delays_nobody() {
    let _alone = alone();
    needs!(gate::bpf());
    // Dropped in the opposite order: the service may wait for the file system if the test fails.
    let served = Served::start("hung-service", None);
    let Some(mut hung) = HungFuse::open() else {
        return;
    };
    let path = served.path();
    let (mut own, mut its) = turns();
    let attacker = in_child(|| {
        let raw = Raw::open(&path).expect("the service listens");
        rustix::process::fchdir(&hung).expect("it answers");
        std::os::unix::fs::chroot(".").expect("root may change its root");
        its.give();
        its.wait();
        let (reply, _) = raw
            .ask(request(Op::Snapshot, Duration::ZERO))
            .expect("an answer");
        assert_eq!(reply.status, Status::Namespace);
        its.give();
        its.wait();
    });
    own.wait();
    hung.hang();
    // Any other process that accesses the directory blocks.
    let root = format!("/proc/{}/root/.", attacker.0);
    let waits = in_child(|| assert!(fs::metadata(root).is_err()));
    hung.wait_until_asked();
    own.give();
    own.wait();
    for uid in [0, BYSTANDER] {
        as_user(uid, || {
            let raw = Raw::open(&path).expect("the service listens");
            let everything = Request {
                groups: Fields::all().bits(),
                texts: Texts::all(),
                ..request(Op::Snapshot, Duration::ZERO)
            };
            let (reply, _) = raw.ask(everything).expect("an answer");
            assert_eq!(reply.status, Status::Ok);
        });
    }
    let state = waitpid(waits.0, Some(WaitPidFlag::WNOHANG));
    assert_eq!(state, Ok(WaitStatus::StillAlive), "it still hangs");
    hung.end();
    waits.join();
    own.give();
    attacker.join();
}
