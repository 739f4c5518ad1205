//! Whose guarded values a reader is shown: those of the processes whose files the kernel lets it read.

use std::{collections::BTreeSet, fs, process::Command};

use crate::common::{Served, become_user, in_child};
use fastproc::Fields;
use fastproc_testbed::{Brackets, Options, Testbed, gate, needs, wait_until};

const NOBODY: u32 = 65534;

/// The owners of a process's files, and the users of the process.
fn users(pid: u32) -> Vec<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).expect("it lives as long as the testbed");
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let numbers = line.expect("a line").split_ascii_whitespace();
    numbers.map(|id| id.parse().expect("a number")).collect()
}

/// Whether the kernel lets this process read the I/O counters of another, and the memory with its environment.
fn kernel(pid: u32) -> [bool; 2] {
    let file = |name: &str| format!("/proc/{pid}/{name}");
    [
        fs::read(file("io")).is_ok(),
        fs::File::open(file("environ")).is_ok(),
    ]
}

#[test]
fn each_user_is_shown_what_the_kernel_lets_it_read_of_every_odd_process() {
    needs!(gate::bpf());
    let testbed = Testbed::open(&Options::default()).expect("the testbed opens");
    let served = Served::start("access", None);
    let pids: Vec<u32> = testbed.processes().iter().map(|odd| odd.pid).collect();
    let mut readers: BTreeSet<u32> = pids.iter().flat_map(|&pid| users(pid)).collect();
    readers.insert(NOBODY);
    assert!(readers.len() > 2, "processes of other users are missing");
    for reader in readers {
        in_child(|| {
            become_user(reader);
            let mut own = Command::new("sleep").arg("1000").spawn().expect("sleep(1)");
            let comm = format!("/proc/{}/comm", own.id());
            wait_until("the program", || {
                fs::read(&comm).is_ok_and(|comm| comm == b"sleep\n")
            });
            let builder = served.builder().fields(Fields::IO | Fields::LAYOUT);
            let mut collector = builder.open().expect("the service answers");
            let mut brackets = Brackets::new();
            for &pid in pids.iter().chain([&own.id()]) {
                let compared = brackets.read(
                    || kernel(pid),
                    || {
                        let snapshot = collector.snapshot().expect("the service answers");
                        let process = snapshot.get(pid).expect("it is shown");
                        let shown = [process.io().is_some(), process.layout().is_some()];
                        // Zombies have nothing to read; which of their files may be opened differs between kernels.
                        (process.identity().has_mm != 0).then_some(shown)
                    },
                );
                if let Some((readable, Some(shown))) = compared {
                    assert_eq!(shown, readable, "{pid} as {reader}");
                    assert!(pid != own.id() || readable == [true; 2], "its own");
                }
            }
            own.kill().and_then(|()| own.wait()).expect("it is a child");
            brackets.finish(90);
        })
        .join();
    }
}
