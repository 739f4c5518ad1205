//! Memory of every kind that `/proc` tells apart.

use std::{fs::File, hint::black_box, io::Write};

use rustix::{
    fs::{Mode, OFlags, fstatfs, openat},
    mm::MapFlags,
};

use super::{Species, single, unattached};
use crate::{
    expect::Expect::{Status, StatusAtLeast},
    nest::{At, Trouble},
    sys,
};

const MIB: usize = 1 << 20;

pub const SPECIES: &[Species] = &[
    single!(
        "memory-anonymous",
        [
            StatusAtLeast("RssAnon", 16 << 10),
            StatusAtLeast("VmHWM", 16 << 10)
        ],
        |nest| {
            touched(16 * MIB, MapFlags::PRIVATE)?;
            nest.settle("memory-anonymous")
        }
    ),
    single!(
        "memory-shared",
        [StatusAtLeast("RssShmem", 8 << 10)],
        |nest| {
            touched(8 * MIB, MapFlags::SHARED)?;
            nest.settle("memory-shared")
        }
    ),
    single!("memory-file", [StatusAtLeast("RssFile", 256)], |nest| {
        let file = file_of_pages()?;
        let len = file.metadata().at("fstat")?.len().min(8 << 20) as usize;
        let sum: u64 = sys::map_file(&file, len)
            .at("mmap")?
            .iter()
            .step_by(4096)
            .map(|&byte| u64::from(byte))
            .sum();
        black_box(sum);
        nest.settle("memory-file")
    }),
    single!("memory-locked", [StatusAtLeast("VmLck", 64)], |nest| {
        let memory = sys::map(64 << 10, MapFlags::PRIVATE).at("mmap")?;
        sys::lock(memory).at("mlock")?;
        nest.settle("memory-locked")
    }),
    single!("memory-pinned", [StatusAtLeast("VmPin", 64)], |nest| {
        let memory = sys::map(64 << 10, MapFlags::PRIVATE).at("mmap")?;
        let _ring = sys::pin(memory).at("io_uring")?;
        nest.settle("memory-pinned")
    }),
    // 8 TiB of which nothing is there.
    single!(
        "address-space",
        [
            StatusAtLeast("VmSize", 8 << 30),
            StatusAtLeast("VmPeak", 8 << 30)
        ],
        |nest| {
            sys::reserve(8 << 40).at("mmap of 8 TiB")?;
            nest.settle("address-space")
        }
    ),
    single!("stack", [StatusAtLeast("VmStk", 2 << 10)], |nest| {
        black_box(deep(600));
        nest.settle("stack")
    }),
    single!(
        "huge-pages",
        [StatusAtLeast("HugetlbPages", 1 << 10)],
        |nest| {
            let memory = sys::map(2 * MIB, MapFlags::PRIVATE | MapFlags::HUGETLB);
            let memory = memory.map_err(|errno| {
                Trouble::unsupported(format!("mmap(MAP_HUGETLB): {errno}; see vm.nr_hugepages"))
            })?;
            memory[0] = 1;
            nest.settle("huge-pages")
        }
    ),
    single!("thp-disabled", [Status("THP_enabled", "0")], |nest| {
        rustix::thread::disable_transparent_huge_pages(true).at("PR_SET_THP_DISABLE")?;
        nest.settle("thp-disabled")
    }),
];

/// A file whose pages count as a file's. Those of a tmpfs, which may be all that a guest has, count as shared memory.
fn file_of_pages() -> Result<File, Trouble> {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    let exe = File::open("/proc/self/exe").at("open /proc/self/exe")?;
    if fstatfs(&exe).at("fstatfs")?.f_type as i64 != TMPFS_MAGIC {
        return Ok(exe);
    }
    let ramfs = unattached("ramfs").at("a file that is not on a tmpfs, from a new ramfs")?;
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut file =
        File::from(openat(&ramfs, "pages", flags, Mode::RUSR | Mode::WUSR).at("open on a ramfs")?);
    file.write_all(&vec![1; MIB]).at("write")?;
    Ok(file)
}

/// Memory of which every page is there.
pub fn touched(len: usize, flags: MapFlags) -> Result<&'static mut [u8], Trouble> {
    let memory = sys::map(len, flags).at("mmap")?;
    memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    black_box(&memory);
    Ok(memory)
}

/// Uses a page of the stack for each level.
#[inline(never)]
fn deep(levels: usize) -> u8 {
    let page = black_box([levels as u8; 4096]);
    if levels == 0 {
        page[0]
    } else {
        deep(levels - 1).wrapping_add(page[levels % 4096])
    }
}
