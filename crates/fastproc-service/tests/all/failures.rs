//! Readers that misbehave, and services that fail: other readers are served, and no reader sees anything wrong.
//!
//! One test at a time: a forked child also has the sockets of the other tests, which would stay open.

use std::{
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use crate::common::{Raw, Served, in_child, raise_descriptors, request, settings, turns};
use fastproc::{
    Collector, Process, SourceKind,
    source::service::wire::{Op, Status},
};
use fastproc_service::{Service, bind};
use fastproc_testbed::{Folder, GUARD, alone, gate, needs, wait_for, wait_until};
use nix::sys::{
    signal::{self, Signal},
    socket::{SockFlag, accept4},
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const YOUNG: Duration = Duration::from_secs(3600);

fn hello(served: &Served) -> Status {
    let raw = served.connect();
    raw.ask(request(Op::Hello, YOUNG))
        .expect("it answers")
        .0
        .status
}

#[test]
fn a_client_that_never_reads_is_cut_off_and_delays_nobody() {
    let _alone = alone();
    needs!(gate::bpf());
    raise_descriptors();
    let served = Served::start("never", None);
    let silent: Vec<Raw> = (0..50).map(|_| served.connect()).collect();
    for raw in &silent {
        // Until the service closes the connection.
        while raw.send(request(Op::Snapshot, Duration::ZERO)).is_ok() {
            std::thread::yield_now();
        }
    }
    assert_eq!(hello(&served), Status::Ok);
    wait_until("all are cut off", || served.status("/cut_off_total") >= 50);
    drop(silent);
    wait_until("nothing is lent", || served.status("/buffers/lent") == 0);
}

/// Whether a reader waits to be accepted.
fn is_connected(listener: &OwnedFd) -> bool {
    let mut listener = [PollFd::new(listener, PollFlags::IN)];
    poll(&mut listener, Some(&Timespec::default())).expect("it can be asked") > 0
}

#[test]
fn where_nobody_answers_the_next_source_is_taken_after_one_wait() {
    let _alone = alone();
    let folder = Folder::new("hung");
    let path = folder.join("socket");
    let listener = bind(&path).expect("nobody listens there");
    let builder = Collector::builder().service_socket(Some(path.clone()));
    // It listens, and never answers.
    let hasty = builder.clone().service_timeout(Duration::from_millis(500));
    let mut waited = hasty.open().expect("there is another source");
    assert_ne!(waited.source(), SourceKind::Service);
    for _ in 0..20 {
        let snapshot = waited.snapshot().expect("it reads");
        assert!(snapshot.get(std::process::id()).is_some());
    }
    drop(waited);
    let accept = || accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC).ok();
    // SAFETY: the kernel has just made it for this process.
    let accept = || accept().map(|socket| unsafe { OwnedFd::from_raw_fd(socket) });
    while accept().is_some() {}
    // From here on a reader that waits for it would wait for longer than the test may last.
    let began = Instant::now();
    let builder = builder.service_timeout(8 * GUARD);
    // The first attempt fails, so that no reader has waited before.
    let mut collector = std::thread::scope(|scope| {
        scope.spawn(|| drop(wait_for("a reader", accept)));
        builder.clone().open().expect("there is another source")
    });
    assert_ne!(collector.source(), SourceKind::Service);
    // The reader asks it again, but does not wait: the request stays unread.
    wait_until("it is asked again", || {
        collector.snapshot().expect("it reads");
        assert_ne!(collector.source(), SourceKind::Service);
        is_connected(&listener)
    });
    for _ in 0..20 {
        collector.snapshot().expect("it reads");
        assert_ne!(collector.source(), SourceKind::Service);
    }
    // Until the queue is full, for which no reader waits.
    let mut waiting = Vec::new();
    let flags = SockFlag::SOCK_NONBLOCK;
    loop {
        let socket = nix::sys::socket::socket(
            nix::sys::socket::AddressFamily::Unix,
            nix::sys::socket::SockType::SeqPacket,
            flags,
            None,
        );
        let Ok(socket) = socket else { break };
        let address = nix::sys::socket::UnixAddr::new(&path).expect("a path");
        if nix::sys::socket::connect(socket.as_raw_fd(), &address).is_err() {
            break;
        }
        waiting.push(socket);
    }
    let mut other = builder.open().expect("there is another source");
    assert_ne!(other.source(), SourceKind::Service);
    other.snapshot().expect("it reads");
    drop(waiting);
    assert!(began.elapsed() < 8 * GUARD, "a reader waited");
    // Once the service runs, it answers the waiting readers.
    let settings = settings(Some(SourceKind::Procfs));
    let service = Service::open(listener, &settings).expect("it can read");
    let (stop, stopped) = UnixStream::pair().expect("a pair");
    let thread = std::thread::spawn(move || service.run(stopped.as_fd()));
    if rustix::process::geteuid().is_root() {
        wait_until("it goes back", || {
            collector.snapshot().expect("it reads");
            collector.source() == SourceKind::Service
        });
    }
    drop(stop);
    thread.join().expect("no panic").expect("it ends when told");
}

/// A snapshot that the service has kept for others may be older than what another source has shown meanwhile.
#[test]
fn no_snapshot_is_older_than_the_one_before() {
    let _alone = alone();
    needs!(gate::bpf());
    let mut served = Served::start("older", None);
    let builder = Collector::builder()
        .service_socket(Some(served.path()))
        .service_timeout(GUARD)
        .max_age(YOUNG);
    let mut collector = builder.clone().open().expect("there are sources");
    let mut last_ns = 0;
    let mut look = |collector: &mut Collector| {
        let snapshot = collector.snapshot().expect("some source answers");
        let began_ns = snapshot.stats().boottime_ns;
        assert!(began_ns >= last_ns, "{} ns older", last_ns - began_ns);
        last_ns = began_ns;
        began_ns
    };
    for _ in 0..2 {
        look(&mut collector);
        assert_eq!(collector.source(), SourceKind::Service);
        served.stop();
        look(&mut collector);
        assert_ne!(collector.source(), SourceKind::Service);
        served.restart(None);
        let mut other = builder.clone().open().expect("the service answers");
        let kept_ns = other
            .snapshot()
            .expect("the service answers")
            .stats()
            .boottime_ns;
        assert_eq!(other.source(), SourceKind::Service);
        look(&mut collector);
        // On a loaded machine it may go back at once: no other source has shown anything newer.
        let went_back_at_once = collector.source() == SourceKind::Service;
        wait_until("it goes back", || {
            look(&mut collector);
            collector.source() == SourceKind::Service
        });
        let seen_ns = look(&mut collector);
        assert!(
            went_back_at_once || seen_ns > kept_ns,
            "another source showed what is newer"
        );
    }
}

/// `FASTPROC_KILLS` sets the number; a release is tested with a thousand.
#[test]
fn a_service_that_is_killed_while_it_answers_leaves_nothing_wrong() {
    let _alone = alone();
    needs!(gate::bpf());
    let kills = std::env::var("FASTPROC_KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    let kills: u64 = kills.unwrap_or(20);
    let folder = Folder::new("killed");
    let path = folder.join("socket");
    let own = std::process::id();
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
    let builder = Collector::builder()
        .service_socket(Some(path.clone()))
        .service_timeout(GUARD);
    // A collector that lives through all services, and one for each service.
    let mut lasting = builder.clone().open().expect("there are sources");
    let (mut by_service, mut by_others) = (0, 0);
    // How long an answer takes, so that the service is killed at any point of it.
    let mut answer = Duration::ZERO;
    for round in 0..kills {
        let (mut told, mut its) = turns();
        let service = in_child(|| {
            let settings = settings(Some(SourceKind::Procfs));
            let listener = bind(&path).expect("nobody listens there any more");
            let service = Service::open(listener, &settings).expect("it can read");
            let (_stop, stopped) = UnixStream::pair().expect("a pair");
            its.give();
            let _ = service.run(stopped.as_fd());
        });
        told.wait();
        let mut collector = builder.clone().open().expect("there are sources");
        if round == 0 {
            let began = Instant::now();
            collector.snapshot().expect("some source answers");
            answer = began.elapsed();
        }
        let mut check = |collector: &mut Collector| {
            let snapshot = collector.snapshot().expect("some source answers");
            let process = snapshot.get(own).expect("this process lives");
            assert_eq!(process.identity().ppid, parent);
            assert!(snapshot.iter().is_sorted_by_key(Process::pid));
            match collector.source() {
                SourceKind::Service => by_service += 1,
                _ => by_others += 1,
            }
            collector.source()
        };
        // In every other round it has answered before it is killed; in the others it may be at its first answer.
        if round % 2 == 0 {
            assert_eq!(check(&mut collector), SourceKind::Service);
        }
        let pid = service.0;
        let delay = answer.mul_f64((round * 7919 % 3000) as f64 / 1000.0);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(delay);
            signal::kill(pid, Signal::SIGKILL).expect("the child is killed");
        });
        while !killer.is_finished() {
            check(&mut collector);
        }
        killer.join().expect("it kills");
        drop(service);
        while check(&mut collector) == SourceKind::Service {}
        check(&mut lasting);
    }
    println!("{by_service} snapshots by the service, {by_others} by others");
    assert!(by_service >= kills / 2 && by_others >= kills);
}

#[test]
fn a_service_that_nobody_uses_any_more_ends_when_it_is_told_to() {
    let _alone = alone();
    needs!(gate::bpf());
    let folder = Folder::new("idle");
    let path = folder.join("socket");
    let mut settings = settings(Some(SourceKind::Procfs));
    let idle_exit = Duration::from_millis(100);
    settings.idle_exit = Some(idle_exit);
    let listener = bind(&path).expect("nobody listens there");
    // Before it serves: without a connection it might have exited already.
    let raw = Raw::open(&path).expect("the service listens");
    let service = Service::open(listener, &settings).expect("it can read");
    let (_stop, stopped) = UnixStream::pair().expect("a pair");
    let thread = std::thread::spawn(move || service.run(stopped.as_fd()));
    for _ in 0..3 {
        std::thread::sleep(2 * idle_exit);
        let (reply, _) = raw.ask(request(Op::Hello, YOUNG)).expect("it stays");
        assert_eq!(reply.status, Status::Ok);
    }
    drop(raw);
    wait_until("the end of the service", || thread.is_finished());
    thread.join().expect("no panic").expect("it ends by itself");
}
