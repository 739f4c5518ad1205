//! The machine's `/proc` where it is mounted elsewhere, as in a container that is given the host's.

use std::path::{Path, PathBuf};

use rustix::{
    io::Errno,
    mount::{MountPropagationFlags, mount_bind_recursive, mount_change},
    thread::{UnshareFlags, unshare_unsafe},
};

/// The folder cannot be had as `/proc`.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} cannot take the place of /proc, which takes CAP_SYS_ADMIN (docker run --privileged); with --pid=host it is not needed",
    path.display()
)]
pub struct MountError {
    path: PathBuf,
    #[source]
    source: Errno,
}

/// Has this process, and nobody else, see a folder as `/proc`. It must have one thread.
pub fn mount(path: &Path) -> Result<(), MountError> {
    let failed = |source| MountError {
        path: path.into(),
        source,
    };
    // SAFETY: the table of descriptors stays shared with nobody else than before.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }.map_err(failed)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(failed)?;
    mount_bind_recursive(path, "/proc").map_err(failed)
}
