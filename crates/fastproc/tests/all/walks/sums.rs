//! Sums over the threads of a process: they are exact for sleeping threads, and include exited ones.

use std::{fs, thread::sleep, time::Duration};

use fastproc::{Fields, SourceKind};
use fastproc_testbed::{alone, gate, needs, wait_for, wait_until};

use super::{SECTIONS, TICK_NS, WALKS, open, open_in_sections, script::Script};

/// Three threads that have each spent some ticks in the kernel, and sleep.
const WORKED: &str = r"
import resource, sys, threading
worked, end = threading.Semaphore(0), threading.Lock()
end.acquire()
def work():
    while resource.getrusage(resource.RUSAGE_THREAD).ru_stime < 0.03:
        open('/proc/self/maps').read()
    worked.release()
    end.acquire()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range(3):
    worked.acquire()
print('rests', flush=True)
sys.stdin.readline()
";

/// Times that the kernel remembers hide nothing here: these numbers are the sources of its times.
#[test]
fn the_sums_of_a_process_are_those_of_its_threads() {
    needs!(gate::bpf());
    for source in WALKS {
        let mut script = Script::python(WORKED);
        script.answer();
        script.wait_until_asleep();
        let pid = script.pid();
        let look = || {
            // The kernel has not shown times yet that must not decrease.
            let mut collector = open(source, Fields::CPU | Fields::THREADS);
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            let process = snapshot.get(pid).expect("it rests");
            assert_eq!(snapshot.source_of(process), source);
            let cpu = process.cpu().expect("it was asked for");
            let sums = [
                cpu.sampled_utime_ns,
                cpu.sampled_stime_ns,
                cpu.sum_exec_ns().expect("a walk knows it"),
                cpu.gtime_ns,
                cpu.minflt,
                cpu.majflt,
            ];
            let threads = snapshot.threads().filter(|thread| thread.tgid == pid);
            (sums, threads.copied().collect::<Vec<_>>())
        };
        // A sleeping thread may be about to leave its CPU.
        let mut before = look().0;
        let (sums, threads) = wait_for("two looks at the same sums", || {
            let now = look();
            let same = now.0 == before;
            before = now.0;
            same.then_some(now)
        });
        assert_eq!(threads.len(), 4, "{source}");
        let sum = threads.iter().fold([0; 6], |sum, thread| {
            let one = [
                thread.sampled_utime_ns,
                thread.sampled_stime_ns,
                thread.sum_exec_ns().expect("a walk knows it"),
                thread.gtime_ns,
                thread.minflt,
                thread.majflt,
            ];
            std::array::from_fn(|at| sum[at] + one[at])
        });
        assert_eq!(sums, sum, "{source}: {threads:?}");
        for thread in &threads {
            let worked = thread.tid != pid;
            assert!(!worked || thread.sampled_stime_ns > 0, "{thread:?}");
            let text = script.stat(thread.tid);
            let (_, values) = text.rsplit_once(')').expect("a name");
            let ticks = values.split(' ').skip(12).take(2).map(str::parse);
            let ours = [thread.utime_ns, thread.stime_ns].map(|time| Ok(time / TICK_NS));
            assert!(ticks.eq(ours), "{source}: {thread:?}, {text}");
        }
    }
}

/// A thousand threads that have read 64 KiB each, and exit at a line, the youngest first.
const ENDING: &str = r"
import _thread, os, sys, threading
zeros, worked = os.open('/dev/zero', os.O_RDONLY), threading.Semaphore(0)
def work(go):
    os.read(zeros, 1 << 16)
    worked.release()
    go.acquire()
locks = [_thread.allocate_lock() for _ in range(1000)]
for go in locks:
    go.acquire()
    _thread.start_new_thread(work, (go,))
for _ in locks:
    worked.acquire()
print('rests', flush=True)
sys.stdin.readline()
for go in reversed(locks):
    go.release()
sys.stdin.readline()
";

/// The share of a thread that exits between reading the sum of dead threads and reading the living ones is larger than
/// everything that is added meanwhile.
#[test]
fn sums_do_not_fall_while_threads_end() {
    needs!(gate::bpf());
    let _alone = alone();
    for sections in SECTIONS {
        let mut collector = open_in_sections(sections, Fields::IO);
        // If a walk pauses after every thread, most walks see some exit.
        let rounds = if sections.1.is_some() { 5 } else { 2 };
        for round in 0..rounds {
            let mut script = Script::python(ENDING);
            script.answer();
            let pid = script.pid();
            let io =
                fs::read_to_string(format!("/proc/{pid}/io")).expect("/proc shows the process");
            let rchar = io.lines().find_map(|line| line.strip_prefix("rchar: "));
            let mut least: u64 = rchar
                .and_then(|value| value.parse().ok())
                .expect("a number");
            assert!(least >= 1000 << 16, "each has read");
            script.tell("end");
            wait_until("all threads but the first to end", || {
                let snapshot = collector.snapshot().expect("a snapshot can be made");
                let process = snapshot.get(pid).expect("the process is shown");
                let ours = process.io().expect("it was asked for").rchar;
                assert!(
                    ours >= least,
                    "{sections:?}, round {round}: {ours} after {least}"
                );
                least = ours;
                process.identity().num_threads == 1
            });
        }
    }
}

/// Changes its credentials all the time, so that walks often read it again.
const CHANGES_USERS: &str = r"
import os, select
os.nice(-20)
print('changes', flush=True)
while not select.select([0], [], [], 0)[0]:
    for _ in range(1000):
        os.setresuid(0, 1, 0)
        os.setresuid(0, 0, 0)
";

/// Its run time is the sum of its user and system time, however often the walk had to read it again.
#[test]
fn a_process_that_is_read_again_shows_all_that_it_has_run() {
    needs!(gate::bpf());
    let _alone = alone();
    let mut script = Script::python(CHANGES_USERS);
    script.answer();
    let pid = script.pid();
    // The more is read between the two readings of its credentials, the more often they are replaced meanwhile.
    let fields =
        Fields::CPU | Fields::MEMORY_DETAILS | Fields::LAYOUT | Fields::USERS | Fields::CREDENTIALS;
    let mut collector = open(SourceKind::Bpf, fields);
    let mut from_walk = 0;
    for _ in 0..100 {
        // The kernel counts its run time at its next tick, at most 10 ms later.
        sleep(Duration::from_millis(10));
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        let process = snapshot.get(pid).expect("it runs until its input ends");
        let cpu = process.cpu().expect("it was asked for");
        // Its text lacks the run time.
        let Some(ran_ns) = cpu.sum_exec_ns() else {
            continue;
        };
        from_walk += 1;
        assert!(cpu.utime_ns + cpu.stime_ns >= ran_ns, "{cpu:?}");
    }
    assert!(from_walk > 0, "all were read from the text");
}
