//! Cgroups: root is shown all of them, and a user what it could read in their files at that time.

use std::{
    collections::BTreeMap,
    fs,
    mem::offset_of,
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::common::{Raw, Served, as_user, become_user, in_child, request, settings, turns};
use fastproc::{
    cgroups::{Cgroups, Fields, Source, record::Record},
    source::service::wire::{Op, Reply, Request, Status, part},
};
use fastproc_testbed::{Cgroup, GUARD, alone, gate, needs, wait_until};
use rustix::thread::{UnshareFlags, unshare_unsafe};

const NOBODY: u32 = 65534;
const ANY_AGE: Duration = Duration::from_nanos(u64::MAX);

fn asked(groups: u32) -> Request {
    asked_with_age(groups, Duration::ZERO)
}

fn asked_with_age(groups: u32, max_age: Duration) -> Request {
    Request {
        groups,
        ..request(Op::Cgroups, max_age)
    }
}

type Rows = BTreeMap<String, (Fields, u64)>;

/// The groups and the CPU time of each cgroup that the service shows, by path.
fn shown(raw: &Raw) -> Rows {
    shown_of(raw, Fields::CPU | Fields::PRESSURE)
}

fn shown_of(raw: &Raw, groups: Fields) -> Rows {
    let (reply, buffer) = raw.ask(asked(groups.bits())).expect("an answer");
    assert_eq!((reply.status, reply.layout), (Status::Ok, Record::LAYOUT));
    rows(&reply, &buffer.expect("it does not say that it has one"))
}

fn rows(reply: &Reply, buffer: &OwnedFd) -> Rows {
    let mut bytes = vec![0; reply.buffer_bytes as usize];
    rustix::io::pread(buffer, &mut bytes, 0).expect("a file");
    let [records, paths] = [part::CGROUPS, part::PATHS].map(|at| reply.parts[at]);
    assert_eq!(records.count, paths.count);
    assert_eq!(records.stride, size_of::<Record>() as u64);
    let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let row = |number: u64| {
        let at = (records.offset + number * records.stride) as usize;
        let place = (paths.offset + number * 8) as usize;
        let start = reply.parts[part::PATH_BYTES].offset as usize + half(place) as usize;
        let path = &bytes[start..start + half(place + 4) as usize];
        let groups = half(at + offset_of!(Record, identity.groups));
        let usage = word(at + offset_of!(Record, cpu.usage_ns));
        let path = String::from_utf8_lossy(path).into_owned();
        (path, (Fields::from_bits_retain(groups), usage))
    };
    (0..records.count).map(row).collect()
}

/// A cgroup in another one, whose process has used some CPU time.
struct Tree {
    cgroup: Cgroup,
    served: Served,
    root: Raw,
}

impl Tree {
    fn new(name: &str) -> Option<Self> {
        let cgroup = gate::bpf().then(|| Cgroup::new("outer/inner"))??;
        let mut busy = cgroup.command("exit 0").spawn().expect("there is a shell");
        busy.wait().expect("it ends");
        let served = Served::start(name, None);
        let root = served.connect();
        Some(Self {
            cgroup,
            served,
            root,
        })
    }

    fn inner(&self) -> PathBuf {
        self.cgroup.folder()
    }

    fn outer(&self) -> PathBuf {
        self.inner().parent().expect("it is nested").into()
    }

    /// The paths of both in the hierarchy.
    fn paths(&self) -> [String; 2] {
        let inner = self.cgroup.path();
        let outer = inner.strip_suffix("/inner").expect("its name").to_owned();
        [outer, inner]
    }

    /// What root sees of the inner one.
    fn whole(&self) -> (Fields, u64) {
        let all = shown(&self.root);
        *all.get(&self.cgroup.path()).expect("root sees it")
    }

    /// Lets a user check what it is shown.
    fn as_user(&self, check: impl FnOnce(&Raw)) {
        let socket = self.served.path();
        as_user(NOBODY, || {
            check(&Raw::open(&socket).expect("the service listens"));
        });
    }
}

/// Sets the mode of a file, if the cgroup has it.
fn set_mode(path: &Path, mode: u32) {
    if !path.exists() {
        return;
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("its mode is set");
}

#[test]
fn a_user_is_shown_what_it_may_read_and_root_everything() {
    let _alone = alone();
    let Some(tree) = Tree::new("cgroups") else {
        return;
    };
    let [outer, inner] = tree.paths();
    let before = tree.cgroup.usage_ns();
    let whole = tree.whole();
    let (groups, usage) = whole;
    assert!(groups.contains(Fields::CPU) && usage >= before && usage <= tree.cgroup.usage_ns());

    tree.as_user(|raw| assert_eq!(shown(raw).get(&inner), Some(&whole)));
    // Only the files of requested groups count, and one of them is enough.
    set_mode(&tree.inner().join("cpu.pressure"), 0o440);
    set_mode(&tree.inner().join("memory.max"), 0o400);
    let without = (groups - Fields::PRESSURE, usage);
    tree.as_user(|raw| {
        assert_eq!(shown(raw).get(&inner), Some(&without));
        let of_cpu = shown_of(raw, Fields::CPU);
        assert_eq!(of_cpu.get(&inner), Some(&(groups & Fields::CPU, usage)));
    });
    set_mode(&tree.inner().join("cpu.pressure"), 0o444);
    set_mode(&tree.inner().join("cpu.weight"), 0o400);
    set_mode(&tree.inner().join("cpu.stat"), 0o404);
    tree.as_user(|raw| {
        let all = shown(raw);
        assert_eq!(all.get(&inner), Some(&(groups - Fields::CPU, 0)));
        assert!(all.get(&outer).is_some_and(|of| of.0 == groups));
    });
    set_mode(&tree.inner().join("cpu.weight"), 0o444);
    set_mode(&tree.inner().join("cpu.stat"), 0o444);
    // Another owner: the user itself, whose own rights count.
    std::os::unix::fs::chown(tree.inner().join("cpu.stat"), Some(NOBODY), None)
        .expect("root sets the owner");
    set_mode(&tree.inner().join("cpu.stat"), 0o044);
    tree.as_user(|raw| {
        assert_eq!(shown(raw).get(&inner), Some(&(groups - Fields::CPU, 0)));
    });
    set_mode(&tree.inner().join("cpu.stat"), 0o400);
    tree.as_user(|raw| assert_eq!(shown(raw).get(&inner), Some(&whole)));
    // The user's own group, whose rights count then.
    std::os::unix::fs::chown(tree.inner().join("cpu.stat"), Some(0), Some(NOBODY))
        .expect("root sets the owner");
    set_mode(&tree.inner().join("cpu.stat"), 0o404);
    tree.as_user(|raw| {
        assert_eq!(shown(raw).get(&inner), Some(&(groups - Fields::CPU, 0)));
    });
    set_mode(&tree.inner().join("cpu.stat"), 0o040);
    tree.as_user(|raw| assert_eq!(shown(raw).get(&inner), Some(&whole)));
    set_mode(&tree.outer(), 0o750);
    tree.as_user(|raw| {
        let all = shown(raw);
        assert!(!all.contains_key(&inner) && !all.contains_key(&outer) && all.contains_key("/"));
    });
    assert_eq!(tree.whole(), whole);
    set_mode(&tree.outer(), 0o755);
    set_mode(&tree.inner().join("cgroup.events"), 0o400);
    tree.as_user(|raw| {
        let all = shown(raw);
        assert!(!all.contains_key(&inner) && all.contains_key(&outer));
    });
}

/// However old values may be, a user is shown none from more than a second before, and by the modes of then.
#[test]
fn a_mode_that_was_changed_counts_after_a_second_at_most() {
    let _alone = alone();
    let Some(tree) = Tree::new("cgroup-modes") else {
        return;
    };
    let [_, inner] = tree.paths();
    let any_age = |groups: Fields| asked_with_age(groups.bits(), ANY_AGE);
    let (groups, usage) = tree.whole();
    let last_of_root = || {
        let both = any_age(Fields::CPU | Fields::PRESSURE);
        let (reply, _) = tree.root.ask(both).expect("an answer");
        assert_eq!(reply.status, Status::Ok);
        reply
    };
    let first = last_of_root();
    let ask = |raw: &Raw| {
        let asked_ns = fastproc::host::boottime_ns();
        let (reply, buffer) = raw.ask(any_age(Fields::CPU)).expect("an answer");
        assert_eq!(reply.status, Status::Ok);
        assert!(reply.kernel_boottime_ns + 1_000_000_000 >= asked_ns);
        rows(&reply, &buffer.expect("the first of this connection"))
    };
    let cpu = (groups & Fields::CPU, usage);
    let (mut told, mut tell) = turns();
    let socket = tree.served.path();
    let child = in_child(|| {
        become_user(NOBODY);
        let new = || Raw::open(&socket).expect("the service listens");
        assert_eq!(ask(&new()).get(&inner), Some(&cpu));
        tell.give();
        tell.wait();
        wait_until("the new mode to count", || {
            ask(&new()).get(&inner) == Some(&(Fields::empty(), 0))
        });
        tell.give();
    });
    told.wait();
    set_mode(&tree.inner().join("cpu.stat"), 0o400);
    told.give();
    told.wait();
    child.join();
    // Root has no bound. The users' snapshots had no pressure, so this one is still the last that has it.
    wait_until("root's snapshot to be older than users may see", || {
        first.kernel_boottime_ns + 1_000_000_000 < fastproc::host::boottime_ns()
    });
    assert_eq!(last_of_root().generation, first.generation);
}

/// The path of a cgroup on which something is mounted leads elsewhere, even if that is of the same file system.
#[test]
fn a_mount_over_a_cgroup_hides_it_from_users() {
    let _alone = alone();
    let Some(tree) = Tree::new("cgroup-mounts") else {
        return;
    };
    let [outer, inner] = tree.paths();
    let (groups, _) = tree.whole();
    let file = |folder: PathBuf| folder.join("cpu.stat");
    for (from, to, shows) in [
        (tree.outer(), tree.inner(), None),
        (tree.inner(), tree.inner(), None),
        (
            file(tree.outer()),
            file(tree.inner()),
            Some(groups - Fields::CPU),
        ),
    ] {
        let _mounted = Mounted::new(&from, &to);
        tree.as_user(|raw| {
            let all = shown(raw);
            assert_eq!(all.get(&inner).map(|of| of.0), shows);
            assert!(all.contains_key(&outer));
        });
    }
    tree.as_user(|raw| assert_eq!(shown(raw).get(&inner).map(|of| of.0), Some(groups)));
}

struct Mounted(PathBuf);

impl Mounted {
    fn new(from: &Path, to: &Path) -> Self {
        let mut mount = Command::new("mount");
        mount.arg("--bind").args([from, to]);
        assert!(mount.status().expect("there is a mount").success());
        Self(to.into())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_user_that_may_be_confined_is_refused() {
    let _alone = alone();
    let Some(tree) = Tree::new("cgroup-confined") else {
        return;
    };
    let socket = tree.served.path();
    as_user(NOBODY, || {
        // As Landlock needs it.
        rustix::thread::set_no_new_privs(true).expect("anybody may");
        let raw = Raw::open(&socket).expect("the service listens");
        let (reply, buffer) = raw.ask(asked(0)).expect("an answer");
        assert_eq!(reply.status, Status::Credentials);
        assert!(buffer.is_none());
    });
}

/// More cgroups than a user may be shown are neither read nor checked for it; root has a bound of its own.
#[test]
fn users_are_refused_if_there_are_too_many_cgroups() {
    let _alone = alone();
    let Some(tree) = Tree::new("cgroups-many") else {
        return;
    };
    let mut few = settings(None);
    few.most_cgroups = 2;
    let served = Served::start_with("cgroups-few", &few);
    let socket = served.path();
    let root = Raw::open(&socket).expect("the service listens");
    let refused = |max_age| {
        as_user(NOBODY, || {
            let raw = Raw::open(&socket).expect("the service listens");
            let (reply, _) = raw.ask(asked_with_age(0, max_age)).expect("an answer");
            assert_eq!(reply.status, Status::Busy);
        });
    };
    let shown = |max_age| {
        let (reply, _) = root.ask(asked_with_age(0, max_age)).expect("an answer");
        assert_eq!(reply.status, Status::Ok);
        reply.generation
    };
    let [now, second] = [Duration::ZERO, Duration::from_secs(1)];
    refused(now);
    assert_eq!(shown(now), 1);
    // Now there is a snapshot, which was made for root.
    refused(second);
    refused(now);
    assert_eq!((shown(ANY_AGE), shown(now)), (1, 2));
    drop(tree);
}

/// A user could make deep trees below a cgroup of its own. Looking a path up takes as long as it has parts, so too long
/// ones are left out, and nobody is refused.
#[test]
fn a_deep_tree_is_shown_to_a_user_but_for_what_has_too_long_a_path() {
    let _alone = alone();
    let Some(tree) = Tree::new("cgroup-deep") else {
        return;
    };
    let left_out = |raw: &Raw| {
        let (reply, _) = raw.ask(asked(0)).expect("an answer");
        reply.missed
    };
    // An interrupted test may have left some.
    let before = left_out(&Raw::open(&tree.served.path()).expect("the service listens"));
    let deep = Cgroup::new(&["d"; 200].join("/")).expect("root may make cgroups");
    let long = Cgroup::new(&[&*"l".repeat(200); 6].join("/")).expect("root may make cgroups");
    let check = |raw: &Raw| {
        let groups = Fields::CPU | Fields::PRESSURE;
        let (reply, buffer) = raw.ask(asked(groups.bits())).expect("an answer");
        let all = rows(&reply, &buffer.expect("the first of this connection"));
        // One of each: the others are below it.
        assert_eq!(reply.missed, before + 2);
        for path in [deep.path(), long.path()] {
            for path in Path::new(&path).ancestors() {
                let path = path.to_str().expect("it is text");
                let is_short = path.len() <= 1024 && path.matches('/').count() <= 64;
                assert_eq!(all.contains_key(path), is_short, "{path}");
            }
        }
    };
    tree.as_user(check);
    check(&tree.root);
}

#[test]
fn another_cgroup_namespace_and_unknown_groups_are_refused() {
    let _alone = alone();
    needs!(gate::bpf());
    let served = Served::start("cgroup-namespace", None);
    let socket = served.path();
    let raw = Raw::open(&socket).expect("the service listens");
    let (reply, _) = raw.ask(asked(1 << 30)).expect("an answer");
    assert_eq!(reply.status, Status::Groups);
    in_child(|| {
        // SAFETY: it shares its descriptors with no thread.
        unsafe { unshare_unsafe(UnshareFlags::NEWCGROUP) }
            .expect("root may unshare its cgroup namespace");
        let raw = Raw::open(&socket).expect("the service listens");
        let (reply, _) = raw.ask(asked(0)).expect("an answer");
        assert_eq!(reply.status, Status::Namespace);
        // Its processes are those of all.
        let processes = request(Op::Snapshot, Duration::ZERO);
        let (reply, _) = raw.ask(processes).expect("an answer");
        assert_eq!(reply.status, Status::Ok);
    })
    .join();
}

/// The buffer of a snapshot of cgroups is used again for processes, and holds nothing of it then.
#[test]
fn a_buffer_that_had_cgroups_is_written_anew() {
    let _alone = alone();
    needs!(gate::bpf(), Cgroup::new("any").is_some());
    let served = Served::start("cgroup-buffers", None);
    let raw = served.connect();
    let mut collector = served.builder().open().expect("the service answers");
    for _ in 0..20 {
        assert!(shown(&raw).contains_key("/"));
        let snapshot = collector.snapshot().expect("the service answers");
        let own = snapshot
            .get(std::process::id())
            .expect("the process is shown");
        assert_eq!(own.identity().tgid, std::process::id());
        let (reply, _) = raw
            .ask(request(Op::Snapshot, Duration::ZERO))
            .expect("an answer");
        assert_eq!(reply.status, Status::Ok);
    }
}

/// The library reads for a user through the service, and without it from the files.
#[test]
fn the_library_shows_a_user_the_same_by_the_service_and_by_the_files() {
    let _alone = alone();
    let Some(mut tree) = Tree::new("cgroup-library") else {
        return;
    };
    // A user sees a cgroup only if he may read its cgroup.events, by the service and by the files.
    let hidden = tree.outer().join("hidden");
    fs::create_dir(&hidden).expect("root may make a cgroup");
    set_mode(&hidden.join("cgroup.events"), 0o600);
    let [outer, inner] = tree.paths();
    let (groups, usage) = tree.whole();
    let read = |cgroups: &mut Cgroups, source: Source| {
        let snapshot = cgroups.snapshot().expect("it can be read");
        let found = snapshot
            .find(inner.as_bytes())
            .expect("the cgroup is shown");
        assert_eq!(found.record().identity.groups, groups.bits());
        assert_eq!(found.cpu().expect("a group").usage_ns, usage);
        assert_eq!(found.name(), b"inner");
        assert!(snapshot.began_ns() <= fastproc::host::boottime_ns());
        // Other tests make others meanwhile.
        let own = snapshot.iter().map(|one| one.path().to_vec());
        let mut paths: Vec<_> = own
            .filter(|path| path.starts_with(outer.as_bytes()))
            .collect();
        paths.sort();
        assert_eq!(cgroups.source(), source);
        paths
    };
    let socket = tree.served.path();
    let open = |source: Option<Source>| {
        let builder = Cgroups::builder().fields(Fields::CPU | Fields::PRESSURE);
        builder
            .service_timeout(GUARD)
            .source(source)
            .open_at(Some(&socket))
    };
    let (mut told, mut tell) = turns();
    let child = in_child(|| {
        become_user(NOBODY);
        let mut cgroups = open(None).expect("the files at least");
        let mut by_files = open(Some(Source::Files)).expect("everybody may");
        let mut by_service = open(Some(Source::Service)).expect("the service answers");
        assert!(cgroups.refusal().is_some());
        for _ in 0..3 {
            let served = read(&mut cgroups, Source::Service);
            assert_eq!(served, read(&mut by_files, Source::Files));
            assert_eq!(served, read(&mut by_service, Source::Service));
        }
        tell.give();
        tell.wait();
        assert_eq!(
            read(&mut cgroups, Source::Files),
            read(&mut by_files, Source::Files)
        );
        tell.give();
    });
    told.wait();
    tree.served.stop();
    // The child has the listening socket, too, so a connection to it would wait for an answer.
    fs::remove_file(&socket).expect("it listened there");
    told.give();
    told.wait();
    child.join();
    fs::remove_dir(hidden).expect("it is empty");
}
