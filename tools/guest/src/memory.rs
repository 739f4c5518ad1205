//! Memory that is rare on small machines: swapped out, and in huge pages.

use std::{
    ffi::CString,
    fs::{self, OpenOptions},
    io::{self, Seek as _},
    os::unix::fs::FileExt as _,
    ptr,
};

use rustix::{
    mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous},
    param::page_size,
};

use crate::{reporter::Reporter, survey::read};

pub const DISK: &str = "/dev/nvme0n1";
const SWAPPED: usize = 16 << 20;
const HUGE_PAGES: usize = 4;

/// Puts memory of PID 1 on a swap disk, and takes huge pages. Both stay so.
pub fn use_all_kinds(reporter: &mut Reporter) -> io::Result<()> {
    swap_on()?;
    touch_swapped()?;
    let pages = huge_pages_in_use()? + HUGE_PAGES;
    fs::write("/proc/sys/vm/nr_hugepages", pages.to_string())?;
    map_huge(HUGE_PAGES)?;
    let status = read("/proc/self/status");
    for label in ["VmSwap", "HugetlbPages"] {
        let line = status
            .lines()
            .find(|line| line.starts_with(label))
            .unwrap_or_default();
        let in_use = line
            .split_ascii_whitespace()
            .nth(1)
            .is_some_and(|number| number != "0");
        reporter.check(&format!("{label} in use"), in_use, line)?;
    }
    Ok(())
}

/// Writes the header of mkswap(8): version 1, the number of the last page, no bad pages, a signature at the end of the
/// first page.
fn swap_on() -> io::Result<()> {
    let mut disk = OpenOptions::new().read(true).write(true).open(DISK)?;
    let page = page_size();
    let pages = disk.seek(io::SeekFrom::End(0))? / page as u64;
    let mut header = vec![0; page];
    header[1024..1028].copy_from_slice(&1_u32.to_ne_bytes());
    header[1028..1032].copy_from_slice(&(pages as u32 - 1).to_ne_bytes());
    header[page - 10..].copy_from_slice(b"SWAPSPACE2");
    disk.write_all_at(&header, 0)?;
    disk.sync_all()?;
    drop(disk);
    let path = CString::new(DISK)?;
    // SAFETY: the path ends in a NUL; the disk belongs to this emulated machine, and nothing else uses it.
    if unsafe { libc::swapon(path.as_ptr(), 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn touch_swapped() -> io::Result<()> {
    let start = ptr::with_exposed_provenance_mut(fill(SWAPPED)?);
    // SAFETY: the whole of that mapping; its contents are kept.
    unsafe { madvise(start, SWAPPED, Advice::LinuxPageOut) }?;
    Ok(())
}

/// Fills new memory of this size, and never frees it. Returns its address.
pub fn fill(size: usize) -> io::Result<usize> {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), size, protection, MapFlags::PRIVATE) }?;
    touch(start.cast(), size);
    Ok(start.expose_provenance())
}

/// Another scenario on this machine may have left some.
fn huge_pages_in_use() -> io::Result<usize> {
    Ok(meminfo("HugePages_Total")?.saturating_sub(meminfo("HugePages_Free")?))
}

/// A number of /proc/meminfo: KiB, or pages.
pub fn meminfo(name: &str) -> io::Result<usize> {
    let text = read("/proc/meminfo");
    let values = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = values.filter(|(label, _)| *label == name);
    let value = found.next().map(|(_, value)| value.trim_end_matches("kB"));
    value
        .and_then(|value| value.trim().parse().ok())
        .ok_or_else(|| io::Error::other(format!("/proc/meminfo has no {name}")))
}

/// Fills so many new huge pages, and never frees them.
pub fn map_huge(count: usize) -> io::Result<()> {
    let size = huge_page_size()? * count;
    let flags = MapFlags::PRIVATE | MapFlags::HUGETLB;
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let start = unsafe {
        mmap_anonymous(
            ptr::null_mut(),
            size,
            ProtFlags::READ | ProtFlags::WRITE,
            flags,
        )
    }?;
    touch(start.cast(), size);
    Ok(())
}

/// The default size of huge pages: 2 MiB, or 32 MiB if a page has 16 KiB.
pub fn huge_page_size() -> io::Result<usize> {
    Ok(meminfo("Hugepagesize")? << 10)
}

/// Writes to every page. The contents differ, so that pages cannot be merged.
fn touch(start: *mut u8, size: usize) {
    let page = page_size();
    for at in (0..size).step_by(page) {
        // SAFETY: inside a mapping of this size that the caller has just made and nothing else uses.
        unsafe { start.add(at).write_volatile((at / page) as u8 | 1) };
    }
}
