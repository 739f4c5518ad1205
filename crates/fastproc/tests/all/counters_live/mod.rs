//! Compares the machine's counters with the running kernel's text. Needs root: otherwise the tests report that, and
//! prove nothing.

mod load;

use std::{
    collections::HashMap, fs::File, os::unix::fs::FileExt, process::Command, thread, time::Duration,
};

use fastproc::{
    counters::{Counters, Evidence, MachineFile, Options, Reader, Route, Want, WhyText},
    text::{machine_stat::MachineStat, vmstat::VmStat},
};
use fastproc_testbed::{Brackets, Folder, alone, gate, name_of, wait_until};
use load::Load;

/// Opens with the programs, which must load wherever possible.
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

/// Reads lines that the kernel computes each time, so that they can be compared.
fn exact() -> Options {
    let options = Options::new().line_by_line(true);
    options.text_latency(Duration::ZERO)
}

/// The kernel's file, through a separate descriptor.
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

/// The numbers of two texts. Panics if anything else in them differs.
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

/// The kind of a number between two words. Each kind has its own rule for values between two readings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Never decreases, not even between two readings; no tolerance.
    Grows,
    /// Increases and decreases: judged only if both readings are equal.
    Moves,
    /// A momentary value: two equal readings prove nothing about the time between.
    Fleeting,
}

impl Kind {
    /// The kind of the number at `place` in the line of this name.
    fn from_name(name: &str, place: usize) -> Self {
        match name {
            "procs_running" | "procs_blocked" => Self::Fleeting,
            // Time moves between idle and iowait.
            _ if name.starts_with("cpu") && [3, 4].contains(&place) => Self::Moves,
            // The kernel adds up the counts of its CPUs when the file is read.
            _ if name.starts_with("numa_") => Self::Moves,
            _ if name.starts_with("nr_") || name.starts_with("workingset") => Self::Moves,
            _ => Self::Grows,
        }
    }
}

/// Numbers of one file, each compared with the kernel's before and after it.
#[derive(Default)]
struct Tally {
    rounds: u64,
    /// Numbers compared that were not zero.
    nonzero: u64,
    /// Gauges, of which only the stable ones are judged.
    gauges: Brackets,
    /// For each line: rounds in which a gauge was stable and ours differed.
    differed: HashMap<String, u64>,
}

impl Tally {
    /// Compares the kernel's text, ours, and the kernel's again.
    fn compare(&mut self, file: &str, before: &[u8], ours: &[u8], after: &[u8]) {
        self.rounds += 1;
        let texts = [
            numbers(before, ours),
            numbers(ours, ours),
            numbers(after, ours),
        ];
        let text = String::from_utf8_lossy(ours).into_owned();
        let names = text
            .lines()
            .map(|line| line.split(' ').next().unwrap_or_default());
        for (line, name) in names.enumerate() {
            let [before, ours, after] = texts.each_ref().map(|text| &text[line]);
            let mut differs = false;
            for (place, &ours) in ours.iter().enumerate() {
                let (before, after) = (before[place], after[place]);
                self.nonzero += u64::from(ours != 0);
                match Kind::from_name(name, place) {
                    Kind::Grows => assert!(
                        (before..=after).contains(&ours),
                        "{file}: {name}: {before} <= {ours} <= {after}"
                    ),
                    Kind::Moves => {
                        self.gauges.count(before == after);
                        differs |= before == after && ours != before;
                    }
                    Kind::Fleeting => {}
                }
            }
            if differs {
                *self.differed.entry(name.to_owned()).or_default() += 1;
            }
        }
    }

    /// In a hundred readings, a gauge may change and return `there_and_back` times.
    fn verdict(self, file: &str, there_and_back: u64) {
        assert!(self.nonzero > 0, "{file}: nothing was compared");
        println!(
            "{file}: {} rounds, {} numbers other than zero, {} gauges stood still and {} did not, {:?} differed",
            self.rounds,
            self.nonzero,
            self.gauges.judged(),
            self.gauges.moved(),
            self.differed
        );
        for (name, differed) in self.differed {
            assert!(
                differed * 100 <= self.rounds * there_and_back,
                "{file}: {name} differed in {differed} of {} rounds",
                self.rounds
            );
        }
        // The more CPUs there are, the longer a reading takes, and the less likely is it that their idle time does not
        // change.
        self.gauges.finish(10);
    }
}

fn forks(text: &[u8]) -> u64 {
    MachineStat::parse(text).expect("it parses").processes
}

/// The kernel counts a fork a little before it announces it. Reads ours again until it has as many as the kernel's,
/// which happens soon or never.
fn with_every_fork(reader: &mut Reader, kernel: &[u8], mut ours: Vec<u8>) -> Vec<u8> {
    wait_until("the announcement of every fork", || {
        if forks(&ours) < forks(kernel) {
            ours = reader.stat().expect("stat").to_vec();
        }
        forks(&ours) >= forks(kernel)
    });
    ours
}

fn bracket(counters: &Counters, rounds: usize) -> (Tally, Tally) {
    let (stat, vmstat) = (Kernel::new("/proc/stat"), Kernel::new("/proc/vmstat"));
    let (mut tally, mut vm_tally) = (Tally::default(), Tally::default());
    let mut reader = counters.reader();
    for round in 0..rounds {
        let before = stat.read();
        let ours = reader.stat().expect("stat").to_vec();
        let ours = with_every_fork(&mut reader, &before, ours);
        let after = stat.read();
        tally.compare("/proc/stat", &before, &ours, &after);
        let before = vmstat.read();
        let ours = reader.vmstat().expect("vmstat").to_vec();
        let after = vmstat.read();
        vm_tally.compare("/proc/vmstat", &before, &ours, &after);
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
        // The comparison at start gives up on a gauge that others change all the time.
        assert!(
            line.route != Route::Text(WhyText::Disagreed)
                || Kind::from_name(&line.name, 0) != Kind::Grows,
            "{} {} disagreed at start",
            line.file,
            line.name
        );
    }
    let alone = alone();
    let (quiet, vm_quiet) = bracket(&counters, 500);
    drop(alone);
    quiet.verdict("/proc/stat, quiet", 1);
    vm_quiet.verdict("/proc/vmstat, quiet", 1);
    let load = Load::start();
    let (busy, vm_busy) = bracket(&counters, 1500);
    drop(load);
    busy.verdict("/proc/stat, under load", 5);
    vm_busy.verdict("/proc/vmstat, under load", 5);
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
    wait_until("a tick, a switch and an interrupt", || {
        std::hint::black_box(vec![0_u8; 1 << 16]);
        let later = reader
            .collect(Want::STAT | Want::VMSTAT)
            .expect("it collects");
        let change = later.since(&earlier);
        if change.total().busy() == Duration::ZERO {
            return false;
        }
        // A tick may come without a switch: the pause causes one, and its end is an interrupt.
        thread::sleep(Duration::from_millis(1));
        change.ctxt() > 0 && change.intr() > 0
    });
    let later = reader.sample();
    let change = later.since(&earlier);
    assert!(change.elapsed() > Duration::ZERO);
    assert!(change.busy() > 0.0);
    assert!(change.vm("pgalloc_normal").is_some_and(|pages| pages >= 0));
    assert!(change.per_second(change.ctxt() as f64) > 0.0);
}

/// Panics unless each line of ours equals the kernel's if that was stable, and otherwise has the same words and numbers
/// between the kernel's. Returns how many were stable.
fn lines_are_between(file: &str, before: &[u8], ours: &[u8], after: &[u8]) -> usize {
    let [before, ours, after] = [before, ours, after].map(String::from_utf8_lossy);
    let [before, ours, after] =
        [&before, &ours, &after].map(|text| text.lines().collect::<Vec<_>>());
    let same_lines = [before.len(), after.len()] == [ours.len(); 2];
    assert!(same_lines, "{file}: {before:#?} {ours:#?} {after:#?}");
    let mut still = 0;
    for ((before, ours), after) in before.into_iter().zip(ours).zip(after) {
        if before == after {
            assert_eq!(ours, before, "{file}");
            still += 1;
            continue;
        }
        let words = [before, ours, after].map(|line| line.split_whitespace().collect::<Vec<_>>());
        let count = words.each_ref().map(Vec::len);
        assert_eq!(count, [count[1]; 3], "{file}: {before} {ours} {after}");
        for place in 0..count[1] {
            let [before, ours, after] = words.each_ref().map(|words| words[place]);
            let number = str::parse::<u64>;
            let inside = match [before, ours, after].map(number) {
                [Ok(before), Ok(ours), Ok(after)] => (before..=after).contains(&ours),
                _ => [before, after] == [ours; 2],
            };
            assert!(inside, "{file}: {before} {ours} {after}");
        }
    }
    still
}

#[test]
fn the_other_files_are_the_kernels() {
    let Some(counters) = open(exact()) else {
        return;
    };
    let mut reader = counters.reader();
    let load = Load::start();
    for file in [MachineFile::Softirqs, MachineFile::Interrupts] {
        let kernel = Kernel::new(file.path());
        let mut still = 0;
        for _ in 0..300 {
            let before = kernel.read();
            let ours = reader.text(file).expect("it reads").to_vec();
            let after = kernel.read();
            still += lines_are_between(file.path(), &before, &ours, &after);
        }
        println!("{}: {still} lines stood still", file.path());
        assert!(still > 300, "{still}");
    }
    drop(load);
}

/// Compares line by line, because each line changes independently.
fn kept_file_is_the_kernels(reader: &mut Reader, file: MachineFile) {
    let mut brackets = Brackets::new();
    let (mut differed, rounds) = (HashMap::<String, u64>::new(), 50);
    for _ in 0..rounds {
        let read = || std::fs::read_to_string(file.path()).expect("it reads");
        let before = read();
        let ours = reader.text(file).expect("it reads");
        let ours = String::from_utf8(ours.to_vec()).expect("it is text");
        let after = read();
        let [before, ours, after] = [&before, &ours, &after].map(|text| text.lines());
        // A mount or a disk may appear in between.
        if before.clone().count() != after.clone().count() {
            continue;
        }
        assert_eq!(ours.clone().count(), before.clone().count());
        for ((before, ours), after) in before.zip(ours).zip(after) {
            brackets.count(before == after);
            if before == after && ours != before {
                let name = ours.split_whitespace().next().unwrap_or_default();
                let times = differed.entry(name.to_owned()).or_default();
                if *times == 0 {
                    gate::repeated(&format!("{}: {before:?}, {ours:?}", file.path()));
                }
                *times += 1;
            }
        }
    }
    // A line may change and return between two readings, but not each time.
    let times: u64 = differed.values().sum();
    assert!(
        times * 100 <= brackets.judged() && differed.values().all(|times| times * 4 <= rounds),
        "{}: of {} lines these differed: {differed:?}",
        file.path(),
        brackets.judged()
    );
    // If all network devices are busy, only the headings are stable.
    if brackets.judged() + brackets.moved() > 0 {
        brackets.finish(5);
    }
}

#[test]
fn kept_files_are_the_kernels_and_absent_ones_are_absent() {
    let _alone = alone();
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
                Ok(_) => kept_file_is_the_kernels(&mut reader, file),
                Err(error) => {
                    let ours = reader.text(file).expect_err("it is absent");
                    assert_eq!(ours.raw_os_error(), error.raw_os_error(), "{}", file.path());
                }
            }
        }
    }
}

/// Runs the test again, in its own mount namespace.
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
            .args(["--exact", name_of(a_mount_is_noticed), "--nocapture"])
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
    let directory = Folder::new("mount");
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("fastproc-test", &*directory, "tmpfs", flags, None)
        .expect("a tmpfs can be mounted");
    let after = reader.text(MachineFile::Mtab).expect("it reads").to_vec();
    rustix::mount::unmount(&*directory, rustix::mount::UnmountFlags::empty())
        .expect("it can be unmounted");
    assert!(String::from_utf8_lossy(&after).contains("fastproc-test"));
    assert_eq!(reader.text(MachineFile::Mtab).expect("it reads"), before);
}
