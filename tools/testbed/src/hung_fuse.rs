//! A file system in user space that stops answering.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags,
        fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_change,
        move_mount,
    },
    thread::UnshareFlags,
};

use crate::{
    gate,
    role::{self, Role},
    sys,
    wait::GUARD,
};

// `linux/fuse.h`: operations, and bytes of headers.
const GETATTR: u32 = 3;
const INIT: u32 = 26;
pub(crate) const HEADER: usize = 40;
/// Bytes of the longest request; the kernel requires room for it.
pub(crate) const LONGEST: usize = 1 << 17;

/// A file system of one directory, or of one file. A separate process answers its requests until it is sent a byte.
/// When that
/// process ends, the file system ends too, and every process that waits for it gets an error.
///
/// It is mounted nowhere: it has a descriptor, and no path on which another process could block. It ends with the
/// processes that use it, however they end.
#[derive(Debug)]
pub struct HungFuse {
    root: OwnedFd,
    server: Child,
    control: UnixStream,
}

impl HungFuse {
    /// Makes a file system that is a directory, and answers.
    /// `None` if this machine has no `/dev/fuse`, or this process may not mount: the test is then skipped.
    #[track_caller]
    pub fn open() -> Option<Self> {
        Self::or_skipped(libc::S_IFDIR | 0o755)
    }

    /// The same with a file of one page, whose content the kernel requests when it is read.
    #[track_caller]
    pub fn open_file() -> Option<Self> {
        Self::or_skipped(libc::S_IFREG | 0o644)
    }

    #[track_caller]
    fn or_skipped(mode: u32) -> Option<Self> {
        let opened = Self::of_mode(mode);
        opened
            .inspect_err(|error| gate::skipped(&format!("it needs /dev/fuse: {error}")))
            .ok()
    }

    fn of_mode(mode: u32) -> io::Result<Self> {
        let (device, root) = mounted(mode)?;
        let mode = format!("{mode:o}");
        let (control, its) = UnixStream::pair()?;
        control.set_read_timeout(Some(GUARD))?;
        let server = role::command(Role::Fuse, &mode)
            .stdin(Stdio::from(OwnedFd::from(its)))
            .stdout(Stdio::from(device))
            .spawn()?;
        let hung = Self {
            root,
            server,
            control,
        };
        // The kernel sends no other request before the server has answered with its version.
        rustix::fs::fstat(&hung.root)?;
        Ok(hung)
    }

    /// A path to its directory or file. Only processes that may trace this one can follow it.
    pub fn path(&self) -> PathBuf {
        let (pid, root) = (std::process::id(), self.root.as_raw_fd());
        format!("/proc/{pid}/fd/{root}").into()
    }

    /// Mounts it in a new mount namespace, which this thread gets and the processes that it starts.
    ///
    /// # Errors
    ///
    /// If this process may not mount.
    pub fn mount_for_this_thread(&self, point: &Path) -> io::Result<()> {
        own_mounts()?;
        attach(&self.root, point)
    }

    /// Stops answering.
    ///
    /// # Panics
    ///
    /// If the serving process has failed.
    pub fn hang(&mut self) {
        self.control.write_all(b".").expect("the server runs");
    }

    /// Waits until a process waits for an answer.
    ///
    /// # Panics
    ///
    /// If none does.
    pub fn wait_until_asked(&mut self) {
        self.control.read_exact(&mut [0]).expect("the server runs");
    }

    /// Ends it: waiting processes get an error.
    pub fn end(&mut self) {
        // This fails if the process has ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl AsFd for HungFuse {
    /// Its directory or file.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }
}

impl Drop for HungFuse {
    fn drop(&mut self) {
        self.end();
    }
}

/// Gives this thread a new mount namespace, which the processes that it starts get too.
///
/// # Errors
///
/// If this process may not mount.
pub fn own_mounts() -> io::Result<()> {
    sys::unshare(UnshareFlags::NEWNS)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(mount_change("/", private)?)
}

/// Mounts a file system that is mounted nowhere.
pub(crate) fn attach(root: &OwnedFd, point: &Path) -> io::Result<()> {
    let of_descriptor = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(move_mount(root, "", rustix::fs::CWD, point, of_descriptor)?)
}

/// A file system of one directory or file, mounted nowhere: the device that its requests come from, and its root.
pub(crate) fn mounted(mode: u32) -> io::Result<(File, OwnedFd)> {
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")?;
    let context = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    let number = device.as_raw_fd().to_string();
    for (key, value) in [
        ("source", "test"),
        ("fd", &number),
        ("rootmode", &format!("{mode:o}")),
        ("user_id", "0"),
        ("group_id", "0"),
    ] {
        fsconfig_set_string(&context, key, value)?;
    }
    fsconfig_set_flag(&context, "allow_other")?;
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
    Ok((device, root))
}

/// Answers requests from standard output, the device, until standard input has a byte. Then it reads no more requests:
/// a process whose request was read could not be ended, not even by a signal.
pub fn main(mode: &str) -> i32 {
    let mode = u32::from_str_radix(mode, 8).unwrap_or_default();
    i32::from(serve(mode).is_err())
}

fn serve(mode: u32) -> io::Result<()> {
    // Everything else that the opener left open across exec.
    sys::close_range(3, u32::MAX);
    let mut control = File::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let mut device = File::from(rustix::stdio::stdout().try_clone_to_owned()?);
    let mut bytes = vec![0; LONGEST];
    loop {
        let mut polled = [
            PollFd::new(&control, PollFlags::IN),
            PollFd::new(&device, PollFlags::IN),
        ];
        poll(&mut polled, None)?;
        if !polled[0].revents().is_empty() {
            break;
        }
        let len = device.read(&mut bytes)?;
        let word = |at: usize| bytes[..len].get(at..at + 4)?.try_into().ok();
        let Some((operation, number)) = word(4).zip(bytes[..len].get(8..16)) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        if len < HEADER {
            return Err(io::ErrorKind::InvalidData.into());
        }
        answer(&device, u32::from_ne_bytes(operation), number, mode);
    }
    if control.read(&mut [0])? == 0 {
        // The opener has ended.
        return Ok(());
    }
    poll(&mut [PollFd::new(&device, PollFlags::IN)], None)?;
    control.write_all(b".")?;
    // Until the opener ends, or ends this process.
    poll(&mut [PollFd::new(&control, PollFlags::IN)], None)?;
    Ok(())
}

fn answer(device: &File, operation: u32, number: &[u8], mode: u32) {
    answer_common(device, operation, number, (mode, 4096));
}

/// Answers what every file system is asked, for a root of this mode and size.
pub(crate) fn answer_common(device: &File, operation: u32, number: &[u8], root: (u32, u64)) {
    match operation {
        // Version 7.31, and the minimum of everything.
        INIT => {
            let mut body = [0_u32; 16];
            (body[0], body[1], body[5], body[6]) = (7, 31, 4096, 1);
            reply(device, number, 0, &bytes_of(&body));
        }
        // The kernel requests it again each time: number, size, mode and links.
        GETATTR => {
            let (mode, size) = root;
            let mut body = [0_u32; 26];
            (body[4], body[6], body[7]) = (1, size as u32, (size >> 32) as u32);
            (body[19], body[20]) = (mode, 2);
            reply(device, number, 0, &bytes_of(&body));
        }
        _ => reply(device, number, -libc::ENOSYS, &[]),
    }
}

pub(crate) fn reply(mut device: &File, number: &[u8], error: i32, body: &[u8]) {
    let len = (16 + body.len()) as u32;
    let mut bytes = [len.to_ne_bytes(), error.to_ne_bytes()].concat();
    bytes.extend(number);
    bytes.extend(body);
    // The kernel refuses an answer that nothing waits for.
    let _ = device.write(&bytes);
}

/// The bytes of words.
pub(crate) fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
