//! Giving up what is not needed any more.

pub use fastproc::access::may_trace_all;
use fastproc::{Details, Host, Process, Snapshot, access::Access};
use rustix::{
    io::Errno,
    thread::{CapabilitySet, capabilities, set_capabilities, set_no_new_privs},
};

/// What is kept: an array that grows takes its programs to be loaded again, and `/proc` shows some files of others only
/// to those who may trace or read anything.
const KEPT: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::DAC_READ_SEARCH);

/// What the kernel shows this process.
pub struct Shown {
    all: bool,
    details: Details,
}

impl Shown {
    /// To be asked when privileges have been given up.
    pub fn new(host: &Host) -> Result<Self, fastproc::Error> {
        Ok(Self {
            all: may_trace_all(),
            details: Details::open(host)?,
        })
    }

    /// What it shows of a process. The text, and the service, hold no more than that; for the rest it is asked.
    pub fn of(&self, process: Process<'_>, snapshot: &Snapshot<'_>) -> Access {
        if self.all || snapshot.source_of(process).is_guarded() || self.details.may_trace(process) {
            Access::Granted
        } else {
            Access::Denied
        }
    }
}

/// The kernel let this process give up nothing.
#[derive(Debug, thiserror::Error)]
#[error("cannot give up privileges that are not needed")]
pub struct PrivilegesError(#[from] Errno);

/// Gives up every capability that reading processes does not take, for good, and for programs that this one might
/// execute.
///
/// Capabilities belong to threads: this must run while there is one. Without more of them than needed it does nothing
/// but forbid new ones.
pub fn drop() -> Result<(), PrivilegesError> {
    drop_but(CapabilitySet::empty())
}

/// The same, but for what is needed beside it.
pub fn drop_but(needed: CapabilitySet) -> Result<(), PrivilegesError> {
    let kept = KEPT | needed;
    set_no_new_privs(true)?;
    let mut held = capabilities(None)?;
    if (held.permitted | held.effective | held.inheritable)
        .difference(kept)
        .is_empty()
    {
        return Ok(());
    }
    held.permitted &= kept;
    held.effective &= kept;
    held.inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, held)?)
}
