//! The loop of the service: connections, requests, answers.

mod answer;
mod background;
mod connections;
mod exits;
mod jobs;
mod report;
mod request_costs;
mod requests;
mod schedule;

use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    time::{Duration, Instant},
};

use fastproc::{Host, Refusal, SourceKind};
use rustix::event::{
    EventfdFlags, Timespec,
    epoll::{self, Event, EventData, EventFlags},
    eventfd,
};

use self::{
    background::Apart,
    connections::{Client, PAUSE},
    jobs::Job,
    request_costs::RequestCosts,
    schedule::{Costs, Orders, Parked, Waiting},
};
use crate::{
    budget::Budget,
    buffers::{Buffers, Subject},
    exits::Exits,
    field_sets::FieldSets,
    figures::Figures,
    hidepid::Hidepid,
    peer::Home,
    settings::Settings,
    status::Counted,
    texts::Texts,
    user_events::UserEvents,
    visibilities::Visibilities,
};

/// Events that are handled together; requests that arrive meanwhile share the next walk.
const EVENTS: usize = 512;
/// Unidentified readers that are handled together are fewer: a user may connect by thousands of ids.
const UNKNOWN: usize = 16;

const LISTENER: u64 = 0;
const STOP: u64 = 1;
const MOUNTS: u64 = 2;
const RING: u64 = 3;
const WORK_DONE: u64 = 4;
const FIRST_CLIENT: u64 = 16;

/// The service cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No source can be read.
    #[error(transparent)]
    Source(#[from] fastproc::Error),
    /// The kernel refused what is needed to wait for readers.
    #[error("cannot wait for readers")]
    Wait(#[source] io::Error),
}

/// The resident service.
#[derive(Debug)]
pub struct Service {
    listener: OwnedFd,
    exporter: Option<u32>,
    epoll: OwnedFd,
    mounts: File,
    idle_exit: Option<Duration>,
    peer_pidfd: bool,
    host: Host,
    home: Home,
    hidepid: Hidepid,
    field_sets: FieldSets,
    texts: Texts,
    exits: Exits,
    cgroups: Apart,
    files: Apart,
    most_cgroups: usize,
    /// Since when no reader has wanted the exits that are recorded.
    exits_unwanted: Option<Instant>,
    exits_linger: Duration,
    budget: Budget,
    /// What all users have made costs each of them, so it is apart.
    cgroup_budget: Budget,
    files_budget: Budget,
    buffers: Buffers,
    clients: HashMap<u64, Client>,
    /// Readers that are not yet known to be entitled to answers.
    unproven: BTreeSet<u64>,
    /// Connections by the account that they are charged to, the oldest first.
    connections: HashMap<u32, BTreeSet<u64>>,
    next_client: u64,
    /// Since when no connection is accepted, for want of descriptors.
    paused: Option<Instant>,
    waiting: Vec<Waiting>,
    /// Requests that wait for texts that are being read for others.
    parked: Parked,
    /// Whether a reading has begun or ended since the parked requests were checked.
    jobs_changed: bool,
    /// Whether some request can be worked on at once.
    can_go_on: bool,
    costs: Costs,
    /// What was charged separately for the current request: to begin recording exits.
    charged_apart: Duration,
    jobs: Vec<Job>,
    texts_timeout: Duration,
    /// Written to when a thread has read texts, cgroups or open files.
    work_done: Arc<OwnedFd>,
    request_costs: RequestCosts,
    orders: Orders,
    visibilities: Visibilities,
    counted: Counted,
    user_events: UserEvents,
    figures: Arc<Figures>,
    started: Instant,
}

impl Service {
    /// Prepares to serve at this socket, and loads everything that reading needs. Privileges may be dropped after this.
    pub fn open(listener: OwnedFd, settings: &Settings) -> Result<Self, Error> {
        // Numbers that no earlier service has used.
        let first = fastproc::host::boottime_ns();
        let host = Host::read()?;
        let figures = Arc::<Figures>::default();
        Ok(Self {
            listener,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)
                .map_err(|error| wait(error.into()))?,
            mounts: File::open("/proc/self/mounts").map_err(wait)?,
            idle_exit: settings.idle_exit,
            peer_pidfd: settings.peer_pidfd,
            home: Home::read().map_err(wait)?,
            hidepid: Hidepid::read(),
            texts: Texts::open(&host)?,
            host,
            field_sets: FieldSets::open(settings.source, first)?,
            exits: Exits::new(first, settings.exits_kept),
            cgroups: Apart::default(),
            files: Apart::default(),
            most_cgroups: settings.most_cgroups,
            exits_unwanted: None,
            exits_linger: settings.exits_linger,
            budget: Budget::new(settings.cpu_of_user),
            cgroup_budget: Budget::new(settings.cpu_of_user),
            files_budget: Budget::new(settings.cpu_of_user),
            buffers: Buffers::new(first, settings.memory()),
            clients: HashMap::new(),
            unproven: BTreeSet::new(),
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
            work_done: event()?,
            request_costs: RequestCosts::new(settings.cpu_of_user),
            orders: Orders::default(),
            visibilities: Visibilities::default(),
            counted: Counted::default(),
            user_events: UserEvents::new(settings.log, Arc::clone(&figures.refused)),
            figures,
            started: Instant::now(),
            exporter: None,
        })
    }

    /// Adds to the status the process that serves metrics, for which this service collects.
    pub fn collects_for(&mut self, exporter: u32) {
        self.exporter = Some(exporter);
    }

    /// The source that the service reads.
    pub fn source(&self) -> SourceKind {
        self.field_sets.source()
    }

    /// Figures that other threads may read while the service runs.
    pub fn figures(&self) -> Arc<Figures> {
        Arc::clone(&self.figures)
    }

    /// Sources that were tried first and refused, and why.
    pub fn refused(&self) -> &[Refusal] {
        self.field_sets.refused()
    }

    /// Serves until `stop` is readable, or until no reader has been connected for as long as the settings say.
    pub fn run(mut self, stop: BorrowedFd<'_>) -> Result<(), Error> {
        self.watch(self.listener.as_fd(), LISTENER, EventFlags::IN)?;
        self.watch(stop, STOP, EventFlags::IN)?;
        self.watch(self.mounts.as_fd(), MOUNTS, EventFlags::PRI)?;
        self.watch(self.work_done.as_fd(), WORK_DONE, EventFlags::IN)?;
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
            // Nor does a connection wait to be accepted.
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

    /// How long to sleep if no request arrives.
    fn timeout(&self, idle: Option<Duration>) -> Option<Timespec> {
        let until = |at: Instant| at.saturating_duration_since(Instant::now());
        let at_once = self.can_go_on.then_some(Duration::ZERO);
        let jobs = self.next_deadline().map(until);
        let accept = self.paused.map(|since| until(since + PAUSE));
        let request_costs = self.request_costs.deadline().map(until);
        let first = at_once.into_iter().chain(idle).chain(jobs);
        let exits = self
            .exits_unwanted
            .and_then(|since| since.checked_add(self.exits_linger))
            .map(until);
        let closes = [&self.cgroups, &self.files].map(|apart| apart.thread.closes_at());
        let closes = closes.into_iter().flatten().min().map(until);
        let first = first.chain(accept).chain(request_costs).chain(exits);
        let release = self.field_sets.next_release().map(until);
        let first = first.chain(release).chain(closes);
        first.min().and_then(|first| Timespec::try_from(first).ok())
    }

    fn watch(&self, fd: BorrowedFd<'_>, token: u64, flags: EventFlags) -> Result<(), Error> {
        let data = EventData::new_u64(token);
        epoll::add(&self.epoll, fd, data, flags).map_err(|error| wait(error.into()))
    }

    /// Handles events. Returns whether to stop.
    fn handle(&mut self, events: &[Event]) -> bool {
        let tokens = || events.iter().map(|event| event.data.u64());
        if tokens().any(|token| token == STOP) {
            return true;
        }
        // Read `hidepid` before any request is answered.
        if tokens().any(|token| token == MOUNTS) {
            self.hidepid = Hidepid::read();
        }
        let (mut unknown, mut connects) = (Vec::new(), false);
        for event in events {
            let flags = event.flags;
            match event.data.u64() {
                LISTENER => connects = true,
                MOUNTS => (),
                RING => self.read_exits(),
                // It does not matter which thread wrote it: all are asked below.
                WORK_DONE => _ = rustix::io::read(&*self.work_done, &mut [0; 8]),
                // The reader has gone.
                client if flags.contains(EventFlags::HUP) => self.close(client),
                client if self.unproven.contains(&client) => unknown.push(client),
                client => _ = self.receive(client),
            }
        }
        // The remaining ones are reported again.
        let looked_at = unknown.into_iter().filter(|&client| self.receive(client));
        looked_at.take(UNKNOWN).for_each(drop);
        // Accept after the requests: a connection without a request may be closed to make room.
        if connects {
            self.accept();
        }
        self.accept_again();
        self.finish_jobs();
        self.finish_apart(Subject::Cgroups);
        self.finish_apart(Subject::Files);
        self.turn();
        self.settle_exits();
        self.field_sets.release_unused();
        self.cgroups.thread.close_unused(Instant::now());
        self.files.thread.close_unused(Instant::now());
        self.figures
            .set(self.clients.len(), self.buffers.lent_bytes());
        self.release_held();
        self.settle_request_costs();
        false
    }
}

/// A counter that a thread adds to when it is done.
fn event() -> Result<Arc<OwnedFd>, Error> {
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    event.map(Arc::new).map_err(|error| wait(error.into()))
}

fn wait(error: io::Error) -> Error {
    Error::Wait(error)
}

#[cfg(test)]
mod tests;
