//! One descriptor of each odd kind, in this process.

use std::{
    fs::{self, File, OpenOptions},
    io::{Seek, SeekFrom, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::OpenOptionsExt, net::UnixDatagram},
    },
    path::{Path, PathBuf},
};

use fastproc::files::{Fields, Kind, Slot, Source};
use fastproc_testbed::{Folder, gate, needs, own_process};
use rustix::{
    event::{EventfdFlags, epoll, eventfd},
    fs::{
        AtFlags, CWD, FileType, MemfdFlags, Mode, OFlags, memfd_create, mkdirat, mknodat, open,
        openat, unlinkat,
    },
    io::{FdFlags, dup, fcntl_setfd},
    net::{AddressFamily, SocketAddrUnix, SocketType, bind, connect, listen, socket, socketpair},
    pipe::pipe,
    process::{Pid, PidfdFlags, getpid, pidfd_open},
    time::{TimerfdClockId, TimerfdFlags, timerfd_create},
};

use super::{SOURCES, by_number, own_pid, process};

/// Descriptors, each with what it is.
pub struct Odd {
    pub all: Vec<(&'static str, OwnedFd)>,
    _folder: Folder,
    /// The port of the TCP socket that listens, and that of its client.
    pub ports: [u16; 2],
    /// The abstract name of a unix socket, which has a newline and a zero byte.
    pub abstract_name: Vec<u8>,
    pub path: PathBuf,
}

fn file(path: &Path, flags: OFlags) -> OwnedFd {
    open(path, flags, Mode::RUSR | Mode::WUSR).expect("the file can be opened")
}

impl Odd {
    pub fn open() -> Self {
        let folder = Folder::new("odd-files");
        let at = |name: &str| folder.join(name);
        let mut all: Vec<(&'static str, OwnedFd)> = Vec::new();
        let mut written = File::create(at("plain")).expect("the folder is new");
        written.write_all(&[b'x'; 5000]).expect("there is room");
        written.seek(SeekFrom::Start(1234)).expect("it is a file");
        all.push(("plain", written.into()));
        let append = OpenOptions::new()
            .append(true)
            .custom_flags((OFlags::NONBLOCK | OFlags::SYNC).bits() as i32)
            .open(at("plain"));
        all.push(("append", append.expect("it exists").into()));
        let odd_name = folder.join(std::ffi::OsStr::from_bytes(b"not\xffutf-8\nname (deleted)"));
        all.push(("odd name", file(&odd_name, OFlags::CREATE | OFlags::RDWR)));
        let deep = (0..40).fold(folder.to_path_buf(), |path, at| {
            path.join(format!("{at}-{}", "d".repeat(60)))
        });
        fs::create_dir_all(&deep).expect("the folder is new");
        let deep = file(&deep.join("file"), OFlags::CREATE | OFlags::RDONLY);
        all.push(("deep", deep));
        all.push(("deleted", file(&at("gone"), OFlags::CREATE | OFlags::RDWR)));
        fs::remove_file(at("gone")).expect("the file exists");
        fs::create_dir(at("gone folder")).expect("the folder is new");
        all.push(("deleted folder", file(&at("gone folder"), OFlags::RDONLY)));
        fs::remove_dir(at("gone folder")).expect("it is empty");
        all.push(("directory", file(&folder, OFlags::RDONLY)));
        all.push(("root", file(Path::new("/"), OFlags::RDONLY)));
        all.push(("null", file(Path::new("/dev/null"), OFlags::RDWR)));
        all.push(("proc", file(Path::new("/proc/self/status"), OFlags::RDONLY)));
        all.push(("sys", file(Path::new("/sys/kernel"), OFlags::RDONLY)));
        all.push(("path only", file(&at("plain"), OFlags::PATH)));
        std::os::unix::fs::symlink("plain", at("link")).expect("the folder is new");
        let link = file(&at("link"), OFlags::PATH | OFlags::NOFOLLOW);
        all.push(("link", link));
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a fifo");
        all.push(("fifo", file(&at("fifo"), OFlags::RDWR)));
        all.push((
            "namespace",
            file(Path::new("/proc/self/ns/mnt"), OFlags::RDONLY),
        ));
        let (reads, writes) = pipe().expect("a pipe");
        all.push(("pipe", reads));
        all.push(("pipe", writes));
        all.push((
            "eventfd",
            eventfd(0, EventfdFlags::empty()).expect("an eventfd"),
        ));
        all.push((
            "epoll",
            epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll set"),
        ));
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK);
        all.push(("timerfd", timer.expect("a timer")));
        all.push((
            "memfd",
            memfd_create("a memory", MemfdFlags::empty()).expect("a memfd"),
        ));
        let own: Pid = getpid();
        all.push((
            "pidfd",
            pidfd_open(own, PidfdFlags::empty()).expect("a pidfd"),
        ));
        let copy = dup(&all[0].1).expect("it is open");
        fcntl_setfd(&copy, FdFlags::CLOEXEC).expect("it is open");
        all.push(("copy", copy));

        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let client =
            TcpStream::connect(("127.0.0.1", port)).expect("the socket accepts connections");
        let ports = [port, client.local_addr().expect("it is connected").port()];
        let (mut server, _) = listener.accept().expect("a client");
        server.write_all(b"seven b").expect("it is connected");
        // It waits to be accepted.
        let second = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        all.push(("second client", second.into()));
        all.push(("listener", listener.into()));
        all.push(("client", client.into()));
        all.push(("server", server.into()));
        let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
        udp.connect("127.0.0.1:9").expect("an address");
        all.push(("udp", udp.into()));
        if let Ok(udp) = UdpSocket::bind("[::1]:0") {
            all.push(("udp6", udp.into()));
        }
        let unbound = socket(AddressFamily::INET, SocketType::STREAM, None);
        all.push(("unbound", unbound.expect("a socket")));
        let netlink = socket(AddressFamily::NETLINK, SocketType::RAW, None);
        all.push(("netlink", netlink.expect("a socket")));
        let bound = UnixDatagram::bind(at("socket")).expect("the folder is new");
        all.push(("unix path", bound.into()));
        all.push(("bound", file(&at("socket"), OFlags::PATH)));
        let abstract_name = format!("fastproc\n{}\0x", std::process::id()).into_bytes();
        let address = SocketAddrUnix::new_abstract_name(&abstract_name).expect("it is short");
        let stream = || socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        let server = stream();
        bind(&server, &address).expect("the name is new");
        listen(&server, 7).expect("it is bound");
        let client = stream();
        connect(&client, &address).expect("the socket accepts connections");
        all.push(("abstract", server));
        all.push(("abstract client", client));
        let flags = rustix::net::SocketFlags::CLOEXEC;
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a pair");
        all.push(("pair", one));
        all.push(("pair", other));
        let path = at("socket");
        Self {
            all,
            _folder: folder,
            ports,
            abstract_name,
            path,
        }
    }

    /// The number of the first descriptor that is this.
    pub fn number(&self, what: &str) -> u32 {
        let found = self.all.iter().find(|(name, _)| *name == what);
        found.expect("it was opened").1.as_raw_fd() as u32
    }
}

/// The kernel shows no path of more than 4096 bytes.
#[test]
fn a_path_that_is_too_long_is_not_known() {
    needs!(
        gate::bpf(),
        own_process(a_path_that_is_too_long_is_not_known)
    );
    let folder = Folder::new("long-path");
    let name = "d".repeat(250);
    let top = file(&folder, OFlags::RDONLY);
    let deep = (0..17).fold(top, |above, _| {
        mkdirat(&above, &*name, Mode::RWXU).expect("the folder is new");
        openat(&above, &*name, OFlags::RDONLY, Mode::empty()).expect("it exists")
    });
    let regular = || {
        let mut files = super::open(Source::Procfs, Fields::empty());
        let snapshot = files.snapshot().expect("a snapshot");
        process(snapshot, own_pid()).count(Kind::File)
    };
    let before = regular();
    let flags = OFlags::CREATE | OFlags::RDWR;
    let held = openat(&deep, "file", flags, Mode::RUSR).expect("the folder is new");
    assert_eq!(regular(), before.map(|count| count + 1));
    let slot = Slot::Descriptor(held.as_raw_fd() as u32);
    for deleted in [None, Some(true)] {
        if deleted.is_some() {
            unlinkat(&deep, "file", AtFlags::empty()).expect("it exists");
        }
        for source in SOURCES {
            let mut files = super::open(source, Fields::all());
            let holder = process(files.snapshot().expect("a snapshot"), own_pid());
            let found = by_number(holder)[&slot];
            let told = (found.kind(), found.is_deleted(), found.size());
            assert_eq!(told, (Kind::File, deleted, Some(0)), "{source}");
            assert!(!found.write_name(&mut Vec::new()), "{source}");
        }
    }
}
