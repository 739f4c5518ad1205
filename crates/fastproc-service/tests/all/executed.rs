//! What is kept of a process is not shown for the program that one of its threads executes. That thread takes the
//! leader's place, with its pid and start, and may have been switched as often.

use std::{collections::BTreeSet, fs, thread, time::Duration};

use crate::common::Served;
use fastproc::{Fields, SourceKind, Texts};
use fastproc_testbed::{Change, Changing, gate, needs, wait_until};

/// How often the process has executed a program, and the signals that it catches.
fn of_proc(pid: u32) -> Option<(u64, u64)> {
    let count = count(&fs::read(format!("/proc/{pid}/cmdline")).ok()?)?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:\t"))?;
    Some((count, u64::from_str_radix(caught, 16).ok()?))
}

fn count(cmdline: &[u8]) -> Option<u64> {
    let last = cmdline.strip_suffix(b"\0")?.rsplit(|&byte| byte == 0);
    std::str::from_utf8(last.into_iter().next()?)
        .ok()?
        .parse()
        .ok()
}

#[test]
fn a_program_that_a_thread_executes_is_shown_at_once() {
    needs!(gate::bpf());
    let served = Served::start("executed", Some(SourceKind::Bpf));
    let changing = Changing::start(Change::Program).expect("a process can be started");
    let pid = changing.pid();
    let builder = served
        .builder()
        .fields(Fields::SIGNALS)
        .texts(Texts::CMDLINE);
    let builder = builder.texts_max_age(Duration::from_secs(3600));
    let mut collector = builder.open().expect("the service answers");
    let (mut round, mut lines, mut signals) = (0, 0, 0);
    let mut programs = BTreeSet::new();
    let mut look = || {
        // Long enough that the service may see nothing between two idle periods.
        thread::sleep(Duration::from_millis(round % 30));
        round += 1;
        let before = of_proc(pid);
        let snapshot = collector.snapshot().expect("the service answers");
        let process = snapshot.get(pid);
        let line = process.and_then(fastproc::Process::served_cmdline);
        let shown = line.and_then(count);
        let caught = process.and_then(|process| Some(process.signals()?.caught));
        let (Some(before), Some(after)) = (before, of_proc(pid)) else {
            return (lines, signals, programs.len());
        };
        if let Some(shown) = shown {
            let possible = before.0..=after.0;
            assert!(possible.contains(&shown), "{shown} of {possible:?}");
            lines += 1;
            programs.insert(shown);
        }
        if before == after {
            assert_eq!(caught, Some(after.1), "of program {}", after.0);
            signals += 1;
        }
        (lines, signals, programs.len())
    };
    // In steps, so that each has the time limit.
    for step in 1..=10 {
        wait_until("command lines and signals that can be judged", || {
            let (lines, signals, programs) = look();
            lines >= 10 * step && signals >= 10 * step && programs >= 2 * step
        });
    }
}
