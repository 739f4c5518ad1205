//! Functions for a single process.

use pyo3::prelude::*;

/// Identifies the folder of a process in /proc: the inode and the time when it was made, read now.
///
/// The kernel keeps the inode while the process exists, or makes a new one: if it is the same, the process is the same.
/// Reading it costs much less than a file of the folder.
///
/// Raises `OSError` if there is no such process.
#[pyfunction]
pub fn proc_inode(pid: u32) -> PyResult<(u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let folder = std::fs::metadata(format!("/proc/{pid}"))?;
    Ok((folder.ino(), folder.ctime(), folder.ctime_nsec()))
}

/// The start of a process in clock ticks since boot: `starttime` of `/proc/PID/stat`, read now.
///
/// Raises `OSError` if there is no such process.
#[pyfunction]
pub fn start_ticks(pid: u32) -> PyResult<u64> {
    use std::io::{Error, Read};
    let mut text = [0; 2048];
    let mut file = std::fs::File::open(format!("/proc/{pid}/stat"))?;
    let len = file.read(&mut text)?;
    let text = &text[..len];
    // The second field, the name, ends at the last parenthesis.
    let ticks = || {
        let end = text.iter().rposition(|&byte| byte == b')')?;
        let field = text.get(end + 2..)?.split(|&byte| byte == b' ').nth(19)?;
        std::str::from_utf8(field).ok()?.parse().ok()
    };
    Ok(
        ticks()
            .ok_or_else(|| Error::other("/proc/PID/stat is not what the kernel writes there"))?,
    )
}
