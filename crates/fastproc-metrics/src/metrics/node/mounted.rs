//! Asks the mounted file systems of the machine how full they are.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::{Arc, PoisonError},
};

use fastproc::{
    frozen,
    mounts::{self, Mount},
    proc_root,
};
use rustix::fs::{Dev, Mode, OFlags, StatFs, fstatfs, major, openat};

use super::{
    ask::{Askers, PATIENCE, Question},
    machine::Machine,
};

/// The mounts of the first process, as in mountinfo. That file needs no permission to trace.
pub(in crate::metrics) fn list() -> Vec<u8> {
    let list = fs::read(proc_root::path("/proc/1/mountinfo"));
    let list = list.or_else(|_| fs::read(frozen::own_path("/proc/self/mountinfo")));
    list.unwrap_or_default()
}

/// The mounts of the machine.
#[derive(Debug)]
pub(in crate::metrics) struct Mounted {
    machine: Machine,
}

/// The threads that ask them, and what they have answered in this scrape. All metrics have the same answers, and wait once.
#[derive(Debug)]
pub(super) struct Asked {
    askers: Askers<Place>,
    answers: HashMap<(PathBuf, Dev), Option<StatFs>>,
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            askers: Askers::new("asker", PATIENCE),
            answers: HashMap::new(),
        }
    }
}

impl Mounted {
    pub(in crate::metrics) fn new(machine: Machine) -> Self {
        Self { machine }
    }

    /// Forgets the answers: the first that asks in a scrape does so before, and the last one after it has asked.
    pub(in crate::metrics) fn forget(&self) {
        let asked = self.machine.asked.lock();
        let mut asked = asked.unwrap_or_else(PoisonError::into_inner);
        asked.answers.clear();
    }

    /// Asks those that `choose` gives labels, with something else that it knows of them. It gets each mount and its place
    /// below the root of the machine. Of several with the same labels, the first is asked, but of those at the same place the
    /// last, which covers the others. `None`: it does not answer.
    pub(in crate::metrics) fn ask<T>(
        &self,
        mountinfo: &[u8],
        choose: impl Fn(&Mount<'_>, &[u8]) -> Option<(String, T)>,
    ) -> Vec<(String, T, Option<StatFs>)> {
        let folder = self
            .machine
            .folder
            .as_deref()
            .map(|folder| folder.as_os_str().as_bytes());
        let mut devices = devices(mountinfo);
        if folder.is_some() {
            // What is reached from here is a mount of this process.
            devices.extend(self::devices(
                &fs::read("/proc/self/mountinfo").unwrap_or_default(),
            ));
        }
        let devices = Arc::new(devices);
        // A list that has the folder is not that of the machine: what is in the folder is.
        let is_own = mounts::parse(mountinfo).any(|mount| below(folder, &mount.point).is_some());
        let mut chosen = Vec::new();
        let mut places = Vec::new();
        let mut seen = HashMap::new();
        for mount in mounts::parse(mountinfo) {
            let point = match below(folder, &mount.point) {
                Some(point) => point,
                None if is_own => continue,
                None => &mount.point,
            };
            let Some((labels, more)) = choose(&mount, point) else {
                continue;
            };
            let path = OsStr::from_bytes(point.strip_prefix(b"/").unwrap_or(point));
            let path = Path::new(".").join(path);
            if let Some(&at) = seen.get(&labels) {
                let (place, chosen): (&mut Place, &mut (String, T)) =
                    (&mut places[at], &mut chosen[at]);
                if place.path == path {
                    // It covers the other one.
                    (place.device, chosen.1) = (mount.device, more);
                }
                continue;
            }
            seen.insert(labels.clone(), places.len());
            places.push(Place {
                root: self.machine.root.clone(),
                path,
                device: mount.device,
                devices: devices.clone(),
                rank: rank(&mount),
            });
            chosen.push((labels, more));
        }
        let keys: Vec<_> = places.iter().map(Place::key).collect();
        let asked = self.machine.asked.lock();
        let mut asked = asked.unwrap_or_else(PoisonError::into_inner);
        let Asked { askers, answers } = &mut *asked;
        places.retain(|place| !answers.contains_key(&place.key()));
        let new: Vec<_> = places.iter().map(Place::key).collect();
        let found = askers.ask(places).into_iter().map(Option::flatten);
        answers.extend(new.into_iter().zip(found));
        let both = chosen.into_iter().zip(keys);
        both.map(|((labels, more), key)| (labels, more, answers.get(&key).copied().flatten()))
            .collect()
    }
}

/// The devices of mounts, by their numbers, which no two mounts of any namespace share.
fn devices(mountinfo: &[u8]) -> HashMap<u32, Dev> {
    let mounts = mounts::parse(mountinfo).map(|mount| (mount.id, mount.device));
    mounts.collect()
}

/// The path below a folder: `/` is the folder itself.
fn below<'a>(folder: Option<&[u8]>, point: &'a [u8]) -> Option<&'a [u8]> {
    let folder = folder?;
    match point.strip_prefix(folder.strip_suffix(b"/").unwrap_or(folder))? {
        b"" => Some(b"/"),
        below => below.starts_with(b"/").then_some(below),
    }
}

/// Disks answer. Another machine may not, and least a program of any user.
fn rank(mount: &Mount<'_>) -> u8 {
    if mount.kind.starts_with(b"fuse") {
        2
    } else {
        u8::from(major(mount.device) == 0)
    }
}

/// Where a file system is mounted.
#[derive(Debug)]
struct Place {
    root: Arc<OwnedFd>,
    /// Below that root.
    path: PathBuf,
    device: Dev,
    devices: Arc<HashMap<u32, Dev>>,
    rank: u8,
}

impl Place {
    fn key(&self) -> (PathBuf, Dev) {
        (self.path.clone(), self.device)
    }
}

impl Question for Place {
    type Answer = Option<StatFs>;

    fn server(&self) -> u64 {
        self.device
    }

    fn rank(&self) -> u8 {
        self.rank
    }

    /// `None` if it does not answer, or if another file system is at its place.
    fn ask(&self) -> Option<StatFs> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = openat(&self.root, &self.path, flags, Mode::empty()).ok()?;
        // btrfs has other numbers in st_dev.
        if self.devices.get(&mount_id(&place)?) != Some(&self.device) {
            return None;
        }
        // FUSE answers zeros to whom its user gives no access.
        fstatfs(&place).ok().filter(|stat| stat.f_bsize != 0)
    }
}

/// The number of the mount of an open file, which no server is asked for.
fn mount_id(file: &OwnedFd) -> Option<u32> {
    let path = format!("/proc/thread-self/fdinfo/{}", file.as_raw_fd());
    let text = fs::read_to_string(path).ok()?;
    let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    id?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_ask_in_a_scrape_have_one_answer() {
        let machine = Machine::find(None).expect("there is a root");
        let [first, last] = [(); 2].map(|()| Mounted::new(machine.clone()));
        let list = fs::read("/proc/self/mountinfo").expect("/proc is mounted");
        let blocks = |mounted: &Mounted| {
            let root = |_: &Mount<'_>, point: &[u8]| (point == b"/").then(|| (String::new(), ()));
            let found = mounted.ask(&list, root);
            found[0].2.expect("there is a root").f_blocks
        };
        first.forget();
        let _ = blocks(&first);
        let kept = |stat: &mut Option<StatFs>| {
            stat.as_mut().expect("it has answered").f_blocks = u64::MAX;
        };
        let asked = machine.asked.lock();
        asked.expect("no panic").answers.values_mut().for_each(kept);
        assert_eq!(blocks(&last), u64::MAX);
        last.forget();
        assert_ne!(blocks(&first), u64::MAX);
    }
}
