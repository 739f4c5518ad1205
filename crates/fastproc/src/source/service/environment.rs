//! Settings from the environment: the socket of the service, and how long to wait for it.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use nix::libc::{AT_SECURE, getauxval};

/// The socket of the service if nothing else is set.
pub const DEFAULT_SOCKET: &str = "/run/fastproc/fastproc.sock";
/// Environment variable that names another socket.
pub const SOCKET_VARIABLE: &str = "FASTPROC_SOCKET";
/// Environment variable with the number of milliseconds to wait for the service.
pub const TIMEOUT_VARIABLE: &str = "FASTPROC_SERVICE_TIMEOUT_MS";

/// The socket at which this process looks for the service. `None`: the variable is empty, so the service is not used.
///
/// A program that executes with more rights than its caller has ignores the variable: set-user-ID, set-group-ID or with
/// file capabilities (`AT_SECURE` of getauxval(3)).
pub fn socket_path() -> Option<PathBuf> {
    let path = variable(SOCKET_VARIABLE).unwrap_or_else(|| DEFAULT_SOCKET.into());
    let path = PathBuf::from(path);
    (!path.as_os_str().is_empty()).then_some(path)
}

/// How long this process waits for the service, if the variable is set. The rule of [`socket_path`] holds here too.
pub fn timeout() -> Option<Duration> {
    let milliseconds = variable(TIMEOUT_VARIABLE)?.to_str()?.parse().ok()?;
    Some(Duration::from_millis(milliseconds)).filter(|timeout| !timeout.is_zero())
}

/// A variable of the environment, unless this program has more rights than its caller.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|_| !has_more_rights_than_its_caller())
}

/// Whether this program was executed with rights that its caller lacks, as the kernel found then. A daemon that has
/// dropped rights since still counts by its start.
pub(crate) fn has_more_rights_than_its_caller() -> bool {
    // SAFETY: reads a value that the kernel left in this process. A process that has dropped rights cannot read it from
    // /proc/self/auxv.
    unsafe { getauxval(AT_SECURE) != 0 }
}
