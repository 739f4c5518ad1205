//! Where the service is looked for, and how long it is waited for, as the environment says.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use nix::libc::{AT_SECURE, getauxval};

/// Where the service listens if nothing else is set.
pub const DEFAULT_SOCKET: &str = "/run/fastproc/fastproc.sock";
/// Environment variable that names another place.
pub const SOCKET_VARIABLE: &str = "FASTPROC_SOCKET";
/// Environment variable that says how many milliseconds the service is waited for.
pub const TIMEOUT_VARIABLE: &str = "FASTPROC_SERVICE_TIMEOUT_MS";

/// Where this process looks for the service. `None`: nowhere, for the variable is empty.
///
/// The variable is ignored in a program that executes with more rights than its caller has: set-user-ID, set-group-ID or with
/// file capabilities (`AT_SECURE` of getauxval(3)).
pub fn socket_path() -> Option<PathBuf> {
    let path = variable(SOCKET_VARIABLE).unwrap_or_else(|| DEFAULT_SOCKET.into());
    let path = PathBuf::from(path);
    (!path.as_os_str().is_empty()).then_some(path)
}

/// How long this process waits for the service, if the variable says so. The rule of [`socket_path`] holds here too.
pub fn timeout() -> Option<Duration> {
    let milliseconds = variable(TIMEOUT_VARIABLE)?.to_str()?.parse().ok()?;
    Some(Duration::from_millis(milliseconds)).filter(|timeout| !timeout.is_zero())
}

/// A variable of the environment, unless the caller of this program has fewer rights than it.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|_| !has_more_rights_than_its_caller())
}

/// Whether this program was executed with rights that its caller does not have, as the kernel told it then. One that has given up
/// rights since, as a daemon does, has no more than its caller.
pub(crate) fn has_more_rights_than_its_caller() -> bool {
    // SAFETY: reads what the kernel has left in this process for it. The file of that, /proc/self/auxv, is not for a process
    // that has given up rights.
    unsafe { getauxval(AT_SECURE) != 0 }
}
