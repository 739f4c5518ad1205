//! Drops privileges that are no longer needed.

pub use fastproc::access::may_trace_all;
use fastproc::{Details, Host, Process, Snapshot, access::Access};
use fastproc_metrics::privileges::keep_only;
use rustix::{
    io::Errno,
    process::geteuid,
    thread::{CapabilitySet, capabilities},
};

/// The capabilities to keep. When an array grows, the BPF programs are loaded again, which needs the first two; some
/// files of other users' processes in `/proc` need the others.
const KEPT: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::DAC_READ_SEARCH);

/// Decides what the kernel would show this process.
pub struct AccessCheck {
    all: bool,
    details: Details,
}

impl AccessCheck {
    /// Creates the check. Privileges must have been dropped before.
    pub fn new(host: &Host) -> Result<Self, fastproc::Error> {
        Ok(Self {
            all: may_trace_all(),
            details: Details::open(host)?,
        })
    }

    /// Whether the kernel would show this process everything of `process`. `/proc` and the service already hide the
    /// rest.
    pub fn access(&self, process: Process<'_>, snapshot: &Snapshot<'_>) -> Access {
        if self.all || snapshot.source_of(process).is_guarded() || self.details.may_trace(process) {
            Access::Granted
        } else {
            Access::Denied
        }
    }
}

/// Privileges could not be dropped.
#[derive(Debug, thiserror::Error)]
#[error("cannot drop privileges that are not needed")]
pub struct PrivilegesError(#[from] Errno);

/// Drops every capability that reading processes does not need, permanently and for programs that this one executes. A user
/// without capabilities has none to drop.
///
/// Capabilities belong to threads, so call this while there is only one.
pub fn drop() -> Result<(), PrivilegesError> {
    drop_but(CapabilitySet::empty())
}

/// The same, but also keeps the capabilities in `needed`.
pub fn drop_but(needed: CapabilitySet) -> Result<(), PrivilegesError> {
    let kept = KEPT | needed;
    let held = capabilities(None)?;
    let all = held.permitted | held.effective | held.inheritable;
    // A user has none to drop. The service takes a user's process with no_new_privs for a confined one.
    if all.is_empty() && !geteuid().is_root() {
        return Ok(());
    }
    keep_only(kept)?;
    Ok(())
}
