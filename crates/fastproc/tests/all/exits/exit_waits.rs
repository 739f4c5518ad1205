//! How long exited processes waited for a CPU.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use fastproc::exits::{Event, Exit, Exits};
use fastproc_testbed::{gate, needs, wait_for_state};

use super::{AMPLE, is_child, watch};
use crate::walks::waits::{THREADS_EXIT, WAITED, keeps};

/// Run delay and timeslices of a thread, as the kernel shows them.
fn text_of(pid: u32, tid: u32) -> Option<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).ok()?;
    let mut numbers = text.split_whitespace().skip(1).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn exit_of(exits: &mut Exits, pid: u32) -> Exit {
    let mut exit = None;
    watch(exits, pid, |event| match event {
        Event::Exit(now) if is_child(now, pid) => exit = Some(*now),
        _ => {}
    });
    exit.expect("it was waited for")
}

#[test]
fn an_exited_process_waited_as_long_as_its_zombie_shows() {
    needs!(gate::bpf());
    let builder = Exits::builder().ring_bytes(AMPLE).at_once(true);
    let mut exits = builder.open().expect("exits open");
    let script = "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .spawn()
        .expect("sh runs");
    let pid = child.id();
    wait_for_state(pid, 'Z');
    let (delay_ns, timeslices) = text_of(pid, pid).expect("a zombie");
    let exit = exit_of(&mut exits, pid);
    let _ = child.try_wait();
    let ours = exit.run_delay_ns.zip(exit.timeslices);
    let ours = ours.expect("the kernel counts");
    // It may not have left its CPU for the last time when it is a zombie.
    if ours.1 == timeslices {
        assert_eq!(ours.0, delay_ns);
    } else {
        assert_eq!(ours.1, timeslices + 1);
        assert!(ours.0 >= delay_ns);
    }
}

#[test]
fn an_exited_process_has_what_all_its_threads_waited() {
    needs!(gate::bpf());
    let builder = Exits::builder().ring_bytes(AMPLE).at_once(true);
    let mut exits = builder.open().expect("exits open");
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", &format!("{WAITED}{THREADS_EXIT}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let pid = child.id();
    let output = child.stdout.take().expect("it is piped");
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .expect("it prints");
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it rests");
    let texts = threads.filter_map(|entry| {
        let tid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        text_of(pid, tid)
    });
    let before = texts.fold((0, 0), |sum, text| (sum.0 + text.0, sum.1 + text.1));
    assert!(before.0 > 30_000_000, "three have waited: {before:?}");
    drop(child.stdin.take());
    let exit = exit_of(&mut exits, pid);
    let _ = child.try_wait();
    let ours = exit.run_delay_ns.zip(exit.timeslices);
    if keeps() {
        let ours = ours.expect("the kernel keeps them");
        assert!(ours.0 >= before.0 && ours.1 >= before.1);
        assert!(ours.1 < before.1 * 3 / 2, "twice: {ours:?}, {before:?}");
    } else {
        assert_eq!(ours, None, "{exit:?}");
    }
}
