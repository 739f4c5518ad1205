//! How long threads waited for a CPU: what schedstat of each thread says, and what exited ones have left.

use std::fs;

use fastproc::{Fields, Process, Snapshot};
use fastproc_testbed::{alone, gate, needs, wait_for, wait_until};

use super::{WALKS, open, script::Script};

/// Four threads that wait for one CPU until each has waited for 20 ms and has had it a hundred times; then they sleep.
pub const WAITED: &str = r"
import ctypes, hashlib, os, sys, threading
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
data, waited, end = bytes(1 << 18), threading.Semaphore(0), threading.Semaphore(0)
def work():
    while True:
        hashlib.sha256(data)
        run, delay, slices = map(int, open('/proc/thread-self/schedstat').read().split())
        if delay > 20_000_000 and slices > 100: break
    waited.release()
    end.acquire()
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for _ in threads: waited.acquire()
print('rests', flush=True)
";

/// At a line the threads exit, and the first one sleeps.
pub const THREADS_EXIT: &str = r"
sys.stdin.readline()
for _ in threads: end.release()
for thread in threads: thread.join()
print('alone', flush=True)
sys.stdin.readline()
";

/// The first thread exits, and the others sleep until the input ends.
const LEADER_EXITS: &str = r"
def wait_for_end():
    sys.stdin.readline()
    os._exit(0)
threading.Thread(target=wait_for_end).start()
# SYS_exit: pthread_exit(3) would unwind the interpreter
ctypes.CDLL(None).syscall({'x86_64': 60}.get(os.uname().machine, 93), 0)
";

/// Run delay and timeslices.
type Waits = (u64, u64);

fn of_process(process: Process<'_>) -> Option<Waits> {
    let cpu = process.cpu()?;
    Some((cpu.run_delay_ns()?, cpu.timeslices()?))
}

/// Those of each thread, as the kernel shows them.
fn texts(script: &Script) -> Vec<(u32, Waits)> {
    let mut threads = script.threads();
    threads.sort_unstable();
    let text = |tid| fs::read_to_string(format!("/proc/{}/task/{tid}/schedstat", script.pid()));
    let of = |tid| {
        let text = text(tid).expect("no thread ends");
        let numbers: Vec<u64> = text
            .split_whitespace()
            .map(|number| number.parse().expect("a number"))
            .collect();
        (tid, (numbers[1], numbers[2]))
    };
    threads.into_iter().map(of).collect()
}

fn sum(waits: &[(u32, Waits)]) -> Waits {
    waits
        .iter()
        .fold((0, 0), |sum, (_, waits)| (sum.0 + waits.0, sum.1 + waits.1))
}

fn of_threads(snapshot: &Snapshot<'_>, pid: u32) -> Vec<(u32, Waits)> {
    let threads = snapshot.threads().filter(|thread| thread.tgid == pid);
    let mut waits: Vec<_> = threads
        .map(|thread| {
            let waits = thread.run_delay_ns().zip(thread.timeslices());
            (thread.tid, waits.expect("the kernel counts"))
        })
        .collect();
    waits.sort_unstable();
    waits
}

/// Whether the kernel keeps what exited threads waited: it has the type of delay accounting.
pub fn keeps() -> bool {
    let types = fs::read("/sys/kernel/btf/vmlinux").expect("there is type information");
    let name = b"\0task_delay_info\0";
    types.windows(name.len()).any(|part| part == name)
}

#[test]
fn every_thread_waited_as_long_as_schedstat_says() {
    needs!(gate::bpf());
    let mut script = Script::python(&format!("{WAITED}{THREADS_EXIT}"));
    script.answer();
    script.wait_until_asleep();
    for source in WALKS {
        let mut collector = open(source, Fields::CPU | Fields::THREADS);
        // A sleeping thread may be about to leave its CPU.
        let (text, ours, process) = wait_for("a look between two equal texts", || {
            let before = texts(&script);
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            let process = snapshot.get(script.pid()).expect("it sleeps");
            assert_eq!(snapshot.source_of(process), source);
            let ours = of_threads(&snapshot, script.pid());
            let process = of_process(process);
            (texts(&script) == before).then_some((before, ours, process))
        });
        assert_eq!(text.len(), 5);
        assert!(
            text.iter()
                .filter(|(_, waits)| waits.0 > 20_000_000)
                .count()
                >= 4
        );
        assert_eq!(ours, text, "{source}");
        assert_eq!(process, Some(sum(&text)), "{source}");
    }
}

#[test]
fn exited_threads_leave_their_waits_in_the_sum() {
    needs!(gate::bpf());
    for source in WALKS {
        let mut script = Script::python(&format!("{WAITED}{THREADS_EXIT}"));
        script.answer();
        script.wait_until_asleep();
        let before = sum(&texts(&script));
        script.tell("exit");
        script.answer();
        wait_until("all threads but the first to be gone", || {
            script.threads().len() == 1
        });
        script.wait_until_asleep();
        let mut collector = open(source, Fields::CPU);
        let snapshot = collector.snapshot().expect("a snapshot can be made");
        let process = snapshot.get(script.pid()).expect("it sleeps");
        assert_eq!(snapshot.source_of(process), source);
        let (delay_ns, timeslices) = of_process(process).expect("the kernel counts");
        if keeps() {
            assert!(delay_ns >= before.0 && timeslices >= before.1, "{source}");
            // Each thread is woken to exit, and at most switched some times meanwhile.
            assert!(timeslices < before.1 * 3 / 2, "{source}: twice");
        } else {
            assert_eq!((delay_ns, timeslices), sum(&texts(&script)), "{source}");
        }
    }
}

/// The kernel keeps what it waited already, and still lists it.
#[test]
fn a_leading_thread_that_has_exited_is_counted_once() {
    needs!(gate::bpf());
    let _alone = alone();
    for source in WALKS {
        let mut script = Script::python(&format!("{WAITED}{LEADER_EXITS}"));
        script.answer();
        let is_dead = || script.stat(script.pid()).contains(") Z ");
        wait_until("the leading thread to exit", is_dead);
        let mut collector = open(source, Fields::CPU);
        let (text, ours) = wait_for("a look between two equal texts", || {
            let before = texts(&script);
            let snapshot = collector.snapshot().expect("a snapshot can be made");
            let process = snapshot.get(script.pid()).expect("others live");
            assert_eq!(snapshot.source_of(process), source);
            let ours = of_process(process).expect("the kernel counts");
            (texts(&script) == before).then_some((before, ours))
        });
        let all = sum(&text);
        let leader = text.iter().find(|(tid, _)| *tid == script.pid());
        let others_ns = all.0 - leader.expect("it is listed").1.0;
        // It may have waited some times more after the kernel had kept what it waited.
        assert!(ours.0 <= all.0 && ours.1 <= all.1, "{source}: twice");
        assert!(ours.0 >= others_ns && ours.1 + 5 >= all.1, "{source}");
    }
}
