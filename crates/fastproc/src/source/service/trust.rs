//! Decides whether to trust a service.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::Path,
};

use rustix::process::geteuid;

use super::has_more_rights_than_its_caller;
use crate::base::namespaces::in_initial_user_ns;

/// `DEFAULT_OVERFLOWUID`.
const DEFAULT_OVERFLOW_UID: u32 = 65534;

/// Whether to trust the service of user `uid` that listens at `path`: it is run by root or by this user, or only
/// root can have put its socket there.
pub(super) fn is_trusted(path: &Path, uid: u32) -> bool {
    let is_own =
        uid == geteuid().as_raw() && !may_be_anybody(uid) && !has_more_rights_than_its_caller();
    uid == 0 || is_own || is_placed_by_root(path, uid)
}

/// Whether this id may stand for users that our user namespace does not map. This process may itself run as one of
/// them.
fn may_be_anybody(uid: u32) -> bool {
    let overflow = || {
        let file = fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?;
        file.trim_end().parse().ok()
    };
    !in_initial_user_ns() && uid == overflow().unwrap_or(DEFAULT_OVERFLOW_UID)
}

/// Whether only root can have put the socket there, or this user owns it: root owns its folder and all folders
/// above, and nobody else may write to them.
fn is_placed_by_root(path: &Path, uid: u32) -> bool {
    // Symbolic links are resolved first: the folders that they lead to must be checked, too.
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    let is_of_user = fs::symlink_metadata(&path)
        .is_ok_and(|socket| socket.file_type().is_socket() && socket.uid() == uid);
    let is_roots = |folder: &Path| {
        fs::symlink_metadata(folder)
            .is_ok_and(|folder| folder.is_dir() && folder.uid() == 0 && folder.mode() & 0o022 == 0)
    };
    in_initial_user_ns() && is_of_user && path.ancestors().skip(1).all(is_roots)
}
