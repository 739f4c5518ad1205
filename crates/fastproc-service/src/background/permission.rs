//! Which groups of fields of a cgroup a user may read in its files.
//!
//! The service reads values without opening their files, so it checks what open(2) would: that the user may enter all
//! folders, and read the files of the requested groups. Of a user's groups only the first is known, so a file of another user
//! and another group is shown only if its group and all others may read it. A folder or file on which something is mounted is not
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

/// The permission of one user for one snapshot.
#[derive(Debug)]
pub(super) struct Permission {
    reader: Reader,
    /// The files that say what a cgroup is, and those of each requested group.
    identity: Vec<&'static str>,
    files: Vec<(Fields, Vec<&'static str>)>,
    root: OwnedFd,
    mount: u64,
    /// The cgroups that were met, and whether the user may enter their folders.
    folders: HashMap<u64, bool>,
}

impl Permission {
    /// Fails if the user may not enter the mount, or not read what the root is: nothing could be shown, and the files may say
    /// more.
    pub(super) fn new(mount: &Path, reader: Reader, groups: Fields) -> Result<Self, Status> {
        let root = open(CWD, mount).map_err(|_| Status::Failed)?;
        let of_root = status(&root, Path::new("")).map_err(|_| Status::Failed)?;
        // Before Linux 5.8 it is not known where something is mounted.
        if of_root.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
            return Err(Status::Credentials);
        }
        let mut above = mount.ancestors().skip(1);
        let is_mount_open = above.all(|folder| {
            let status = statx(CWD, folder, FLAGS, WANTED);
            status.is_ok_and(|status| allows(&status, reader, ENTER)) && !has_acl(folder)
        });
        let permission = Self {
            reader,
            identity: Fields::empty().files(),
            files: (groups - Fields::PRESSURE_AVERAGES)
                .iter()
                .map(|group| (group, group.files()))
                .collect(),
            root,
            mount: of_root.stx_mnt_id,
            folders: HashMap::new(),
        };
        let is_open = is_mount_open
            && allows(&of_root, reader, READ | ENTER)
            && permission.may_read(&permission.root, &permission.identity)?;
        is_open.then_some(permission).ok_or(Status::Credentials)
    }

    /// The requested groups that the user may read. `None`: not even what the cgroup is. Parents come first. Fails for want of
    /// memory or descriptors.
    pub(super) fn of(&mut self, cgroup: Cgroup<'_>) -> Result<Option<Fields>, Status> {
        let identity = &cgroup.record().identity;
        let is_above_open = match self.folders.get(&identity.parent) {
            Some(&is_open) => is_open,
            None => cgroup.path() == b"/",
        };
        let folder = if is_above_open {
            self.enter(cgroup)?
        } else {
            None
        };
        self.folders.insert(cgroup.id(), folder.is_some());
        let Some(folder) = folder else {
            return Ok(None);
        };
        if !self.may_read(&folder, &self.identity)? {
            return Ok(None);
        }
        let had = Fields::from_bits_retain(identity.groups);
        let mut permitted = Fields::empty();
        for &(group, ref files) in &self.files {
            if had.contains(group) && self.may_read(&folder, files)? {
                permitted |= group;
            }
        }
        Ok(Some(permitted))
    }

    /// The folder of a cgroup, if the user may enter and list it, and its path leads there.
    fn enter(&self, cgroup: Cgroup<'_>) -> Result<Option<OwnedFd>, Status> {
        let path = cgroup.path();
        let path = OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path));
        let opened = open(&self.root, &PathBuf::from(".").join(path));
        let opened = opened.and_then(|folder| Ok((status(&folder, Path::new(""))?, folder)));
        let (status, folder) = match opened {
            Ok(opened) => opened,
            Err(errno) => return hidden(errno).map(|()| None),
        };
        let is_it = status.stx_ino == cgroup.id() && status.stx_mnt_id == self.mount;
        Ok((is_it && allows(&status, self.reader, READ | ENTER)).then_some(folder))
    }

    /// Whether the user may read these files. Only the first must exist.
    fn may_read(&self, folder: &OwnedFd, files: &[&str]) -> Result<bool, Status> {
        for (at, file) in files.iter().enumerate() {
            let allowed = match status(folder, Path::new(file)) {
                Ok(status) => status.stx_mnt_id == self.mount && allows(&status, self.reader, READ),
                Err(Errno::NOENT) => at > 0,
                Err(errno) => hidden(errno).map(|()| false)?,
            };
            if !allowed {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What cannot be looked at is hidden, unless it might be there and only memory or descriptors are missing.
fn hidden(errno: Errno) -> Result<(), Status> {
    match errno {
        Errno::NOMEM | Errno::MFILE | Errno::NFILE => Err(Status::Failed),
        _ => Ok(()),
    }
}

const WANTED: StatxFlags = StatxFlags::MODE
    .union(StatxFlags::UID)
    .union(StatxFlags::GID)
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
    } else if status.stx_gid == reader.fsgid {
        grants(3)
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
    use std::{fs, os::unix::fs::PermissionsExt};

    use fastproc_testbed::Folder;

    use super::*;

    #[test]
    fn a_user_without_access_to_the_mount_or_the_root_is_refused() {
        let folder = Folder::new("permission");
        let mount = folder.join("mount");
        fs::create_dir(&mount).expect("root may make a cgroup");
        let file = mount.join(Fields::empty().files()[0]);
        fs::write(&file, "").expect("the file is written");
        // The folders above are this user's own or public.
        let reader = Reader {
            pid: 0,
            fsuid: rustix::process::geteuid().as_raw(),
            fsgid: rustix::process::getegid().as_raw(),
            cap_effective: 0,
            user_ns: 1,
            confined: false,
        };
        let refusal = || Permission::new(&mount, reader, Fields::CPU).err();
        let set_mode = |path: &Path, mode| {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(path, mode).expect("its mode is set");
        };
        assert_eq!(refusal(), None);
        for (path, mode) in [
            (&*folder, 0o600),
            (mount.as_path(), 0o100),
            (file.as_path(), 0o200),
        ] {
            let before = fs::metadata(path).expect("the path exists").permissions();
            set_mode(path, mode);
            let refused = refusal();
            fs::set_permissions(path, before).expect("its mode is set");
            // Only root can open what its mode forbids.
            assert!(refused.is_some(), "{}", path.display());
            if reader.fsuid == 0 {
                assert_eq!(refused, Some(Status::Credentials), "{}", path.display());
            }
        }
        assert_eq!(refusal(), None);
    }

    #[test]
    fn every_group_has_its_files() {
        for group in Fields::ALL_BUT_AVERAGES.iter() {
            assert!(!group.files().is_empty(), "{group:?}");
        }
    }
}
