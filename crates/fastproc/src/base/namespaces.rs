//! The namespaces of this process.

use std::{fs, os::unix::fs::MetadataExt};

/// `PROC_USER_INIT_INO`.
pub(crate) const INITIAL_USER_NS: u32 = 0xefff_fffd;

/// Whether this process is in the initial user namespace, which knows all users.
pub(crate) fn in_initial_user_ns() -> bool {
    fs::metadata("/proc/self/ns/user")
        .is_ok_and(|namespace| namespace.ino() == u64::from(INITIAL_USER_NS))
}
