//! Where the socket is made, and how: so that no other user can lead root to another file.

use std::{
    borrow::Cow,
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
};

use nix::sched::{CloneFlags, unshare};
use rustix::{
    fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, chownat, fstat, openat},
    process::{geteuid, umask},
};

use super::SocketError;

/// The folder of the socket. Makes it if it is directly in `/run`.
pub(super) fn folder(path: &Path) -> Result<Cow<'_, Path>, SocketError> {
    let folder = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    if folder.exists() {
        return Ok(folder.into());
    }
    // /run is empty after each boot. A folder elsewhere that does not exist is rather a mistake in the path.
    if folder.parent() != Some(Path::new("/run")) {
        return Err(SocketError::NoFolder(folder.to_owned()));
    }
    with_umask(Mode::empty(), || {
        fs::DirBuilder::new().mode(0o755).create(folder)
    })
    .map_err(|source| SocketError::Bind {
        path: path.to_owned(),
        source,
    })?;
    Ok(folder.into())
}

/// The folder without links. As root: only if nobody else can exchange it, a folder above, or root's files in it.
pub(super) fn of_root(folder: &Path) -> Result<PathBuf, SocketError> {
    let failed = |path: &Path, source| SocketError::Bind {
        path: path.to_owned(),
        source,
    };
    let folder = folder
        .canonicalize()
        .map_err(|error| failed(folder, error))?;
    if !geteuid().is_root() {
        // Nothing here gives another user more than it has.
        return Ok(folder);
    }
    let read = |path: &Path| fs::symlink_metadata(path).map_err(|error| failed(path, error));
    // In a user namespace this may be a user that the namespace does not map. It can change everything anyway.
    let owner = read(Path::new("/"))?.uid();
    let mut above: Vec<&Path> = folder.ancestors().collect();
    above.reverse();
    // From the root on: nobody can exchange a folder below one that was found right.
    for path in above {
        let found = read(path)?;
        let why = if ![0, owner].contains(&found.uid()) {
            format!("user {} owns {}", found.uid(), path.display())
        } else if found.mode() & 0o022 != 0 && found.mode() & 0o1000 == 0 {
            format!("other users may write to {}", path.display())
        } else {
            continue;
        };
        return Err(SocketError::NotRoots { folder, why });
    }
    Ok(folder)
}

/// Calls `make` with this umask. Other threads keep theirs.
pub(super) fn with_umask<T: Send>(
    mask: Mode,
    make: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    static ONE: Mutex<()> = Mutex::new(());
    let make = || {
        // In containers this may be forbidden. Then the mask is that of the whole process for a moment.
        let shared = unshare(CloneFlags::CLONE_FS).is_err();
        let _one = shared.then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner));
        let before = umask(mask);
        let made = make();
        umask(before);
        made
    };
    thread::scope(|scope| {
        let made = thread::Builder::new().spawn_scoped(scope, make)?.join();
        made.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    })
}

/// Makes this group the owner of the socket that this process has just made at `path`.
pub(super) fn give_to(path: &Path, group: u32) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::empty())?;
    let found = fstat(&file)?;
    let is_socket = FileType::from_raw_mode(found.st_mode) == FileType::Socket;
    if !is_socket || found.st_uid != geteuid().as_raw() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let group = Gid::from_raw(group);
    Ok(chownat(&file, "", None, Some(group), AtFlags::EMPTY_PATH)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use fastproc_testbed::{Folder, gate, needs};

    use super::{super::bind_for, *};

    #[test]
    fn root_does_not_listen_where_another_user_could_exchange_the_socket() {
        needs!(gate::root());
        let folder = Folder::new("exchanged");
        let inner = folder.join("inner");
        fs::create_dir(&inner).expect("the folder is made");
        let socket = inner.join("socket");
        let refused = |what: &str| {
            let refused = bind_for(&socket, None);
            assert!(
                matches!(refused, Err(SocketError::NotRoots { .. })),
                "{what}: {refused:?}"
            );
            assert!(!socket.exists(), "{what}: it was made");
        };
        for path in [&*folder, &inner] {
            chown(path, Some(1000), None).expect("root sets the owner");
            refused("the folder of another user");
            chown(path, Some(0), None).expect("root sets the owner");
            for mode in [0o777, 0o775] {
                fs::set_permissions(path, PermissionsExt::from_mode(mode))
                    .expect("its mode is set");
                refused("a folder that others may write");
            }
            fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("its mode is set");
        }
        // In a folder for temporary files only the owner can rename a file.
        fs::set_permissions(&inner, PermissionsExt::from_mode(0o1777)).expect("its mode is set");
        bind_for(&socket, None).expect("nobody else can exchange it");
    }

    #[test]
    fn modes_do_not_depend_on_the_umask() {
        needs!(gate::root());
        let run = PathBuf::from(format!("/run/fastproc-umask-{}", std::process::id()));
        let socket = run.join("socket");
        for mask in [0o000, 0o077, 0o777] {
            let modes = thread::scope(|scope| {
                let made = scope.spawn(|| {
                    let mode = |path| fs::metadata(path).expect("it was made").mode() & 0o7777;
                    unshare(CloneFlags::CLONE_FS).expect("a thread may");
                    umask(Mode::from_raw_mode(mask));
                    bind_for(&socket, None).expect("nobody listens there");
                    let kept = umask(Mode::empty()).as_raw_mode();
                    (mode(&run), mode(&socket), kept)
                });
                made.join().expect("it has not failed")
            });
            fs::remove_dir_all(&run).expect("the folder is removed");
            assert_eq!(modes, (0o755, 0o666, mask), "{mask:o}");
        }
    }

    #[test]
    fn only_the_new_socket_gets_the_group() {
        let folder = Folder::new("no-socket");
        let (file, link) = (folder.join("file"), folder.join("link"));
        fs::write(&file, "").expect("the file is written");
        std::os::unix::fs::symlink(&file, &link).expect("the link is made");
        let group = rustix::process::getegid().as_raw();
        for path in [&file, &link] {
            give_to(path, group).expect_err("it is no socket");
        }
    }
}
