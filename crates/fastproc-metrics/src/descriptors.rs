//! The limit of open descriptors: raised as far as the kernel allows, and told by name where it does not do.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What reading `/proc` and a few connections take.
const LEAST: u64 = 48;
/// What loading the programs takes, and running them: about 64 on a machine with 2 CPUs.
pub const FOR_BPF: u64 = 80;
/// Files of cgroups that are kept open: those of about 10,000 cgroups.
pub const OF_CGROUPS: usize = 32 << 10;
/// What is kept for files that are opened and closed again.
const SPARE: u64 = 8;
/// Files of the machine that the first scrape opens, and keeps.
const OF_MACHINE: u64 = 18;

/// The limit is too low, and may not be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed} open descriptors are needed, and the limit is {limit}; raise it (ulimit -n; LimitNOFILE= of a systemd unit)"
)]
pub struct TooFew {
    /// The limit.
    pub limit: u64,
    /// What is needed.
    pub needed: u64,
}

/// Raises the limit so that so many connections may be open: the soft one as far as the hard one, and the hard one where
/// the kernel lets this process. Returns what it is then.
pub fn raise_limit(connections: usize) -> Result<u64, TooFew> {
    let wanted = connections as u64 + 2 * FOR_BPF;
    let held = getrlimit(Resource::Nofile);
    let Some(soft) = held.current.filter(|&soft| soft < wanted) else {
        return Ok(held.current.unwrap_or(u64::MAX));
    };
    let limits = [
        // Takes CAP_SYS_RESOURCE if the hard limit is lower.
        (wanted, held.maximum.map(|hard| hard.max(wanted))),
        (
            held.maximum.map_or(wanted, |hard| hard.min(wanted)),
            held.maximum,
        ),
    ];
    let raised = limits.into_iter().find(|&(current, maximum)| {
        let limit = Rlimit {
            current: Some(current),
            maximum,
        };
        setrlimit(Resource::Nofile, limit).is_ok()
    });
    let limit = raised.map_or(soft, |(current, _)| current);
    if limit < LEAST {
        return Err(TooFew {
            limit,
            needed: LEAST,
        });
    }
    Ok(limit)
}

/// How many connections there are descriptors for, apart from what scrapes take.
pub fn left() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // Of processes that are read from /proc files are kept open too, in the lower half of the numbers.
    let taken = (open + OF_MACHINE).max(limit / 2);
    limit.saturating_sub(taken + SPARE) as usize
}
