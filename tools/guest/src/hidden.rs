//! What a kernel can be told to hide.

use std::{fs, io};

use rustix::mount::{MountFlags, mount_remount};

use crate::{reporter::Reporter, survey::read};

/// `kptr_restrict=2`: no addresses in `/proc/kallsyms`.
pub fn hide_addresses(reporter: &mut Reporter) -> io::Result<()> {
    fs::write("/proc/sys/kernel/kptr_restrict", "2")?;
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
    )
}

/// `lockdown=confidentiality`. The way out of the emulator is open already.
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
