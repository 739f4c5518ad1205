//! Opening if something is missing: a typed error or another source, and libbpf prints nothing.
//!
//! Each case changes the whole process, so each test runs itself again.

use std::{fs, path::Path, time::Duration};

use fastproc::{
    Collector, Error, Fields, Process, SourceKind, cgroups,
    counters::{self, Counters, Want},
    exits::{Event, Exits},
};
use fastproc_testbed::{gate, is_rerun, needs, rerun, wait_until};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn open(kind: SourceKind, fields: Fields) -> Result<Collector, Error> {
    let builder = Collector::builder().source(Some(kind));
    builder.fields(fields).open()
}

/// Runs a test again, in which this is its body, and which prints nothing.
fn quiet(test: impl Fn(), body: impl FnOnce()) {
    if is_rerun() {
        return body();
    }
    needs!(gate::bpf());
    let output = rerun(test, "quiet");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(printed, "");
}

/// Mounts something there, for this process only.
fn mount_here(kind: &str, path: &str, options: Option<&std::ffi::CStr>) {
    use rustix::{
        mount::{MountFlags, MountPropagationFlags, mount, mount_change},
        thread::UnshareFlags,
    };
    // SAFETY: this process has one thread besides the harness's, which touches no files.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.expect("a namespace of its own");
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .expect("it is private");
    mount("none", path, kind, MountFlags::empty(), options).expect("it is mounted");
}

/// Makes every bpf(2) of this process fail, like a container's filter.
fn deny_bpf() {
    let statement = |code: u32, k| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let filter = [
        // The number of the call is the first word.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter {
            jf: 1,
            ..statement(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                libc::SYS_bpf as u32,
            )
        },
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        ),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: numbers, and a program that lives across the call.
    let result = unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
}

/// Every source that needs BPF fails with `expected`, and the files work.
fn only_files_serve(expected: impl Fn(&Error) -> bool) {
    for kind in [SourceKind::Bpf, SourceKind::BpfIter] {
        let error = open(kind, Fields::TOP).expect_err("it cannot be had");
        assert!(expected(&error), "{kind}: {error:?}");
    }
    let mut collector = Collector::builder().open().expect("/proc serves");
    assert_eq!(collector.source(), SourceKind::Procfs);
    let snapshot = collector.snapshot().expect("/proc can be read");
    assert!(snapshot.get(std::process::id()).is_some());
    let machine = Counters::open().expect("the files serve");
    let reason = machine.unavailable().expect("there is no BPF");
    let counters::Error::Bpf(reason) = reason else {
        panic!("{reason:?}")
    };
    assert!(expected(reason), "{reason:?}");
}

#[test]
fn without_type_information_nothing_is_printed() {
    quiet(without_type_information_nothing_is_printed, || {
        mount_here("tmpfs", "/sys/kernel/btf", None);
        only_files_serve(|error| matches!(error, Error::NoBtf(_)));
    });
}

#[test]
fn where_bpf_is_denied_nothing_is_printed() {
    quiet(where_bpf_is_denied_nothing_is_printed, || {
        deny_bpf();
        only_files_serve(
            |error| matches!(error, Error::Forbidden { reason } if reason.contains("ermi")),
        );
    });
}

/// Every process of a snapshot has its values, and so do the files of the machine that exist.
fn procfs_serves() {
    let mut collector = Collector::builder()
        .fields(Fields::THREE_FILES)
        .open()
        .expect("/proc serves");
    let snapshot = collector.snapshot().expect("/proc can be read");
    let own = snapshot
        .get(std::process::id())
        .expect("this process is there");
    assert!(own.memory().is_some_and(|memory| memory.rss() > 0));
}

#[test]
fn without_sys_the_files_serve() {
    quiet(without_sys_the_files_serve, || {
        let here = fastproc::Host::read().expect("the host can be read");
        mount_here("tmpfs", "/sys", None);
        let there = fastproc::Host::read().expect("/proc tells as much");
        assert_eq!(there.online_cpus, here.online_cpus);
        assert_eq!(
            there.possible_cpus.div_ceil(4),
            here.possible_cpus.div_ceil(4)
        );
        only_files_serve(|error| matches!(error, Error::NoSys(_)));
        procfs_serves();
    });
}

#[test]
fn where_proc_shows_processes_alone_they_are_shown() {
    quiet(where_proc_shows_processes_alone_they_are_shown, || {
        mount_here("proc", "/proc", Some(c"subset=pid"));
        assert!(
            !Path::new("/proc/stat").exists(),
            "it shows processes alone"
        );
        procfs_serves();
    });
}

fn limit_descriptors(limit: u64) {
    let limits = Rlimit {
        current: Some(limit),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limits).expect("it can be lowered");
}

/// With `limit` descriptors everything works, or the error names the limit.
fn few_descriptors(limit: u64) {
    limit_descriptors(limit);
    for kind in SourceKind::LOCAL {
        let read = open(kind, Fields::all()).and_then(|mut collector| {
            collector.snapshot()?;
            collector.snapshot().map(|snapshot| snapshot.len())
        });
        match read {
            Ok(processes) => assert!(processes > 1),
            Err(Error::Descriptors { limit: named }) => assert_eq!(named, limit),
            Err(error) => panic!("{kind}: {error:?}"),
        }
    }
    let mut collector = Collector::builder().open().expect("one of them serves");
    collector.snapshot().expect("one of them serves");
    drop(collector);
    let mut machine = Counters::open().expect("the files serve");
    if let Some(reason) = machine.unavailable() {
        let named = matches!(reason, counters::Error::Bpf(Error::Descriptors { .. }));
        assert!(named, "{reason:?}");
    }
    machine.collect(Want::STAT).expect("the files serve");
}

#[test]
fn few_descriptors_suffice_or_are_named() {
    quiet(few_descriptors_suffice_or_are_named, || {
        // The harness has different files open each time.
        // SAFETY: this process uses none of its inherited descriptors except the standard streams.
        assert_eq!(unsafe { libc::close_range(3, libc::c_uint::MAX, 0) }, 0);
        for limit in [6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 32, 64] {
            few_descriptors(limit);
        }
    });
}

/// Files of processes that are kept open leave half of the descriptors to others, and are closed if others need them
/// all.
#[test]
fn kept_files_give_way() {
    quiet(kept_files_give_way, give_way);
}

fn give_way() {
    limit_descriptors(64);
    let mut collector = open(SourceKind::Procfs, Fields::all()).expect("it serves everywhere");
    for _ in 0..3 {
        collector.snapshot().expect("there are enough");
    }
    let entries = fs::read_dir("/proc/self/fd").expect("/proc is mounted");
    let kept: Vec<u32> = entries
        .flatten()
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|path| path.ends_with("stat")))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    assert!(!kept.is_empty());
    assert!(kept.iter().all(|&number| number < 32), "{kept:?}");
    let mut others = Vec::new();
    while let Ok(file) = fs::File::open("/dev/null") {
        others.push(file);
    }
    for _ in 0..3 {
        let snapshot = collector.snapshot().expect("what is kept is given up");
        assert!(snapshot.len() > 1);
    }
    drop(others);
    collector.snapshot().expect("there are enough");
}

/// Files of cgroups that are kept open leave three quarters of the descriptors to others, and no cgroup is left out for
/// want of them.
#[test]
fn cgroups_leave_descriptors_to_others() {
    quiet(cgroups_leave_descriptors_to_others, leave_descriptors);
}

fn leave_descriptors() {
    let folder = fastproc_testbed::Folder::new("kept-cgroups");
    for at in 0..40 {
        let cgroup = folder.join(at.to_string());
        fs::create_dir_all(&cgroup).expect("a folder of our own");
        fs::write(cgroup.join("cgroup.stat"), "nr_descendants 0\n").expect("the file is written");
    }
    limit_descriptors(64);
    let open = || cgroups::Cgroups::builder().open_recorded(&folder);
    let mut readers = [(); 3].map(|()| open().expect("it is a folder"));
    let mut read = |reader: usize| readers[reader].snapshot().map(cgroups::Snapshot::len);
    for reader in [0, 1, 2, 0, 1, 2] {
        assert_eq!(read(reader).expect("there are enough"), 41);
    }
    let mut others = Vec::new();
    while let Ok(file) = fs::File::open("/dev/null") {
        others.push(file);
    }
    assert!(others.len() >= 40, "{} are left", others.len());
    let named = read(0).expect_err("there are none left");
    assert!(
        matches!(named, cgroups::Error::Bpf(Error::Descriptors { limit: 64 })),
        "{named:?}"
    );
    drop(others);
    assert_eq!(read(0).expect("there are enough"), 41);
}

/// Runs `child` in a child of this process, and waits for its success.
fn forked(child: impl FnOnce() -> bool) {
    // SAFETY: the other threads of this process, those of the harness, wait and hold no lock.
    match unsafe { libc::fork() } {
        -1 => panic!("{}", std::io::Error::last_os_error()),
        // SAFETY: ends the child without running the parent's destructors.
        0 => unsafe { libc::_exit(i32::from(!child())) },
        pid => {
            let mut status = -1;
            // SAFETY: a child of this process, and a pointer to its status.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            assert_eq!(status, 0, "the child ends well");
        }
    }
}

#[test]
fn a_child_is_told_to_open_its_own() {
    quiet(a_child_is_told_to_open_its_own, fork_beside_open_sources);
}

fn fork_beside_open_sources() {
    for kind in SourceKind::LOCAL {
        let mut collector = open(kind, Fields::TOP).expect("root may read all");
        collector.snapshot().expect("a snapshot");
        forked(|| matches!(collector.snapshot(), Err(Error::Forked)));
        let after = collector.snapshot().expect("the parent goes on");
        assert!(after.get(std::process::id()).is_some(), "{kind}");
        let pids: Vec<u32> = after.iter().map(Process::pid).collect();
        assert!(
            pids.is_sorted_by(|one, next| one < next),
            "{kind}: {pids:?}"
        );
        forked(|| {
            open(kind, Fields::TOP).is_ok_and(|mut own| {
                let snapshot = own.snapshot();
                snapshot.is_ok_and(|snapshot| snapshot.get(std::process::id()).is_some())
            })
        });
    }
    let mut exits = Some(Exits::builder().at_once(true).open().expect("exits open"));
    forked(|| {
        let told = exits.as_mut().map(|exits| exits.read(|_| ()));
        exits = None;
        matches!(told, Some(Err(Error::Forked)))
    });
    // The child has exited, and neither its snapshot nor its exit has affected the parent's reading.
    let mut exits = exits.expect("the child's was another");
    let mut ends = 0;
    wait_until("an exit", || {
        exits
            .wait(Duration::from_secs(1))
            .expect("it can be waited for");
        exits
            .read(|event| ends += u32::from(matches!(event, Event::Exit(_))))
            .expect("the parent goes on");
        ends > 0
    });
    let mut machine = Counters::open().expect("it opens");
    machine.collect(Want::STAT).expect("it is read");
    forked(|| {
        matches!(
            machine.collect(Want::STAT),
            Err(counters::Error::Bpf(Error::Forked))
        ) && matches!(machine.stat(), Err(counters::Error::Bpf(Error::Forked)))
    });
    machine.collect(Want::STAT).expect("the parent goes on");
}

#[test]
fn the_first_snapshot_is_that_of_opening_if_it_may_and_is_taken_at_once() {
    needs!(gate::bpf());
    let sources = [SourceKind::Bpf, SourceKind::BpfIter];
    for (source, one_shot) in sources.into_iter().flat_map(|of| [(of, true), (of, false)]) {
        let open = || {
            let collector = Collector::builder()
                .one_shot(one_shot)
                .reuse_opening(!one_shot)
                .source(Some(source))
                .fields(Fields::TOP);
            collector.open().expect("there is BPF")
        };
        // This takes more than a tenth of a second sometimes, on a busy machine.
        wait_until("a snapshot that opening made", || {
            let mut collector = open();
            let opened = now_ns();
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            assert!(snapshot.get(std::process::id()).is_some());
            let stats = snapshot.stats();
            let is_of_opening = stats.boottime_ns < opened;
            let ended = stats.boottime_ns + stats.read_for.as_nanos() as u64;
            assert_eq!(ended <= opened, is_of_opening, "rates are over this time");
            is_of_opening
        });
        let mut collector = open();
        std::thread::sleep(Duration::from_millis(150));
        let asked = now_ns();
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        assert!(snapshot.stats().boottime_ns >= asked, "{source} is too old");
        let asked = now_ns();
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        assert!(snapshot.stats().boottime_ns >= asked, "{source}, again");
    }
}

/// The time since boot.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The first snapshot comes from what costs least to open.
#[test]
fn a_quick_start_is_followed_by_the_best_source_and_exits() {
    needs!(gate::bpf());
    let builder = Collector::builder().service_socket(None).exits(true);
    let mut collector = builder.quick_start(true).open().expect("it opens");
    assert!(collector.exits_refused().is_none());
    let pid = std::process::id();
    for (number, has_exits) in [false, false, true].into_iter().enumerate() {
        let snapshot = collector.snapshot().expect("a snapshot");
        assert!(snapshot.get(pid).is_some(), "{number}");
        assert_eq!(snapshot.exits().is_some(), has_exits, "{number}");
        if number > 0 {
            assert_ne!(snapshot.stats().source, SourceKind::Procfs, "{number}");
        }
    }
}
