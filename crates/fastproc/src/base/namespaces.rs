//! The namespaces of this process.

use std::{fs, os::unix::fs::MetadataExt};

/// `PROC_USER_INIT_INO`.
pub(crate) const INITIAL_USER_NS: u32 = 0xefff_fffd;

/// Whether this process is in the initial user namespace, which knows all users.
pub(crate) fn in_initial_user_ns() -> bool {
    fs::metadata("/proc/self/ns/user")
        .is_ok_and(|namespace| namespace.ino() == u64::from(INITIAL_USER_NS))
}

/// `PROC_CGROUP_INIT_INO`.
const INITIAL_CGROUP_NS: u64 = 0xefff_fffb;

/// Whether this process is in the initial cgroup namespace, which shows the whole paths of cgroups. A kernel without cgroup
/// namespaces has no other.
pub(crate) fn in_initial_cgroup_ns() -> bool {
    fs::metadata("/proc/self/ns/cgroup")
        .map_or(true, |namespace| namespace.ino() == INITIAL_CGROUP_NS)
}
