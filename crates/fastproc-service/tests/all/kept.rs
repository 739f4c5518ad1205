//! The command lines that the service keeps match those of the kernel, whichever process changes them.

use std::{
    collections::HashMap,
    fs,
    io::{IoSlice, Read, Write},
    mem::offset_of,
    os::unix::{fs::FileExt, net::UnixStream, process::CommandExt},
    process::Command,
    time::Duration,
};

use crate::common::{Raw, Served, request};
use fastproc::{
    Collector, Details, Fields, TextEntry, Texts,
    record::{Identity, Record},
    source::service::wire::{Op, Part, Request, part},
};
use fastproc_testbed::{GUARD, gate, needs, wait_until};
use nix::{
    libc,
    sys::{ptrace, wait},
    unistd::{ForkResult, Pid},
};

const LONG: Duration = Duration::from_secs(3600);
/// Bytes of a command line.
const LEN: usize = 24;
const PAGE: usize = 4096;

/// A process with one thread, whose arguments are in writable memory, and which executes commands.
struct Fixture {
    pid: Pid,
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

fn map_page() -> usize {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(page, libc::MAP_FAILED);
    page as usize
}

impl Fixture {
    fn start() -> Self {
        let (control, mut own) = UnixStream::pair().expect("a pair of sockets");
        control.set_read_timeout(Some(GUARD)).expect("a socket");
        let (first, second, stack) = (map_page(), map_page(), map_page());
        for (at, fill) in [(first, b'a'), (second, b'A')] {
            write_line(at, fill);
        }
        let map = memory_map();
        // SAFETY: the child uses nothing that another thread could hold: it reads, writes and makes system calls.
        match unsafe { nix::unistd::fork() }.expect("it can fork") {
            ForkResult::Parent { child } => {
                for page in [first, second, stack] {
                    // SAFETY: mapped above, and only the child uses it, which has a copy.
                    unsafe { libc::munmap(page as *mut libc::c_void, PAGE) };
                }
                let mut fixture = Self {
                    pid: child,
                    control,
                    arguments: first,
                };
                fixture.done();
                fixture
            }
            ForkResult::Child => {
                drop(control);
                live(&mut own, map, [first, second, stack]);
                // SAFETY: ends this process without running what the test's would.
                unsafe { libc::_exit(0) }
            }
        }
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
        self.pid.as_raw() as u32
    }

    fn line(&self) -> Vec<u8> {
        fs::read(format!("/proc/{}/cmdline", self.pid)).expect("/proc shows the process")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(self.pid, nix::sys::signal::SIGKILL);
        let _ = wait::waitpid(self.pid, None);
    }
}

fn write_line(at: usize, fill: u8) {
    // SAFETY: a page of this process that nothing else refers to.
    unsafe {
        std::ptr::write_bytes(at as *mut u8, fill, LEN - 1);
        ((at + LEN - 1) as *mut u8).write_volatile(0);
    }
}

/// Adds one to the first letter.
fn change(at: usize) {
    // SAFETY: as above; another process that shares the memory may write there, never both at once.
    unsafe {
        let first = at as *mut u8;
        first.write_volatile(first.read_volatile() + 1);
    }
}

/// `struct prctl_mm_map`: eleven addresses, the auxiliary vector and its length, a descriptor.
type MemoryMap = [u64; 13];

/// The addresses of this process, to be changed.
fn memory_map() -> MemoryMap {
    let stat = fs::read_to_string("/proc/self/stat").expect("/proc is mounted");
    let (_, rest) = stat.rsplit_once(") ").expect("a name");
    // The first number after the name and the state is the fourth of proc_pid_stat(5).
    let fields: Vec<u64> = rest
        .split(' ')
        .map(|field| field.trim().parse().unwrap_or(0))
        .collect();
    let field = |number: usize| fields[number - 3];
    let mut map = [0; 13];
    for (at, number) in [26, 27, 45, 46, 47, 0, 28, 48, 49, 50, 51]
        .into_iter()
        .enumerate()
    {
        map[at] = if number == 0 { 0 } else { field(number) };
    }
    // No auxiliary vector and no program: both stay.
    map[12] = u64::from(u32::MAX) << 32;
    map
}

/// Moves the arguments to this address.
fn lie_at(map: &mut MemoryMap, at: usize) -> bool {
    // SAFETY: returns the end of the heap.
    map[5] = unsafe { libc::syscall(libc::SYS_brk, 0) } as u64;
    map[7] = at as u64;
    map[8] = (at + LEN) as u64;
    // SAFETY: changes only what the kernel shows of this process.
    unsafe {
        libc::prctl(
            libc::PR_SET_MM,
            libc::PR_SET_MM_MAP,
            map.as_ptr(),
            size_of::<MemoryMap>(),
            0,
        ) == 0
    }
}

extern "C" fn share(control: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the parent waits, and has left these here.
    let (at, own) = unsafe { *control.cast::<(usize, libc::c_int)>() };
    for _ in 0..2 {
        change(at);
        let mut byte = 0_u8;
        // SAFETY: a byte of a constant, and one of this stack.
        unsafe {
            libc::write(own, c".".as_ptr().cast(), 1);
            libc::read(own, (&raw mut byte).cast(), 1);
        }
    }
    0
}

fn live(own: &mut UnixStream, mut map: MemoryMap, [first, second, stack]: [usize; 3]) {
    use std::os::fd::AsRawFd;
    let (mut at, mut other) = (first, second);
    let mut good = lie_at(&mut map, at);
    loop {
        let _ = own.write_all(if good { b"." } else { b"!" });
        let mut byte = [0];
        if own.read_exact(&mut byte).is_err() {
            return;
        }
        good = true;
        match byte[0] {
            b'w' => change(at),
            b'm' => {
                good = lie_at(&mut map, other);
                std::mem::swap(&mut at, &mut other);
            }
            b's' => {
                let mut handed = (at, own.as_raw_fd());
                // SAFETY: nothing else uses the stack; this process waits for the other one.
                let child = unsafe {
                    libc::clone(
                        share,
                        (stack + PAGE) as *mut libc::c_void,
                        libc::CLONE_VM | libc::SIGCHLD,
                        (&raw mut handed).cast(),
                    )
                };
                // SAFETY: waits for the child that was made.
                good =
                    child > 0 && unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } == child;
            }
            _ => {
                let _ = Command::new("/bin/sh")
                    .args(["-c", "printf . >&0; read x", "executed"])
                    .stdin(std::os::fd::OwnedFd::from(
                        own.try_clone().expect("a descriptor"),
                    ))
                    .exec();
                return;
            }
        }
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
    let fixtures: Vec<Fixture> = (0..50).map(|_| Fixture::start()).collect();
    let pids: Vec<u32> = fixtures.iter().map(Fixture::pid).collect();
    let raw = Raw::open(&served.path()).expect("the service listens");
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
    let mut fixtures: Vec<Fixture> = (0..4).map(|_| Fixture::start()).collect();
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
    let fixture = Fixture::start();
    for round in 0..20_u8 {
        assert_eq!(shown(&mut collector, fixture.pid()), fixture.line());
        ptrace::attach(fixture.pid).expect("the child can be traced");
        wait::waitpid(fixture.pid, None).expect("it stops");
        assert_eq!(shown(&mut collector, fixture.pid()), fixture.line());
        let word = i64::from_ne_bytes([b'a' + round; 8]);
        let at = fixture.arguments as ptrace::AddressType;
        ptrace::write(fixture.pid, at, word).expect("it is traced");
        let line = shown(&mut collector, fixture.pid());
        assert_eq!(line, fixture.line());
        assert_eq!(line[0], b'a' + round);
        let word = i64::from_ne_bytes([b'A' + round; 8]);
        ptrace::write(fixture.pid, at, word).expect("it is traced");
        ptrace::detach(fixture.pid, None).expect("it is traced");
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
    let fixture = Fixture::start();
    let memory = fs::File::options()
        .write(true)
        .open(format!("/proc/{}/mem", fixture.pid));
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
            let written =
                nix::sys::uio::process_vm_writev(fixture.pid, &[IoSlice::new(&text)], &[remote]);
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
