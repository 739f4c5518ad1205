//! Every exited process is recorded once, with the values that the kernel reports to its parent.

mod exit_lines;
mod exit_waits;

use std::{
    collections::{HashMap, HashSet},
    process::{Command, Stdio},
    time::Duration,
};

use fastproc::{
    Baseline, Collector, Error, Fields,
    difference::Counter,
    exits::{Event, Exit, Exits},
};
use fastproc_testbed::{Cgroup, alone, gate, name_of, needs, wait_until};

/// If pids are reused quickly, another process may have had this one, and its last record may come late.
fn is_child(exit: &Exit, pid: u32) -> bool {
    exit.pid == pid && exit.ppid == Some(std::process::id())
}

/// Waits until a child has exited and its exit has arrived. Reads all the time: during a storm of exits, a ring that is
/// not read is soon full.
fn watch(exits: &mut Exits, pid: u32, mut each: impl FnMut(&Event<'_>)) -> (i32, Usage) {
    let waiting = std::thread::spawn(move || wait4(pid));
    let mut has_ended = false;
    wait_until("the exit of a child", || {
        exits
            .wait(Duration::from_millis(20))
            .expect("it can be waited for");
        exits
            .read(|event| {
                has_ended |= matches!(&event, Event::Exit(exit) if is_child(exit, pid));
                each(&event);
            })
            .expect("the ring can be read");
        has_ended && waiting.is_finished()
    });
    waiting.join().expect("it can be waited for")
}

/// Reads until a child that is started now has exited: earlier events have arrived by then.
fn read_to_a_mark(exits: &mut Exits, each: impl FnMut(&Event<'_>)) {
    let mut mark = Command::new("true").spawn().expect("true runs");
    watch(exits, mark.id(), each);
    let _ = mark.try_wait();
}

/// The parent may be notified before the child has left its CPU for the last time, which is one more switch.
const LAST_SWITCH: u64 = 1;
/// Two times in whole microseconds lack up to one each.
const ROUNDED_US: u64 = 2;
/// The CPU time of two ticks, in which a process leaves its CPU.
const TICKS_US: u64 = 20_000;

#[test]
fn an_exit_has_the_values_that_its_parent_is_told() {
    needs!(gate::bpf());
    let builder = Exits::builder().ring_bytes(AMPLE).at_once(true);
    let mut exits = builder.open().expect("exits open");
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 7";
    let mut exact = 0;
    for round in 0..ROUNDS {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .spawn()
            .expect("sh runs");
        let pid = child.id();
        let mut exit = None;
        let (status, usage) = watch(&mut exits, pid, |event| match event {
            Event::Exit(now) if is_child(now, pid) => exit = Some(*now),
            _ => {}
        });
        let _ = child.try_wait();
        let exit = exit.expect("it was waited for");
        assert_eq!(exit.tid, pid);
        assert_eq!(exit.status, Some(status));
        if exit.is_final && is_what_the_parent_is_told(&exit, &usage) {
            exact += 1;
        } else {
            gate::repeated(&format!(
                "round {round}: the last record of {pid} is missing, or it ran on: {exit:?}"
            ));
        }
    }
    // A sandbox may keep programs from running where the kernel frees a process; its exit is then not final.
    assert!(exact * 2 > ROUNDS, "{exact} of {ROUNDS} exits are exact");
}

const ROUNDS: usize = 10;
/// A ring with room for all exits while this process is stopped.
const AMPLE: u32 = 1 << 24;

/// Compares an exit with what wait4(2) told. Returns false if the process ran on after that, to its last switch.
fn is_what_the_parent_is_told(exit: &Exit, usage: &Usage) -> bool {
    let read_ns = boottime_ns();
    assert_eq!(exit.code(), Some(7));
    assert_eq!(exit.signal(), None);
    assert_eq!(exit.comm(), b"sh");
    assert_eq!(exit.ppid, Some(std::process::id()));
    assert_eq!(exit.uid, 0);
    assert!([usage.nvcsw, usage.nvcsw + LAST_SWITCH].contains(&exit.nvcsw));
    // After its exit it still runs, to free its resources.
    let most_ns = read_ns - exit.start_ns;
    assert!(exit.sum_exec_ns <= most_ns + most_ns / 100, "{exit:?}");
    let life = exit.lifetime().expect("it was there when it ended");
    assert!(life <= Duration::from_nanos(most_ns), "{exit:?}");
    assert_eq!(exit.minflt, usage.minflt);
    assert_eq!(exit.majflt, usage.majflt);
    assert_eq!(exit.peak_rss, usage.peak_rss);
    // getrusage shows whole microseconds.
    let cpu_us = (exit.utime_ns / 1000, exit.stime_ns / 1000);
    let told_us = (usage.utime_us, usage.stime_us);
    let ran_on_us = (cpu_us.0 + cpu_us.1 + ROUNDED_US).checked_sub(told_us.0 + told_us.1);
    let ran_on_us = ran_on_us.unwrap_or_else(|| panic!("{exit:?} of {told_us:?}"));
    assert!(ran_on_us < TICKS_US, "{exit:?} of {told_us:?}");
    (exit.nvcsw, exit.nivcsw, cpu_us) == (usage.nvcsw, usage.nivcsw, told_us)
}

fn boottime_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The result of getrusage(2) for a child that was waited for.
struct Usage {
    utime_us: u64,
    stime_us: u64,
    minflt: u64,
    majflt: u64,
    nvcsw: u64,
    nivcsw: u64,
    peak_rss: u64,
}

fn wait4(pid: u32) -> (i32, Usage) {
    let mut status = 0;
    // SAFETY: every bit pattern of these integers is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the right types.
    let waited = unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) };
    assert_eq!(waited, pid as libc::pid_t, "the child can be waited for");
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    let usage = Usage {
        utime_us: us(usage.ru_utime),
        stime_us: us(usage.ru_stime),
        minflt: usage.ru_minflt as u64,
        majflt: usage.ru_majflt as u64,
        nvcsw: usage.ru_nvcsw as u64,
        nivcsw: usage.ru_nivcsw as u64,
        peak_rss: usage.ru_maxrss as u64 * 1024,
    };
    (status, usage)
}

/// Starts children and waits for each, and returns their pids.
fn children(count: usize) -> Vec<u32> {
    let run = |_| {
        let mut child = Command::new("true").spawn().expect("true runs");
        let pid = child.id();
        child.wait().expect("it ends");
        pid
    };
    (0..count).map(run).collect()
}

#[test]
fn every_process_is_recorded_once_and_the_ring_grows() {
    needs!(gate::bpf());
    let _alone = alone();
    // Room for about 200 exits; a quarter of that wakes the reader.
    let mut exits = Exits::builder()
        .ring_bytes(1 << 16)
        .open()
        .expect("exits open");
    let storm = std::thread::spawn(|| children(1500));
    let mut seen: HashMap<(u32, u64), u32> = HashMap::new();
    let count = |event: &Event<'_>, seen: &mut HashMap<(u32, u64), u32>| {
        if let Event::Exit(exit) = event {
            *seen.entry((exit.pid, exit.start_ns)).or_default() += 1;
        }
    };
    let collect = |exits: &mut Exits, seen: &mut HashMap<(u32, u64), u32>| {
        exits
            .wait(Duration::from_millis(10))
            .expect("it can be waited for");
        exits
            .read(|event| count(&event, seen))
            .expect("the ring can be read");
    };
    while !storm.is_finished() {
        // Slower than the storm, so that the ring becomes full.
        std::thread::sleep(Duration::from_millis(60));
        collect(&mut exits, &mut seen);
    }
    let pids = storm.join().expect("the storm ends");
    // The kernel frees a process some time after it was waited for.
    let missing = |seen: &HashMap<(u32, u64), u32>| {
        let known: HashSet<u32> = seen.keys().map(|(pid, _)| *pid).collect();
        pids.iter().filter(|pid| !known.contains(pid)).count() as u64
    };
    wait_until("every exit, or that it is lost", || {
        collect(&mut exits, &mut seen);
        missing(&seen) <= exits.lost()
    });
    // Records that come twice have arrived by then.
    for _ in 0..2 {
        read_to_a_mark(&mut exits, |event| count(event, &mut seen));
    }
    let lost = exits.lost();
    let grown = exits.ring_bytes() > 1 << 16;
    assert!(
        seen.values().all(|&times| times == 1),
        "no process ends twice"
    );
    assert!(grown || lost == 0, "it loses what there was room for");
}

#[test]
fn lost_exits_are_counted() {
    needs!(gate::bpf());
    let mut exits = Exits::builder()
        .ring_bytes(4096)
        .open()
        .expect("exits open");
    let pids = children(60);
    wait_until("twenty lost exits", || exits.lost() >= 20);
    let (mut seen, mut missing) = (HashSet::new(), 0);
    // The kernel frees a process some time after it was waited for.
    wait_until("every exit, or that it is lost", || {
        exits
            .read(|event| {
                if let Event::Exit(exit) = event {
                    seen.insert(exit.pid);
                }
            })
            .expect("the ring can be read");
        missing = pids.iter().filter(|pid| !seen.contains(pid)).count() as u64;
        missing <= exits.lost()
    });
    assert!(missing > 0, "4 KiB have no room for 60 exits");
}

/// Runs the tests above in a pid namespace, while processes exit outside.
#[test]
fn in_a_pid_namespace_its_own_exits_are_recorded() {
    needs!(gate::bpf(), gate::programs(&["unshare"]));
    let test = std::env::current_exe().expect("/proc shows this program");
    let names = [
        name_of(an_exit_has_the_values_that_its_parent_is_told),
        name_of(every_process_is_recorded_once_and_the_ring_grows),
        name_of(inside_nobody_else_is_recorded),
    ];
    let mut inside = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--kill-child", "--"])
        .arg(test)
        .args(names)
        .args(["--exact", "--include-ignored", "--test-threads=1"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare runs");
    while inside.try_wait().expect("our child").is_none() {
        children(5);
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = inside.wait_with_output().expect("its output");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("3 passed"), "{text}");
}

#[test]
#[ignore = "in_a_pid_namespace_its_own_exits_are_recorded runs it"]
fn inside_nobody_else_is_recorded() {
    let builder = Exits::builder().ring_bytes(AMPLE).execs(true);
    let mut exits = builder.open().expect("exits open");
    let (own, mut ended, mut executed) = (std::process::id(), HashSet::new(), HashSet::new());
    let mut started: HashSet<u32> = children(20).into_iter().collect();
    let mut note = |event: &Event<'_>| match event {
        Event::Exit(exit) => {
            assert_eq!(exit.ppid, Some(own), "{exit:?}");
            ended.insert(exit.pid);
        }
        Event::Exec(exec) => {
            assert_eq!(exec.ppid, own, "{exec:?}");
            executed.insert(exec.pid);
        }
        _ => {}
    };
    for _ in 0..2 {
        let mut mark = Command::new("true").spawn().expect("true runs");
        started.insert(mark.id());
        watch(&mut exits, mark.id(), &mut note);
        let _ = mark.try_wait();
    }
    assert_eq!(exits.lost(), 0);
    assert!(started.is_superset(&ended), "{ended:?}, {started:?}");
    assert!(started.is_superset(&executed), "{executed:?}, {started:?}");
    assert!(executed.len() > 20, "{executed:?}");
    // Threads have lost their numbers when the kernel frees them.
    let threads = Exits::builder().threads(true).open();
    assert!(matches!(threads, Err(Error::NestedThreads)), "{threads:?}");
}

/// The leader exits first, a thread continues and calls execve: all this is one process, which exits once.
#[test]
fn a_process_of_threads_ends_once_with_the_sum_of_all() {
    needs!(gate::bpf());
    let script = r#"
import os, threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
threads = [threading.Thread(target=burn, args=(0.05,)) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
threading.Thread(target=lambda: os.execv("/bin/sh", ["sh", "-c", "exit 3"])).start()
time.sleep(600)
"#;
    let mut exits = Exits::builder()
        .ring_bytes(AMPLE)
        .threads(true)
        .execs(true)
        .at_once(true)
        .open()
        .expect("exits open");
    let mut child = Command::new("/usr/bin/python3")
        .args(["-c", script])
        .spawn()
        .expect("python3 runs");
    let pid = child.id();
    let (mut ended, mut threads, mut paths) = (Vec::new(), HashSet::new(), Vec::new());
    let mut sort = |event: &Event<'_>| match event {
        Event::Exit(exit) if is_child(exit, pid) => ended.push(*exit),
        Event::ThreadExit(exit) if exit.pid == pid => {
            threads.insert(exit.tid);
        }
        Event::Exec(exec) if exec.pid == pid => paths.push(exec.path.to_vec()),
        _ => {}
    };
    let (status, usage) = watch(&mut exits, pid, &mut sort);
    let _ = child.try_wait();
    // No more may come after that.
    read_to_a_mark(&mut exits, &mut sort);
    assert_eq!(ended.len(), 1, "{ended:?}");
    let exit = ended[0];
    assert_eq!(
        (exit.status, exit.code(), exit.comm()),
        (Some(status), Some(3), &b"sh"[..])
    );
    assert!(exit.utime_ns + exit.stime_ns >= 200_000_000, "{exit:?}");
    if exit.is_final {
        let told_at_the_end = exit.nvcsw == usage.nvcsw;
        assert!(told_at_the_end || exit.nvcsw == usage.nvcsw + LAST_SWITCH);
        assert!(!told_at_the_end || exit.utime_ns / 1000 == usage.utime_us);
    }
    // Some of the four threads that used the CPU, and the old leader, by the id that it had after the exec. Not all: a
    // sandbox may keep programs from running where the kernel frees a thread.
    assert!(!threads.is_empty());
    assert!(!threads.contains(&pid));
    assert!(paths.iter().any(|path| path == b"/bin/sh"), "{paths:?}");
}

/// Snapshots and the exits between them account for all CPU time of a cgroup, although each of its processes is
/// short-lived.
#[test]
fn snapshots_and_exits_account_for_all_that_was_used() {
    needs!(gate::bpf());
    let Some(cgroup) = Cgroup::new("exits") else {
        return;
    };
    let _alone = alone();
    // Other exits may fill the ring while this process is stopped; and a virtual CPU may be stopped while a process
    // runs before it is in the cgroup, or after its parent has waited for it.
    for _ in 0..3 {
        match account(&cgroup) {
            Ok(()) => return,
            Err(why) => gate::repeated(&why),
        }
    }
    panic!("exits are lost each time, or not all is accounted for");
}

/// A shell, seq(1), and three in each iteration.
const PROCESSES: usize = 2 + 3 * 120;

/// Compares the CPU time of snapshots and exits with that of the cgroup. An error describes the difference, or says
/// that exits were lost, so that they cannot be compared.
fn account(cgroup: &Cgroup) -> Result<(), String> {
    let used_before_ns = cgroup.usage_ns();
    let fields = Fields::CPU | Fields::CGROUP;
    let builder = Collector::builder().service_socket(None).fields(fields);
    let mut collector = builder
        .exits(true)
        .exit_cmdlines(true)
        .open()
        .expect("a collector opens");
    assert!(
        collector.exits_refused().is_none(),
        "{:?}",
        collector.exits_refused()
    );
    let mut before = Baseline::default();
    before.set(&collector.snapshot().expect("a snapshot"));
    // Hundreds of short-lived processes, also in subshells that only fork, and one that lives all the time.
    let work = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done";
    let script = format!(
        "for n in $(seq 120); do sh -c '{work}; :' unmistakable; ({work}); /bin/true; done; exit 0"
    );
    let mut child = cgroup.command(&script).spawn().expect("sh runs");
    let id = cgroup.id();
    let waiting = std::thread::spawn(move || child.wait());
    let (mut known_ns, mut ended, mut final_ones, mut lost) = (0_u64, 0, 0, 0);
    let (mut seen, mut lines) = (HashSet::new(), 0);
    let mut look = || {
        // Several exit between two snapshots.
        std::thread::sleep(Duration::from_millis(50));
        let now = collector.snapshot().expect("a snapshot");
        lost += now.stats().lost_exits;
        for exit in now.exits().expect("exits are recorded") {
            assert!(
                now.get(exit.pid)
                    .is_none_or(|process| process.identity().start_ns != exit.start_ns)
            );
            if exit.cgroup_id == id {
                assert!(
                    seen.insert((exit.pid, exit.start_ns)),
                    "an exit is told once"
                );
                final_ones += u32::from(exit.is_final);
                let line = now.exit_cmdline(exit).map_or(&[][..], |line| line.bytes);
                lines += u32::from(line.windows(13).any(|part| part == b"unmistakable\0"));
            }
        }
        for gone in before
            .ended(&now)
            .filter(|ended| ended.exit.cgroup_id == id)
        {
            ended += 1;
            known_ns += gone.growth(Counter::Run).expect("CPU time is known");
        }
        known_ns += before
            .changes(&now)
            .filter(|change| change.process.cgroup_id() == Some(id))
            .map(|change| change.cpu_ns.expect("CPU time is known"))
            .sum::<u64>();
        before.set(&now);
        lost > 0 || seen.len() >= PROCESSES
    };
    // An emulated machine takes minutes for this.
    while !waiting.is_finished() {
        look();
    }
    wait_until("all exits of the cgroup", look);
    let status = waiting
        .join()
        .expect("nothing panics")
        .expect("it can be waited for");
    assert!(status.success(), "{status:?}");
    if lost > 0 {
        return Err(format!("{lost} exits of anybody were lost"));
    }
    assert_eq!(ended, PROCESSES);
    assert!(
        lines >= 120,
        "the command lines of 120 are known, here of {lines}"
    );
    let used_ns = cgroup.usage_ns() - used_before_ns;
    let share = known_ns as f64 / used_ns as f64;
    let told = format!(
        "{ended} processes, {final_ones} with final values: {known_ns} of {used_ns} ns, {share:.4}"
    );
    println!("{told}");
    // CPU time of the shell before it was in the cgroup counts only here, and that of a process after its parent has
    // waited for it only there. An exit without its last record lacks the end.
    (0.98..1.02).contains(&share).then_some(()).ok_or(told)
}
