//! The limit of open descriptors: raised as far as the kernel allows, with an error if that is too low. And those that a
//! program must not inherit.

use std::{fs, io, os::fd::BorrowedFd};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// Descriptors for reading `/proc`, and for a few connections.
const LEAST: u64 = 48;
/// Descriptors for loading and running the programs: about 64 on a machine with 2 CPUs.
pub const FOR_BPF: u64 = 80;
/// Files of cgroups that are kept open, for about 10,000 cgroups.
pub const OF_CGROUPS: usize = 32 << 10;
/// Descriptors for files that are opened and closed again.
const SPARE: u64 = 8;
/// Files of the machine that the first scrape opens and keeps open.
const OF_MACHINE: u64 = 18;

/// The limit is too low and cannot be raised.
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

/// Raises the limit for so many connections: the soft one up to the hard one, and the hard one if the kernel allows it.
/// Returns the new limit.
pub fn raise_limit(connections: usize) -> Result<u64, TooFew> {
    let wanted = connections as u64 + 2 * FOR_BPF;
    let held = getrlimit(Resource::Nofile);
    let Some(soft) = held.current.filter(|&soft| soft < wanted) else {
        return Ok(held.current.unwrap_or(u64::MAX));
    };
    let limits = [
        // Raising the hard limit requires CAP_SYS_RESOURCE.
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

/// Closes the descriptors that whoever started this process left open, except the standard ones, in every program that
/// this process executes from now on.
pub fn keep_from_programs() -> io::Result<()> {
    for entry in fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|&number| number > 2) {
            // SAFETY: it was open just now, and is only marked. If another thread has closed it meanwhile, this fails, or
            // marks one of this process's own, which all are marked.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
        }
    }
    Ok(())
}

/// The number of connections for which descriptors are left besides those of scrapes.
pub fn left() -> usize {
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // Files of processes that are read from /proc are kept open too, in the lower half of the numbers.
    let taken = (open + OF_MACHINE).max(limit / 2);
    limit.saturating_sub(taken + SPARE) as usize
}
