//! Compares `stat`, `statm`, `status` and the numbers of `io` of idle processes, by each walk, with the kernel's own
//! bytes. Needs root.

use std::{
    collections::HashMap,
    env,
    fs::{self, File},
    io::{BufRead, BufReader, Write, stdout},
    os::fd::AsRawFd,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use fastproc::{
    Collector, Fields, SourceKind,
    access::Access,
    text::{Text, Units, io, stat, statm, status},
};
use fastproc_testbed::{Running, again, gate, needs, wait_until, wait_until_asleep};

const WALKS: [SourceKind; 2] = [SourceKind::Bpf, SourceKind::BpfIter];
/// Set for the process that works and then sleeps.
const WORKS: &str = "FASTPROC_WORKS";
/// The CPU time of each of its threads: many ticks.
const WORK: Duration = Duration::from_millis(150);
const FILES: [&str; 4] = ["stat", "statm", "status", "io"];

/// The bytes of [`FILES`]; of `io` only the numbers.
type Texts = [Vec<u8>; 4];

/// Uses CPU time, this much of it in the kernel and the rest in user mode, and touches memory that stays.
fn work(in_kernel: Duration) {
    let used = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let mut memory = vec![0_u8; 3 << 20];
    for page in memory.iter_mut().step_by(4096) {
        *page = 1;
    }
    std::mem::forget(memory);
    while used() < in_kernel {
        fs::read("/proc/self/maps").expect("/proc is mounted");
    }
    while used() < WORK {
        std::hint::black_box((0..100_000_u64).fold(0, |sum: u64, n| sum.wrapping_mul(n)));
    }
}

fn rest() -> ! {
    loop {
        thread::park();
    }
}

/// Threads that have worked and sleep, one that has exited, and a child that was waited for.
#[test]
fn works_and_rests() {
    if env::var_os(WORKS).is_none() {
        return;
    }
    // Each has another mixture: a share that is missing in only one sum changes how the kernel divides the time.
    thread::spawn(|| work(WORK))
        .join()
        .expect("it does not panic");
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); : </dev/null; done";
    let child = Command::new("sh").args(["-c", script]).status();
    assert!(child.expect("sh can be run").success());
    for _ in 0..3 {
        thread::spawn(|| {
            work(WORK / 2);
            rest()
        });
    }
    work(Duration::ZERO);
    println!("works");
    stdout().flush().expect("somebody listens");
    rest()
}

/// The process that works and then sleeps, once it sleeps.
fn worker() -> Running {
    let mut command = again(works_and_rests);
    let command = command.env(WORKS, "1").stdin(Stdio::null());
    let mut worker = Running::start(command.stdout(Stdio::piped()));
    let output = worker.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("works")), "it has ended");
    wait_until("all threads of the worker to rest", || rests(worker.id()));
    worker
}

/// Whether its five threads sleep, including those of the test harness that wait. Reads each thread alone, because
/// reading `stat` of a process makes the kernel remember the times that it has shown.
fn rests(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("/proc shows the process");
    let states = tasks.map(|task| {
        let text = fs::read_to_string(task.expect("a thread").path().join("stat"));
        text.expect("no thread ends").contains(") S ")
    });
    let states: Vec<bool> = states.collect();
    states.len() == 5 && !states.contains(&false)
}

/// A process whose terminal has a number of more than a byte; it holds the terminals before it open.
fn of_high_terminal() -> Running {
    let terminals: Vec<File> = (0..257)
        .map(|_| {
            let file = File::options().read(true).write(true).open("/dev/ptmx");
            file.expect("a terminal can be had")
        })
        .collect();
    let last = terminals.last().expect("there are some").as_raw_fd();
    let (mut number, unlocked) = (0_i32, 0_i32);
    // SAFETY: both read or write the number that is passed.
    let asked = unsafe {
        libc::ioctl(last, libc::TIOCSPTLCK, &raw const unlocked)
            | libc::ioctl(last, libc::TIOCGPTN, &raw mut number)
    };
    assert!(asked == 0 && number > 255, "terminal {number}");
    // If the leader of a session opens a terminal, that becomes its controlling terminal.
    let script = format!("exec sleep 600 </dev/pts/{number}");
    let mut command = Command::new("setsid");
    let running = Running::start(command.args(["sh", "-c", &script]).stdin(Stdio::null()));
    wait_until_asleep(running.id(), "sleep");
    // The terminals must stay open while it runs, but not longer than this program.
    std::mem::forget(terminals);
    running
}

/// The kernel's texts of a process.
fn kernel(pid: u32) -> Texts {
    FILES.map(|name| {
        let text = fs::read(format!("/proc/{pid}/{name}"));
        let text = text.unwrap_or_else(|error| panic!("/proc/{pid}/{name}: {error}"));
        match name {
            "io" => format!("{:?}", io::parse(&text).expect("it parses")).into(),
            "status" => without_queued(&text),
            _ => text,
        }
    })
}

/// Removes the number of queued signals, which counts for all processes of the user.
fn without_queued(status: &[u8]) -> Vec<u8> {
    let lines = status.split_inclusive(|&byte| byte == b'\n');
    let lines = lines.map(|line| match line.strip_prefix(b"SigQ:\t") {
        Some(numbers) => {
            let limit = numbers.iter().position(|&byte| byte == b'/');
            &numbers[limit.expect("a number and its limit")..]
        }
        None => line,
    });
    lines.collect::<Vec<_>>().concat()
}

/// The lines that differ.
fn differing(ours: &[u8], kernel: &[u8]) -> String {
    let (ours, kernel) = (
        String::from_utf8_lossy(ours),
        String::from_utf8_lossy(kernel),
    );
    let pairs = ours.lines().zip(kernel.lines());
    let pairs = pairs.filter(|(ours, kernel)| ours != kernel);
    let lines: Vec<String> = pairs
        .map(|(ours, kernel)| format!("{ours:?} instead of {kernel:?}"))
        .collect();
    lines.join(", ")
}

/// The texts of these processes by a walk, which must have met the first one itself.
fn ours(source: SourceKind, pids: &[u32]) -> HashMap<u32, Texts> {
    let mut collector = Collector::builder()
        .source(Some(source))
        .fields(Fields::THREE_FILES | Fields::IO)
        .open()
        .unwrap_or_else(|error| panic!("{source}: {error}"));
    let units = Units::from(collector.host());
    let calibration = collector.calibration();
    let format = status::Format::read(collector.host())
        .expect("the format can be learned")
        .with_thp_disable_bit(calibration.thp_disable_bit)
        .with_thread_features(calibration.thread_features);
    let mut renderer = status::Renderer::new(format);
    let mut text = Text::default();
    let snapshot = collector.snapshot().expect("it walks");
    let first = snapshot.get(pids[0]).expect("the process is shown");
    assert_eq!(
        snapshot.source_of(first),
        source,
        "it rests, and is not torn"
    );
    let mut texts = |pid: u32| {
        let process = snapshot
            .get(pid)
            .unwrap_or_else(|| panic!("{source} has not met {pid}"));
        let own = renderer
            .needs_kernel_text(process)
            .then(|| fs::read(format!("/proc/{pid}/status")).expect("/proc shows the process"));
        let io = process.io().expect("it was asked for");
        [
            text.render(|out| stat::render(process, &units, Access::Granted, out))
                .expect("stat")
                .to_vec(),
            text.render(|out| statm::render(process, &units, out))
                .expect("statm")
                .to_vec(),
            without_queued(
                text.render(|out| renderer.render(process, own.as_deref(), out))
                    .expect("status"),
            ),
            format!("{io:?}").into(),
        ]
    };
    pids.iter().map(|&pid| (pid, texts(pid))).collect()
}

/// The differences, by process and file. These processes are read by us first, so that times that the kernel has just
/// shown do not help. `fastproc verify` compares others.
fn differences(source: SourceKind) -> HashMap<(&'static str, &'static str), String> {
    let resting = [("worker", worker()), ("terminal", of_high_terminal())];
    let pids = resting.each_ref().map(|(_, process)| process.id());
    let ours = ours(source, &pids);
    let mut found = HashMap::new();
    for (label, process) in &resting {
        let (ours, kernel) = (&ours[&process.id()], kernel(process.id()));
        for (at, file) in FILES.into_iter().enumerate() {
            if ours[at] != kernel[at] {
                let both = differing(&ours[at], &kernel[at]);
                found.insert((*label, file), format!("{source}, {label}, {file}: {both}"));
            }
        }
    }
    gate::compared(2 * FILES.len() as u64, 0);
    found
}

#[test]
fn texts_of_processes_that_rest_are_the_kernels() {
    needs!(gate::bpf());
    for source in WALKS {
        let first = differences(source);
        if first.is_empty() {
            continue;
        }
        // Sometimes memory is reclaimed even from an idle process.
        let mut again = differences(source);
        for (key, what) in first {
            match again.remove(&key) {
                Some(what) => panic!("{what}"),
                None => gate::repeated(&what),
            }
        }
    }
}
