//! The command lines that the service keeps match those of the kernel, whichever process changes them.

use std::{
    collections::HashMap,
    fs,
    io::{IoSlice, Read, Write},
    mem::offset_of,
    os::{
        fd::OwnedFd,
        unix::{fs::FileExt, net::UnixStream},
    },
    process::{Command, Stdio},
    time::Duration,
};

use crate::common::{Raw, Served, request};
use fastproc::{
    Collector, Details, Fields, TextEntry, Texts,
    record::{Identity, Record},
    source::service::wire::{Op, Part, Request, part},
};
use fastproc_testbed::{Folder, GUARD, Running, gate, needs, wait_until};
use nix::{
    sys::{ptrace, wait},
    unistd::Pid,
};

const LONG: Duration = Duration::from_secs(3600);

/// `kept.c`, which executes commands.
struct Fixture {
    process: Running,
    control: UnixStream,
    /// The address of its arguments.
    arguments: usize,
}

/// What a fixture can do to its own command line; it answers each when it is done.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Act {
    /// Overwrites it, as setproctitle(3) does.
    Write = b'w',
    /// Moves it elsewhere: `PR_SET_MM_MAP`.
    Move = b'm',
    /// A child that shares the memory but is not a thread overwrites it: now, and at the next command; at the one after
    /// that it exits.
    Share = b's',
    /// Executes another program.
    Execute = b'e',
}

/// Compiles the program of the fixtures.
fn compiled() -> Folder {
    let folder = Folder::new("kept");
    let mut command = Command::new("clang");
    command
        .args(["-x", "c", "-", "-o"])
        .arg(folder.join("kept"));
    let mut compiler = Running::start(command.stdin(Stdio::piped()));
    let mut source = compiler.stdin.take().expect("a pipe");
    let text = include_bytes!("kept.c");
    source.write_all(text).expect("clang reads");
    drop(source);
    assert!(compiler.wait().expect("a child").success());
    folder
}

impl Fixture {
    fn start(program: &Folder) -> Self {
        let (mut control, own) = UnixStream::pair().expect("a pair of sockets");
        control.set_read_timeout(Some(GUARD)).expect("a socket");
        let mut command = Command::new(program.join("kept"));
        let process = Running::start(command.stdin(OwnedFd::from(own)));
        drop(command);
        let mut address = [0; size_of::<usize>()];
        control.read_exact(&mut address).expect("the fixture tells");
        let mut fixture = Self {
            process,
            control,
            arguments: usize::from_ne_bytes(address),
        };
        fixture.done();
        fixture
    }

    fn done(&mut self) {
        let mut byte = [0];
        self.control
            .read_exact(&mut byte)
            .expect("the fixture answers");
        assert_eq!(byte[0], b'.', "the fixture could not do it");
    }

    fn act(&mut self, act: Act) {
        self.control
            .write_all(&[act as u8])
            .expect("the fixture listens");
        self.done();
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    fn as_pid(&self) -> Pid {
        Pid::from_raw(self.pid() as i32)
    }

    fn line(&self) -> Vec<u8> {
        fs::read(format!("/proc/{}/cmdline", self.pid())).expect("/proc shows the process")
    }
}

fn collector(served: &Served, max_age: Duration) -> Collector {
    let builder = served.builder().fields(Fields::empty());
    let builder = builder.texts(Texts::CMDLINE | Texts::EXE);
    builder
        .texts_max_age(max_age)
        .open()
        .expect("the service answers")
}

/// The command line of a process that came with a snapshot.
fn shown(collector: &mut Collector, pid: u32) -> Vec<u8> {
    let mut details = Details::open(collector.host()).expect("/proc is there");
    let snapshot = collector.snapshot().expect("the service answers");
    let process = snapshot.get(pid).expect("the process is shown");
    details
        .cmdline(process)
        .expect("it is shown")
        .bytes
        .to_vec()
}

/// When the service read the texts that it sends of these processes.
fn read_times(raw: &Raw, pids: &[u32]) -> Vec<u64> {
    let asked = Request {
        texts: Texts::CMDLINE | Texts::EXE,
        texts_max_age_ns: LONG.as_nanos() as u64,
        ..request(Op::Snapshot, Duration::ZERO)
    };
    let (reply, buffer) = raw.ask(asked).expect("an answer");
    let buffer = fs::File::from(buffer.expect("this reader holds none"));
    let word = |part: Part, place: u64, offset: usize| {
        let mut bytes = [0; 8];
        let at = part.offset + place * part.stride + offset as u64;
        buffer
            .read_exact_at(&mut bytes, at)
            .expect("it is in the buffer");
        u64::from_ne_bytes(bytes)
    };
    let [records, texts] = [part::RECORDS, part::TEXTS].map(|at| reply.parts[at]);
    assert_eq!(records.count, texts.count);
    let pid_at = offset_of!(Record, identity) + offset_of!(Identity, tgid);
    let of_pid = (0..records.count).map(|place| {
        let read_ns = word(texts, place, offset_of!(TextEntry, read_ns));
        (word(records, place, pid_at) as u32, read_ns)
    });
    let of_pid: HashMap<u32, u64> = of_pid.collect();
    pids.iter().map(|pid| of_pid[pid]).collect()
}

#[test]
fn nothing_is_read_again_of_processes_that_rest() {
    needs!(gate::bpf());
    let served = Served::start("rest", None);
    let program = compiled();
    let fixtures: Vec<Fixture> = (0..50).map(|_| Fixture::start(&program)).collect();
    let pids: Vec<u32> = fixtures.iter().map(Fixture::pid).collect();
    let raw = served.connect();
    let mut before = read_times(&raw, &pids);
    let (mut again, mut all) = (0, 0);
    for _ in 0..20 {
        let now = read_times(&raw, &pids);
        again += before.iter().zip(&now).filter(|(a, b)| a != b).count();
        all += now.len();
        before = now;
    }
    // Another process may have read some of them meanwhile, which looks like shared memory.
    assert!(again * 4 < all, "{again} of {all} were read again");
}

#[test]
fn a_process_that_rewrites_its_command_line_is_shown_at_once() {
    needs!(gate::bpf());
    let served = Served::start("own", None);
    let mut collector = collector(&served, LONG);
    let program = compiled();
    let mut fixtures: Vec<Fixture> = (0..4).map(|_| Fixture::start(&program)).collect();
    let mut compared = 0;
    for round in 0..60 {
        for fixture in &mut fixtures {
            // Kept, then changed.
            assert_eq!(shown(&mut collector, fixture.pid()), fixture.line());
            let act = [Act::Write, Act::Move, Act::Share, Act::Write][round % 4];
            match act {
                Act::Share => {
                    fixture.act(act);
                    // The process itself is idle from here on until the other one exits.
                    for _ in 0..2 {
                        let line = shown(&mut collector, fixture.pid());
                        assert_eq!(line, fixture.line(), "{round}");
                        fixture
                            .control
                            .write_all(b".")
                            .expect("the child reads its orders");
                        fixture.done();
                    }
                }
                act => fixture.act(act),
            }
            assert_eq!(
                shown(&mut collector, fixture.pid()),
                fixture.line(),
                "{round} {act:?}"
            );
            compared += 1;
        }
    }
    for fixture in &mut fixtures {
        let before = fixture.line();
        fixture.act(Act::Execute);
        wait_until("exec", || fixture.line() != before);
        assert_eq!(shown(&mut collector, fixture.pid()), fixture.line());
        compared += 1;
    }
    println!("{compared} changes");
}

#[test]
fn a_command_line_that_a_tracer_writes_is_shown_at_once() {
    needs!(gate::bpf());
    let served = Served::start("traced", None);
    let mut collector = collector(&served, LONG);
    let fixture = Fixture::start(&compiled());
    for round in 0..20_u8 {
        assert_eq!(shown(&mut collector, fixture.pid()), fixture.line());
        ptrace::attach(fixture.as_pid()).expect("the child can be traced");
        wait::waitpid(fixture.as_pid(), None).expect("it stops");
        assert_eq!(shown(&mut collector, fixture.pid()), fixture.line());
        let word = i64::from_ne_bytes([b'a' + round; 8]);
        let at = fixture.arguments as ptrace::AddressType;
        ptrace::write(fixture.as_pid(), at, word).expect("it is traced");
        let line = shown(&mut collector, fixture.pid());
        assert_eq!(line, fixture.line());
        assert_eq!(line[0], b'a' + round);
        let word = i64::from_ne_bytes([b'A' + round; 8]);
        ptrace::write(fixture.as_pid(), at, word).expect("it is traced");
        ptrace::detach(fixture.as_pid(), None).expect("it is traced");
        let line = shown(&mut collector, fixture.pid());
        assert_eq!(line, fixture.line());
        assert_eq!(line[0], b'A' + round);
    }
}

/// The kernel does not report that another process wrote to memory of an idle process; the age limits how long that
/// stays unseen.
#[test]
fn a_command_line_that_others_write_is_shown_after_the_allowed_age() {
    needs!(gate::bpf());
    let served = Served::start("written", None);
    let mut keeps = collector(&served, LONG);
    let mut exact = collector(&served, Duration::ZERO);
    let short = Duration::from_millis(50);
    let mut young = collector(&served, short);
    let fixture = Fixture::start(&compiled());
    let memory = fs::File::options()
        .write(true)
        .open(format!("/proc/{}/mem", fixture.pid()));
    let memory = memory.expect("the memory can be opened");
    for round in 0..20_u8 {
        let before = shown(&mut keeps, fixture.pid());
        shown(&mut young, fixture.pid());
        let text = [b'0' + round; 8];
        if round % 2 == 0 {
            memory
                .write_all_at(&text, fixture.arguments as u64)
                .expect("the memory can be written");
        } else {
            let remote = nix::sys::uio::RemoteIoVec {
                base: fixture.arguments,
                len: text.len(),
            };
            let written = nix::sys::uio::process_vm_writev(
                fixture.as_pid(),
                &[IoSlice::new(&text)],
                &[remote],
            );
            assert_eq!(written, Ok(text.len()));
        }
        let kept = shown(&mut keeps, fixture.pid());
        assert!(kept == before || kept == fixture.line());
        std::thread::sleep(short);
        assert_eq!(shown(&mut young, fixture.pid()), fixture.line());
        assert_eq!(shown(&mut exact, fixture.pid()), fixture.line());
        assert_eq!(fixture.line()[..8], text);
    }
}
