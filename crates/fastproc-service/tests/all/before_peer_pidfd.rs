//! Kernels before 6.5 cannot name the process that has connected, so the service identifies it by its requests. A
//! process that tries to pass for another one, by passing the connection on or by its pid, gets nothing.
//!
//! One test at a time, since they fork.

use std::{
    os::fd::{AsFd, AsRawFd},
    time::Duration,
};

use crate::common::{Child, Raw, Served, as_user, become_user, in_child, request, settings, turns};
use fastproc::{
    Fields, SourceKind,
    source::service::{
        Error, Exits,
        wire::{self, Op, Status},
    },
};
use fastproc_service::Settings;
use fastproc_testbed::{alone, gate, needs};
use nix::{
    libc,
    sys::socket::{MsgFlags, UnixAddr, recv},
    unistd::Pid,
};

const NOBODY: u32 = 65534;
const YOUNG: Duration = Duration::from_secs(3600);

fn without(source: Option<SourceKind>) -> Settings {
    let mut settings = settings(source);
    settings.peer_pidfd = false;
    settings
}

fn status(raw: &Raw, op: Op) -> Status {
    raw.ask(request(op, YOUNG)).expect("an answer").0.status
}

#[test]
fn a_user_is_served_as_on_newer_kernels_and_root_is_not() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start_with("without-pidfd", &without(None));
    let builder = served
        .builder()
        .fields(Fields::LAYOUT | Fields::IO | Fields::CREDENTIALS);
    let path = served.path();
    let of_root = std::process::id();
    let error = builder.clone().open().expect_err("it is root");
    assert!(error.to_string().contains("Linux 6.5"), "{error}");
    let raw = Raw::open(&path).expect("the service listens");
    for op in [Op::Hello, Op::Snapshot, Op::Exits] {
        assert_eq!(status(&raw, op), Status::NoPeer);
    }
    as_user(NOBODY, || {
        let mut own = std::process::Command::new("sleep");
        let mut own = own.arg("600").spawn().expect("the program starts");
        // Until it has executed sleep, no user may trace it.
        let stat = format!("/proc/{}/stat", own.id());
        fastproc_testbed::wait_until("sleep rests", || {
            std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains("(sleep) S "))
        });
        let mut collector = builder.open().expect("the service answers");
        let mut seen = Vec::new();
        for pid in [own.id(), of_root] {
            let snapshot = collector.snapshot().expect("the service answers");
            let process = snapshot.get(pid).expect("the process is shown");
            let of_tracers = (process.layout().is_some(), process.io().is_some());
            seen.push((snapshot.source_of(process), of_tracers));
        }
        own.kill().expect("a child");
        own.wait().expect("a child");
        let by = SourceKind::Service;
        assert_eq!(seen, [(by, (true, true)), (by, (false, false))]);
    });
}

#[test]
fn the_first_request_proves_nothing_and_the_next_does() {
    let _alone = alone();
    needs!(gate::root());
    let served = Served::start_with("first-request", &without(Some(SourceKind::Procfs)));
    let path = served.path();
    as_user(NOBODY, || {
        for first in [Op::Snapshot, Op::Exits] {
            let raw = Raw::open(&path).expect("the service listens");
            assert_eq!(status(&raw, first), Status::NoPeer);
            assert_eq!(status(&raw, Op::Snapshot), Status::Ok);
            assert_eq!(status(&raw, Op::Hello), Status::Ok);
        }
        let raw = Raw::open(&path).expect("the service listens");
        assert_eq!(status(&raw, Op::Hello), Status::Ok);
        assert_eq!(status(&raw, Op::Snapshot), Status::Ok);
        // A reader that begins with another request repeats it. Not every kernel can record exits.
        let exits = Exits::open(&path);
        assert!(matches!(exits, Ok(_) | Err(Error::NoExits)), "{exits:?}");
    });
    // A process whose ids are not all the same is not served.
    in_child(|| {
        use rustix::{process::Uid, thread};
        let [nobody, root] = [NOBODY, 0].map(Uid::from_raw);
        thread::set_thread_res_uid(nobody, nobody, root).expect("root may change its user");
        let raw = Raw::open(&path).expect("the service listens");
        for op in [Op::Hello, Op::Snapshot] {
            assert_eq!(status(&raw, op), Status::Credentials);
        }
    })
    .join();
}

#[test]
fn requests_that_are_sent_before_it_is_known_who_has_connected_are_refused() {
    let _alone = alone();
    needs!(gate::root());
    let mut served = Served::start_with("sent-before", &without(Some(SourceKind::Procfs)));
    served.stop();
    let (mut serve, mut sent) = turns();
    let listener = fastproc_service::bind(&served.path()).expect("nobody listens");
    let path = served.path();
    let reader = in_child(|| {
        become_user(NOBODY);
        let raw = Raw::open(&path).expect("the service listens");
        for op in [Op::Hello, Op::Snapshot] {
            raw.send(request(op, YOUNG)).expect("there is room");
        }
        sent.give();
        let (first, _) = raw.receive().expect("an answer");
        assert_eq!(first.status, Status::NoPeer);
        // The service may have closed the connection: no request was due before this answer.
        if let Some((second, _)) = raw.receive() {
            assert_eq!(second.status, Status::NoPeer);
        }
    });
    serve.wait();
    served.serve(listener, &without(Some(SourceKind::Procfs)));
    reader.join();
}

#[test]
fn another_process_that_gets_the_number_is_not_taken_for_who_has_connected() {
    let _alone = alone();
    needs!(gate::root());
    let mut served = Served::start_with("same-number", &without(Some(SourceKind::Procfs)));
    // What the first request is, and whether another one waits behind it when the service begins.
    for queued in [
        &[][..],
        &[Op::Hello],
        &[Op::Snapshot],
        &[Op::Hello, Op::Snapshot],
    ] {
        served.stop();
        let listener = fastproc_service::bind(&served.path()).expect("nobody listens");
        let raw = Raw::unconnected().expect("a socket");
        let address = UnixAddr::new(&served.path()).expect("a path");
        let maker = in_child(|| {
            become_user(NOBODY);
            raw.connect(&address).expect("the service listens");
            for &op in queued {
                raw.send(request(op, YOUNG)).expect("there is room");
            }
        });
        let number = maker.0;
        maker.join();
        let (mut go_on, mut wait) = turns();
        let second = with_number(number, || {
            become_user(NOBODY);
            wait.give();
            wait.wait();
        });
        // Until then root has the process.
        go_on.wait();
        served.serve(listener, &without(Some(SourceKind::Procfs)));
        let mut answers: Vec<Status> = Vec::new();
        for _ in queued {
            answers.extend(raw.receive().map(|(reply, _)| reply.status));
        }
        // Its first request is not from the process that has the pid now, and shows no process.
        match queued {
            [] => (),
            [Op::Hello] => assert_eq!(answers, [Status::Ok]),
            [Op::Snapshot] => assert_eq!(answers, [Status::NoPeer]),
            _ => assert!(
                answers.iter().all(|&status| status == Status::NoPeer),
                "{answers:?}"
            ),
        }
        // Root made this socket, but has another pid. A refusal stays.
        let expected = if queued.len() == 2 {
            Status::NoPeer
        } else {
            Status::NotYours
        };
        if queued.len() < 2 {
            for _ in 0..3 {
                // The first request pins the process that has the pid.
                let answer = status(&raw, Op::Snapshot);
                assert!(answer == expected || answer == Status::NoPeer, "{answer:?}");
            }
        }
        go_on.give();
        second.join();
        // A third process gets the pid, and asks.
        let asks = wire::to_bytes(&request(Op::Snapshot, YOUNG).to_words());
        let third = with_number(number, || {
            become_user(NOBODY);
            let mut answer = [0; 16];
            if raw.send_bytes(&asks).is_ok() {
                let socket = raw.as_fd().as_raw_fd();
                let len =
                    recv(socket, &mut answer, MsgFlags::empty()).expect("an answer or the end");
                let status = u64::from_ne_bytes(answer[8..].try_into().expect("eight bytes"));
                // By now the pidfd refers to no process.
                let refused = [Status::NoPeer, Status::Namespace].map(|status| status as u64);
                assert!(len == 0 || refused.contains(&status));
            }
        });
        third.join();
    }
}

/// As `in_child`, with this unused pid. The child must not allocate, since another thread may hold the lock.
fn with_number(number: Pid, run: impl FnOnce()) -> Child {
    let numbers = [number.as_raw()];
    // SAFETY: an all-zero clone_args requests what fork(2) does.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.set_tid = numbers.as_ptr() as u64;
    arguments.set_tid_size = 1;
    let size = size_of::<libc::clone_args>();
    // SAFETY: as fork(2); what the child does takes no lock that another thread may hold.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size) } {
        0 => {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            // SAFETY: ends this process without running what the test's would.
            unsafe { libc::_exit(i32::from(outcome.is_err())) }
        }
        child if child > 0 => Child(Pid::from_raw(child as i32)),
        _ => panic!("{}", std::io::Error::last_os_error()),
    }
}
