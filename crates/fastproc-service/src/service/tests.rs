//! Turns over waiting requests: how often each request is considered.

use std::{os::fd::AsFd, sync::mpsc, time::Duration};

use fastproc::{
    Fields, Texts as Kinds,
    source::service::wire::{Op, Request, Status},
};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

use super::*;
use crate::{buffers::Contents, peer::Known, reading::tests::held_at, view::View};

const USER: u32 = 54_321;
const WAITING: u64 = 100;

fn seqpacket() -> (OwnedFd, OwnedFd) {
    let flags = SockFlag::SOCK_NONBLOCK;
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).expect("two sockets")
}

/// A service, and the other ends of connections that have each requested a snapshot with these texts.
fn service(texts: Kinds, texts_timeout: Duration) -> (Service, Vec<OwnedFd>) {
    let settings = Settings {
        source: Some(SourceKind::Procfs),
        texts_timeout,
        ..Settings::default()
    };
    let mut service = Service::open(seqpacket().0, &settings).expect("it can read");
    let mut others = Vec::new();
    for client in FIRST_CLIENT..FIRST_CLIENT + WAITING {
        let (own, other) = seqpacket();
        others.push(other);
        ask(&mut service, own, (client, USER), texts);
    }
    (service, others)
}

/// Lets a user wait for a snapshot with these texts.
fn ask(service: &mut Service, socket: OwnedFd, (client, uid): (u64, u32), texts: Kinds) {
    service.clients.insert(
        client,
        Client {
            socket,
            uid,
            account: uid,
            peer: Known::Nothing,
            lent: None,
            last: Contents::default(),
            exits: None,
            waits: true,
            may_pass: false,
        },
    );
    service.waiting.push(Waiting {
        client,
        view: View::of_user(uid),
        field_set: 0,
        request: Request {
            groups: Fields::TOP.bits(),
            texts,
            // A different age for each, so that they do not share a snapshot.
            texts_max_age_ns: client,
            ..Request::new(Op::Snapshot)
        },
        came: Instant::now(),
    });
}

fn answered(others: &[OwnedFd]) -> usize {
    let has_answer = |socket: &&OwnedFd| {
        let mut bytes = [0; 8];
        rustix::io::read(socket.as_fd(), &mut bytes).is_ok()
    };
    others.iter().filter(has_answer).count()
}

/// A reading for this user that ends when the other end of the channel is dropped.
fn reading_for(service: &mut Service, uid: u32) -> mpsc::Sender<()> {
    let (reading, release) = held_at(3);
    service
        .jobs
        .push(Job::without_clients(View::of_user(uid), reading));
    release
}

#[test]
fn all_requests_of_a_user_over_its_budget_are_refused_in_one_turn() {
    let (mut service, others) = service(Kinds::empty(), Duration::from_secs(3600));
    let later = Instant::now() + Duration::from_secs(3600);
    service.budget.spend(USER, Duration::from_secs(3600), later);
    service.turn();
    assert_eq!(answered(&others), others.len());
    assert!(service.waiting.is_empty() && !service.can_go_on);
}

#[test]
fn clients_that_wait_for_texts_are_checked_when_a_reading_changes() {
    let (mut service, others) = service(Kinds::CMDLINE, Duration::from_secs(3600));
    let release = reading_for(&mut service, USER);
    service.turn();
    assert_eq!(service.parked.len(), others.len());
    assert!(service.waiting.is_empty() && !service.can_go_on);
    // The job that they wait for is gone, but no reading was reported to have ended.
    service.jobs.clear();
    service.turn();
    assert_eq!(service.parked.len(), others.len());
    service.jobs_changed = true;
    service.turn();
    assert!(service.parked.len() < others.len());
    drop(release);
}

#[test]
fn a_client_that_waited_its_limit_is_answered_without_texts() {
    let (mut service, others) = service(Kinds::CMDLINE, Duration::from_secs(3600));
    let releases: Vec<_> = (0..4).map(|at| reading_for(&mut service, at)).collect();
    service.turn();
    assert_eq!(service.parked.len(), others.len());
    let jobs = std::mem::take(&mut service.jobs);
    assert!(service.parked.deadline().is_some());
    assert_eq!(service.next_deadline(), service.parked.deadline());
    service.jobs = jobs;
    // As if they had come an hour ago.
    service.texts_timeout = Duration::ZERO;
    let mut waiting = service.parked.take_all();
    service.waiting.append(&mut waiting);
    while service.can_go_on || !service.waiting.is_empty() {
        service.turn();
    }
    assert_eq!((answered(&others), service.parked.len()), (others.len(), 0));
    drop(releases);
}

/// A user with many waiting requests had work done in each turn, before users that came later.
#[test]
fn the_user_who_waited_longest_is_served_first() {
    const BYSTANDER: u32 = USER + 1;
    let (mut service, others) = service(Kinds::empty(), Duration::from_secs(3600));
    service.turn();
    assert_eq!((answered(&others), service.can_go_on), (1, true));
    let (own, other) = seqpacket();
    let client = FIRST_CLIENT + WAITING;
    ask(&mut service, own, (client, BYSTANDER), Kinds::empty());
    while answered(std::slice::from_ref(&other)) == 0 {
        service.turn();
    }
    let buffer = |service: &Service, client: u64| service.clients[&client].lent;
    let own = buffer(&service, client).expect("it was answered with one");
    let lent = (FIRST_CLIENT..client).filter_map(|client| buffer(&service, client));
    // Ids are given in the order in which buffers are made.
    assert_eq!(lent.filter(|&of_user| of_user < own).count(), 1);
}

#[test]
fn nothing_is_read_for_a_while_from_who_asks_too_much() {
    let (mut service, others) = service(Kinds::empty(), Duration::from_secs(3600));
    service.waiting.clear();
    let tokens: Vec<u64> = service.clients.keys().copied().collect();
    for (token, other) in tokens.iter().zip(&others) {
        let client = service
            .clients
            .get_mut(token)
            .expect("the client is connected");
        client.waits = false;
        let client = &service.clients[token];
        let watched = service.watch(client.socket.as_fd(), *token, EventFlags::IN);
        watched.expect("the kernel has memory");
        rustix::io::write(other, b"not a request").expect("it is connected");
    }
    let reported = |service: &Service| {
        let mut events = Vec::with_capacity(EVENTS);
        let spare = rustix::buffer::spare_capacity(&mut events);
        epoll::wait(&service.epoll, spare, Some(&Timespec::default()))
            .expect("epoll can be waited on");
        events
    };
    let now = Instant::now();
    service
        .request_costs
        .hold(USER, now + Duration::from_secs(3600));
    let events = reported(&service);
    assert_eq!(events.len(), others.len());
    service.handle(&events);
    assert_eq!(service.counted.requests, 0);
    assert!(reported(&service).is_empty(), "nothing wakes the service");
    service.request_costs.hold(USER, now);
    service.release_held();
    assert_eq!(reported(&service).len(), others.len());
}

/// By the ids of its user namespaces a user may appear as thousands of users, each within its limit.
#[test]
fn few_unidentified_clients_are_checked_at_a_time_and_none_that_left() {
    let (mut service, others) = service(Kinds::empty(), Duration::from_secs(3600));
    service.waiting.clear();
    let tokens: Vec<u64> = service.clients.keys().copied().collect();
    for (&token, other) in tokens.iter().zip(&others) {
        let client = service
            .clients
            .get_mut(&token)
            .expect("the client is connected");
        (client.waits, client.account) = (false, token as u32);
        service.unproven.insert(token);
        rustix::io::write(other, b"not a request").expect("it is connected");
    }
    let events = |flags| -> Vec<Event> {
        let event = |&token| Event {
            flags,
            data: EventData::new_u64(token),
        };
        tokens.iter().map(event).collect()
    };
    service.handle(&events(EventFlags::IN));
    assert_eq!(service.counted.requests, UNKNOWN as u64);
    service.handle(&events(EventFlags::IN | EventFlags::HUP));
    assert_eq!(service.counted.requests, UNKNOWN as u64);
    assert!(service.clients.is_empty());
}

/// Lets a user wait for cgroups.
fn ask_for_cgroups(service: &mut Service, at: u64, uid: u32) -> OwnedFd {
    let client = FIRST_CLIENT + WAITING + at;
    let (own, other) = seqpacket();
    ask(service, own, (client, uid), Kinds::empty());
    let waiting = service.waiting.last_mut().expect("it waits");
    (waiting.request.op, waiting.request.groups) = (Op::Cgroups, 0);
    other
}

/// While a thread reads cgroups, processes are shown, and requests for cgroups wait without work.
#[test]
fn only_clients_that_ask_for_cgroups_wait_for_them() {
    let (mut service, mut others) = service(Kinds::empty(), Duration::from_secs(3600));
    let release = service.cgroups.thread.hold();
    let waiting = [0, 1, 2].map(|at| ask_for_cgroups(&mut service, at, USER + 1));
    while !service.waiting.is_empty() {
        service.finish_apart(Subject::Cgroups);
        service.turn();
    }
    assert_eq!(answered(&others), others.len());
    assert_eq!((answered(&waiting), service.cgroups.waiting.len()), (0, 3));
    assert!(!service.can_go_on);
    // A reader that goes takes its request along.
    service.close(FIRST_CLIENT + WAITING);
    assert_eq!(service.cgroups.waiting.len(), 2);
    others.clear();
    // As if the thread had panicked: another one reads for those who have waited.
    drop(release);
    service.finish_apart(Subject::Cgroups);
    assert_eq!(
        (service.waiting.len(), service.cgroups.waiting.len()),
        (2, 0)
    );
    service.turn();
    assert!(service.cgroups.thread.is_reading());
}

/// A user that often asks for processes waits no longer for cgroups.
#[test]
fn cgroups_are_read_first_for_whom_they_were_not_read_for_the_longest_time() {
    const ANOTHER: u32 = USER + 1;
    let (mut service, others) = service(Kinds::empty(), Duration::from_secs(3600));
    service.waiting.clear();
    // Cgroups were read for another user, and after that this user was shown processes.
    service.orders = [vec![ANOTHER], vec![], vec![USER]];
    let waiting = [(0, ANOTHER), (1, USER)].map(|(at, uid)| ask_for_cgroups(&mut service, at, uid));
    service.turn();
    let read_for = service.cgroups.reads_for.map(|waiting| waiting.uid());
    assert_eq!(read_for, Some(USER));
    assert_eq!(service.cgroups.waiting.len(), 1);
    assert_eq!(service.orders, [vec![ANOTHER, USER], vec![], vec![USER]]);
    drop((waiting, others));
}

fn refused(is_own: bool) -> crate::background::Done {
    crate::background::Done {
        generation: 0,
        answer: Err(Status::Busy),
        reason: None,
        is_own,
        was_known: false,
        read: Duration::ZERO,
        cpu: Duration::from_secs(3600),
    }
}

/// Each walk counts the descriptors of all processes, and anybody may have large tables.
#[test]
fn files_that_take_too_long_blame_no_user_and_cost_no_snapshot_of_processes() {
    let (mut service, others) = service(Kinds::empty(), Duration::from_secs(3600));
    for (at, is_own) in [(0, false), (1, true)] {
        service.waiting.clear();
        let other = ask_for_cgroups(&mut service, at, USER);
        service.files.reads_for = service.waiting.pop().map(|mut waiting| {
            waiting.request.op = Op::Files;
            waiting
        });
        let thread = service.files.thread.hold();
        let sent = thread.send((Box::default(), refused(is_own)));
        sent.expect("it is awaited");
        service.finish_apart(Subject::Files);
        assert_eq!(answered(&[other]), 1);
        assert_eq!(service.user_events.users().len(), usize::from(is_own));
        assert_eq!(service.counted.files_refused, 1);
    }
    let now = Instant::now();
    assert!(!service.files_budget.allows(USER, Duration::ZERO, now));
    assert!(service.budget.allows(USER, Duration::ZERO, now));
    drop(others);
}

/// That there are too many cgroups may be another user's doing.
#[test]
fn too_many_cgroups_blame_no_user() {
    let (mut service, others) = service(Kinds::empty(), Duration::from_secs(3600));
    service.waiting.clear();
    let other = ask_for_cgroups(&mut service, 0, USER);
    service.cgroups.reads_for = service.waiting.pop();
    let before = background::Cost {
        read: Duration::from_secs(1),
        answer: Duration::from_secs(2),
        bytes: 3,
    };
    service.costs.cgroups[1][0] = before;
    let thread = service.cgroups.thread.hold();
    let sent = thread.send((Box::default(), refused(false)));
    sent.expect("it is awaited");
    service.finish_apart(Subject::Cgroups);
    assert_eq!(answered(&[other]), 1);
    assert!(service.user_events.users().is_empty());
    assert_eq!(service.counted.cgroups_refused, 1);
    assert_eq!(service.costs.cgroups[1][0], before);
    // It has used up what it has for cgroups, and may ask for processes.
    let now = Instant::now();
    assert!(!service.cgroup_budget.allows(USER, Duration::ZERO, now));
    assert!(service.budget.allows(USER, Duration::ZERO, now));
    drop(others);
}
