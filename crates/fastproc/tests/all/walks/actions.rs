//! Signal actions of a process that changes them between two snapshots.

use std::fs;

use fastproc::{Fields, Process};
use fastproc_testbed::{gate, needs};

use super::{WALKS, open, script::Script};

const CHANGES: &str = r"
import signal, sys
actions = {'default': signal.SIG_DFL, 'ignore': signal.SIG_IGN, 'catch': lambda *_: None}
print('begins', flush=True)
for line in sys.stdin:
    signal.signal(signal.SIGUSR1, actions[line.strip()])
    print(line.strip(), flush=True)
";

/// The second snapshot reads the actions of an idle process again only if it has run since the first.
#[test]
fn signal_actions_that_changed_between_two_looks_are_read_anew() {
    needs!(gate::bpf());
    for source in WALKS {
        let mut script = Script::python(CHANGES);
        let mut collector = open(source, Fields::SIGNALS);
        script.answer();
        for round in 0..5 {
            for action in ["ignore", "catch", "default"] {
                script.tell(action);
                assert_eq!(script.answer(), action);
                script.wait_until_asleep();
                for look in 0..2 {
                    let snapshot = collector.snapshot().expect("a snapshot can be made");
                    let signals = snapshot.get(script.pid()).and_then(Process::signals);
                    let signals = signals.expect("it rests");
                    let ours = [signals.ignored, signals.caught];
                    let usr1 = ours.map(|set| set >> (libc::SIGUSR1 - 1) & 1 == 1);
                    let about = format!("{source}, round {round}, look {look}: {action}");
                    assert_eq!(usr1, [action == "ignore", action == "catch"], "{about}");
                    assert_eq!(ours, in_status(script.pid()), "{about}");
                }
            }
        }
    }
}

/// The ignored and the caught signals according to the kernel.
fn in_status(pid: u32) -> [u64; 2] {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it rests");
    ["SigIgn:\t", "SigCgt:\t"].map(|name| {
        let set = text.lines().find_map(|line| line.strip_prefix(name));
        let set = set.and_then(|set| u64::from_str_radix(set, 16).ok());
        set.expect("a set of signals")
    })
}
