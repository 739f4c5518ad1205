//! What a service that is open cannot do any more.

mod common;

use std::{
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::unix::net::{UnixDatagram, UnixStream},
    process::Command,
};

use common::{Served, in_child, settings};
use fastproc::SourceKind;
use fastproc_testbed::{Folder, alone, gate};
use nix::libc;

#[test]
fn it_executes_nothing_and_writes_no_file() {
    let _alone = alone();
    let folder = Folder::new("confine");
    let (there, new) = (folder.join("there"), folder.join("new"));
    fs::write(&there, "as it was").expect("a folder of ours");
    let before = |denied: bool| {
        let kind = if denied {
            Err(ErrorKind::PermissionDenied)
        } else {
            Ok(())
        };
        let opened = OpenOptions::new().write(true).open(&there);
        assert_eq!(opened.map(drop).map_err(|error| error.kind()), kind);
        let opened = OpenOptions::new().read(true).append(true).open(&there);
        assert_eq!(opened.map(drop).map_err(|error| error.kind()), kind);
        let made = File::create(&new).map(drop).map_err(|error| error.kind());
        assert_eq!(made, kind);
        let ran = Command::new("true").status();
        assert_eq!(ran.map(drop).map_err(|error| error.kind()), kind);
        // SAFETY: it changes nothing; without a process of this number it fails in another way.
        let traced = unsafe { libc::ptrace(libc::PTRACE_DETACH, i32::MAX, 0, 0) };
        assert_eq!(traced, -1);
        let error = std::io::Error::last_os_error();
        let expected = if denied { libc::EPERM } else { libc::ESRCH };
        assert_eq!(error.raw_os_error(), Some(expected));
    };
    in_child(|| before(false)).join();
    fs::write(&there, "as it was").expect("a folder of ours");
    fs::remove_file(&new).expect("it was made");
    in_child(|| {
        // Every thread has it, those that were there as well.
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            told.recv().expect("it is told");
            File::create("/dev/null").is_err()
        });
        fastproc_service::confine().expect("the kernel can");
        before(true);
        tell.send(()).expect("it waits");
        assert!(thread.join().expect("it has not panicked"));
        assert_eq!(fs::read(&there).expect("to read it may"), b"as it was");
        let status = fs::read_to_string("/proc/self/status").expect("it may");
        assert!(status.contains("\nSeccomp:\t2\n"), "{status}");
    })
    .join();
    assert!(!new.exists());
    gate::ran();
}

#[test]
fn who_needs_descriptors_alone_opens_none() {
    in_child(|| {
        let connect = || UnixDatagram::unbound().map(drop);
        File::open("/dev/null").expect("it may");
        connect().expect("it may");
        fastproc_service::confine_to_descriptors().expect("the kernel can");
        let error = File::open("/dev/null").expect_err("to open it must not");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        let error = connect().expect_err("sockets neither");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        Command::new("true").status().expect_err("nor programs");
        // What it has goes on, and threads are no processes.
        let (mut one, mut other) = UnixStream::pair().expect("it reaches nobody");
        std::thread::spawn(move || one.write_all(b"x").expect("it may"));
        other.read_exact(&mut [0]).expect("it may");
    })
    .join();
    gate::ran();
}

#[test]
fn it_serves_as_before() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    for source in [None, Some(SourceKind::Procfs)] {
        let mut served = Served::start("confined", source);
        served.stop();
        in_child(|| {
            let listener = fastproc_service::bind(&served.path()).expect("nobody listens");
            let service = fastproc_service::Service::open(listener, &settings(source));
            let service = service.expect("it can read");
            fastproc_service::confine().expect("the kernel can");
            served.run(service);
            let mut collector = served.builder().open().expect("it is served");
            let own = std::process::id();
            for _ in 0..3 {
                let snapshot = collector.snapshot().expect("it is served");
                assert!(snapshot.get(own).is_some());
            }
            drop(collector);
            served.stop();
        })
        .join();
    }
}
