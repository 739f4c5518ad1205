//! Lists of CPUs and nodes, as the kernel writes them in sysfs.

use std::{fs, io};

use crate::base::{host::parse_list, proc_root};

/// `/sys/devices/system/cpu/possible`
pub(super) fn possible() -> io::Result<Vec<u32>> {
    read("/sys/devices/system/cpu/possible")
}

/// `/sys/devices/system/cpu/online`
pub(super) fn online() -> io::Result<Vec<u32>> {
    read("/sys/devices/system/cpu/online")
}

/// CPUs booted with `nohz_full=`: none if the file is absent.
pub(super) fn nohz_full() -> Vec<u32> {
    read("/sys/devices/system/cpu/nohz_full").unwrap_or_default()
}

/// Possible memory nodes: one if the file is absent.
pub(super) fn nodes() -> Vec<u32> {
    read("/sys/devices/system/node/possible").unwrap_or_else(|_| vec![0])
}

fn read(path: &str) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(proc_root::own_path(path))?;
    match text.trim() {
        // From `nohz_full`, if the kernel supports it and it is not set.
        "(null)" => Ok(Vec::new()),
        list => parse_list(list).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{path} holds {text:?}"))
        }),
    }
}
