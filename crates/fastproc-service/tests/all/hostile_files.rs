//! Attacks by open files: by their number, by requests for them, and by a process that changes while it is read.

use std::{collections::HashMap, thread, time::Duration};

use crate::{
    common::{Child, Raw, Served, as_user, in_child, raise_descriptors, settings, turns},
    files::{Answer, asked, become_plain, memory, told},
};
use fastproc::{files::Fields, source::service::wire::Status};
use fastproc_testbed::{alone, gate, needs, own_process, wait_until};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

const ATTACKER: u32 = 54_650;
const BYSTANDER: u32 = 54_651;

fn status_for(served: &Served, groups: Fields) -> Status {
    let raw = served.connect();
    raw.ask(asked(groups)).expect("an answer").0.status
}

/// More descriptors than the service reads for a user are the user's own affair: others see how many there are.
#[test]
fn a_user_with_too_many_descriptors_is_refused_and_others_are_not() {
    // A hard limit may be 20,000.
    const PROCESSES: usize = 5;
    const EACH: u32 = 14_000;
    needs!(
        gate::bpf(),
        own_process(a_user_with_too_many_descriptors_is_refused_and_others_are_not)
    );
    let _alone = alone();
    raise_descriptors();
    let served = Served::start("files-many", None);
    let attackers = (0..PROCESSES).map(|_| {
        let (mut own, mut its) = turns();
        let attacker = in_child(|| {
            become_plain(ATTACKER);
            let file = memory("many");
            let all: Vec<_> = (0..EACH).map(|_| rustix::io::dup(&file)).collect();
            assert!(all.iter().all(Result::is_ok));
            its.give();
            its.wait();
        });
        own.wait();
        (attacker, own)
    });
    let attackers: Vec<_> = attackers.collect();
    as_user(ATTACKER, || {
        assert_eq!(status_for(&served, Fields::FILES), Status::Busy);
        // They can be counted.
        assert_eq!(status_for(&served, Fields::empty()), Status::Ok);
    });
    let of_user = format!("/users/{ATTACKER}/over_budget_total");
    assert_eq!(served.status(&of_user), 1);
    as_user(BYSTANDER, || {
        let raw = served.connect();
        let all = told(&raw, Fields::FILES).all();
        for (attacker, _) in &attackers {
            let pid = attacker.0.as_raw() as u32;
            assert!(all[&pid].open > EACH);
        }
    });
    for (attacker, mut own) in attackers {
        own.give();
        attacker.join();
    }
}

/// The user who asks pays for reading, and other users do not.
#[test]
fn a_user_over_its_time_is_refused_files_and_others_are_not() {
    let _alone = alone();
    needs!(gate::bpf());
    let mut settings = settings(None);
    // Less than one reading takes while the reader waits for it, on whatever machine.
    settings.cpu_of_user = 0.001;
    let served = Served::start_with("files-charged", &settings);
    // Loading the program is charged, too, but not repeated.
    assert_eq!(status_for(&served, Fields::FILES), Status::Ok);
    let ask_until = |raw: &Raw, expected| {
        wait_until("an answer", || {
            let answer = raw.ask(asked(Fields::FILES));
            answer.is_some_and(|(reply, _)| reply.status == expected)
        });
    };
    as_user(ATTACKER, || {
        let raw = served.connect();
        // To be identified may have taken all that it has.
        ask_until(&raw, Status::Ok);
        ask_until(&raw, Status::Busy);
    });
    let of_user = format!("/users/{ATTACKER}/over_budget_total");
    assert!(served.status(&of_user) > 0);
    as_user(BYSTANDER, || {
        ask_until(&served.connect(), Status::Ok);
    });
    assert_eq!(status_for(&served, Fields::FILES), Status::Ok);
}

/// The files are read for a reader that has gone.
#[test]
fn readers_that_go_before_they_are_answered_delay_nobody() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("files-gone", None);
    as_user(ATTACKER, || {
        for _ in 0..100 {
            let raw = served.connect();
            raw.send(asked(Fields::FILES)).expect("the request is sent");
        }
    });
    as_user(BYSTANDER, || {
        assert_eq!(status_for(&served, Fields::FILES), Status::Ok);
    });
    wait_until("nothing is lent", || served.status("/buffers/lent") == 0);
}

#[test]
fn a_reader_that_asks_again_before_it_is_answered_is_cut_off() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("files-twice", None);
    as_user(ATTACKER, || {
        let raw = served.connect();
        for _ in 0..2 {
            raw.send(asked(Fields::FILES)).expect("the request is sent");
        }
        while raw.receive().is_some() {}
    });
    let of_user = format!("/users/{ATTACKER}/cut_off_total");
    assert_eq!(served.status(&of_user), 1);
    assert_eq!(status_for(&served, Fields::FILES), Status::Ok);
}

/// What a process opens after it has forbidden to trace it is never shown, even if the walk had begun to read it before.
#[test]
fn files_of_a_process_that_forbids_tracing_while_it_is_read_are_not_shown() {
    /// It takes some time to read so many, but no more than a run of the program.
    const DESCRIPTORS: usize = 200;
    const TIMES: u64 = 300;
    const AT_ONCE: u64 = 8;
    const ROUNDS: usize = 150;
    let _alone = alone();
    needs!(gate::bpf());
    raise_descriptors();
    let served = Served::start("files-forbids", None);
    let path = served.path();
    let (mut own, mut its) = turns();
    let reader = in_child(|| {
        become_plain(ATTACKER);
        let raw = Raw::open(&path).expect("the service listens");
        let mut buffers = HashMap::new();
        its.give();
        let mut seen = 0;
        while its.number() == 1 {
            for _ in 0..10 {
                let request = asked(Fields::FILES | Fields::PATHS);
                let (reply, buffer) = raw.ask(request).expect("an answer");
                assert_eq!(reply.status, Status::Ok);
                if let Some(buffer) = buffer {
                    buffers.insert(reply.buffer, buffer);
                }
                let answer = Answer::new(&reply, &buffers[&reply.buffer]);
                for process in answer.all().values() {
                    let has = |name: &[u8]| process.names.iter().any(|of| of == name);
                    assert!(!has(b"memfd:secret"), "it was opened later");
                    seen += u32::from(has(b"memfd:public"));
                }
            }
            its.tell(seen);
        }
    });
    own.wait();
    let parent = in_child(|| {
        become_plain(ATTACKER);
        let public = memory("public");
        let _all: Vec<_> = (0..DESCRIPTORS).map(|_| rustix::io::dup(&public)).collect();
        for time in 0..TIMES {
            let process = |number| {
                in_child(|| {
                    let wait = 70 * number + 10 * (time % 7);
                    thread::sleep(Duration::from_micros(wait));
                    set_dumpable_behavior(DumpableBehavior::NotDumpable).expect("anybody may");
                    let _secret = memory("secret");
                    thread::sleep(Duration::from_millis(3));
                })
            };
            let processes: Vec<_> = (0..AT_ONCE).map(process).collect();
            processes.into_iter().for_each(Child::join);
        }
    });
    let mut seen = 0;
    for _ in 0..ROUNDS {
        own.tell(1);
        seen = own.number();
    }
    parent.join();
    assert!(seen > 0, "it was read before");
    own.tell(0);
    reader.join();
}
