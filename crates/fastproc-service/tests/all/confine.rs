//! What an open service can no longer do.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{ErrorKind, Read, Write},
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::{UnixDatagram, UnixStream},
    },
    process::Command,
};

use crate::common::in_child;
use fastproc_testbed::{Folder, alone, gate};
use nix::libc;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};

#[test]
fn the_confined_service_executes_nothing_and_writes_no_file() {
    let _alone = alone();
    let folder = Folder::new("confine");
    let (there, new) = (folder.join("there"), folder.join("new"));
    fs::write(&there, "as it was").expect("a folder of ours");
    let before = |denied: bool| {
        let kind = if denied {
            Err(ErrorKind::PermissionDenied)
        } else {
            Ok(())
        };
        let opened = OpenOptions::new().write(true).open(&there);
        assert_eq!(opened.map(drop).map_err(|error| error.kind()), kind);
        let opened = OpenOptions::new().read(true).append(true).open(&there);
        assert_eq!(opened.map(drop).map_err(|error| error.kind()), kind);
        let made = File::create(&new).map(drop).map_err(|error| error.kind());
        assert_eq!(made, kind);
        let ran = Command::new("true").status();
        assert_eq!(ran.map(drop).map_err(|error| error.kind()), kind);
        // SAFETY: it changes nothing; if no process has this pid it fails with another error.
        let traced = unsafe { libc::ptrace(libc::PTRACE_DETACH, i32::MAX, 0, 0) };
        assert_eq!(traced, -1);
        let error = std::io::Error::last_os_error();
        let expected = if denied { libc::EPERM } else { libc::ESRCH };
        assert_eq!(error.raw_os_error(), Some(expected));
        let result = |done: std::io::Result<()>| done.map_err(|error| error.kind());
        let moved = folder.join("moved");
        assert_eq!(result(fs::rename(&there, &moved)), kind);
        if !denied {
            fs::rename(&moved, &there).expect("the file is renamed");
        }
        let link = folder.join("link");
        assert_eq!(result(symlink(&there, &link)), kind);
        assert_eq!(result(fs::hard_link(&there, folder.join("hard"))), kind);
        assert_eq!(result(fs::create_dir(folder.join("folder"))), kind);
        assert_eq!(result(fs::remove_file(&link)), kind);
        let mode = Permissions::from_mode(0o640);
        assert_eq!(result(fs::set_permissions(&there, mode)), kind);
        // On no terminal.
        let letter = b"x";
        // SAFETY: the request reads a byte.
        let typed = unsafe { libc::ioctl(-1, libc::TIOCSTI, letter.as_ptr()) };
        let expected = if denied { libc::EPERM } else { libc::EBADF };
        assert_eq!((typed, errno()), (-1, Some(expected)));
    };
    in_child(|| before(false)).join();
    fs::write(&there, "as it was").expect("a folder of ours");
    fs::remove_file(&new).expect("it was made");
    in_child(|| {
        // Every thread has the filter, also those that existed before.
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            told.recv().expect("it is told");
            File::create("/dev/null").is_err()
        });
        fastproc_service::confine().expect("the kernel can");
        before(true);
        tell.send(()).expect("it waits");
        assert!(thread.join().expect("it has not panicked"));
        assert_eq!(fs::read(&there).expect("to read it may"), b"as it was");
        let status = fs::read_to_string("/proc/self/status").expect("/proc is mounted");
        assert!(status.contains("\nSeccomp:\t2\n"), "{status}");
    })
    .join();
    assert!(!new.exists());
    gate::ran();
}

fn errno() -> Option<i32> {
    std::io::Error::last_os_error().raw_os_error()
}

/// The errors of sending signal 0 to a process, of reading its limits, and of creating a process, with and without a
/// user namespace of its own.
fn others(pid: i32) -> [Option<i32>; 5] {
    let error = |result: libc::c_long| if result < 0 { errno() } else { None };
    let process = |flags: libc::c_int| {
        // SAFETY: as fork(2); the child only exits.
        let child = unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) };
        if child == 0 {
            // SAFETY: it ends this process.
            unsafe { libc::_exit(0) }
        }
        let error = error(child);
        if child > 0 {
            // SAFETY: it writes nothing.
            unsafe { libc::waitpid(child as i32, std::ptr::null_mut(), 0) };
        }
        error
    };
    let null = std::ptr::null::<libc::c_void>();
    // SAFETY: nothing is sent, and nothing written.
    let signal =
        |call, first: i32, second: i32| error(unsafe { libc::syscall(call, first, second, 0) });
    [
        signal(libc::SYS_tgkill, pid, pid),
        signal(libc::SYS_tkill, pid, 0),
        // SAFETY: it reads and writes nothing.
        error(unsafe { libc::syscall(libc::SYS_prlimit64, pid, libc::RLIMIT_NOFILE, null, null) }),
        process(0),
        process(libc::CLONE_NEWUSER),
    ]
}

#[test]
fn a_process_confined_to_folders_writes_only_below_open_ones() {
    let _alone = alone();
    let folder = Folder::new("confine-folder");
    let (old, new) = (folder.join("old"), folder.join("new"));
    fs::write(&old, "as it was").expect("a folder of ours");
    let open = File::open(folder.join("")).expect("a folder of ours");
    in_child(|| {
        fastproc_service::confine_to_folders().expect("the kernel can");
        let denied = Err(ErrorKind::PermissionDenied);
        let kind = |done: std::io::Result<()>| done.map_err(|error| error.kind());
        assert_eq!(kind(File::create(&new).map(drop)), denied);
        assert_eq!(kind(fs::rename(&old, &new)), denied);
        assert_eq!(kind(fs::remove_file(&old)), denied);
        assert_eq!(kind(Command::new("true").status().map(drop)), denied);
        assert_eq!(kind(File::open(&old).map(drop)), Ok(()));
        let flags = OFlags::WRONLY | OFlags::CREATE;
        let made = openat(&open, "made", flags, Mode::RUSR).expect("it is below the folder");
        drop(made);
        mkdirat(&open, "below", Mode::RWXU).expect("it is below the folder");
        renameat(&open, "made", &open, "below/moved").expect("it is below the folder");
        unlinkat(&open, "below/moved", AtFlags::empty()).expect("it is below the folder");
    });
}

#[test]
fn a_process_confined_to_its_descriptors_opens_none() {
    in_child(|| {
        let connect = || UnixDatagram::unbound().map(drop);
        File::open("/dev/null").expect("the file is opened");
        connect().expect("the socket can be connected");
        let (mut one, mut other) = UnixStream::pair().expect("a pair of sockets can be made");
        let (own, parent) = (
            std::process::id() as i32,
            std::os::unix::process::parent_id() as i32,
        );
        // Some systems do not let users create user namespaces.
        assert_eq!(others(parent)[..4], [None; 4], "it may");
        fastproc_service::confine_to_descriptors().expect("the kernel can");
        let error = File::open("/dev/null").expect_err("to open it must not");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        let error = connect().expect_err("sockets neither");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        Command::new("true").status().expect_err("nor programs");
        UnixStream::pair().expect_err("nor pairs of sockets");
        assert_eq!(others(parent), [Some(libc::EPERM); 5]);
        assert_eq!(others(own)[..3], [None; 3], "itself it may");
        // Open descriptors still work, and threads are not processes.
        std::thread::spawn(move || one.write_all(b"x").expect("the socket can be written"));
        other.read_exact(&mut [0]).expect("the socket can be read");
    })
    .join();
    gate::ran();
}
