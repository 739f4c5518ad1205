//! Attacks of an unprivileged user on the service. Other users must notice nothing.
//!
//! `make test-hostile` runs these. Each attack has succeeded once. One test at a time: a forked child also has the
//! sockets and buffers of the other tests.

use crate::common;

use std::{
    collections::BTreeSet,
    fs,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{fs::PermissionsExt, net::UnixStream},
    },
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::common::{Raw, Served, as_user, become_user, in_child, request, settings, turns};
use fastproc::{
    Fields, TextEntry, Texts, files,
    record::Record,
    source::service::wire::{Op, Reply, Request, Status, part},
};
use fastproc_service::{Service, Settings, bind};
use fastproc_testbed::{Folder, alone, gate, needs, wait_until};

const ATTACKER: u32 = 54_321;
const BYSTANDER: u32 = 54_322;
/// Bytes that a user may hold: several snapshots, however many processes there are.
fn most() -> usize {
    (8 << 20).max(common::processes() * (16 << 10))
}

/// Processes with a long command line.
const COUNT: u64 = 100;
const FOREVER: Duration = Duration::from_secs(1 << 30);

/// A request for a snapshot that may be old, which differs from others by the age that its texts may have.
fn other_contents(number: u64) -> Request {
    Request {
        texts_max_age_ns: number,
        ..request(Op::Snapshot, FOREVER)
    }
}

fn everything(max_age: Duration) -> Request {
    Request {
        groups: Fields::all().bits(),
        ..request(Op::Snapshot, max_age)
    }
}

fn small(memory_of_user: usize, cpu_of_user: f64) -> Settings {
    let mut settings = settings(None);
    settings.memory_of_user = memory_of_user;
    settings.cpu_of_user = cpu_of_user;
    settings
}

/// Bytes of the snapshots that readers hold, have kept, or may be lent.
fn in_buffers(served: &Served) -> u64 {
    ["lent", "ready", "kept"]
        .iter()
        .map(|what| served.status(&format!("/buffers/{what}_bytes")))
        .sum()
}

/// F2: a buffer that was given back was charged to no user, however long its reader kept it.
#[test]
fn snapshots_that_a_user_keeps_count_until_it_lets_go_of_them() {
    let _alone = alone();
    needs!(gate::bpf());
    common::raise_descriptors();
    let most = most();
    let served = Served::start_with("pinned", &small(most, 1000.0));
    let path = served.path();
    let (mut own, mut its) = turns();
    let attacker = in_child(|| {
        become_user(ATTACKER);
        let raws: Vec<Raw> = (0..100)
            .map(|_| Raw::open(&path).expect("the service listens"))
            .collect();
        let (mut kept, mut refused, mut number) = (Vec::new(), 0, 0);
        for _ in 0..5 {
            // Each connection receives a buffer of its own, and all are given back.
            for raw in &raws {
                number += 1;
                let asked = Request {
                    groups: Fields::all().bits(),
                    ..other_contents(number)
                };
                let (reply, buffer) = raw.ask(asked).expect("an answer");
                match reply.status {
                    Status::Ok => {
                        let buffer = buffer.expect("this reader names none that it has");
                        kept.push((reply.buffer, reply.buffer_bytes as usize, buffer));
                    }
                    Status::Busy => refused += 1,
                    status => panic!("{status}"),
                }
            }
            for raw in &raws {
                let (reply, _) = raw.ask(request(Op::Hello, FOREVER)).expect("an answer");
                assert_eq!(reply.status, Status::Ok);
            }
        }
        assert!(refused > 0, "a user exceeds its limit");
        kept.sort_by_key(|(id, ..)| *id);
        kept.dedup_by_key(|(id, ..)| *id);
        let bytes: usize = kept.iter().map(|(_, bytes, _)| bytes).sum();
        assert!(bytes <= most && bytes > most / 4, "it has {bytes} bytes");
        its.give();
        its.wait();
        drop(kept);
        its.give();
        its.wait();
    });
    own.wait();
    let held = in_buffers(&served);
    assert!(held <= 2 * most as u64, "{held} bytes");
    // Other users are served as before.
    as_user(BYSTANDER, || {
        let raw = Raw::open(&path).expect("the service listens");
        let (reply, _) = raw.ask(everything(FOREVER)).expect("an answer");
        assert_eq!(reply.status, Status::Ok);
    });
    own.give();
    own.wait();
    own.give();
    attacker.join();
    wait_until("nothing is kept", || {
        served.status("/buffers/kept_bytes") == 0
    });
}

/// Lets readers connect and ask before the service begins, so that it finds all requests at once, the attacker's first.
fn flood(name: &str, attack: impl Fn(u64) -> Request, asked: Request) -> usize {
    const FLOOD: u64 = 150;
    common::raise_descriptors();
    let folder = Folder::new(name);
    let path = folder.join("socket");
    let listener = bind(&path).expect("nobody listens there");
    let (mut attacks, mut its) = turns();
    let (mut bystands, mut turn) = turns();
    let ask_all = |requests: &mut dyn Iterator<Item = Request>| -> Vec<Raw> {
        let ask = |request| {
            let raw = Raw::open(&path).expect("the service listens");
            raw.send(request).expect("the request is sent");
            raw
        };
        requests.map(ask).collect()
    };
    let attacker = in_child(|| {
        become_user(ATTACKER);
        let raws = ask_all(&mut (0..FLOOD).map(&attack));
        its.give();
        its.wait();
        let ids = raws.iter().map(|raw| {
            let (reply, _) = raw.receive().expect("an answer");
            (reply.status == Status::Ok).then_some(reply.buffer)
        });
        let ids: Vec<u64> = ids.flatten().collect();
        its.tell(ids.len() as u32);
        for id in ids {
            // As far as they differ.
            its.tell(id as u32);
        }
        its.wait();
    });
    attacks.wait();
    let bystander = in_child(|| {
        become_user(BYSTANDER);
        let raws = ask_all(&mut std::iter::once(asked));
        turn.give();
        turn.wait();
        let (reply, _) = raws[0].receive().expect("an answer");
        assert_eq!(reply.status, Status::Ok);
        turn.tell(reply.buffer as u32);
        turn.wait();
    });
    bystands.wait();
    let service = Service::open(listener, &settings(None)).expect("it can read");
    let (stop, told) = UnixStream::pair().expect("a pair of sockets");
    let thread = thread::spawn(move || service.run(told.as_fd()));
    attacks.give();
    bystands.give();
    // Ids are given in the order in which buffers are made.
    let own = bystands.number();
    let count = attacks.number();
    // Some may share one.
    let ids: BTreeSet<u32> = (0..count).map(|_| attacks.number()).collect();
    let before = ids.iter().filter(|&&id| (own.wrapping_sub(id) as i32) > 0);
    let before = before.count();
    attacks.give();
    bystands.give();
    attacker.join();
    bystander.join();
    std::io::Write::write_all(&mut &stop, b".").expect("it serves");
    thread.join().expect("no panic").expect("it serves");
    // With many processes, fewer snapshots fit.
    let least = 20.min(Settings::default().memory_of_user / (common::processes() * (4 << 10)));
    assert!(
        count as usize > least,
        "only {count} of the attack's were served"
    );
    before
}

/// The requests of an attacker, by their numbers.
type Attack<'a> = &'a dyn Fn(u64) -> Request;

/// F3: a user who requested a different snapshot on each connection was served them all before any other user. Texts took
/// up to 0.4 s for each, and a thread reads open files for one reader after the other.
#[test]
fn a_user_with_many_connections_is_served_in_turn_with_others() {
    let _alone = alone();
    needs!(gate::bpf());
    // Requests for other groups of files are answered by other walks.
    let files = |number: u64| Request {
        groups: number as u32 % (files::Fields::all().bits() + 1),
        ..request(Op::Files, Duration::ZERO)
    };
    let texts = |number| Request {
        texts: Texts::all(),
        ..other_contents(number)
    };
    let exits = |number| Request {
        exits: true,
        exits_after: number,
        ..other_contents(number)
    };
    let attacks: [(&str, Attack<'_>, Request); 5] = [
        ("flood", &other_contents, everything(Duration::ZERO)),
        ("flood-of-texts", &texts, request(Op::Snapshot, FOREVER)),
        ("flood-of-exits", &exits, request(Op::Snapshot, FOREVER)),
        ("flood-of-files", &files, files(0)),
        ("files-and-processes", &files, everything(Duration::ZERO)),
    ];
    for (name, attack, asked) in attacks {
        let before = flood(name, attack, asked);
        assert!(
            before <= 10,
            "{name}: {before} of the other user's were written before"
        );
    }
}

/// F3: only walks were charged, not the repeated writing of one walk.
#[test]
fn writing_is_charged_to_who_asks_and_root_goes_on() {
    let _alone = alone();
    needs!(gate::bpf());
    // Far less than the service can use on a machine that is busy with other things.
    let served = Served::start_with("charged", &small(64 << 20, 0.02));
    let path = served.path();
    let root = Raw::open(&path).expect("the service listens");
    let walked = root.ask(everything(FOREVER)).expect("an answer").0;
    assert_eq!(walked.status, Status::Ok);
    for texts in [Texts::empty(), Texts::CMDLINE] {
        as_user(ATTACKER + texts.bits(), || {
            // Many wait at once: a reader that waits for each answer uses less than its share on a busy machine.
            let raws: Vec<Raw> = (0..40)
                .map(|_| Raw::open(&path).expect("the service listens"))
                .collect();
            let ask_all = |round: u64| {
                for (number, raw) in (40 * round + 1..).zip(&raws) {
                    let asked = Request {
                        texts,
                        ..other_contents(number)
                    };
                    raw.send(asked).expect("the request is sent");
                }
                let answers = raws.iter().map(|raw| raw.receive().expect("an answer").0);
                answers.filter(|reply| reply.status == Status::Ok).count()
            };
            let mut served = 0;
            // On a busy machine, identifying the reader may use the user's whole budget. The user then waits until it
            // has some again.
            let is_refused = (0..200).any(|round| {
                let now = ask_all(round);
                served += now;
                if served == 0 {
                    thread::sleep(Duration::from_millis(50));
                }
                served > 0 && now < raws.len()
            });
            assert!(is_refused && served > 0, "{served} are served");
        });
        let of_user = format!("/users/{}/over_budget_total", ATTACKER + texts.bits());
        assert!(served.status(&of_user) > 0);
    }
    for number in 1..50 {
        let (reply, _) = root.ask(other_contents(number)).expect("an answer");
        assert_eq!(reply.status, Status::Ok);
    }
}

/// F3: texts that are too long to be kept were read again for each snapshot.
#[test]
fn long_command_lines_are_not_read_again_while_their_processes_rest() {
    let _alone = alone();
    needs!(gate::bpf());
    let long = "x".repeat(50_000);
    let mut children: Vec<_> = (0..COUNT)
        .map(|_| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "read x", "sh", &long]);
            command.stdin(Stdio::piped()).stdout(Stdio::null());
            command.spawn().expect("sh is there")
        })
        .collect();
    let rests = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/wchan"));
        text.is_ok_and(|wchan| wchan.contains("pipe"))
    };
    wait_until("all of them rest", || {
        children.iter().all(|child| rests(child.id()))
    });
    let served = Served::start("long", None);
    let raw = served.connect();
    let ask = || {
        let asked = Request {
            texts: Texts::CMDLINE,
            texts_max_age_ns: FOREVER.as_nanos() as u64,
            ..request(Op::Snapshot, Duration::ZERO)
        };
        let (reply, _) = raw.ask(asked).expect("an answer");
        assert_eq!(reply.status, Status::Ok);
        served.status("/texts/reads_total")
    };
    let first = ask();
    assert!(first >= COUNT);
    // Another process may have read them meanwhile, which looks like shared memory: take the smallest of several
    // counts.
    let mut before = first;
    let again = (0..10).map(|_| {
        let now = ask();
        now - std::mem::replace(&mut before, now)
    });
    let least = again.min().expect("ten");
    for child in &mut children {
        child.kill().expect("the child is killed");
        child.wait().expect("the child ends");
    }
    assert!(
        least < COUNT / 2 + first - COUNT,
        "{least} of {first} are read each time"
    );
}

/// The command line and the path of a process, as this reader receives them.
fn texts_of(reply: &Reply, buffer: &OwnedFd, pid: u32) -> Option<[Option<Vec<u8>>; 2]> {
    use std::{mem::offset_of, os::unix::fs::FileExt};
    let file = fs::File::from(buffer.try_clone().expect("a descriptor"));
    let read = |at: u64, len: usize| {
        let mut bytes = vec![0; len];
        file.read_exact_at(&mut bytes, at)
            .expect("it is in the buffer");
        bytes
    };
    let word = |at: u64| u32::from_ne_bytes(read(at, 4).try_into().expect("four bytes"));
    let [records, texts, bytes] =
        [part::RECORDS, part::TEXTS, part::TEXT_BYTES].map(|at| reply.parts[at]);
    let pid_at = offset_of!(Record, identity) + offset_of!(fastproc::record::Identity, tgid);
    let place = (0..records.count)
        .find(|place| word(records.offset + place * records.stride + pid_at as u64) == pid)?;
    let entry = texts.offset + place * texts.stride;
    Some(
        [offset_of!(TextEntry, cmdline), offset_of!(TextEntry, exe)].map(|at| {
            let (from, len) = (word(entry + at as u64), word(entry + at as u64 + 4));
            (len != u32::MAX).then(|| {
                assert!(u64::from(from) + u64::from(len) <= bytes.count);
                read(bytes.offset + u64::from(from), len as usize)
            })
        }),
    )
}

/// F5: the path of a program was read now, but shown by the rights that its process had had at an old walk.
#[test]
fn where_a_program_lies_is_shown_by_the_rights_of_now() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("stale", None);
    let path = served.path();
    let folder = Folder::new("setuid");
    // No user may trace a program that its user may execute but not read, nor one with other rights. If the file system
    // does not grant set-user-ID, the program is like any other.
    let mounted = rustix::fs::statvfs(&*folder)
        .expect("the folder is mounted")
        .f_flag;
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let gives_rights = !mounted.contains(rustix::fs::StatVfsMountFlags::NOSUID)
        && !status.contains("NoNewPrivs:\t1");
    let programs = [("unreadable", 0o111), ("privileged", 0o4755)].map(|(name, mode)| {
        let program = folder.join(name);
        fs::copy("/bin/sleep", &program).expect("sleep is there");
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).expect("its mode is set");
        program
    });
    as_user(ATTACKER, || {
        for (program, shown) in [
            (std::path::Path::new("/bin/sleep"), true),
            (&programs[0], false),
            (&programs[1], !gives_rights),
        ] {
            let mut child = Command::new("/bin/sh")
                .args(["-c", "read x; exec \"$0\" 1000"])
                .arg(program)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .expect("sh is there");
            let pid = child.id();
            let line = || fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            wait_until("the shell", || line().starts_with(b"/bin/sh"));
            let raw = Raw::open(&path).expect("the service listens");
            let walked = raw.ask(everything(Duration::ZERO)).expect("an answer").0;
            drop(child.stdin.take());
            wait_until("the program", || {
                line().ends_with(b"1000\0") && !line().starts_with(b"/bin/sh")
            });
            // The service leaves to the reader the texts for which the long command lines of others leave no room. A
            // text that was read once has room in the next answer, which a different age makes a new one.
            let mut texts = [None, None];
            for age in 0.. {
                let asked = Request {
                    texts: Texts::all(),
                    texts_max_age_ns: FOREVER.as_nanos() as u64 - age,
                    ..everything(FOREVER)
                };
                let (reply, buffer) = raw.ask(asked).expect("an answer");
                assert_eq!(reply.generation, walked.generation, "of the same walk");
                let shown = texts_of(&reply, &buffer.expect("a buffer"), pid);
                texts = shown.expect("it was its own at the walk");
                if texts[0].is_some() || age == 100 {
                    break;
                }
            }
            let [line_shown, path_shown] = texts;
            assert_eq!(line_shown, Some(line()), "anybody may see that");
            let kernel = fs::read_link(format!("/proc/{pid}/exe"));
            assert_eq!(kernel.is_ok(), shown);
            assert_eq!(path_shown.is_some(), shown, "{path_shown:?}");
            child.kill().expect("its real user is this one");
            child.wait().expect("the child ends");
        }
    });
}
