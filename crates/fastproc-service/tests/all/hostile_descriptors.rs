//! Attacks by descriptors that a user sends: closing the last descriptor of a file can block.

use std::{
    fs,
    io::{ErrorKind, IoSlice, Write},
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsFd, AsRawFd},
        unix::fs::PermissionsExt,
    },
    path::Path,
    time::Duration,
};

use crate::common::{Raw, Served, as_user, become_user, in_child, request, settings, turns};
use fastproc::source::service::wire::{self, Op, Status};
use fastproc_testbed::{alone, gate, needs};
use nix::{
    errno::Errno,
    libc,
    sys::socket::{
        AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, bind,
        listen, sendmsg, setsockopt, socket,
        sockopt::{Linger, PassCred},
    },
};

const ATTACKER: u32 = 54_640;
const BYSTANDER: u32 = 54_641;

/// A connection with data that is never acknowledged: closing it last takes an hour.
fn lingering() -> (TcpStream, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nonblocking(true).expect("a socket");
    let full = loop {
        if let Err(error) = stream.write(&[0; 1 << 12]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 3600,
    };
    setsockopt(&stream, Linger, &linger).expect("a socket");
    (stream, listener)
}

/// Sends a hello and a descriptor.
fn send_with(raw: &Raw, stream: &TcpStream) -> nix::Result<usize> {
    let bytes = wire::to_bytes(&request(Op::Hello, Duration::ZERO).to_words());
    let sent = [stream.as_raw_fd()];
    let control = [ControlMessage::ScmRights(&sent)];
    let parts = [IoSlice::new(&bytes)];
    let flags = MsgFlags::MSG_NOSIGNAL;
    sendmsg::<()>(raw.as_fd().as_raw_fd(), &parts, &control, flags, None)
}

fn bystander_is_served(path: &Path) {
    as_user(BYSTANDER, || {
        let raw = Raw::open(path).expect("the service listens");
        let (reply, _) = raw
            .ask(request(Op::Snapshot, Duration::ZERO))
            .expect("an answer");
        assert_eq!(reply.status, Status::Ok);
    });
}

/// As with systemd, which listens before the service starts: clients that connected then may send descriptors on any
/// kernel.
#[test]
fn a_descriptor_that_was_sent_before_the_service_began_delays_nobody() {
    let _alone = alone();
    needs!(gate::bpf());
    // The number of requests before the one with a descriptor: none, or two, the second of which ends the connection.
    for before in [0, 2] {
        let mut served = Served::stopped("descriptors");
        let path = served.path();
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let listener = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None);
        let listener = listener.expect("a socket");
        let address = UnixAddr::new(&path).expect("it is short");
        bind(listener.as_raw_fd(), &address).expect("nobody listens there");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).expect("its mode is set");
        setsockopt(&listener, PassCred, &true).expect("a socket");
        listen(&listener, Backlog::MAXCONN).expect("a socket");
        let (mut own, mut its) = turns();
        let attacker = in_child(|| {
            become_user(ATTACKER);
            let (stream, _listener) = lingering();
            let raw = Raw::open(&path).expect("the service listens");
            for _ in 0..before {
                raw.send(request(Op::Hello, Duration::ZERO))
                    .expect("the request is sent");
            }
            send_with(&raw, &stream).expect("nobody forbids it");
            drop(stream);
            its.give();
            its.wait();
            while raw.receive().is_some() {}
        });
        own.wait();
        served.serve(listener, &settings(None));
        bystander_is_served(&path);
        own.give();
        attacker.join();
        bystander_is_served(&path);
    }
}

#[test]
fn clients_that_send_descriptors_are_disconnected() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("descriptor", None);
    let path = served.path();
    as_user(ATTACKER, || {
        let (stream, _listener) = lingering();
        let raw = Raw::open(&path).expect("the service listens");
        if let Err(error) = send_with(&raw, &stream) {
            assert_eq!(error, Errno::EPERM);
        } else {
            // Before Linux 6.16.
            drop(stream);
            assert!(raw.receive().is_none(), "the connection is closed");
        }
    });
    bystander_is_served(&path);
}
