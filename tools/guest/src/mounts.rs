//! The file systems that programs expect on any machine.

use std::{fs, io};

use rustix::{io::Errno, mount::MountFlags};

const MOUNTS: [(&str, &str); 7] = [
    ("devtmpfs", "/dev"),
    ("sysfs", "/sys"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
    ("cgroup2", "/sys/fs/cgroup"),
    ("securityfs", "/sys/kernel/security"),
    ("bpf", "/sys/fs/bpf"),
];

/// Mounts all except /proc.
pub fn mount_all() -> io::Result<()> {
    MOUNTS
        .into_iter()
        .try_for_each(|(kind, place)| mount(kind, place))
}

/// Mounts one, and creates its directory if it is missing.
pub fn mount(kind: &str, place: &str) -> io::Result<()> {
    let at = |error: io::Error| io::Error::new(error.kind(), format!("{place}: {error}"));
    fs::create_dir_all(place).map_err(at)?;
    match rustix::mount::mount(kind, place, kind, MountFlags::empty(), None) {
        // A kernel may have mounted /dev by itself.
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(error) => Err(at(error.into())),
    }
}
