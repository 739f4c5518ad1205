//! A task that sleeps and is still on a run queue (delayed dequeue, Linux 6.12).

use std::fs;

use fastproc::Fields;
use fastproc_testbed::{alone, gate, needs};

use super::Both;
use crate::walks::script::Script;

/// Two processes that never stop, on two CPUs, and beside them one that has used a little more than its share when it goes to
/// sleep. From 6.12 on it stays on the run queue until its turn comes, and with the policy `SCHED_IDLE` that takes some hundred
/// milliseconds. At a line another of the kind follows, or the one that sleeps is moved from CPU to CPU.
const SLEEPS_ON_THE_QUEUE: &str = r"
import os, signal, sys, time
cpus = sorted(os.sched_getaffinity(0))[:2]
def child(body):
    pid = os.fork()
    if pid == 0:
        try: body()
        finally: os._exit(1)
    return pid
def hog(cpu):
    os.sched_setaffinity(0, {cpu})
    while True: pass
def sleeper():
    os.sched_setaffinity(0, {cpus[0]})
    while time.thread_time() < 0.002: pass
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True: signal.pause()
def state(pid): return open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0]
def waited(pid): return open(f'/proc/{pid}/schedstat').read()
def end(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
hogs = [child(lambda: hog(cpu)) for cpu in cpus]
pid = None
for line in sys.stdin:
    if line == 'next\n':
        if pid: end(pid)
        pid = child(sleeper)
        while state(pid) != 'S': time.sleep(0.001)
        print(pid, flush=True)
    else:
        before = waited(pid)
        for at in range(4):
            os.sched_setaffinity(pid, {cpus[(at + 1) % len(cpus)]})
            time.sleep(0.002)
        print('waited' if waited(pid) != before else 'rested', flush=True)
for pid in hogs + [pid]: end(pid)
";

/// Moving a task that sleeps on a run queue adds to what it waited.
#[test]
fn a_task_that_waits_while_it_sleeps_on_a_run_queue_is_read_again() {
    needs!(gate::bpf());
    let _alone = alone();
    let mut script = Script::python(SLEEPS_ON_THE_QUEUE);
    let mut both = Both::open(Fields::CPU);
    let types = fs::read("/sys/kernel/btf/vmlinux").expect("there is type information");
    let name = b"\0sched_delayed\0";
    let may_wait = types.windows(name.len()).any(|part| part == name)
        && std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    let mut waited = 0;
    for _ in 0..200 {
        script.tell("next");
        let pid = script.answer().parse().expect("a pid");
        // By the second look its words are stored, by the third its record is kept.
        for _ in 0..3 {
            both.keep();
        }
        script.tell("move");
        waited += u32::from(script.answer() == "waited");
        both.agree(pid, "after it was moved");
        if waited == 3 || !may_wait && waited == 0 {
            break;
        }
    }
    if may_wait && waited == 0 {
        // Where a task sleeps, and for how long on a queue, is the scheduler's choice.
        gate::skipped("no task slept on a run queue");
    }
}
