//! One run of the emulator, and how the guest ended.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use fastproc_guest::{
    report::{self, Broken, Report},
    scenario::Scenario,
};

use crate::{image::Image, machine::Machine};

/// The exit codes of qemu that the guest chooses.
const PASSED: i32 = 3;
const FAILED: i32 = 5;

/// A guest that ran to an end.
pub struct Guest {
    /// How each scenario ended, in their order.
    pub endings: Vec<Ending>,
    /// Whether it ran its first program, which reports at once.
    pub began: bool,
    /// How long it took.
    pub took: Duration,
    /// How much CPU time of the host it took.
    pub cpu: Duration,
    /// The kernel's console.
    pub console: PathBuf,
    /// The messages of the emulator.
    pub emulator: PathBuf,
}

/// How a scenario ended. A closing line is only enough for `Reported` if another report follows; for the last scenario
/// the exit code must agree, because qemu also ends with 0 after a kernel panic, and a report may be cut off anywhere.
pub enum Ending {
    /// It ran to its end; the report says how many checks failed.
    Reported(Report),
    /// The kernel panicked, or restarted for another reason.
    Panicked,
    /// It was given up.
    TimedOut(Why),
    /// The exit code and the report disagree.
    Contradicted {
        code: Option<i32>,
        report: Result<Report, Broken>,
    },
}

/// Why a guest is given up. Neither reason depends on how busy the host is: CPU time is what the guest itself got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It took more CPU time than its scenarios can take.
    Busy(Duration),
    /// It neither reported nor printed anything for this time.
    Silent(Duration),
}

/// The longest time without output. Between two lines the guest runs one program: for seconds on an idle host, and for
/// minutes if the guest gets the CPUs last.
const SILENCE: Duration = Duration::from_secs(600);

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy(cpu) => write!(f, "given up after {} s of CPU time", cpu.as_secs()),
            Self::Silent(time) => write!(f, "given up: no output for {} s", time.as_secs()),
        }
    }
}

impl Ending {
    /// How each of the scenarios ended, from everything that the guest has reported.
    fn of_all(
        ended: Result<ExitStatus, Why>,
        text: &str,
        wanted: &[Scenario],
        release: &str,
    ) -> Vec<Self> {
        let texts = report::split(text);
        let mut failed = 0;
        let mut endings = Vec::new();
        for (at, &scenario) in wanted.iter().enumerate() {
            let report = Report::parse(texts.get(at).copied().unwrap_or_default());
            let is_it =
                |report: &Report| report.scenario == scenario.name() && report.release == release;
            failed += report.as_ref().map_or(0, |report| report.failed);
            let code = if failed == 0 { PASSED } else { FAILED };
            // If there are more reports than scenarios, the last one does not count.
            let is_last = at + 1 == wanted.len();
            let goes_on = texts.len() > at + 1;
            endings.push(match (report, ended) {
                (Ok(report), _) if is_it(&report) && goes_on && !is_last => Self::Reported(report),
                (_, Err(why)) => Self::TimedOut(why),
                (Ok(report), Ok(status))
                    if is_it(&report) && is_last && !goes_on && status.code() == Some(code) =>
                {
                    Self::Reported(report)
                }
                (_, Ok(status)) if status.code() == Some(0) => Self::Panicked,
                (report, Ok(status)) => Self::Contradicted {
                    code: status.code(),
                    report,
                },
            });
        }
        endings
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reported(Report { failed: 0, .. }) => write!(f, "passed"),
            Self::Reported(report) => write!(f, "{} checks failed", report.failed),
            Self::Panicked => write!(f, "the kernel panicked or restarted"),
            Self::TimedOut(why) => why.fmt(f),
            Self::Contradicted { code, report } => {
                match code {
                    Some(code) => write!(f, "exit code {code}")?,
                    None => write!(f, "the emulator was killed")?,
                }
                match report {
                    Ok(report) => write!(
                        f,
                        ", but the report of {} on {} says {} failed",
                        report.scenario, report.release, report.failed
                    ),
                    Err(broken) => write!(f, ", and {broken}"),
                }
            }
        }
    }
}

/// Boots a kernel and waits until the guest has ended in any way.
///
/// `number` distinguishes several boots with the same scenarios.
///
/// # Panics
/// If there is no scenario.
pub fn boot(
    image: &Image,
    initramfs: &Path,
    scenarios: &[Scenario],
    number: u8,
    results: &Path,
) -> Result<Guest> {
    let machine = Machine::of(scenarios[0], image.series.architecture());
    let (program, package) = machine.architecture.emulator();
    let name = if let [one] = scenarios {
        one.name()
    } else {
        "several"
    };
    let again = if number > 0 {
        format!("-{number}")
    } else {
        String::new()
    };
    let file = |kind: &str| results.join(format!("{}-{name}{again}.{kind}", image.release));
    let (console, report, emulator) = (file("console"), file("report"), file("emulator"));
    for path in [&console, &report] {
        fs::write(path, "").with_context(|| format!("cannot write {}", path.display()))?;
    }
    let errors = fs::File::create(&emulator)
        .with_context(|| format!("cannot write {}", emulator.display()))?;
    let disk = match machine.disk_mib {
        None => None,
        Some(size) => Some(Disk::new(file("disk"), size << 20)?),
    };
    let started = Instant::now();
    let mut qemu = Command::new(program)
        .args([
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
        ])
        .args(machine.arguments(disk.as_ref().map(|disk| disk.path.as_path())))
        .args(machine.ports(&console, &report))
        .arg("-kernel")
        .arg(&image.kernel)
        .arg("-initrd")
        .arg(initramfs)
        .args(["-append", &machine.command_line(scenarios)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .with_context(|| format!("cannot run {program} (Debian: apt-get install {package})"))?;
    let mut cpu = Duration::ZERO;
    let ended = wait(
        &mut qemu,
        machine.timeout * scenarios.len() as u32,
        SILENCE,
        &mut || {
            let output =
                [&console, &report].map(|path| fs::metadata(path).map_or(0, |file| file.len()));
            output.iter().sum()
        },
        &mut cpu,
    )?;
    let took = started.elapsed();
    let text = fs::read(&report).with_context(|| format!("cannot read {}", report.display()))?;
    let endings = Ending::of_all(
        ended,
        &String::from_utf8_lossy(&text),
        scenarios,
        &image.release,
    );
    Ok(Guest {
        began: !text.is_empty(),
        endings,
        took,
        cpu,
        console,
        emulator,
    })
}

/// A file that is a guest's disk, removed when this is dropped.
struct Disk {
    path: PathBuf,
}

impl Disk {
    fn new(path: PathBuf, bytes: u64) -> Result<Self> {
        let made = fs::File::create(&path).and_then(|file| file.set_len(bytes));
        made.with_context(|| format!("cannot make the disk {}", path.display()))?;
        Ok(Self { path })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // It is in the cache, which the user may clear.
        let _ = fs::remove_file(&self.path);
    }
}

/// Waits for a child, and ends it when it has used `timeout` of CPU time, or when `output` has not grown for `silence`.
/// Stores the CPU time that it used in `cpu`.
fn wait(
    child: &mut Child,
    timeout: Duration,
    silence: Duration,
    output: &mut dyn FnMut() -> u64,
    cpu: &mut Duration,
) -> Result<Result<ExitStatus, Why>> {
    let (mut last, mut since) = (output(), Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ok(status));
        }
        *cpu = cpu_time(child.id()).unwrap_or(*cpu);
        let now = output();
        let grew = now != last;
        if grew {
            (last, since) = (now, Instant::now());
        }
        let why = if *cpu >= timeout {
            Why::Busy(*cpu)
        } else if !grew && since.elapsed() >= silence {
            Why::Silent(silence)
        } else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        child.kill()?;
        child.wait()?;
        return Ok(Err(why));
    }
}

/// CPU time of a process and of all its threads.
fn cpu_time(pid: u32) -> Option<Duration> {
    /// The unit of the times in `/proc/PID/stat`: `USER_HZ`, a constant.
    const TICKS_A_SECOND: u64 = 100;
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The fields after the name, which may contain anything: from field 3 on.
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = str::from_utf8(&stat[name_end + 1..]).ok()?;
    let times = rest.split_ascii_whitespace().skip(11).take(2);
    let ticks: u64 = times
        .map(|ticks| ticks.parse::<u64>().ok())
        .sum::<Option<u64>>()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS_A_SECOND))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    const WHOLE: &str = "{\"line\":\"begin\",\"scenario\":\"survey\",\"release\":\"6.1\"}\n\
                         {\"line\":\"end\",\"checks\":0,\"failed\":0}\n";
    const FAILING: &str = "{\"line\":\"begin\",\"scenario\":\"survey\",\"release\":\"6.1\"}\n\
                           {\"line\":\"check\",\"name\":\"it\",\"passed\":false,\"detail\":\"\"}\n\
                           {\"line\":\"end\",\"checks\":1,\"failed\":1}\n";

    const NEXT: &str = "{\"line\":\"begin\",\"scenario\":\"exits\",\"release\":\"6.1\"}\n\
                        {\"line\":\"end\",\"checks\":0,\"failed\":0}\n";

    fn status(code: Option<i32>) -> Result<ExitStatus, Why> {
        let status = code.map(|code| ExitStatus::from_raw(code << 8));
        status.ok_or(Why::Silent(SILENCE))
    }

    fn endings(code: Option<i32>, text: &str, wanted: &[Scenario]) -> Vec<String> {
        let endings = Ending::of_all(status(code), text, wanted, "6.1");
        endings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_guest_passes_by_its_exit_code_and_its_closing_line_together() {
        let one = [Scenario::Survey];
        assert_eq!(endings(Some(PASSED), WHOLE, &one), ["passed"]);
        assert_eq!(endings(Some(FAILED), FAILING, &one), ["1 checks failed"]);
        for (code, text) in [
            (Some(0), WHOLE),
            (Some(1), WHOLE),
            (Some(FAILED), WHOLE),
            (Some(PASSED), FAILING),
            (Some(PASSED), ""),
            (Some(PASSED), &WHOLE[..WHOLE.len() - 30]),
            (Some(PASSED), &WHOLE.replace("6.1", "6.2")),
            (Some(PASSED), &WHOLE.replace("survey", "big")),
            (Some(PASSED), &[WHOLE, NEXT].concat()),
            (None, WHOLE),
        ] {
            let all = Ending::of_all(status(code), text, &one, "6.1");
            assert!(!matches!(all[..], [Ending::Reported(_)]), "{code:?} {text}");
        }
    }

    #[test]
    fn scenarios_of_one_boot_are_judged_each() {
        let both = [Scenario::Survey, Scenario::Exits];
        let text = [FAILING, NEXT].concat();
        let failing = "1 checks failed";
        assert_eq!(endings(Some(FAILED), &text, &both), [failing, "passed"]);
        let one = endings(Some(PASSED), &text, &both);
        assert!(one[0] == failing && one[1].contains("exit code"), "{one:?}");
        let panicked = Ending::Panicked.to_string();
        assert_eq!(endings(Some(0), &text, &both), [failing, &panicked]);
        let cut = &text[..text.len() - 5];
        assert_eq!(endings(Some(0), cut, &both), [failing, &panicked]);
        assert_eq!(endings(Some(0), WHOLE, &both), [panicked.as_str(); 2]);
        let silent = Why::Silent(SILENCE).to_string();
        assert_eq!(endings(None, &text, &both), [failing, &silent]);
    }

    /// Why a child with these limits of CPU time and silence is given up.
    fn given_up(
        program: &mut Command,
        cpu: Duration,
        silence: Duration,
        output: &mut dyn FnMut() -> u64,
    ) -> Why {
        let mut child = program.spawn().unwrap();
        let mut had = Duration::ZERO;
        let why = wait(&mut child, cpu, silence, output, &mut had).unwrap();
        assert!(child.try_wait().unwrap().is_some());
        why.unwrap_err()
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn a_child_that_says_nothing_is_given_up() {
        let silence = Duration::from_millis(1);
        let why = given_up(Command::new("sleep").arg("600"), LONG, silence, &mut || 7);
        assert_eq!(why, Why::Silent(silence));
    }

    #[test]
    fn a_child_that_spins_is_given_up_however_much_it_says() {
        let mut output = 0;
        let mut loops = Command::new("sh");
        let why = given_up(
            loops.args(["-c", "while :; do :; done"]),
            Duration::from_millis(100),
            LONG,
            &mut || {
                output += 1;
                output
            },
        );
        assert!(
            matches!(why, Why::Busy(cpu) if cpu >= Duration::from_millis(100)),
            "{why:?}"
        );
    }

    #[test]
    fn a_child_that_goes_on_saying_something_is_waited_for() {
        let mut output = 0;
        let mut child = Command::new("sleep").arg("0.3").spawn().unwrap();
        let mut had = Duration::ZERO;
        let ended = wait(
            &mut child,
            LONG,
            Duration::from_millis(1),
            &mut || {
                output += 1;
                output
            },
            &mut had,
        );
        assert!(ended.unwrap().unwrap().success());
    }
}
