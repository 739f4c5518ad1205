//! Several users send everything that the protocol knows, in any order, with any numbers, while another user is served.
//!
//! In all cases the bystander is answered before the service has been given a CPU too often; memory and descriptors
//! stay within their bounds; and when all have gone nothing is left.

use crate::common;

use std::{cell::RefCell, fs, time::Duration};

use crate::common::{Child, Raw, Served, Turn, become_user, in_child, request, settings, turns};
use fastproc::{
    Fields, Texts, cgroups, files,
    source::service::wire::{self, Op, Request, Status},
};
use fastproc_testbed::{alone, gate, needs, own_process, wait_until};
use proptest::{prelude::*, test_runner::TestRunner};

const FIRST_USER: u32 = 54_500;
const USERS: usize = 3;
const BYSTANDER: u32 = 54_590;
/// How often the service may be given a CPU before the bystander is answered.
const MOST_SLICES: u64 = 500;

/// What a user does.
#[derive(Clone, Debug)]
enum Act {
    Connect,
    /// Sends a request on one of its connections.
    Ask(usize, Request),
    /// Sends any bytes, or a request with words of any value.
    Send(usize, Vec<u8>),
    /// Receives the answer on one of them, and keeps its descriptor.
    Receive(usize),
    Close(usize),
    /// Drops everything that it has kept.
    Forget,
}

fn acts() -> impl Strategy<Value = Act> {
    let op = prop_oneof![
        4 => Just(Op::Snapshot),
        1 => Just(Op::Hello),
        1 => Just(Op::Layout),
        1 => Just(Op::Status),
        1 => Just(Op::Exits),
        1 => Just(Op::Cgroups),
        1 => Just(Op::Files),
    ];
    let age = prop_oneof![Just(0), Just(1_000_000_u64), Just(u64::MAX), any::<u64>()];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let ask = (0..6_usize, op, any::<u32>(), age, any::<u64>(), flags).prop_map(
        |(at, op, groups, max_age_ns, number, (cmdline, exe, exits))| {
            let mut texts = Texts::empty();
            texts.set(Texts::CMDLINE, cmdline);
            texts.set(Texts::EXE, exe);
            let asked = Request {
                op,
                groups: groups & groups_of(op),
                max_age_ns,
                texts,
                texts_max_age_ns: number,
                exits,
                exits_after: number,
                ..request(op, Duration::ZERO)
            };
            Act::Ask(at, asked)
        },
    );
    let near = (
        prop::array::uniform13(any::<u64>()),
        0..7_u64,
        any::<bool>(),
    );
    let near = near.prop_map(|(mut words, op, small)| {
        (words[0], words[1]) = (1, op);
        if small {
            words[2..].iter_mut().for_each(|word| *word &= 0xfff);
        }
        wire::to_bytes(&words)
    });
    let bytes = prop_oneof![prop::collection::vec(any::<u8>(), 1..300), near];
    prop_oneof![
        2 => Just(Act::Connect),
        8 => ask,
        2 => (0..6_usize, bytes).prop_map(|(at, bytes)| Act::Send(at, bytes)),
        6 => (0..6_usize).prop_map(Act::Receive),
        1 => (0..6_usize).prop_map(Act::Close),
        1 => Just(Act::Forget),
    ]
}

fn groups_of(op: Op) -> u32 {
    match op {
        Op::Cgroups => cgroups::Fields::all().bits(),
        Op::Files => files::Fields::all().bits(),
        _ => Fields::all().bits(),
    }
}

fn play(path: &std::path::Path, acts: &[Act]) {
    let (mut raws, mut kept) = (Vec::<(Raw, bool)>::new(), Vec::new());
    for act in acts {
        match act {
            Act::Connect if raws.len() < 6 => {
                raws.push((Raw::open(path).expect("the service listens"), false));
            }
            // A second request before the answer ends the connection, and may fail if it has ended.
            Act::Ask(at, asked) => {
                if let Some((raw, waits)) = raws.get_mut(*at) {
                    *waits |= raw.send(*asked).is_ok();
                }
            }
            Act::Send(at, bytes) => {
                if let Some((raw, waits)) = raws.get_mut(*at) {
                    *waits |= raw.send_bytes(bytes).is_ok();
                }
            }
            Act::Receive(at) => {
                if let Some((raw, waits)) = raws.get_mut(*at)
                    && std::mem::take(waits)
                {
                    kept.extend(raw.receive().and_then(|(_, buffer)| buffer));
                }
            }
            Act::Close(at) if *at < raws.len() => drop(raws.swap_remove(*at)),
            Act::Forget => kept.clear(),
            _ => (),
        }
    }
}

/// Anonymous memory of this process, in which the service runs, in bytes.
fn anonymous() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kib.expect("a number") << 10
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("/proc").count()
}

#[test]
fn whatever_users_send_a_bystander_is_answered_and_the_service_stays_small() {
    needs!(
        gate::bpf(),
        own_process(whatever_users_send_a_bystander_is_answered_and_the_service_stays_small)
    );
    let _alone = alone();
    common::raise_descriptors();
    let mut settings = settings(None);
    // Bytes that a user may hold: some snapshots, however many processes there are.
    let most = (2 << 20).max(common::processes() * (8 << 10));
    settings.memory_of_user = most;
    let served = Served::start_with("users", &settings);
    let path = served.path();
    let (mut own, mut its): (Turn, Turn) = turns();
    let bystander: Child = in_child(|| {
        become_user(BYSTANDER);
        let raw = Raw::open(&path).expect("the service listens");
        while its.number() == 1 {
            let asked = request(Op::Snapshot, Duration::ZERO);
            let (reply, _) = raw.ask(asked).expect("an answer");
            its.tell(u32::from(reply.status == Status::Ok));
        }
    });
    // Memory and descriptors grow with the first complete snapshot.
    let root = Raw::open(&path).expect("the service listens");
    for exits in [false, true] {
        let all = Request {
            groups: Fields::all().bits(),
            texts: Texts::all(),
            exits,
            ..request(Op::Snapshot, Duration::ZERO)
        };
        let (reply, _) = root.ask(all).expect("an answer");
        assert_eq!(reply.status, Status::Ok);
    }
    for groups in [cgroups::Fields::CPU, cgroups::Fields::PRESSURE] {
        let all = Request {
            groups: groups.bits(),
            ..request(Op::Cgroups, Duration::ZERO)
        };
        // Not everywhere is there a hierarchy.
        root.ask(all).expect("an answer");
    }
    for groups in 0..4 {
        let all = Request {
            groups,
            ..request(Op::Files, Duration::ZERO)
        };
        let (reply, _) = root.ask(all).expect("an answer");
        assert_eq!(reply.status, Status::Ok);
    }
    drop(root);
    let (memory, open) = (anonymous(), descriptors());
    let own = RefCell::new(&mut own);
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(40)
    };
    let plays = prop::collection::vec(prop::collection::vec(acts(), 1..40), USERS);
    let ran = TestRunner::new(config).run(&plays, |plays| {
        let users: Vec<Child> = plays
            .iter()
            .enumerate()
            .map(|(user, acts)| {
                in_child(|| {
                    become_user(FIRST_USER + user as u32);
                    play(&path, acts);
                })
            })
            .collect();
        for _ in 0..3 {
            let mut own = own.borrow_mut();
            let before = served.slices();
            own.tell(1);
            prop_assert_eq!(own.number(), 1, "the bystander is served");
            let slices = served.slices() - before;
            prop_assert!(slices < MOST_SLICES, "it waits for {} slices", slices);
        }
        for user in users {
            user.join();
        }
        let grown = anonymous().saturating_sub(memory);
        prop_assert!(grown < (64 << 20), "it has grown by {} bytes", grown);
        let more = descriptors().saturating_sub(open);
        let buffers = (USERS + 6) * most / (128 << 10);
        prop_assert!(more < USERS * 6 + buffers + 64, "{} more descriptors", more);
        Ok(())
    });
    ran.expect("it bears all of them");
    own.borrow_mut().tell(0);
    bystander.join();
    wait_until("nothing is kept or lent", || {
        served.status("/buffers/kept") + served.status("/buffers/lent") == 0
    });
    wait_until("nobody is there", || served.status("/exits/readers") == 0);
}
