//! Makes the kernel hide data.

use std::{fs, io};

use rustix::mount::{MountFlags, mount_remount};

use crate::{reporter::Reporter, survey::read};

const KPTR_RESTRICT: &str = "/proc/sys/kernel/kptr_restrict";

/// `kptr_restrict=2`: no addresses in `/proc/kallsyms`. Returns the previous value.
pub fn hide_addresses(reporter: &mut Reporter) -> io::Result<String> {
    let before = fs::read_to_string(KPTR_RESTRICT)?;
    fs::write(KPTR_RESTRICT, "2")?;
    let symbols = read("/proc/kallsyms");
    let shown = symbols
        .lines()
        .filter(|line| {
            line.split(' ')
                .next()
                .is_some_and(|address| address.bytes().any(|digit| digit != b'0'))
        })
        .count();
    let detail = format!(
        "{shown} of {} symbols have an address",
        symbols.lines().count()
    );
    reporter.check(
        "addresses are hidden",
        shown == 0 && !symbols.is_empty(),
        detail,
    )?;
    Ok(before)
}

/// Restores `kptr_restrict`.
pub fn show_addresses(before: &str) -> io::Result<()> {
    fs::write(KPTR_RESTRICT, before)
}

/// `lockdown=confidentiality`. The port that ends the emulator is already open.
pub fn lock_down(reporter: &mut Reporter) -> io::Result<()> {
    const LEVEL: &str = "/sys/kernel/security/lockdown";
    fs::write(LEVEL, "confidentiality")?;
    let level = read(LEVEL);
    reporter.check("locked down", level.contains("[confidentiality]"), level)
}

/// `hidepid=2`.
pub fn hide_processes() -> io::Result<()> {
    mount_remount("/proc", MountFlags::empty(), "hidepid=2")?;
    Ok(())
}

/// `hidepid=0`.
pub fn show_processes() -> io::Result<()> {
    mount_remount("/proc", MountFlags::empty(), "hidepid=0")?;
    Ok(())
}
