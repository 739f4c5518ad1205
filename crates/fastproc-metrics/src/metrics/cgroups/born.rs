//! When cgroups were made.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path, time::Duration};

use fastproc::{
    cgroups::{Cgroup, Ids},
    frozen,
};
use rustix::time::ClockId;

/// When each cgroup was made, by its id, which the kernel does not use again.
///
/// The kernel keeps no such time. cAdvisor takes the earlier of the times of the folder and of cgroup.events, and nothing
/// before boot; so does this, once for each cgroup: the times are those when the kernel made its inodes, and it makes them
/// again after memory was short.
#[derive(Debug, Default)]
pub(super) struct Born {
    kept: Ids<Kept>,
    /// Counts updates.
    update: u32,
}

#[derive(Debug)]
struct Kept {
    seconds: Option<u64>,
    met: u32,
}

impl Born {
    /// Looks at the folders of new cgroups below this mount point, and forgets those that are gone.
    pub(super) fn update<'a>(&mut self, mount: &Path, cgroups: impl Iterator<Item = Cgroup<'a>>) {
        self.update = self.update.wrapping_add(1);
        let update = self.update;
        for cgroup in cgroups {
            let look = || Kept {
                seconds: seconds(mount, cgroup.path()),
                met: update,
            };
            self.kept.entry(cgroup.id()).or_insert_with(look).met = update;
        }
        self.kept.retain(|_, kept| kept.met == update);
    }

    /// When it was made, in seconds since 1970.
    pub(super) fn of(&self, cgroup: Cgroup<'_>) -> Option<u64> {
        self.kept.get(&cgroup.id())?.seconds
    }
}

fn seconds(mount: &Path, path: &[u8]) -> Option<u64> {
    // The times of a frozen machine are those when its folder was made.
    if frozen::folder().is_some() {
        return None;
    }
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let folder = mount.join(OsStr::from_bytes(path));
    let time = |path: &Path| {
        let modified = fs::metadata(path).ok()?.modified().ok()?;
        modified.duration_since(std::time::UNIX_EPOCH).ok()
    };
    let of_folder = time(&folder)?;
    let first =
        time(&folder.join("cgroup.events")).map_or(of_folder, |events| events.min(of_folder));
    Some(first.max(boot()).as_secs())
}

/// The minute of boot.
fn boot() -> Duration {
    let [real, since] =
        [ClockId::Realtime, ClockId::Boottime].map(|clock| frozen::clock(clock).tv_sec as u64);
    let boot = real.saturating_sub(since);
    Duration::from_secs(boot - boot % 60)
}
