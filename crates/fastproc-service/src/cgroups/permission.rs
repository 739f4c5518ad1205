//! Which groups of fields of a cgroup a user may read in its files.
//!
//! The service reads values without opening their files, so it checks what open(2) would: that the user may enter all
//! folders, and read the files of the requested groups. Of a user's groups only one is known, so to whom a file does not belong
//! it is shown only if its group and all others may read it. A folder or file on which something is mounted is not
//! shown: its path leads elsewhere.

use std::{
    collections::HashMap,
    ffi::OsStr,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use fastproc::{
    access::Reader,
    cgroups::{Cgroup, Fields},
    source::service::wire::Status,
};
use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags, getxattr, openat, statx},
    io::Errno,
};

const READ: u16 = 4;
const ENTER: u16 = 1;

/// Of all cgroups.
const FILES_OF_ALL: Files = Files {
    needed: "cgroup.stat",
    others: &["cgroup.events", "cgroup.type"],
};

/// The files that hold the fields of each group.
const FILES: [(Fields, Files); 6] = [
    (
        Fields::CPU,
        Files {
            needed: "cpu.stat",
            others: &["cpu.max", "cpu.weight"],
        },
    ),
    (
        Fields::MEMORY,
        Files {
            needed: "memory.current",
            others: &[
                "memory.peak",
                "memory.min",
                "memory.low",
                "memory.high",
                "memory.max",
                "memory.swap.current",
                "memory.swap.peak",
                "memory.swap.high",
                "memory.swap.max",
                "memory.events",
                "memory.events.local",
                "memory.swap.events",
                "memory.oom.group",
            ],
        },
    ),
    (
        Fields::MEMORY_STAT,
        Files {
            needed: "memory.stat",
            others: &[],
        },
    ),
    (
        Fields::PIDS,
        Files {
            needed: "pids.current",
            others: &["pids.max", "pids.peak"],
        },
    ),
    (
        Fields::IO,
        Files {
            needed: "io.stat",
            others: &[],
        },
    ),
    (
        Fields::PRESSURE,
        Files {
            needed: "cpu.pressure",
            others: &["memory.pressure", "io.pressure"],
        },
    ),
];

/// Files of one group of fields.
#[derive(Clone, Copy, Debug)]
struct Files {
    /// Exists if the group does.
    needed: &'static str,
    /// Some kernels lack these.
    others: &'static [&'static str],
}

/// The permission of one user for one snapshot.
#[derive(Debug)]
pub(super) struct Permission {
    reader: Reader,
    groups: Fields,
    root: OwnedFd,
    mount: u64,
    is_mount_open: bool,
    /// The cgroups that were met, and whether the user may enter their folders.
    folders: HashMap<u64, bool>,
}

impl Permission {
    pub(super) fn new(mount: &Path, reader: Reader, groups: Fields) -> Result<Self, Status> {
        let root = open(CWD, mount).map_err(|_| Status::Failed)?;
        let status = status(&root, Path::new("")).map_err(|_| Status::Failed)?;
        // Before Linux 5.8 it is not known where something is mounted.
        if status.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
            return Err(Status::Credentials);
        }
        let mut above = mount.ancestors().skip(1);
        let is_mount_open = above.all(|folder| {
            let status = statx(CWD, folder, FLAGS, WANTED);
            status.is_ok_and(|status| allows(&status, reader, ENTER)) && !has_acl(folder)
        });
        Ok(Self {
            reader,
            groups,
            root,
            mount: status.stx_mnt_id,
            is_mount_open,
            folders: HashMap::new(),
        })
    }

    /// The requested groups that the user may read. `None`: not even what the cgroup is. Parents come first.
    pub(super) fn of(&mut self, cgroup: Cgroup<'_>) -> Option<Fields> {
        let identity = &cgroup.record().identity;
        let is_above_open = match self.folders.get(&identity.parent) {
            Some(&is_open) => is_open,
            None => cgroup.path() == b"/" && self.is_mount_open,
        };
        let folder = is_above_open.then(|| self.enter(cgroup)).flatten();
        self.folders.insert(cgroup.id(), folder.is_some());
        let folder = folder?;
        if !self.may_read(&folder, FILES_OF_ALL) {
            return None;
        }
        let had = Fields::from_bits_retain(identity.groups) & self.groups;
        let files = FILES.into_iter().filter(|(group, _)| had.contains(*group));
        let permitted = files.filter(|(_, files)| self.may_read(&folder, *files));
        Some(permitted.fold(Fields::empty(), |all, (group, _)| all | group))
    }

    /// The folder of a cgroup, if the user may enter and list it, and its path leads there.
    fn enter(&self, cgroup: Cgroup<'_>) -> Option<OwnedFd> {
        let path = cgroup.path();
        let path = OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path));
        let folder = open(&self.root, &PathBuf::from(".").join(path)).ok()?;
        let status = status(&folder, Path::new("")).ok()?;
        let is_it = status.stx_ino == cgroup.id() && status.stx_mnt_id == self.mount;
        (is_it && allows(&status, self.reader, READ | ENTER)).then_some(folder)
    }

    fn may_read(&self, folder: &OwnedFd, files: Files) -> bool {
        let allowed = |file: &str| {
            let status = status(folder, Path::new(file))?;
            let is_here = status.stx_mnt_id == self.mount;
            Ok(is_here && allows(&status, self.reader, READ))
        };
        let mut others = files.others.iter();
        allowed(files.needed) == Ok(true)
            && others.all(|file| matches!(allowed(file), Ok(true) | Err(Errno::NOENT)))
    }
}

const WANTED: StatxFlags = StatxFlags::MODE
    .union(StatxFlags::UID)
    .union(StatxFlags::INO)
    .union(StatxFlags::MNT_ID);
const FLAGS: AtFlags = AtFlags::SYMLINK_NOFOLLOW
    .union(AtFlags::NO_AUTOMOUNT)
    .union(AtFlags::STATX_DONT_SYNC);

fn open(at: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, path, flags, Mode::empty())
}

/// The status of a file of a folder, or of the folder itself.
fn status(folder: &OwnedFd, file: &Path) -> Result<Statx, Errno> {
    statx(folder, file, FLAGS | AtFlags::EMPTY_PATH, WANTED)
}

/// Whether the mode grants the user this.
fn allows(status: &Statx, reader: Reader, wanted: u16) -> bool {
    let grants = |shift: u16| status.stx_mode >> shift & wanted == wanted;
    if status.stx_uid == reader.fsuid {
        grants(6)
    } else {
        // The user may or may not be in the group.
        grants(3) && grants(0)
    }
}

/// Whether a folder has a list of users with rights of their own.
fn has_acl(folder: &Path) -> bool {
    let size = getxattr(folder, "system.posix_acl_access", &mut [0_u8; 0]);
    !matches!(size, Err(Errno::NODATA | Errno::OPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_its_files() {
        let all = FILES
            .iter()
            .fold(Fields::empty(), |all, (group, _)| all | *group);
        assert_eq!(all, Fields::all());
    }
}
