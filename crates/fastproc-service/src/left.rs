//! Owners whose texts are left to the readers, because reading memory of their processes took too long.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use fastproc::{
    Directories, Process,
    owner::{Makers, Namespaces, Owner},
    record::Credentials,
};

use crate::reading::Reading;

/// Kept this long after the kernel has finally answered.
const LEFT_FOR: Duration = Duration::from_secs(60);
/// Readings that still block. At this number only root's processes are read.
const MOST_HELD: usize = 32;

/// An unfinished reading that no request waits for any more.
#[derive(Debug)]
struct Held {
    reading: Reading,
    /// An owner whose process has blocked it at least this long is left to the readers.
    patience: Duration,
    by: Option<Owner>,
}

/// All owners that are left to the readers.
#[derive(Debug)]
pub(crate) struct Left {
    home: Namespaces,
    until: HashMap<Owner, Instant>,
    held: Vec<Held>,
}

impl Left {
    pub(crate) fn new(home: Namespaces) -> Self {
        Self {
            home,
            until: HashMap::new(),
            held: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.until.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.until.len()
    }

    /// Forgets owners whose time is over. An owner that still blocks a reading stays.
    pub(crate) fn settle(&mut self, now: Instant) {
        let Self { until, held, .. } = self;
        held.retain_mut(|held| {
            let current = held.reading.current(now);
            if let Some((owner, took)) = current
                && took >= held.patience
            {
                held.by = Some(owner);
            }
            if let Some(owner) = held.by {
                until.insert(owner, now + LEFT_FOR);
            }
            current.is_some()
        });
        until.retain(|_, until| *until > now);
    }

    /// Leaves all of this owner's processes to the readers.
    pub(crate) fn add(&mut self, owner: Owner, now: Instant) {
        self.until.insert(owner, now + LEFT_FOR);
    }

    /// Watches a reading that no request waits for any more.
    pub(crate) fn watch(&mut self, reading: Reading, patience: Duration) {
        if !reading.is_over() {
            self.held.push(Held {
                reading,
                patience,
                by: None,
            });
        }
    }

    /// Whether this process's texts are left to the readers. `makers` belongs to one snapshot.
    pub(crate) fn has(
        &self,
        process: Process<'_>,
        directories: &Directories,
        makers: &mut Makers,
    ) -> bool {
        let too_many = self.held.len() >= MOST_HELD;
        if self.until.is_empty() && !too_many {
            return false;
        }
        let pid = process.pid();
        let uid = process.users().map(|of| of.uid);
        let namespace = process.credentials().and_then(Credentials::user_ns);
        let is_home = namespace.is_some_and(|inode| self.home.has_inode(inode));
        let known = namespace.and_then(|inode| self.home.known_owner(inode, pid, makers));
        let owner = match (known, uid) {
            (Some(owner), _) => owner,
            (None, Some(uid)) if is_home => self.home.owner_by_user(pid, uid),
            (None, _) => match directories.get(pid, process.identity().start_ns) {
                Ok(directory) => self.home.owner(&directory, pid, uid, makers),
                Err(_) => Owner::Unknown { user_ns: 0 },
            },
        };
        self.until.contains_key(&owner) || (too_many && !matches!(owner, Owner::Root { .. }))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read as _,
        process::{Command, Stdio},
    };

    use super::*;
    use crate::reading::tests::held_at;

    #[test]
    fn a_process_that_blocks_an_unneeded_reading_is_left_out() {
        const PATIENCE: Duration = Duration::from_secs(3600);
        let mut left = Left::new(Namespaces::own());
        let (reading, release) = held_at(3);
        left.watch(reading, PATIENCE);
        let now = Instant::now();
        left.settle(now);
        assert!(left.until.is_empty(), "the reading has just begun");
        left.settle(now + 2 * PATIENCE);
        assert!(left.until.contains_key(&Owner::User(3)));
        left.settle(now + 3 * PATIENCE);
        assert!(left.until.contains_key(&Owner::User(3)), "it still does");
        drop(release);
        fastproc_testbed::wait_until("the end of the thread", || left.held[0].reading.is_over());
        left.settle(now + 3 * PATIENCE);
        left.settle(now + 3 * PATIENCE + LEFT_FOR / 2);
        assert!(left.until.contains_key(&Owner::User(3)), "for a while");
        left.settle(now + 3 * PATIENCE + LEFT_FOR);
        assert!(left.until.is_empty() && left.held.is_empty());
    }

    /// A user who creates user namespaces could have any number of owners, each of which blocks a reading before it is
    /// left to the readers.
    #[test]
    fn while_too_many_readings_are_held_up_only_roots_processes_are_read() {
        use fastproc_testbed::gate;
        if !gate::root() || !gate::programs(&["setpriv", "unshare"]) {
            return;
        }
        let mut child = Command::new("setpriv")
            .args(["--reuid=4321", "--regid=4321", "--clear-groups"])
            .args(["unshare", "--user", "--map-root-user"])
            .args(["sh", "-c", "echo .; read x"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let told = child.stdout.as_mut().expect("a pipe");
        if told.read_exact(&mut [0]).is_err() {
            child.wait().expect("the child is ours");
            gate::skipped("users may not make user namespaces here");
            return;
        }
        let mut collector = fastproc::Collector::builder()
            .source(Some(fastproc::SourceKind::Procfs))
            .fields(fastproc::Fields::USERS | fastproc::Fields::CREDENTIALS)
            .open()
            .expect("/proc can be read");
        let directories = Directories::open(collector.host()).expect("/proc can be read");
        let snapshot = collector.snapshot().expect("/proc can be read");
        let is_left = |left: &Left, pid: u32| {
            let process = snapshot.get(pid).expect("the process is shown");
            left.has(process, &directories, &mut Makers::default())
        };
        let own = std::process::id();
        let mut left = Left::new(Namespaces::own());
        let now = Instant::now();
        let mut releases = Vec::new();
        for _ in 0..MOST_HELD {
            assert!(!is_left(&left, child.id()));
            let (reading, release) = held_at(3);
            left.watch(reading, Duration::from_secs(3600));
            releases.push(release);
        }
        left.settle(now);
        assert_eq!(left.len(), 0, "nobody is blamed");
        assert!(is_left(&left, child.id()));
        assert!(!is_left(&left, own), "root's are read");
        releases.pop();
        fastproc_testbed::wait_until("the end of one of them", || {
            left.settle(now);
            !is_left(&left, child.id())
        });
        child.kill().expect("the child is killed");
        child.wait().expect("the child ends");
    }
}
