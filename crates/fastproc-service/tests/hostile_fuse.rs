//! What a hostile user may do to the service by a file system in user space that does not answer.

mod common;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::fd::AsRawFd,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use common::{Raw, Served, become_user, in_child, request, turns};
use fastproc::{
    Fields, Texts,
    source::service::wire::{Op, Request, Status},
};
use fastproc_testbed::{Folder, alone, gate, wait_until};
use nix::libc;

const BYSTANDER: u32 = 54_622;

// `linux/fuse.h`: operations, and bytes of headers.
const GETATTR: u32 = 3;
const INIT: u32 = 26;
const HEADER: usize = 40;
/// Bytes of the longest request; the kernel wants room for it.
const LONGEST: usize = 1 << 17;

/// A file system of one directory, which answers until it is told to hang.
struct HungFuse {
    folder: Folder,
    device: Arc<File>,
    hangs: Arc<AtomicBool>,
    /// The number of the request that it has taken since, and never answers.
    taken: Arc<Mutex<Option<u64>>>,
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
        let mounted = Self {
            folder,
            device: Arc::new(device),
            hangs: Arc::default(),
            taken: Arc::default(),
        };
        let (device, hangs) = (Arc::clone(&mounted.device), Arc::clone(&mounted.hangs));
        let taken = Arc::clone(&mounted.taken);
        std::thread::spawn(move || {
            let mut bytes = vec![0; LONGEST];
            // It ends when nobody has the file system any more.
            while let Ok(len) = (&*device).read(&mut bytes) {
                let word = |at: usize| bytes[at..at + 4].try_into().map(u32::from_ne_bytes);
                let number = bytes[8..16].try_into().map(u64::from_ne_bytes);
                let number = number.expect("eight bytes");
                assert!(len >= HEADER);
                if hangs.load(Ordering::SeqCst) {
                    *taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(number);
                    return;
                }
                answer(&device, word(4).expect("four bytes"), number);
            }
        });
        Ok(mounted)
    }

    fn has_taken_one(&self) -> bool {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.is_some()
    }

    /// Who waits for the request that was taken goes on, with an error.
    fn release(&self) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = taken.take() {
            reply(&self.device, number, -libc::EIO, &[]);
        }
    }
}

impl Drop for HungFuse {
    fn drop(&mut self) {
        self.release();
        let target = c_path(&self.folder);
        // SAFETY: a text with an end.
        unsafe { libc::umount2(target.as_ptr().cast(), libc::MNT_DETACH) };
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
    let _ = (&mut &*device).write(&bytes);
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
    let hung = HungFuse::mount("hung").expect("root may mount");
    let served = Served::start("hung-service", None);
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
    hung.hangs.store(true, Ordering::SeqCst);
    // So it would go to whoever asks for it.
    let root = format!("/proc/{}/root/.", attacker.0);
    let waits = in_child(|| assert!(fs::metadata(root).is_err()));
    wait_until("somebody hangs", || hung.has_taken_one());
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
    assert!(hung.has_taken_one(), "it still hangs");
    hung.release();
    waits.join();
    own.give();
    attacker.join();
}
