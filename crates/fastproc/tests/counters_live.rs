//! The machine-wide counters against the running kernel's text. Needs root: without, the tests say so and prove nothing.

use std::{
    fs::File,
    io::Write,
    os::unix::fs::FileExt,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fastproc::{
    counters::{Counters, Evidence, MachineFile, Options, Reader, Route, Want, WhyText},
    text::{machine_stat::MachineStat, vmstat::VmStat},
};
use fastproc_testbed::gate;

/// Opens with the programs, which have to load wherever they can.
#[track_caller]
fn open(options: Options) -> Option<Counters> {
    if !gate::bpf() {
        return None;
    }
    let counters = options
        .open()
        .expect("/proc/stat and /proc/vmstat can be read");
    let refused = counters.unavailable().map(ToString::to_string);
    assert_eq!(refused, None, "the programs are refused");
    Some(counters)
}

/// Lines that the kernel computes are read afresh, so that they can be compared.
fn exact() -> Options {
    Options::new().text_latency(Duration::ZERO)
}

/// The kernel's file, through a descriptor of our own.
struct Kernel(File);

impl Kernel {
    fn new(path: &str) -> Self {
        Self(File::open(path).expect("the kernel has this file"))
    }

    fn read(&self) -> Vec<u8> {
        let mut text = vec![0; 1 << 20];
        let mut len = 0;
        loop {
            match self
                .0
                .read_at(&mut text[len..], len as u64)
                .expect("it can be read")
            {
                0 => break,
                read => len += read,
            }
        }
        text.truncate(len);
        text
    }
}

/// Forks, page faults, writes and context switches, until dropped.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let spawn = |mut work: Box<dyn FnMut() + Send>| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    work();
                }
            })
        };
        let directory = std::env::temp_dir();
        let path = directory.join(format!("fastproc-load-{}", std::process::id()));
        let threads = vec![
            spawn(Box::new(|| {
                let _ = Command::new("true").status();
            })),
            spawn(Box::new(|| {
                let mut pages = vec![0_u8; 4 << 20];
                for page in pages.chunks_mut(4096) {
                    page[0] = 1;
                }
                std::hint::black_box(&pages);
                thread::sleep(Duration::from_millis(1));
            })),
            spawn(Box::new(move || {
                let mut file = File::create(&path).expect("a file can be made");
                file.write_all(&[1; 256 << 10]).expect("it can be written");
                let _ = file.sync_all();
                drop(file);
                let _ = std::fs::remove_file(&path);
            })),
            spawn(Box::new(|| {
                for _ in 0..100 {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_micros(50));
            })),
        ];
        Self { stop, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Two texts' numbers; panics if anything else in them differs.
fn numbers(text: &[u8], like: &[u8]) -> Vec<Vec<u64>> {
    let shape = |text: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(text)
            .lines()
            .map(|line| {
                line.split(' ')
                    .map(|word| {
                        if word.parse::<u64>().is_ok() {
                            "#"
                        } else {
                            word
                        }
                    })
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    };
    assert_eq!(
        shape(text),
        shape(like),
        "the texts have the same words and as many numbers"
    );
    String::from_utf8_lossy(text)
        .lines()
        .map(|line| {
            line.split(' ')
                .filter_map(|word| word.parse().ok())
                .collect()
        })
        .collect()
}

#[derive(Default)]
struct Tally {
    rounds: usize,
    /// Ours before, the kernel's and ours after were one text.
    identical: usize,
    /// Numbers compared that were not zero.
    nonzero: usize,
    /// By line: rounds in which a number was outside.
    outside: Vec<(String, usize)>,
}

impl Tally {
    fn compare(&mut self, before: &[u8], kernel: &[u8], after: &[u8]) {
        self.rounds += 1;
        if before == after {
            self.identical += usize::from(before == kernel);
        }
        let [ours, theirs, later] = [
            numbers(before, kernel),
            numbers(kernel, kernel),
            numbers(after, kernel),
        ];
        let text = String::from_utf8_lossy(kernel).into_owned();
        let names = text
            .lines()
            .map(|line| line.split(' ').next().unwrap_or_default());
        self.outside.resize(theirs.len(), (String::new(), 0));
        for (line, name) in names.enumerate() {
            let mut inside = true;
            for ((&before, &kernel), &after) in
                ours[line].iter().zip(&theirs[line]).zip(&later[line])
            {
                inside &= before.min(after) <= kernel && kernel <= before.max(after);
                self.nonzero += usize::from(kernel != 0);
            }
            name.clone_into(&mut self.outside[line].0);
            self.outside[line].1 += usize::from(!inside);
        }
    }

    /// How often, of a hundred rounds, a line may be outside. Sums of counters that only grow never may; CPU times
    /// move between idle and iowait, and gauges go up and down.
    fn tolerated(name: &str) -> usize {
        match name {
            "ctxt" | "intr" | "softirq" | "btime" | "processes" => 0,
            "procs_running" | "procs_blocked" => 80,
            _ if name.starts_with("cpu") => 5,
            _ if name.starts_with("nr_") || name.starts_with("workingset") => 15,
            _ if name.starts_with("numa_") => 5,
            _ => 0,
        }
    }

    fn verdict(&self, file: &str) {
        assert!(
            self.rounds > 0 && self.nonzero > 0,
            "{file}: nothing was compared"
        );
        assert!(
            self.identical > 0,
            "{file}: no text of {} was ever the kernel's, byte for byte",
            self.rounds
        );
        for (name, outside) in &self.outside {
            let tolerated = self.rounds * Self::tolerated(name) / 100;
            assert!(
                *outside <= tolerated,
                "{file}: {name} was outside in {outside} of {} rounds",
                self.rounds
            );
        }
        println!(
            "{file}: {} rounds, {} byte for byte the same, {} numbers other than zero",
            self.rounds, self.identical, self.nonzero
        );
    }
}

fn forks(text: &[u8]) -> u64 {
    MachineStat::parse(text).expect("it parses").processes
}

/// The kernel counts a fork a little before it announces it: ours, read again until it has as many as the kernel's.
/// That comes soon, or never.
fn with_every_fork(reader: &mut Reader, kernel: &[u8], mut ours: Vec<u8>) -> Vec<u8> {
    let limit = Instant::now() + Duration::from_secs(5);
    while forks(&ours) < forks(kernel) && Instant::now() < limit {
        thread::sleep(Duration::from_micros(100));
        ours = reader.stat().expect("stat").to_vec();
    }
    ours
}

fn bracket(counters: &Counters, rounds: usize) -> (Tally, Tally) {
    let (stat, vmstat) = (Kernel::new("/proc/stat"), Kernel::new("/proc/vmstat"));
    let (mut tally, mut vm_tally) = (Tally::default(), Tally::default());
    let mut reader = counters.reader();
    for round in 0..rounds {
        let before = reader.stat().expect("stat").to_vec();
        let kernel = stat.read();
        let (after, vm_before) = reader
            .stat_and_vmstat()
            .map(|(stat, vmstat)| (stat.to_vec(), vmstat.to_vec()))
            .expect("both");
        let after = with_every_fork(&mut reader, &kernel, after);
        let vm_kernel = vmstat.read();
        let vm_after = reader.vmstat().expect("vmstat").to_vec();
        tally.compare(&before, &kernel, &after);
        vm_tally.compare(&vm_before, &vm_kernel, &vm_after);
        if round % 8 == 0 {
            thread::sleep(Duration::from_micros(200));
        }
    }
    (tally, vm_tally)
}

#[test]
fn every_line_is_the_kernels_when_quiet_and_under_load() {
    let Some(counters) = open(exact()) else {
        return;
    };
    let report = counters.report();
    let proven = report
        .lines
        .iter()
        .filter(|line| line.evidence == Evidence::NonZero)
        .count();
    assert!(proven > 30, "only {proven} lines were proven: {report:#?}");
    for line in &report.lines {
        assert_ne!(
            line.route,
            Route::Text(WhyText::Disagreed),
            "{} {} disagreed at start",
            line.file,
            line.name
        );
    }

    let (quiet, vm_quiet) = bracket(&counters, 1000);
    quiet.verdict("/proc/stat, quiet");
    vm_quiet.verdict("/proc/vmstat, quiet");
    let load = Load::start();
    let (busy, vm_busy) = bracket(&counters, 3000);
    drop(load);
    busy.verdict("/proc/stat, under load");
    vm_busy.verdict("/proc/vmstat, under load");
}

#[test]
fn the_typed_values_are_the_texts() {
    let Some(counters) = open(exact()) else {
        return;
    };
    let mut reader = counters.reader();
    let (stat, vmstat) = reader
        .stat_and_vmstat()
        .map(|(stat, vmstat)| (stat.to_vec(), vmstat.to_vec()))
        .expect("both");
    let sample = reader.sample();
    let parsed = MachineStat::parse(&stat).expect("our text parses");
    assert_eq!(parsed.irqs, sample.stat.irqs);
    assert_eq!(parsed.cpus.len(), sample.stat.cpus.len());
    assert_eq!(
        parsed.total.idle().as_millis() / 10,
        sample.stat.total.idle().as_millis() / 10
    );
    assert_eq!(
        VmStat::parse(&vmstat).expect("our text parses"),
        sample.vmstat
    );

    let earlier = reader
        .collect(Want::STAT | Want::VMSTAT)
        .expect("it collects")
        .clone();
    let busy = Instant::now();
    while busy.elapsed() < Duration::from_millis(60) {
        std::hint::black_box(vec![0_u8; 1 << 16]);
    }
    let later = reader
        .collect(Want::STAT | Want::VMSTAT)
        .expect("it collects");
    let change = later.since(&earlier);
    assert!(change.elapsed() >= Duration::from_millis(60));
    assert!(change.total().busy() > Duration::ZERO && change.busy() > 0.0);
    assert!(change.ctxt() > 0 && change.intr() > 0);
    assert!(change.vm("pgalloc_normal").is_some_and(|pages| pages >= 0));
    assert!(change.per_second(change.ctxt() as f64) > 0.0);
}

/// As `seq_file` fills one page at a time: what is longer comes in pieces that do not belong together.
fn between(before: &[u8], kernel: &[u8], after: &[u8]) -> bool {
    let [before, kernel, after] = [before, kernel, after].map(|text| {
        String::from_utf8_lossy(text)
            .split([' ', '\n', '.'])
            .filter_map(|word| word.parse::<u64>().ok())
            .collect::<Vec<_>>()
    });
    before.len() == kernel.len()
        && after.len() == kernel.len()
        && before
            .iter()
            .zip(&kernel)
            .zip(&after)
            .all(|((before, kernel), after)| before <= kernel && kernel <= after)
}

#[test]
fn the_other_files_are_the_kernels() {
    let Some(counters) = open(exact()) else {
        return;
    };
    let mut reader = counters.reader();
    let load = Load::start();
    for file in [
        MachineFile::Softirqs,
        MachineFile::Interrupts,
        MachineFile::Uptime,
    ] {
        let kernel = Kernel::new(file.path());
        let (mut inside, mut identical) = (0, 0);
        for _ in 0..300 {
            let before = reader.text(file).expect("it reads").to_vec();
            let theirs = kernel.read();
            let after = reader.text(file).expect("it reads").to_vec();
            assert_eq!(
                before.iter().filter(|byte| !byte.is_ascii_digit()).count(),
                theirs.iter().filter(|byte| !byte.is_ascii_digit()).count(),
            );
            inside += usize::from(between(&before, &theirs, &after));
            identical += usize::from(before == theirs);
        }
        println!(
            "{}: {inside} of 300 inside, {identical} identical",
            file.path()
        );
        assert!(inside >= 290, "{}: {inside} of 300 inside", file.path());
        assert!(identical > 0, "{}: never identical", file.path());
    }
    drop(load);
}

#[test]
fn kept_files_are_the_kernels_and_absent_ones_are_absent() {
    for options in [exact(), exact().bpf(false)] {
        let counters = options.open().expect("it opens");
        let mut reader = counters.reader();
        for file in [
            MachineFile::Meminfo,
            MachineFile::Diskstats,
            MachineFile::NetDev,
            MachineFile::NetWireless,
            MachineFile::Mtab,
        ] {
            match std::fs::read(file.path()) {
                Ok(_) => {
                    let same = (0..50).any(|_| {
                        let ours = reader.text(file).expect("it reads").to_vec();
                        std::fs::read(file.path()).expect("it reads") == ours
                    });
                    assert!(same, "{} was never the same", file.path());
                }
                Err(error) => {
                    let ours = reader.text(file).expect_err("it is absent");
                    assert_eq!(ours.raw_os_error(), error.raw_os_error(), "{}", file.path());
                }
            }
        }
    }
}

/// The test again, in a mount namespace of its own.
#[test]
fn a_mount_is_noticed() {
    if std::env::var_os("FASTPROC_OWN_MOUNTS").is_none() {
        if !gate::root() || !gate::programs(&["unshare"]) {
            return;
        }
        let own = std::env::current_exe().expect("a test has a file");
        let status = Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .arg(own)
            .args(["--exact", "a_mount_is_noticed", "--nocapture"])
            .env("FASTPROC_OWN_MOUNTS", "1")
            .status();
        let status = status.expect("unshare is installed");
        assert!(status.success(), "it failed there");
        return;
    }
    let mut reader = exact().bpf(false).open().expect("it opens").reader();
    let before = reader.text(MachineFile::Mtab).expect("it reads").to_vec();
    for _ in 0..3 {
        assert_eq!(reader.text(MachineFile::Mtab).expect("it reads"), before);
    }
    let directory = std::env::temp_dir().join(format!("fastproc-mount-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory can be made");
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("fastproc-test", &directory, "tmpfs", flags, None)
        .expect("a tmpfs can be mounted");
    let after = reader.text(MachineFile::Mtab).expect("it reads").to_vec();
    rustix::mount::unmount(&directory, rustix::mount::UnmountFlags::empty())
        .expect("it can be unmounted");
    let _ = std::fs::remove_dir(&directory);
    assert!(String::from_utf8_lossy(&after).contains("fastproc-test"));
    assert_eq!(reader.text(MachineFile::Mtab).expect("it reads"), before);
}
