//! The namespaces of this process.

use std::{fs, io, os::unix::fs::MetadataExt};

use crate::base::{error::Error, frozen, proc_root};

/// `PROC_USER_INIT_INO`.
pub(crate) const INITIAL_USER_NS: u32 = 0xefff_fffd;
/// `PROC_PID_INIT_INO`.
const INITIAL_PID_NS: u64 = 0xefff_fffc;
/// `PROC_CGROUP_INIT_INO`.
const INITIAL_CGROUP_NS: u64 = 0xefff_fffb;

/// Whether this process is in the initial user namespace, which knows all users.
pub(crate) fn in_initial_user_ns() -> bool {
    inode("self", "user").is_ok_and(|inode| inode == u64::from(INITIAL_USER_NS))
}

/// Whether this process is in another user namespace than the initial one. A kernel without user namespaces has no other.
pub(crate) fn in_user_namespace() -> bool {
    inode("self", "user").is_ok_and(|inode| inode != u64::from(INITIAL_USER_NS))
}

/// Whether this process is in the initial cgroup namespace, which shows the whole paths of cgroups. A kernel without cgroup
/// namespaces has no other.
pub(crate) fn in_initial_cgroup_ns() -> bool {
    inode("self", "cgroup").map_or(true, |inode| inode == INITIAL_CGROUP_NS)
}

/// The inode number of this process's user namespace; 0 if it is not known.
pub(crate) fn own_user_ns() -> u32 {
    let inode = inode("self", "user").ok();
    inode.and_then(|inode| inode.try_into().ok()).unwrap_or(0)
}

/// The inode number of this process's pid namespace.
pub(crate) fn own_pid_ns() -> Result<u32, Error> {
    let inode = inode("self", "pid").ok();
    let inode = inode.and_then(|inode| u32::try_from(inode).ok());
    inode.ok_or(Error::Namespace { namespace: "pid" })
}

/// The pid namespace whose processes and pids `/proc` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbering {
    /// The initial one, which is that of this process as well: the numbers are the kernel's own.
    Initial,
    /// The initial one, while this process is in another, as in a container with the host's `/proc`.
    Outer,
    /// That of this process, which is not the initial one.
    Own,
}

impl Numbering {
    /// Examines the `/proc` in use ([`proc_root`]). Fails if it belongs to a third namespace, or if this is not
    /// visible.
    pub(crate) fn of_proc() -> Result<Self, Error> {
        let another = || Error::Namespace { namespace: "pid" };
        // The link is missing in the /proc of a namespace that this process is not in.
        fs::read_link(proc_root::path("/proc/self")).map_err(|_| another())?;
        match inode("self", "pid") {
            Ok(INITIAL_PID_NS) => return Ok(Self::Initial),
            // A kernel without pid namespaces.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Initial),
            Err(_) => return Err(another()),
            Ok(_) => {}
        }
        // Both texts have the name of a process, which may be any bytes.
        let text = |path| {
            let text = fs::read(proc_root::path(path));
            text.map(|text| String::from_utf8_lossy(&text).into_owned())
        };
        let status = text("/proc/self/status").map_err(|_| another())?;
        match levels(&status) {
            Some(1) => Ok(Self::Own),
            _ if text("/proc/2/stat").is_ok_and(|stat| is_kernel_thread(&stat)) => Ok(Self::Outer),
            _ => Err(another()),
        }
    }
}

/// The number of pid namespaces in which this `status` numbers its process: from the one of that `/proc` down to its
/// own.
fn levels(status: &str) -> Option<usize> {
    let ids = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    Some(ids.split_whitespace().count())
}

/// Whether this `stat` belongs to a kernel thread. All kernel threads are in the initial pid namespace, whose second
/// process is `kthreadd`.
fn is_kernel_thread(stat: &str) -> bool {
    const PF_KTHREAD: u32 = 0x0020_0000;
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let flags = behind_name.split_whitespace().nth(6);
    flags
        .and_then(|flags| flags.parse().ok())
        .is_some_and(|flags: u32| flags & PF_KTHREAD != 0)
}

fn inode(process: &str, namespace: &str) -> io::Result<u64> {
    let link = format!("/proc/{process}/ns/{namespace}");
    if let Some(link) = frozen::path(&link) {
        // The text of a link: `pid:[4026531836]`.
        let text = fs::read_link(link)?.to_string_lossy().into_owned();
        let digits = text.trim_matches(|char: char| !char.is_ascii_digit());
        return digits.parse().map_err(io::Error::other);
    }
    fs::metadata(link).map(|file| file.ino())
}

#[cfg(test)]
mod tests {
    use super::{is_kernel_thread, levels};

    #[test]
    fn status_says_how_deep_a_process_is() {
        assert_eq!(levels("Pid:\t7\nNSpid:\t7\nNSpgid:\t7\t1\n"), Some(1));
        assert_eq!(levels("NSpid:\t4711\t7\t1\n"), Some(3));
        assert_eq!(levels("Pid:\t7\n"), None);
    }

    #[test]
    fn flags_say_who_is_a_thread_of_the_kernel() {
        assert!(is_kernel_thread(
            "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1"
        ));
        assert!(!is_kernel_thread(
            "2 (x) 2129984 0) S 0 2 2 0 -1 4194560 99 0 0 0 0 1"
        ));
        assert!(!is_kernel_thread(""));
    }
}
