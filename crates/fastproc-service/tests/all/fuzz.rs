//! A reader against a service that follows no rule. `hostile_users` tests a service against such readers.

use std::{
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    sync::mpsc,
};

use crate::common::receive_guard;
use fastproc::{
    Collector, Details, Fields, SourceKind, Texts, layout, message,
    source::service::wire::{self, Part, Reply, Request, Status, part},
};
use fastproc_service::bind;
use fastproc_testbed::{Folder, GUARD};
use nix::sys::socket::{MsgFlags, SockFlag, accept4, recv, setsockopt, sockopt::ReceiveTimeout};
use proptest::{prelude::*, test_runner::TestRunner};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

/// The answer of a service that follows no rule.
#[derive(Clone, Debug)]
struct Lie {
    /// Words of the answer that are replaced, and their replacements.
    words: Vec<(usize, u64)>,
    parts: Vec<(u64, u64)>,
    file: Option<(u64, bool)>,
    fill: u64,
    bytes: Option<Vec<u8>>,
}

fn lies() -> impl Strategy<Value = Lie> {
    let small = || prop_oneof![0..64_u64, 0..100_000_u64, any::<u64>()];
    (
        prop::collection::vec((0..Reply::WORDS, small()), 0..3),
        prop::collection::vec((small(), small()), part::COUNT),
        prop::option::weighted(0.9, (0..300_000_u64, prop::bool::weighted(0.9))),
        any::<u64>(),
        prop::option::weighted(0.1, prop::collection::vec(any::<u8>(), 0..400)),
    )
        .prop_map(|(words, parts, file, fill, bytes)| Lie {
            words,
            parts,
            file,
            fill,
            bytes,
        })
}

const STRIDES: [u64; part::COUNT] = [
    size_of::<fastproc::record::Record>() as u64,
    size_of::<fastproc::record::ThreadRecord>() as u64,
    8,
    4,
    24,
    1,
    size_of::<fastproc::record::ExitRecord>() as u64,
    1,
];

/// A file of pseudorandom words.
fn file(bytes: u64, sealed: bool, fill: u64) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(c"lie", flags).expect("memory");
    ftruncate(&file, bytes).expect("memory");
    let mut word = fill;
    let words: Vec<u8> = (0..bytes / 8)
        .flat_map(|_| {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Small numbers are the ones that point somewhere.
            (word >> (word % 64)).to_ne_bytes()
        })
        .collect();
    rustix::io::pwrite(&file, &words, 0).expect("memory");
    if sealed {
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::SEAL)
            .expect("the file can be sealed");
    }
    file
}

/// Answers one reader after the other: the first request honestly, the others as the lie says.
fn lie(listener: &OwnedFd, lies: mpsc::Receiver<Lie>) {
    for lie in lies {
        let socket = accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC).expect("a reader");
        // SAFETY: the kernel has just made it for this process.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        setsockopt(&socket, ReceiveTimeout, &receive_guard()).expect("a socket");
        let mut first = true;
        let mut bytes = [0; Request::WORDS * 8];
        while recv(socket.as_raw_fd(), &mut bytes, MsgFlags::empty()).is_ok_and(|len| len > 0) {
            let mut reply = Reply::empty(Status::Ok);
            (reply.exits_last, reply.exits_after) = (1, 1);
            let mut passed = None;
            let mut message;
            if first {
                message = wire::to_bytes(&reply.to_words());
            } else {
                reply.groups = u32::MAX;
                reply.layout = layout::id();
                reply.generation = 1;
                reply.exits_last = lie.fill;
                if let Some((bytes, sealed)) = lie.file {
                    let file = file(bytes, sealed, lie.fill);
                    reply.has_descriptor = true;
                    reply.buffer = 7;
                    reply.buffer_bytes = bytes;
                    passed = Some(file);
                }
                for (at, &(offset, count)) in lie.parts.iter().enumerate() {
                    let Some(&stride) = STRIDES.get(at) else {
                        continue;
                    };
                    let room = reply.buffer_bytes.saturating_sub(offset) / stride;
                    // Mostly sizes that fit. Processes that a reader must read itself take it long.
                    let room = if at == part::UNSURE { 50 } else { room };
                    let count = if count % 8 == 0 && at != part::UNSURE {
                        count
                    } else {
                        count % room.max(1)
                    };
                    reply.parts[at] = Part {
                        offset: offset & !7,
                        count,
                        stride,
                    };
                }
                let mut words = reply.to_words();
                for &(at, word) in &lie.words {
                    words[at] = word;
                }
                message = wire::to_bytes(&words);
                if let Some(bytes) = &lie.bytes {
                    message.clone_from(bytes);
                    message.push(0);
                }
            }
            first = false;
            let descriptor = passed.as_ref().map(AsFd::as_fd);
            let _ = message::send(&socket, &message, descriptor);
        }
    }
}

/// Reads everything of a snapshot.
fn look(collector: &mut Collector) -> usize {
    let mut details = Details::open(collector.host()).expect("/proc is there");
    let Ok(snapshot) = collector.snapshot() else {
        return 0;
    };
    let mut seen = 0;
    for process in snapshot.iter() {
        seen += process.name().len();
        seen += process.supplementary_groups().count();
        seen += process.nested_ids().count();
        seen += process.cpus_allowed(4).len();
        seen += process.mems_allowed(4).len();
        seen += usize::from(snapshot.get(process.pid()).is_some());
        if process.identity().is_kernel_thread() {
            seen += details.cmdline(process).map_or(0, |line| line.bytes.len());
        }
    }
    for exit in snapshot.exits().unwrap_or_default() {
        seen += exit.comm().len();
        seen += snapshot
            .exit_cmdline(exit)
            .map_or(0, |line| line.bytes.len());
    }
    seen + snapshot.threads_with_processes().count()
}

#[test]
fn a_reader_bears_any_service() {
    let folder = Folder::new("hostile");
    let path = folder.join("socket");
    let listener = bind(&path).expect("nobody listens there");
    rustix::io::ioctl_fionbio(&listener, false).expect("a socket");
    let (tell, told) = mpsc::channel();
    let thread = std::thread::spawn(move || lie(&listener, told));
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(300)
    };
    let seen = std::cell::Cell::new((0_usize, 0_usize));
    let ran = TestRunner::new(config).run(&lies(), |lie| {
        tell.send(lie).expect("the thread waits");
        let opened = Collector::builder()
            .source(Some(SourceKind::Service))
            .service_socket(Some(path.clone()))
            .fields(Fields::all())
            .texts(Texts::all())
            .exits(true)
            .service_timeout(GUARD)
            .open();
        let mut collector = opened.expect("the first answer is honest");
        let some = look(&mut collector) > 0;
        let (good, all) = seen.get();
        seen.set((good + usize::from(some), all + 1));
        Ok(())
    });
    ran.expect("nothing panics");
    let (looked, cases) = seen.get();
    println!("{looked} of {cases} are near enough to be looked at");
    assert!(
        looked * 20 >= cases,
        "only {looked} of {cases} are near enough to be looked at"
    );
    drop(tell);
    thread.join().expect("no panic");
}
