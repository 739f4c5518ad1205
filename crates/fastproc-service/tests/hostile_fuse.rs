//! What a hostile user may do to the service by a file system in user space that does not answer.

mod common;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
    path::Path,
    time::Duration,
};

use common::{Child, Raw, Served, become_user, in_child, request, stream_pair, turns};
use fastproc::{
    Fields, Texts,
    source::service::wire::{Op, Request, Status},
};
use fastproc_testbed::{Folder, alone, gate};
use nix::{
    libc,
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
};
use rustix::event::{PollFd, PollFlags, poll};

const BYSTANDER: u32 = 54_622;

// `linux/fuse.h`: operations, and bytes of headers.
const GETATTR: u32 = 3;
const INIT: u32 = 26;
const HEADER: usize = 40;
/// Bytes of the longest request; the kernel wants room for it.
const LONGEST: usize = 1 << 17;

/// A file system of one directory, which answers until it is told to hang. A process of its own answers: when that has ended,
/// so has the file system, and whoever waits has an error.
struct HungFuse {
    folder: Folder,
    server: Child,
    control: UnixStream,
}

impl HungFuse {
    fn mount(name: &str) -> io::Result<Self> {
        let folder = Folder::new(name);
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/fuse")?;
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other\0",
            device.as_raw_fd()
        );
        let target = c_path(&folder);
        // SAFETY: all of them are texts with an end.
        let mounted = unsafe {
            libc::mount(
                c"test".as_ptr(),
                target.as_ptr().cast(),
                c"fuse".as_ptr(),
                libc::MS_NOSUID | libc::MS_NODEV,
                options.as_ptr().cast(),
            )
        };
        if mounted != 0 {
            return Err(io::Error::last_os_error());
        }
        let (control, told) = stream_pair();
        let server = in_child(|| serve(&device, told));
        Ok(Self {
            folder,
            server,
            control,
        })
    }

    /// From now on nothing is answered.
    fn hang(&mut self) {
        self.control.write_all(b".").expect("it serves");
    }

    /// Waits until somebody waits for an answer.
    fn wait_until_asked(&mut self) {
        self.control.read_exact(&mut [0]).expect("it serves");
    }
}

impl Drop for HungFuse {
    fn drop(&mut self) {
        let target = c_path(&self.folder);
        // SAFETY: a text with an end.
        unsafe { libc::umount2(target.as_ptr().cast(), libc::MNT_DETACH) };
    }
}

/// Answers until it is told to hang. Then no request is taken any more: of one that was, nobody could end who waits for it, not
/// even by a signal.
fn serve(mut device: &File, mut control: UnixStream) {
    // SAFETY: it changes nothing but which signal this process gets.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let mut bytes = vec![0; LONGEST];
    loop {
        let mut polled = [
            PollFd::new(&control, PollFlags::IN),
            PollFd::new(&device, PollFlags::IN),
        ];
        poll(&mut polled, None).expect("both are open");
        if !polled[0].revents().is_empty() {
            break;
        }
        let len = device.read(&mut bytes).expect("a request");
        assert!(len >= HEADER);
        let operation = bytes[4..8].try_into().map(u32::from_ne_bytes);
        let number = bytes[8..16].try_into().map(u64::from_ne_bytes);
        let (operation, number) = operation.ok().zip(number.ok()).expect("numbers");
        answer(device, operation, number);
    }
    poll(&mut [PollFd::new(&device, PollFlags::IN)], None).expect("it is open");
    control.write_all(b".").expect("the test listens");
    loop {
        nix::unistd::pause();
    }
}

fn c_path(path: &Path) -> Vec<u8> {
    [path.as_os_str().as_encoded_bytes(), b"\0"].concat()
}

fn answer(device: &File, operation: u32, number: u64) {
    match operation {
        // Version 7.31, and the least of everything.
        INIT => {
            let mut body = [0_u32; 16];
            (body[0], body[1], body[5], body[6]) = (7, 31, 4096, 1);
            reply(device, number, 0, &body);
        }
        // A directory that is asked for again each time.
        GETATTR => {
            let mut body = [0_u32; 26];
            (body[4], body[19], body[20]) = (1, libc::S_IFDIR | 0o755, 2);
            reply(device, number, 0, &body);
        }
        _ => reply(device, number, -libc::ENOSYS, &[]),
    }
}

fn reply(device: &File, number: u64, error: i32, body: &[u32]) {
    let len = 16 + 4 * body.len() as u32;
    let mut bytes = [len.to_ne_bytes(), error.to_ne_bytes()].concat();
    bytes.extend(number.to_ne_bytes());
    bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
    // What is not wanted any more is refused.
    let _ = (&*device).write(&bytes);
}

/// Who connects was asked for its root directory in a way that asks the file system which that lies in.
#[test]
fn whose_directories_lie_in_a_file_system_that_hangs_is_refused_and_delays_nobody() {
    let _alone = alone();
    if !gate::bpf() {
        return;
    }
    if !Path::new("/dev/fuse").exists() {
        gate::skipped("it needs /dev/fuse");
        return;
    }
    // Ended in the opposite order: the service may wait for the file system when the test fails.
    let served = Served::start("hung-service", None);
    let mut hung = match HungFuse::mount("hung") {
        Ok(hung) => hung,
        Err(error) => {
            gate::skipped(&format!("it needs /dev/fuse: {error}"));
            return;
        }
    };
    let path = served.path();
    let (mut own, mut its) = turns();
    let place = hung.folder.to_path_buf();
    let attacker = in_child(|| {
        let raw = Raw::open(&path).expect("it listens");
        std::env::set_current_dir(&place).expect("it answers");
        std::os::unix::fs::chroot(".").expect("root may");
        its.give();
        its.wait();
        let (reply, _) = raw
            .ask(request(Op::Snapshot, Duration::ZERO))
            .expect("an answer");
        assert_eq!(reply.status, Status::Namespace);
        its.give();
        its.wait();
    });
    own.wait();
    hung.hang();
    // So it would go to whoever asks for it.
    let root = format!("/proc/{}/root/.", attacker.0);
    let waits = in_child(|| assert!(fs::metadata(root).is_err()));
    hung.wait_until_asked();
    own.give();
    own.wait();
    for uid in [0, BYSTANDER] {
        in_child(|| {
            become_user(uid);
            let raw = Raw::open(&path).expect("it listens");
            let everything = Request {
                groups: Fields::all().bits(),
                texts: Texts::all(),
                ..request(Op::Snapshot, Duration::ZERO)
            };
            let (reply, _) = raw.ask(everything).expect("an answer");
            assert_eq!(reply.status, Status::Ok);
        })
        .join();
    }
    let state = waitpid(waits.0, Some(WaitPidFlag::WNOHANG));
    assert_eq!(state, Ok(WaitStatus::StillAlive), "it still hangs");
    kill(hung.server.0, Signal::SIGKILL).expect("it is ours");
    waits.join();
    own.give();
    attacker.join();
}
