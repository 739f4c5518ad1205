//! Open files: root is shown all of them, and a user how many each process has, and what the kernel lets it see of its own.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    mem::offset_of,
    net::TcpListener,
    os::fd::{AsRawFd, OwnedFd},
    time::Duration,
};

use crate::common::{Child, Raw, Served, Turn, become_user, in_child, request, settings, turns};
use fastproc::{
    SourceKind,
    files::{Address, Error, Fields, Files, Holder, Kind, Snapshot, Socket, Source},
    source::service::wire::{Op, Reply, Request, Status, part},
};
use fastproc_testbed::{GUARD, gate, needs};
use nix::libc;
use rustix::{
    process::{DumpableBehavior, set_dumpable_behavior},
    thread::{UnshareFlags, unshare_unsafe},
};

/// `files_process.state` of `bpf/files.h`.
const HIDDEN: u32 = 4;
const UNSURE: u32 = 16;

/// A process, as in `bpf/files.h`.
#[repr(C)]
struct Process {
    start_ns: u64,
    cgroup: u64,
    tgid: u32,
    uid: u32,
    comm: [u8; 16],
    first: u32,
    records: u32,
    open: u32,
    state: u32,
    kinds: [u32; 16],
}

/// A descriptor.
#[repr(C)]
struct Record {
    numbers: [u64; 3],
    before: [u32; 6],
    text: u32,
    text_len: u32,
    after: u64,
}

const USER: u32 = 54_640;
const ANOTHER: u32 = 54_641;
/// The file that each held process has open besides what it inherits.
const NAME: &[u8] = b"/memfd:of-a-process (deleted)";

/// A request for all fields of all open files.
pub fn asked(groups: Fields) -> Request {
    Request {
        groups: groups.bits(),
        ..request(Op::Files, Duration::ZERO)
    }
}

/// Opens the library's collector at this service.
pub fn open(served: &Served, fields: Fields) -> Files {
    let builder = Files::builder().fields(fields).hidden_sockets(true);
    let builder = builder.source(Some(Source::Service)).service_timeout(GUARD);
    let opened = builder.open_at(Some(&served.path()));
    opened.expect("the service answers")
}

pub fn process(snapshot: Snapshot<'_>, pid: u32) -> Holder<'_> {
    let found = snapshot.processes().find(|holder| holder.pid() == pid);
    found.expect("the process is there")
}

/// What the service itself says of a process.
#[derive(Debug, PartialEq)]
pub struct Told {
    pub open: u32,
    pub state: u32,
    pub kinds: u32,
    pub start_ns: u64,
    pub cgroup: u64,
    pub names: Vec<Vec<u8>>,
}

impl Told {
    fn is_hidden(&self) -> bool {
        self.state & HIDDEN != 0
    }

    fn is_left_to_the_reader(&self) -> bool {
        self.state & UNSURE != 0
    }
}

/// An answer, and what is in its buffer.
pub struct Answer {
    reply: Reply,
    bytes: Vec<u8>,
}

impl Answer {
    pub fn new(reply: &Reply, buffer: &OwnedFd) -> Self {
        let mut bytes = vec![0; reply.buffer_bytes as usize];
        rustix::io::pread(buffer, &mut bytes, 0).expect("a file");
        Self {
            reply: *reply,
            bytes,
        }
    }

    fn half(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }

    /// The bytes of a part that its number of elements does not exceed.
    pub fn text(&self) -> &[u8] {
        let part = self.reply.parts[part::NAMES];
        &self.bytes[part.offset as usize..][..part.count as usize]
    }

    pub fn all(&self) -> BTreeMap<u32, Told> {
        let [processes, records] = [part::PROCESSES, part::FILES].map(|at| self.reply.parts[at]);
        assert_eq!(processes.stride, size_of::<Process>() as u64);
        assert!(records.count == 0 || records.stride == size_of::<Record>() as u64);
        let told = |number: u64| {
            let at = (processes.offset + number * processes.stride) as usize;
            let half = |offset| self.half(at + offset);
            let first = half(offset_of!(Process, first));
            let count = half(offset_of!(Process, records));
            let name = |number: u32| {
                let at = (records.offset + u64::from(number) * records.stride) as usize;
                let from = self.half(at + offset_of!(Record, text)) as usize;
                let length = self.half(at + offset_of!(Record, text_len)) as usize;
                self.text()[from..from + length].to_vec()
            };
            let kinds = offset_of!(Process, kinds);
            let told = Told {
                open: half(offset_of!(Process, open)),
                state: half(offset_of!(Process, state)),
                kinds: (0..16).map(|kind| half(kinds + 4 * kind)).sum(),
                start_ns: self.word(at + offset_of!(Process, start_ns)),
                cgroup: self.word(at + offset_of!(Process, cgroup)),
                names: (first..first + count).map(name).collect(),
            };
            (half(offset_of!(Process, tgid)), told)
        };
        (0..processes.count).map(told).collect()
    }
}

/// What the service tells this process.
pub fn told(raw: &Raw, groups: Fields) -> Answer {
    let (reply, buffer) = raw.ask(asked(groups)).expect("an answer");
    assert_eq!((reply.status, reply.layout), (Status::Ok, Files::LAYOUT));
    Answer::new(&reply, &buffer.expect("the first of this connection"))
}

/// The same about one process.
fn told_of(served: &Served, pid: u32) -> Told {
    let raw = served.connect();
    let mut all = told(&raw, Fields::FILES | Fields::PATHS).all();
    all.remove(&pid).expect("the process is there")
}

/// A process with an open file. It sleeps until the test ends it.
pub struct Held {
    child: Option<Child>,
    turn: Turn,
    pub pid: u32,
}

impl Held {
    /// `become_what` runs before the file is opened.
    pub fn new(become_what: impl FnOnce()) -> Self {
        let (mut turn, mut its) = turns();
        let child = in_child(|| {
            become_what();
            let file = memory("of-a-process");
            its.give();
            its.wait();
            drop(file);
        });
        turn.wait();
        let pid = child.0.as_raw() as u32;
        Self {
            child: Some(child),
            turn,
            pid,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.turn.give();
        if let Some(child) = self.child.take() {
            child.join();
        }
    }
}

pub fn memory(name: &str) -> OwnedFd {
    rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).expect("there is memory")
}

/// A user whose processes may be dumped, as after executing a program.
pub fn become_plain(uid: u32) {
    become_user(uid);
    set_dumpable_behavior(DumpableBehavior::Dumpable).expect("anybody may");
}

fn as_plain(uid: u32, run: impl FnOnce()) {
    in_child(|| {
        become_plain(uid);
        run();
    })
    .join();
}

/// As the kernel counts them for everybody.
fn counted(pid: u32) -> u32 {
    let folder = fs::metadata(format!("/proc/{pid}/fd"));
    folder.expect("the process is there").len() as u32
}

fn has_file(told: &Told) -> bool {
    told.names.iter().any(|name| name == b"memfd:of-a-process")
}

#[test]
fn root_and_the_user_of_a_process_are_shown_its_files() {
    needs!(gate::bpf());
    let served = Served::start("files-own", None);
    let held = Held::new(|| become_plain(USER));
    for uid in [0, USER] {
        as_plain(uid, || {
            let told = told_of(&served, held.pid);
            assert!(!told.is_hidden() && has_file(&told), "{uid}");
            assert_eq!((told.open, told.kinds), (counted(held.pid), told.open));
        });
    }
}

#[test]
fn a_user_is_shown_only_how_many_files_others_have() {
    needs!(gate::bpf());
    let served = Served::start("files-others", None);
    let helds = [ANOTHER, 0].map(|uid| Held::new(|| become_plain(uid)));
    as_plain(USER, || {
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        for held in &helds {
            let told = told_of(&served, held.pid);
            // It is certain, so the reader need not ask the kernel.
            assert_eq!(told.state, HIDDEN);
            assert_eq!((told.names.len(), told.kinds, told.cgroup), (0, 0, 0));
            assert_eq!(told.open, counted(held.pid));
            assert_eq!(told.start_ns % tick_ns, 0);
        }
    });
}

/// Not a name of another user's file is in the buffer, wherever it may be.
#[test]
fn the_buffer_of_a_user_has_nothing_of_others() {
    needs!(gate::bpf());
    let served = Served::start("files-buffer", None);
    let _held = [ANOTHER, 0].map(|uid| Held::new(|| become_plain(uid)));
    as_plain(USER, || {
        let raw = served.connect();
        let answer = told(&raw, Fields::all() - Fields::STAT);
        let name = b"of-a-process";
        assert!(!answer.bytes.windows(name.len()).any(|at| at == name));
    });
}

/// The folder belongs to root, and only the kernel knows what it shows the reader itself.
#[test]
fn a_process_that_may_not_be_dumped_is_left_to_the_reader() {
    needs!(gate::bpf());
    let served = Served::start("files-undumpable", None);
    let held = Held::new(|| become_user(USER));
    as_plain(USER, || {
        let told = told_of(&served, held.pid);
        assert!(told.is_hidden() && told.is_left_to_the_reader());
        assert!(told.names.is_empty());
        let mut files = open(&served, Fields::FILES);
        let snapshot = files.snapshot().expect("a snapshot");
        assert!(process(snapshot, held.pid).is_hidden());
    });
}

/// As after executing a set-user-ID program: its user may not trace it, whoever owns the folder.
#[test]
fn a_process_with_ids_of_two_users_is_hidden_from_both() {
    needs!(gate::bpf());
    let served = Served::start("files-setuid", None);
    let held = Held::new(|| {
        use rustix::process::Uid;
        let [user, another] = [USER, ANOTHER].map(Uid::from_raw);
        rustix::thread::set_thread_res_uid(user, another, another).expect("root may change");
        set_dumpable_behavior(DumpableBehavior::Dumpable).expect("anybody may");
    });
    for uid in [USER, ANOTHER] {
        as_plain(uid, || assert_hidden(&told_of(&served, held.pid)));
    }
}

/// As after executing a set-group-ID program: its user owns the folder.
#[test]
fn a_process_with_a_group_of_another_is_hidden_from_its_user() {
    needs!(gate::bpf());
    let served = Served::start("files-setgid", None);
    let held = Held::new(|| {
        become_user(USER);
        set_dumpable_behavior(DumpableBehavior::Dumpable).expect("anybody may");
    });
    let of_group = Held::new(|| {
        use rustix::process::{Gid, Uid};
        let [user, another] = [USER, ANOTHER].map(Gid::from_raw);
        rustix::thread::set_thread_res_gid(user, another, another).expect("root may change");
        let user = Uid::from_raw(USER);
        rustix::thread::set_thread_res_uid(user, user, user).expect("root may change");
        set_dumpable_behavior(DumpableBehavior::Dumpable).expect("anybody may");
    });
    as_plain(USER, || {
        assert!(!told_of(&served, held.pid).is_hidden());
        assert_hidden(&told_of(&served, of_group.pid));
    });
}

fn assert_hidden(told: &Told) {
    assert!(told.is_hidden() && told.names.is_empty());
}

/// Its user has made the namespace, and so has all capabilities over it: the kernel shows it, and the library asks the kernel.
#[test]
fn a_process_in_a_user_namespace_is_read_by_its_user() {
    needs!(gate::bpf());
    let served = Served::start("files-userns", None);
    let held = Held::new(|| {
        become_plain(USER);
        // SAFETY: it shares its descriptors with no thread.
        let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWUSER) };
        unshared.expect("users may make user namespaces here");
        set_dumpable_behavior(DumpableBehavior::Dumpable).expect("anybody may");
    });
    as_plain(USER, || {
        let told = told_of(&served, held.pid);
        assert!(told.is_left_to_the_reader() && told.names.is_empty());
        let shown = fs::read_dir(format!("/proc/{}/fd", held.pid)).is_ok();
        let mut files = open(&served, Fields::FILES | Fields::PATHS);
        let holder = process(files.snapshot().expect("a snapshot"), held.pid);
        assert_eq!(holder.files().any(is_held), shown);
    });
}

fn is_held(file: fastproc::files::File<'_>) -> bool {
    let mut name = Vec::new();
    file.write_name(&mut name) && name == NAME
}

#[test]
fn a_user_that_may_be_confined_reads_its_files_itself() {
    needs!(gate::bpf());
    let served = Served::start("files-confined", None);
    let held = Held::new(|| become_plain(USER));
    as_plain(USER, || {
        // As Landlock needs it.
        rustix::thread::set_no_new_privs(true).expect("anybody may");
        let told = told_of(&served, held.pid);
        assert!(told.is_left_to_the_reader() && told.names.is_empty());
        let mut files = open(&served, Fields::FILES | Fields::PATHS);
        let holder = process(files.snapshot().expect("a snapshot"), held.pid);
        assert!(holder.files().any(is_held));
    });
}

fn ports(snapshot: Snapshot<'_>) -> Vec<(Option<u32>, u16)> {
    let port = |socket: Socket<'_>| socket.local().and_then(Address::port);
    let held = snapshot.files();
    let held = held.filter_map(|(holder, file)| Some((Some(holder.pid()), port(file.socket()?)?)));
    let others = snapshot
        .orphans()
        .filter_map(|socket| Some((None, port(socket)?)));
    held.chain(others).collect()
}

/// A process that listens at a port, which it tells.
fn listening(become_what: impl FnOnce()) -> (Child, Turn, u16) {
    let (mut turn, mut its) = turns();
    let child = in_child(|| {
        become_what();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        its.tell(listener.local_addr().expect("it is bound").port().into());
        its.wait();
    });
    let port = turn.number() as u16;
    (child, turn, port)
}

#[test]
fn sockets_of_others_are_shown_without_their_process_and_those_of_another_network_are_not() {
    needs!(gate::bpf());
    let served = Served::start("files-sockets", None);
    let listeners = [false, true].map(|elsewhere| {
        listening(|| {
            if elsewhere {
                // SAFETY: it shares its descriptors with no thread.
                let unshared = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
                unshared.expect("root may unshare its network");
                up();
            }
            become_plain(ANOTHER);
        })
    });
    for (is_elsewhere, (child, _, port)) in [false, true].into_iter().zip(&listeners) {
        let pid = child.0.as_raw() as u32;
        for uid in [USER, ANOTHER, 0] {
            as_plain(uid, || {
                let mut files = open(&served, Fields::SOCKETS);
                let snapshot = files.snapshot().expect("a snapshot");
                let ports = ports(snapshot);
                let is_shown = uid != USER;
                assert_eq!(ports.contains(&(Some(pid), *port)), is_shown, "{uid}");
                assert_eq!(snapshot.files().any(|(of, _)| of.pid() == pid), is_shown);
                // Others of that network may have the same port.
                if !is_elsewhere {
                    let found: Vec<_> = ports.iter().filter(|(_, of)| of == port).collect();
                    let holder = is_shown.then_some(pid);
                    assert_eq!(found, [&(holder, *port)], "{uid}");
                }
            });
        }
    }
    for (child, mut turn, _) in listeners {
        turn.give();
        child.join();
    }
}

/// Brings the loopback device of a new network namespace up.
fn up() {
    let mut ip = std::process::Command::new("ip");
    let is_up = ip.args(["link", "set", "lo", "up"]).status();
    // Without it, an address of the device can be bound all the same from Linux 5 on, or the test fails at that.
    let _ = is_up;
}

/// The library has the own process from the kernel, whatever the service knows of it.
#[test]
fn a_reader_sees_its_own_files_as_the_kernel_does() {
    needs!(gate::bpf());
    let served = Served::start("files-names", None);
    for become_what in [become_user, become_plain] {
        in_child(|| {
            become_what(USER);
            let mut file = File::from(memory("of-a-process"));
            std::io::Write::write_all(&mut file, b"12345").expect("there is room");
            let mut files = open(&served, Fields::FILES | Fields::PATHS | Fields::STAT);
            let holder = process(files.snapshot().expect("a snapshot"), std::process::id());
            let number = file.as_raw_fd() as u32;
            let mut all = holder.files();
            let own = all.find(|file| file.descriptor() == Some(number));
            let own = own.expect("it is open");
            assert!(is_held(own));
            assert_eq!((own.kind(), own.position()), (Kind::File, Some(5)));
            assert_eq!((own.size(), own.is_deleted()), (Some(5), Some(true)));
            let mut named = holder.files();
            assert!(named.all(|slot| slot.write_name(&mut Vec::new())));
        })
        .join();
    }
}

/// A file system of a user may never answer, so the service reads files only by BPF.
#[test]
fn a_service_without_bpf_refuses_and_the_library_reads_itself() {
    needs!(gate::root());
    let served = Served::start_with("files-procfs", &settings(Some(SourceKind::Procfs)));
    let raw = served.connect();
    let (reply, _) = raw.ask(asked(Fields::FILES)).expect("an answer");
    assert_eq!(reply.status, Status::Groups);
    let mut files = open(&served, Fields::FILES);
    let refused = files.snapshot().map(|_| ());
    assert!(matches!(refused, Err(Error::Bpf(_))), "{refused:?}");
    as_plain(USER, || {
        let builder = Files::builder().fields(Fields::FILES).once(true);
        let opened = builder.service_timeout(GUARD).open_at(Some(&served.path()));
        let mut files = opened.expect("/proc is there");
        let snapshot = files.snapshot().expect("a snapshot");
        assert!(process(snapshot, std::process::id()).files().len() > 0);
        assert_eq!(files.source(), Source::Procfs);
    });
}

#[test]
fn unknown_groups_are_refused() {
    needs!(gate::bpf());
    let served = Served::start("files-groups", None);
    let raw = served.connect();
    let unknown = Request {
        groups: 1 << 30,
        ..asked(Fields::FILES)
    };
    let (reply, _) = raw.ask(unknown).expect("an answer");
    assert_eq!(reply.status, Status::Groups);
}

/// A walk for one user is never shown to another, however old it may be.
#[test]
fn an_old_snapshot_of_another_user_is_not_sent() {
    needs!(gate::bpf());
    let served = Served::start("files-age", None);
    let held = Held::new(|| become_plain(ANOTHER));
    for (uid, is_shown) in [(0, true), (USER, false), (ANOTHER, true), (USER, false)] {
        as_plain(uid, || {
            let raw = served.connect();
            let any_age = Request {
                max_age_ns: u64::MAX,
                ..asked(Fields::FILES | Fields::PATHS)
            };
            let (reply, buffer) = raw.ask(any_age).expect("an answer");
            let answer = Answer::new(&reply, &buffer.expect("the first of this connection"));
            assert_eq!(has_file(&answer.all()[&held.pid]), is_shown, "{uid}");
        });
    }
}

#[test]
fn readers_of_one_user_share_a_snapshot_that_is_young_enough() {
    needs!(gate::bpf());
    let served = Served::start("files-shared", None);
    let ask = |max_age| {
        let raw = served.connect();
        let request = Request {
            max_age_ns: max_age,
            ..asked(Fields::FILES)
        };
        raw.ask(request).expect("an answer").0.generation
    };
    let first = ask(0);
    assert_eq!((ask(u64::MAX), ask(0)), (first, first + 1));
}

/// The kernel decides for each thread, and shows the files of none in the folder of a process whose leader has ended.
#[test]
fn files_of_a_thread_are_shown_by_the_rights_of_that_thread() {
    needs!(gate::bpf());
    let served = Served::start("files-thread", None);
    let (mut turn, mut its) = turns();
    let child = in_child(|| {
        let uid = rustix::process::Uid::from_raw(USER);
        let file = memory("of-a-process");
        let thread = std::thread::spawn(move || {
            its.give();
            its.wait();
            drop(file);
            // SAFETY: ends the process without running what the test's would.
            unsafe { libc::_exit(0) }
        });
        // Only the leader becomes the user, and ends.
        rustix::thread::set_thread_res_uid(uid, uid, uid).expect("root may change its user");
        set_dumpable_behavior(DumpableBehavior::Dumpable).expect("anybody may");
        std::mem::forget(thread);
        // SAFETY: ends this thread alone.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    });
    turn.wait();
    let pid = child.0.as_raw() as u32;
    fastproc_testbed::wait_until("the end of the leader", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    });
    assert!(has_file(&told_of(&served, pid)));
    as_plain(USER, || {
        let told = told_of(&served, pid);
        assert!(told.is_hidden() && told.names.is_empty());
    });
    turn.give();
    child.join();
}
