//! The loop: who connects, who asks, who is answered.

mod answer;
mod jobs;
mod report;
mod turn;

use std::{
    collections::HashMap,
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    sync::Arc,
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
    EventfdFlags, Timespec,
    epoll::{self, Event, EventData, EventFlags},
    eventfd,
};

use self::{
    jobs::Job,
    turn::{Costs, Parked, Waiting},
};
use crate::{
    blame::{Blame, Why},
    budget::{Budget, cpu_time},
    buffers::{self, Buffers},
    exits::Exits,
    hidepid::Hidepid,
    message::{read, unread},
    peer::{Asked, Home, Known, Peer, Sender},
    status::Counted,
    texts::Texts,
    tiers::Tiers,
    view::{Shown, View},
};

/// Connections at once, of all users; one other than root has a quarter of them.
pub const CONNECTIONS: usize = 4096;
const CONNECTIONS_OF_USER: usize = CONNECTIONS / 4;
/// Events that are looked at in one go; those who ask meanwhile share the next walk.
const EVENTS: usize = 512;
/// What one user may ask before others are answered, in [`weight`]s.
const ASKED_AT_ONCE: usize = 256;
/// How long nobody is accepted after there was no descriptor for somebody.
const PAUSE: Duration = Duration::from_millis(250);

const LISTENER: u64 = 0;
const STOP: u64 = 1;
const MOUNTS: u64 = 2;
const RING: u64 = 3;
const TEXTS: u64 = 4;
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
    /// Whether the kernel is asked which process has connected (`SO_PEERPIDFD`): so if not set. Kernels before 6.5 cannot
    /// tell; without it the service does as it does there.
    pub peer_pidfd: bool,
    /// CPU time that work for one user may take, as a share of one CPU: 0.5 if not set. Root has no limit.
    pub cpu_of_user: f64,
    /// Bytes of snapshots that the readers of one user may hold: 64 MiB if not set. Root's may hold four times as much.
    pub memory_of_user: usize,
    /// The same of the readers of all users but root: 512 MiB if not set.
    pub memory_of_all: usize,
    /// Is told who was refused and who holds up work, at most once a minute for each user and reason.
    pub log: Option<fn(&str)>,
}

impl Settings {
    fn memory(&self) -> buffers::Limits {
        buffers::Limits {
            of_user: self.memory_of_user,
            of_all: self.memory_of_all,
        }
    }

    /// Descriptors that a service takes with these settings, if readers do their worst.
    pub fn descriptors(&self) -> usize {
        // Before Linux 6.5 each has a pidfd of its reader, too, until it asks a second time.
        2 * CONNECTIONS + self.memory().buffers()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            source: None,
            idle_exit: None,
            texts_timeout: Duration::from_millis(400),
            exits_kept: 1 << 16,
            peer_pidfd: true,
            cpu_of_user: 0.5,
            memory_of_user: 64 << 20,
            memory_of_all: 512 << 20,
            log: None,
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
    /// Who it is, found out when it asks.
    peer: Known,
    /// The buffer that it may read, until its next request.
    lent: Option<u64>,
    /// The last exit that it has had, if it wants them.
    exits: Option<u64>,
    /// Whether it waits for an answer.
    waits: bool,
}

/// The resident service.
#[derive(Debug)]
pub struct Service {
    listener: OwnedFd,
    epoll: OwnedFd,
    mounts: File,
    idle_exit: Option<Duration>,
    peer_pidfd: bool,
    host: Host,
    home: Home,
    hidepid: Hidepid,
    tiers: Tiers,
    texts: Texts,
    exits: Exits,
    budget: Budget,
    buffers: Buffers,
    clients: HashMap<u64, Client>,
    /// Connections by user.
    connections: HashMap<u32, usize>,
    next_client: u64,
    /// Since when nobody is accepted, for want of descriptors.
    paused: Option<Instant>,
    waiting: Vec<Waiting>,
    /// Those who wait for texts that are read for others.
    parked: Parked,
    /// Whether texts have begun to be read, or are read, since those were looked at.
    jobs_changed: bool,
    /// Whether something of that can be done at once.
    can_go_on: bool,
    costs: Costs,
    /// What of the request that is sorted was charged for itself: to begin to record exits.
    charged_apart: Duration,
    jobs: Vec<Job>,
    texts_timeout: Duration,
    /// Written to when texts have been read.
    texts_done: Arc<OwnedFd>,
    /// What was asked by whom among the events that are being handled.
    asked: Vec<(u32, usize)>,
    /// Users who have had work done in this turn.
    served: Vec<u32>,
    shown: Vec<Shown>,
    counted: Counted,
    blame: Blame,
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
            peer_pidfd: settings.peer_pidfd,
            home: Home::of_this_process().map_err(wait)?,
            hidepid: Hidepid::read(),
            texts: Texts::open(&host)?,
            host,
            tiers: Tiers::open(settings.source, first)?,
            exits: Exits::new(first, settings.exits_kept),
            budget: Budget::new(settings.cpu_of_user),
            buffers: Buffers::new(first, settings.memory()),
            clients: HashMap::new(),
            next_client: FIRST_CLIENT,
            connections: HashMap::new(),
            paused: None,
            waiting: Vec::new(),
            parked: Parked::default(),
            jobs_changed: false,
            can_go_on: false,
            costs: Costs::default(),
            charged_apart: Duration::ZERO,
            jobs: Vec::new(),
            texts_timeout: settings.texts_timeout,
            texts_done: Arc::new(
                eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                    .map_err(|error| wait(error.into()))?,
            ),
            asked: Vec::new(),
            served: Vec::new(),
            shown: Vec::new(),
            counted: Counted::default(),
            blame: Blame::new(settings.log),
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
        self.watch(self.texts_done.as_fd(), TEXTS, EventFlags::IN)?;
        let mut events = Vec::with_capacity(EVENTS);
        let mut idle_since = Instant::now();
        loop {
            let limit = self.idle_exit.filter(|_| self.clients.is_empty());
            let limit = limit.map(|limit| limit.saturating_sub(idle_since.elapsed()));
            let timeout = self.timeout(limit);
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
            self.counted.wakes += 1;
            let was_idle = self.clients.is_empty();
            if self.handle(&events) {
                return Ok(());
            }
            if !was_idle || !self.clients.is_empty() {
                idle_since = Instant::now();
            }
        }
    }

    /// How long to sleep if nobody asks.
    fn timeout(&self, idle: Option<Duration>) -> Option<Timespec> {
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        let at_once = self.can_go_on.then_some(Duration::ZERO);
        let jobs = self.next_deadline().map(until);
        let accept = self.paused.map(|since| until(since + PAUSE));
        let first = at_once.into_iter().chain(idle).chain(jobs).chain(accept);
        first.min().and_then(|first| Timespec::try_from(first).ok())
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
        self.asked.clear();
        for token in tokens() {
            match token {
                LISTENER => self.accept(),
                MOUNTS => (),
                RING => self.read_exits(),
                TEXTS => self.hear_of_texts(),
                client => self.receive(client),
            }
        }
        self.accept_again();
        self.finish_jobs();
        self.turn();
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
                Err(Errno::EAGAIN) => return,
                // Without descriptors or memory for more, those who are here are served, and who waits goes its own way.
                Err(_) => return self.pause(),
            };
            self.counted.connections += 1;
            let uid =
                nix::sys::socket::getsockopt(&socket, nix::sys::socket::sockopt::PeerCredentials)
                    .map_or(u32::MAX, |credentials| credentials.uid());
            let of_user = self.connections.get(&uid).copied().unwrap_or(0);
            if self.clients.len() >= CONNECTIONS || (uid != 0 && of_user >= CONNECTIONS_OF_USER) {
                self.blame.add(Some(uid), Why::CutOff);
                continue;
            }
            let token = self.next_client;
            self.next_client += 1;
            if self.watch(socket.as_fd(), token, EventFlags::IN).is_ok() {
                let client = Client {
                    socket,
                    uid,
                    peer: Known::Nothing,
                    lent: None,
                    exits: None,
                    waits: false,
                };
                self.clients.insert(token, client);
                *self.connections.entry(uid).or_default() += 1;
            }
        }
    }

    /// Accepts nobody for a while: the socket would be reported again at once, and for ever.
    fn pause(&mut self) {
        self.counted.pauses += 1;
        let none = EventFlags::empty();
        if epoll::modify(
            &self.epoll,
            &self.listener,
            EventData::new_u64(LISTENER),
            none,
        )
        .is_ok()
        {
            self.paused = Some(Instant::now());
        }
    }

    fn accept_again(&mut self) {
        if self.paused.is_some_and(|since| since.elapsed() >= PAUSE) {
            self.paused = None;
            let again = EventFlags::IN;
            let data = EventData::new_u64(LISTENER);
            if epoll::modify(&self.epoll, &self.listener, data, again).is_err() {
                self.paused = Some(Instant::now());
            }
        }
    }

    /// Whether this user has asked so much that others come first. What is not read now is reported again, behind them.
    fn others_come_first(&mut self, uid: u32, weight: usize) -> bool {
        let asked = self.asked.iter_mut().find(|(of, _)| *of == uid);
        match asked {
            Some((_, asked)) if *asked >= ASKED_AT_ONCE => true,
            Some((_, asked)) => {
                *asked += weight;
                false
            }
            None => {
                self.asked.push((uid, weight));
                false
            }
        }
    }

    /// Reads one request.
    fn receive(&mut self, token: u64) {
        let Some(client) = self.clients.get(&token) else {
            return;
        };
        let (uid, is_new) = (client.uid, !client.peer.is_decided());
        // Finding out who it is takes as long as reading many requests.
        if self.others_come_first(uid, if is_new { 16 } else { 1 }) {
            self.can_go_on = true;
            return;
        }
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
        // Who has not had the last answer, or has not read it, shall not have the next one pile up.
        if client.waits || unread(&client.socket) {
            self.blame(token, Why::CutOff);
            return self.close(token);
        }
        let request = match Request::from_words(&words) {
            Ok(request) => request,
            Err(status) => return self.refuse(token, status),
        };
        let is_text = matches!(request.op, Op::Layout | Op::Status);
        if (is_new || is_text) && !self.budget.allows(uid, self.costs.identify, Instant::now()) {
            return self.refuse_for(token, Why::OverBudget);
        }
        // Little is done for most requests, and much for a first one and for a text.
        let began = (is_new || is_text).then(cpu_time);
        self.charged_apart = Duration::ZERO;
        self.sort(token, request, sender);
        if let Some(began) = began {
            let took = cpu_time().saturating_sub(began);
            let took = took.saturating_sub(self.charged_apart);
            if is_new && !is_text {
                self.costs.identify = took;
            }
            self.budget.spend(uid, took, Instant::now());
        }
    }

    /// Answers what can be answered at once; the rest waits for its turn.
    fn sort(&mut self, token: u64, request: Request, sender: Option<Sender>) {
        let Some(client) = self.clients.get_mut(&token) else {
            return;
        };
        // fsconfig(2) sets hidepid without an event of the mounts.
        if !client.peer.is_decided() || self.hidepid.is_old() {
            self.hidepid = Hidepid::read();
        }
        let hides = self.hidepid.hides;
        let peer = client.peer.of(Asked {
            socket: &client.socket,
            sender,
            op: request.op,
            home: &self.home,
            hides,
            peer_pidfd: self.peer_pidfd,
        });
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
        let mut groups = Fields::from_bits_truncate(request.groups) | peer.view.needs();
        if !request.texts.is_empty() {
            groups |= self.texts.needs();
        }
        let tier = Fields::from_bits(request.groups).and_then(|_| self.tiers.of(groups));
        let Some(tier) = tier.or_else(|| (request.op == Op::Exits).then_some(0)) else {
            return self.refuse(token, Status::Groups);
        };
        if let Some(client) = self.clients.get_mut(&token) {
            client.waits = true;
        }
        self.waiting.push(Waiting {
            client: token,
            view: peer.view,
            tier,
            request,
            came: Instant::now(),
        });
    }

    /// Exits are recorded as long as a reader wants them.
    fn want_exits(&mut self, token: u64, request: &Request, view: View) {
        let wants = request.exits || request.op == Op::Exits;
        let (uid, now) = (view.uid(), Instant::now());
        if wants
            && !self.exits.is_recording()
            && self.budget.allows(uid, self.costs.start_exits, now)
        {
            let began = cpu_time();
            self.exits.start(boottime_ns());
            self.watch_ring();
            self.costs.start_exits = cpu_time().saturating_sub(began);
            self.charged_apart = self.costs.start_exits;
            self.budget.spend(uid, self.costs.start_exits, now);
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
        // Closing takes it out of the epoll set. What it has asked for is not done any more.
        let Some(client) = self.clients.remove(&token) else {
            return;
        };
        if let Some(count) = self.connections.get_mut(&client.uid) {
            *count -= 1;
            if *count == 0 {
                self.connections.remove(&client.uid);
            }
        }
        if let Some(lent) = client.lent {
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

#[cfg(test)]
mod tests;
