//! Removed cgroups that the kernel keeps: snapshots step over them, and show how many there are.

use std::{
    fs::{self, File},
    io,
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    cgroup_scale::{MOUNT, TREE, compare, shown_below, sources},
    cgroups::{enable_controllers, move_fast, value},
    memory::meminfo,
    reporter::Reporter,
};

/// How many there are when snapshots are taken.
const SIZES: [usize; 3] = [10_000, 30_000, 100_000];
/// The kernel needs some memory: no more are made if less than this is left.
const SPARED_KIB: usize = 1 << 20;
/// How many have the controller of memory, and stay because of a page of a file. The more of them there are, the longer the
/// kernel takes to make one. A map of BPF keeps the others, which have no controller: that takes a twentieth of the time.
const WITH_MEMORY: usize = SIZES[0];
/// How many are made until that is reported: a guest that reports nothing for long is given up.
const REPORTED: usize = 5_000;
/// How long they may take.
const PATIENCE: Duration = Duration::from_secs(900);

/// Compares snapshots with the kernel's number after each of [`SIZES`].
pub fn check(reporter: &mut Reporter) -> io::Result<()> {
    enable_controllers()?;
    move_fast();
    let held = Path::new(TREE).join("held");
    fs::create_dir_all(&held)?;
    fs::create_dir_all("/tmp/dying")?;
    // One controller, because each makes more files, which takes longer. Those below `held` have none.
    fs::write(Path::new(TREE).join("cgroup.subtree_control"), "+memory")?;
    let references = References::new(SIZES[2])?;
    let began = Instant::now();
    let mut made = 0;
    for size in SIZES {
        while made < size {
            if made % REPORTED == 0 {
                let text = format!("{made} in {} s", began.elapsed().as_secs());
                reporter.fact("cgroups removed so far", text)?;
                if meminfo("MemAvailable")? < SPARED_KIB || began.elapsed() > PATIENCE {
                    break;
                }
            }
            if made < WITH_MEMORY {
                remove_with_page(made)?;
            } else {
                references.remove_held(&held.join("passing"), made)?;
            }
            made += 1;
        }
        reporter.check(
            "enough removed cgroups",
            made == size,
            format!("{made} of {size}, as memory and time allow"),
        )?;
        let kept = kept()?;
        let right = kept >= size as u64 / 10 * 9;
        reporter.check("kept by the kernel", right, format!("{kept} of {size}"))?;
        count(reporter)?;
    }
    let stays = Path::new(TREE).join("stays");
    fs::create_dir(&stays)?;
    compare(reporter, "beside removed cgroups", &[held, stays])
}

/// Makes and removes a cgroup that has a page of a file.
fn remove_with_page(number: usize) -> io::Result<()> {
    let own = std::process::id().to_string();
    let folder = Path::new(TREE).join("passing");
    fs::create_dir(&folder)?;
    fs::write(folder.join("cgroup.procs"), &own)?;
    fs::write(format!("/tmp/dying/{number}"), [1; 64])?;
    fs::write(Path::new(MOUNT).join("cgroup.procs"), &own)?;
    fs::remove_dir(&folder)
}

/// Compares the number in snapshots with the kernel's.
fn count(reporter: &mut Reporter) -> io::Result<()> {
    for source in sources() {
        let before = kept()?;
        let (rows, took) = shown_below("/scale", &[], source, "dying")?;
        let after = kept()?;
        let row = rows.get("/scale").and_then(|rows| rows.first());
        let found = row.and_then(|row| row["dying"].as_u64());
        reporter.fact("removed cgroups that the kernel keeps", after)?;
        let name = format!("seconds with {source} beside {after} removed cgroups");
        reporter.fact(&name, format!("{took:.2}"))?;
        // It frees them all the time.
        reporter.check(
            &format!("removed cgroups {source}"),
            found.is_some_and(|found| (after..=before).contains(&found)),
            format!("{found:?} are shown; the kernel has {before} and then {after}"),
        )?;
    }
    Ok(())
}

/// How many removed cgroups the kernel keeps.
fn kept() -> io::Result<u64> {
    let stat = fs::read_to_string(Path::new(TREE).join("cgroup.stat"))?;
    let kept = value(&stat, "nr_dying_descendants");
    kept.ok_or_else(|| io::Error::other("cgroup.stat has no nr_dying_descendants"))
}

/// A map of BPF whose values are references to cgroups.
struct References(OwnedFd);

impl References {
    const MAP_CREATE: libc::c_long = 0;
    const MAP_UPDATE_ELEM: libc::c_long = 2;
    const MAP_TYPE_CGROUP_ARRAY: u32 = 8;

    fn new(entries: usize) -> io::Result<Self> {
        // map_type, key_size, value_size, max_entries
        let attributes = [Self::MAP_TYPE_CGROUP_ARRAY, 4, 4, entries as u32];
        // SAFETY: the kernel reads as many bytes of the array as it has, which contain no pointer.
        let map = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                Self::MAP_CREATE,
                attributes.as_ptr(),
                size_of_val(&attributes),
            )
        };
        if map < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just opened it, for this process alone.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(map as i32) }))
    }

    /// Makes and removes a cgroup that the entry of this number refers to.
    fn remove_held(&self, folder: &Path, number: usize) -> io::Result<()> {
        fs::create_dir(folder)?;
        let cgroup = File::open(folder)?;
        let (key, value) = (number as u32, cgroup.as_raw_fd());
        let address = |of: *const ()| of.expose_provenance() as u64;
        // map_fd, key, value, flags
        let attributes = [
            self.0.as_raw_fd() as u64,
            address((&raw const key).cast()),
            address((&raw const value).cast()),
            0,
        ];
        // SAFETY: the kernel reads as many bytes of the array as it has, and the key and the value, of four bytes each,
        // which are there until then.
        let failed = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                Self::MAP_UPDATE_ELEM,
                attributes.as_ptr(),
                size_of_val(&attributes),
            )
        };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        drop(cgroup);
        fs::remove_dir(folder)
    }
}
