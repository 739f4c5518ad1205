//! The folder of the sysfs to read: `/sys`, unless [`set`] names another one, as in a container that has the host's.

use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use fastproc::proc_root;

const SYS: &str = "/sys";
/// `SYSFS_MAGIC` of include/uapi/linux/magic.h.
const SYSFS_MAGIC: u64 = 0x6265_6572;

static ROOT: OnceLock<PathBuf> = OnceLock::new();

/// Makes this program read the sysfs that is mounted at this folder. Call it before any metric is read.
///
/// # Errors
/// No sysfs is there: a user could have made the files of another file system.
pub fn set(folder: &Path) -> io::Result<()> {
    if rustix::fs::statfs(folder)?.f_type as u64 != SYSFS_MAGIC {
        let reason = format!("no sysfs is mounted at {}", folder.display());
        return Err(io::Error::other(reason));
    }
    if folder != Path::new(SYS) {
        ROOT.get_or_init(|| folder.into());
    }
    Ok(())
}

/// Whether another folder than `/sys` is read.
pub(crate) fn is_elsewhere() -> bool {
    ROOT.get().is_some()
}

/// The actual path of a file whose usual path begins with `/sys` or `/proc`.
pub(crate) fn path(usual: &str) -> Cow<'_, Path> {
    below(ROOT.get(), usual).unwrap_or_else(|| proc_root::path(usual))
}

fn below<'a>(root: Option<&PathBuf>, usual: &str) -> Option<Cow<'a, Path>> {
    let rest = usual.strip_prefix(SYS)?.strip_prefix('/')?;
    Some(root?.join(rest).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_sysfs_are_elsewhere() {
        let root = PathBuf::from("/host/sys");
        let found = below(Some(&root), "/sys/class/net");
        assert_eq!(found.as_deref(), Some(Path::new("/host/sys/class/net")));
        for usual in ["/proc/stat", "/system"] {
            assert_eq!(below(Some(&root), usual), None);
        }
        assert_eq!(below(None, "/sys/class/net"), None);
    }

    #[test]
    fn a_folder_without_a_sysfs_is_refused() {
        let error = set(Path::new("/proc")).expect_err("it is another file system");
        assert!(error.to_string().contains("/proc"), "{error}");
        set(Path::new(SYS)).expect("it is mounted here");
    }
}
