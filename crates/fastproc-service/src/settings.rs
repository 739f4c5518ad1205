//! Settings of the service.

use std::time::Duration;

use fastproc::SourceKind;

use crate::{background, buffers};

/// Connections at a time, of all users; one user may have a quarter of them, root all.
pub const CONNECTIONS: usize = 4096;
pub(crate) const CONNECTIONS_OF_USER: usize = CONNECTIONS / 4;

/// Settings of the service.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The only source to read. Default: the best one that works.
    pub source: Option<SourceKind>,
    /// Exit after this time without connections. Default: never.
    pub idle_exit: Option<Duration>,
    /// How long a request waits for command lines and paths of programs; half of that for those of one process.
    /// Default: 400 ms. A reader that has another source waits 500 ms for the whole answer.
    pub texts_timeout: Duration,
    /// Exits that are kept for the slowest reader. Default: 65,536, about 25 MB.
    pub exits_kept: usize,
    /// How long exits are still recorded after the last reader that wants them has gone. Default: 10 s. Beginning again
    /// takes about 60 ms, in which no request is answered.
    pub exits_linger: Duration,
    /// Whether to ask the kernel which process has connected (`SO_PEERPIDFD`). Default: true. Kernels before 6.5 do not
    /// know; without it the service behaves as on those.
    pub peer_pidfd: bool,
    /// CPU time that work for one user may take, as a share of one CPU. Default: 0.5. Reading and refusing its requests
    /// may take a fifth of that in addition. Root has no limit.
    pub cpu_of_user: f64,
    /// Bytes of snapshots that the readers of one user may hold. Default: 64 MiB. Root's readers may hold four times as
    /// much.
    pub memory_of_user: usize,
    /// Bytes that the readers of all users but root may hold. Default: 512 MiB.
    pub memory_of_all: usize,
    /// The most cgroups of which users are shown any. Default: 16,384. Root is shown up to 65,536.
    pub most_cgroups: usize,
    /// Logs which users were refused or hold up work, at most once a minute for each user and reason.
    pub log: Option<fn(&str)>,
}

impl Settings {
    pub(crate) fn memory(&self) -> buffers::Limits {
        buffers::Limits {
            of_user: self.memory_of_user,
            of_all: self.memory_of_all,
        }
    }

    /// The most descriptors that a service with these settings may need.
    pub fn descriptors(&self) -> usize {
        // Before Linux 6.5 each connection has a pidfd of its reader, too, until it asks a second time.
        2 * CONNECTIONS + self.memory().buffers() + background::DESCRIPTORS
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
            most_cgroups: 1 << 14,
            log: None,
        }
    }
}
