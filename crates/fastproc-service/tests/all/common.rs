//! A service in a thread of the test, with its own folder.
use std::{
    io::{Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    thread::JoinHandle,
    time::Duration,
};

use fastproc::{
    Collector, Fields, SourceKind, message,
    source::service::{
        self,
        wire::{self, Op, Reply, Request, Status},
    },
};
use fastproc_service::{Service, Settings, bind};
use fastproc_testbed::{Folder, GUARD, wait_until};
use nix::{
    libc,
    sys::{
        socket::{
            AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, send, setsockopt,
            socket, sockopt::ReceiveTimeout,
        },
        time::TimeVal,
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, fork},
};

/// Settings for machines whose CPUs may stall for long.
pub fn settings(source: Option<SourceKind>) -> Settings {
    let mut settings = Settings::default();
    settings.source = source;
    settings.texts_timeout = GUARD;
    // Tests send requests as fast as they can.
    settings.cpu_of_user = 1000.0;
    settings.exits_linger = Duration::from_millis(10);
    settings
}

pub struct Served {
    folder: Folder,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    tid: i32,
}

impl Served {
    /// Starts a service with this source, or the best one that works here.
    pub fn start(name: &str, source: Option<SourceKind>) -> Self {
        Self::start_with(name, &settings(source))
    }

    /// Prepares a service without starting it.
    pub fn stopped(name: &str) -> Self {
        Self {
            folder: Folder::new(name),
            stop: None,
            thread: None,
            tid: 0,
        }
    }

    pub fn start_with(name: &str, settings: &Settings) -> Self {
        let mut served = Self::stopped(name);
        served.restart_with(settings);
        served
    }

    /// Stops it, if it runs, and starts another one in its place.
    pub fn restart(&mut self, source: Option<SourceKind>) {
        self.restart_with(&settings(source));
    }

    fn restart_with(&mut self, settings: &Settings) {
        self.stop();
        // A process that another test has just forked may still hold the socket.
        let _ = std::fs::remove_file(self.path());
        let listener = bind(&self.path()).expect("nobody listens there");
        self.serve(listener, settings);
    }

    /// Serves at a socket that already listens.
    pub fn serve(&mut self, listener: OwnedFd, settings: &Settings) {
        self.run(Service::open(listener, settings).expect("it can read"));
    }

    pub fn run(&mut self, service: Service) {
        let (stop, told) = UnixStream::pair().expect("a pair of sockets");
        let (tell, tid) = std::sync::mpsc::channel();
        self.thread = Some(std::thread::spawn(move || {
            tell.send(rustix::thread::gettid()).expect("it is awaited");
            service.run(told.as_fd()).expect("it serves until told");
        }));
        self.tid = tid.recv().expect("it starts").as_raw_nonzero().get();
        self.stop = Some(stop);
    }

    /// How often its thread was given a CPU.
    pub fn slices(&self) -> u64 {
        let path = format!("/proc/self/task/{}/schedstat", self.tid);
        let schedstat = std::fs::read_to_string(path).expect("/proc shows the process");
        let slices = schedstat.split_ascii_whitespace().nth(2);
        slices
            .and_then(|slices| slices.parse().ok())
            .expect("three numbers")
    }

    pub fn stop(&mut self) {
        // A child of the test may have the other end too, so closing this one is not enough.
        if let Some(mut stop) = self.stop.take() {
            stop.write_all(b".").expect("it has not ended by itself");
        }
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it has not panicked");
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// A connection that need not follow the protocol.
    #[track_caller]
    pub fn connect(&self) -> Raw {
        Raw::open(&self.path()).expect("the service listens")
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn builder(&self) -> fastproc::Builder {
        Collector::builder()
            .source(Some(SourceKind::Service))
            .service_socket(Some(self.path()))
            .service_timeout(GUARD)
    }

    /// A number of its status.
    pub fn status(&self, pointer: &str) -> u64 {
        let status = service::status(&self.path()).expect("it answers");
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        let number = status.pointer(pointer).and_then(serde_json::Value::as_u64);
        number.unwrap_or_else(|| panic!("{pointer} in {status}"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How long to wait for an answer.
pub fn receive_guard() -> TimeVal {
    TimeVal::new(GUARD.as_secs() as i64, 0)
}

/// A connection that need not follow the protocol.
pub struct Raw(OwnedFd);

pub fn request(op: Op, max_age: Duration) -> Request {
    Request {
        groups: Fields::TOP.bits(),
        max_age_ns: max_age.as_nanos() as u64,
        ..Request::new(op)
    }
}

impl From<OwnedFd> for Raw {
    fn from(socket: OwnedFd) -> Self {
        Self(socket)
    }
}

impl AsFd for Raw {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Raw {
    pub fn open(path: &Path) -> nix::Result<Self> {
        let raw = Self::unconnected()?;
        raw.connect(&UnixAddr::new(path)?)?;
        Ok(raw)
    }

    /// A socket that a child may connect.
    pub fn unconnected() -> nix::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
        setsockopt(&socket, ReceiveTimeout, &receive_guard())?;
        Ok(Self(socket))
    }

    pub fn connect(&self, address: &UnixAddr) -> nix::Result<()> {
        connect(self.0.as_raw_fd(), address)
    }

    pub fn send_bytes(&self, bytes: &[u8]) -> nix::Result<usize> {
        let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        send(self.0.as_raw_fd(), bytes, flags)
    }

    pub fn send(&self, request: Request) -> nix::Result<usize> {
        self.send_bytes(&wire::to_bytes(&request.to_words()))
    }

    /// The next answer, and the descriptor that came with it. `None`: the connection has ended.
    pub fn receive(&self) -> Option<(Reply, Option<OwnedFd>)> {
        let mut bytes = [0; Reply::WORDS * 8];
        let (len, descriptor) = message::receive(&self.0, &mut bytes).ok()?;
        if len == 0 {
            return None;
        }
        let words: Vec<u64> = wire::from_bytes(&bytes).collect();
        Some((Reply::from_words(&words)?, descriptor))
    }

    /// Requests a text.
    pub fn ask_text(&self, request: Request) -> (Status, String) {
        self.send(request).expect("the request is sent");
        let mut bytes = vec![0; 1 << 20];
        let len = nix::sys::socket::recv(self.0.as_raw_fd(), &mut bytes, MsgFlags::empty());
        let (reply, text) = bytes[..len.expect("an answer")].split_at(Reply::WORDS * 8);
        let words: Vec<u64> = wire::from_bytes(reply).collect();
        let reply = Reply::from_words(&words).expect("long enough");
        (
            reply.status,
            String::from_utf8(text.to_vec()).expect("text"),
        )
    }

    pub fn ask(&self, request: Request) -> Option<(Reply, Option<OwnedFd>)> {
        self.send(request).ok()?;
        self.receive()
    }
}

/// A child of this process.
pub struct Child(pub Pid);

/// Forks. The child runs this and exits; it must not panic, and prints nothing.
pub fn in_child(run: impl FnOnce()) -> Child {
    // Made once, here: a child that is forked while another thread makes it would wait for that thread forever.
    let _ = fastproc::layout::id();
    // SAFETY: the C library prepares its allocator for it; the child takes no lock that a thread of the test may hold.
    match unsafe { fork() }.expect("it can fork") {
        ForkResult::Parent { child } => Child(child),
        ForkResult::Child => {
            fastproc_testbed::leave_lock_to_parent();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            if let Err(panic) = &outcome {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                // The harness keeps the message of a panic, which ends with this process.
                let text = format!("in the child: {}\n", text.unwrap_or("it panicked"));
                let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
            }
            // SAFETY: ends this process without running what the test's would.
            unsafe { libc::_exit(i32::from(outcome.is_err())) }
        }
    }
}

impl Child {
    /// Waits for a successful exit; fails if the child does not exit.
    #[track_caller]
    pub fn join(self) {
        let mut status = Ok(WaitStatus::StillAlive);
        wait_until("the end of the child", || {
            status = waitpid(self.0, Some(WaitPidFlag::WNOHANG));
            status != Ok(WaitStatus::StillAlive)
        });
        assert_eq!(status, Ok(WaitStatus::Exited(self.0, 0)), "in the child");
        std::mem::forget(self);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(self.0, nix::sys::signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}

/// Runs this in a child that is this user, and waits for its success. It must not panic, and prints nothing.
#[track_caller]
pub fn as_user(uid: u32, run: impl FnOnce()) {
    in_child(|| {
        become_user(uid);
        run();
    })
    .join();
}

/// Two ends. Waiting for what does not come fails, even if another child holds the other end too.
pub fn stream_pair() -> (UnixStream, UnixStream) {
    let (a, b) = UnixStream::pair().expect("a pair of sockets");
    for end in [&a, &b] {
        end.set_read_timeout(Some(GUARD)).expect("a socket");
    }
    (a, b)
}

/// Two ends, each of which waits for the other.
pub fn turns() -> (Turn, Turn) {
    let (a, b) = stream_pair();
    (Turn(a), Turn(b))
}

pub struct Turn(UnixStream);

impl Turn {
    pub fn give(&mut self) {
        self.0.write_all(b".").expect("the other end is there");
    }

    /// To an end that calls [`number`](Self::number).
    pub fn tell(&mut self, number: u32) {
        let sent = self.0.write_all(&number.to_ne_bytes());
        sent.expect("the other end is there");
    }

    pub fn number(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.0
            .read_exact(&mut bytes)
            .expect("the other end is there");
        u32::from_ne_bytes(bytes)
    }

    pub fn wait(&mut self) {
        self.0.read_exact(&mut [0]).expect("the other end is there");
    }
}

/// The number of processes, or a few more.
pub fn processes() -> usize {
    std::fs::read_dir("/proc").expect("it is mounted").count()
}

/// Raises the limit of descriptors to the maximum.
pub fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("up to the maximum it may");
}

/// Becomes another user, as a daemon does.
pub fn become_user(uid: u32) {
    use rustix::{
        process::{Gid, Uid},
        thread,
    };
    let gid = Gid::from_raw(uid);
    thread::set_thread_groups(&[]).expect("root may leave its groups");
    thread::set_thread_res_gid(gid, gid, gid).expect("root may change its group");
    let uid = Uid::from_raw(uid);
    thread::set_thread_res_uid(uid, uid, uid).expect("root may change its user");
}
