//! Readers that misbehave, and services that fail: other readers are served, and no reader sees anything wrong.
//!
//! One test at a time: a forked child also has the sockets of the other tests, which would stay open.

use std::{
    collections::HashMap,
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    time::{Duration, Instant},
};

use crate::common::{Raw, Served, in_child, raise_descriptors, request, settings, turns};
use fastproc::{
    Baseline, Collector, Fields, Process, SourceKind,
    record::TICK_NS,
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
    let raw = Raw::open(&served.path()).expect("the service listens");
    raw.ask(request(Op::Hello, YOUNG))
        .expect("it answers")
        .0
        .status
}

#[test]
fn five_hundred_readers_are_served_by_few_walks() {
    let _alone = alone();
    needs!(gate::bpf());
    raise_descriptors();
    let served = Served::start("many", None);
    let readers: Vec<Raw> = (0..500)
        .map(|_| Raw::open(&served.path()).expect("the service listens"))
        .collect();
    let before = served.status("/walks_total");
    for _ in 0..4 {
        for reader in &readers {
            reader
                .send(request(Op::Snapshot, YOUNG))
                .expect("the request is sent");
        }
        for reader in &readers {
            let (reply, descriptor) = reader.receive().expect("an answer");
            assert_eq!(reply.status, Status::Ok);
            assert!(reply.buffer != 0 && descriptor.is_some() && reply.parts[0].count > 0);
        }
    }
    let walks = served.status("/walks_total") - before;
    assert!(
        walks <= 1,
        "{walks} walks where one is young enough for all"
    );
    assert!(served.status("/buffers/lent") <= 2, "all read the same");
}

#[test]
fn a_client_that_never_reads_is_cut_off_and_delays_nobody() {
    let _alone = alone();
    needs!(gate::bpf());
    raise_descriptors();
    let served = Served::start("never", None);
    let silent: Vec<Raw> = (0..50)
        .map(|_| Raw::open(&served.path()).expect("the service listens"))
        .collect();
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

#[test]
fn the_buffer_of_a_stopped_reader_does_not_change() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("stopped", None);
    let (mut own, mut its) = turns();
    let builder = served.builder();
    let child = in_child(|| {
        let mut collector = builder.open().expect("the service answers");
        let snapshot = collector.snapshot().expect("the service answers");
        let records = || -> Vec<_> { snapshot.iter().map(|process| *process.record()).collect() };
        let before = records();
        its.give();
        its.wait();
        assert_eq!(before, records());
        collector.snapshot().expect("it goes on");
    });
    own.wait();
    signal::kill(child.0, Signal::SIGSTOP).expect("the signal is sent");
    let mut collector = served.builder().open().expect("the service answers");
    for _ in 0..50 {
        let snapshot = collector.snapshot().expect("others are served");
        assert!(snapshot.get(child.0.as_raw() as u32).is_some());
    }
    signal::kill(child.0, Signal::SIGCONT).expect("the signal is sent");
    own.give();
    child.join();
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

/// A reader that may choose its source always has an answer, and returns to the service.
#[test]
fn a_reader_survives_restarts_and_goes_back() {
    let _alone = alone();
    needs!(gate::bpf());
    // Forked before there is a service, so that this process does not have its socket too.
    let rests = in_child(|| {
        loop {
            std::thread::park();
        }
    });
    let mut served = Served::start("restarts", None);
    let pid = rests.0.as_raw() as u32;
    let builder = Collector::builder()
        .service_socket(Some(served.path()))
        .service_timeout(GUARD);
    let mut collector = builder
        .fields(Fields::all())
        .open()
        .expect("there are sources");
    let look = |collector: &mut Collector| {
        let snapshot = collector.snapshot().expect("some source answers");
        let process = snapshot.get(pid).expect("the process is shown");
        let record = process.record();
        (
            record.identity.start_ns,
            record.identity.ppid,
            (record.users, record.credentials),
            record.layout,
        )
    };
    let first = look(&mut collector);
    assert_eq!(collector.source(), SourceKind::Service);
    for _ in 0..3 {
        // A restart between two snapshots is not noticed.
        served.restart(None);
        assert_eq!(look(&mut collector), first);
        assert_eq!(collector.source(), SourceKind::Service);
        served.stop();
        for _ in 0..3 {
            assert_eq!(look(&mut collector), first);
            assert_ne!(collector.source(), SourceKind::Service);
        }
        served.restart(None);
        wait_until("it goes back", || {
            assert_eq!(look(&mut collector), first);
            collector.source() == SourceKind::Service
        });
    }
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

/// The sum of the reported changes is what a process did, whichever sources report them, exact ones or those that count
/// ticks, and whenever the service stops.
#[test]
fn a_change_of_source_is_no_share_and_no_rate() {
    let _alone = alone();
    needs!(gate::bpf());
    // Busy first, so that a time in ticks differs from the exact one.
    let busy_for = |time: Duration| {
        let began = Instant::now();
        while began.elapsed() < time {
            std::hint::spin_loop();
        }
    };
    let (mut told, mut rests) = turns();
    let rests = in_child(|| {
        busy_for(Duration::from_millis(37));
        rests.give();
        loop {
            std::thread::park();
        }
    });
    let works = in_child(|| {
        loop {
            busy_for(Duration::from_millis(3));
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    told.wait();
    wait_until("it rests", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", rests.0))
            .expect("/proc shows the process");
        stat.contains(") S ")
    });
    let [rests, works] = [&rests, &works].map(|child| child.0.as_raw() as u32);
    let mut served = Served::start("differences", None);
    let mut collector = Collector::builder()
        .service_socket(Some(served.path()))
        .service_timeout(GUARD)
        .fields(Fields::TOP | Fields::IO)
        .open()
        .expect("there are sources");
    let mut before = Baseline::default();
    let mut sources = Vec::new();
    // By pid: the CPU time at the start and at the end, and the sum of the reported changes between.
    let mut used = [(rests, None, 0, 0), (works, None, 0, 0)];
    // By pid: bytes read and written. Pages that were taken from a process are read again.
    let mut bytes = HashMap::new();
    let mut ended_ns = 0;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    for step in 0..24 {
        match step % 6 {
            2 => served.stop(),
            4 => served.restart((step % 4 == 0).then_some(SourceKind::Procfs)),
            _ => (),
        }
        if step % 6 == 4 {
            wait_until("it goes back", || {
                let _ = collector.snapshot().expect("some source answers");
                collector.source() == SourceKind::Service
            });
        }
        let snapshot = collector.snapshot().expect("some source answers");
        let source = snapshot.stats().source;
        // At least this much lies between two readings of a process.
        let apart_ns = snapshot.stats().kernel_boottime_ns() - ended_ns;
        ended_ns = snapshot.stats().kernel_end_ns();
        for change in before.changes(&snapshot).filter(|_| step > 0) {
            let at = used
                .iter_mut()
                .find(|(pid, ..)| *pid == change.process.pid());
            let Some((pid, _, _, sum)) = at else { continue };
            assert!(!change.born, "{source}");
            let used_ns = change.cpu_ns.expect("CPU times were asked for");
            *sum += used_ns;
            let share = change.cpu_share.expect("CPU times were asked for");
            // Times in ticks may exceed the time that passed.
            let most = (used_ns as f64 / apart_ns as f64 * 1.001).min(cpus);
            assert!(
                (0.0..=most).contains(&share),
                "{source}: a share of {share}, and {used_ns} ns in {apart_ns} ns or more"
            );
            let io = change.process.io().expect("I/O was asked for");
            let now = [io.read_bytes, io.write_bytes];
            let then = bytes.insert(*pid, now).unwrap_or(now);
            let rates = [change.read_bytes_per_second, change.write_bytes_per_second];
            for at in 0..2 {
                let rate = rates[at].expect("I/O was asked for");
                assert_eq!(rate > 0.0, now[at] > then[at], "{source}: {pid}, {rate}");
            }
        }
        for (pid, first, last, _) in &mut used {
            let cpu = snapshot.get(*pid).and_then(Process::cpu);
            let cpu = cpu.expect("/proc shows the process");
            *last = cpu.utime_ns + cpu.stime_ns;
            first.get_or_insert(*last);
        }
        before.set(&snapshot);
        sources.push(source);
        std::thread::sleep(Duration::from_millis(15));
    }
    let changes = sources.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes >= 7, "{sources:?}");
    for (pid, first, last, sum) in used {
        let grown = last - first.expect("it was seen");
        let most = grown + 2 * TICK_NS;
        assert!(
            (grown.saturating_sub(2 * TICK_NS)..=most).contains(&sum),
            "{pid}: {sum} ns instead of {grown}"
        );
    }
    assert!(
        used[0].3 <= TICK_NS,
        "it rests, and has used {} ns",
        used[0].3
    );
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
