//! Drops root's privileges once everything is loaded.

use std::ffi::CString;

use rustix::{
    io::Errno,
    process::{DumpableBehavior, Gid, Uid, geteuid, set_dumpable_behavior},
    thread::{
        CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
        set_no_new_privs, set_thread_res_gid, set_thread_res_uid,
    },
};

/// The privileges that are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// To run BPF programs, and to load them again when an array must grow.
    pub bpf: bool,
    /// To read files in `/proc` that require permission to trace.
    pub proc_of_others: bool,
    /// To read files of the configuration again, such as a key that only root may read.
    pub configuration: bool,
}

impl Needs {
    fn capabilities(self) -> CapabilitySet {
        let mut kept = CapabilitySet::empty();
        if self.bpf {
            kept |= CapabilitySet::BPF | CapabilitySet::PERFMON;
        }
        if self.proc_of_others {
            kept |= CapabilitySet::SYS_PTRACE | CapabilitySet::DAC_READ_SEARCH;
        }
        if self.configuration {
            kept |= CapabilitySet::DAC_READ_SEARCH;
        }
        kept
    }
}

/// Privileges could not be dropped. The process must not continue with them.
#[derive(Debug, thiserror::Error)]
pub enum DropError {
    /// There is no such user.
    #[error("there is no user {0:?} to become; name another one with --user")]
    NoUser(String),
    /// The kernel refused.
    #[error("cannot drop {what}")]
    Refused {
        /// What is to be given up.
        what: &'static str,
        /// Why not.
        #[source]
        source: Errno,
    },
}

/// Becomes `user` (default: fastproc, or nobody if there is no such user) if this is root, and permanently drops all
/// capabilities that are not needed, also for programs that this process might execute.
///
/// Root without the capabilities to become another user, as in some containers, stays root unless a user is named, and
/// keeps no capabilities that another user would not keep.
///
/// User and capabilities belong to threads, so this must run while there is only one.
pub fn drop_to(user: Option<&str>, needs: Needs) -> Result<(), DropError> {
    let refused = |what| move |source| DropError::Refused { what, source };
    set_no_new_privs(true).map_err(refused("new privileges"))?;
    let held = capabilities(None).map_err(refused("capabilities"))?;
    // With only one of the two it tries, and the error says which is missing.
    let can_change = held.effective.intersects(CHANGE_USER);
    let wanted = match user {
        _ if !geteuid().is_root() => None,
        Some(user) => Some(find(user)?),
        None if can_change => Some(find(OWN).or_else(|_| find("nobody"))?),
        None => None,
    };
    let is_it = (geteuid(), rustix::process::getegid());
    // Root that is to stay root needs no capability for it.
    if let Some((uid, gid)) = wanted.filter(|wanted| can_change || *wanted != is_it) {
        set_keep_capabilities(true).map_err(refused("the user"))?;
        // SAFETY: no groups, so that there is no memory to read.
        if unsafe { libc::setgroups(0, std::ptr::null()) } != 0 {
            let source = std::io::Error::last_os_error();
            let errno = Errno::from_raw_os_error(source.raw_os_error().unwrap_or(libc::EPERM));
            return Err(refused("the groups")(errno));
        }
        set_thread_res_gid(gid, gid, gid).map_err(refused("the group"))?;
        // Also for root: capabilities are dropped anyway.
        set_thread_res_uid(uid, uid, uid).map_err(refused("the user"))?;
    }
    let kept = raise_only(needs.capabilities()).map_err(refused("capabilities"))?;
    if !kept.is_empty() {
        // As after a change of the user: processes of the same user without these capabilities must not trace it.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(refused("core dumps"))?;
    }
    Ok(())
}

/// Drops all capabilities but these, permanently and for programs that this process executes. Returns what is left.
pub fn keep_only(kept: CapabilitySet) -> rustix::io::Result<CapabilitySets> {
    set_no_new_privs(true)?;
    let mut held = capabilities(None)?;
    held.permitted &= kept;
    held.effective &= kept;
    held.inheritable = CapabilitySet::empty();
    set_capabilities(None, held)?;
    Ok(held)
}

/// The same, but those that are left take effect, also if they did not before. Returns them.
fn raise_only(kept: CapabilitySet) -> rustix::io::Result<CapabilitySet> {
    let mut held = keep_only(kept)?;
    held.effective = held.permitted;
    set_capabilities(None, held)?;
    Ok(held.permitted)
}

/// The capabilities for becoming another user.
const CHANGE_USER: CapabilitySet = CapabilitySet::SETUID.union(CapabilitySet::SETGID);

/// The user that the package creates.
const OWN: &str = "fastproc";

/// A user by name or number.
fn find(user: &str) -> Result<(Uid, Gid), DropError> {
    let none = || DropError::NoUser(user.to_owned());
    if CString::new(user).is_err() {
        return Err(none());
    }
    let found = match user.parse::<u32>() {
        Ok(uid) => nix::unistd::User::from_uid(uid.into()),
        Err(_) => nix::unistd::User::from_name(user),
    };
    let found = found.ok().flatten().ok_or_else(none)?;
    Ok((
        Uid::from_raw(found.uid.as_raw()),
        Gid::from_raw(found.gid.as_raw()),
    ))
}
