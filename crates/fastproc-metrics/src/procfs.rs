//! The machine's `/proc` where it is mounted elsewhere, as in a container that is given the host's.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

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

/// The inode of the machine's own PID namespace, which every kernel has under this number.
const FIRST_PID_NAMESPACE: u64 = 0xefff_fffc;

/// Whether `/proc` shows the processes of a PID namespace of this process's own, as in a container that is not given the host's.
pub fn is_of_own_namespace() -> bool {
    let namespace = std::fs::metadata("/proc/self/ns/pid");
    let is_first = namespace.map_or(true, |namespace| namespace.ino() == FIRST_PID_NAMESPACE);
    // Where /proc is that of others, this process has another number in it.
    let shown = std::fs::read_link("/proc/self");
    !is_first && shown.is_ok_and(|shown| shown.as_os_str() == &*std::process::id().to_string())
}
