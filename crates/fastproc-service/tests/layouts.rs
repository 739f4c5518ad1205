//! Services of another version, which lay out records differently: their fields are found by name.

use std::{
    fmt::Write as _,
    fs,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    thread::JoinHandle,
};

use fastproc::{
    Collector, Fields, Process, Snapshot, SourceKind,
    record::{Record, ThreadRecord},
    schema::{RECORD, Structure, THREAD},
    source::service::{
        layout,
        wire::{self, Op, Part, Reply, Request, Status, part},
    },
};
use fastproc_service::bind;
use fastproc_testbed::{Brackets, Folder, GUARD, wait_until};
use nix::sys::socket::{ControlMessage, MsgFlags, SockFlag, accept4, recv, sendmsg};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

/// What a later version may do to a structure: every field is elsewhere, and there are new ones between.
struct Moved {
    structure: &'static Structure,
    /// Each field's old offset, length and new offset.
    fields: Vec<(usize, usize, usize)>,
    size: usize,
}

impl Moved {
    fn new(structure: &'static Structure, name: &str, text: &mut String) -> Self {
        let mut fields = Vec::new();
        let mut size = 8;
        let mut lines = format!("field\tnew.first\t0\tu64\tns\t{}\n", 1 << 30);
        let described: Vec<Vec<&str>> = layout::text()
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        let begin = described
            .iter()
            .position(|line| line[..2] == ["structure", name]);
        for (field, line) in structure
            .fields()
            .iter()
            .zip(&described[begin.expect("it is described") + 1..])
            .rev()
        {
            let len = field.type_of.size();
            fields.push((field.offset, len, size));
            let [_, path, _, rest @ ..] = &line[..] else {
                panic!("{line:?}")
            };
            writeln!(lines, "field\t{path}\t{size}\t{}", rest.join("\t")).expect("a string");
            size += len.next_multiple_of(8);
            writeln!(lines, "field\tnew.of.{path}\t{size}\tu64\t-\t0").expect("a string");
            size += 8;
        }
        writeln!(text, "structure\t{name}\t{size}\n{}", lines.trim_end()).expect("a string");
        Self {
            structure,
            fields,
            size,
        }
    }

    /// Writes a record as that version does.
    fn write(&self, record: &[u8], to: &mut Vec<u8>) {
        assert_eq!(record.len(), self.structure.size);
        let start = to.len();
        // New fields may hold anything.
        to.resize(start + self.size, 0xa5);
        for &(from, len, at) in &self.fields {
            to[start + at..][..len].copy_from_slice(&record[from..from + len]);
        }
    }
}

/// The bytes of a record.
fn bytes<T: Copy>(record: &T) -> &[u8] {
    // SAFETY: records are of integers only and have no padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(record).cast(), size_of::<T>()) }
}

/// A service of a later version, with the processes that this one sees.
fn serve(listener: &OwnedFd, text: &str, [process, thread]: &[Moved; 2], connections: usize) {
    for _ in 0..connections {
        let socket = accept4(listener.as_raw_fd(), SockFlag::SOCK_CLOEXEC).expect("a reader");
        // SAFETY: the kernel has just made it for this process.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let mut collector = Collector::builder()
            .source(Some(SourceKind::Procfs))
            .fields(Fields::all())
            .open()
            .expect("/proc is there");
        let mut message = [0; Request::WORDS * 8];
        let mut asked = || {
            let len = recv(socket.as_raw_fd(), &mut message, MsgFlags::empty());
            len.is_ok_and(|len| len > 0).then(|| {
                let words: Vec<u64> = wire::from_bytes(&message).collect();
                Request::from_words(&words).expect("a request")
            })
        };
        while let Some(request) = asked() {
            let mut reply = Reply::empty(Status::Ok);
            reply.layout = 77;
            let mut told: Vec<u8> = Vec::new();
            let mut file = None;
            match request.op {
                Op::Layout => told.extend_from_slice(text.as_bytes()),
                Op::Snapshot => {
                    let snapshot = collector.snapshot().expect("/proc is there");
                    let (mut buffer, parts) = buffer(&snapshot, process, thread);
                    // Whole words, so that the length is as announced.
                    buffer.resize(buffer.len().next_multiple_of(8), 0);
                    (reply.groups, reply.generation, reply.parts) = (u32::MAX, 1, parts);
                    (reply.buffer, reply.buffer_bytes) = (1, buffer.len() as u64);
                    reply.has_descriptor = true;
                    file = Some(sealed(&buffer));
                }
                _ => {}
            }
            let mut message = wire::to_bytes(&reply.to_words());
            message.extend(told);
            let descriptors = file.as_ref().map(|file: &OwnedFd| [file.as_raw_fd()]);
            let control = descriptors.as_ref().map(|fd| ControlMessage::ScmRights(fd));
            let message = [std::io::IoSlice::new(&message)];
            let flags = MsgFlags::MSG_NOSIGNAL;
            sendmsg::<()>(
                socket.as_raw_fd(),
                &message,
                control.as_slice(),
                flags,
                None,
            )
            .expect("it waits");
        }
    }
}

fn buffer(
    snapshot: &Snapshot<'_>,
    process: &Moved,
    thread: &Moved,
) -> (Vec<u8>, [Part; part::COUNT]) {
    let mut parts = [Part::default(); part::COUNT];
    let mut buffer = Vec::new();
    let part = |offset: usize, count: usize, stride: usize| Part {
        offset: offset as u64,
        count: count as u64,
        stride: stride as u64,
    };
    for record in snapshot.iter() {
        process.write(bytes(record.record()), &mut buffer);
    }
    parts[part::RECORDS] = part(0, snapshot.len(), process.size);
    let threads = buffer.len();
    for record in snapshot.threads() {
        thread.write(bytes(record), &mut buffer);
    }
    parts[part::THREADS] = part(threads, snapshot.threads().count(), thread.size);
    let pool = snapshot.pools().own;
    parts[part::POOL] = part(buffer.len(), pool.len(), 8);
    buffer.extend(pool.iter().flat_map(|word| word.to_ne_bytes()));
    (buffer, parts)
}

fn sealed(bytes: &[u8]) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create(c"records", flags).expect("memory");
    ftruncate(&file, bytes.len() as u64).expect("memory");
    let mut at = 0;
    while at < bytes.len() {
        at += rustix::io::pwrite(&file, &bytes[at..], at as u64).expect("memory");
    }
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::SEAL).expect("it may");
    file
}

/// A service of a later version that serves this number of connections.
struct Newer {
    folder: Folder,
    thread: Option<JoinHandle<()>>,
}

impl Newer {
    fn start(name: &str, connections: usize, change: impl FnOnce(String) -> String) -> Self {
        let folder = Folder::new(name);
        let listener = bind(&folder.join("socket")).expect("nobody listens there");
        rustix::io::ioctl_fionbio(&listener, false).expect("a socket");
        let mut text = "structure\tunknown\t8\nfield\tidentity.pid\t0\tu64\t-\t0\n".to_owned();
        let moved = [(RECORD, "process"), (THREAD, "thread")]
            .map(|(structure, name)| Moved::new(structure, name, &mut text));
        let text = change(text);
        let thread = std::thread::spawn(move || serve(&listener, &text, &moved, connections));
        Self {
            folder,
            thread: Some(thread),
        }
    }

    fn builder(&self) -> fastproc::Builder {
        Collector::builder()
            .service_socket(Some(self.folder.join("socket")))
            .service_timeout(GUARD)
    }
}

impl Drop for Newer {
    fn drop(&mut self) {
        // A failed test may not have connected as often as the thread expects.
        if !std::thread::panicking() {
            let joined = self.thread.take().map(JoinHandle::join);
            joined.expect("once").expect("no panic");
        }
    }
}

/// What stays the same in an idle process.
fn still(snapshot: &Snapshot<'_>, pid: u32) -> (Record, Vec<ThreadRecord>, Vec<u32>, String) {
    let process = snapshot.get(pid).expect("it rests");
    let mut record = *process.record();
    // It is counted for the whole user.
    record.signals.queued = 0;
    let threads = snapshot.threads().filter(|thread| thread.tgid == pid);
    let threads = threads.copied().collect();
    let groups = process.supplementary_groups().collect();
    (
        record,
        threads,
        groups,
        process.name().escape_ascii().to_string(),
    )
}

#[test]
fn records_of_a_newer_service_are_read_by_the_names_of_their_fields() {
    let newer = Newer::start("newer", 1, |text| text);
    let mut sleep = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("sleep is there");
    let rests = || {
        let state = fs::read_to_string(format!("/proc/{}/stat", sleep.id()));
        state.is_ok_and(|state| state.contains("(sleep) S"))
    };
    wait_until("sleep rests", rests);
    let mut own = Collector::builder()
        .source(Some(SourceKind::Procfs))
        .fields(Fields::all())
        .open()
        .expect("/proc is there");
    let pid = sleep.id();
    let mut expected = || still(&own.snapshot().expect("/proc is there"), pid);
    let builder = newer.builder().source(Some(SourceKind::Service));
    let mut collector = builder
        .fields(Fields::all())
        .open()
        .expect("it is described");
    // The kernel may take a page from it, or run it for a moment.
    let mut brackets = Brackets::new();
    wait_until("three looks while it rests", || {
        let read = brackets.read(&mut expected, || {
            let snapshot = collector.snapshot().expect("it is read");
            assert_eq!(snapshot.stats().source, SourceKind::Service);
            assert!(snapshot.iter().is_sorted_by_key(Process::pid));
            still(&snapshot, pid)
        });
        assert!(read.is_none_or(|(expected, read)| read == expected));
        brackets.judged() == 3
    });
    let expected = expected();
    assert!(expected.0.memory.vsize > 0 && !expected.1.is_empty() && expected.3 == "sleep");
    drop(collector);
    sleep
        .kill()
        .and_then(|()| sleep.wait())
        .expect("it is ours");
}

/// A reader that requests what the other version lacks reads another source, or gives the reason if it may not.
#[test]
fn fields_that_another_version_lacks_are_unknown() {
    let newer = Newer::start("without", 3, |text| {
        text.replace("field\tio.rchar\t", "field\tio.read_chars\t")
    });
    let builder = newer.builder();
    let only = builder.clone().source(Some(SourceKind::Service));
    let error = only.clone().fields(Fields::IO).open();
    let error = error.expect_err("it has no such field").to_string();
    assert!(error.contains("lack some of these fields"), "{error}");
    let mut collector = builder
        .fields(Fields::IO)
        .open()
        .expect("there is another source");
    assert_eq!(collector.refused()[0].source, SourceKind::Service);
    let snapshot = collector.snapshot().expect("it reads");
    let own = snapshot.get(std::process::id()).expect("it is there");
    assert!(own.io().is_some_and(|io| io.rchar > 0));
    // It can read everything else.
    let mut collector = only.fields(Fields::TOP).open().expect("it is described");
    let snapshot = collector.snapshot().expect("it is read");
    assert!(snapshot.get(std::process::id()).is_some());
}
