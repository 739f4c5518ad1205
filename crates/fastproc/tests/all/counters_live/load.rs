//! Load that makes the counters move.

use std::{
    fs::File,
    io::Write,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use fastproc_testbed::{Alone, Folder, alone};

/// Forks, page faults, writes and context switches, until dropped.
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
    _alone: Alone,
}

impl Load {
    pub fn start() -> Self {
        let alone = alone();
        let stop = Arc::new(AtomicBool::new(false));
        let spawn = |mut work: Box<dyn FnMut() + Send>| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    work();
                }
            })
        };
        let folder = Folder::new("load");
        let threads = vec![
            spawn(Box::new(|| {
                let _ = Command::new("true").status();
            })),
            spawn(Box::new(|| {
                let mut pages = vec![0_u8; 4 << 20];
                for page in pages.chunks_mut(4096) {
                    page[0] = 1;
                }
                std::hint::black_box(&pages);
                thread::sleep(Duration::from_millis(1));
            })),
            spawn(Box::new(move || {
                let path = folder.join("file");
                let mut file = File::create(&path).expect("a file can be made");
                file.write_all(&[1; 256 << 10]).expect("it can be written");
                let _ = file.sync_all();
                drop(file);
                let _ = std::fs::remove_file(&path);
            })),
            spawn(Box::new(|| {
                for _ in 0..100 {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_micros(50));
            })),
        ];
        Self {
            stop,
            threads,
            _alone: alone,
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
