//! The loop: who connects, who asks, who is answered.

mod answer;
mod report;

use std::{
    collections::HashMap,
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    time::{Duration, Instant},
};

use fastproc::{
    Fields, Host, Refusal, SourceKind,
    source::service::wire::{Op, Request, Status},
};
use nix::{
    errno::Errno,
    sys::socket::{SockFlag, accept4},
};
use rustix::event::{
    Timespec,
    epoll::{self, Event, EventData, EventFlags},
};

use crate::{
    budget::{Budget, cpu_time},
    buffers::{self, Buffers},
    exits::Exits,
    message::{read, unread},
    peer::{self, Hidepid, Home, Peer},
    status::Counted,
    texts::Texts,
    tiers::Tiers,
    view::{Shown, View},
};

/// Connections at once, of all users; one other than root has a quarter of them.
pub const CONNECTIONS: usize = 4096;
const CONNECTIONS_OF_USER: usize = CONNECTIONS / 4;
const LIMITS: buffers::Limits = buffers::Limits {
    of_user: 64 << 20,
    of_all: 512 << 20,
};
/// Events that are looked at in one go; those who ask meanwhile share the next walk.
const EVENTS: usize = 512;

const LISTENER: u64 = 0;
const STOP: u64 = 1;
const MOUNTS: u64 = 2;
const RING: u64 = 3;
const FIRST_CLIENT: u64 = 16;

/// How to serve.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The only source to read from.
    pub source: Option<SourceKind>,
    /// End after so long without connections.
    pub idle_exit: Option<Duration>,
    /// How long a request waits for command lines and paths of programs, 400 ms if not set, and half of that for those of
    /// one process. A reader that has another source waits 500 ms for the whole answer.
    pub texts_timeout: Duration,
    /// Exits that are kept for the slowest reader: 65,536 if not set, some 25 MB.
    pub exits_kept: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            source: None,
            idle_exit: None,
            texts_timeout: Duration::from_millis(400),
            exits_kept: 1 << 16,
        }
    }
}

/// The service cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing can be read.
    #[error(transparent)]
    Source(#[from] fastproc::Error),
    /// The kernel refused what it takes to wait for readers.
    #[error("cannot wait for readers")]
    Wait(#[source] io::Error),
}

/// A reader.
#[derive(Debug)]
struct Client {
    socket: OwnedFd,
    uid: u32,
    /// Who it is, found out at its first request.
    peer: Option<Result<Peer, Status>>,
    /// The buffer that it may read, until its next request.
    lent: Option<u64>,
    /// The last exit that it has had, if it wants them.
    exits: Option<u64>,
}

/// A request that waits for a walk.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    client: u64,
    view: View,
    tier: usize,
    request: Request,
}

/// The resident service.
#[derive(Debug)]
pub struct Service {
    listener: OwnedFd,
    epoll: OwnedFd,
    mounts: File,
    idle_exit: Option<Duration>,
    host: Host,
    home: Home,
    hidepid: Hidepid,
    tiers: Tiers,
    texts: Texts,
    exits: Exits,
    budget: Budget,
    buffers: Buffers,
    clients: HashMap<u64, Client>,
    next_client: u64,
    waiting: Vec<Waiting>,
    shown: Vec<Shown>,
    counted: Counted,
    started: Instant,
}

impl Service {
    /// Prepares to serve at this socket: what reading takes is loaded. Privileges may be given up after.
    pub fn open(listener: OwnedFd, settings: &Settings) -> Result<Self, Error> {
        // Numbers that a service before this one has not given.
        let first = boottime_ns();
        let host = Host::read()?;
        Ok(Self {
            listener,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)
                .map_err(|error| wait(error.into()))?,
            mounts: File::open("/proc/self/mounts").map_err(wait)?,
            idle_exit: settings.idle_exit,
            home: Home::of_this_process().map_err(wait)?,
            hidepid: Hidepid::read(),
            texts: Texts::open(&host, settings.texts_timeout)?,
            host,
            tiers: Tiers::open(settings.source, first)?,
            exits: Exits::new(first, settings.exits_kept),
            budget: Budget::default(),
            buffers: Buffers::new(first, LIMITS),
            clients: HashMap::new(),
            next_client: FIRST_CLIENT,
            waiting: Vec::new(),
            shown: Vec::new(),
            counted: Counted::default(),
            started: Instant::now(),
        })
    }

    /// The source that is read from.
    pub fn source(&self) -> SourceKind {
        self.tiers.source()
    }

    /// Sources that were tried first and refused, and why.
    pub fn refused(&self) -> &[Refusal] {
        self.tiers.refused()
    }

    /// Serves until there is something to read from `stop`, or until nobody has been connected for as long as the
    /// settings say.
    pub fn run(mut self, stop: BorrowedFd<'_>) -> Result<(), Error> {
        self.watch(self.listener.as_fd(), LISTENER, EventFlags::IN)?;
        self.watch(stop, STOP, EventFlags::IN)?;
        self.watch(self.mounts.as_fd(), MOUNTS, EventFlags::PRI)?;
        let mut events = Vec::with_capacity(EVENTS);
        let mut idle_since = Instant::now();
        loop {
            let limit = self.idle_exit.filter(|_| self.clients.is_empty());
            let limit = limit.map(|limit| limit.saturating_sub(idle_since.elapsed()));
            let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => (),
                Err(error) => return Err(wait(error.into())),
            }
            // Nobody waits to be accepted either.
            if events.is_empty() && limit.is_some_and(|limit| limit.is_zero()) {
                return Ok(());
            }
            let was_idle = self.clients.is_empty();
            if self.handle(&events) {
                return Ok(());
            }
            if !was_idle || !self.clients.is_empty() {
                idle_since = Instant::now();
            }
        }
    }

    fn watch(&self, fd: BorrowedFd<'_>, token: u64, flags: EventFlags) -> Result<(), Error> {
        let data = EventData::new_u64(token);
        epoll::add(&self.epoll, fd, data, flags).map_err(|error| wait(error.into()))
    }

    /// Whether it is time to stop.
    fn handle(&mut self, events: &[Event]) -> bool {
        let tokens = || events.iter().map(|event| event.data.u64());
        if tokens().any(|token| token == STOP) {
            return true;
        }
        // What is hidden from whom is known before anybody is answered.
        if tokens().any(|token| token == MOUNTS) {
            self.hidepid = Hidepid::read();
        }
        for token in tokens() {
            match token {
                LISTENER => self.accept(),
                MOUNTS => (),
                RING => self.read_exits(),
                client => self.receive(client),
            }
        }
        self.answer();
        self.settle_exits();
        false
    }

    fn accept(&mut self) {
        // As many as there are; the rest of a flood comes with the next event.
        for _ in 0..EVENTS {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = match accept4(self.listener.as_raw_fd(), flags) {
                // SAFETY: the kernel has just made it for this process, and nothing else knows it.
                Ok(socket) => unsafe { OwnedFd::from_raw_fd(socket) },
                Err(Errno::ECONNABORTED | Errno::EINTR) => continue,
                // Without descriptors for more, those who are here are served, and who waits goes its own way.
                Err(_) => return,
            };
            self.counted.connections += 1;
            let uid =
                nix::sys::socket::getsockopt(&socket, nix::sys::socket::sockopt::PeerCredentials)
                    .map_or(u32::MAX, |credentials| credentials.uid());
            let of_user = self.clients.values().filter(|client| client.uid == uid);
            if self.clients.len() >= CONNECTIONS
                || (uid != 0 && of_user.count() >= CONNECTIONS_OF_USER)
            {
                self.counted.cut_off += 1;
                continue;
            }
            let token = self.next_client;
            self.next_client += 1;
            if self.watch(socket.as_fd(), token, EventFlags::IN).is_ok() {
                let client = Client {
                    socket,
                    uid,
                    peer: None,
                    lent: None,
                    exits: None,
                };
                self.clients.insert(token, client);
            }
        }
    }

    /// Reads one request.
    fn receive(&mut self, token: u64) {
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        let (words, sender) = match read(&client.socket) {
            Ok(Some(message)) => message,
            Err(Errno::EAGAIN | Errno::EINTR) => return,
            Ok(None) | Err(_) => return self.close(token),
        };
        self.counted.requests += 1;
        if let Some(lent) = client.lent.take() {
            self.buffers.give_back(lent);
        }
        // Who has not read the last answer shall not have the next one pile up.
        if unread(&client.socket) {
            self.counted.cut_off += 1;
            return self.close(token);
        }
        let request = match Request::from_words(&words) {
            Ok(request) => request,
            Err(status) => return self.refuse(token, status),
        };
        // fsconfig(2) sets hidepid without an event of the mounts.
        if client.peer.is_none() || self.hidepid.is_old() {
            self.hidepid = Hidepid::read();
        }
        let home = &self.home;
        let hides = self.hidepid.hides;
        let peer = *client
            .peer
            .get_or_insert_with(|| peer::identify(&client.socket, home, hides));
        let peer = match peer {
            Ok(peer) if Some(peer.sender) != sender => return self.refuse(token, Status::NotYours),
            Ok(Peer {
                view: View::Of(_), ..
            }) if hides => return self.refuse(token, Status::HidePid),
            Ok(peer) => peer,
            // The description and the status of the service are no secret.
            Err(_) if matches!(request.op, Op::Layout | Op::Status) => {
                return self.tell(token, request.op);
            }
            Err(status) => return self.refuse(token, status),
        };
        if matches!(request.op, Op::Layout | Op::Status) {
            return self.tell(token, request.op);
        }
        self.want_exits(token, &request, peer.view);
        if request.op == Op::Exits {
            return self.hand_exits(token, &request, peer.view);
        }
        let mut groups = Fields::from_bits_truncate(request.groups) | peer.view.needs();
        if !request.texts.is_empty() {
            groups |= self.texts.needs();
        }
        let tier = Fields::from_bits(request.groups).and_then(|_| self.tiers.of(groups));
        let Some(tier) = tier else {
            return self.refuse(token, Status::Groups);
        };
        let max_age = self.max_age(tier, &request);
        if request.op == Op::Snapshot
            && !self.tiers.is_young(tier, max_age)
            && !self.budget.allows(peer.view.uid(), Instant::now())
        {
            return self.refuse(token, Status::Busy);
        }
        self.waiting.push(Waiting {
            client: token,
            view: peer.view,
            tier,
            request,
        });
    }

    /// How old a walk of this tier may be. One from before exits were recorded does not tell where they begin.
    fn max_age(&self, tier: usize, request: &Request) -> Duration {
        let before = request.exits && Some(self.tiers.exits(tier)) < self.exits.since();
        let max_age = Duration::from_nanos(request.max_age_ns);
        if before { Duration::ZERO } else { max_age }
    }

    /// Exits are recorded as long as a reader wants them.
    fn want_exits(&mut self, token: u64, request: &Request, view: View) {
        let wants = request.exits || request.op == Op::Exits;
        if wants && !self.exits.is_recording() && self.budget.allows(view.uid(), Instant::now()) {
            let began = cpu_time();
            self.exits.start(boottime_ns());
            self.watch_ring();
            self.budget.spend(
                &[view.uid()],
                cpu_time().saturating_sub(began),
                Instant::now(),
            );
        }
        if let Some(client) = self.clients.get_mut(&token) {
            let last = self.exits.last().unwrap_or(0);
            let had = Some(request.exits_after).filter(|&had| had != 0);
            client.exits = wants.then(|| had.unwrap_or(last));
        }
    }

    fn read_exits(&mut self) {
        if self.exits.read() {
            self.watch_ring();
        }
    }

    fn watch_ring(&mut self) {
        let Some(ring) = self.exits.fd() else { return };
        // Once for each quarter that it fills: who asks reads it as well.
        if self
            .watch(ring, RING, EventFlags::IN | EventFlags::ET)
            .is_err()
        {
            self.exits.stop();
        }
    }

    /// Forgets what all have had who want it.
    fn settle_exits(&mut self) {
        if !self.exits.is_recording() {
            return;
        }
        match self
            .clients
            .values()
            .filter_map(|client| client.exits)
            .min()
        {
            Some(had) => self.exits.forget(had),
            None => self.exits.stop(),
        }
    }

    fn close(&mut self, token: u64) {
        // Closing takes it out of the epoll set.
        if let Some(lent) = self.clients.remove(&token).and_then(|client| client.lent) {
            self.buffers.give_back(lent);
        }
    }
}

fn boottime_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn wait(error: io::Error) -> Error {
    Error::Wait(error)
}
