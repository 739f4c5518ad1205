//! Open files, by both sources.

mod elsewhere;
mod many;
mod odd;
mod orphans;
mod said;
mod storm;

use std::{
    collections::BTreeMap,
    fs,
    os::fd::AsRawFd,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use fastproc::files::{
    Address, Device, Error, Fields, File, Files, Holder, Kind, Mode, Slot, Snapshot, Source,
};
use fastproc_testbed::{
    Folder, Options, READS_BY_BPF, Testbed, again, as_user_with, assert_passed, gate, needs,
    own_process,
};
use rustix::{
    fs::{FileType, OFlags},
    process::getpid,
};

use self::{odd::Odd, said::Said};

/// `nobody` of every distribution.
const NOBODY: u32 = 65534;
const SOURCES: [Source; 2] = [Source::Bpf, Source::Procfs];

fn open(source: Source, fields: Fields) -> Files {
    let opened = Files::builder().source(Some(source)).fields(fields).open();
    opened.unwrap_or_else(|error| panic!("{source}: {error:?}"))
}

fn own_pid() -> u32 {
    getpid().as_raw_nonzero().get() as u32
}

fn process(snapshot: Snapshot<'_>, pid: u32) -> Holder<'_> {
    let found = snapshot.processes().find(|holder| holder.pid() == pid);
    found.expect("the process is there")
}

fn by_number(holder: Holder<'_>) -> BTreeMap<Slot, File<'_>> {
    holder.files().map(|file| (file.slot(), file)).collect()
}

#[test]
fn each_odd_descriptor_is_what_the_text_says() {
    needs!(
        gate::bpf(),
        own_process(each_odd_descriptor_is_what_the_text_says)
    );
    let odd = Odd::open();
    for source in SOURCES {
        let mut files = open(source, Fields::all());
        let holder = process(files.snapshot().expect("a snapshot"), own_pid());
        let found = by_number(holder);
        for (what, descriptor) in &odd.all {
            let slot = Slot::Descriptor(descriptor.as_raw_fd() as u32);
            let file = found.get(&slot);
            let file = file.unwrap_or_else(|| panic!("{source}: {what} is missing"));
            let said = Said::read(own_pid(), slot).expect("it is open");
            let differences = said.differences(*file);
            assert!(differences.is_empty(), "{source}: {what}: {differences:?}");
        }
        for slot in [Slot::CurrentDirectory, Slot::Root, Slot::Program] {
            let file = found.get(&slot).expect("every process has it");
            let said = Said::read(own_pid(), slot).expect("the file exists");
            let differences = said.differences(*file);
            assert!(
                differences.is_empty(),
                "{source}: {slot:?}: {differences:?}"
            );
        }
        kinds_are_told(&odd, source, &found);
        sockets_are_told(&odd, source, &found);
        let counted: u32 = Kind::ALL
            .iter()
            .filter_map(|&kind| holder.count(kind))
            .sum();
        assert_eq!(holder.open(), Some(counted));
    }
}

fn kinds_are_told(odd: &Odd, source: Source, found: &BTreeMap<Slot, File<'_>>) {
    let file = |what| found[&Slot::Descriptor(odd.number(what))];
    for (what, kind) in [
        ("plain", Kind::File),
        ("memfd", Kind::File),
        ("path only", Kind::File),
        ("directory", Kind::Directory),
        ("null", Kind::Character),
        ("fifo", Kind::Fifo),
        ("pipe", Kind::Pipe),
        ("client", Kind::Socket),
        ("eventfd", Kind::Anonymous),
        ("namespace", Kind::Namespace),
        ("pidfd", Kind::Pidfd),
        ("link", Kind::Link),
        ("bound", Kind::Bound),
    ] {
        assert_eq!(file(what).kind(), kind, "{source}: {what}");
    }
    for (what, deleted) in [
        ("deleted", true),
        ("deleted folder", true),
        ("memfd", true),
        ("odd name", false),
        ("plain", false),
        ("pipe", false),
    ] {
        assert_eq!(file(what).is_deleted(), Some(deleted), "{source}: {what}");
    }
    assert_eq!(file("plain").mode(), Some(Mode::Write));
    assert_eq!(file("plain").position(), Some(1234));
    assert_eq!(file("plain").size(), Some(5000));
    assert_eq!(file("directory").mode(), Some(Mode::Read));
    assert_eq!(file("fifo").mode(), Some(Mode::Both));
    assert_eq!(
        (file("path only").mode(), file("path only").is_path_only()),
        (None, Some(true))
    );
    assert_eq!(file("pidfd").is_close_on_exec(), Some(true));
    assert_eq!(file("copy").is_close_on_exec(), Some(true));
    assert_eq!(file("eventfd").is_close_on_exec(), Some(false));
    let null = Device { major: 1, minor: 3 };
    assert_eq!(file("null").special_device(), Some(null));
}

fn sockets_are_told(odd: &Odd, source: Source, found: &BTreeMap<Slot, File<'_>>) {
    let file = |what| found[&Slot::Descriptor(odd.number(what))];
    let socket = |what| {
        let socket = file(what).socket();
        socket.unwrap_or_else(|| panic!("{source}: {what} is no socket"))
    };
    let shown = |what| {
        let socket = socket(what);
        let ends = [socket.local(), socket.peer()];
        let [local, peer] = ends.map(|end| end.map_or_else(|| "-".into(), |end| end.to_string()));
        format!("{} {} {local} {peer}", socket.netid(), socket.state_name())
    };
    let [port, client] = odd.ports;
    let listens = format!("tcp LISTEN 127.0.0.1:{port} -");
    assert_eq!(shown("listener"), listens);
    let of_client = format!("tcp ESTAB 127.0.0.1:{client} 127.0.0.1:{port}");
    assert_eq!(shown("client"), of_client);
    assert_eq!(socket("client").receive_queue(), Some(7), "{source}");
    assert_eq!(socket("listener").receive_queue(), Some(1), "{source}");
    assert!(shown("udp").ends_with(" 127.0.0.1:9") && shown("udp").starts_with("udp ESTAB "));
    assert_eq!(
        socket("unix path").local(),
        Some(Address::Path(odd.path.as_os_str().as_encoded_bytes()))
    );
    let uid = socket("client").uid();
    assert_eq!(uid, Some(rustix::process::geteuid().as_raw()));
    let own = fs::read_link("/proc/self/ns/net").expect("own namespace");
    let number = socket("client").network_namespace().expect("it is known");
    assert_eq!(own.to_string_lossy(), format!("net:[{number}]"));
    if source == Source::Procfs {
        assert_eq!(socket("abstract").local(), None, "it has a newline");
    } else {
        assert_eq!(shown("unbound"), "tcp UNCONN 0.0.0.0:0 -");
        assert_eq!(socket("netlink").netid(), "nl");
        let name = Some(Address::Abstract(&odd.abstract_name));
        assert_eq!(socket("abstract").local(), name);
        assert!(socket("abstract").listens());
        let of_pair = |at: usize| {
            let mut pair = odd.all.iter().filter(|(what, _)| *what == "pair");
            let number = pair.nth(at).expect("there are two").1.as_raw_fd() as u32;
            found[&Slot::Descriptor(number)].socket().expect("a socket")
        };
        assert_eq!(of_pair(0).peer(), Some(Address::Inode(of_pair(1).inode())));
        assert_eq!(of_pair(1).peer(), Some(Address::Inode(of_pair(0).inode())));
        assert_eq!(of_pair(0).netid(), "u_seq");
    }
}

/// With sections of one step a walk stops between any two descriptors, and within each word of a table.
#[test]
fn a_section_may_end_anywhere() {
    needs!(gate::bpf(), own_process(a_section_may_end_anywhere));
    let odd = Odd::open();
    let whole = |section| {
        let builder = Files::builder()
            .source(Some(Source::Bpf))
            .fields(Fields::all());
        let mut files = builder.section(section).open().expect("it opens");
        let snapshot = files.snapshot().expect("a snapshot");
        let holder = process(snapshot, own_pid());
        let names = holder.files().filter_map(|file| {
            let mut name = Vec::new();
            let is_known = file.write_name(&mut name);
            // That of the collector itself.
            let is_program = name == b"anon_inode:bpf-prog";
            (is_known && !is_program).then_some((file.slot(), name))
        });
        names.collect::<Vec<_>>()
    };
    let (short, long) = (whole(Duration::ZERO), whole(Duration::from_secs(1)));
    assert_eq!(short, long);
    assert!(short.len() > odd.all.len());
}

#[test]
fn each_group_is_read_alone() {
    needs!(gate::bpf(), own_process(each_group_is_read_alone));
    let odd = Odd::open();
    let links = fs::read_dir("/proc/self/fd").expect("own descriptors");
    let links = links.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let sockets = links.filter(|link| link.to_string_lossy().starts_with("socket:"));
    let sockets = sockets.count() as u32;
    for source in SOURCES {
        let mut counts = open(source, Fields::empty());
        let holder = process(counts.snapshot().expect("a snapshot"), own_pid());
        assert_eq!(holder.files().len(), 0);
        assert_eq!(holder.count(Kind::Socket), Some(sockets), "{source}");
        let total: u32 = Kind::ALL
            .iter()
            .filter_map(|&kind| holder.count(kind))
            .sum();
        assert_eq!(holder.open(), Some(total), "{source}");
        let mut only = open(source, Fields::SOCKETS);
        let holder = process(only.snapshot().expect("a snapshot"), own_pid());
        assert_eq!(holder.files().len(), sockets as usize, "{source}");
        assert!(holder.files().all(|file| file.kind() == Kind::Socket));
        let mut lean = open(source, Fields::FILES);
        let holder = process(lean.snapshot().expect("a snapshot"), own_pid());
        let plain = by_number(holder)[&Slot::Descriptor(odd.number("plain"))];
        assert_eq!((plain.size(), plain.is_deleted()), (Some(5000), None));
    }
}

/// No device is needed to name its node (`O_PATH`), of which no driver tells anything.
#[test]
fn open_gpus_are_listed_alone() {
    needs!(gate::bpf(), own_process(open_gpus_are_listed_alone));
    let folder = Folder::new("files-gpu");
    let node = |name: &str, major| {
        let path = folder.join(name);
        let mode = rustix::fs::Mode::RUSR;
        let number = rustix::fs::makedev(major, 128);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            FileType::CharacterDevice,
            mode,
            number,
        )?;
        rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, mode)
    };
    let (Ok(gpu), Ok(_other)) = (node("gpu", 226), node("other", 227)) else {
        gate::skipped("devices cannot be made here");
        return;
    };
    for source in SOURCES {
        let mut files = open(source, Fields::GPUS);
        let holder = process(files.snapshot().expect("a snapshot"), own_pid());
        let numbers: Vec<_> = holder.files().map(File::slot).collect();
        let expected = [Slot::Descriptor(gpu.as_raw_fd() as u32)];
        assert_eq!(numbers, expected, "{source}");
        assert_eq!(holder.gpus().count(), 0);
    }
}

/// Descriptors share files, so the first guess has too little room.
#[test]
fn the_arrays_grow_with_the_descriptors() {
    needs!(
        gate::bpf(),
        own_process(the_arrays_grow_with_the_descriptors)
    );
    let mut files = open(Source::Bpf, Fields::all());
    files.snapshot().expect("a snapshot");
    let mut script = "ulimit -n 12000; i=10; while [ $i -lt 11000 ]; do eval \"exec $i</dev/null\"; i=$((i+1)); done; echo; read x".to_owned();
    script.insert_str(0, "exec 2>&1; ");
    let mut child = Command::new("bash")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let mut line = [0];
    let out = child.stdout.as_mut().expect("a pipe");
    std::io::Read::read_exact(out, &mut line).expect("the shell has opened all");
    let snapshot = files.snapshot().expect("the arrays grow");
    let holder = process(snapshot, child.id());
    assert!(
        holder.open().is_some_and(|open| open >= 10_990),
        "{:?}",
        holder.open()
    );
    let devices = holder.files().filter(|file| file.kind() == Kind::Character);
    assert!(devices.count() >= 10_990);
    drop(child.stdin.take());
    child.wait().expect("it ends");
}

#[test]
fn a_thread_has_the_files_of_an_ended_leader() {
    needs!(gate::bpf());
    let bed = Testbed::open(&Options::only(["dead-leader"])).expect("the testbed starts");
    let pid = bed.process("dead-leader").expect("it was started").pid;
    let thread = fs::read_dir(format!("/proc/{pid}/task")).expect("it has threads");
    let thread = thread.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let thread = thread
        .filter_map(|name| name.parse::<u32>().ok())
        .find(|&tid| tid != pid);
    let path = format!("/proc/{pid}/task/{}/fd", thread.expect("one lives"));
    let count = fs::read_dir(path).expect("its files").count();
    let fields = Fields::FILES | Fields::PATHS;
    let in_short_sections = Files::builder()
        .source(Some(Source::Bpf))
        .fields(fields)
        .section(Duration::ZERO);
    let readers = SOURCES.map(|source| open(source, fields));
    let readers = readers.into_iter();
    for mut files in readers.chain([in_short_sections.open().expect("it opens")]) {
        let source = files.source();
        let holder = process(files.snapshot().expect("a snapshot"), pid);
        assert!(holder.is_of_thread(), "{source}");
        let numbers = holder.files().filter(|file| file.descriptor().is_some());
        assert_eq!(numbers.count(), count, "{source}");
        assert_eq!(holder.open(), Some(count as u32), "{source}");
    }
}

/// What a user sees: the number of descriptors of others, and the files of its own processes.
#[test]
fn a_user_sees_the_files_of_its_own_processes_and_how_many_others_have() {
    if let Ok(pid) = std::env::var("FASTPROC_FILES_OF") {
        let refused = Files::builder().source(Some(Source::Bpf)).open();
        assert!(refused.is_err(), "BPF would show all");
        let mut files = open(Source::Procfs, Fields::FILES);
        let snapshot = files.snapshot().expect("a snapshot");
        assert!(!process(snapshot, own_pid()).is_hidden());
        let other = process(snapshot, pid.parse().expect("a pid"));
        assert!(other.is_hidden() && other.files().len() == 0);
        assert_eq!(other.count(Kind::File), None);
        let size = fs::metadata(format!("/proc/{pid}/fd"))
            .expect("the file exists")
            .len();
        let told = fs::metadata("/proc/self/fd").expect("own folder").len() > 0;
        assert_eq!(other.open(), told.then_some(size as u32));
        return;
    }
    needs!(gate::root(), gate::programs(&["setpriv"]));
    run_as_nobody(
        a_user_sees_the_files_of_its_own_processes_and_how_many_others_have,
        "-all",
    );
}

/// Runs a test again as nobody, with these capabilities, and tells it a process of root that opens and closes nothing.
fn run_as_nobody<T: Fn()>(test: T, capabilities: &str) {
    let folder = Folder::new("files-of-nobody");
    let program = folder.join("test");
    let own = std::env::current_exe().expect("a test has a file");
    fs::copy(own, &program).expect("there is room");
    let mut command = as_user_with(NOBODY, capabilities, &program);
    command.args(again(test).get_args());
    let mut other = Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("sleep(1) is there");
    let output = command
        .env("FASTPROC_FILES_OF", other.id().to_string())
        .output();
    other
        .kill()
        .and_then(|()| other.wait())
        .expect("it has ended");
    assert_passed(&output.expect("setpriv is there"));
}

/// Programs read without the kernel's checks, so they are only for a reader that the kernel would show everything.
#[test]
fn a_user_who_loads_programs_is_not_shown_the_files_of_others() {
    if std::env::var_os("FASTPROC_FILES_OF").is_none() {
        needs!(gate::bpf(), gate::programs(&["setpriv"]));
        run_as_nobody(
            a_user_who_loads_programs_is_not_shown_the_files_of_others,
            READS_BY_BPF,
        );
        return;
    }
    let opened = Files::builder().source(Some(Source::Bpf)).open();
    assert!(matches!(opened, Err(Error::NotPermitted)), "{opened:?}");
    let files = Files::builder().open().expect("/proc is there");
    assert_eq!(files.source(), Source::Procfs);
}

/// stat(2) shows other devices and inode numbers of an overlay than the kernel keeps in its inodes.
#[test]
fn an_overlay_has_the_device_of_stat_or_none() {
    needs!(gate::bpf());
    let folder = Folder::in_memory("files-overlay");
    let parts = ["lower", "upper", "work", "merged"].map(|name| folder.join(name));
    for part in &parts {
        fs::create_dir(part).expect("the folder is new");
    }
    let [lower, upper, work, merged] = parts;
    fs::write(lower.join("file"), "content").expect("there is room");
    let option = |name: &str, path: &Path| format!("{name}dir={}", path.display());
    let options = [("lower", &lower), ("upper", &upper), ("work", &work)];
    let options = options.map(|(name, path)| option(name, path)).join(",");
    let mounted = Command::new("mount")
        .args(["-t", "overlay", "overlay", "-o", &options])
        .arg(&merged)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        gate::skipped("an overlay cannot be mounted here");
        return;
    }
    let file = fs::File::open(merged.join("file")).expect("the file exists");
    let slot = Slot::Descriptor(file.as_raw_fd() as u32);
    let find = |fields| {
        let mut files = open(Source::Bpf, fields);
        let holder = process(files.snapshot().expect("a snapshot"), own_pid());
        let found = by_number(holder)[&slot];
        let said = Said::read(own_pid(), slot).expect("it is open");
        let differences = said.differences(found);
        (
            found.device().is_some(),
            found.inode().is_some(),
            differences,
        )
    };
    let with_stat = find(Fields::all());
    let (has_device, has_inode, _) = find(Fields::FILES | Fields::PATHS);
    drop(file);
    let _ = Command::new("umount").arg(&merged).status();
    assert_eq!(with_stat, (true, true, vec![]));
    assert_eq!((has_device, has_inode), (false, false));
}
