//! How to serve.

use std::time::Duration;

use fastproc::SourceKind;

use crate::buffers;

/// Connections at once, of all users; one has a quarter of them, but root all.
pub const CONNECTIONS: usize = 4096;
pub(crate) const CONNECTIONS_OF_USER: usize = CONNECTIONS / 4;

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
    /// For so long exits are recorded after the last reader has gone who wants them: 10 s if not set. To begin takes some 60 ms, in
    /// which nobody is answered.
    pub exits_linger: Duration,
    /// Whether the kernel is asked which process has connected (`SO_PEERPIDFD`): so if not set. Kernels before 6.5 cannot
    /// tell; without it the service does as it does there.
    pub peer_pidfd: bool,
    /// CPU time that work for one user may take, as a share of one CPU: 0.5 if not set. To read and refuse its requests may take a
    /// fifth of that. Root has no limit.
    pub cpu_of_user: f64,
    /// Bytes of snapshots that the readers of one user may hold: 64 MiB if not set. Root's may hold four times as much.
    pub memory_of_user: usize,
    /// The same of the readers of all users but root: 512 MiB if not set.
    pub memory_of_all: usize,
    /// Is told who was refused and who holds up work, at most once a minute for each user and reason.
    pub log: Option<fn(&str)>,
}

impl Settings {
    pub(crate) fn memory(&self) -> buffers::Limits {
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
            exits_linger: Duration::from_secs(10),
            peer_pidfd: true,
            cpu_of_user: 0.5,
            memory_of_user: 64 << 20,
            memory_of_all: 512 << 20,
            log: None,
        }
    }
}
