//! A storm of processes that share a pid, beside processes whose leader exits before their last thread.

use std::io::Read;

use fastproc::{
    exits::{Exit, Exits},
    record::TICK_NS,
};
use fastproc_testbed::{alone, gate, needs, wait_until};

use crate::children::{python, read, until_recorded};

/// Families of six that share a pid, each child with its own work, and processes whose leader exits before the last
/// thread. Prints the result of wait4(2) for each: pid, start in ticks, status, CPU time in microseconds.
const STORM: &str = r"
import ctypes, os, platform, struct, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def burn(milliseconds):
    end = time.process_time() + milliseconds / 1000
    while time.process_time() < end:
        pass
def tell(pid):
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    start = open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[19]
    _, status, used = os.wait4(pid, 0)
    print(pid, start, status, round((used.ru_utime + used.ru_stime) * 1e6))
def with_pid(pid, number):
    ids = (ctypes.c_int * 1)(pid)
    args = ctypes.create_string_buffer(struct.pack('10Q', 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(ids), 1))
    made = libc.syscall(435, args, 80)
    if made == 0:
        burn(number)
        os._exit(number)
    return made
def leader_first():
    def last():
        while open('/proc/self/stat').read().rsplit(')', 1)[1].split()[0] != 'Z':
            time.sleep(0.001)
        burn(30)
        os._exit(77)
    pid = os.fork()
    if pid == 0:
        threading.Thread(target=last).start()
        burn(30)
        libc.syscall(60 if platform.machine() == 'x86_64' else 93, 0)
    return pid
for _ in range(20):
    first = os.fork()
    if first == 0:
        os._exit(9)
    tell(first)
    for number in range(5):
        made = with_pid(first, number)
        # Somebody else may have got it meanwhile.
        if made > 0:
            tell(made)
    tell(leader_first())
";

/// A parent's knowledge of a child.
#[derive(Debug)]
struct Waited {
    pid: u32,
    start_ticks: u64,
    status: i32,
    cpu_ns: u64,
}

impl Waited {
    fn parse(line: &str) -> Self {
        let mut values = line
            .split(' ')
            .map(|value| value.parse().expect("a number"));
        let mut next = || -> u64 { values.next().expect("a value") };
        Self {
            pid: next() as u32,
            start_ticks: next(),
            status: next() as i32,
            cpu_ns: next() * 1000,
        }
    }

    fn is(&self, exit: &Exit) -> bool {
        exit.pid == self.pid && exit.start_ns / TICK_NS == self.start_ticks
    }
}

/// The CPU time of a process between its parent's wait4(2) and its last record, plus rounding.
const SLACK_NS: u64 = 2 * TICK_NS;

#[test]
fn a_storm_of_shared_pids_and_dead_leaders_is_as_their_parent_saw_it() {
    needs!(gate::bpf());
    let _alone = alone();
    for _ in 0..20 {
        let mut exits = Exits::builder().at_once(true).open().expect("exits open");
        let mut parent = python(STORM);
        let (pid, mut output) = (parent.id(), parent.stdout.take().expect("a pipe"));
        let mut told = Vec::new();
        until_recorded(&mut exits, parent, |exit| told.push(*exit));
        let mut waited = String::new();
        output.read_to_string(&mut waited).expect("text");
        let waited: Vec<_> = waited.lines().map(Waited::parse).collect();
        assert!(waited.len() >= 40, "{waited:?}");
        // The kernel frees processes in any order.
        wait_until("every exit, or that one is lost", || {
            read(&mut exits, |exit| told.push(*exit));
            // Compare the count: two with the same pid may have started in one tick.
            let ours = told.iter().filter(|exit| exit.ppid == Some(pid));
            ours.count() >= waited.len() || exits.lost() > 0
        });
        // A second record of one of them would come before the exit of this child.
        until_recorded(&mut exits, python("pass"), |exit| told.push(*exit));
        if exits.lost() > 0 {
            gate::repeated("exits were lost");
            continue;
        }
        told.retain(|exit| exit.ppid == Some(pid));
        // In the order in which they were waited for.
        told.sort_by_key(|exit| exit.start_ns);
        assert_eq!(told.len(), waited.len(), "{told:?} of {waited:?}");
        let mut apart = None;
        for waited in &waited {
            let at = told.iter().position(|exit| waited.is(exit));
            let exit = told.remove(at.unwrap_or_else(|| panic!("{waited:?} of {told:?}")));
            assert!(exit.end_ns.is_some(), "{exit:?}");
            assert_eq!(exit.status, Some(waited.status), "{waited:?} {exit:?}");
            let cpu_ns = exit.utime_ns + exit.stime_ns;
            let apart_ns = cpu_ns.abs_diff(waited.cpu_ns);
            // On a busy machine a last record may come too late: it then lacks the time to free memory.
            let slack_ns = if exit.is_final {
                SLACK_NS
            } else {
                2 * SLACK_NS
            };
            if apart_ns > slack_ns {
                apart = Some(format!("{waited:?} {exit:?}"));
            }
        }
        // The time of a virtual CPU that is stopped while a process exits is charged to the process after its parent
        // was notified.
        if let Some(apart) = apart {
            gate::repeated(&apart);
            continue;
        }
        return;
    }
    panic!("exits were always lost, or other times than their parent was told");
}
