//! Storms in cgroups: they come and go, their processes move, freeze and use memory, CPUs, a disk and threads, and controllers
//! are switched, while `fastproc verify --cgroups` compares every value with the kernel's.

use std::{
    convert::Infallible,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::{
    cgroups::{enable_controllers, move_fast},
    enter::Place,
    json,
    memory::DISK,
    proofs::FASTPROC,
    reporter::Reporter,
};

/// The argument that makes this program a process of the storm. The work follows.
pub const CHURN: &str = "churn";
const TREE: &str = "/sys/fs/cgroup/storm";
const CONTROLLERS: &str = "+cpu +memory +io +pids";
/// Cgroups, the work of their process, a file, and the text to write to it.
const CGROUPS: [(&str, &str, &str, &str); 9] = [
    ("high", "memory", "memory.high", "4M"),
    ("low", "memory", "memory.low", "1M"),
    (LIMITED, "memory", "memory.max", "3M"),
    ("throttled", "cpu", "cpu.max", "3000 20000"),
    ("light", "cpu", "cpu.weight", "20"),
    ("disk", "disk", "cpu.weight", "250"),
    ("frozen", "tasks", "pids.max", "32"),
    ("domain", "tasks", "memory.min", "1M"),
    ("left", "memory", "cpu.max", "max 50000"),
];
/// Its process is killed again and again.
const LIMITED: &str = "limited";
/// Cgroups without a process of their own.
const EMPTY: [&str; 7] = [
    "right",
    "domain/one",
    "domain/two",
    "switched",
    "switched/below",
    "space",
    "space/below",
];
/// How many values to compare, and how long that may take.
pub const MANY: u64 = 350_000;
const PATIENCE: Duration = Duration::from_secs(3000);
/// The pause of the storm, so that the comparison has a share of the CPUs.
const PAUSE: Duration = Duration::from_millis(60);
const MIB: usize = 1 << 20;

/// Compares until these are enough.
pub fn compare(reporter: &mut Reporter, enough: u64) -> io::Result<()> {
    enable_controllers()?;
    move_fast();
    let mut storm = Storm::begin()?;
    let ends = AtomicBool::new(false);
    let mut sum = Sum::default();
    let (compared, steps) = thread::scope(|scope| {
        let steps = scope.spawn(|| {
            let mut steps = 0;
            while !ends.load(Ordering::Relaxed) {
                storm.step(steps)?;
                steps += 1;
            }
            storm.end()?;
            io::Result::Ok(steps)
        });
        let compared = sum.fill(reporter, enough);
        ends.store(true, Ordering::Relaxed);
        (compared, steps.join())
    });
    compared?;
    let steps = steps.map_err(|_| io::Error::other("the storm panicked"))??;
    reporter.fact("steps of the storm", steps)?;
    reporter.fact("values between the kernel's", sum.between)?;
    reporter.fact("values in motion and not proven", sum.in_motion)?;
    reporter.fact("cgroups removed while they were compared", sum.gone)?;
    reporter.check(
        "a storm in cgroups",
        sum.wrong == 0 && sum.compared >= enough && sum.between > 0 && sum.gone > 0,
        format!(
            "{} values compared, {} wrong {}",
            sum.compared, sum.wrong, sum.example
        ),
    )
}

/// What was compared.
#[derive(Default)]
struct Sum {
    compared: u64,
    wrong: u64,
    between: u64,
    in_motion: u64,
    gone: u64,
    example: String,
}

impl Sum {
    fn fill(&mut self, reporter: &mut Reporter, enough: u64) -> io::Result<()> {
        let began = Instant::now();
        let own = std::process::id().to_string();
        while self.compared < enough && self.wrong == 0 && began.elapsed() < PATIENCE {
            self.verify(&[], "30")?;
            // A reader that sees a part of the tree.
            fs::write(Path::new(TREE).join("space/cgroup.procs"), &own)?;
            self.verify(&Place::CgroupNamespace.enter(), "3")?;
            fs::write("/sys/fs/cgroup/cgroup.procs", &own)?;
            // A guest that reports nothing for long is given up.
            let text = format!("{} in {} s", self.compared, began.elapsed().as_secs());
            reporter.fact("values compared so far", text)?;
        }
        Ok(())
    }

    /// Adds the result of `verify`.
    fn verify(&mut self, enter: &[&str], rounds: &str) -> io::Result<()> {
        let verify = [
            FASTPROC,
            "verify",
            "--cgroups",
            "--json",
            "--rounds",
            rounds,
        ];
        let argv = [enter, &verify].concat();
        let report = json::of(&argv)?;
        let number = |name: &str| report[name].as_u64().unwrap_or_default();
        let files = report["files"].as_array().into_iter().flatten();
        let moved: u64 = files.filter_map(|file| file["moved"].as_u64()).sum();
        self.compared += number("compared");
        self.wrong += number("wrong");
        self.between += moved - number("in_motion");
        self.in_motion += number("in_motion");
        self.gone += number("gone");
        if number("wrong") > 0 {
            self.example = report["examples"].to_string();
        }
        Ok(())
    }
}

/// The tree, and its processes in the order of [`CGROUPS`].
struct Storm {
    members: Vec<Child>,
}

fn at(path: &str) -> PathBuf {
    Path::new(TREE).join(path)
}

impl Storm {
    fn begin() -> io::Result<Self> {
        fs::create_dir(TREE)?;
        fs::write(at("cgroup.subtree_control"), CONTROLLERS)?;
        let mut members = Vec::new();
        for (cgroup, work, file, text) in CGROUPS {
            fs::create_dir(at(cgroup))?;
            fs::write(at(cgroup).join(file), text)?;
            members.push(member(cgroup, work)?);
        }
        for cgroup in EMPTY {
            fs::create_dir(at(cgroup))?;
        }
        for threaded in ["domain/one", "domain/two"] {
            fs::write(at(threaded).join("cgroup.type"), "threaded")?;
        }
        fs::write(at("domain/cgroup.subtree_control"), "+cpu +pids")?;
        Ok(Self { members })
    }

    /// The process that began in this cgroup.
    fn of(&mut self, cgroup: &str) -> &mut Child {
        let place = CGROUPS.iter().position(|(name, ..)| *name == cgroup);
        &mut self.members[place.unwrap_or_default()]
    }

    /// Each kind of change, once.
    fn step(&mut self, number: usize) -> io::Result<()> {
        let turn = |words: &[&'static str]| words[number % words.len()];
        let moving = self.of("left").id().to_string();
        let thread = self.of("domain").id().to_string();
        let passing = at(turn(&["passing", "fleeting", "brief"]));
        let below = passing.join("below");
        fs::create_dir(&passing)?;
        fs::write(passing.join("cgroup.subtree_control"), CONTROLLERS)?;
        fs::create_dir(&below)?;
        fs::write(below.join("cgroup.procs"), &moving)?;
        let to = turn(&["domain/one", "domain/two"]);
        fs::write(at(to).join("cgroup.threads"), &thread)?;
        thread::sleep(PAUSE);
        fs::write(at(turn(&["left", "right"])).join("cgroup.procs"), &moving)?;
        fs::remove_dir(&below)?;
        fs::remove_dir(&passing)?;
        let control = turn(&["+memory", "-memory", "+io +pids", "-io", "-pids"]);
        fs::write(at("switched/cgroup.subtree_control"), control)?;
        fs::write(
            at("frozen/cgroup.freeze"),
            turn(&["1", "1", "1", "0", "0", "0"]),
        )?;
        if self.of(LIMITED).try_wait()?.is_some() {
            *self.of(LIMITED) = member(LIMITED, "memory")?;
        }
        thread::sleep(PAUSE);
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        for member in &mut self.members {
            member.kill()?;
            member.wait()?;
        }
        Ok(())
    }
}

fn member(cgroup: &str, work: &str) -> io::Result<Child> {
    let child = Command::new("/proc/self/exe").args([CHURN, work]).spawn()?;
    fs::write(at(cgroup).join("cgroup.procs"), child.id().to_string())?;
    Ok(child)
}

/// Runs a process of the storm.
pub fn churn(work: &[OsString]) -> ExitCode {
    let work = work.first().and_then(|work| work.to_str());
    let Err(error) = churn_at(work.unwrap_or_default());
    eprintln!("init: {CHURN}: {error}");
    ExitCode::FAILURE
}

fn churn_at(work: &str) -> io::Result<Infallible> {
    let disk = File::open(DISK)?;
    let written = OpenOptions::new().write(true).open(DISK)?;
    let own = format!("/tmp/churn-{}", std::process::id());
    let (mut kept, mut at) = (Vec::new(), 0_u64);
    loop {
        at += 1;
        match work {
            "memory" if kept.len() < 96 => kept.push(vec![1_u8; MIB / 16]),
            "memory" => kept.clear(),
            "cpu" => {
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(8) {
                    std::hint::spin_loop();
                }
            }
            "disk" => {
                let mut bytes = vec![0; 16 << 10];
                disk.read_exact_at(&mut bytes, at % 512 * (64 << 10))?;
                written.write_all_at(&bytes, (32 * MIB) as u64 + at % 256 * (64 << 10))?;
                if at.is_multiple_of(16) {
                    written.sync_data()?;
                }
            }
            _ => {
                if at.is_multiple_of(3) {
                    let nap = || thread::sleep(Duration::from_millis(700));
                    // There may be too many.
                    let _ = thread::Builder::new().spawn(nap);
                }
                fs::write(&own, vec![1; (at % 64 * 4096) as usize])?;
            }
        }
        thread::sleep(Duration::from_millis(120));
    }
}
