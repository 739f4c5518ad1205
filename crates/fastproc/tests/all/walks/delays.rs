//! Delay accounting: unknown while it is off, and what the kernel shows of each thread while it is on.

use std::{fs, path::Path};

use fastproc::{Fields, Process};
use fastproc_testbed::{alone, gate, needs, wait_for, wait_until};

use super::{TICK_NS, WALKS, open, script::Script};

const SWITCH: &str = "/proc/sys/kernel/task_delayacct";

/// The switch, which is put back at the end.
struct Accounting(String);

impl Accounting {
    fn switch(on: bool) -> Self {
        let before = fs::read_to_string(SWITCH).expect("the kernel has it");
        fs::write(SWITCH, if on { "1" } else { "0" }).expect("root may write it");
        Self(before)
    }
}

impl Drop for Accounting {
    fn drop(&mut self) {
        let _ = fs::write(SWITCH, &self.0);
    }
}

/// Three threads that read a file from the disk, and sleep. At a line all but the first exit.
const READS: &str = r"
import os, sys, tempfile, threading
file = tempfile.TemporaryFile(dir='/var/tmp')
file.write(os.urandom(1 << 22))
file.flush()
os.fsync(file.fileno())
read, end = threading.Semaphore(0), threading.Semaphore(0)
def work(first):
    for at in range(first, 1 << 22, 1 << 20):
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.pread(file.fileno(), 4096, at)
    read.release()
    end.acquire()
threads = [threading.Thread(target=work, args=(first << 16,)) for first in range(3)]
for thread in threads: thread.start()
for _ in threads: read.acquire()
print('rests', flush=True)
sys.stdin.readline()
for _ in threads: end.release()
for thread in threads: thread.join()
print('alone', flush=True)
sys.stdin.readline()
";

fn blkio_ns(process: Process<'_>) -> Option<u64> {
    process.delays().expect("it was asked for").blkio_delay_ns()
}

/// `delayacct_blkio_ticks` of a thread.
fn text_of(script: &Script, tid: u32) -> u64 {
    let text = script.stat(tid);
    let (_, values) = text.rsplit_once(')').expect("a name");
    let ticks = values.split_whitespace().nth(39);
    ticks.expect("a field").parse().expect("a number")
}

#[test]
fn delays_are_those_of_all_threads_and_exited_ones_leave_theirs() {
    needs!(gate::bpf());
    let _alone = alone();
    // Older kernels have no switch, and some no accounting.
    if !Path::new(SWITCH).exists() {
        return;
    }
    for source in WALKS {
        let switched = Accounting::switch(true);
        let mut script = Script::python(READS);
        script.answer();
        script.wait_until_asleep();
        let pid = script.pid();
        let mut collector = open(source, Fields::DELAYS | Fields::THREADS);
        let (threads, sum) = wait_for("a look while no thread moves", || {
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            let process = snapshot.get(pid).expect("it sleeps");
            assert_eq!(snapshot.source_of(process), source);
            let threads = snapshot.threads().filter(|thread| thread.tgid == pid);
            let one = |thread: &fastproc::record::ThreadRecord| {
                let blkio_ns = thread.delays.blkio_delay_ns();
                (thread.tid, blkio_ns.expect("it is switched on"))
            };
            let threads: Vec<_> = threads.map(one).collect();
            let is_text = |&(tid, ns): &(u32, u64)| ns / TICK_NS == text_of(&script, tid);
            threads
                .iter()
                .all(is_text)
                .then(|| (threads, blkio_ns(process)))
        });
        assert_eq!(threads.len(), 4, "{source}");
        let all: u64 = threads.iter().map(|(_, ns)| ns).sum();
        assert_eq!(sum, Some(all), "{source}");
        script.tell("exit");
        script.answer();
        wait_until("all threads but the first to be gone", || {
            script.threads().len() == 1
        });
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        let after = blkio_ns(snapshot.get(pid).expect("it sleeps"));
        assert!(after.is_some_and(|after| after >= all), "{source}");
        drop(script);
        drop(switched);

        let switched = Accounting::switch(false);
        let script = Script::shell("read line");
        let mut collector = open(source, Fields::DELAYS);
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        let process = snapshot.get(script.pid()).expect("it reads");
        assert_eq!(blkio_ns(process), None, "{source}");
        drop(switched);
    }
}
