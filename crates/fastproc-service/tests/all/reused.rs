//! A buffer in which only changed records are written again holds the same as one that is written completely, and readers
//! learn which records have changed since their last snapshots.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::common::{Served, as_user};
use fastproc::{Collector, Fields, Process, Snapshot, SourceKind, record::Record};
use fastproc_testbed::{Brackets, Reborn, Running, gate, needs, wait_for, wait_until};
use nix::libc;

const NOBODY: u32 = 65_534;

/// A process that sleeps until it receives a line, and then runs.
struct Cat(Running);

impl Cat {
    fn start() -> Self {
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut cat = Self(Running::start(&mut cat));
        cat.run();
        cat
    }

    fn run(&mut self) {
        let Child { stdin, stdout, .. } = &mut *self.0;
        writeln!(stdin.as_mut().expect("it is piped"), "run").expect("it reads");
        let mut line = String::new();
        let mut output = BufReader::new(stdout.as_mut().expect("it is piped"));
        output.read_line(&mut line).expect("it writes");
    }
}

/// What a snapshot shows of these processes.
fn values(snapshot: &Snapshot<'_>, cats: &[Cat]) -> String {
    let text = |cat: &Cat| {
        let process = snapshot.get(cat.0.id())?;
        let cpu = process.cpu()?;
        let counters = (cpu.sum_exec_ns(), cpu.minflt, cpu.nvcsw, cpu.nivcsw);
        let memory = process.memory()?;
        let sizes = (memory.vsize, memory.rss_anon, memory.rss_file);
        Some(format!("{:?} {counters:?} {sizes:?}", process.identity()))
    };
    let texts: Vec<_> = cats.iter().map(text).collect();
    format!("{texts:#?}")
}

#[test]
fn a_reader_that_stays_is_handed_what_a_walk_reads() {
    needs!(gate::bpf());
    let served = Served::start("reused", Some(SourceKind::Bpf));
    let mut stays = served.builder().fields(Fields::TOP).open().expect("served");
    let walks = Collector::builder().source(Some(SourceKind::Bpf));
    let walks = walks.fields(Fields::TOP).keep_records(false);
    let mut walks = walks.open().expect("BPF can be used");
    let mut cats: Vec<_> = (0..20).map(|_| Cat::start()).collect();
    for round in 0..40 {
        match round % 5 {
            0..3 => cats[round % 20].run(),
            3 => cats.push(Cat::start()),
            _ => drop(cats.remove(round % 20)),
        }
        let mut brackets = Brackets::new();
        let (walked, handed) = wait_for("looks between which none of them runs", || {
            let walk = || values(&walks.snapshot().expect("it walks"), &cats);
            let hand = || values(&stays.snapshot().expect("it answers"), &cats);
            brackets.read(walk, hand)
        });
        assert_eq!(handed, walked, "in round {round}");
    }
}

/// The parts of a record that a process has.
fn shown(process: Process<'_>) -> Record {
    let mut record = Record::default();
    record.copy_groups(process.record(), process.fields());
    record
}

/// A reader that remembers its last snapshot.
struct Reader {
    collector: Collector,
    last: HashMap<u32, Record>,
    /// Records that the service called unchanged, and all.
    unchanged: (usize, usize),
}

impl Reader {
    fn open(served: &Served, fields: Fields, max_age: Duration) -> Self {
        let builder = served.builder().fields(fields).max_age(max_age);
        Self {
            collector: builder.open().expect("served"),
            last: HashMap::new(),
            unchanged: (0, 0),
        }
    }

    /// Takes a snapshot, and checks that the unchanged records are those of the last one. Returns the changed processes.
    fn look(&mut self) -> Vec<u32> {
        let snapshot = self.collector.snapshot().expect("it answers");
        let mut changed = Vec::new();
        let mut now = HashMap::new();
        for (process, has_changed) in snapshot.iter_with_changed() {
            let (pid, record) = (process.pid(), shown(process));
            if has_changed {
                changed.push(pid);
            } else {
                assert_eq!(self.last.get(&pid), Some(&record), "{pid}");
                self.unchanged.0 += 1;
            }
            now.insert(pid, record);
        }
        self.unchanged.1 += now.len();
        self.last = now;
        changed
    }
}

#[test]
fn each_reader_learns_which_records_are_those_of_its_last_snapshot() {
    needs!(gate::bpf());
    let full = Fields::all() - Fields::THREADS;
    let mut served = Served::start("learns", Some(SourceKind::Bpf));
    let open = |fields, max_age| Reader::open(&served, fields, max_age);
    // In each of how many rounds it takes a snapshot.
    let mut readers = vec![
        (1, open(Fields::TOP, Duration::ZERO)),
        (3, open(Fields::TOP, Duration::ZERO)),
        (1, open(full, Duration::ZERO)),
        (2, open(Fields::TOP, Duration::from_secs(1))),
    ];
    let mut cats: Vec<_> = (0..20).map(|_| Cat::start()).collect();
    let mut reborn = None;
    for round in 0..36 {
        match round % 6 {
            0 | 1 => cats[round % 20].run(),
            2 => cats.push(Cat::start()),
            3 => {
                let ended = cats.remove(round % 20);
                let pid = ended.0.id();
                drop((ended, reborn.take()));
                let again = Reborn::start(pid, Path::new("/bin/sleep"), &["600"]);
                reborn = again.expect("root chooses pids");
            }
            _ => {}
        }
        let restarts = round == 18;
        if restarts {
            served.restart(Some(SourceKind::Bpf));
        }
        for (each, reader) in &mut readers {
            // Another service knows nothing of what this reader was shown.
            if restarts {
                assert_eq!(reader.look().len(), reader.last.len());
            } else if round % *each == 0 {
                reader.look();
            }
        }
    }
    for (_, reader) in &readers {
        let (unchanged, all) = reader.unchanged;
        assert!(unchanged > all / 4, "{unchanged} of {all}");
    }
}

/// A process that shares its root and working folder with this one, which /proc shows to nobody.
fn start_sharer() -> u32 {
    let flags = (libc::CLONE_FS | libc::SIGCHLD) as libc::c_ulong;
    // SAFETY: like fork(2); the child only makes system calls.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if pid == 0 {
        // SAFETY: it uses none of these. They would keep sockets of other tests open.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
        loop {
            // SAFETY: needs no memory.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::pause();
            }
        }
    }
    u32::try_from(pid).expect("it can fork")
}

/// The switches of these processes by their files.
fn switches(cats: &[Cat]) -> Vec<Option<u64>> {
    let of = |cat: &Cat| {
        let status = fs::read_to_string(format!("/proc/{}/status", cat.0.id())).ok()?;
        let (_, rest) = status.split_once("\nvoluntary_ctxt_switches:")?;
        rest.lines().next()?.trim().parse().ok()
    };
    cats.iter().map(of).collect::<Vec<_>>()
}

#[test]
fn a_user_learns_only_of_changes_that_it_is_shown() {
    needs!(gate::bpf());
    let served = Served::start("user", Some(SourceKind::Bpf));
    let sharer = start_sharer();
    // Reads it again each time.
    let fields = Fields::TOP | Fields::CREDENTIALS;
    let mut root = Reader::open(&served, fields, Duration::ZERO);
    for _ in 0..20 {
        assert!(root.look().contains(&sharer));
    }
    let (unchanged, all) = root.unchanged;
    assert!(unchanged > all / 4, "{unchanged} of {all}");
    let mut cats: Vec<_> = (0..20).map(|_| Cat::start()).collect();
    // Becomes the user while it is watched.
    let command = "read line; exec setpriv --reuid 65534 --regid 65534 --clear-groups sleep 600";
    let mut becomes = Command::new("sh");
    let mut becomes = Running::start(becomes.args(["-c", command]).stdin(Stdio::piped()));
    let own = becomes.id();
    as_user(NOBODY, || {
        let mut often = Reader::open(&served, Fields::TOP | Fields::IO, Duration::ZERO);
        let mut seldom = Reader::open(&served, Fields::TOP | Fields::IO, Duration::ZERO);
        wait_until("a snapshot in which the sharer is unchanged", || {
            !often.look().contains(&sharer)
        });
        let has_io = |reader: &Reader| {
            let groups = reader.last.get(&own).map(|of| of.identity.groups);
            groups.is_some_and(|groups| groups & Fields::IO.bits() != 0)
        };
        assert!(!has_io(&often));
        for round in 0..24 {
            cats[round % 20].run();
            if round == 12 {
                let input = becomes.stdin.as_mut().expect("it is piped");
                writeln!(input, "become").expect("it reads");
                wait_until("its own process", || {
                    often.look();
                    has_io(&often)
                });
            }
            let mut brackets = Brackets::new();
            let (read, handed) = wait_for("looks between which none of them runs", || {
                let hand = || {
                    often.look();
                    let of = |cat: &Cat| Some(often.last.get(&cat.0.id())?.cpu.nvcsw);
                    cats.iter().map(of).collect::<Vec<_>>()
                };
                brackets.read(|| switches(&cats), hand)
            });
            assert_eq!(handed, read, "in round {round}");
            if round % 3 == 0 {
                seldom.look();
            }
        }
        for (unchanged, all) in [often.unchanged, seldom.unchanged] {
            assert!(unchanged > all / 4, "{unchanged} of {all}");
        }
    });
    let sharer = nix::unistd::Pid::from_raw(sharer as i32);
    nix::sys::signal::kill(sharer, nix::sys::signal::SIGKILL).expect("the child is killed");
    nix::sys::wait::waitpid(sharer, None).expect("the child ends");
}
