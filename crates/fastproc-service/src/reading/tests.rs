//! Readings that end, block, or take too long.

use std::sync::mpsc;

use fastproc_testbed::wait_until;
use rustix::event::{EventfdFlags, eventfd};

use super::*;

const NEVER: Limits = Limits {
    all: Duration::MAX,
    one: Duration::MAX,
};
const HOUR: Duration = Duration::from_secs(3600);

fn items(pids: std::ops::Range<u32>) -> Vec<Item> {
    let item = |pid| Item {
        pid,
        start_ns: 0,
        uid: None,
        idle: None,
        kinds: Kinds::CMDLINE,
        place: 0,
    };
    pids.map(item).collect()
}

fn text(item: &Item, bytes: usize) -> Vec<Read> {
    vec![Read {
        item: *item,
        kind: Kinds::CMDLINE,
        read_ns: 0,
        bytes: Some(vec![b'x'; bytes].into()),
        rights: None,
    }]
}

fn done() -> Arc<OwnedFd> {
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    Arc::new(eventfd(0, flags).expect("a descriptor"))
}

fn start(
    count: u32,
    done: Arc<OwnedFd>,
    mut read: impl FnMut(&Item) -> Vec<Read> + Send + 'static,
) -> Reading {
    let read = move |item: &Item, tell_owner: &mut dyn FnMut(Owner)| {
        tell_owner(Owner::User(item.pid));
        read(item)
    };
    Reading::start(items(0..count), Instant::now(), done, read).expect("a thread")
}

/// A reading of 100 processes that blocks at this one until the other end of the channel is dropped. Each process
/// belongs to the user whose uid equals its pid.
pub(crate) fn held_at(pid: u32) -> (Reading, mpsc::Sender<()>) {
    let (release, held) = mpsc::channel::<()>();
    let (tell, arrived) = mpsc::channel();
    let read = move |item: &Item| {
        if item.pid == pid {
            tell.send(()).expect("the test listens");
            let _ = held.recv();
        }
        text(item, 1)
    };
    let reading = start(100, done(), read);
    arrived.recv().expect("it arrives");
    (reading, release)
}

fn nothing_more_is_read(reading: &Reading, release: mpsc::Sender<()>) {
    assert!(!reading.thread.is_over());
    drop(release);
    wait_until("the end of the thread", || reading.thread.is_over());
    assert_eq!(lock(&reading.progress).texts.len(), 1, "that of process 3");
}

fn user(blamed: Option<(Owner, Duration)>) -> Option<u32> {
    blamed.and_then(|(owner, _)| owner.uid())
}

#[test]
fn everything_is_read_and_the_end_is_told() {
    let done = done();
    let reading = start(100, Arc::clone(&done), |item| text(item, 1));
    wait_until("it is told", || {
        rustix::io::read(&*done, &mut [0; 8]).is_ok()
    });
    let outcome = reading.outcome(NEVER, Instant::now());
    let outcome = outcome.expect("it is over");
    let pids: Vec<u32> = outcome.texts.iter().map(|text| text.item.pid).collect();
    assert_eq!(pids, (0..100).collect::<Vec<_>>());
    assert!(outcome.blamed.is_none() && reading.thread.is_over());
}

#[test]
fn a_reading_that_panics_is_over_and_the_end_is_told() {
    let done = done();
    let reading = start(100, Arc::clone(&done), |item| {
        assert!(item.pid < 3, "a deliberate panic");
        text(item, 1)
    });
    wait_until("it is told", || {
        rustix::io::read(&*done, &mut [0; 8]).is_ok()
    });
    assert!(reading.thread.is_over() && reading.thread.current(Instant::now()).is_none());
    let outcome = reading.outcome(NEVER, Instant::now());
    assert_eq!(outcome.expect("it is over").texts.len(), 3);
}

#[test]
fn the_owner_of_a_process_is_known_before_it_is_read() {
    let host = fastproc::Host::read().expect("/proc");
    let mut own = fastproc::Collector::builder()
        .fields(fastproc::Fields::USERS)
        .source(Some(fastproc::SourceKind::Procfs))
        .open()
        .expect("/proc");
    let snapshot = own.snapshot().expect("/proc");
    let process = snapshot
        .get(std::process::id())
        .expect("the process is shown");
    let (pid, uid) = (process.pid(), rustix::process::getuid().as_raw());
    let source = Source {
        directories: Arc::new(Directories::open(&host).expect("/proc")),
        boot_offset_ns: host.boot_offset_ns,
        home: Namespaces::own(),
    };
    for known in [None, Some(uid)] {
        let item = Item {
            pid,
            start_ns: process.identity().start_ns,
            uid: known,
            idle: None,
            kinds: Kinds::CMDLINE,
            place: 0,
        };
        let mut told = Vec::new();
        let texts = read(&item, &source, false, &mut |owner| told.push(owner));
        assert_eq!(texts.len(), 1);
        assert_eq!(told, [source.home.owner_by_user(pid, uid)]);
    }
}

#[test]
fn a_process_that_takes_too_long_is_left_out_and_earlier_texts_stay() {
    let (reading, release) = held_at(3);
    let limits = Limits { one: HOUR, ..NEVER };
    let now = Instant::now();
    assert!(reading.outcome(limits, now).is_none());
    let outcome = reading.outcome(limits, now + HOUR).expect("it is late");
    assert_eq!(user(outcome.blamed), Some(3));
    assert_eq!(outcome.texts.len(), 3);
    nothing_more_is_read(&reading, release);
}

#[test]
fn a_reading_ends_at_its_limit_and_blames_its_slowest_user() {
    let (reading, release) = held_at(3);
    let limits = Limits { all: HOUR, ..NEVER };
    let asked = reading.asked;
    assert!(reading.outcome(limits, asked + HOUR / 2).is_none());
    let outcome = reading.outcome(limits, asked + 2 * HOUR);
    let outcome = outcome.expect("it is late");
    assert_eq!(user(outcome.blamed), Some(3));
    assert_eq!(outcome.texts.len(), 3);
    nothing_more_is_read(&reading, release);
}

/// Many processes that each took a little less than one may, and one that is being read when the time is over.
fn slow(slowest: Duration, limits: Limits) -> Option<u32> {
    let asked = Instant::now();
    let thread = ReadingThread::default();
    thread.begin(asked + limits.all * 399 / 400);
    thread.set_owner(Owner::User(8));
    let progress = Progress {
        slowest: Some((Owner::User(7), slowest)),
        ..Progress::default()
    };
    let reading = Reading {
        thread,
        progress: Arc::new(Mutex::new(progress)),
        asked,
    };
    let outcome = reading.outcome(limits, asked + limits.all);
    user(outcome.expect("it is late").blamed)
}

#[test]
fn a_late_reading_blames_users_who_took_an_eighth_of_it() {
    let limits = Limits {
        all: Duration::from_millis(400),
        one: Duration::from_millis(200),
    };
    assert_eq!(slow(Duration::from_millis(199), limits), Some(7));
    assert_eq!(slow(Duration::from_millis(50), limits), Some(7));
    assert_eq!(slow(Duration::from_millis(49), limits), None);
}

#[test]
fn how_long_the_slowest_took_is_noted() {
    let mut progress = Progress::default();
    for (uid, seconds) in [(1, 2), (2, 5), (3, 4)] {
        let took = (Owner::User(uid), Duration::from_secs(seconds));
        progress.add(Vec::new(), Some(took));
    }
    let slowest = (Owner::User(2), Duration::from_secs(5));
    assert_eq!(progress.slowest, Some(slowest));
}

#[test]
fn however_much_there_is_no_more_is_held_than_the_bound() {
    let count = 3 * MOST_BYTES / LONGEST;
    let reading = start(count as u32, done(), |item| text(item, LONGEST));
    wait_until("the end of the thread", || reading.thread.is_over());
    let outcome = reading.outcome(NEVER, Instant::now());
    let outcome = outcome.expect("it is over");
    assert_eq!(outcome.texts.len(), MOST_BYTES / LONGEST);
}
