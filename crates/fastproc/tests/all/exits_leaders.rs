//! Exits of processes whose leader exits before their last thread.

use std::{
    os::unix::process::ExitStatusExt,
    process::{Command, ExitStatus},
};

use fastproc::exits::{Exit, Exits};
use fastproc_testbed::{alone, gate, needs, wait_for, wait_until};

use crate::children::{python, read, until_recorded};

/// The leader and another thread work for the same time. The leader exits with status 3. When it is a zombie, the other
/// thread exits in the way that replaces `END`.
const DEAD_LEADER: &str = r"
import ctypes, os, platform, signal, threading, time
def leave(status):
    ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, status)
def work():
    while time.thread_time() < 0.15:
        pass
def last():
    work()
    while open('/proc/self/stat').read().rsplit(')', 1)[1].split()[0] != 'Z':
        time.sleep(0.001)
    END
threading.Thread(target=last).start()
work()
leave(3)
";
const SHARES_NS: u64 = 2 * 150_000_000;

/// The leader's status is not that of the process, if another thread ends the process.
#[test]
fn the_status_of_a_process_whose_leader_ended_first_is_what_its_parent_is_told() {
    needs!(gate::bpf());
    let _alone = alone();
    for end in [
        "os._exit(5)",
        "leave(6)",
        "os.kill(os.getpid(), signal.SIGTERM)",
    ] {
        let judged = (0..20).any(|_| {
            let mut exits = Exits::builder().at_once(true).open().expect("exits open");
            let child = python(&DEAD_LEADER.replace("END", end));
            let (pid, mut told) = (child.id(), None);
            let status = until_recorded(&mut exits, child, |exit| {
                if exit.pid == pid && exit.ppid == Some(std::process::id()) {
                    told = Some(exit.status);
                }
            });
            if told.is_none() {
                gate::repeated("exits were lost");
            }
            told.inspect(|told| assert_eq!(*told, Some(status.into_raw()), "{end}"))
                .is_some()
        });
        assert!(judged, "exits were always lost");
    }
}

/// The exit of a process whose last record was lost, and its status as reported to its parent. `None` if its first
/// record was lost, too.
fn without_last_record() -> Option<(Exit, ExitStatus)> {
    let of_child = |exit: &Exit, pid| exit.pid == pid && exit.ppid == Some(std::process::id());
    let small = Exits::builder().ring_bytes(1 << 18).open();
    let mut exits = small.expect("exits open");
    // It has room for all other exits meanwhile.
    let witness = Exits::builder().ring_bytes(1 << 24).open();
    let mut witness = witness.expect("exits open");
    let mut child = python(&DEAD_LEADER.replace("END", "os._exit(5)"));
    let pid = child.id();
    wait_until("a zombie", || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("our child");
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
        let state = stat.rsplit_once(')').map(|(_, rest)| rest);
        read(&mut exits, |_| {});
        tasks <= 1 && state.is_some_and(|rest| rest.starts_with(" Z"))
    });
    read(&mut exits, |_| {});
    let is_lost = exits.lost() > 0;
    // It is not read until the child is gone.
    while !is_lost && exits.lost() == 0 {
        let shells = Command::new("sh")
            .args(["-c", "for i in $(seq 100); do (:); done"])
            .status();
        assert!(shells.expect("sh runs").success());
    }
    let status = child.wait().expect("our child");
    if is_lost {
        return None;
    }
    wait_until("the kernel to let go of the child", || {
        let mut is_told = false;
        read(&mut witness, |exit| is_told |= of_child(exit, pid));
        is_told
    });
    let exit = wait_for("an exit", || {
        let mut found = None;
        read(&mut exits, |exit| {
            if of_child(exit, pid) {
                found = Some(*exit);
            }
        });
        found
    });
    Some((exit, status))
}

#[test]
fn an_exit_that_is_not_final_has_the_status_and_what_all_threads_did() {
    needs!(gate::bpf());
    let _alone = alone();
    let told = (0..20).find_map(|_| {
        let told = without_last_record();
        if told.is_none() {
            gate::repeated("exits were lost");
        }
        told
    });
    let (exit, status) = told.expect("exits were always lost");
    assert!(!exit.is_final, "{exit:?}");
    assert!(exit.sum_exec_ns >= SHARES_NS, "{exit:?}");
    assert_eq!(exit.status, Some(status.into_raw()), "{exit:?}");
}
